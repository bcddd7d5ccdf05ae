"""Tunings that are killed or interrupted, and resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from stub_tuning import TuningFixture
from tests.weighbridge.tuning.tunings import SEARCH, done, entry, trials
from weighbridge.common.errors import UsageError
from weighbridge.conductor.interruption import Interrupted
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import CONFIRMATION
from weighbridge.screen.display import PlainDisplay
from weighbridge.tuning import session
from weighbridge.tuning.trial_deployment import TrialDeployment

pytestmark = pytest.mark.usefixtures("made_up_gateway")


def killed(bed: TuningFixture, what: str, at: int) -> None:
    """Run a tuning in a process that is killed at the `at`-th line that begins with `what`."""
    child = os.fork()
    if not child:
        try:
            die(what, at)
            bed.tune()
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), (
        "it should have been killed, and ended by itself"
    )


def die(what: str, at: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send this process a signal at the `at`-th line of a display that begins with `what`."""
    left = [at]
    said = PlainDisplay.say

    def say(self: PlainDisplay, text: str) -> None:
        said(self, text)
        left[0] -= text.startswith(what)
        if not left[0]:
            left[0] = -1
            os.kill(os.getpid(), number)

    PlainDisplay.say = say  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("what", "at"),
    [
        ("starting", 1),
        ("preparing", 1),
        ("step", 1),
        ("step", 2),
        ("changing", 3),
        ("step", 9),
        ("    ", 12),
    ],
)
def test_a_killed_tuning_loses_only_its_last_trial(tmp_path: Path, what: str, at: int) -> None:
    bed = TuningFixture(tmp_path)
    killed(bed, what, at)
    before = trials(bed)
    table = session.resume(bed.run_folder(), bed.doing()).table
    assert table is not None
    after = trials(bed)
    assert after[: len(before)] == before
    assert [trial.number for trial in after] == list(range(len(after)))
    assert {trial.deployment for trial in after[len(before) :]} == {
        max((one.deployment for one in before), default=-1) + 1
    }
    assert entry(table, "speed", 2.0).verdict == "better"
    assert RunStore.open(bed.run_folder()).manifest.state == "done"


@pytest.mark.parametrize("at", [4, 30])
def test_a_killed_search_resumes_with_the_same_proposals(tmp_path: Path, at: int) -> None:
    # All drawn at random: later proposals would depend on what was measured.
    drawn = {**SEARCH, "search": {**SEARCH["search"], "startup": 12, "finalists": 1}}
    full, cut = TuningFixture(tmp_path / "full", **drawn), TuningFixture(tmp_path / "cut", **drawn)
    done(full)
    killed(cut, "step", at)
    before = trials(cut)
    session.resume(cut.run_folder(), cut.doing())
    assert trials(cut)[: len(before)] == before
    asked, again = (list(dict.fromkeys(one.arm.name for one in trials(bed))) for bed in (full, cut))
    assert again == asked


def test_a_resumed_tuning_tries_the_baseline_on_the_new_deployment_first(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path)
    killed(bed, "step", 3)  # with one setting of the first round tried
    session.resume(bed.run_folder(), bed.doing())
    again = [trial for trial in trials(bed) if trial.deployment == 1]
    assert again[0].arm.is_baseline
    assert again[0].round == 0


def test_trials_of_another_tuning_are_refused(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path)
    killed(bed, "step", 5)
    path = bed.run_folder() / "tuning.json"
    path.write_text(path.read_text().replace('"seed": 2014', '"seed": 5'))
    with pytest.raises(
        UsageError, match=r"trial \d was of tunable-\S+ in round 1, and now it would be"
    ):
        session.resume(bed.run_folder(), bed.doing())


def test_a_complete_tuning_has_nothing_left_to_do(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path)
    done(bed)
    before = trials(bed)
    assert session.resume(bed.run_folder(), bed.doing()).table is None
    assert trials(bed) == before
    assert "nothing is left to do" in bed.screen.getvalue()


def test_an_interrupted_tuning_tears_all_down_and_prints_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = TuningFixture(tmp_path)
    measure = TrialDeployment.measure
    left = [3]

    def interrupted(self: TrialDeployment, *words: Any) -> float:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGTERM)
        return measure(self, *words)

    monkeypatch.setattr(TrialDeployment, "measure", interrupted)
    with pytest.raises(Interrupted):
        bed.tune()
    assert RunStore.open(bed.run_folder()).manifest.state == "interrupted"
    assert not list(bed.place.deployments.iterdir())
    assert len(trials(bed)) == 2
    session.resume(bed.run_folder(), bed.doing())
    assert RunStore.open(bed.run_folder()).manifest.state == "done"


def test_a_killed_confirmation_is_resumed(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, confirm=3)
    killed(bed, "starting", 4)  # one for the trials, the rest for visits
    [folder] = (bed.run_folder() / CONFIRMATION).iterdir()
    before = RunStore.open(folder).steps()
    assert before
    session.resume(bed.run_folder(), bed.doing())
    steps = RunStore.open(folder).steps()
    assert steps[: len(before)] == before
    assert len(steps) == 6
    assert RunStore.open(bed.run_folder()).manifest.state == "done"
