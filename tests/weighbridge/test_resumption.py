"""Runs that are killed at any point and gone on with: nothing is lost, nothing is measured
twice.
"""

from __future__ import annotations

import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, cast

import pytest
from rich.console import Console

import fake_driver
from stub_run import Run, StubGateway
from weighbridge import resumption
from weighbridge import run as running
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import InvalidMeasurement, ServiceFailed, UsageError
from weighbridge.common.registry import Registry
from weighbridge.conductor import conductor as conducting
from weighbridge.conductor import further, pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted
from weighbridge.conductor.plan import Plan, control_of, make_plan
from weighbridge.conductor.time_estimate import TimeAllowance
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.kind import Opened
from weighbridge.drivers.order import (
    Cleaned,
    Cleanup,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Setup,
    Step,
)
from weighbridge.gateways.gateway import RootImage
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.hold import Holder, holding
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.step import Pass, StepKey, StepResult
from weighbridge.results.record.store import RunStore, StoreError
from weighbridge.resumption import ResumableRun
from weighbridge.run import Doing, resume
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import Suite
from weighbridge.suites.loader import load, shipped
from weighbridge.topologies import images, loader
from weighbridge.topologies.deployment import Deployment, StatePlace
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.claim import ClaimedMachine


class Watched:
    """A display that remembers, and kills its own process when told something for the `at`-th
    time.
    """

    def __init__(self, what: str = "", at: int = 0) -> None:
        self.what, self.at = what, at
        self.begun: list[tuple[StepKey, int]] = []
        self.said: list[str] = []

    def _told(self, what: str) -> None:
        if what == self.what:
            self.at -= 1
            if not self.at:
                os.kill(os.getpid(), signal.SIGKILL)

    def say(self, text: str) -> None:
        self.said.append(text)
        self._told(text.split(maxsplit=1)[0])

    def begins(self, key: StepKey, number: int) -> None:
        self.begun.append((key, number))
        self._told("begins")

    def progress(self, progress: Progress) -> None:
        self._told(progress.phase)

    def ended(self, result: StepResult) -> None:
        self._told("ended")


