"""Telemetry of a step: the counters of every host and the gateway's probes, once a second.

A probe or a host that cannot be read makes a gap and an event, never a number or a failed step.
"""

from __future__ import annotations

import contextlib
import json
import math
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines, end, last_lines
from weighbridge.conductor.interruption import await_end
from weighbridge.drivers.protocol import Progress
from weighbridge.gateways.gateway import HostNeed
from weighbridge.gateways.probe import Probe
from weighbridge.results.run.reading import StoreError
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore, TelemetryFile
from weighbridge.results.run.telemetry import (
    EDGE_S,
    DiskLimit,
    DiskSecond,
    Head,
    HostLimits,
    HostSecond,
    ModelDiskSecond,
    Phase,
    ProbeSecond,
    Tail,
    TelemetryLine,
)
from weighbridge.topologies.disk_models import described
from weighbridge.topologies.hardware import Hardware, quota_of

PERIOD_S: Final = 1.0
MOST_PER_S: Final = 2.0**43
"""A disk or NIC with 8 TB/s is none: a host that says more says anything, as do sums of it."""
MOST_CPUS: Final = 10**4
GROWING: Final = (
    *("throttled_s", "cpu_periods", "throttled_periods", "conductor_cpu_s", "kernel_cpu_s"),
    *("oom_kills", "network_faults"),
)


def grown(
    first: Counters, last: Counters, span_s: float = PERIOD_S, cpus: int | None = None
) -> dict[str, object]:
    """The use of a host between two samples; unknown if a counter is unknown in one, fell, or grew
    by more than a host with so many CPUs can use in a second more, which a late sample may be.
    """
    most_cpu_s = (cpus or MOST_CPUS) * (span_s + PERIOD_S)
    return {
        **{name: _more(getattr(first, name), getattr(last, name)) for name in GROWING},
        "cpu_s": _more(first.cpu_s, last.cpu_s, most_cpu_s),
        "received_bytes": _more(first.network_received_bytes, last.network_received_bytes),
        "sent_bytes": _more(first.network_sent_bytes, last.network_sent_bytes),
        "memory_bytes": last.memory_bytes,
        "memory_held_bytes": last.memory_held_bytes,
        "disks": _disks(first.disks, last.disks),
    }


def _more(first: float | None, last: float | None, most: float = MOST_PER_S) -> float | None:
    if first is None or last is None or not 0 <= (more := last - first) <= most:
        return None
    return more if isinstance(more, int) else round(more, 6)


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
    said = [_model(a.model, b.model) for a, b in zip(first, last, strict=True)]
    return tuple(
        DiskSecond.model_validate({**one, "model": model})
        for one, model in zip(pairs, said, strict=True)
    )


def _model(
    first: ModelDiskCounters | None, last: ModelDiskCounters | None
) -> ModelDiskSecond | None:
    """What a disk with a model counted between two samples; None: it has none, or one fell."""
    if first is None or last is None:
        return None
    names = [name for name in ModelDiskSecond.model_fields if name != "cached_bytes"]
    more = {name: _more(getattr(first, name), getattr(last, name)) for name in names}
    if None in more.values():
        return None
    return ModelDiskSecond.model_validate({**more, "cached_bytes": last.cached_bytes})


SILENCE_S = 5.0
"""A probe reports every second; after so long without a line during a step it has stalled."""
QUIT_S = 2.0
"""Time for a probe to end after its stdin is closed, and again after SIGTERM."""
LONGEST_LINE_BYTES: Final = 2**18
"""A daemon has some hundred counters."""
MOST_WAITING: Final = 1000
"""Lines of all probes that wait for the next sample; a probe prints one each second."""

Note = Callable[[str], None]
"""Records what is missing, one line each."""


@dataclass(frozen=True)
class ProbeLine:
    """A line of a probe, and when it arrived, by the monotonic clock."""

    probe: Probe
    at: float
    values: Mapping[str, float]


