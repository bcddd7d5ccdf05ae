"""Tunings from their folder to their report, on a made-up gateway."""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stub_tuning import TunableGateway, TuningFixture
from tests.weighbridge.tuning.tunings import SEARCH, done, entry, outcomes, trials, values
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.conductor.interruption import Interrupted
from weighbridge.display import PlainDisplay
from weighbridge.gateways.gateway import Gateway
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import CONFIRMATION, TuningStore
from weighbridge.tuning import session
from weighbridge.tuning.course import Course
from weighbridge.tuning.trial_deployment import TrialDeployment

pytestmark = pytest.mark.usefixtures("made_up_gateway")
FEW: dict[str, Any] = {**SEARCH, "search": {**SEARCH["search"], "proposals": 6}}


# ---- screens


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_screen_finds_the_setting_that_matters_and_says_that_the_dummy_does_not(
    tmp_path: Path, seed: int
) -> None:
    table = done(TuningFixture(tmp_path, seed=seed))
    assert entry(table, "speed", 2.0).verdict == "better"
    gain = entry(table, "speed", 2.0).gain
    assert gain is not None
    assert 1.9 < gain < 2.1
    assert entry(table, "dummy", 1).verdict in ("not significant", "too small to matter")


def test_every_step_of_a_trial_is_on_the_disk_before_it_and_in_the_end_nothing_is_left_to_do(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path)
    done(bed)
    store = RunStore.open(bed.run_folder())
    latest = store.latest()
    for trial in trials(bed):
        [step] = [
            step
            for key, step in latest.items()
            if (key.layout, key.repeat) == (trial.arm.name, trial.repeat)
        ]
        assert step.valid
    assert len(latest) == len(trials(bed))
    assert store.manifest.state == "done"
    sheets = {sheet.layout for sheet in store.manifest.sheets if sheet.title == "deployment"}
    assert sheets == {"tunable", "tunable-speed-2-0", "tunable-dummy-1"}
    before = trials(bed)
    assert session.resume(bed.run_folder(), bed.doing()).table is None
    assert trials(bed) == before
    assert "nothing is left to do" in bed.screen.getvalue()


def test_all_trials_use_one_deployment_and_restart_only_what_a_change_needs(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speed=[2.0], live=[1], shards=[2]))
    done(bed)
    found = trials(bed)
    assert {trial.deployment for trial in found} == {0}
    kinds = [event.kind for event in RunStore.open(bed.run_folder()).events()]
    assert kinds.count("up") == 1
    new = sum(trial.scope in ("buckets", "cluster") for trial in found)
    assert kinds.count("prepared") == new < len(found)
    for before, trial in itertools.pairwise(found):
        keys = {*before.arm.settings, *trial.arm.settings} if before.arm != trial.arm else set()
        wanted = "buckets" if "shards" in keys else "restart" if "speed" in keys else "nothing"
        assert trial.scope == wanted


def test_a_setting_of_the_cluster_is_tried_on_a_new_cluster(tmp_path: Path) -> None:
    bed = TuningFixture(
        tmp_path, parameters=values(pools=[2]), trials={"least": 2, "most": 2, "baseline_every": 3}
    )
    table = done(bed)
    found = trials(bed)
    assert entry(table, "pools", 2).gain == pytest.approx(1, abs=0.15)
    assert [trial.deployment for trial in found] == [0, 1, 2, 2, 3, 4]
    assert [trial.scope for trial in found] == [*["cluster"] * 3, "nothing", *["cluster"] * 2]


# ---- grids and searches


def test_a_grid_tries_every_combination_and_chooses_the_best(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, strategy="grid", parameters=values(speed=[1.5], threads=[16]))
    table = done(bed)
    assert {tuple(one.variant.settings.items()) for one in table.entries} == {
        (("speed", 1.5),),
        (("threads", 16),),
        (("speed", 1.5), ("threads", 16)),
    }
    winner = TuningStore(bed.run_folder()).winner()
    assert winner is not None
    assert winner.arm.settings == {"speed": 1.5, "threads": 16}


def test_a_search_tries_the_best_combination_often_enough_for_a_claim_and_gives_up_beaten_ones(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, **SEARCH)
    table = done(bed)
    winner = TuningStore(bed.run_folder()).winner()
    assert winner is not None
    best = table.entry(winner.arm)
    assert best is not None
    assert best.verdict == "better"
    assert best.trials >= 5
    assert winner.arm.settings["speed"] > 1.2  # type: ignore[operator]
    plan = RunStore.open(bed.run_folder()).plan()
    times = Counter(trial.arm.name for trial in trials(bed))
    assert set(times) == {layout.name for layout in plan.layouts}
    assert 2 in times.values()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("strategy", [{}, FEW], ids=["screen", "search"])
