"""Preparing a tuning: everything that can be wrong with it is found before anything is started, all
faults at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge import selection
from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.scope import Scope
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.plan import Plan, make_plan, step_seconds
from weighbridge.gateways.gateway import Say
from weighbridge.results.metrics import compared
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import Arm, TuningRun
from weighbridge.suites import Suite
from weighbridge.suites.tuning import Strategy, Tuning
from weighbridge.suites.tuning import loader as tuning_files
from weighbridge.topologies.deployment import StatePlace, preflight_all
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned, planned_again
from weighbridge.tuning.space import Candidate, Space


@dataclass(frozen=True)
class PreparedTuning:
    """A tuning that can be begun.

    `arms` are those that are known: of a search none, and `singles` are checked in their place.
    """

    tuning: Tuning
    suite: Suite
    hardware: Hardware
    space: Space
    singles: tuple[Candidate, ...]
    arms: tuple[Candidate, ...]
    scopes: Mapping[str, Scope]
    text: str
    """The tuning's file."""
    remarks: tuple[str, ...] = field(default=())
    """What is not tried of it and why, in words."""

    @property
    def baseline(self) -> Candidate:
        """The layout as it was given."""
        return self.space.baseline

    def run(self) -> TuningRun:
        """What the run folder says of it."""
        return TuningRun(
            tuning=self.tuning,
            suite=self.suite,
            objectives=tuple(one.resolved(self.suite) for one in self.tuning.objectives),
            baseline=self.baseline.arm.name,
            arms=tuple(one.arm for one in self.arms),
            scopes=dict(self.scopes),
            layout_settings=dict(self.space.layout_settings),
            release=self.baseline.planned.gateway.release,
        )

    def plan(self, arms: tuple[Candidate, ...], *, attest: bool) -> Plan:
        """The plan with these arms, by which the run is read; which is tried when is decided as it
        goes. Raises UsageError.
        """
        whole = make_plan(
            self.suite, self.hardware, [one.planned for one in (self.baseline, *arms)]
        )
        return whole.model_copy(
            update={"visits": (), "attest": attest, "budget_s": self.tuning.budget}
        )


@dataclass(frozen=True)
class Changes:
    """What a command line says otherwise than the tuning's file; None: as the file says."""

    hardware: str | None = None
    strategy: Strategy | None = None
    budget_s: float | None = None
    confirm: int | None = None
    seed: int | None = None

    @property
    def given(self) -> dict[str, object]:
        """By field of Tuning."""
        said = {
            "hardware": self.hardware,
            "strategy": self.strategy,
            "budget": self.budget_s,
            "confirm": self.confirm,
            "seed": self.seed,
        }
        return {name: value for name, value in said.items() if value is not None}


NO_CHANGES = Changes()


def unsaid(_words: str) -> None:
    """Where nobody listens to how far it is."""


def read(name: str, changes: Changes = NO_CHANGES) -> tuple[Document, Tuning]:
    """The tuning of a file or a shipped name, changed as a command line says.

    Raises DocumentError or UsageError.
    """
    document, tuning = tuning_files.load(tuning_files.find(name))
    return document, tuning.model_copy(update=changes.given)


def ready(document: Document, tuning: Tuning, say: Say = unsaid) -> PreparedTuning:
    """Check a tuning and make its arms; what takes long says how far it is.

    Raises DocumentError with all faults at once, or UsageError.
    """
    hardware = selection.hardware_named(tuning.hardware)
    suite, faults = None, _unknown_metrics(document, tuning)
    try:
        suite = tuning_files.suite_of(document, tuning)
    except DocumentError as error:
        faults += error.faults
    try:
        baseline = selection.layout_named(tuning.layout, hardware)
    except DocumentError as error:
        raise DocumentError([*faults, *error.faults]) from error
    except UsageError as error:
        raise DocumentError([*faults, document.fault_at(("layout",), error.message)]) from error
    if baseline.gateway.already_runs:
        message = (
            f"{baseline.layout.name} runs without this suite, which cannot change its settings"
        )
        faults.append(document.fault_at(("layout",), message))
    if faults or suite is None:
        # What is wrong with the parameters is told all the same.
        try:
            _arms(document, tuning, hardware, baseline, suite, say)
        except DocumentError as error:
            faults += error.faults
        raise DocumentError(_once(faults))
    return checked(document, tuning, hardware, baseline, say=say)


