"""Preparing a tuning: all faults are found, and reported at once, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import ValidationError

from weighbridge import selection
from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError, need
from weighbridge.common.structure import ANSWERS, Scope
from weighbridge.conductor.passes import asked_of_hosts, wants_tools
from weighbridge.conductor.plan import Plan, make_plan, step_seconds
from weighbridge.gateways.gateway import Say
from weighbridge.results.figures.metrics import compared
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import TuningRun
from weighbridge.suites import Suite
from weighbridge.suites.tuning import Strategy, Tuning
from weighbridge.suites.tuning import loader as tuning_files
from weighbridge.topologies.deployment import StateFolders, preflight_all
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned, checked_again
from weighbridge.tuning.space import Candidate, Space, once


@dataclass(frozen=True)
class PreparedTuning:
    """A tuning that can begin; for a search `candidates` is empty, `singles` are checked."""

    tuning: Tuning
    suite: Suite
    hardware: Hardware
    space: Space
    singles: tuple[Candidate, ...]
    candidates: tuple[Candidate, ...]
    scopes: Mapping[str, Scope]
    text: str
    remarks: tuple[str, ...] = field(default=())
    """What is not tried, and why."""

    @property
    def baseline(self) -> Candidate:
        """The layout as given."""
        return self.space.baseline

    def run(self) -> TuningRun:
        """Its record in the run folder."""
        return TuningRun(
            tuning=self.tuning,
            suite=self.suite,
            objectives=tuple(one.resolved(self.suite) for one in self.tuning.objectives),
            baseline=self.baseline.variant.name,
            arms=tuple(one.variant for one in self.candidates),
            scopes=dict(self.scopes),
            layout_settings=dict(self.space.layout_settings),
            release=self.baseline.planned.gateway.release,
        )

    def plan(self, candidates: tuple[Candidate, ...], *, attest: bool) -> Plan:
        """The plan without visits, which are decided during the run. Raises UsageError."""
        planned = [one.planned for one in (self.baseline, *candidates)]
        return make_plan(self.suite, self.hardware, planned).model_copy(
            update={"visits": (), "attest": attest, "budget_s": self.tuning.budget}
        )


@dataclass(frozen=True)
class Changes:
    """What the command line changes of the tuning's file; None: nothing."""

    hardware: str | None = None
    strategy: Strategy | None = None
    budget_s: float | None = None
    confirm: int | None = None
    seed: int | None = None

    @property
    def given(self) -> dict[str, object]:
        """By field of Tuning."""
        changes = {
            "hardware": self.hardware,
            "strategy": self.strategy,
            "budget": self.budget_s,
            "confirm": self.confirm,
            "seed": self.seed,
        }
        return {name: value for name, value in changes.items() if value is not None}


NO_CHANGES = Changes()
HARDWARE: Final = "lab-cpu"
"""Hardware of tunings that name none: the same on every machine, so that results hold elsewhere."""


def _silent(_text: str) -> None:
    """Report no progress."""


def read(name: str, changes: Changes = NO_CHANGES) -> tuple[Document, Tuning]:
    """A tuning changed by the command line. Raises DocumentError or UsageError."""
    document, tuning = tuning_files.load(tuning_files.find(name))
    try:
        changed = Tuning.model_validate({**tuning.model_dump(), **changes.given})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        why = "; ".join(one["msg"].removeprefix("Value error, ") for one in faults)
        raise UsageError(f"{tuning.name}, as the command line changes it: {why}") from None
    return document, changed


def prepare(
    document: Document, tuning: Tuning, say: Say = _silent, *, ask: bool = False
) -> PreparedTuning:
    """Check a tuning and make its candidates, with progress; `ask` real hosts their size. Raises
    DocumentError with all faults, UsageError, or TargetError.
    """
    hardware = selection.hardware_named(tuning.hardware or HARDWARE)
    suite, faults = None, _unknown_metrics(document, tuning)
    try:
        suite = tuning_files.suite_of(document, tuning)
    except DocumentError as error:
        faults += error.faults
    try:
        baseline = selection.layout_for(suite, tuning.layout, hardware)
    except DocumentError as error:
        raise DocumentError([*faults, *error.faults]) from error
    except UsageError as error:
        raise DocumentError([*faults, document.fault_at(("layout",), error.message)]) from error
    if baseline.gateway.already_runs:
        message = f"{baseline.layout.name} already runs, so its settings cannot be changed here"
        faults.append(document.fault_at(("layout",), message))
    if faults or suite is None:
        # Report faults of the parameters as well.
        try:
            _candidates(document, tuning, hardware, baseline, suite, say)
        except DocumentError as error:
            faults += error.faults
        raise DocumentError(once(faults))
    if ask:
        hardware, (baseline,) = selection.on_sized_hosts([baseline], hardware)
    return checked(document, tuning, hardware, baseline, say=say)


