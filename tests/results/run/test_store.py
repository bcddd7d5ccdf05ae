import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_run import WORKLOADS, fake_run, short_run
from made_rows import altered, present
from made_up import fake_measurement
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.features.open_run import open_run
from weighbridge.results.run.reading import StoreError
from weighbridge.results.run.resolved import ConfigFile, Sheet
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import FILE, RunStore, lock_run_folder
from weighbridge.results.run.telemetry import Attested


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
    return short_run(runs, runtime=2.0, layouts=("swift",), repeats=1)


def test_a_run_is_read_back_as_it_was_written(run: RunStore) -> None:
    again = RunStore.open(run.folder)
    assert again.manifest == run.manifest
    assert again.manifest.state == "done"
    assert again.manifest.ended_at is not None
    assert [layout.name for layout in again.plan().layouts] == ["rgw-beast", "swift"]
    steps = again.steps()
    assert [one.order for one in steps] == list(range(len(steps)))
    assert len(steps) == 2 * 2 * 11 - 2


def test_any_other_broken_line_is_refused_with_file_and_line(store: RunStore) -> None:
    path = store.folder / "steps.jsonl"
    store.append(step(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][:-30] + b"\n" + lines[1])
    with pytest.raises(InvalidMeasurement, match=rf"{path}:1: "):
        store.steps()


def test_results_of_a_step_measured_again_are_kept_and_the_last_counts(store: RunStore) -> None:
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
    (store.folder / "events.jsonl").unlink()
    (store.folder / "events.jsonl").mkdir()
    with pytest.raises(StoreError, match=r"events\.jsonl"):
        store.event("up", "x")


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
        from weighbridge.results.run.store import RunStore
        from weighbridge.results.run.reading import StoreError
        from weighbridge.results.run.step import StepResult
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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"measurement": None, "valid": False}, "must say why"),
        ({"measurement": None, "notes": ("x",)}, "cannot be valid"),
        ({"measurement": fake_measurement(workers=5)}, "not one of"),
    ],
)
def test_a_step_without_measurement_must_say_why_and_one_of_another_step_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        StepResult(**{"key": step(0).key, "valid": True, "order": 0, **changes})


@pytest.mark.parametrize("name", ["../up", "a/b", "", "A", "x" * 41])
def test_names_that_could_leave_the_run_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        StepKey(layout=name, api="s3", workload="w", workers=1, repeat=0)


@pytest.mark.parametrize("room", ["run", "judge.run_data", "judge.words"])
@pytest.mark.long
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


HOLDER = """
import sys
from pathlib import Path
from weighbridge.results.run.store import lock_run_folder
with lock_run_folder(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_no_other_user_can_open_the_lock_file_and_earlier_holders_are_named(tmp_path: Path) -> None:
    for times in range(3):
        with lock_run_folder(tmp_path) as before:
            assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
            assert [one.pid for one in before] == [os.getpid()] * times


def test_a_second_process_is_refused_with_the_firsts_pid_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert present(first.stdout).readline() == "holds\n"
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


UNKNOWN = "what the hosts used in these steps is unknown"
IGNORED = "their last lines were ignored"


@pytest.fixture
def whole(runs: Path) -> RunStore:
    return short_run(runs, repeats=2)


def gaps(store: RunStore) -> tuple[str, ...]:
    return open_run(store.folder).gaps


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def test_a_complete_run_has_no_gaps_also_without_telemetry(whole: RunStore, runs: Path) -> None:
    assert gaps(whole) == ()
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    assert gaps(fake_run(runs, workloads=[workload], repeats=1, telemetry=False)) == ()


def test_a_run_in_progress_says_how_far_it_is(whole: RunStore) -> None:
    tear(whole.folder / "steps.jsonl")
    whole.set_state("running")
    assert gaps(whole) == (
        "the run is still running, or was killed: 3 of 4 steps have a result",
        "steps.jsonl: the last line is incomplete and was ignored",
    )


def test_a_run_that_failed_or_lacks_steps_says_why(whole: RunStore) -> None:
    whole.set_state("failed", error="gateway-1: radosgw died\nlast lines of its log: ...")
    assert gaps(whole) == ("the run failed (gateway-1: radosgw died): 4 of 4 steps have a result",)
    whole.set_state("interrupted")
    assert gaps(whole) == ("the run was interrupted: 4 of 4 steps have a result",)
    whole.set_state("done")
    path = whole.folder / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("")
    assert gaps(whole) == ("the run is done, but 0 of 4 steps have a result",)
    path.unlink()
    assert gaps(whole) == ("the run is done, but 0 of 4 steps have a result",)
    path.write_text("".join(lines[:2]))
    whole.event("budget", "the budget ends the run before repeat 2 of 2")
    assert gaps(whole) == ("the run's budget ended it: 2 of 4 steps have a result",)


def test_missing_files_are_counted_with_the_consequence(whole: RunStore) -> None:
    min((whole.folder / "telemetry").iterdir()).unlink()
    tear(min((whole.folder / "telemetry").iterdir()))
    name = "rgw-beast.swift.small-read.w1.r0"
    assert gaps(whole) == (
        f"telemetry: 1 of 4 files is missing (the first: telemetry/{name}.jsonl): {UNKNOWN}",
        f"telemetry: 1 of 4 files is torn (the first: telemetry/{name[:-1]}1.jsonl): {IGNORED}",
    )


def test_cpu_seconds_of_a_step_without_telemetry_are_unknown_not_zero(whole: RunStore) -> None:
    (whole.folder / "telemetry" / "swift.swift.small-read.w1.r0.jsonl").unlink()
    beast, swift = open_run(whole.folder).rows
    assert beast.value("gateway-cpu") is not None
    assert swift.value("gateway-cpu") is None
    assert swift.value("throughput") is not None


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run of two steps whose files end in lines short enough to be cut at every byte."""
    store = short_run(tmp_path_factory.mktemp("runs"), repeats=1)
    long = store.steps()
    (store.folder / "steps.jsonl").unlink()
    for step in long:
        measured = present(step.measurement)
        tallies = [altered(one, latency=None, first_byte=None) for one in measured.tallies[:1]]
        measured = altered(measured, tallies=tuple(tallies), seconds=measured.seconds[:1])
        store.append(altered(step, measurement=measured, notes=("Ü",)))
    store.event("note", "Über allem")
    place = {"layout": "rgw-beast", "repeat": 0, "host": "g"}
    figure = {"kind": "cpu", "what": "CPU", "value": 1, "unit": "events/s"}
    for _ in range(2):
        store.attest([Attested.model_validate({**place, **figure})])
    return store