class ProbeInbox:
    """Lines of probes that wait to be recorded; between steps they are dropped."""

    def __init__(self) -> None:
        self._lines: queue.Queue[ProbeLine] = queue.Queue(MOST_WAITING)
        self.open = threading.Event()
        self.overflown = False

    def put(self, line: ProbeLine) -> None:
        """Keep a line if the inbox is open, and has room."""
        if self.open.is_set():
            try:
                self._lines.put_nowait(line)
            except queue.Full:
                self.overflown = True

    def taken(self) -> list[ProbeLine]:
        """All lines that wait, removed."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._lines.get_nowait())
        return lines


class ProbeReader:
    """A running probe, whose lines go to `inbox`. Raises WeighbridgeError or OSError."""

    def __init__(self, probe: Probe, inbox: ProbeInbox, note: Note, *, stderr: Path) -> None:
        self.probe = probe
        self.last_at = time.monotonic()
        self.ended = False
        self._inbox = inbox
        self._note = note
        self._stderr = stderr
        self._closing = False
        self._stalled = False
        self._garbled = False
        self._process = probe.host.spawn(probe.argv, stderr=stderr, env=probe.env)
        self._lines = ProgramLines(self._process, longest_bytes=LONGEST_LINE_BYTES)
        self._thread = threading.Thread(target=self._read, name=f"probe-{probe.name}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            self._follow()
        except ProgramEnded as error:
            # A probe that is asked to end exits with 0 or by our signal; any other status means
            # that it ended by itself.
            if not self._closing or (error.code or 0) > 0:
                said = ""
                with contextlib.suppress(OSError):
                    for line in last_lines(self._stderr, 1):
                        said = f": {line[:200]} ({self._stderr})"
                what = f"ended by itself with status {error.code}{said}"
                self._note(f"the probe {self.probe.name} {what}")
        except NoLine as error:
            self._note(f"the probe {self.probe.name} {error}: no more of it is read")
        finally:
            self.ended = True

    def _follow(self) -> None:
        while True:
            line = self._lines.next()
            self.last_at, self._stalled = time.monotonic(), False
            values = _values(line)
            if values is None:
                if not self._garbled:
                    self._note(
                        f"the probe {self.probe.name} sent something other than a line of numbers: "
                        f"{line[:120]!r}"
                    )
                self._garbled = True
                continue
            self._inbox.put(ProbeLine(self.probe, self.last_at, values))

    def silent(self, now: float) -> bool:
        """Whether it has sent nothing for SILENCE_S; noted once for each silence."""
        if self.ended or now - self.last_at < SILENCE_S:
            return False
        if not self._stalled:
            self._note(
                f"the probe {self.probe.name} has sent nothing for {now - self.last_at:.0f} s"
            )
        self._stalled = True
        return True

    def ask_to_end(self) -> None:
        """Close its stdin, which asks it to end."""
        self._closing = True
        with contextlib.suppress(OSError, ValueError):  # it may be gone already
            if self._process.stdin is not None:
                self._process.stdin.close()

    def close(self) -> None:
        """End it: by `ask_to_end`, then SIGTERM, then SIGKILL."""
        self._closing = True
        # Its thread reads its stdout until it has ended.
        end(self._process, within_s=QUIT_S, terminate_s=QUIT_S, close=False)
        self._thread.join(QUIT_S)
        if not self._thread.is_alive() and self._process.stdout is not None:
            self._process.stdout.close()


def _values(line: bytes) -> dict[str, float] | None:
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        if isinstance(found, dict) and all(
            type(value) in (int, float) and abs(value) < 1e300 for value in found.values()
        ):
            return {str(name): float(value) for name, value in found.items()}
    return None


class CounterSource(Protocol):
    """A host, or the machine whose containers the hosts are."""

    def counters(self) -> Counters:
        """Its use so far. Raises TargetError."""


def limits_of(
    hardware: Hardware, needs: Mapping[str, HostNeed], hosts: Mapping[str, int | None]
) -> tuple[HostLimits, ...]:
    """Limits and tier of each of these hosts; those only observed have no limits."""
    own = tuple(
        HostLimits(
            host=name,
            tier="client" if name in hardware.clients else needs[name].tier,
            cpus=spec.most_cpus,
            cores=hosts[name],
            cpu_period_ms=None
            if spec.cpus is None
            else quota_of(spec.cpus, hardware.cpu_period).period_us / 1e3,
            memory_bytes=spec.memory,
            nic_bits_s=None if spec.nic is None else spec.nic.rate,
            disks=tuple(
                DiskLimit(
                    bandwidth_bytes_s=disk.bandwidth,
                    iops=disk.iops,
                    model=None if disk.model is None else described(disk.model),
                )
                for disk in spec.disks
            ),
        )
        for name, spec in hardware.hosts.items()
        if name in hosts
    )
    observed = (
        HostLimits(
            host=name, tier=one.tier, cores=hosts[name], disks=tuple(DiskLimit() for _ in one.disks)
        )
        for name, one in hardware.observed.items()
        if name in hosts
    )
    return (*own, *observed)


class Watch:
    """Watches a deployment's hosts (`limits`) and `probes`; events go to the store."""

    def __init__(
        self,
        store: RunStore,
        layout: str,
        hosts: Mapping[str, CounterSource],
        limits: Sequence[HostLimits],
        probes: Callable[[], Sequence[Probe]],
    ) -> None:
        self.hosts = {one.host: hosts[one.host] for one in limits}
        self.limits = tuple(limits)
        self.inbox = ProbeInbox()
        self.readers: list[ProbeReader] = []
        self._store = store
        self._layout = layout
        self._probes = probes

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def restart(self) -> None:
        """Start all probes again, between two steps: some may have ended with their host."""
        self._close()
        self.readers.clear()
        self._start()

    def _start(self) -> None:
        try:
            for number, probe in enumerate(self._probes_or_none()):
                name = re.sub(r"[^A-Za-z0-9.-]", "_", probe.name)
                log = self._store.logs / f"probe-{self._layout}-{name}-{number}.log"
                try:
                    self.readers.append(ProbeReader(probe, self.inbox, self.note, stderr=log))
                except (WeighbridgeError, OSError) as error:
                    self.note(f"the probe {probe.name} could not be started: {error}")
        except BaseException:
            self._close()
            raise

    def _probes_or_none(self) -> Sequence[Probe]:
        try:
            return self._probes()
        except WeighbridgeError as error:
            self.note(f"the gateway's probes could not be made: {error}")
            return ()

    def note(self, text: str) -> None:
        """Record an event. If it cannot be written, the step that cannot be written says why."""
        with contextlib.suppress(StoreError):
            self._store.event("telemetry", text, layout=self._layout)

    def step(self, key: StepKey, runtime_s: float, time: int = 0) -> StepTelemetry:
        """A context manager that records telemetry of a step with a window of `runtime_s`."""
        counters = (reader.probe.counters for reader in self.readers)
        daemons = {one.daemon: one for one in counters if one is not None}
        head = Head(key=key, hosts=self.limits, daemons=tuple(daemons.values()))
        return StepTelemetry(self, self._store.record_telemetry(head, time), runtime_s)

    def _close(self) -> None:
        # All are asked first, so that they end at the same time.
        for reader in self.readers:
            reader.ask_to_end()
        for reader in self.readers:
            reader.close()


