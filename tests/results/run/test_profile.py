"""Stacks and block events from real output of perf 6.1 for Ceph 16.2."""

import base64
import math
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from made_rows import made_workload, plan_of, present
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.features.step_details import profile_part
from weighbridge.results.run.histogram import BANDS, HIGHEST_US, Histogram, band_of, low_us
from weighbridge.results.run.profile import (
    PYTHON,
    Profile,
    ProfiledProgram,
    choose,
    fold,
    folded,
    parse,
    read_profiles,
    unresolved,
)

DATA = Path(__file__).resolve().parents[2] / "data" / "perf"
OSD = ProfiledProgram(kind="storage", host="store-1", name="ceph-osd")
PROGRAMS = {
    9455: ProfiledProgram(kind="gateway", host="gateway-1", name="radosgw"),
    7502: OSD,
    7503: OSD,
    7504: OSD,
}
PROXY = {5: ProfiledProgram(kind="gateway", host="gateway-1", name="swift-proxy-ser")}
SUITE = plan_of(made_workload(1, name="small-read", workers=(1, 16))).suite


def test_each_sample_of_a_program_is_in_one_stack_from_its_root_to_its_leaf() -> None:
    stacks = fold((DATA / "script-6.1-ceph-16.txt").read_text(), PROGRAMS)
    assert sum(stack.samples for stack in stacks) == 30
    deepest = max(stacks, key=lambda stack: len(stack.frames)).frames
    assert deepest[:5] == ("storage", "ceph-osd", "bstore_kv_sync", "clone3", "start_thread")
    assert deepest[5] == "BlueStore::KVSyncThread::entry"
    assert "sync_file_range" in deepest
    assert deepest[-1] == "_raw_spin_unlock_irqrestore_[k]"
    # Threads that differ by a number are one.
    threads = {stack.frames[2] for stack in stacks}
    assert "msgr-worker" in threads
    assert not [name for name in threads if name[-1].isdigit()]
    parts = [line.rpartition(" ") for line in folded(stacks).splitlines()]
    assert [tuple(frames.split(";")) for frames, _, _ in parts] == [one.frames for one in stacks]
    assert [int(samples) for _, _, samples in parts] == [one.samples for one in stacks]


def test_other_processes_are_left_out() -> None:
    script = (DATA / "script-6.1-ceph-16.txt").read_text()
    only = fold(script, {9455: PROGRAMS[9455]})
    assert {stack.frames[0] for stack in only} == {"gateway"}
    assert 0 < sum(stack.samples for stack in only) < 30
    assert fold("", PROGRAMS) == ()


def test_adjacent_frames_of_the_python_interpreter_are_one() -> None:
    script = "swift-proxy-ser 5/5 1.0: \n" + "".join(
        f"\t  {ip} {symbol} ({dso})\n"
        for ip, symbol, dso in (
            ("1", "__memmove", "/usr/lib/libc.so.6"),
            ("2", "_PyEval_EvalFrameDefault", "/usr/bin/python3.11"),
            ("3", "[unknown]", "/usr/bin/python3.11"),
            ("4", "PyObject_Vectorcall", "/usr/bin/python3.11"),
            ("5", "_start", "/usr/bin/python3.11"),
        )
    )
    (stack,) = fold(script, PROXY)
    assert stack.frames == ("gateway", "swift-proxy-ser", "_start", PYTHON, "__memmove")


def test_parameters_are_dropped_and_unnamed_frames_are_named_by_their_file() -> None:
    script = (
        "a b 5/6 1.0: \n\t1 [unknown] (/usr/lib/x/libssl.so.3)\n\t2 f(std::vector<int>&)+0x51 "
        "(/usr/bin/x)\n"
    )
    (stack,) = fold(script, PROXY)
    assert stack.frames[-2:] == ("f", "[libssl.so.3]")
    assert unresolved([stack]) == 1


