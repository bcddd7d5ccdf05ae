from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
from importlib import import_module
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from made_up import fake_measurement
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.manifest import ConfigFile, Sheet
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import FILE, RunStore, lock_run_folder, read_log
from weighbridge.results.record.writing import StoreError


def step(order: int, *, workers: int = 4, notes: tuple[str, ...] = ()) -> StepResult:
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=workers, repeat=order)
    return StepResult(
        key=key,
        measurement=fake_measurement(workers=workers, window_s=0.5, seed=order),
        valid=True,
        notes=notes,
        order=order,
    )


@pytest.fixture
def store(runs: Path) -> RunStore:
    """One step, of 2 s."""
    workload = altered(WORKLOADS[0], workers=(1,), runtime=2.0)
    return fake_run(runs, layouts=("swift",), workloads=[workload], repeats=1)


def test_a_run_is_read_back_as_it_was_written(run: RunStore) -> None:
    again = RunStore.open(run.folder)
    assert again.manifest == run.manifest
    assert again.manifest.state == "done"
    assert again.manifest.ended_at is not None
    assert [layout.name for layout in again.plan().layouts] == ["rgw-beast", "swift"]
    steps = again.steps()
    assert [one.order for one in steps] == list(range(len(steps)))
    assert len(steps) == 2 * 2 * 11 - 2


def test_each_step_has_its_own_histogram_log_and_series(run: RunStore) -> None:
    measured = next(one for one in run.steps() if one.measurement is not None)
    assert measured.measurement is not None
    ((tag, _, length, histogram),) = read_log(
        (run.folder / "latency" / f"{measured.key.file_name}.hlog").read_text()
    )
    (tally,) = measured.measurement.tallies
    assert tag == tally.operation
    assert (length, histogram.count) == (measured.measurement.window_s, tally.count)
    series = (run.folder / "series" / f"{measured.key.file_name}.jsonl").read_text().splitlines()
    assert sum(json.loads(line)["count"] for line in series) == tally.count


def test_the_log_of_a_step_has_the_maximum_of_each_of_its_histograms(store: RunStore) -> None:
    one = step(1)
    assert one.measurement is not None
    (tally,) = one.measurement.tallies
    changed = altered(tally, first_byte=Histogram.of([1000, 2000]).encode())
    store.append(altered(one, measurement=altered(one.measurement, tallies=(changed,))))
    *_, all_bytes, first = (
        (store.folder / "latency" / f"{one.key.file_name}.hlog").read_text().splitlines()
    )
    assert all_bytes.startswith(f"Tag=read,0.000,0.500,{(tally.max_us or 0) / 1000:.3f},HIST")
    assert first.startswith("Tag=read-first-byte,0.000,0.500,2.000,HIST")


def test_a_torn_last_line_is_dropped_and_removed_by_the_next_append(store: RunStore) -> None:
    before = store.steps()
    path = store.folder / "steps.jsonl"
    with path.open("ab") as file:
        file.write(step(1).model_dump_json().encode()[:-20])
    assert store.steps() == before
    store.append(step(2))
    assert [one.order for one in store.steps()] == [0, 2]
    assert path.read_bytes().count(b"\n") == 2
    path.write_bytes(b"x" * 100_000)  # a file of one torn line is started again
    store.append(step(7))
    assert [one.order for one in store.steps()] == [7]


def test_any_other_broken_line_is_refused_with_file_and_line(store: RunStore) -> None:
    path = store.folder / "steps.jsonl"
    store.append(step(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][:-30] + b"\n" + lines[1])
    with pytest.raises(InvalidMeasurement, match=rf"{path}:1: "):
        store.steps()


def test_both_results_of_a_step_measured_again_are_kept_and_the_last_counts(
    store: RunStore,
) -> None:
    store.append(step(1, notes=("first",)))
    store.append(step(1, notes=("second",)))
    assert len(store.steps()) == 3
    assert store.latest()[step(1).key].notes == ("second",)


def test_steps_and_runs_of_an_unknown_version_are_refused(store: RunStore) -> None:
    path = store.folder / "steps.jsonl"
    path.write_text(path.read_text().replace('"schema_version":1', '"schema_version":7'))
    with pytest.raises(InvalidMeasurement, match="version 7 of its format"):
        store.steps()
    path = store.folder / "manifest.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(UsageError, match="version 2 of its format; this program knows version 1"):
        RunStore.open(store.folder)


def test_folders_that_hold_no_run_or_cannot_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder of a run"):
        RunStore.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--out"):
        fake_run(tmp_path / "file", layouts=("swift",))


def test_facts_of_the_same_name_are_replaced_and_others_kept(store: RunStore) -> None:
    sheets = len(store.manifest.sheets)
    again = Sheet(title="gateway", layout="swift", facts={"replicas": "2"})
    store.add_facts([again, Sheet(title="driver", facts={"a": "b"})])
    store.add_facts(configs=[ConfigFile(layout="swift", host="h", path="/p", text="t")])
    again = RunStore.open(store.folder).manifest
    assert len(again.sheets) == sheets + 1
    assert [one.facts for one in again.sheets if one.title == "gateway"] == [{"replicas": "2"}]


def test_events_are_kept_in_order_and_a_failed_run_says_why(store: RunStore) -> None:
    store.event("up", "swift is running", layout="swift")
    store.event("down", "swift was torn down")
    assert [(one.kind, one.layout) for one in store.events()] == [("up", "swift"), ("down", None)]
    store.set_state("failed", error="gateway-1: radosgw: died")
    manifest = RunStore.open(store.folder).manifest
    assert (manifest.state, manifest.error) == ("failed", "gateway-1: radosgw: died")