def checked(
    document: Document,
    tuning: Tuning,
    hardware: Hardware,
    baseline: Planned,
    suite: Suite | None = None,
    say: Say = _silent,
) -> PreparedTuning:
    """A tuning with candidates. Raises DocumentError with all faults, or UsageError."""
    suite = suite or tuning_files.suite_of(document, tuning)
    space, singles, candidates, scopes, remarks = _candidates(
        document, tuning, hardware, baseline, suite, say
    )
    found = PreparedTuning(
        tuning=tuning,
        suite=suite,
        hardware=hardware,
        space=space,
        singles=singles,
        candidates=candidates,
        scopes=scopes,
        text="\n".join(document.lines) + "\n",
        remarks=remarks,
    )
    # Checks that the layout has the API, that the driver can do the workloads, and that its power
    # can be cut where that is wanted.
    found.plan((), attest=False)
    if tuning.confirm:
        make_plan(tuning.confirming(suite), hardware, [baseline])
    return found


def _candidates(
    document: Document,
    tuning: Tuning,
    hardware: Hardware,
    baseline: Planned,
    suite: Suite | None,
    say: Say,
) -> tuple[Space, tuple[Candidate, ...], tuple[Candidate, ...], dict[str, Scope], tuple[str, ...]]:
    """Space, single levels, candidates, scopes, remarks. Raises DocumentError, UsageError."""
    space, faults = Space(tuning, baseline, hardware, document), list[Fault]()
    if tuning.strategy == "search":
        need("optuna")
    singles: tuple[Candidate, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    remarks: tuple[str, ...] = ()
    scopes: dict[str, Scope] = {}
    try:
        scopes = space.scopes()
    except DocumentError as error:
        faults += error.faults
    try:
        # Combinations of levels that are wrong alone would only repeat the same faults.
        singles, remarks = space.singles(say)
        faults += _other_promises(document, hardware, baseline, singles)
        if tuning.strategy == "screen":
            candidates = singles
        elif tuning.strategy == "grid":
            workloads = () if suite is None else suite.workloads
            trial_s = sum(step_seconds(one) * len(one.workers) for one in workloads)
            candidates = space.combinations(trial_s, say)
    except DocumentError as error:
        faults += error.faults
    if not faults and tuning.strategy != "search" and not candidates:
        words = "the layout already has every value that is to be tried: there is nothing to try"
        faults.append(document.fault_at(("parameters",), words, key=True))
    if faults:
        raise DocumentError(once(faults))
    return space, singles, candidates, scopes, remarks


def _other_promises(
    document: Document, hardware: Hardware, baseline: Planned, singles: Sequence[Candidate]
) -> Iterator[Fault]:
    """Levels that acknowledge writes on other terms: they would win by what a power cut takes."""
    disks = {name: len(host.disks) for name, host in hardware.hosts.items()}

    def terms(planned: Planned) -> str:
        structure = planned.gateway.structure(disks)
        if structure is None or structure.answers is None:
            return "does not say when it acknowledges"
        return ANSWERS[structure.answers]

    wanted = terms(baseline)
    for one in singles:
        if (found := terms(one.planned)) != wanted:
            message = (
                f"with {one.words} the store {found}; without it, it {wanted}: speeds of the two "
                "cannot be compared"
            )
            yield document.fault_at(one.choices[0].place, message)


def _unknown_metrics(document: Document, tuning: Tuning) -> list[Fault]:
    """Objectives whose metric is unknown, not compared, or one that their workload has not."""
    workloads = {one.name: one for one in tuning.workloads}
    faults = []
    for number, one in enumerate(tuning.objectives):
        known = [
            metric.key
            for metric in compared()
            if one.workload not in workloads or metric.is_of(workloads[one.workload])
        ]
        if one.of not in known:
            message = f"no metric {one.of!r} to compare by{did_you_mean(one.of, known)}"
            faults.append(document.fault_at(("objectives", number, "of"), message))
    return faults


def prepare_again(
    store: RunStore, run: TuningRun, plan: Plan, say: Say = _silent
) -> PreparedTuning:
    """A run's tuning as it began. Raises UsageError if its candidates changed, DocumentError if its
    layout cannot be made.
    """
    layout = next(one for one in plan.layouts if one.name == run.baseline)
    baseline = checked_again(layout, plan.hardware, str(store.folder / "plan.resolved.json"))
    document = Document(str(store.folder / "plan.yaml"), store.plan_yaml())
    found = checked(document, run.tuning, plan.hardware, baseline, run.suite, say)
    now = found.run()
    if (now.arms, now.scopes) != (run.arms, run.scopes):
        raise UsageError(
            f"{store.folder}: this version makes other settings of this tuning than the run "
            "began with",
            advice="It began with weighbridge "
            f"{store.manifest.weighbridge_version or 'unknown'}: resume it with that version.",
        )
    return found


def check(found: PreparedTuning, place: StateFolders, say: Say, *, attest: bool) -> None:
    """Have programs check all candidates on hosts. Raises UsageError, CommandFailed."""
    tools = wants_tools(found.suite) or bool(asked_of_hosts(found.suite, sameness=attest))
    tried = {one.variant.name: one for one in (found.baseline, *found.candidates, *found.singles)}
    refused = preflight_all(
        [one.planned for one in tried.values()], found.hardware, place, say, attest=tools
    )
    if not refused:
        return
    same: dict[str, list[str]] = {}
    for name, message in refused.items():
        same.setdefault(message, []).append(tried[name].words)
    lines = [f"{'; '.join(words)}: {message}" for message, words in same.items()]
    raise UsageError(
        "\n".join(lines), advice="Take these values out of the tuning's file, or change them."
    )
