"""Measuring a step on a deployment that stands, and writing it down: what a run of visits and a
tuning's trials have in common.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from weighbridge.common.errors import DriverError, ServiceFailed, TargetError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.conductor.cache_dropper import dropping
from weighbridge.conductor.profiling import Profiler
from weighbridge.conductor.telemetry import Counted, Watch, limits_of
from weighbridge.drivers.driver import Driver, Heard
from weighbridge.drivers.order import Cleaned, Cleanup, KeptFile, Prepare, Progress, Step
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.results.record.manifest import ConfigFile, Sheet
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import HostLimits
from weighbridge.suites import Suite, Workload
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned

UNANSWERED: Final = frozenset({"timeout", "unfinished"})
"""Classes of errors of requests that were never answered: daemons that live may have stopped to
take any.
"""


class Display(Protocol):
    """Told by the conductor what happens; shows it."""

    def say(self, text: str) -> None:
        """One short line about what is being done now."""

    def begins(self, key: StepKey, number: int) -> None:
        """A step begins, the one that is `number` (from 1) of all that are measured or were tried
        in this go.
        """

    def progress(self, progress: Progress) -> None:
        """The driver reports how far it is."""

    def ended(self, result: StepResult) -> None:
        """A step has ended, well or not."""


class Measuring:
    """Measures one step after the other into a run folder. `whole` are the steps that are measured,
    by their latest line.

    What is noted and recorded is of the layout that the deployment has at that moment, or of the
    layout of the step's key.
    """

    def __init__(
        self,
        suite: Suite,
        store: RunStore,
        display: Display,
        *,
        profiler: Profiler | None = None,
        written: Callable[[StepResult], None] = lambda _: None,
    ) -> None:
        before = store.steps()
        self.whole = whole(before)
        self._suite = suite
        self._store = store
        self._display = display
        self._profiler = profiler
        self._written = written
        """Told of each step when its line is on the disk."""
        self._order = max((one.order for one in before), default=-1) + 1
        """The next step's place among all that were tried."""
        self._settled = len(self.whole)

    @property
    def order(self) -> int:
        """The next step's place among all that were tried."""
        return self._order

    def watching(self, planned: Planned, deployment: Deployment) -> Watch:
        """What watches the hosts of a deployment, and the probes that it has now, for steps of this
        layout.
        """
        limits = limits_of(deployment.hardware, planned.gateway.needs(), deployment.hosts)
        counted: dict[str, Counted] = {**deployment.hosts}
        if deployment.hardware.of.contained:
            from weighbridge.topologies.lab.usage import LabMachine  # noqa: PLC0415 - the lab is wanted only where there is one

            machine = LabMachine()
            counted[machine.name] = machine
            limits = (*limits, HostLimits(host=machine.name, tier="machine", cpus=machine.cpus))
        return Watch(self._store, planned.layout.name, counted, limits, deployment.standing.probes)

    def describe(self, deployment: Deployment) -> None:
        """Write down what stands: facts, and configuration files as they are on its hosts."""
        name, rendered = deployment.layout.name, deployment.standing.rendered
        configs = [
            ConfigFile(layout=name, host=one.host, path=one.path, text=one.text) for one in rendered
        ]
        self._store.add_facts(
            [Sheet(title="deployment", layout=name, facts=deployment.facts())], configs
        )

    def prepare(self, deployment: Deployment, driver: Driver, workload: Workload) -> None:
        """Make what a workload works on. Raises DriverError."""
        self._display.say(f"preparing {workload.name}")
        prepared = driver.prepare(Prepare(workload=workload), self._display.progress)
        self.keep(f"prepare-{workload.name}-{self._order}", prepared.kept)
        text = (
            f"{workload.name}: {prepared.objects} objects, {show_bytes(prepared.bytes)}, in "
            f"{prepared.seconds:.1f} s"
        )
        self.note("prepared", deployment, [text])

    def clean(self, deployment: Deployment, driver: Driver, workload: Workload) -> None:
        """Delete all that a workload works on. Raises DriverError."""
        self._display.say(f"cleaning up {workload.name}")
        self._cleaned(
            deployment,
            driver.cleanup(Cleanup(workload=workload, what="all"), self._display.progress),
        )

    def step(
        self,
        planned: Planned,
        deployment: Deployment,
        watch: Watch,
        driver: Driver,
        workload: Workload,
        key: StepKey,
        *,
        leave: bool = False,
    ) -> StepResult:
        """One step, on the disk before anything else is done. `leave`: what it wrote stays where it
        is.

        A gateway is looked at before and after: a step in which one of its daemons died is spoilt,
        whatever it gave, and the first of its notes names the daemon. Raises DriverError or
        TargetError, when it has been written down with the reason, or what follows it has failed;
        ServiceFailed when a daemon has died, whatever else failed for it (that is then its cause).
        """
        self._display.begins(key, self._settled + 1)
        before = dead(deployment)
        if (
            before is not None
            # it died while the workload was prepared, or what came before was settled: not in this
            # step
        ):
            note = f"not measured: {self._in_words(before)}"
            self._write(
                StepResult(key=key, measurement=None, valid=False, notes=(note,), order=self._order)
            )
            raise before
        try:
            result, kept = self._measure(planned, deployment, watch, driver, workload, key)
        except (DriverError, TargetError) as error:
            died = dead(deployment, doubted=True)
            notes = (error.message,) if died is None else (self._in_this_step(died), error.message)
            self._write(
                StepResult(key=key, measurement=None, valid=False, notes=notes, order=self._order)
            )
            if died is not None:
                raise died from error
            raise
        tallies = () if result.measurement is None else result.measurement.tallies
        died = dead(deployment, doubted=any(UNANSWERED & set(tally.errors) for tally in tallies))
        if died is not None:
            told = (self._in_this_step(died), *result.notes)
            result = result.model_copy(update={"valid": False, "spoilt": True, "notes": told})
        self._write(result)
        # Only now: a disk that is full of a tool's own files costs those, and no step.
        self.keep(key.file_name, kept)
        if died is not None:
            # nothing is deleted or settled by a gateway that is not whole: it could take hours
            raise died
        if not leave:
            self._cleaned(
                deployment,
                driver.cleanup(Cleanup(workload=workload, what="written"), self._display.progress),
            )
            self.note("settled", deployment, deployment.standing.settle())
        return result

    def not_measured(
        self,
        keys: Iterable[StepKey],
        error: WeighbridgeError,
        *,
        why: str = "an earlier step failed",
    ) -> None:
        """Write steps down that were asked for and are not measured, and why: never lost, never a
        number.
        """
        for key in keys:
            note = f"not measured, since {why}: {self._in_words(error)}"
            self._write(
                StepResult(key=key, measurement=None, valid=False, notes=(note,), order=self._order)
            )

    def keep(self, folder: str, kept: Sequence[KeptFile]) -> None:
        """Keep files of a driver's tool. Raises StoreError."""
        for one in kept:
            self._store.keep(
                folder,
                one.name,
                one.text.encode() if one.packed is None else base64.b64decode(one.packed),
            )

    def note(self, kind: str, deployment: Deployment, texts: Sequence[str]) -> None:
        """Write events down about what stands. Raises StoreError."""
        for text in texts:
            self._store.event(kind, text, layout=deployment.layout.name)

    def telling(self, kind: str, layout: str) -> Callable[[str], None]:
        """What tells the user and writes down, as events of a layout."""

        def tell(text: str) -> None:
            self._display.say(text)
            self._store.event(kind, text, layout=layout)

        return tell

    def _measure(
        self,
        planned: Planned,
        deployment: Deployment,
        watch: Watch,
        driver: Driver,
        workload: Workload,
        key: StepKey,
    ) -> tuple[StepResult, tuple[KeptFile, ...]]:
        if self._suite.cache == "before-step":
            self._drop_caches(deployment)
        with (
            self._profiling(planned, deployment, key) as profiling,
            dropping(self._suite.cache, partial(self._drop_caches, deployment)),
            watch.step(key, workload.runtime) as recording,
        ):

            def heard(progress: Progress) -> None:
                recording.heard(progress)
                profiling(progress)
                self._display.progress(progress)

            order = Step(workload=workload, workers=key.workers, repeat=key.repeat)
            measured = driver.step(order, heard)
        measurement = measured.measurement
        verdict = judge(measurement, self._suite.bounds, rate_per_s=workload.rate_per_s)
        result = StepResult(
            key=key,
            measurement=measurement,
            valid=verdict.valid,
            notes=verdict.notes,
            order=self._order,
        )
        return result, measured.kept

    def _profiling(
        self, planned: Planned, deployment: Deployment, key: StepKey
    ) -> AbstractContextManager[Heard]:
        if self._profiler is None:
            return nullcontext(lambda _: None)
        tiers = {name: need.tier for name, need in planned.gateway.needs().items()}
        return self._profiler.step(deployment, tiers, key)

    def _in_this_step(self, died: TargetError) -> str:
        """What died in a step, in words."""
        when = (
            "in this step"
            if isinstance(died, ServiceFailed)
            else "the gateway was not whole when this step ended:"
        )
        return f"{when} {self._in_words(died)}"

    def _in_words(self, error: WeighbridgeError) -> str:
        """An error as a note; of a daemon that died without the last lines of its log, which is
        named as in the run folder.
        """
        if not isinstance(error, ServiceFailed):
            return error.message
        log = Path(error.log)
        log = log.relative_to(self._store.folder) if log.is_relative_to(self._store.folder) else log
        return f"{error.service} on {error.host} {error.what} (its log: {log})"

    def _cleaned(self, deployment: Deployment, cleaned: Cleaned) -> None:
        self.keep(f"cleanup-{self._order}", cleaned.kept)
        text = f"{cleaned.deleted} objects deleted"
        self.note(
            "cleaned",
            deployment,
            [f"{text}; {cleaned.failed} could not be" if cleaned.failed else text],
        )

    def _drop_caches(self, deployment: Deployment) -> None:
        self.note("caches", deployment, deployment.drop_caches())

    def _write(self, result: StepResult) -> None:
        self._store.append(result)
        self._order += 1
        self._settled += 1
        if result.whole:
            self.whole.add(result.key)
        self._written(result)
        self._display.ended(result)


def dead(deployment: Deployment, *, doubted: bool = False) -> TargetError | None:
    """What is said of a gateway that is not whole: of what has died, or that it does not answer;
    None when nothing is amiss.

    `doubted`: requests were not answered, so that it is also asked whether there is room for any.
    """
    try:
        deployment.check()
        if doubted:
            deployment.standing.check_room()
    except TargetError as error:
        return error
    return None


def whole(steps: Iterable[StepResult]) -> set[StepKey]:
    """The steps that are measured, valid or not, and need not be again: what their latest line
    says.
    """
    latest = {step.key: step for step in steps}
    return {key for key, step in latest.items() if step.whole}