def test_readers_cannot_block_writers(store: RunStore) -> None:
    store.event("up", "swift is running")
    for path in store.folder.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o004:
            with path.open("rb") as read:
                fcntl.flock(read, fcntl.LOCK_EX)
                writing = threading.Thread(
                    target=store.event, args=("down", "swift was torn down"), daemon=True
                )
                writing.start()
                writing.join(60)
                assert not writing.is_alive(), path
    assert (store.folder / "events.jsonl").stat().st_mode & 0o004


def test_complete_lines_stay_readable_when_the_disk_is_full(store: RunStore) -> None:
    # A file size limit ends a write as a full disk would: short, or with an error.
    program = """
        import resource, signal, sys
        from pathlib import Path
        from weighbridge.results.record.store import RunStore
        from weighbridge.results.record.writing import StoreError
        from weighbridge.results.record.step import StepResult
        store = RunStore.open(Path(sys.argv[1]))
        step = StepResult.model_validate_json(sys.argv[2])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = (store.folder / "steps.jsonl").stat().st_size + int(sys.argv[3])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            store.append(step)
        except StoreError as error:
            print(error)
        else:
            print("written")
    """
    series_and_log = step(1)
    for room in (100, 0):
        given = (store.folder, series_and_log.model_dump_json(), str(room))
        command = [sys.executable, "-c", textwrap.dedent(program), *given]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "the disk is full" in done.stdout
        assert "Make room" in done.stdout
        assert str(store.folder) in done.stdout
    assert [one.order for one in store.steps()] == [0]
    assert (store.folder / "steps.jsonl").read_bytes().endswith(b"\n")
    assert not list(store.folder.rglob("*.part"))
    store.append(series_and_log)
    assert [one.order for one in store.steps()] == [0, 1]


def test_an_unwritable_file_is_an_error_with_its_path(store: RunStore) -> None:
    (store.folder / "events.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"events\.jsonl"):
        store.event("up", "x")


def test_a_step_without_measurement_must_say_why_and_one_of_another_step_is_refused() -> None:
    key = step(0).key
    with pytest.raises(ValueError, match="must say why"):
        StepResult(key=key, measurement=None, valid=False, order=0)
    with pytest.raises(ValueError, match="cannot be valid"):
        StepResult(key=key, measurement=None, valid=True, notes=("x",), order=0)
    with pytest.raises(ValueError, match="not one of"):
        StepResult(key=key, measurement=fake_measurement(workers=5), valid=True, order=0)


@pytest.mark.parametrize("name", ["../up", "a/b", "", "A", "x" * 41])
def test_names_that_could_leave_the_run_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        StepKey(layout=name, api="s3", workload="w", workers=1, repeat=0)


def test_a_histogram_merged_from_repeats_counts_all_of_them(run: RunStore) -> None:
    tallies = [
        tally
        for one in run.steps()
        if one.measurement
        for tally in one.measurement.tallies
        if tally.latency
    ]
    merged = Histogram.merged(Histogram.decode(tally.latency) for tally in tallies if tally.latency)
    assert merged.count == sum(tally.count for tally in tallies)


def test_hdrhistograms_own_reader_reads_the_logs(run: RunStore) -> None:
    measured = next(one for one in run.steps() if one.measurement is not None)
    assert measured.measurement is not None
    (tally,) = measured.measurement.tallies
    path = run.folder / "latency" / f"{measured.key.file_name}.hlog"
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000, 3))
    try:
        interval = reader.get_next_interval_histogram()
    finally:
        reader.close()
    assert (interval.get_tag(), interval.get_total_count()) == (tally.operation, tally.count)
    assert interval.get_start_time_stamp() == 1_415_102_400_000


@pytest.mark.parametrize("room", ["record", "analysis.run_data", "analysis.findings"])
def test_reading_a_run_imports_no_heavy_library(room: str) -> None:
    heavy = ("altair", "scipy", "numpy", "duckdb", "pptx", "influxdb_client")
    code = (
        f"import sys, weighbridge.results.{room}; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_everything_in_all_exists() -> None:
    door = import_module("weighbridge.results.record")
    assert [name for name in door.__all__ if not hasattr(door, name)] == []


HOLDER = """
import sys
from pathlib import Path
from weighbridge.results.record.store import lock_run_folder
with lock_run_folder(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_no_other_user_can_open_the_lock_file_and_earlier_holders_are_reported(
    tmp_path: Path,
) -> None:
    for times in range(3):
        with lock_run_folder(tmp_path) as before:
            assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
            assert [one.pid for one in before] == [os.getpid()] * times


def test_a_second_process_is_refused_with_the_pid_of_the_first_until_that_is_killed(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds\n"
        with (
            pytest.raises(
                UsageError, match=f"process {first.pid}, since .* is writing to this run"
            ),
            lock_run_folder(tmp_path),
        ):
            pass
        first.kill()
        first.wait()
    with lock_run_folder(tmp_path) as before:
        assert [one.pid for one in before] == [first.pid]


def test_a_torn_line_of_a_holder_is_ignored(tmp_path: Path) -> None:
    with lock_run_folder(tmp_path):
        pass
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes() + b'{"pid": 12, "si\n')
    with lock_run_folder(tmp_path) as before:
        assert len(before) == 1
    with lock_run_folder(tmp_path) as before:
        assert len(before) == 2