class _Sample(NamedTuple):
    """The use of a host at a time of the monotonic clock."""

    at: float
    counters: Counters


class _Span(NamedTuple):
    """The use of a host between two samples."""

    host: HostLimits
    first: _Sample
    last: _Sample


SETTLING_S: Final = 0.7
"""Reads per operation of two spans of this length are compared."""
STILL_FALLING: Final = 0.8
"""The latest span has less than this share of those before it."""
FEW_READS: Final = 0.1
"""So few per operation decide nothing."""


class Settling:
    """Whether the reads per operation of a store's disks have stopped falling in a warm-up.

    A cache that fills makes each request cheaper than the last: a window then shows how long ago
    the store started. Where disks have no counters, nothing is waited for.
    """

    def __init__(self, watch: Watch) -> None:
        stores = [one.host for one in watch.limits if one.disks and one.tier != "client"]
        self._stores = [watch.hosts[name] for name in stores]
        self._before: tuple[float, int, int] | None = None
        self._per_operation = math.nan
        self._settled = False

    def has_settled(self, progress: Progress) -> bool:
        """True once, in the warm-up, with the first progress that shows it."""
        now_s, done = time.monotonic(), progress.operations
        at_s, reads_before, done_before = self._before or (-math.inf, 0, -1)
        early = now_s < at_s + SETTLING_S or done == done_before
        if self._settled or progress.phase != "warm-up" or early:
            return False
        try:
            disks = [store.counters().disks for store in self._stores]
        except WeighbridgeError:
            disks = []
        reads = sum(disk.reads for some in disks for disk in some or ())
        earlier, latest = self._per_operation, (reads - reads_before) / (done - done_before)
        if self._before is not None:
            self._per_operation = latest
            self._settled = latest >= STILL_FALLING * earlier or latest < FEW_READS
        self._before = (now_s, reads, done)
        self._settled = self._settled or not disks or None in disks
        return self._settled