class Answering:
    """The driver that makes its measurements up, without a process of its own."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def _answer(self, order: Any, heard: Heard | None) -> Any:
        return fake_driver.answer(
            self.setup,
            order,
            lambda event: None if heard is None else heard(cast("Progress", event)),
        )

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        return cast("Prepared", self._answer(order, heard))

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        return cast("Measured", self._answer(order, heard))

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        return cast("Cleaned", self._answer(order, heard))

    def quit(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(
        _deployment: Deployment, suite: Suite, one: Pass, **_named: object
    ) -> Iterator[Opened]:
        target = Endpoint(api=one.api, url="http://here", user="u", key="k")
        yield Opened(Answering(Setup(target=target, bucket_prefix="wb-test", seed=suite.seed)), {})

    monkeypatch.setattr(pass_runner, "opened", opened)


def conduct(run: Run, store: RunStore, display: Watched, **named: Any) -> None:
    Conductor(run.plan(), run.planned, store, display, run.place, **named).run()


def killed(run: Run, what: str, at: int) -> RunStore:
    """The folder of a run whose process was killed as its display heard `what` for the `at`-th
    time.
    """
    store = run.store()
    child = os.fork()
    if not child:
        try:
            conduct(run, store, Watched(what, at))
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), "it was to be killed, and came to its end"
    return RunStore.open(store.folder)


def planned_keys(plan: Plan) -> list[StepKey]:
    return [key for visit in plan.visits for key in plan.keys(visit)]


def go_on(store: RunStore, run: Run) -> Watched:
    """Go on with a run as `resume` does, without its checks of the machine."""
    seen = Watched()
    store.event(conducting.RESUMED, "goes on")
    conduct(run, store, seen)
    return seen


@pytest.mark.parametrize(
    ("what", "at", "whole"),
    [
        ("standing", 1, 0),  # before anything
        ("preparing", 1, 0),
        ("begins", 1, 0),  # before the first step
        ("measure", 2, 0),  # in the first step
        ("ended", 1, 1),  # between two steps of a workload
        ("measure", 5, 1),  # in the second step
        ("preparing", 2, 2),  # between two workloads
        ("taking", 1, 3),  # at the end of a visit
        ("standing", 2, 3),  # between two visits
        ("begins", 5, 4),
        ("standing", 3, 6),  # between two repeats
        ("ended", 12, 12),  # after the last step
    ],
)
def test_a_run_that_is_killed_anywhere_resumes_without_losing_or_repeating_a_step(
    tmp_path: Path, what: str, at: int, whole: int
) -> None:
    run = Run(tmp_path, repeats=2)
    store = killed(run, what, at)
    before = store.steps()
    assert len(before) == whole
    seen = go_on(store, run)
    after = store.steps()
    assert after[:whole] == before
    assert [step.key for step in after] == planned_keys(run.plan())
    assert [step.order for step in after] == list(range(12))
    assert all(step.valid for step in after)
    assert [key for key, _ in seen.begun] == planned_keys(run.plan())[whole:]
    assert [number for _, number in seen.begun] == list(range(whole + 1, 13))


def test_a_resumed_run_makes_the_same_load_as_an_uninterrupted_one(
    tmp_path: Path,
) -> None:
    whole, cut = Run(tmp_path / "whole"), Run(tmp_path / "cut")
    store, again = whole.store(), killed(cut, "begins", 3)
    conduct(whole, store, Watched())
    go_on(again, cut)
    assert [step.measurement for step in again.steps()] == [
        step.measurement for step in store.steps()
    ]


def test_complete_visits_are_not_started_and_complete_workloads_not_prepared(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    store = killed(
        run, "begins", 6
    )  # all of the first layout, and the first workload of the second
    seen = go_on(store, run)
    assert run.gateways["rgw-a"].did == []
    assert run.gateways["swift-b"].did.count("up") == 1
    assert [text for text in seen.said if text.startswith(("standing", "preparing"))] == [
        "standing up swift-b",
        "preparing mixed",
    ]


def test_osds_that_were_measured_before_an_interruption_are_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    figure = {
        "host": "gateway-1",
        "kind": "osd",
        "what": "osd.0 write",
        "value": 1e8,
        "unit": "B/s",
    }
    asked: list[str] = []

    def ask(deployment: Deployment, _suite: Suite, repeat: int) -> list[Attested]:
        asked.append(deployment.layout.name)
        return [
            Attested.model_validate({**figure, "layout": deployment.layout.name, "repeat": repeat})
        ]

    monkeypatch.setattr(conducting, "ask_osds", ask)
    store = killed(run, "begins", 2)
    go_on(store, run)
    assert asked == ["swift-b"]
    assert [one.layout for one in store.attested()] == ["rgw-a", "swift-b"]


def test_steps_that_were_not_measured_are_tried_again_and_the_order_continues(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.gateways["rgw-a"].dies_at = 2  # in the first step
    store = run.store()
    conduct(run, store, Watched())
    lines = (store.folder / "steps.jsonl").read_bytes()
    spoilt, lost, *_ = store.steps()
    assert spoilt.spoilt
    assert spoilt.measurement is not None
    assert lost.measurement is None
    seen = go_on(store, run)
    assert [key for key, _ in seen.begun] == [spoilt.key, lost.key]
    assert [number for _, number in seen.begun] == [5, 6]
    latest = store.latest()
    assert all(step.valid for step in latest.values())
    assert (latest[spoilt.key].order, latest[lost.key].order) == (6, 7)
    assert len(store.steps()) == 8
    assert (
        (store.folder / "steps.jsonl").read_bytes().startswith(lines)
    )  # what the spoilt one gave is kept


def test_an_invalid_step_is_not_measured_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    first, second = store.steps()
    store.append(first.model_copy(update={"valid": False, "notes": ("busy",)}))
    seen = go_on(store, run)
    assert not {first.key, second.key} & {key for key, _ in seen.begun}


def test_a_torn_line_is_cut_off_and_its_step_measured(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    path = store.folder / "steps.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    go_on(store, run)
    assert [step.key for step in store.steps()] == planned_keys(run.plan())


def test_buckets_of_a_resumed_run_keep_their_names_and_are_cleared_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    store = killed(run, "begins", 5)
    cleared: list[tuple[str, ...]] = []

    def clear(_standing: object, buckets: list[str]) -> tuple[str, ...]:
        cleared.append(tuple(buckets))
        return ()

    monkeypatch.setattr("stub_run.StubStanding.clear", clear, raising=False)
    monkeypatch.setattr(StubGateway, "already_runs", True)
    go_on(store, run)
    assert len(cleared) == 3  # what rgw-a was left with, and swift-b before and after
    assert len(set(cleared)) == 1
    assert all(name.startswith(f"wb-{store.manifest.run_id[-8:]}") for name in cleared[0])


def test_a_repeat_that_no_longer_fits_the_budget_is_not_started_and_a_started_one_is_finished(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=3)
    store = killed(run, "begins", 8)
    seen = Watched()
    conduct(run, store, seen, allowance=TimeAllowance(1))
    assert len(store.steps()) == 12
    assert {step.key.repeat for step in store.steps()} == {0, 1}
    [event] = [event for event in store.events() if event.kind == conducting.BUDGET]
    assert "before repeat 3 of 3" in event.text


def test_a_run_with_time_enough_is_not_ended_by_its_budget(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)
    store = run.store()
    conduct(run, store, Watched(), allowance=TimeAllowance(3600))
    assert len(store.steps()) == 12


def test_events_record_what_was_visited_when_and_in_which_repeat(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)
    store = killed(run, "begins", 5)
    go_on(store, run)
    kinds = ("visit", "up", "down", conducting.RESUMED)
    events = [(event.kind, event.layout) for event in store.events() if event.kind in kinds]
    names = [visit.layout for visit in run.plan().visits]
    stood = [[("visit", name), ("up", name), ("down", name)] for name in names]
    assert events == [
        *stood[0],
        *stood[1][:2],
        (conducting.RESUMED, None),
        *stood[1],
        *stood[2],
        *stood[3],
    ]
    assert sorted(event.at for event in store.events()) == [event.at for event in store.events()]


# ---- the whole way, from a folder


@pytest.fixture(autouse=True)
def derived(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders whose reports were asked for, instead of making them."""
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
    _, steps, went_on = resume(folder, where)
    assert went_on
    assert len(steps) == 6
    assert all(step.valid for step in steps)
    store = RunStore.open(folder)
    assert store.manifest.state == "done"
    assert store.manifest.error == ""
    assert [event.text for event in store.events() if event.kind == "ended"][-1] == "done"
    [resumed] = [event.text for event in store.events() if event.kind == conducting.RESUMED]
    assert resumed.startswith(
        "3 of 6 steps are complete; the run was failed: gateway-1: stub: did not come up"
    )
    assert "3 steps, probably" in said.getvalue()


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
        event.text for event in store.events() if event.kind == conducting.RESUMED
    )
    assert "4 steps, probably" in said.getvalue()


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
    told = (
        "1 step was not measured, in 1 step the gateway did not stay whole; to try again: "
        f"weighbridge resume {only(run)}"
    )
    assert told in screen.getvalue()
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
    _, steps, went_on = resume(folder, where)
    assert not went_on
    assert len(steps) == 6
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
    _, steps, went_on = resume(store.folder, where, despite=())
    assert went_on
    assert len(steps) == 6
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
    with pytest.raises(UsageError, match="nothing of that name differs"):
        resume(folder, where, despite=["cpus"])
    with pytest.raises(UsageError, match=r"sysctl \(vm\.swappiness\)"):
        resume(folder, where, despite=["cpu"])
    assert (folder / "events.jsonl").read_bytes() == lines
    resume(folder, where, despite=["cpu", "sysctl"])
    told = [event.text for event in RunStore.open(folder).events() if event.kind == "unlike"]
    assert len(told) == 2
    assert "another now" in told[1]