def checked(
    document: Document,
    tuning: Tuning,
    hardware: Hardware,
    baseline: Planned,
    suite: Suite | None = None,
    say: Say = unsaid,
) -> PreparedTuning:
    """A tuning of a layout that has been read, with its arms; `suite` is what is replayed, None: as
    the tuning says.

    Raises DocumentError with all faults at once, or UsageError.
    """
    suite = suite or tuning_files.suite_of(document, tuning)
    space, singles, arms, scopes, remarks = _arms(document, tuning, hardware, baseline, suite, say)
    found = PreparedTuning(
        tuning=tuning,
        suite=suite,
        hardware=hardware,
        space=space,
        singles=singles,
        arms=arms,
        scopes=scopes,
        text="\n".join(document.lines) + "\n",
        remarks=remarks,
    )
    found.plan(
        (), attest=False
    )  # whether the layout answers the API, and the driver can do the workloads
    return found


def _arms(
    document: Document,
    tuning: Tuning,
    hardware: Hardware,
    baseline: Planned,
    suite: Suite | None,
    say: Say,
) -> tuple[Space, tuple[Candidate, ...], tuple[Candidate, ...], dict[str, Scope], tuple[str, ...]]:
    """The space of a tuning, its single levels, its arms, scopes and remarks.

    Raises DocumentError, UsageError.
    """
    space, faults = Space(tuning, baseline, hardware, document), list[Fault]()
    singles: tuple[Candidate, ...] = ()
    arms: tuple[Candidate, ...] = ()
    remarks: tuple[str, ...] = ()
    scopes: dict[str, Scope] = {}
    try:
        scopes = space.scopes()
    except DocumentError as error:
        faults += error.faults
    try:
        # Combinations of levels that are wrong by themselves would only tell the same faults more
        # often.
        singles, remarks = space.singles(say)
        trial_s = (
            sum(step_seconds(one) * len(one.workers) for one in suite.workloads)
            if suite is not None
            else 0.0
        )
        arms = (
            singles
            if tuning.strategy == "screen"
            else space.combinations(trial_s, say)
            if tuning.strategy == "grid"
            else ()
        )
    except DocumentError as error:
        faults += error.faults
    if not faults and tuning.strategy != "search" and not arms:
        words = (
            "every value that is to be tried is what the layout has already: there is nothing "
            "to try"
        )
        faults.append(document.fault_at(("parameters",), words, key=True))
    if faults:
        raise DocumentError(_once(faults))
    return space, singles, arms, scopes, remarks


def _unknown_metrics(document: Document, tuning: Tuning) -> list[Fault]:
    """Objectives that are no metric of which differences are judged."""
    known = [one.key for one in compared()]
    return [
        document.fault_at(
            ("objectives", number, "of"),
            f"no metric {one.of!r} to compare by{did_you_mean(one.of, known)}",
        )
        for number, one in enumerate(tuning.objectives)
        if one.of not in known
    ]


def _once(faults: list[Fault]) -> list[Fault]:
    return sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line, fault.column))


def again(store: RunStore, run: TuningRun, plan: Plan, say: Say = unsaid) -> PreparedTuning:
    """The tuning of a run folder as it was begun: the same arms under the same names.

    Raises UsageError when this program would make others of it, DocumentError when the layout
    cannot be made any more.
    """
    layout = next(one for one in plan.layouts if one.name == run.baseline)
    baseline = planned_again(layout, plan.hardware, str(store.folder / "plan.resolved.json"))
    document = Document(str(store.folder / "plan.yaml"), store.plan_yaml())
    found = checked(document, run.tuning, plan.hardware, baseline, run.suite, say)
    now = found.run()
    if (now.arms, now.scopes) != (run.arms, run.scopes):
        raise UsageError(
            f"{store.folder}: the arms of this tuning are made otherwise than when it was begun",
            advice="It was begun by weighbridge "
            f"{store.manifest.weighbridge_version or 'unknown'}: go on with that one.",
        )
    return found


def check(found: PreparedTuning, place: StatePlace, say: Say, *, attest: bool) -> None:
    """Have the programs of the release check every arm, on hosts that are raised once; builds
    images where there are none.

    Raises UsageError with what they refuse of all arms, CommandFailed.
    """
    tools = wants_tools(found.suite) or bool(asked_of_hosts(found.suite, sameness=attest))
    tried = {one.arm.name: one for one in (found.baseline, *found.arms, *found.singles)}
    refused = preflight_all(
        [one.planned for one in tried.values()], found.hardware, place, say, attest=tools
    )
    if not refused:
        return
    same: dict[str, list[Arm]] = {}
    for name, message in refused.items():
        same.setdefault(message, []).append(tried[name].arm)
    lines = [f"{', '.join(map(_told, arms))}: {message}" for message, arms in same.items()]
    raise UsageError(
        "\n".join(lines), advice="Take these values out of the tuning's file, or change them."
    )


def _told(arm: Arm) -> str:
    return " ".join(f"{key}={value}" for key, value in arm.settings.items()) or arm.name
