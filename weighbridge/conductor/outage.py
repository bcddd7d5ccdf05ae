"""Making a fault in a step: a service or a host dies at its time, and comes back at its time."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Self

from weighbridge.common.errors import ServiceFailed, TargetError, UsageError, WeighbridgeError
from weighbridge.common.structure import ROLES, Target, parts_of, targets
from weighbridge.conductor.interruption import await_end
from weighbridge.drivers.protocol import Progress
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Ask, Gateway
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.together import together
from weighbridge.results.run.durability import MOST_SEEN, Change, Outage, Seen, record_outage
from weighbridge.results.run.step import StepKey
from weighbridge.suites import Fault, Suite, Workload
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned

LOOK_S: Final = 1.0
"""How often a store is asked how it stands."""
WHOLE_WITHIN_S: Final = 600.0
"""How long a store may take to have all copies again: OSDs on spinning disks rest 0.1 s after each
object that they recover."""
SAY_S: Final = 15.0


def faults_left_out(
    suite: Suite, hardware: Hardware, planned: Sequence[Planned]
) -> Mapping[str, Mapping[str, str]]:
    """Why workloads are left out on layouts, by layout and workload: what their fault names as a
    role is there, and cannot be missed.

    Raises UsageError for all other faults that cannot be made, with all reasons; also where no
    layout would have a workload, or a layout none.
    """
    refused, left = list[str](), dict[str, dict[str, str]]()
    for workload in suite.workloads:
        fault = workload.fault
        if fault is None:
            continue
        unfit = {one.layout.name: _unfit(fault, one, hardware) for one in planned}
        faults = {name: why for name, why in unfit.items() if why}
        if fault.what in ROLES and len(faults) < len(planned):
            for name, why in faults.items():
                left.setdefault(name, {})[workload.name] = why
        else:
            refused += [
                f"{workload.name}: fault: {fault.way}: {name}: {why}"
                for name, why in faults.items()
            ]
    refused += [
        f"{name}: no workload is left: {'; '.join(dict.fromkeys(mine.values()))}"
        for name, mine in left.items()
        if len(mine) == len(suite.workloads)
    ]
    if refused:
        raise UsageError(
            "\n".join(refused),
            advice="Change the fault, or leave those layouts out; see docs/degrade.md.",
        )
    return left


def _unfit(fault: Fault, one: Planned, hardware: Hardware) -> str:
    if one.gateway.already_runs or hardware.of.for_running_gateways:
        return "it already runs, and this suite does not kill its daemons"
    if fault.way != "kill" and not hardware.of.cuts_power:
        return (
            f"this suite cuts power and links only of lab hosts, not of {hardware.name!r}: use "
            "`kill`"
        )
    try:
        found = targets_of(fault, one.gateway, hardware)
    except ValueError as error:
        return str(error)
    without = [str(target) for target in found if target.disk and not _may_fail(target, hardware)]
    if without:
        return (
            f"{', '.join(without)}: has no model in hardware {hardware.name!r}, and only such a "
            "disk can fail: choose lab-disks, or give it a `model`"
        )
    return ""


def _may_fail(target: Target, hardware: Hardware) -> bool:
    names = hardware.sites[target.host].disks
    disks = zip(names, hardware.hosts[target.host].disks, strict=True)
    return any(name == target.disk and disk.model is not None for name, disk in disks)


def targets_of(fault: Fault, gateway: Gateway, hardware: Hardware) -> tuple[Target, ...]:
    """What a fault may happen to on a layout. Raises ValueError with why nothing of it can die."""
    parts = gateway.parts(hardware.sites)
    if not parts:
        raise ValueError("this suite does not know which of its services may die")
    found = targets(parts, fault.what)
    if any((target.disk is None) == (fault.way == "fail") for target in found):
        raise ValueError(
            f"{fault.what} is {'no' if fault.way == 'fail' else 'a'} disk on which it keeps data"
        )
    return found


def maker_of(
    suite: Suite,
    planned: Planned,
    deployment: Deployment,
    workload: Workload,
    key: StepKey,
    say: Callable[[str], None],
) -> OutageMaker | None:
    """What makes the fault of a step; None if its workload has none."""
    if workload.fault is None:
        return None
    # The same draw for every layout, which each takes of its own parts.
    seed = f"{suite.seed} {workload.name} {key.repeat}"
    found = targets_of(workload.fault, planned.gateway, deployment.hardware)
    target = random.Random(seed).choice(found)  # noqa: S311 - repeatable, not secret
    parts = planned.gateway.parts(deployment.hardware.sites)
    services = {one.service for one in parts_of(parts, target)} if target.disk else None
    return OutageMaker(deployment, workload.fault, target, key, say, services=services)


class OutageMaker:
    """Makes a step's fault around the driver's step. What died is there again on leaving, unless
    starting it failed, or a signal ends the run.
    """

    def __init__(
        self,
        deployment: Deployment,
        fault: Fault,
        target: Target,
        key: StepKey,
        say: Callable[[str], None],
        *,
        services: Collection[str] | None = None,
    ) -> None:
        """`services`: None is the target's, or all. Raises TargetError if the gateway does not say
        what it runs with.
        """
        self._key = key
        self._deployment = deployment
        self._fault = fault
        self._target = target
        self._say = say
        mine = [
            one
            for one in deployment.running_gateway.daemons()
            if one.host.name == target.host
            and target.service in {None, one.service.name}
            and (services is None or one.service.name in services)
        ]
        if not mine:
            raise TargetError(f"{target}: this gateway runs no such service")
        self._daemons: tuple[Daemon, ...] = tuple(mine)
        tolerance = deployment.running_gateway.tolerance()
        self._settings: Mapping[str, str] = tolerance.settings
        self._asking = tolerance.asking
        self._ask: Ask | None = None
        self._stack = ExitStack()
        self._opened: float | None = None
        self._open = threading.Event()
        self._over = threading.Event()
        self._done_asking = threading.Event()
        self._struck: Change | None = None
        self._back: Change | None = None
        self._returned = False
        self._failed: WeighbridgeError | None = None
        self.left: ServiceFailed | None = None
        """What follows cannot be measured on this deployment; None: it can."""
        self._seen: list[Seen] = []
        # Daemons: a signal's exception may come before they are joined.
        self._maker = threading.Thread(target=self._make, name="outage", daemon=True)
        self._asker = threading.Thread(target=self._look, name="standing", daemon=True)

    def __enter__(self) -> Self:
        if self._asking is not None:
            self._ask = self._stack.enter_context(self._asking())
        self._maker.start()
        self._asker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._open.set()
        try:
            if kind is not None and not issubclass(kind, Exception):
                # A signal: all is about to be torn down.
                await_end(self._maker)
            else:
                self._maker.join()
                self._restore(failing=kind is not None)
        finally:
            self._done_asking.set()
            await_end(self._asker)
            self._stack.close()
        if self._failed is not None and kind is None:
            raise self._failed

    def _restore(self, *, failing: bool) -> None:
        """Have a complete gateway again. `failing`: the step failed, whose error comes first."""
        if self._struck is None or self._failed is not None:
            return
        if not self._returned:
            try:
                self._return()
            except WeighbridgeError as error:
                self._failed = error
                return
        if not failing:
            listening = [one for one in self._daemons if one.port is not None]
            await_ports(self._deployment.client, listening, self._say)
            self._await_whole()

    def on_progress(self, progress: Progress) -> None:
        """Take a progress event as it arrives: the first shows when the window opened."""
        if progress.phase == "measure" and self._opened is None:
            self._opened = time.monotonic() - progress.done
            self._open.set()

    def write(self, folder: Path, restart_probes: Callable[[], None]) -> tuple[str, ...]:
        """Record what was done; returns why the step is not valid. `restart_probes`: a host was
        gone. Raises StoreError.
        """
        if self._struck is None:
            return ("the window ended before the fault",)
        outage = Outage(
            key=self._key,
            way=self._fault.way,
            host=self._target.host,
            services=()
            if self._fault.way in {"unplug", "fail"}
            else tuple(one.service.name for one in self._daemons),
            disk=(self._target.disk or "").removeprefix("/dev/"),
            fault=self._struck,
            back=self._back,
            seen=tuple(self._seen[:MOST_SEEN]),
            settings=dict(self._settings),
        )
        record_outage(folder, outage)
        if outage.way == "silence":
            restart_probes()
        return ()

    def _now_s(self) -> float:
        return time.monotonic() - (self._opened or 0.0)

    # ---- the thread that makes it

    def _make(self) -> None:
        self._open.wait()
        if self._opened is None:
            return  # the step ended before its window
        try:
            if self._wait_until(self._fault.at):
                self._say(f"{self._fault.way}: {self._target}")
                begun_s = self._now_s()
                self._struck = Change(begun_s=begun_s, done_s=begun_s)
                self._strike()
                self._struck = Change(begun_s=begun_s, done_s=self._now_s())
                if self._fault.back is not None and self._wait_until(self._fault.back):
                    self._say(f"back: {self._target}")
                    begun_s = self._now_s()
                    self._return()
                    self._back = Change(begun_s=begun_s, done_s=self._now_s())
        except WeighbridgeError as error:
            self._failed = error

    def _wait_until(self, at_s: float) -> bool:
        left_s = at_s - self._now_s()
        return left_s <= 0 or not self._over.wait(left_s)

    def _strike(self) -> None:
        if self._fault.way == "silence":
            self._deployment.machines.power_off([self._target.host])
        elif self._fault.way == "unplug":
            self._deployment.machines.plug([self._target.host], on=False)
        elif self._target.disk is not None:
            self._deployment.machines.fail_disk(self._target.host, self._target.disk, on=True)
        else:
            together([partial(one.host.kill, one.service.name) for one in self._daemons])

    def _return(self) -> None:
        if self._fault.way == "silence":
            self._deployment.machines.power_on([self._target.host])
            self._deployment.start_again([self._target.host], self._say)
        elif self._fault.way == "unplug":
            self._deployment.machines.plug([self._target.host], on=True)
        elif self._target.disk is not None:
            self._deployment.mend_disk(self._target.host, self._target.disk)
        else:
            self._deployment.running_gateway.revive(self._daemons)
        self._returned = True

    # ---- how the store stands

    def _look(self) -> None:
        self._open.wait()
        if self._opened is None:
            return
        while self._ask is not None and not self._done_asking.wait(LOOK_S):
            try:
                found = self._ask()
            except TargetError as error:
                seen = Seen(
                    at_s=self._now_s(), whole=False, words=f"no answer: {error.message}"[:500]
                )
            else:
                seen = Seen(at_s=self._now_s(), whole=found.whole, words=found.words[:500])
            if len(self._seen) < MOST_SEEN and (
                not self._seen or self._seen[-1].words != seen.words
            ):
                if self._seen and self._seen[-1].whole != seen.whole:
                    self._say(f"{seen.at_s:.1f} s into the window: {seen.words}")
                self._seen.append(seen)

    def _await_whole(self) -> None:
        """Wait until the store has all of its parts and copies again: what follows is measured on a
        complete gateway. At the end of the time `left` says what is not. Raises ServiceFailed if a
        daemon does not stay.
        """
        began = said = time.monotonic()
        while self._ask is not None and not self._done_asking.wait(LOOK_S):
            daemon.check(self._daemons)
            last = self._seen[-1] if self._seen else None
            if last is not None and last.whole:
                return
            words = "it said nothing" if last is None else last.words
            now = time.monotonic()
            if now - said > SAY_S:
                said = now
                self._say(f"waiting until the store is complete: {words}")
            if now - began > WHOLE_WITHIN_S:
                what = f"did not complete the store within {WHOLE_WITHIN_S:g} s: {words}"
                self.left = self._daemons[0].failed(what)
                return