@pytest.mark.usefixtures("kinds")
def test_a_run_that_another_process_writes_to_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store = run.store()
    with (
        holding(store.folder),
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
def test_time_spent_before_counts_unless_a_resumed_run_gets_a_new_budget(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=2)

    def go_wrong(_store: RunStore) -> None:
        raise KeyError("something, once the folder is made")

    with pytest.raises(KeyError):
        begin(run, budget_s=1, begun=go_wrong)()
    folder, (where, said) = only(run), doing(run)
    _, steps, _ = resume(folder, where)
    assert {step.key.repeat for step in steps} == {
        0
    }  # the first is always measured, and no other fits
    assert "the budget ends the run before repeat 2 of 2" in said.getvalue()
    assert "n = 1: nothing can be claimed" in said.getvalue()
    _, steps, went_on = resume(folder, where)
    assert not went_on
    assert "every step that its budget held is measured" in said.getvalue()
    _, steps, went_on = resume(folder, where, budget_s=3600)
    assert went_on
    assert len(steps) == 12


@pytest.mark.usefixtures("kinds")
def test_a_complete_run_gets_further_repeats_with_a_new_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [False, False, True]
    monkeypatch.setattr(further, "clear", lambda _: looks.pop(0))
    run = Run(tmp_path, repeats=2)
    begin(run)()
    folder, (where, said) = only(run), doing(run)
    assert not resume(folder, where)[2]
    assert "--budget TIME adds further repeats" in said.getvalue()
    _, steps, went_on = resume(folder, where, budget_s=3600)
    assert went_on
    assert {step.key.repeat for step in steps} == {0, 1, 2, 3}
    assert len(steps) == 4 * 6
    assert RunStore.open(folder).plan().suite.repeats == 4
    # What was measured first stays as it was, and a run that is gone on with is whole.
    assert not resume(folder, where)[2]


def test_plans_of_shipped_layouts_and_suites_survive_a_round_trip() -> None:
    hardware = hardware_named("lab-small")
    names = (
        "rgw-beast",
        "rgw-civetweb",
        "rgw-apache-fastcgi",
        "rgw-haproxy",
        "swift",
        "swift-haproxy",
        "swift-s3api",
    )
    found = [layout_named(name, hardware) for name in names]
    found.append(control_of(layout_named("rgw-beast:radosgw.tcp_nodelay=0", hardware)))
    for path in shipped().values():
        suite = load(path)
        able = [
            one for one in found if {*suite.api} <= {*one.gateway.apis(), *one.gateway.layers()}
        ]
        plan = make_plan(suite, hardware, able)
        back = Plan.model_validate_json(plan.model_dump_json(indent=2))
        assert back == plan
        for layout, one in zip(back.layouts, able, strict=True):
            again = loader.planned_again(layout, back.hardware, "plan.resolved.json")
            assert again.layout == one.layout
            assert again.gateway.needs() == one.gateway.needs()
            assert vars(again.gateway) == vars(one.gateway)


def test_a_rebuilt_image_with_other_packages_is_reported_with_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = RootImage(name="none", suite="none", packages=("radosgw",))
    monkeypatch.setattr(StubGateway, "releases", {"1": image})
    run = Run(tmp_path)
    lab = Hardware.model_validate(
        {"name": "lab", "kind": "lab", "hosts": {"client-1": {}, "gateway-1": {}}}
    )
    run.place.images.mkdir(parents=True)
    listed = run.place.images / f"{images.key(image)}.packages"
    listed.write_text("radosgw=16\n")
    store = run.store()
    facts = {
        f"image {images.key(image)}": images.packages_sum(run.place.images / images.key(image))
    }
    store.write_manifest(
        store.manifest.model_copy(
            update={"sheets": (Sheet(title="deployment", layout="rgw-a", facts=facts),)}
        )
    )
    left = ResumableRun(
        store, run.plan().model_copy(update={"hardware": lab}), tuple(run.planned), frozenset()
    )
    assert not resumption.changed_facts(left, run.place)
    listed.write_text("radosgw=17\n")
    assert [(one.fact, one.of) for one in resumption.changed_facts(left, run.place)] == [
        ("image", "rgw-a")
    ]


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize("attested", [True, False])
def test_a_plan_without_attestation_is_resumed_as_it_began(tmp_path: Path, attested: bool) -> None:
    store = Run(tmp_path).store()
    path = store.folder / "plan.resolved.json"
    path.write_text(path.read_text().replace('  "attest": false,\n', ""))
    figure = {
        "layout": "rgw-a",
        "repeat": 0,
        "host": "gateway-1",
        "kind": "cpu",
        "what": "CPU",
        "value": 1,
        "unit": "events/s",
    }
    store.attest([Attested.model_validate(figure)] if attested else [])
    assert resumption.load_run(store.folder).plan.attest == attested


def test_memory_that_a_kernel_reserves_is_no_change_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    store = run.store()
    store.add_facts(
        [Sheet(title="machine", facts={"memory": "24684096 kB", "sysctl kernel.osrelease": "6.1"})]
    )
    left = ResumableRun(store, run.plan(), tuple(run.planned), frozenset())
    now = {"memory": "24684000 kB", "sysctl kernel.osrelease": "6.2"}
    monkeypatch.setattr(resumption, "facts_of_machine", lambda _: now)
    assert [
        (one.fact, one.before, one.now) for one in resumption.changed_facts(left, run.place)
    ] == [("kernel", "6.1", "6.2")]
    assert resumption.refuse_changed(left, run.place, ["all"]) == resumption.changed_facts(
        left, run.place
    )


def test_only_what_a_process_of_the_run_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = StatePlace(home=tmp_path / "home", state=tmp_path / "state")
    since = "2026-01-01T00:00:0"
    for name, pid, at in (("ours-1", 11, 5), ("older-1", 11, 1), ("theirs-1", 12, 5)):
        ClaimedMachine(
            deployment=name, pid=pid, since=f"{since}{at}+00:00", folder=tmp_path / name
        ).write(place.state)
    removed: list[str] = []

    def remove(deployment: str, **_named: object) -> tuple[str, ...]:
        removed.append(deployment)
        return ("container", "disk")

    monkeypatch.setattr("weighbridge.topologies.lab.leftovers.remove", remove)
    said: list[str] = []
    holders = [Holder(pid=11, since=f"{since}3+00:00"), Holder(pid=13, since=f"{since}6+00:00")]
    resumption.remove_leftovers(holders, place, said.append)
    assert removed == ["ours-1"]
    assert said == ["removed ours-1, which was left running: 2 things"]


def test_time_between_sessions_is_not_counted_as_spent(tmp_path: Path) -> None:
    store = Run(tmp_path).store()
    store.write_manifest(
        store.manifest.model_copy(update={"created_at": "2026-01-01T00:00:00+00:00"})
    )
    lines = [("00:10", "up"), ("05:00", conducting.RESUMED), ("05:30", "up")]
    text = "".join(
        f'{{"at": "2026-01-01T00:{at}.000+00:00", "kind": "{kind}", "text": ""}}\n'
        for at, kind in lines
    )
    (store.folder / "events.jsonl").write_text(text)
    assert resumption.spent_s(store) == 40
