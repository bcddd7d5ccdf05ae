"""Resuming a run from its folder: what is refused, what is left to do, and its budget."""

from __future__ import annotations

import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from stub_run import Run, StubGateway
from tests.weighbridge.killed_runs import killed, opened, planned_keys
from weighbridge import resumption
from weighbridge import run as running
from weighbridge.common.errors import InvalidMeasurement, ServiceFailed, UsageError
from weighbridge.common.registry import Registry
from weighbridge.conductor import conductor, pass_runner
from weighbridge.conductor.conductor import RESUMED
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore, lock_run_folder
from weighbridge.results.record.writing import StoreError
from weighbridge.run import Doing, resume
from weighbridge.topologies import loader


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_runner, "opened", opened)


@pytest.fixture(autouse=True)
def derived(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders whose reports were asked for; none is made."""
    asked: list[Path] = []
    monkeypatch.setattr(running, "derive", lambda folder, **_: asked.append(folder))
    return asked


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))


def doing(run: Run) -> tuple[Doing, io.StringIO]:
    text = io.StringIO()
    return Doing(run.place, Console(file=text, width=200)), text


def begin(run: Run, **named: Any) -> Callable[[], Any]:
    def begun() -> Any:
        plan = run.plan().model_copy(update={"budget_s": named.pop("budget_s", None)})
        out, screen = run.folder / "runs", Console(file=io.StringIO())
        return running.run(
            plan, run.planned, Doing(run.place, screen), out=out, text="", attest=False, **named
        )

    return begun


def only(run: Run) -> Path:
    [folder] = (run.folder / "runs").iterdir()
    return folder


@pytest.mark.usefixtures("kinds")
def test_a_run_whose_gateway_did_not_start_prints_how_to_resume_and_resumes(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.gateways["swift-b"].fails_to_start = True
    with pytest.raises(ServiceFailed):
        begin(run)()
    folder = only(run)
    assert RunStore.open(folder).manifest.state == "failed"
    where, said = doing(run)
    ran = resume(folder, where)
    assert ran.measured
    assert len(ran.steps) == 6
    assert all(step.valid for step in ran.steps)
    store = RunStore.open(folder)
    assert store.manifest.state == "done"
    assert store.manifest.error == ""
    assert [event.text for event in store.events() if event.kind == "ended"][-1] == "done"
    [resumed] = [event.text for event in store.events() if event.kind == RESUMED]
    assert resumed.startswith(
        "3 of 6 steps are complete; the run was failed: gateway-1: stub: did not come up"
    )
    assert "3 steps, estimated time" in said.getvalue()


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Interrupted(signal.SIGTERM), "interrupted"),
        (
            StoreError(Path("steps.jsonl"), OSError(errno.ENOSPC, "No space left on device")),
            "failed",
        ),
    ],
)
def test_a_run_that_was_interrupted_or_out_of_space_prints_how_to_resume_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, state: str
) -> None:
    run, real = Run(tmp_path), RunStore.append

    def append(store: RunStore, step: StepResult) -> None:
        if step.order == 2:
            raise error
        real(store, step)

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "append", append)
        with pytest.raises(type(error)):
            begin(run)()
    folder = only(run)
    store = RunStore.open(folder)
    assert store.manifest.state == state
    assert len(store.steps()) == 2
    where, said = doing(run)
    resume(folder, where)
    assert [step.key for step in RunStore.open(folder).steps()] == planned_keys(run.plan())
    assert f"the run was {state}" in next(
        event.text for event in store.events() if event.kind == RESUMED
    )
    assert "4 steps, estimated time" in said.getvalue()


@pytest.mark.usefixtures("kinds")
def test_lost_steps_are_reported_with_how_to_try_them_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.gateways["rgw-a"].dies_at = 2  # in the first step
    screen = io.StringIO()
    plan = run.plan()
    out = run.folder / "runs"
    running.run(
        plan,
        run.planned,
        Doing(run.place, Console(file=screen, width=200)),
        out=out,
        text="",
        attest=False,
    )
    expected = (
        "1 step was not measured, in 1 step a part of the gateway failed; to try again: "
        f"weighbridge resume {only(run)}"
    )
    assert expected in screen.getvalue()
    resume(only(run), doing(run)[0])
    assert all(step.valid for step in RunStore.open(only(run)).latest().values())


@pytest.mark.usefixtures("kinds")
def test_a_complete_run_starts_nothing_and_makes_its_report_again(
    tmp_path: Path, derived: list[Path]
) -> None:
    run = Run(tmp_path)
    begin(run)()
    folder = only(run)
    lines = (folder / "events.jsonl").read_bytes()
    where, said = doing(run)
    ran = resume(folder, where)
    assert not ran.measured
    assert len(ran.steps) == 6
    assert derived == [folder, folder]
    assert "nothing is left to do" in said.getvalue()
    assert (folder / "events.jsonl").read_bytes() == lines


@pytest.mark.usefixtures("kinds")
def test_a_run_that_was_killed_after_its_last_step_is_completed_without_measuring(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 6)
    where, _ = doing(run)
    ran = resume(store.folder, where, despite=())
    assert ran.measured
    assert len(ran.steps) == 6
    assert RunStore.open(store.folder).manifest.state == "done"
    assert not [event for event in store.events() if event.kind == "visit"][2:]


@pytest.mark.usefixtures("kinds")
def test_changed_facts_are_refused_by_name_until_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    run.gateways["swift-b"].fails_to_start = True
    with pytest.raises(ServiceFailed):
        begin(run)()
    folder, (where, _) = only(run), doing(run)
    real = facts_of_machine(run.hardware)
    other = {**real, "cpu": "another", "sysctl vm.swappiness": "1", "load before": "9 9 9"}
    monkeypatch.setattr(resumption, "facts_of_machine", lambda _: other)
    lines = (folder / "events.jsonl").read_bytes()
    with pytest.raises(UsageError) as refused:
        resume(folder, where)
    assert "cpu: " in str(refused.value)
    assert "sysctl (vm.swappiness): " in str(refused.value)
    assert "--despite sysctl,cpu" in str(refused.value)
    assert "load before" not in str(refused.value)
    with pytest.raises(UsageError, match="no fact of that name has changed"):
        resume(folder, where, despite=["cpus"])
    with pytest.raises(UsageError, match=r"sysctl \(vm\.swappiness\)"):
        resume(folder, where, despite=["cpu"])
    assert (folder / "events.jsonl").read_bytes() == lines
    resume(folder, where, despite=["cpu", "sysctl"])
    changed = [event.text for event in RunStore.open(folder).events() if event.kind == "unlike"]
    assert len(changed) == 2
    assert "another now" in changed[1]


@pytest.mark.usefixtures("kinds")
def test_a_run_that_another_process_writes_to_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = run.store()
    with (
        lock_run_folder(store.folder),
        pytest.raises(UsageError, match=f"process {os.getpid()}, since .* is writing to this run"),
    ):
        resume(store.folder, doing(run)[0])


def test_a_folder_that_is_not_a_run_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json"):
        resume(tmp_path, doing(Run(tmp_path))[0])
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("kinds")
def test_a_plan_of_a_newer_version_is_refused_with_which_one_to_use(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = run.store()
    store.write_manifest(store.manifest.model_copy(update={"weighbridge_version": "9.1"}))
    path = store.folder / "plan.resolved.json"
    path.write_text(
        path.read_text().replace('"hardware"', '"phases_of_the_moon": 1, "hardware"', 1)
    )
    with pytest.raises(UsageError, match=r"(?s)phases_of_the_moon.*written by weighbridge 9\.1"):
        resume(store.folder, doing(run)[0])


@pytest.mark.usefixtures("kinds")
def test_a_broken_line_in_the_steps_is_reported_with_its_place_and_nothing_is_started(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    path = store.folder / "steps.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(InvalidMeasurement, match=r"steps\.jsonl:1"):
        resume(store.folder, doing(run)[0])


@pytest.mark.usefixtures("kinds")
def test_time_spent_before_counts_unless_a_resumed_run_gets_a_new_budget(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)

    def go_wrong(_store: RunStore) -> None:
        raise KeyError("something, once the folder is made")

    with pytest.raises(KeyError):
        begin(run, budget_s=1, begun=go_wrong)()
    folder, (where, said) = only(run), doing(run)
    ran = resume(folder, where)
    assert {step.key.repeat for step in ran.steps} == {
        0
    }  # the first is always measured, and no other fits
    assert "the budget ends the run before repeat 2 of 2" in said.getvalue()
    assert "n = 1: no difference can be claimed" in said.getvalue()
    ran = resume(folder, where)
    assert not ran.measured
    assert "every step that fits into its budget is measured" in said.getvalue()
    ran = resume(folder, where, budget_s=3600)
    assert ran.measured
    assert len(ran.steps) == 12


@pytest.mark.usefixtures("kinds")
def test_a_complete_run_gets_further_repeats_with_a_new_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [False, False, True]
    monkeypatch.setattr(conductor, "is_clear", lambda _: looks.pop(0))
    run = Run(tmp_path, repeats=2)
    begin(run)()
    folder, (where, said) = only(run), doing(run)
    assert not resume(folder, where).measured
    assert "--budget TIME adds further repeats" in said.getvalue()
    ran = resume(folder, where, budget_s=3600)
    assert ran.measured
    assert {step.key.repeat for step in ran.steps} == {0, 1, 2, 3}
    assert len(ran.steps) == 4 * 6
    assert RunStore.open(folder).plan().suite.repeats == 4
    # What was measured first is unchanged, and a resumed run is complete.
    assert not resume(folder, where).measured