EVENTS = """\
1.000: block:block_bio_queue: 7,3 WS 100 + 8 [x]
1.001: block:block_bio_queue: 7,3 WS 108 + 8 [x]
1.002:  block:block_rq_issue: 7,3 WS 8192 () 100 + 16 0x2,0,4 [x]
1.003:  block:block_rq_issue: 7,3 FF 0 () 0 + 0 0x0,0,0 [x]
1.004:  block:block_rq_issue: 7,4 WS 4096 () 500 + 8 0x2,0,4 [x]
1.006: block:block_rq_complete: 7,3 WS () 100 + 16 0x2,0,4 [0]
2.000: block:block_bio_queue: 7,3 R 116 + 8 [x]
2.000:  block:block_rq_issue: 7,3 R 4096 () 116 + 8 0x2,0,4 [x]
2.010: block:block_rq_complete: 7,3 R () 116 + 8 0x2,0,4 [0]
3.000:  block:block_rq_issue: 7,3 RA 4096 () 324 + 8 0x2,0,4 [x]
3.500:  block:block_rq_issue: 7,3 DS 4096 () 900 + 8 0x2,0,4 [x]
"""


def test_sizes_latencies_and_seeks_match_a_calculation_by_hand() -> None:
    trace = parse(EVENTS, device="7,3", host="store-1", disk="wb0", seconds=4.0)
    read, write = trace.ways
    assert (write.requests, write.bytes, write.seeks, write.median_seek_bytes) == (1, 8192, 0, None)
    # Two were queued and completed after 6 and 5 ms; they were issued to the device as one.
    assert present(write.q2c).mean_ms == pytest.approx(5.5)
    assert present(write.q2c).max_ms == pytest.approx(6)
    assert present(write.d2c).p50_ms == pytest.approx(4)
    # The first read starts where the write ended; the second starts 200 sectors later and is never
    # seen to complete.
    assert (read.requests, read.seeks, read.median_seek_bytes) == (2, 1, 200 * 512)
    assert present(read.d2c).max_ms == pytest.approx(10)
    assert trace.flushes == 1
    idle = parse(EVENTS, device="7,9", host="store-1", disk="wb0", seconds=4.0)
    assert idle.ways == ()


def test_recorded_block_events_are_counted() -> None:
    text = (DATA / "block-6.1.txt").read_text()
    trace = parse(text, device="7,12", host="store-1", disk="wb0", seconds=2.0)
    lines = [line for line in text.splitlines() if "rq_issue" in line]
    flushes = sum(" FF " in line for line in lines)
    assert trace.flushes == flushes
    assert sum(one.requests for one in trace.ways) == len(lines) - flushes
    (read,) = (one for one in trace.ways if one.way == "read")
    assert (read.requests, read.bytes, read.seeks) == (2, 65536, 1)
    assert (read.smallest_bytes, read.median_bytes, read.largest_bytes) == (4096, 4096, 61440)
    assert (read.median_seek_bytes, present(read.q2c).mean_ms) == (
        10375168,
        pytest.approx(13.513, abs=5e-5),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("small-read", "is not WORKLOAD:WORKERS"),
        ("small-red:1", "did you mean"),
        ("small-read:2", "with 2 workers"),
        (":1", "no workload"),
    ],
)
def test_the_step_to_profile_is_one_of_the_suite(text: str, why: str) -> None:
    assert choose("small-read:16", SUITE).workers == 16
    with pytest.raises(UsageError, match=why):
        choose(text, SUITE)


def profile(**changes: object) -> Profile:
    about = {"layout": "rgw-beast", "api": "swift", "workload": "small-read", "repeat": 0}
    return Profile.model_validate({**about, "workers": 16, "seconds": 4.0, **changes})


def test_profiles_are_read_back_and_shown_with_what_is_missing(tmp_path: Path) -> None:
    assert read_profiles(tmp_path) == ()
    folder = tmp_path / "profile" / "one"
    folder.mkdir(parents=True)
    disk = parse(EVENTS, device="7,3", host="store-1", disk="wb0", seconds=4.0)
    kept = profile(disk=disk, remarks=["no stacks: perf said no"])
    (folder / "profile.json").write_text(kept.model_dump_json())
    (one,) = read_profiles(tmp_path)
    assert one == kept
    part = profile_part(one)
    assert part.text == "No stacks were taken."
    assert part.sentences == ["No stacks: perf said no"]
    (grid,) = part.grids
    assert [line[0] for line in grid.lines] == ["read", "write"]
    assert all(len(line) == len(grid.head) for line in grid.lines)
    sampled = profile_part(profile(samples=200, unresolved=50, event="cpu-clock"))
    assert "stacks.folded" in sampled.text
    assert "25 %" in sampled.text
    (folder / "profile.json").write_text("{}")
    with pytest.raises(InvalidMeasurement, match="cannot be read"):
        read_profiles(tmp_path)
    (folder / "profile.json").unlink()
    (folder / "profile.json").mkdir()
    with pytest.raises(
        InvalidMeasurement, match=r"one/profile\.json: is a folder, not a regular file"
    ):
        read_profiles(tmp_path)