def test_the_same_seed_and_outcomes_make_the_same_trials(
    tmp_path: Path, strategy: dict[str, Any]
) -> None:
    beds = [
        TuningFixture(tmp_path / name, seed=seed, **strategy)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    found = []
    for bed in beds:
        done(bed)
        found.append(outcomes(trials(bed)))
    assert found[0] == found[1] != found[2]


# ---- failures


def test_a_setting_with_which_the_gateway_does_not_start_is_tried_once(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speed=[2.0], starts=[False]))
    table = done(bed)
    broken = entry(table, "starts", value=False)
    assert broken.verdict == "failed"
    [trial] = [trial for trial in trials(bed) if "starts" in trial.arm.settings]
    assert "did not come up" in trial.failed
    assert not trial.stood
    assert entry(table, "speed", 2.0).verdict == "better"
    [step] = [
        step
        for key, step in RunStore.open(bed.run_folder()).latest().items()
        if key.layout == trial.arm.name
    ]
    assert step.measurement is None
    assert "does not run with these settings" in step.notes[0]


def test_a_setting_whose_steps_fail_is_tried_twice_and_the_baseline_recovers(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speed=[2.0], answers=[False]))
    table = done(bed)
    assert entry(table, "answers", value=False).verdict == "failed"
    assert sum("answers" in trial.arm.settings for trial in trials(bed)) == 2
    assert not any(trial.failed for trial in trials(bed) if trial.arm.is_baseline)
    assert entry(table, "speed", 2.0).verdict == "better"


def test_a_baseline_that_does_not_start_again_gets_a_new_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = TunableGateway.change

    def stuck(self: TunableGateway, gateway: Gateway, scope: Any, say: Any) -> tuple[str, ...]:
        if not self.gateway.settings.starts:
            raise ServiceFailed("gateway-1", "tunable", "is stuck", log="tunable.out", tail=[])
        return change(self, gateway, scope, say)

    monkeypatch.setattr(TunableGateway, "change", stuck)
    bed = TuningFixture(tmp_path, parameters=values(speed=[2.0], starts=[False]))
    table = done(bed)
    assert entry(table, "speed", 2.0).verdict == "better"
    found = trials(bed)
    assert max(trial.deployment for trial in found) >= 1
    for trial in found:
        beside = [
            one for one in found if (one.round, one.deployment) == (trial.round, trial.deployment)
        ]
        assert trial.failed or any(one.arm.is_baseline for one in beside)


def test_a_baseline_that_fails_ends_the_run_with_its_error_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, settings={"answers": False})
    with pytest.raises(Exception, match="has died"):
        bed.tune()
    assert RunStore.open(bed.run_folder()).manifest.state == "failed"
    assert not list(bed.place.deployments.iterdir())
    shown = bed.screen.getvalue().replace("\n", "")
    assert f"weighbridge tune {bed.run_folder()} --resume" in shown


def test_what_running_daemons_refuse_is_reported_for_all_candidates_before_the_first_trial(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, parameters=values(live=[-1, 1, -2], speed=[1.2]))
    with pytest.raises(UsageError) as refused:
        bed.tune()
    lines = refused.value.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["live=-1", "live=-2"]
    assert "scope" in refused.value.advice
    assert trials(bed) == ()
    assert RunStore.open(bed.run_folder()).manifest.state == "failed"


def test_what_the_programs_refuse_is_reported_for_all_candidates_before_a_folder_is_made(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, parameters=values(known=[False], speed=[2.0]))
    with pytest.raises(UsageError, match="known=False: no option 'known'"):
        bed.tune()
    assert not bed.out.exists()


# ---- the budget


def test_a_spent_budget_ends_the_trials_with_the_baseline_and_a_new_one_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = TuningFixture(tmp_path, budget="1000s")
    monkeypatch.setattr(
        Course, "room_s", lambda _: 0.0 if bed.out.exists() and len(trials(bed)) >= 10 else 1000.0
    )
    bed.tune()
    before = trials(bed)
    assert before[-1].arm.is_baseline
    assert len(before) in (10, 11)
    assert "the budget ends the trials after 10" in bed.screen.getvalue()
    assert RunStore.open(bed.run_folder()).manifest.state == "done"
    monkeypatch.setattr(Course, "room_s", lambda _: 1000.0)
    table = session.resume(bed.run_folder(), bed.doing(), budget_s=1000).table
    assert table is not None
    assert trials(bed)[: len(before)] == before
    assert entry(table, "speed", 2.0).verdict == "better"


def test_a_budget_too_short_for_one_setting_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, budget="1s", confirm=5)
    why = "is too short for one setting between two trials of the baseline"
    with pytest.raises(UsageError, match=why):
        bed.tune()
    assert not bed.out.exists()


# ---- the winner