@pytest.fixture
def torn_store(complete: RunStore, tmp_path: Path) -> RunStore:
    return RunStore.open(Path(shutil.copytree(complete.folder, tmp_path / "run")))


def cuts(path: Path) -> Iterator[bytes]:
    """The file cut at every byte of its last line, including just before the newline."""
    text = path.read_bytes()
    begins = text.rfind(b"\n", 0, -1) + 1
    for end in range(begins + 1, len(text)):
        yield text[:end]


def test_a_torn_step_is_dropped_and_can_be_appended_again(torn_store: RunStore) -> None:
    path = torn_store.folder / "steps.jsonl"
    text, (first, last) = path.read_bytes(), torn_store.steps()
    tried = 0
    for left in cuts(path):
        path.write_bytes(left)
        assert torn_store.steps() == (first,)
        if tried % 100 == 0:  # deriving a run is slow
            assert (
                "steps.jsonl: the last line is incomplete and was ignored"
                in open_run(torn_store.folder).gaps
            )
        torn_store.append(last)
        assert path.read_bytes() == text
        tried += 1
    assert tried > 500
    path.write_bytes(b"x" * 100_000)  # a file of one torn line is started again
    torn_store.append(step(7))
    assert [one.order for one in torn_store.steps()] == [7]


@pytest.mark.parametrize(
    ("name", "read", "add"),
    [
        ("events.jsonl", RunStore.events, lambda store: store.event("note", "Über allem")),
        ("attestation.jsonl", RunStore.attested, lambda store: store.attest(store.attested()[:1])),
    ],
)
def test_a_torn_line_of_other_files_is_dropped_and_the_next_is_complete(
    torn_store: RunStore,
    name: str,
    read: Callable[[RunStore], tuple[object, ...]],
    add: Callable[[RunStore], None],
) -> None:
    path = torn_store.folder / name
    before = read(torn_store)
    for left in cuts(path):
        path.write_bytes(left)
        assert read(torn_store) == before[:-1]
        add(torn_store)
        assert read(torn_store)[:-1] == before[:-1]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())
        path.write_bytes(left)
    assert (
        f"{name}: the last line is incomplete and was ignored" in open_run(torn_store.folder).gaps
    )


def test_a_torn_line_of_telemetry_is_dropped_and_reported(torn_store: RunStore) -> None:
    key = torn_store.steps()[-1].key
    path = torn_store.folder / "telemetry" / f"{key.file_name}.jsonl"
    before = present(torn_store.telemetry(key))
    assert before.tail is not None
    for left in cuts(path):
        path.write_bytes(left)
        assert torn_store.telemetry(key) == altered(before, tail=None)
    assert any(
        gap.startswith("telemetry: 1 of 2 files is torn")
        for gap in open_run(torn_store.folder).gaps
    )


def test_a_holder_killed_while_writing_its_line_hides_no_other(tmp_path: Path) -> None:
    with lock_run_folder(tmp_path):
        pass
    path = tmp_path / FILE
    line = path.read_bytes()
    for torn in (b'{"pid": 12, "si\n', *(line[:end] for end in range(1, len(line)))):
        path.write_bytes(line + torn)
        with lock_run_folder(tmp_path) as before:
            assert len(before) == 1 + (torn == line[:-1])  # complete except for its newline
        with lock_run_folder(tmp_path) as before:
            assert len(before) == 2 + (torn == line[:-1])