latencies = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=60)


@given(latencies, st.floats(0.5, 100))
def test_a_percentile_is_the_sample_at_rank_ceil(values: list[int], percent: float) -> None:
    exact = sorted(values)[max(1, math.ceil(round(len(values) * percent / 100, 6))) - 1]
    found = Histogram.of(values).percentile_us(percent)
    assert exact <= found <= exact * 1.001 + 1


def test_p90_of_six_samples_is_the_sixth_and_no_rank_is_raised_by_binary_fractions() -> None:
    assert Histogram.of([10, 20, 30, 40, 50, 60]).percentile_us(90) == 60
    assert Histogram.of([1] * 999 + [2]).percentile_us(99.9) == 1


@given(latencies, latencies)
def test_merging_equals_counting_all_samples_together(a: list[int], b: list[int]) -> None:
    merged = Histogram.merged([Histogram.of(a), Histogram.of(b)])
    assert merged.buckets() == Histogram.of(a + b).buckets()
    assert merged.count == len(a) + len(b)


@given(st.lists(st.integers(1, HIGHEST_US), max_size=60))
def test_an_encoded_histogram_is_decoded_unchanged(values: list[int]) -> None:
    histogram = Histogram.of(values)
    again = Histogram.decode(histogram.encode())
    assert again.buckets() == histogram.buckets()
    assert again.count == len(values)


def test_malformed_torn_and_foreign_histograms_are_refused() -> None:
    for text in ("", "xx", "HISTFAAA", "AAAA" * 40):
        with pytest.raises(InvalidMeasurement, match="cannot be decoded"):
            Histogram.decode(text)
    with pytest.raises(InvalidMeasurement):
        Histogram.decode(Histogram.of(range(1, 3000)).encode()[:-40])
    other = HdrHistogram(1, 1000, 2)
    other.record_value(5)
    with pytest.raises(InvalidMeasurement, match=r"1\.\.1000 with 2 digits"):
        Histogram.decode(other.encode().decode())


def test_latencies_that_cannot_be_counted_and_impossible_percentages_are_refused() -> None:
    with pytest.raises(InvalidMeasurement, match="outside"):
        Histogram.of([5, 2**40])
    for percent in (0, -1, 100.1):
        with pytest.raises(ValueError, match="percentage"):
            Histogram.of([1]).percentile_us(percent)
    with pytest.raises(InvalidMeasurement, match="empty histogram"):
        Histogram().percentile_us(50)


def test_a_decompression_bomb_is_refused_before_it_expands() -> None:
    bomb = base64.b64encode(
        struct.pack(">ii", 0x1C849304 | 0x10, 100_000) + zlib.compress(bytes(100_000_000))
    ).decode()
    assert len(bomb) < 200_000
    tracemalloc.start()
    try:
        with pytest.raises(InvalidMeasurement, match="decompresses to more than"):
            Histogram.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_largest_possible_histogram_is_read() -> None:
    full = Histogram.counted(
        (min(HIGHEST_US, int(1.0005**n) + 1), 2**40 + n) for n in range(40_000)
    )
    assert len(full.encode()) > 20_000
    assert Histogram.decode(full.encode()).count == full.count


@pytest.mark.parametrize(
    ("latency_us", "band"),
    [
        *((0, 0), (1, 0), (2, 4), (3, 6), (4, 8), (5, 9), (7, 11), (8, 12), (1000, 39), (1024, 40)),
        (2**40, BANDS - 1),
    ],
)
def test_a_latency_is_in_the_same_band_as_in_the_engine(latency_us: int, band: int) -> None:
    assert band_of(latency_us) == band


def test_every_latency_lies_between_the_edges_of_its_band() -> None:
    for latency_us in [*range(1, 5000), 10**6, 3_600_000_000]:
        band = band_of(latency_us)
        assert low_us(band) <= latency_us < low_us(band + 1)