def test_settings_that_are_better_alone_are_combined_and_written_as_a_file_to_paste(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speed=[1.3, 2.0], threads=[16], dummy=[1]))
    done(bed)
    winner = TuningStore(bed.run_folder()).winner()
    assert winner is not None
    assert winner.arm.name == "tunable-tuned"
    assert winner.arm.settings == {"speed": 2.0, "threads": 16}
    assert "gained less" in winner.reason
    [fragment] = winner.fragments
    assert fragment.name == "ceph.conf"
    assert "speed = 2" in fragment.text
    assert "dummy" not in fragment.text
    assert "# speed 1 → 2: " in fragment.text.replace("\n# ", " # ")
    assert "# replaces: listen = ADDRESS-OF-gateway-1:80 x1\n" in fragment.text
    assert "\nlisten = ADDRESS-OF-gateway-1:80 x2\n" in fragment.text
    pasted = (bed.run_folder() / "derived" / "winner" / "ceph.conf").read_text()
    not_compared = "it was not compared with the baseline on fresh deployments."
    assert pasted.startswith(f"# ceph.conf\n# Not confirmed: {not_compared}\n")


def test_if_settings_cannot_be_combined_the_best_one_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: Callable[..., dict[str, str]] = lambda planneds, *_, **__: (  # noqa: E731
        {"tunable-tuned": "too many threads at this speed"}
        if planneds[0].layout.name == "tunable-tuned"
        else {}
    )
    monkeypatch.setattr(session, "preflight_all", refused)
    bed = TuningFixture(tmp_path, parameters=values(speed=[2.0], threads=[16]))
    done(bed)
    winner = TuningStore(bed.run_folder()).winner()
    assert winner is not None
    assert winner.arm.settings == {"speed": 2.0}
    assert "cannot be combined with threads" in winner.reason


def test_without_a_better_setting_there_is_no_winner_and_nothing_is_confirmed(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speed=[0.5], dummy=[1]), confirm=2)
    done(bed)
    assert TuningStore(bed.run_folder()).winner() is None
    assert not (bed.run_folder() / CONFIRMATION).exists()
    assert "no setting is better" in bed.screen.getvalue()


def test_a_winner_is_compared_with_the_baseline_on_fresh_deployments(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, confirm=5)
    outcome = bed.tune()
    [folder] = (bed.run_folder() / CONFIRMATION).iterdir()
    store = RunStore.open(folder)
    assert [layout.name for layout in store.plan().layouts] == ["tunable", "tunable-speed-2-0"]
    assert sum(event.kind == "up" for event in store.events()) == 10
    assert outcome.derived.folder.parent == bed.run_folder()


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


PLACES = (
    *(("starting", 1), ("preparing", 1), ("step", 1), ("step", 3)),
    *(("changing", 3), ("step", 9), ("    ", 12)),
)


@pytest.mark.parametrize(("what", "at"), PLACES)
def test_a_killed_tuning_loses_only_its_last_trial_and_begins_with_the_baseline(
    tmp_path: Path, what: str, at: int
) -> None:
    bed = TuningFixture(tmp_path)
    killed(bed, what, at)
    before = trials(bed)
    table = session.resume(bed.run_folder(), bed.doing()).table
    assert table is not None
    after = trials(bed)
    assert after[: len(before)] == before
    assert [trial.number for trial in after] == list(range(len(after)))
    assert after[len(before)].arm.is_baseline
    if (what, at) == ("step", 3):  # with one setting of the first round tried
        assert after[len(before)].round == 0
    assert {trial.deployment for trial in after[len(before) :]} == {
        max((one.deployment for one in before), default=-1) + 1
    }
    assert entry(table, "speed", 2.0).verdict == "better"
    assert RunStore.open(bed.run_folder()).manifest.state == "done"


def test_a_killed_search_resumes_with_the_same_proposals(tmp_path: Path) -> None:
    # All drawn at random: later proposals would depend on what was measured.
    drawn = {**SEARCH, "search": {**SEARCH["search"], "startup": 12, "finalists": 1}}
    full = TuningFixture(tmp_path / "full", **drawn)
    done(full)
    for at in (4, 30):
        cut = TuningFixture(tmp_path / str(at), **drawn)
        killed(cut, "step", at)
        before = trials(cut)
        session.resume(cut.run_folder(), cut.doing())
        assert trials(cut)[: len(before)] == before
        first, again = (dict.fromkeys(one.arm.name for one in trials(bed)) for bed in (full, cut))
        assert list(again) == list(first)


def test_trials_of_another_tuning_are_refused(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path)
    killed(bed, "step", 5)
    path = bed.run_folder() / "tuning.json"
    path.write_text(path.read_text().replace('"seed": 2014', '"seed": 5'))
    why = r"trial \d was of tunable-\S+ in round 1, and now it would be"
    with pytest.raises(UsageError, match=why):
        session.resume(bed.run_folder(), bed.doing())


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
