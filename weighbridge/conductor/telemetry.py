"""The sampler: while a step runs it reads what every host has used once a second, and what the
probes of the gateway tell.

A probe or a host that cannot tell makes a gap and an event, never a number and never a failed step.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.host import Counters, DiskCounters
from weighbridge.conductor.probe_reader import SILENCE_S, Ear, ProbeLine, ProbeReader
from weighbridge.drivers.order import Progress
from weighbridge.gateways.gateway import HostNeed
from weighbridge.gateways.probe import Probe
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore, StoreError, TelemetryFile
from weighbridge.results.record.telemetry import (
    EDGE_S,
    DiskLimit,
    DiskSecond,
    Head,
    HostLimits,
    HostSecond,
    Phase,
    ProbeSecond,
    Tail,
    TelemetryLine,
)
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.quota import quota_of

PERIOD_S = 1.0


class Counted(Protocol):
    """What can be sampled: a host, or the machine that hosts are containers of."""

    def counters(self) -> Counters:
        """What it has used so far. Raises TargetError."""


def limits_of(
    hardware: Hardware, needs: Mapping[str, HostNeed], hosts: Collection[str]
) -> tuple[HostLimits, ...]:
    """What each of these hosts may use, and what for: hosts that make the load by the hardware, the
    others by the gateway.
    """
    return tuple(
        HostLimits(
            host=name,
            tier="client" if name in hardware.clients else needs[name].tier,
            cpus=spec.cpus,
            cpu_period_ms=None
            if spec.cpus is None
            else quota_of(spec.cpus, hardware.cpu_period).period_us / 1e3,
            memory_bytes=spec.memory,
            nic_bits_s=spec.nic,
            disks=tuple(
                DiskLimit(bandwidth_bytes_s=disk.bandwidth, iops=disk.iops) for disk in spec.disks
            ),
        )
        for name, spec in hardware.hosts.items()
        if name in hosts
    )


class Watch:
    """Watches the hosts of one deployment, and its probes, from the first step to the last. A
    context manager.

    `limits` names every host that is watched, `probes` gives its probes; events go to the store
    under `layout`.
    """

    def __init__(
        self,
        store: RunStore,
        layout: str,
        hosts: Mapping[str, Counted],
        limits: Sequence[HostLimits],
        probes: Callable[[], Sequence[Probe]],
    ) -> None:
        self.hosts = {one.host: hosts[one.host] for one in limits}
        self.limits = tuple(limits)
        self.ear = Ear()
        self.readers: list[ProbeReader] = []
        self._store = store
        self._layout = layout
        self._probes = probes
        self._cpu_s = 0.0
        self._sampled_s = 0.0

    def __enter__(self) -> Self:
        try:
            for number, probe in enumerate(self._given()):
                log = (
                    self._store.logs
                    / f"probe-{self._layout}-{re.sub(r'[^A-Za-z0-9.-]', '_', probe.name)}-{number}.log"
                )
                try:
                    self.readers.append(ProbeReader(probe, self.ear, self.note, stderr=log))
                except (WeighbridgeError, OSError) as error:
                    self.note(f"the probe {probe.name} could not be started: {error}")
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
        if self._sampled_s and kind is None:
            hosts = sum(one.tier != "machine" for one in self.limits)
            self.note(
                f"sampling {hosts} hosts took {self._cpu_s / self._sampled_s * 1e3:.1f} ms of CPU "
                "a second here"
            )

    def _given(self) -> Sequence[Probe]:
        try:
            return self._probes()
        except WeighbridgeError as error:
            self.note(f"the gateway's probes could not be made: {error}")
            return ()

    def note(self, text: str) -> None:
        """Write an event. What it is about must not end what is measured, so one that cannot be
        written is left out: the step that cannot be written either says why.
        """
        with contextlib.suppress(StoreError):
            self._store.event("telemetry", text, layout=self._layout)

    def step(self, key: StepKey, runtime_s: float) -> Recording:
        """Record telemetry of one step whose window is `runtime_s` long, as long as the context it
        is used as lasts.
        """
        return Recording(
            self,
            self._store.record_telemetry(Head(key=key, hosts=self.limits, daemons=self._daemons())),
            runtime_s,
        )

    def _daemons(self) -> tuple[DaemonCounters, ...]:
        shown = (reader.probe.counters for reader in self.readers)
        return tuple({one.daemon: one for one in shown if one is not None}.values())

    def spent(self, cpu_s: float, sampled_s: float) -> None:
        """Add to what sampling has cost."""
        self._cpu_s += cpu_s
        self._sampled_s += sampled_s

    def _close(self) -> None:
        # All are asked first, so that they end side by side.
        for reader in self.readers:
            reader.ask_to_end()
        for reader in self.readers:
            reader.close()


@dataclass(frozen=True)
class _Sample:
    """What a host had used at a time of the monotonic clock."""

    at: float
    counters: Counters


@dataclass(frozen=True)
class _Span:
    """What a host used from one sample to the next."""

    host: HostLimits
    first: _Sample
    last: _Sample


class Recording:
    """Telemetry of one step. A context manager; inside it `heard` is to be told the driver's
    progress.

    The start of the window is put where the driver's messages put it: when one came, less the
    seconds it says have passed. That is late by what a message takes, so the earliest counts. From
    then on samples are taken at whole seconds of the window and at its end. Leaving the context
    raises StoreError when the telemetry could not be written.
    """

    def __init__(self, watch: Watch, file: TelemetryFile, runtime_s: float) -> None:
        self._watch = watch
        self._file = file
        self._runtime_s = runtime_s
        self._started = time.monotonic()
        self._opened: float | None = None
        self._opened_last = 0.0
        self._heard = 0
        self._changed = threading.Condition()
        self._fresh = False
        self._ending = False
        self._waiting: list[_Span | ProbeLine] = []
        self._taken_at: float | None = None
        self._before: dict[str, _Sample] = {}
        self._gaps: dict[str, None] = {}
        self._failed: StoreError | None = None
        # A signal's exception may come between its start and the context's, which is then never
        # left: it must not keep us here.
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Self:
        self._watch.ear.taken()  # what a probe told as the last step ended belongs to no step
        self._watch.ear.listening.set()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.ear.listening.clear()
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()
        self._file.close()
        if self._failed is not None and kind is None:
            raise self._failed

    def heard(self, progress: Progress) -> None:
        """Told every progress event of the step, as soon as it comes."""
        if progress.phase != "measure":
            return
        opened = time.monotonic() - progress.done
        with self._changed:
            self._fresh = self._fresh or self._opened is None
            self._opened = opened if self._opened is None else min(self._opened, opened)
            # Once all is done the message says no more how late it is.
            if progress.done < progress.total:
                self._opened_last = max(self._opened_last, opened)
                self._heard += 1
            if self._fresh:
                self._changed.notify()

    # ---- the sampling thread

    def _run(self) -> None:
        began = time.thread_time()
        try:
            while self._wait():
                self._write(self._taken())
            self._write(self._taken())
            self._write([*map(self._placed, self._waiting), self._tail()])
        except StoreError as error:
            self._failed = error
        finally:
            self._watch.spent(time.thread_time() - began, time.monotonic() - self._started)

    def _wait(self) -> bool:
        """Wait until the next sample is due: at a whole second, at the window's end, or when the
        window opens. False: the end.
        """
        with self._changed:
            while (
                not self._ending
                and not self._fresh
                and (left_s := self._due() - time.monotonic()) > 0
            ):
                self._changed.wait(left_s)
            self._fresh = False
            return not self._ending

    def _due(self) -> float:
        """When the next sample is to be taken: on the grid of the window once that is open, before
        that on one of its own.
        """
        if self._taken_at is None:
            return self._started
        zero = self._started if self._opened is None else self._opened
        # A sample that came a little before its time is that one, not a reason for another at once.
        passed_s = self._taken_at - zero + PERIOD_S / 50
        due_s = (passed_s // PERIOD_S + 1) * PERIOD_S
        if self._opened is not None and passed_s < self._runtime_s:
            due_s = min(due_s, self._runtime_s)
        return zero + due_s

    def _taken(self) -> list[TelemetryLine]:
        """Take a sample of every host; returns what can be written now."""
        self._taken_at = time.monotonic()
        fresh: list[_Span | ProbeLine] = []
        for limits in self._watch.limits:
            sample = self._sample(limits.host)
            before = self._before.get(limits.host)
            if sample is None:
                self._before.pop(limits.host, None)
                continue
            self._before[limits.host] = sample
            if before is not None and sample.at > before.at:
                fresh.append(_Span(limits, before, sample))
        now = time.monotonic()
        fresh += self._watch.ear.taken()
        for reader in self._watch.readers:
            if reader.ended:
                self._gaps[f"{reader.probe.name} has ended"] = None
            elif reader.silent(now):
                self._gaps[f"{reader.probe.name} told nothing for {SILENCE_S:g} s or more"] = None
        if self._opened is None:
            self._waiting += fresh
            return []
        placed: list[TelemetryLine] = [self._placed(one) for one in (*self._waiting, *fresh)]
        self._waiting.clear()
        return placed

    def _sample(self, name: str) -> _Sample | None:
        try:
            counters = self._watch.hosts[name].counters()
        except WeighbridgeError as error:
            gap = f"{name}: its counters could not be read"
            if gap not in self._gaps:
                self._watch.note(f"{gap}: {error}")
            self._gaps[gap] = None
            return None
        # Reading takes less than a millisecond; the end of it is as good as its middle.
        return _Sample(time.monotonic(), counters)

    def _write(self, lines: Sequence[TelemetryLine]) -> None:
        if lines:
            self._file.write(lines)

    # ---- lines

    def _placed(self, one: _Span | ProbeLine) -> HostSecond | ProbeSecond:
        at = one.at if isinstance(one, ProbeLine) else one.last.at
        zero = self._started if self._opened is None else self._opened
        at_s = round(at - zero, 4)
        if isinstance(one, ProbeLine):
            second = int(at_s // PERIOD_S)
            name = one.probe.name
            return ProbeSecond(
                second=second,
                at_s=at_s,
                phase=self._phase(at_s - EDGE_S, at_s),
                host=one.probe.host.name,
                probe=name,
                values=dict(one.values),
            )
        span_s = round(one.last.at - one.first.at, 4)
        phase = self._phase(at_s - span_s, at_s)
        second = int((at_s - span_s / 2) // PERIOD_S)
        return HostSecond(
            # What began a little before the window and counts as its own belongs to its first
            # second.
            second=max(0, second) if phase == "measure" else second,
            at_s=at_s,
            span_s=max(span_s, 1e-4),
            phase=phase,
            host=one.host.host,
            tier=one.host.tier,
            **_grown(one.first.counters, one.last.counters),
        )

    def _phase(self, from_s: float, to_s: float) -> Phase:
        if self._opened is None:
            return "unplaced"
        if from_s < -EDGE_S:
            return "warm-up"
        return "measure" if to_s <= self._runtime_s + EDGE_S else "drain"

    def _tail(self) -> Tail:
        spread_s = None
        if self._opened is not None and self._heard > 1:
            spread_s = round(max(0.0, self._opened_last - self._opened), 4)
        return Tail(opened_within_s=spread_s, gaps=tuple(self._gaps))


def _grown(first: Counters, last: Counters) -> dict[str, object]:
    """What a host used between two samples; a counter that is unknown in one of them, or that fell,
    is unknown.
    """
    return {
        "cpu_s": _more(first.cpu_s, last.cpu_s),
        "throttled_s": _more(first.throttled_s, last.throttled_s),
        "cpu_periods": _more(first.cpu_periods, last.cpu_periods),
        "throttled_periods": _more(first.throttled_periods, last.throttled_periods),
        "memory_bytes": last.memory_bytes,
        "memory_held_bytes": last.memory_held_bytes,
        "oom_kills": _more(first.oom_kills, last.oom_kills),
        "disks": _disks(first.disks, last.disks),
        "received_bytes": _more(first.network_received_bytes, last.network_received_bytes),
        "sent_bytes": _more(first.network_sent_bytes, last.network_sent_bytes),
        "network_faults": _more(first.network_faults, last.network_faults),
        "conductor_cpu_s": _more(first.conductor_cpu_s, last.conductor_cpu_s),
        "kernel_cpu_s": _more(first.kernel_cpu_s, last.kernel_cpu_s),
    }


def _more(first: float | None, last: float | None) -> float | None:
    if first is None or last is None or last < first:
        return None
    grown = last - first
    return grown if isinstance(grown, int) else round(grown, 6)


def _disks(
    first: tuple[DiskCounters, ...] | None, last: tuple[DiskCounters, ...] | None
) -> tuple[DiskSecond, ...] | None:
    if first is None or last is None or len(first) != len(last):
        return None
    names = ("read_bytes", "written_bytes", "reads", "writes", "busy_s", "waited_s")
    pairs = [
        {name: _more(getattr(a, name), getattr(b, name)) for name in names}
        for a, b in zip(first, last, strict=True)
    ]
    if any(value is None for one in pairs for value in one.values()):
        return None
    return tuple(DiskSecond.model_validate(one) for one in pairs)
