"""A run folder in any order of events: written to, killed at any point, resumed, reported, by two
processes at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fake_run import WORKLOADS, fake_run
from weighbridge.common.errors import UsageError
from weighbridge.results import derivation, derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore, gaps, lock_run_folder
from weighbridge.results.show.feature import Gallery

pytestmark = pytest.mark.long  # kills and resumes complete runs

CALLS: Final = ("write", "fsync", "rename", "ftruncate", "mkdir")
"""What of the folder changes by: a process may be killed between any two of them, or in the middle
of a write.
"""
Point = tuple[str, int]
"""When a process is killed: as it does one of these for the n-th time."""
POINTS: Final = strategies.tuples(
    strategies.sampled_from(("write", *CALLS)), strategies.integers(min_value=1, max_value=6)
)


@pytest.fixture
def _without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts have their own tests, and take longer than all the rest."""
    monkeypatch.setattr(derivation, "gallery", lambda *_: Gallery(charts=()))


@cache
def made() -> tuple[Path, tuple[StepResult, ...]]:
    """A run without steps, and the steps that it will have, in order."""
    workload = WORKLOADS[0].model_copy(update={"workers": (1, 2), "runtime": 1.0})
    store = fake_run(Path(tempfile.mkdtemp()), workloads=[workload], repeats=2, telemetry=False)
    steps = store.steps()
    (store.folder / "steps.jsonl").unlink()
    store.set_state("running")
    warm = shutil.copytree(store.folder, store.folder.with_name("warm"))
    RunStore.open(warm).append(steps[0])
    derive(
        warm, pictures=False
    )  # here, so that its imports are in every process that is forked from this one
    return store.folder, steps


def void(_result: object) -> None:
    """Ignore the result."""


def killed_at(point: Point) -> None:
    """Kill this process at a point; a write is then half done."""
    chosen, times = point
    left = [times]

    def hooked(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            left[0] -= name == chosen
            if left[0] == 0:
                if name == "write":
                    real(words[0], words[1][: len(words[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **named)

        return call

    for name in CALLS:
        setattr(os, name, hooked(name, getattr(os, name)))


def in_another(
    work: Callable[[Callable[[int], None]], None], point: Point | None
) -> tuple[list[int], bool]:
    """Do something in its own process, which is killed at a point; returns what it reported, and
    whether it finished.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 70
        try:
            os.close(reading)
            say = os.write  # before it is patched to kill
            if point is not None:
                killed_at(point)
            work(lambda number: void(say(writing, bytes([number]))))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as report:
        done = list(report.read())
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), (
        "a process that was neither killed nor came to its end met an error"
    )
    return done, status == 0


# No shrinking: it takes minutes, and the steps are few.
QUICK: Final = settings(
    max_examples=15, stateful_step_count=15, deadline=None, phases=(Phase.reuse, Phase.generate)
)


class Folder(RuleBasedStateMachine):
    """One folder. `kept` are the steps whose append has returned: they must stay."""

    @initialize()
    def begin(self) -> None:
        pristine, self.steps = made()
        self.home = Path(tempfile.mkdtemp())
        self.folder = Path(shutil.copytree(pristine, self.home / "run"))
        self.kept: set[int] = set()
        self.holder: Any = None

    def lacking(self, count: int) -> list[int]:
        """What `resume` would measure: the first missing steps."""
        there = RunStore.open(self.folder).latest()
        return [number for number, step in enumerate(self.steps) if step.key not in there][:count]

    def measure(self, count: int, say: Callable[[int], None]) -> None:
        with lock_run_folder(self.folder):
            store = RunStore.open(self.folder)
            store.event("resumed", "going on")
            store.set_state("running")
            for number in self.lacking(count):
                store.append(self.steps[number])
                say(number)
                store.event("step", "measured")
            if not self.lacking(1):
                store.set_state("done")

    @precondition(lambda self: self.holder is None)
    @rule(count=strategies.integers(min_value=1, max_value=3), point=POINTS)
    def go_on_and_be_killed(self, count: int, point: Point) -> None:
        done, _ = in_another(lambda say: self.measure(count, say), point)
        self.kept |= set(done)

    @precondition(lambda self: self.holder is None)
    @rule(count=strategies.integers(min_value=1, max_value=3))
    def go_on(self, count: int) -> None:
        lacking = self.lacking(count)
        done, ended = in_another(lambda say: self.measure(count, say), None)
        assert ended
        assert done == lacking
        self.kept |= set(done)

    @precondition(lambda self: self.holder is None)
    @rule()
    def take_hold(self) -> None:
        self.holder = lock_run_folder(self.folder)
        self.holder.__enter__()

    @precondition(lambda self: self.holder is not None)
    @rule()
    def let_go(self) -> None:
        self.holder.__exit__(None, None, None)
        self.holder = None

    @precondition(lambda self: self.holder is not None)
    @rule()
    def a_second_is_refused_and_changes_nothing(self) -> None:
        before = self.contents()
        with (
            pytest.raises(
                UsageError, match=f"process {os.getpid()}, since .* is writing to this run"
            ),
            lock_run_folder(self.folder),
        ):
            pass
        assert self.contents() == before

    @rule(point=POINTS)
    def report_and_be_killed(self, point: Point) -> None:
        before = self.contents()
        if self.kept:
            in_another(lambda _: void(derive(self.folder, pictures=False)), point)
        assert self.contents() == before

    @precondition(lambda self: self.kept)
    @rule()
    def report(self) -> None:
        before = self.contents()
        derived = derive(self.folder, pictures=False)
        assert sum(row.repeats for row in derived.data.rows) == len(self.kept)
        assert self.contents() == before

    @invariant()
    def what_was_kept_is_there_once_and_can_be_read(self) -> None:
        store = RunStore.open(self.folder)
        found = [self.steps.index(step) for step in store.steps()]
        assert len(set(found)) == len(found)
        assert self.kept <= set(found)
        # A line is complete before its append returns: a kill may come between the two.
        self.kept = set(found)
        gaps(store, store.plan(), store.steps())
        assert {event.kind for event in store.events()} <= {"resumed", "step"}
        assert open_run(self.folder).manifest.state in ("running", "done")

    @invariant()
    def what_was_derived_is_whole(self) -> None:
        page = self.folder / "derived" / "report.html"
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")

    @invariant()
    def nothing_is_left_of_who_was_killed_once_another_has_held_it(self) -> None:
        if self.holder is not None:
            assert [
                path for path in self.folder.rglob("*.part") if "derived" not in path.parts
            ] == []

    def contents(self) -> dict[str, bytes]:
        paths = [
            path
            for path in self.folder.rglob("*")
            if path.is_file() and "derived" not in path.parts
        ]
        return {str(path): path.read_bytes() for path in paths}

    def teardown(self) -> None:
        if self.holder is not None:
            self.let_go()
        shutil.rmtree(self.home)


@pytest.mark.usefixtures("_without_charts")
def test_a_run_folder_stays_consistent_in_any_order_of_events() -> None:
    run_state_machine_as_test(Folder, settings=QUICK)
