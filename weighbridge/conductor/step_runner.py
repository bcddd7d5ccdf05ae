"""Measuring and recording a step on a deployment, for the visits of a run and a tuning's trials."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Protocol

from pydantic import Field, PositiveInt, TypeAdapter, ValidationError

from weighbridge.common.errors import DriverError, ServiceFailed, TargetError, WeighbridgeError
from weighbridge.common.quantities import Count, show_bytes
from weighbridge.common.record import Record
from weighbridge.conductor.interruption import await_end
from weighbridge.conductor.outage import maker_of
from weighbridge.conductor.profiling import Profiler
from weighbridge.conductor.telemetry import CounterSource, Settling, Watch, limits_of
from weighbridge.drivers.kind import KINDS
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Driver,
    KeptFile,
    OnProgress,
    Prepare,
    Prepared,
    Progress,
    Step,
)
from weighbridge.gateways import program
from weighbridge.gateways.daemon import Daemon, by_host
from weighbridge.gateways.gateway import KeptBytes
from weighbridge.gateways.together import together
from weighbridge.results.figures.doubt import spoilt
from weighbridge.results.figures.use import step_use
from weighbridge.results.figures.validity import judge
from weighbridge.results.run.durability import DaemonMemory, KeptObjects, record_kept
from weighbridge.results.run.resolved import ConfigFile, Sheet
from weighbridge.results.run.step import Again, Measurement, Pass, StepKey, StepResult, counting
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested, HostLimits
from weighbridge.suites import CachePolicy, Every, Suite, Workload, kernel_alone
from weighbridge.topologies.attestation import Attestation
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.hosts import SeenHost
from weighbridge.topologies.loader import Planned


@contextmanager
def dropping(
    cache: CachePolicy,
    drop: Callable[[], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[threading.Event, float], object] = threading.Event.wait,
) -> Iterator[None]:
    """Call `drop` while the block runs, at once and at the interval of `cache`; `rest` waits
    seconds of `clock`, or for the event. Raises what `drop` did, unless something else failed.
    """
    if not isinstance(cache, Every):
        yield
        return
    done = threading.Event()
    failed: list[WeighbridgeError] = []

    def drop_again() -> None:
        due = clock()
        while not done.is_set():
            try:
                drop()
            except WeighbridgeError as error:
                failed.append(error)
                return
            due += cache.every
            rest(done, max(0.0, due - clock()))

    # A daemon: if a signal's exception comes before the block, it must not keep this process alive.
    thread = threading.Thread(target=drop_again, name="cache-dropper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        await_end(thread)
    if failed:
        raise failed[0]


_NUMBERED: Final = re.compile(r"[.-]\d+$")


class _Memory(Record):
    """What the program on a host prints of one daemon."""

    processes: PositiveInt
    resident_bytes: Count
    peak_bytes: Count | None


_ANSWER: Final = TypeAdapter(Annotated[list[_Memory | None], Field(max_length=10_000)])


def kept_objects(
    layout: str,
    repeat: int,
    way: Pass,
    workload: Workload,
    prepared: Prepared,
    *,
    before: KeptBytes | None,
    after: KeptBytes | None,
) -> KeptObjects | None:
    """The record of a preparation; None where something is unknown, or nothing was written."""
    if before is None or after is None or not prepared.objects:
        return None
    return KeptObjects(
        layout=layout,
        repeat=repeat,
        workload=workload.name,
        api=way.api,
        driver=way.driver,
        objects=prepared.objects,
        stored_bytes=prepared.bytes,
        compressible=workload.objects.compressible,
        before_bytes=before.data_bytes,
        after_bytes=after.data_bytes,
        beside_before_bytes=before.beside_bytes,
        beside_after_bytes=after.beside_bytes,
        how=after.how,
    )


def memory_of(
    daemons: Sequence[Daemon], layout: str, repeat: int, workload: str
) -> list[DaemonMemory]:
    """The memory of daemons; unknown without readable processes. Raises TargetError."""
    groups = by_host(daemons)
    answers = together([partial(_ask, group) for group in groups])
    return [
        DaemonMemory(
            layout=layout,
            repeat=repeat,
            workload=workload,
            host=one.host.name,
            daemon=one.service.name,
            role=_NUMBERED.sub("", one.service.name),
            processes=0 if found is None else found.processes,
            resident_bytes=None if found is None else found.resident_bytes,
            peak_bytes=None if found is None else found.peak_bytes,
        )
        for group, answer in zip(groups, answers, strict=True)
        for one, found in zip(group, answer, strict=True)
    ]


def _ask(group: Sequence[Daemon]) -> list[_Memory | None]:
    host = group[0].host
    argv = program.ship(host, "weighbridge.gateways.daemon_memory")
    done = host.run(argv, stdin=json.dumps([one.service.argv for one in group]))
    try:
        found = _ANSWER.validate_json(done.stdout)
    except ValidationError as error:
        raise TargetError(
            f"{host.name}: no memory of daemons: {error.errors()[0]['msg']}"
        ) from None
    if len(found) != len(group):
        raise TargetError(f"{host.name}: the memory of {len(found)} daemons, not of {len(group)}")
    return found


MOST_REPEATS: Final = 1000
"""Of a suite."""
UNANSWERED: Final = frozenset({"timeout", "unfinished"})
"""Error classes of requests without an answer: live daemons may have stopped taking requests."""


class Display(Protocol):
    """Shows what the conductor does."""

    def say(self, text: str) -> None:
        """One short line about what is being done now."""

    def begins(self, key: StepKey, number: int) -> None:
        """A step begins, the `number`th (from 1) of all that are measured or have been tried."""

    def progress(self, progress: Progress) -> None:
        """The driver reports its progress."""

    def ended(self, result: StepResult) -> None:
        """A step has ended, well or not."""


class StepRunner:
    """Measures one step after the other into a run folder. `complete`: steps that are measured;
    `spoilt`: those that other programs disturbed, with the share of the machine's CPUs they used.
    A step that is spoilt may be measured again: the least disturbed of its measurements counts.

    Notes and records belong to the layout that the deployment has at that moment, or to the layout
    of the step's key. `written` is called with each step when its line is on the disk.
    """

    def __init__(
        self,
        suite: Suite,
        store: RunStore,
        display: Display,
        *,
        profiler: Profiler | None = None,
        written: Callable[[StepResult], None] = lambda _: None,
        again: Mapping[StepKey, float] | None = None,
    ) -> None:
        before = store.steps()
        self.spoilt = dict(again or {})
        self.complete = complete_steps(before) - self.spoilt.keys()
        self._times = {one.key: one.time for one in before}
        self.order = max((one.order for one in before), default=-1) + 1
        self._suite = suite
        self._store = store
        self._display = display
        self._profiler = profiler
        self._written = written
        self._ended = len(self.complete)

    def watching(self, planned: Planned, deployment: Deployment) -> Watch:
        """Watch the hosts of a deployment, and its current probes, for steps of a layout."""
        seen: dict[str, SeenHost] = {**deployment.hosts, **deployment.machines.observed}
        cores = {name: host.cores for name, host in seen.items()}
        limits = limits_of(deployment.hardware, planned.gateway.needs(), cores)
        sources: dict[str, CounterSource] = {**seen}
        if deployment.hardware.of.contained:
            from weighbridge.topologies.lab.cgroup import LabMachine  # noqa: PLC0415 - only for lab hosts

            machine = LabMachine(helpers=deployment.machines.helpers)
            sources[machine.name] = machine
            limits = (*limits, HostLimits(host=machine.name, tier="machine", cpus=machine.cpus))
        return Watch(
            self._store, planned.layout.name, sources, limits, deployment.running_gateway.probes
        )

    def describe(self, deployment: Deployment) -> None:
        name, rendered = deployment.layout.name, deployment.running_gateway.rendered
        configs = [
            ConfigFile(layout=name, host=one.host, path=one.path, text=one.text) for one in rendered
        ]
        self._store.add_facts(
            [Sheet(title="deployment", layout=name, facts=deployment.facts())], configs
        )

    def attested(self, layout: str, repeat: int, attestation: Attestation) -> None:
        """Record what the hosts of a deployment can do."""
        self._store.attest(
            [Attested(layout=layout, repeat=repeat, **dict(one)) for one in attestation.ceilings]
        )
        self._store.add_facts([Sheet(title="attestation", facts=dict(attestation.tools))])

    def prepare(
        self,
        deployment: Deployment,
        driver: Driver,
        workload: Workload,
        first: tuple[int, Pass] | None = None,
    ) -> None:
        """Write a workload's objects; record what the `first` take on disks. Raises DriverError."""
        self._display.say(f"preparing {workload.name}")
        counted = first is not None and workload.needs_objects and workload.listed is None
        before = self._kept_bytes(deployment) if counted else None
        prepared = driver.prepare(Prepare(workload=workload), self._display.progress)
        if first is not None and before is not None:
            after = self._kept_bytes(deployment)
            line = kept_objects(
                deployment.layout.name, *first, workload, prepared, before=before, after=after
            )
            record_kept(self._store.folder, *([] if line is None else [line]))
        self.keep(f"prepare-{workload.name}-{self.order}", prepared.kept)
        size, time = show_bytes(prepared.bytes), f"{prepared.seconds:.1f} s"
        text = f"{workload.name}: {prepared.objects} objects, {size}, in {time}"
        self.note("prepared", deployment, [text])

    def read_memory(self, deployment: Deployment, workload: Workload, repeat: int) -> None:
        """Record the memory of the gateway's daemons; a failure ends no run."""
        layout = deployment.layout.name
        try:
            daemons = deployment.running_gateway.daemons()
            record_kept(self._store.folder, *memory_of(daemons, layout, repeat, workload.name))
        except TargetError as error:
            self.announcing("left out", layout)(f"memory of daemons: {error.message}")

    def _kept_bytes(self, deployment: Deployment) -> KeptBytes | None:
        try:
            return deployment.running_gateway.kept_bytes()
        except TargetError as error:
            self.announcing("left out", deployment.layout.name)(f"bytes on disks: {error.message}")
            return None

    def clean(self, deployment: Deployment, driver: Driver, workload: Workload) -> None:
        """Delete all objects of a workload. Raises DriverError."""
        self._display.say(f"cleaning up {workload.name}")
        order = Cleanup(workload=workload, what="all")
        self._cleaned(deployment, driver.cleanup(order, self._display.progress))

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
        also: Sequence[str] = (),
    ) -> StepResult:
        """Measure one step; it is on the disk before anything else is done.

        `leave`: do not delete what it wrote. `also`: further notes. The gateway is checked before
        and after: a step in which one of its daemons died is spoilt, whatever it measured, and its
        first note names the daemon. Raises DriverError or TargetError, after recording the step
        with the reason, or if what follows it failed; ServiceFailed if a daemon has died, whatever
        else failed because of it (which is then its cause).
        """
        self._display.begins(key, self._ended + (key not in self.complete))
        before = gateway_fault(deployment)
        if before is not None:
            # Not in this step, but while its workload was prepared or deferred work was awaited.
            self._write_lost(key, f"not measured: {self._in_words(before)}")
            raise before
        try:
            result, kept, left = self._measure(planned, deployment, watch, driver, workload, key)
        except (DriverError, TargetError) as error:
            died = gateway_fault(deployment, doubted=True)
            if died is None:
                self._write_lost(key, error.message)
                raise
            self._write_lost(key, self._in_this_step(died), error.message)
            raise died from error
        result = result.model_copy(update={"notes": (*result.notes, *also)})
        tallies = () if result.measurement is None else result.measurement.tallies
        doubted = any(UNANSWERED & set(tally.errors) for tally in tallies)
        died = gateway_fault(deployment, doubted=doubted)
        if died is not None:
            notes = (self._in_this_step(died), *result.notes)
            result = result.model_copy(update={"valid": False, "spoilt": True, "notes": notes})
        self._write(result)
        # Only now: if the disk is full, a tool's own files are lost, and no step.
        self.keep(key.files_of(result.time), kept)
        if (gone := died or left) is not None:
            # An incomplete gateway could take hours to delete or settle anything.
            raise gone
        # Of a workload with versions each step begins with those that were prepared.
        if not leave or workload.versions is not None:
            order = Cleanup(workload=workload, what="written")
            self._cleaned(deployment, driver.cleanup(order, self._display.progress))
            self.note("settled", deployment, deployment.running_gateway.settle())
        return result

    def not_measured(
        self,
        keys: Iterable[StepKey],
        error: WeighbridgeError,
        *,
        why: str = "its workload was given up",
    ) -> None:
        """Record steps that were asked for and not measured, with the reason."""
        for key in keys:
            self._write_lost(key, f"not measured, since {why}: {self._in_words(error)}")

    def keep(self, folder: str, kept: Sequence[KeptFile]) -> None:
        """Keep files of a driver's tool. Raises StoreError."""
        for one in kept:
            data = one.text.encode() if one.packed is None else base64.b64decode(one.packed)
            self._store.keep(folder, one.name, data)

    def note(self, kind: str, deployment: Deployment, texts: Sequence[str]) -> None:
        """Record events of a deployment. Raises StoreError."""
        for text in texts:
            self._store.event(kind, text, layout=deployment.layout.name)

    def announcing(self, kind: str, layout: str) -> Callable[[str], None]:
        """A function that shows a text and records it as an event of a layout."""

        def announce(text: str) -> None:
            self._display.say(text)
            self._store.event(kind, text, layout=layout)

        return announce

    def _measure(
        self,
        planned: Planned,
        deployment: Deployment,
        watch: Watch,
        driver: Driver,
        workload: Workload,
        key: StepKey,
    ) -> tuple[StepResult, tuple[KeptFile, ...], TargetError | None]:
        """The step, its files, and why nothing else can be measured on this deployment."""
        cache = self._suite.cache_of(workload)

        def drop() -> None:
            dropped = deployment.drop_caches(kernel_alone=kernel_alone(cache))
            self.note("caches", deployment, dropped)

        if cache in ("before-step", "kernel"):
            # What preparation or the last step left to be written is not a part of this one.
            with deployment.unlimited():
                drop()
        say = self.announcing("outage", deployment.layout.name)
        maker = maker_of(self._suite, planned, deployment, workload, key, say)
        with (
            nullcontext() if maker is None else maker,
            self._profiling(planned, deployment, key) as profiling,
            dropping(cache, drop),
            watch.step(key, workload.runtime, self._time(key)) as recording,
        ):
            settles = KINDS.get_or_refuse(key.driver).settles
            settling = Settling(watch)

            def on_progress(progress: Progress) -> bool:
                recording.on_progress(progress)
                if maker is not None:
                    maker.on_progress(progress)
                profiling(progress)
                self._display.progress(progress)
                return settling.has_settled(progress) if order.settle_s else False

            # A step of a search has its own requests, and names for what it writes; so has what is
            # measured again.
            nth = key.search_step or self._time(key)
            order = Step(
                workload=workload,
                workers=key.workers,
                repeat=key.repeat + MOST_REPEATS * nth,
                settle_s=self._suite.settle_of(workload) if settles else 0.0,
            )
            measured = driver.step(order, on_progress)
        faults = () if maker is None else maker.write(self._store.folder, watch.restart)
        measurement = measured.measurement
        verdict = judge(
            measurement,
            self._suite.bounds,
            rate_per_s=workload.rate_per_s,
            may_fail=workload.overload is not None or workload.fault is not None,
        )
        result = StepResult(
            key=key,
            measurement=measurement,
            valid=verdict.valid and not faults,
            notes=(*faults, *verdict.notes),
            order=self.order,
            again=self._again(key, measurement),
        )
        return result, measured.kept, None if maker is None else maker.left

    def _profiling(
        self, planned: Planned, deployment: Deployment, key: StepKey
    ) -> AbstractContextManager[OnProgress]:
        if self._profiler is None:
            return nullcontext(lambda _: None)
        tiers = {name: need.tier for name, need in planned.gateway.needs().items()}
        return self._profiler.step(deployment, tiers, key)

    def _in_this_step(self, died: TargetError) -> str:
        if isinstance(died, ServiceFailed):
            return f"in this step {self._in_words(died)}"
        return f"the gateway had failed when this step ended: {self._in_words(died)}"

    def _in_words(self, error: WeighbridgeError) -> str:
        """An error as a note; for a dead daemon its log in the run folder, not the log's end."""
        if not isinstance(error, ServiceFailed):
            return error.message
        log = Path(error.log)
        log = log.relative_to(self._store.folder) if log.is_relative_to(self._store.folder) else log
        return f"{error.service} on {error.host} {error.what} (its log: {log})"

    def _cleaned(self, deployment: Deployment, cleaned: Cleaned) -> None:
        self.keep(f"cleanup-{self.order}", cleaned.kept)
        failed = f"; {cleaned.failed} could not be deleted" if cleaned.failed else ""
        self.note("cleaned", deployment, [f"{cleaned.deleted} objects deleted{failed}"])

    def _time(self, key: StepKey) -> int:
        """Which time a step is measured again now; 0: it is its first measurement."""
        return self._times.get(key, 0) + 1 if key in self.spoilt else 0

    def _again(self, key: StepKey, measurement: Measurement | None = None) -> Again | None:
        if key not in self.spoilt:
            return None
        others = self._others(key, self._time(key), measurement)
        return Again(time=self._time(key), others=others, before=self.spoilt[key])

    def _others(self, key: StepKey, time: int, measurement: Measurement | None) -> float | None:
        """The share of the machine's CPUs that other programs used; None: unknown."""
        if measurement is None:
            return None
        try:
            telemetry = self._store.telemetry(key, time)
        except WeighbridgeError:
            return None  # the report names the line
        return None if telemetry is None else step_use(telemetry, measurement.window_s).others

    def _write_lost(self, key: StepKey, *notes: str) -> None:
        again = self._again(key)
        self._write(
            StepResult(
                key=key, measurement=None, valid=False, notes=notes, order=self.order, again=again
            )
        )

    def _write(self, result: StepResult) -> None:
        key, again = result.key, result.again
        self._store.append(result)
        self.order += 1
        self._ended += key not in self.complete
        self._times[key] = result.time
        if result.complete:
            self.complete.add(key)
            others = again.others if again else self._others(key, 0, result.measurement)
            if others is not None and (again is None or again.calmer):
                self.spoilt.pop(key, None)
                if spoilt(others):
                    self.spoilt[key] = others
        self._written(result)
        self._display.ended(result)


def gateway_fault(deployment: Deployment, *, doubted: bool = False) -> TargetError | None:
    """What has died, or does not answer; None: nothing. `doubted`: check free space, too."""
    try:
        deployment.check()
        if doubted:
            deployment.running_gateway.check_disk_space()
    except TargetError as error:
        return error
    return None


def complete_steps(steps: Iterable[StepResult]) -> set[StepKey]:
    """The steps that are measured, valid or not, by the line that counts."""
    return {key for key, step in counting(steps).items() if step.complete}
