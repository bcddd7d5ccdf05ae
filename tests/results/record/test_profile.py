"""Stacks and block events from real output of perf 6.1 for Ceph 16.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_rows import made_workload, plan_of
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.record.profile import (
    PYTHON,
    Profile,
    ProfiledProgram,
    Stack,
    choose,
    disk_csv,
    fold,
    folded,
    parse,
    read_profiles,
    unresolved,
)
from weighbridge.results.report.profile_section import profile_sections

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


def recorded() -> tuple[Stack, ...]:
    return fold((DATA / "script-6.1-ceph-16.txt").read_text(), PROGRAMS)


def test_each_sample_of_a_program_is_in_one_stack_from_its_root_to_its_leaf() -> None:
    stacks = recorded()
    assert sum(stack.samples for stack in stacks) == 30
    deepest = max(stacks, key=lambda stack: len(stack.frames)).frames
    assert deepest[:5] == ("storage", "ceph-osd", "bstore_kv_sync", "clone3", "start_thread")
    assert deepest[5] == "BlueStore::KVSyncThread::entry"
    assert "sync_file_range" in deepest
    assert deepest[-1] == "_raw_spin_unlock_irqrestore_[k]"


def test_other_processes_are_left_out() -> None:
    script = (DATA / "script-6.1-ceph-16.txt").read_text()
    only = fold(script, {9455: PROGRAMS[9455]})
    assert {stack.frames[0] for stack in only} == {"gateway"}
    assert 0 < sum(stack.samples for stack in only) < 30
    assert fold("", PROGRAMS) == ()


def test_threads_that_differ_by_a_number_are_one() -> None:
    threads = {stack.frames[2] for stack in recorded()}
    assert "msgr-worker" in threads
    assert not [name for name in threads if name[-1].isdigit()]


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


def test_folded_stacks_have_a_line_each_with_their_count() -> None:
    stacks = recorded()
    parts = [line.rpartition(" ") for line in folded(stacks).splitlines()]
    assert [tuple(frames.split(";")) for frames, _, _ in parts] == [one.frames for one in stacks]
    assert [int(samples) for _, _, samples in parts] == [one.samples for one in stacks]


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
    assert write.q2c is not None
    assert write.d2c is not None
    # Two were queued and completed after 6 and 5 ms; they were issued to the device as one.
    assert write.q2c.mean_ms == pytest.approx(5.5)
    assert write.q2c.max_ms == pytest.approx(6)
    assert write.d2c.p50_ms == pytest.approx(4)
    # The first read starts where the write ended; the second starts 200 sectors later and is never
    # seen to complete.
    assert (read.requests, read.seeks, read.median_seek_bytes) == (2, 1, 200 * 512)
    assert read.d2c is not None
    assert read.d2c.max_ms == pytest.approx(10)
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
    assert "store-1,wb0,2.00,read,2,65536,4096,4096,61440,1,10375168,13.5130" in disk_csv(trace)


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
    (page,) = profile_sections([one])
    assert page.caption == "No stacks were taken."
    assert page.remarks == ("no stacks: perf said no",)
    assert [line[0] for line in page.disk_lines] == ["read", "write"]
    assert all(len(line) == len(page.disk_titles) for line in page.disk_lines)
    (sampled,) = profile_sections([profile(samples=200, unresolved=50, event="cpu-clock")])
    assert "stacks.folded" in sampled.caption
    assert "25 %" in sampled.caption
    (folder / "profile.json").write_text("{}")
    with pytest.raises(InvalidMeasurement, match="cannot be read"):
        read_profiles(tmp_path)
    (folder / "profile.json").unlink()
    (folder / "profile.json").mkdir()
    with pytest.raises(
        InvalidMeasurement, match=r"one/profile\.json: is a folder, not a regular file"
    ):
        read_profiles(tmp_path)
