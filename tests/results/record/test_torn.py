"""Files of a run folder cut at every byte of their last line, as by a kill or a power failure."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore, lock_run_folder
from weighbridge.results.record.telemetry import Attested


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run of two steps whose files end in lines short enough to be cut at every byte."""
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    store = fake_run(tmp_path_factory.mktemp("runs"), workloads=[workload], repeats=1)
    short = [_short(step) for step in store.steps()]
    (store.folder / "steps.jsonl").unlink()
    for step in short:
        store.append(step)
    store.event("note", "Über allem")
    place = {"layout": "rgw-beast", "repeat": 0, "host": "g"}
    figure = {"kind": "cpu", "what": "CPU", "value": 1, "unit": "events/s"}
    for _ in range(2):
        store.attest([Attested.model_validate({**place, **figure})])
    return store


def _short(step: StepResult) -> StepResult:
    assert step.measurement is not None
    tallies = tuple(
        altered(one, latency=None, first_byte=None) for one in step.measurement.tallies[:1]
    )
    measurement = altered(step.measurement, tallies=tallies, seconds=step.measurement.seconds[:1])
    return altered(step, measurement=measurement, notes=("Ü",))


@pytest.fixture
def store(complete: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A copy to damage, on a disk that takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return RunStore.open(Path(shutil.copytree(complete.folder, tmp_path / "run")))


def cuts(path: Path) -> Iterator[bytes]:
    """The file cut at every byte of its last line, including just before the newline."""
    text = path.read_bytes()
    begins = text.rfind(b"\n", 0, -1) + 1
    for end in range(begins + 1, len(text)):
        yield text[:end]


def test_a_torn_step_is_dropped_and_can_be_appended_again(store: RunStore) -> None:
    path = store.folder / "steps.jsonl"
    text, (first, last) = path.read_bytes(), store.steps()
    tried = 0
    for left in cuts(path):
        path.write_bytes(left)
        assert store.steps() == (first,)
        if tried % 100 == 0:  # deriving a run is slow
            assert (
                "steps.jsonl: the last line is incomplete and was ignored"
                in RunData(store.folder).gaps
            )
        store.append(last)
        assert path.read_bytes() == text
        tried += 1
    assert tried > 500


@pytest.mark.parametrize(
    ("name", "read", "add"),
    [
        ("events.jsonl", RunStore.events, lambda store: store.event("note", "Über allem")),
        ("attestation.jsonl", RunStore.attested, lambda store: store.attest(store.attested()[:1])),
    ],
)
def test_a_torn_line_of_other_files_is_dropped_and_the_next_is_complete(
    store: RunStore,
    name: str,
    read: Callable[[RunStore], tuple[object, ...]],
    add: Callable[[RunStore], None],
) -> None:
    path = store.folder / name
    before = read(store)
    for left in cuts(path):
        path.write_bytes(left)
        assert read(store) == before[:-1]
        add(store)
        assert read(store)[:-1] == before[:-1]
        assert all(json.loads(line) for line in path.read_bytes().splitlines())
        path.write_bytes(left)
    assert f"{name}: the last line is incomplete and was ignored" in RunData(store.folder).gaps


def test_a_torn_line_of_telemetry_is_dropped_and_reported(store: RunStore) -> None:
    key = store.steps()[-1].key
    path = store.folder / "telemetry" / f"{key.file_name}.jsonl"
    before = store.telemetry(key)
    assert before is not None
    assert before.tail is not None
    for left in cuts(path):
        path.write_bytes(left)
        assert store.telemetry(key) == altered(before, tail=None)
    assert any(
        gap.startswith("telemetry: 1 of 2 files is torn") for gap in RunData(store.folder).gaps
    )


@pytest.mark.parametrize("folder", ["series", "latency"])
def test_cut_files_for_other_programs_are_reported_and_cost_no_figure(
    complete: RunStore, tmp_path: Path, folder: str
) -> None:
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    store = fake_run(tmp_path, workloads=[workload], repeats=1)
    path = min((store.folder / folder).iterdir())
    text = path.read_bytes()
    rows = RunData(store.folder).rows
    begins = text.rfind(b"\n", 0, -1) + 1
    ends = [0, begins, begins + 1, (begins + len(text)) // 2, len(text) - 1]
    for end in ends:
        path.write_bytes(text[:end])
        data = RunData(store.folder)
        (gap,) = data.gaps
        assert gap.startswith(
            f"{folder}: 1 of 2 files is cut short (the first: {folder}/{path.name}): "
        )
        assert data.rows == rows


def test_a_holder_killed_while_writing_its_line_hides_no_other(tmp_path: Path) -> None:
    with lock_run_folder(tmp_path):
        pass
    path = tmp_path / "holders.jsonl"
    line = path.read_bytes()
    for end in range(1, len(line)):
        path.write_bytes(line + line[:end])
        with lock_run_folder(tmp_path) as before:
            assert len(before) == 1 + (end == len(line) - 1)  # complete except for its newline
        with lock_run_folder(tmp_path) as before:
            assert len(before) == 2 + (end == len(line) - 1)
