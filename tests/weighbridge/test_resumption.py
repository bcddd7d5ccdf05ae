"""Resuming a run from its folder: what is refused, what is left to do, and its budget."""

from __future__ import annotations

import errno
import io
import itertools
import os
import signal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from rich.console import Console

from fake_driver import Answering
from recorded_use import recorded, used
from stub_run import SUITE, Run, Seen, StubGateway
from tests.weighbridge.killed_runs import killed, opened, planned_keys
from weighbridge import resumption
from weighbridge import run as running
from weighbridge.common.errors import DriverError, InvalidMeasurement, ServiceFailed, UsageError
from weighbridge.common.registry import Registry
from weighbridge.conductor import conductor, pass_runner
from weighbridge.conductor.conductor import RESUMED
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.interruption import Interrupted
from weighbridge.conductor.plan import Plan, control_of, make_plan
from weighbridge.conductor.step_runner import MOST_REPEATS
from weighbridge.conductor.time_estimate import TimeAllowance
from weighbridge.drivers.protocol import Step
from weighbridge.gateways.gateway import STORES, RootImage
from weighbridge.results import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.doubt import SPOILT
from weighbridge.results.run.reading import StoreError
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import Holder, RunStore, lock_run_folder
from weighbridge.results.run.telemetry import HostLimits, Telemetry
from weighbridge.resumption import ResumableRun
from weighbridge.run import Doing, resume
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import VERSIONS, Suite, encryption_needs, signing_needs
from weighbridge.suites.loader import load, shipped
from weighbridge.topologies import images, loader
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.claim import ClaimedMachine


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_runner, "opened", opened)