class StepTelemetry:
    """Telemetry of one step. A context manager; in it, `on_progress` gets the driver's progress.

    The window starts where the driver's messages put it: when one arrived, less the seconds that it
    says have passed. That is late by the message's delay, so the earliest counts. From then on
    samples are taken at whole seconds of the window and at its end. Leaving the context raises
    StoreError if the telemetry could not be written.
    """

    def __init__(self, watch: Watch, file: TelemetryFile, runtime_s: float) -> None:
        self._watch = watch
        self._file = file
        self._runtime_s = runtime_s
        self._started = time.monotonic()
        self._opened: float | None = None
        self._changed = threading.Condition()
        self._fresh = False
        self._ending = False
        self._waiting: list[_Span | ProbeLine] = []
        self._taken_at: float | None = None
        self._before: dict[str, _Sample] = {}
        self._gaps: dict[str, None] = {}
        self._failed: StoreError | None = None
        # A daemon: if a signal's exception comes before the context is entered, it is never left.
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Self:
        self._watch.inbox.taken()  # lines from the end of the last step belong to no step
        self._watch.inbox.overflown = False
        self._watch.inbox.open.set()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._watch.inbox.open.clear()
        with self._changed:
            self._ending = True
            self._changed.notify()
        await_end(self._thread)
        if self._failed is not None and kind is None:
            raise self._failed

    def on_progress(self, progress: Progress) -> None:
        """Take a progress event of the step, as soon as it arrives."""
        if progress.phase != "measure":
            return
        opened = time.monotonic() - progress.done
        with self._changed:
            self._fresh = self._fresh or self._opened is None
            self._opened = opened if self._opened is None else min(self._opened, opened)
            if self._fresh:
                self._changed.notify()

    # ---- the sampling thread

    def _run(self) -> None:
        try:
            with self._file:
                while self._wait():
                    self._write(self._taken())
                self._write(self._taken())
                tail = Tail(gaps=tuple(self._gaps))
                self._write([*map(self._placed, self._waiting), tail])
        except StoreError as error:
            self._failed = error

    def _wait(self) -> bool:
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
        """When the next sample is due: at seconds of the window, or before it of this thread."""
        if self._taken_at is None:
            return self._started
        zero = self._started if self._opened is None else self._opened
        # A sample slightly before its time counts as that sample.
        passed_s = self._taken_at - zero + PERIOD_S / 50
        due_s = (passed_s // PERIOD_S + 1) * PERIOD_S
        if self._opened is not None and passed_s < self._runtime_s:
            due_s = min(due_s, self._runtime_s)
        return zero + due_s

    def _taken(self) -> list[TelemetryLine]:
        """Take a sample of every host; returns the lines that can be written now."""
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
        fresh += self._watch.inbox.taken()
        if self._watch.inbox.overflown:
            self._gaps[f"probes sent more than {MOST_WAITING} lines between two samples"] = None
        for reader in self._watch.readers:
            if reader.ended:
                self._gaps[f"{reader.probe.name} has ended"] = None
            elif reader.silent(now):
                self._gaps[f"{reader.probe.name} sent nothing for {SILENCE_S:g} s or more"] = None
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
            self._lack(f"{name}: its counters could not be read", f": {error}")
            return None
        # Reading takes less than a millisecond, so its end is as good as its middle.
        return _Sample(time.monotonic(), counters)

    def _lack(self, gap: str, why: str = "") -> None:
        if gap not in self._gaps:
            self._watch.note(f"{gap}{why}")
        self._gaps[gap] = None

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
        use = grown(one.first.counters, one.last.counters, span_s, one.host.cores)
        read = grown(one.last.counters, one.last.counters)
        lost = [name for name in use if use[name] is None and read[name] is not None]
        if lost:
            self._lack(
                f"{one.host.host}: of {', '.join(lost)} its counters fell, or grew beyond what a "
                "host can do"
            )
        return HostSecond(
            # A span that began slightly before the window belongs to its first second.
            second=max(0, second) if phase == "measure" else second,
            at_s=at_s,
            span_s=max(span_s, 1e-4),
            phase=phase,
            host=one.host.host,
            tier=one.host.tier,
            **use,
        )

    def _phase(self, from_s: float, to_s: float) -> Phase:
        if self._opened is None:
            return "unplaced"
        if from_s < -EDGE_S:
            return "warm-up"
        return "measure" if to_s <= self._runtime_s + EDGE_S else "drain"
