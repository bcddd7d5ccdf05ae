"""Real output of sysbench, fio and iperf3, recorded in tests/data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.topologies import ceilings

DATA = Path(__file__).resolve().parents[1] / "data"


def recorded(name: str) -> str:
    return (DATA / name).read_text()


def test_sysbench_reports_events_per_second() -> None:
    assert ceilings.events_per_s(recorded("sysbench-1.0.20.txt")) == 626.75


def test_output_of_sysbench_without_a_figure_is_an_error_that_quotes_it() -> None:
    with pytest.raises(TargetError, match=r"sysbench: no events per second .*FATAL: out of luck"):
        ceilings.events_per_s("FATAL: out of luck")


def test_fio_reports_bandwidth_of_sequential_jobs_and_requests_of_random_ones() -> None:
    figures = ceilings.disk_figures(recorded("fio-3.33.json"))
    jobs = {job["jobname"]: job for job in json.loads(recorded("fio-3.33.json"))["jobs"]}
    assert figures == {
        "write": (jobs["write"]["write"]["bw_bytes"], "B/s"),
        "read": (jobs["read"]["read"]["bw_bytes"], "B/s"),
        "random write": (jobs["random write"]["write"]["iops"], "1/s"),
        "random read": (jobs["random read"]["read"]["iops"], "1/s"),
    }
    # By hand from the same record: bytes written over the job's own time.
    write = jobs["write"]["write"]
    assert figures["write"][0] == pytest.approx(
        write["io_bytes"] / write["runtime"] * 1000, rel=0.01
    )


def test_a_warning_of_fio_before_its_output_is_skipped() -> None:
    printed = "fio: this platform does not support process shared mutexes\n" + recorded(
        "fio-3.33.json"
    )
    assert set(ceilings.disk_figures(printed)) == set(ceilings.DISK_JOBS)


def test_a_failed_or_missing_job_of_fio_is_an_error() -> None:
    answer = json.loads(recorded("fio-3.33.json"))
    answer["jobs"][1]["error"] = 5
    with pytest.raises(TargetError, match="fio: read: error 5"):
        ceilings.disk_figures(json.dumps(answer))
    del answer["jobs"][1]
    with pytest.raises(TargetError, match="no bw_bytes of read"):
        ceilings.disk_figures(json.dumps(answer))


def test_output_that_is_not_json_is_an_error_that_quotes_it() -> None:
    with pytest.raises(TargetError, match=r"what it printed is not JSON.*segfault"):
        ceilings.disk_figures("segfault")
    with pytest.raises(TargetError, match="not a JSON object"):
        ceilings.bits_per_s("[1]")


@pytest.mark.parametrize("name", ["iperf3-3.12.json", "iperf3-3.12-reverse.json"])
def test_iperf3_reports_what_the_receiving_end_received(name: str) -> None:
    received = json.loads(recorded(name))["end"]["sum_received"]
    printed = ceilings.bits_per_s(recorded(name))
    assert printed == pytest.approx(received["bytes"] * 8 / received["seconds"], rel=0.01)


def test_iperf3_without_a_server_is_an_error_despite_its_status_0() -> None:
    with pytest.raises(
        TargetError, match="iperf3: unable to connect to server: Connection refused"
    ):
        ceilings.bits_per_s(recorded("iperf3-3.12-refused.json"))


def test_a_slow_network_gets_more_data_than_its_token_bucket_holds() -> None:
    def size_bytes(rate_bit_per_s: int | None) -> int:
        words = ceilings.network_arguments("10.0.0.1", rate_bit_per_s, reverse=False)
        return int(words[words.index("--bytes") + 1])

    assert size_bytes(10**6) == ceilings.LEAST_SENT_BYTES
    assert size_bytes(10**9) == 10**9 * ceilings.NETWORK_S / 8
    assert size_bytes(None) == size_bytes(10**10)


def test_reads_hit_the_region_that_was_written() -> None:
    fill, measure = ceilings.fill_arguments("/dev/wb0"), ceilings.disk_arguments("/dev/wb0")
    shared = {"--filename=/dev/wb0", f"--size={ceilings.REGION_BYTES}", "--direct=1"}
    assert shared <= set(fill)
    assert shared <= set(measure)
    assert "--rw=write" in fill


@pytest.mark.parametrize(
    "words",
    [
        ceilings.disk_arguments("/dev/wb0"),
        ceilings.piece_arguments("/dev/wb0", ceilings.pieces([4096, 2**22])),
    ],
)
def test_what_was_written_is_flushed_before_each_job_that_reads(words: tuple[str, ...]) -> None:
    """Otherwise the disk's own cache answers some of the reads."""
    jobs = [job.split() for job in " ".join(words).split("--name=")[1:]]
    reading = [number for number, job in enumerate(jobs) if {"--rw=read", "--rw=randread"} & {*job}]
    assert len(reading) >= 2
    for number in reading:
        assert jobs[number - 1][0] == "settle"
        assert {"--rw=write", "--number_ios=1", "--end_fsync=1", "--stonewall"} <= {
            *jobs[number - 1]
        }


def test_requests_are_complete_blocks_and_large_objects_are_split_as_stores_split_them() -> None:
    asked = ceilings.pieces([1_000_000, 1, 64 * 10**6, 2**30, 0])
    assert [one.name for one in asked[::4]] == [
        "sequential write of 1 B",
        "sequential write of 1 MB",
        "sequential write of 4 MiB",
    ]
    assert [one.block_bytes for one in asked[::4]] == [4096, 1_003_520, 2**22]
    assert len({one.name for one in ceilings.pieces([1_000_001, 1_000_002])}) == 8


def test_fewer_large_requests_are_in_flight_and_many_jobs_are_shorter() -> None:
    words = ceilings.piece_arguments("/dev/wb0", ceilings.pieces([4096, 2**22]))
    assert words.count("--iodepth=16") == 4
    assert words.count("--iodepth=8") == 4
    assert {word for word in words if word.startswith("--runtime")} == {"--runtime=700ms"}
    assert ceilings.piece_s(80) == 0.375
    assert ceilings.piece_s(8000) == ceilings.LEAST_PIECE_S