@pytest.fixture(autouse=True)
def derived(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders whose reports were asked for; none is made."""
    asked: list[Path] = []
    monkeypatch.setattr(running, "derive", lambda folder, **_: asked.append(folder))
    return asked


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))


def doing(run: Run) -> tuple[Doing, io.StringIO]:
    text = io.StringIO()
    return Doing(run.place, Console(file=text, width=200)), text


def begin(run: Run, *, budget_s: float | None = None, **named: Any) -> str:
    """Run it; returns what it printed."""
    plan = run.plan().model_copy(update={"budget_s": budget_s})
    where, said = doing(run)
    out = run.folder / "runs"
    running.run(plan, run.planned, where, out=out, text="", attest=False, **named)
    return said.getvalue()


def only(run: Run) -> Path:
    [folder] = (run.folder / "runs").iterdir()
    return folder


FULL = StoreError(Path("steps.jsonl"), OSError(errno.ENOSPC, "No space left on device"))


@pytest.mark.parametrize(
    ("error", "complete", "was"),
    [
        (None, 3, "failed: gateway-1: stub: did not come up"),
        (Interrupted(signal.SIGTERM), 2, "interrupted: SIGTERM"),
        (FULL, 2, "failed: steps.jsonl: the disk is full"),
    ],
)
def test_a_run_that_ended_before_its_plan_can_be_resumed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException | None,
    complete: int,
    was: str,
) -> None:
    run, real = Run(tmp_path), RunStore.append
    run.gateways["swift-b"].fails_to_start = error is None

    def append(store: RunStore, step: StepResult) -> None:
        if error is not None and step.order == complete:
            raise error
        real(store, step)

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "append", append)
        with pytest.raises(ServiceFailed if error is None else type(error)):
            begin(run)
    folder = only(run)
    store = RunStore.open(folder)
    assert (store.manifest.state, len(store.steps())) == (was.partition(":")[0], complete)
    where, said = doing(run)
    ran = resume(folder, where)
    assert ran.measured
    assert all(step.valid for step in ran.steps)
    store = RunStore.open(folder)
    assert [step.key for step in store.steps()] == planned_keys(run.plan())
    assert (store.manifest.state, store.manifest.error) == ("done", "")
    assert [event.text for event in store.events() if event.kind == "ended"][-1] == "done"
    [resumed] = [event.text for event in store.events() if event.kind == RESUMED]
    assert resumed.startswith(f"{complete} of 6 steps are complete; the run was {was}")
    assert f"{6 - complete} steps, estimated time" in said.getvalue()


def test_lost_steps_are_reported_with_how_to_try_them_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.gateways["rgw-a"].dies_at = 2  # in the first step
    said = begin(run)
    assert (
        "1 step was not measured, in 1 step a part of the gateway failed; to try again: "
        f"weighbridge resume {only(run)}"
    ) in said
    resume(only(run), doing(run)[0])
    assert all(step.valid for step in RunStore.open(only(run)).latest().values())


def test_a_complete_run_starts_nothing_and_makes_its_report_again(
    tmp_path: Path, derived: list[Path]
) -> None:
    run = Run(tmp_path)
    begin(run)
    folder = only(run)
    lines = (folder / "events.jsonl").read_bytes()
    where, said = doing(run)
    ran = resume(folder, where)
    assert not ran.measured
    assert len(ran.steps) == 6
    assert derived == [folder, folder]
    assert "nothing is left to do" in said.getvalue()
    assert (folder / "events.jsonl").read_bytes() == lines


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


def test_changed_facts_are_refused_by_name_until_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    run.gateways["swift-b"].fails_to_start = True
    with pytest.raises(ServiceFailed):
        begin(run)
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


def test_a_broken_line_in_the_steps_is_reported_with_its_place_and_nothing_is_started(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    store = killed(run, "ended", 2)
    path = store.folder / "steps.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(InvalidMeasurement, match=r"steps\.jsonl:1"):
        resume(store.folder, doing(run)[0])


def test_time_spent_before_counts_unless_a_resumed_run_gets_a_new_budget(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)

    def go_wrong(_store: RunStore) -> None:
        raise KeyError("something, once the folder is made")

    with pytest.raises(KeyError):
        begin(run, budget_s=1, begun=go_wrong)
    folder, (where, said) = only(run), doing(run)
    ran = resume(folder, where)
    # The first is always measured, and no other fits.
    assert {step.key.repeat for step in ran.steps} == {0}
    assert "the budget ends the run before repeat 2 of 2" in said.getvalue()
    assert "n = 1: no difference can be claimed" in said.getvalue()
    ran = resume(folder, where)
    assert not ran.measured
    assert "every step that fits into its budget is measured" in said.getvalue()
    ran = resume(folder, where, budget_s=3600)
    assert ran.measured
    assert len(ran.steps) == 12


def test_a_complete_run_gets_further_repeats_with_a_new_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [False, False, True]
    monkeypatch.setattr(conductor, "is_clear", lambda _: looks.pop(0))
    run = Run(tmp_path, repeats=2)
    begin(run)
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


def takes(one: loader.Planned, suite: Suite) -> bool:
    """Whether a layout takes the requests of a suite, and S3 requests as it makes them."""
    ways = {
        way
        for workload in suite.workloads
        for way in (
            *signing_needs(workload.signed, tls=False),
            *encryption_needs(workload.encrypted),
        )
    }
    if "s3" in suite.api and not ways.isdisjoint(one.gateway.s3_lacks()):
        return False
    asked: set[str] = {name for workload in suite.workloads for name in workload.operations}
    asked |= {VERSIONS for workload in suite.workloads if workload.versions}
    served = {*one.gateway.apis()} & {*suite.api}
    return all(asked.isdisjoint(one.gateway.operations_lacked(api)) for api in served)


def test_plans_of_shipped_layouts_and_suites_survive_a_round_trip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loader, "STORES", STORES)
    hardware = hardware_named("lab-cpu")
    rgw = ("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-haproxy", "rgw-beast@ceph-18")
    swift = ("swift", "swift-haproxy", "swift-s3api", "swift@swift-2.35")
    found = [layout_named(name, hardware) for name in (*rgw, *swift)]
    found.append(control_of(layout_named("rgw-beast:radosgw.tcp_nodelay=0", hardware)))
    for path in shipped().values():
        suite = load(path)
        able = [
            one
            for one in found
            if {*suite.api} <= {*one.gateway.apis(), *one.gateway.layers()} and takes(one, suite)
        ]
        assert able, suite.name
        plan = make_plan(suite, hardware, able)
        back = Plan.model_validate_json(plan.model_dump_json(indent=2))
        assert back == plan
        for layout, one in zip(back.layouts, able, strict=True):
            again = loader.checked_again(layout, back.hardware, "plan.resolved.json")
            assert again.layout == one.layout
            assert again.gateway.needs() == one.gateway.needs()
            for part in ("release", "place", "settings"):
                assert getattr(again.gateway, part) == getattr(one.gateway, part)


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
    changed = resumption.changed_facts(left, run.place)
    assert [(one.fact, one.before, one.now) for one in changed] == [("kernel", "6.1", "6.2")]
    assert resumption.refuse_changed(left, run.place, ["all"]) == changed


def test_only_what_a_process_of_the_run_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = StateFolders(home=tmp_path / "home", state=tmp_path / "state")
    since = "2026-01-01T00:00:0"
    for name, pid, at in (("ours-1", 11, 5), ("older-1", 11, 1), ("theirs-1", 12, 5)):
        ClaimedMachine(
            deployment=name, pid=pid, since=f"{since}{at}+00:00", folder=tmp_path / name
        ).write(place.state)
    removed: list[str] = []

    def remove(deployment: str, **_named: object) -> tuple[str, ...]:
        removed.append(deployment)
        return ("container", "disk")

    monkeypatch.setattr("weighbridge.topologies.lab.ending.remove_leftovers", remove)
    said: list[str] = []
    holders = [Holder(pid=11, since=f"{since}3+00:00"), Holder(pid=13, since=f"{since}6+00:00")]
    resumption.remove_leftovers(holders, place, said.append)
    assert removed == ["ours-1"]
    assert said == ["removed ours-1, which was left running: 2 items"]


def test_time_between_sessions_is_not_counted_as_spent(tmp_path: Path) -> None:
    store = Run(tmp_path).store()
    store.write_manifest(
        store.manifest.model_copy(update={"created_at": "2026-01-01T00:00:00+00:00"})
    )
    lines = [("00:10", "up"), ("05:00", RESUMED), ("05:30", "up")]
    text = "".join(
        f'{{"at": "2026-01-01T00:{at}.000+00:00", "kind": "{kind}", "text": ""}}\n'
        for at, kind in lines
    )
    (store.folder / "events.jsonl").write_text(text)
    assert resumption.spent_s(store) == 40


# What other programs disturbed is measured again: in its visit, and by `resume --repair`.


MACHINE = HostLimits(host="machine", tier="machine", cpus=2)


@pytest.fixture
def neighbour(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    """The shares of the machine's CPUs that others use in a step of the first layout: in its first
    window, the next and so on. Else none.
    """
    shares: dict[str, list[float]] = {}

    def telemetry(_store: RunStore, key: StepKey, time: int = 0) -> Telemetry:
        known = shares.get(_short(key), [0.0]) if key.layout == "rgw-a" else [0.0]
        cpu_s = 2 * known[min(time, len(known) - 1)]
        return recorded(used(MACHINE, seconds=5, cpu_s=cpu_s), hosts=(MACHINE,))

    monkeypatch.setattr(RunStore, "telemetry", telemetry)
    # Each look is a second later: a step takes one, a repair with what is around it three.
    ticks = SimpleNamespace(monotonic=partial(next, itertools.count()))
    monkeypatch.setattr(pass_runner, "time", ticks)
    return shares


class Ordered(Answering):
    """Remembers its orders; `fails`: measuring again does."""

    did: ClassVar[list[str]] = []
    fails: ClassVar[bool] = False

    def _answer(self, order: Any, heard: Any) -> Any:
        self.did.append(
            f"{order.kind} {order.workload.name} {getattr(order, 'repeat', '')}".strip()
        )
        if self.fails and isinstance(order, Step) and order.repeat >= MOST_REPEATS:
            raise DriverError("the driver broke")
        return super()._answer(order, heard)


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> type[Ordered]:
    monkeypatch.setattr("tests.weighbridge.killed_runs.Answering", Ordered)
    monkeypatch.setattr(Ordered, "did", [])
    return Ordered


def _short(key: StepKey) -> str:
    return f"{key.workload} x{key.workers}"


def again(store: RunStore) -> list[str]:
    return [_short(step.key) for step in store.steps() if step.again is not None]


BURST = {"small x4": [0.62, 0.03]}
DELETING = {**SUITE["workloads"][0], "operations": {"delete": 1}}
LOAD = {name: [0.5] for name in ("small x1", "small x4", "mixed x2")}


@pytest.mark.parametrize(
    ("shares", "left_s", "repeated", "counts", "why"),
    [
        (BURST, 3600, ["small x4"], 1, "others used 62 % of this machine's CPUs in rgw-a, swift"),
        ({"small x4": [0.62, 0.9, 0.3]}, 3600, ["small x4"] * 2, 2, "measured again"),
        ({"small x4": [0.3, 0.9, 0.3]}, 3600, ["small x4"] * 2, 0, "measured again"),
        ({"small x4": [0.24]}, 3600, [], 0, ""),
        (
            {**LOAD, "small x4": [0.5, 0.1], "small x1": [0.1]},
            3600,
            ["small x4", "mixed x2", "mixed x2"],
            1,
            "measured again",
        ),
        (LOAD, 3600, [], 0, "not measured again: they disturb every window"),
        (BURST, 30, [], 0, "not measured again: there is no time"),
        # Without a bound, half of the time that the visit's steps took.
        ({**BURST, "mixed x2": [0.3]}, None, ["small x4"], 1, "mixed, 2 workers"),
    ],
)
def test_what_a_burst_disturbed_is_measured_again_and_the_least_disturbed_counts(
    tmp_path: Path,
    neighbour: dict[str, list[float]],
    shares: dict[str, list[float]],
    left_s: float | None,
    repeated: list[str],
    counts: int,
    why: str,
) -> None:
    neighbour |= shares
    run, seen = Run(tmp_path), Seen()
    store = run.conduct(display=seen, allowance=None if left_s is None else TimeAllowance(left_s))
    assert again(store) == repeated
    latest = {_short(key): one for key, one in store.latest().items() if key.layout == "rgw-a"}
    assert latest["small x4"].time == counts
    assert len(store.latest()) == 6
    events = [event for event in store.events() if event.kind == "again"]
    assert why in (events[-1].text if events else "")
    assert {event.text for event in events} <= {*seen.said}
    assert seen.said.count("begins 3") == 1 + len(repeated)
    telling = {name: one[min(latest[name].time, len(one) - 1)] for name, one in shares.items()}
    left = {_short(key): share for key, share in open_run(store.folder).spoilt.items()}
    assert left == {name: share for name, share in telling.items() if share >= SPOILT}


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        (
            {},
            ["cleanup mixed"] * 2
            + ["prepare small", "step small 1000", "cleanup small", "cleanup small"],
        ),
        ({"cleanup": "with-deployment"}, ["step small 1000"]),
        (
            {"cleanup": "with-deployment", "workloads": [DELETING, SUITE["workloads"][1]]},
            ["prepare small", "step small 1000"],
        ),
    ],
)
def test_its_objects_are_there_again_and_what_it_writes_has_other_names(
    tmp_path: Path,
    neighbour: dict[str, list[float]],
    ordered: type[Ordered],
    suite: dict[str, Any],
    expected: list[str],
) -> None:
    neighbour |= BURST
    Run(tmp_path, **suite).conduct()
    first = ordered.did.index("step mixed 0") + 1
    assert ordered.did[first:][: len(expected) + 1] == [*expected, "prepare small"]


@pytest.mark.parametrize("dies_at", [0, 8])
def test_a_failure_while_it_is_measured_again_takes_nothing_that_was_measured(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    neighbour: dict[str, list[float]],
    ordered: type[Ordered],
    dies_at: int,
) -> None:
    neighbour |= BURST
    run = Run(tmp_path)
    monkeypatch.setattr(ordered, "fails", not dies_at)
    run.gateways["rgw-a"].dies_at = dies_at  # the check after the fourth step
    store = run.conduct()
    assert again(store) == ["small x4"]
    assert [one.time for one in store.latest().values()] == [0] * 6
    assert all(one.valid for one in store.latest().values())
    assert run.gateways["rgw-a"].did.count("up") == 1
    assert [event.layout for event in store.events() if event.kind == "failed"] == ["rgw-a"]


def test_repair_measures_what_is_still_disturbed_on_new_deployments_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbour: dict[str, list[float]]
) -> None:
    neighbour |= LOAD
    run = Run(tmp_path)
    begin(run)
    folder, (where, said) = only(run), doing(run)
    store = RunStore.open(folder)
    assert again(store) == []
    derived = derive(folder, pictures=False)
    assert derived.remedy is not None
    assert derived.remedy.command == f"weighbridge resume {folder} --repair"
    assert "Other programs disturbed 3 windows" in derived.remedy.says
    # Interrupted in its second step; the run is complete all the same.
    neighbour |= {name: [0.5, 0.1] for name in LOAD}
    real = RunStore.append

    def append(store: RunStore, step: StepResult) -> None:
        if step.order == 7:
            raise Interrupted(signal.SIGTERM)
        real(store, step)

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "append", append)
        with pytest.raises(Interrupted):
            resume(folder, where, repair=True)
    assert "3 steps, estimated time" in said.getvalue()
    assert len(resume(folder, where).steps) == 6
    assert again(store) == ["small x1"]
    ran = resume(folder, where, repair=True)
    assert again(store) == ["small x1", "small x4", "mixed x2"]
    assert [one.time for one in ran.steps] == [1, 1, 1, 0, 0, 0]
    assert (
        "2 windows measured again; 2 of these measurements were disturbed less" in said.getvalue()
    )
    visits = [event.text for event in store.events() if event.kind == "visit"]
    assert len(visits) == 4
    assert RunStore.open(folder).manifest.state == "done"
    with pytest.raises(UsageError, match="no window is known to have been disturbed"):
        resume(folder, where, repair=True)
