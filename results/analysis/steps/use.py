"""What limited a step: utilization and saturation of every host's CPU, disks, network and memory
(the USE method).

B. Gregg, "Thinking Methodically about Performance", CACM 56(2), 2013: for every resource its
utilization, its saturation and its errors. His page on the method takes 100 % for a bottleneck and
mistrusts means from 60 % on, since a mean hides bursts; UTILIZED lies between, and is the bound of
the driver's own CPU in `results.analysis.steps.validity`.

- CPU: seconds used by those its quota allows. Saturated as well where the quota ran out in
  THROTTLED or more of the periods that had something to run: work waited then, however low the
  mean.
- Disk: bytes or requests a second by its limits, reading and writing apart; and the share of time
  with a request in hand. The kernel counts that in ticks, too much where requests are short, but it
  can never be more than the requests in hand on average, which it counts well: the smaller of the
  two is taken.
- Network: bits a second by the NIC's limit, each way. Memory, without page cache: full from
  MEMORY_FULL on, since it costs nothing to have it used, only to have none left.

Of a resource without a limit nothing is said. Probes run on the hosts they tell of: what they use
is in all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Final, Literal

from pydantic import NonNegativeFloat, PositiveFloat

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.daemons import DaemonFigure, figures
from weighbridge.results.analysis.steps.throttling import Throttled, touching
from weighbridge.results.figures import show_figure
from weighbridge.results.record import (
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    ProbeSecond,
    Telemetry,
    Tier,
)

UTILIZED: Final = 0.8
THROTTLED: Final = 0.5
MEMORY_FULL: Final = 0.95
COVERED: Final = 0.5
"""Telemetry that covers less of a window than this says nothing about it."""
WAITING: Final = 1.0
"""Requests that wait in a daemon's queue, on average: from so many on they are worth a word."""

NIC_FULL: Final = 0.8
"""Share of a NIC on a driver's host from which on it, not the gateway, may have been the limit: as
of its CPU.
"""

BESIDE: Final = 0.2
"""Share of a machine's CPUs that are used beside its hosts: from there on it is said, since the
hosts may have lacked them.
"""

What = Literal["CPU", "disk", "network", "memory"]


class Resource(Record):
    """A resource of a host over a window.

    `share` is of `limit`, which is in words: `0.6`, `200 MB/s written`.
    """

    what: What
    host: str
    tier: Tier
    share: NonNegativeFloat
    limit: str
    throttled: NonNegativeFloat | None = None
    """Share of the periods of a CPU quota in which it ran out."""
    period_ms: PositiveFloat | None = None
    """How long those are; None: not known."""
    number: int | None = None
    """Which of its host's disks, from 1, where there are several."""

    @property
    def saturated(self) -> bool:
        """Whether it may have been the limit."""
        full = MEMORY_FULL if self.what == "memory" else UTILIZED
        return self.share >= full or (self.throttled is not None and self.throttled >= THROTTLED)

    @property
    def name(self) -> str:
        """`CPU of gateway-1`."""
        return f"{self.what}{'' if self.number is None else f' {self.number}'} of {self.host}"

    @property
    def words(self) -> str:
        """`CPU of gateway-1 (97 % of 0.6)`."""
        held = ""
        if self.throttled is not None and self.throttled >= 0.1:
            periods = (
                "its periods" if self.period_ms is None else f"periods of {self.period_ms:g} ms"
            )
            held = f", throttled in {_percent(self.throttled)} of {periods}"
        own = ": the driver’s own limit" if self.tier == "client" else ""
        return f"{self.name} ({_percent(self.share)} of {self.limit}{held}){own}"


class Queue(Record):
    """What a daemon told of its own queue and workers, on average over a window; None: it does not
    tell.

    Which of its counters say so is declared with its probe (`common.counters.DaemonCounters`).
    """

    probe: str
    waiting: NonNegativeFloat | None = None
    busy: NonNegativeFloat | None = None
    idle: NonNegativeFloat | None = None

    @property
    def words(self) -> str:
        """That requests had to wait, or that no worker was left; empty where neither is so."""
        if self.waiting is not None and self.waiting >= WAITING:
            return f"{show_figure(self.waiting)} requests wait in {self.probe}"
        if self.busy and self.idle is not None and self.idle < WAITING:
            return f"{self.probe} has no worker idle ({show_figure(self.busy)} busy)"
        return ""


class OtherPrograms(Record):
    """CPUs of the machine that hosts are containers of, used by anything but them and the process
    that conducts the run.

    The kernel's own interrupts and threads work for the hosts' disks and network more than for
    anything else: what they used is apart, in `kernel`. In runs that did not record it (None), it
    is in `cpus` too, and so is the conductor's.
    """

    cpus: NonNegativeFloat
    of_cpus: NonNegativeFloat
    kernel: NonNegativeFloat | None = None

    @property
    def share(self) -> float:
        """Of the machine, 0 to 1."""
        return self.cpus / self.of_cpus


class StepUse(Record):
    """What the hosts used in the window of one step. CPU seconds are of the whole window, by what
    was sampled of it.

    CPU seconds are None where a host of the tier could not be sampled, where the deployment has
    none of the tier, and where one host is of both tiers: what it used for which cannot be told
    apart.
    """

    gateway_cpu_s: NonNegativeFloat | None = None
    storage_cpu_s: NonNegativeFloat | None = None
    resources: tuple[Resource, ...] = ()
    queues: tuple[Queue, ...] = ()
    throttled: tuple[Throttled, ...] = ()
    """Of each host with a CPU quota whose periods were counted, also where it was never throttled.
    """
    beside: OtherPrograms | None = None
    others: NonNegativeFloat | None = None
    """Share of the machine, 0 to 1, that others used: neither our hosts nor the conductor, nor the
    kernel by itself where that was recorded. None: not known, or not a lab."""
    lab: bool = False
    """Whether its hosts are containers of a machine that was to be sampled: then `others` should be
    known.
    """
    told: tuple[DaemonFigure, ...] = ()
    """What daemons told of themselves."""
    gaps: tuple[str, ...] = ()


def step_use(telemetry: Telemetry, window_s: float) -> StepUse:
    """What was used inside the first `window_s` seconds from the opening of the step's window."""
    seconds: dict[str, list[HostSecond]] = {}
    for second in telemetry.within(window_s):
        seconds.setdefault(second.host, []).append(second)
    whole = {
        name: mine
        for name, mine in seconds.items()
        if sum(one.span_s for one in mine) >= COVERED * window_s
    }
    limits = telemetry.head.hosts
    cpu_s = {one.host: _mean_rate(whole.get(one.host, ()), "cpu_s") for one in limits}
    gaps = (
        list(telemetry.tail.gaps) if telemetry.tail is not None else ["its recording was cut short"]
    )
    gaps += [
        f"{one.host}: sampled in less than half of the window"
        for one in limits
        if one.host not in whole
    ]
    hosts = tuple(one for one in limits if one.tier != "machine")
    beside = _beside(limits, seconds, window_s)
    return StepUse(
        gateway_cpu_s=_tier_cpu_s(limits, cpu_s, "gateway", window_s),
        storage_cpu_s=_tier_cpu_s(limits, cpu_s, "storage", window_s),
        resources=tuple(
            found
            for one in hosts
            if one.host in whole
            for found in _resources(one, whole[one.host])
        ),
        queues=tuple(_queues(telemetry.told_within(window_s), telemetry.daemons)),
        throttled=tuple(
            found
            for one in hosts
            if (found := _throttled(one, whole.get(one.host, ()), window_s)) is not None
        ),
        beside=beside,
        others=None if beside is None else min(1.0, beside.share),
        lab=any(one.tier == "machine" for one in limits),
        told=figures(telemetry, window_s),
        gaps=tuple(dict.fromkeys(gaps)),
    )


def over_repeats(uses: Sequence[StepUse]) -> tuple[Resource, ...]:
    """Resources over repeats: each one's median shares, of those repeats that could tell."""
    found: dict[tuple[object, ...], list[Resource]] = {}
    for one in (resource for use in uses for resource in use.resources):
        found.setdefault((one.host, one.what, one.number), []).append(one)
    merged = []
    for same in found.values():
        throttled = [one.throttled for one in same if one.throttled is not None]
        middle = sorted(same, key=lambda one: one.share)[(len(same) - 1) // 2]
        share = median(one.share for one in same)
        merged.append(
            middle.model_copy(
                update={"share": share, "throttled": median(throttled) if throttled else None}
            )
        )
    return tuple(merged)


def saturated(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Those that may have been the limit, the most used first."""
    return tuple(sorted((one for one in resources if one.saturated), key=lambda one: -one.share))


def full_nics(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """The NICs of hosts that make the load which leave it no headroom."""
    return tuple(
        one
        for one in resources
        if (one.what, one.tier) == ("network", "client") and one.share >= NIC_FULL
    )


def limit_words(resources: Sequence[Resource]) -> str | None:
    """What was the limit, in words:

    `CPU of store-1 (99 % of 0.3), also CPU of store-2`; None where nothing is known.
    """
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none above {_percent(UTILIZED)}: {_highest(resources)}"
    others = f", also {', '.join(one.name for one in full[1:])}" if len(full) > 1 else ""
    return f"{full[0].words}{others}"


def limit_brief(resources: Sequence[Resource]) -> str | None:
    """The same where there is little room:

    `store-1 CPU 99 % +1`, `none (gateway-1 CPU 64 %)`; None where nothing is known.
    """
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none ({_highest(resources)})"
    return f"{_short(full[0])}{f' +{len(full) - 1}' if len(full) > 1 else ''}"


def highest(resources: Iterable[Resource], what: What, tiers: Sequence[Tier]) -> float | None:
    """The highest share of one kind of resource on hosts of these tiers; None where there is
    none.
    """
    return max(
        (one.share for one in resources if one.what == what and one.tier in tiers), default=None
    )


def quota_touches(use: StepUse, percent: float, latency_ms: float) -> str | None:
    """Which CPU limit may have made a percentile of a step, or with `percent` 100 its maximum, in
    words; None where none has.
    """
    found = touching(use.throttled, percent, latency_ms)
    return None if found is None else found.words


def queue_words(uses: Sequence[StepUse]) -> str:
    """Where requests waited in most of the repeats, in words; empty where they did not, or where
    nobody told.
    """
    waits: dict[str, list[Queue]] = {}
    for queue in (queue for use in uses for queue in use.queues):
        waits.setdefault(queue.probe, []).append(queue)
    said = []
    for queues in waits.values():
        known = [queue for queue in queues if queue.words]
        if 2 * len(known) > len(queues):
            said.append(known[len(known) // 2].words)
    return ", ".join(said)


def beside_words(uses: Sequence[StepUse]) -> str:
    """What the machine used beside its hosts, in words, from BESIDE of its CPUs on; empty below, or
    where it is not known.
    """
    known = [use.beside for use in uses if use.beside is not None]
    if not known:
        return ""
    cpus, of_cpus = median(one.cpus for one in known), known[0].of_cpus
    who = (
        "other programs"
        if all(one.kernel is not None for one in known)
        else "other programs and the kernel"
    )
    told = f"{who} used {show_figure(cpus)} of this machine’s {of_cpus:g} CPUs"
    return told if cpus >= BESIDE * of_cpus else ""


def others(uses: Sequence[StepUse | None]) -> tuple[float | None, ...]:
    """Share of the machine's CPUs that others used, of each repeat; None where it is not known.

    Nothing where there is no lab.
    """
    shares = tuple(None if use is None else use.others for use in uses)
    lab = any(use is not None and (use.lab or use.others is not None) for use in uses)
    return shares if lab else ()


def _highest(resources: Sequence[Resource]) -> str:
    # Memory that is in use is no sign of anything as long as there is some left.
    # Rounded down: what is just below the bound must not look as if it were at it.
    top = max(
        (one for one in resources if one.what != "memory"),
        key=lambda one: one.share,
        default=resources[0],
    )
    return f"{top.host} {top.what} {math.floor(top.share * 100 + 1e-9)} %"


def _short(one: Resource) -> str:
    return f"{one.host} {one.what} {_percent(one.share)}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _mean_rate(seconds: Sequence[HostSecond], name: str) -> float | None:
    """What a counter grew by in a second, on average; None where one of the samples lacks it."""
    values = [getattr(one, name) for one in seconds]
    if not values or any(value is None for value in values):
        return None
    return float(sum(values)) / sum(one.span_s for one in seconds)


def _tier_cpu_s(
    limits: Sequence[HostLimits], rates: Mapping[str, float | None], tier: Tier, window_s: float
) -> float | None:
    mine = [rates[one.host] for one in limits if one.tier == tier]
    if not mine or any(one.tier == "shared" for one in limits):
        return None
    known = [rate for rate in mine if rate is not None]
    return sum(known) * window_s if len(known) == len(mine) else None


def _throttled(
    limits: HostLimits, seconds: Sequence[HostSecond], window_s: float
) -> Throttled | None:
    """Of the whole window, by what was sampled of it."""
    if limits.cpus is None:
        return None
    names = ("cpu_periods", "throttled_periods", "throttled_s")
    periods, held, held_s = (
        None if rate is None else rate * window_s
        for rate in (_mean_rate(seconds, name) for name in names)
    )
    return Throttled.counted(
        host=limits.host,
        tier=limits.tier,
        quota_cpus=limits.cpus,
        period_ms=limits.cpu_period_ms,
        periods=periods,
        throttled_periods=held,
        throttled_s=held_s,
        window_s=window_s,
    )


def _beside(
    limits: Sequence[HostLimits], seconds: Mapping[str, Sequence[HostSecond]], window_s: float
) -> OtherPrograms | None:
    """Of the seconds in which every host and the machine were sampled; None where those are less
    than COVERED of the window.
    """
    machine = next((one for one in limits if one.tier == "machine"), None)
    if machine is None or machine.cpus is None:
        return None
    told = {
        one.host: [line for line in seconds.get(one.host, ()) if line.cpu_s is not None]
        for one in limits
    }
    common = set.intersection(*({line.second for line in lines} for lines in told.values()))
    kept = {host: [line for line in lines if line.second in common] for host, lines in told.items()}
    if min(sum(line.span_s for line in lines) for lines in kept.values()) < COVERED * window_s:
        return None
    rates = {host: _mean_rate(lines, "cpu_s") or 0.0 for host, lines in kept.items()}
    conductor, kernel = (
        _mean_rate(kept[machine.host], name) for name in ("conductor_cpu_s", "kernel_cpu_s")
    )
    inside = (
        sum(rates[one.host] for one in limits if one is not machine)
        + (conductor or 0.0)
        + (kernel or 0.0)
    )
    return OtherPrograms(
        cpus=max(0.0, rates[machine.host] - inside), of_cpus=machine.cpus, kernel=kernel
    )


def _resources(limits: HostLimits, seconds: Sequence[HostSecond]) -> Iterable[Resource]:
    about = {"host": limits.host, "tier": limits.tier}
    cpu = _mean_rate(seconds, "cpu_s")
    if cpu is not None and limits.cpus is not None:
        throttled = _share(
            _mean_rate(seconds, "throttled_periods"), _mean_rate(seconds, "cpu_periods")
        )
        yield Resource(
            what="CPU",
            share=cpu / limits.cpus,
            limit=f"{limits.cpus:g}",
            throttled=throttled,
            period_ms=limits.cpu_period_ms,
            **about,
        )
    for number, disk in enumerate(limits.disks):
        mine = [
            (one.disks[number], one.span_s)
            for one in seconds
            if one.disks is not None and number < len(one.disks)
        ]
        if len(mine) == len(seconds):
            share, limit = max(_disk(disk, mine))
            yield Resource(
                what="disk",
                share=share,
                limit=limit,
                number=number + 1 if len(limits.disks) > 1 else None,
                **about,
            )
    rates = [
        (_mean_rate(seconds, name), way)
        for name, way in (("sent_bytes", "sent"), ("received_bytes", "received"))
    ]
    known = [(rate, way) for rate, way in rates if rate is not None]
    if limits.nic_bits_s is not None and len(known) == len(rates):
        rate, way = max(known)
        yield Resource(
            what="network",
            share=rate * 8 / limits.nic_bits_s,
            limit=f"{_bits(limits.nic_bits_s)} {way}",
            **about,
        )
    held = [one.memory_held_bytes for one in seconds if one.memory_held_bytes is not None]
    if limits.memory_bytes is not None and held:
        yield Resource(
            what="memory",
            share=max(held) / limits.memory_bytes,
            limit=show_bytes(limits.memory_bytes),
            **about,
        )


def _disk(
    limit: DiskLimit, seconds: Sequence[tuple[DiskSecond, float]]
) -> Iterable[tuple[float, str]]:
    """Shares of what a disk may do, each with what it is a share of."""
    span_s = sum(span for _, span in seconds)
    busy_s, waited_s = (
        sum(one.busy_s for one, _ in seconds),
        sum(one.waited_s for one, _ in seconds),
    )
    yield min(busy_s, waited_s, span_s) / span_s, "the time, with a request in hand"
    for way, moved, requests in (
        ("read", "read_bytes", "reads"),
        ("written", "written_bytes", "writes"),
    ):
        if limit.bandwidth_bytes_s is not None:
            rate = sum(getattr(one, moved) for one, _ in seconds) / span_s
            yield rate / limit.bandwidth_bytes_s, f"{show_bytes(limit.bandwidth_bytes_s)}/s {way}"
        if limit.iops is not None:
            yield (
                sum(getattr(one, requests) for one, _ in seconds) / span_s / limit.iops,
                f"{limit.iops} {requests}/s",
            )


def _queues(told: Sequence[ProbeSecond], declared: Sequence[DaemonCounters]) -> Iterable[Queue]:
    shown = {one.daemon: one for one in declared}
    for probe, group in groupby(sorted(told, key=lambda one: one.probe), key=lambda one: one.probe):
        names = shown.get(probe.partition(".")[0])
        if names is None:
            continue
        lines = [line.values for line in group]
        waiting, worked = _mean(lines, names.waiting), _mean(lines, names.working)
        if names.working:
            waiting = waiting - worked if waiting is not None and worked is not None else None
        busy, idle = _mean(lines, names.busy), _mean(lines, names.idle)
        if waiting is not None or busy is not None:
            yield Queue(
                probe=probe,
                waiting=None if waiting is None else max(0.0, waiting),
                busy=busy,
                idle=idle,
            )


def _mean(lines: Sequence[Mapping[str, float]], name: str) -> float | None:
    known = [line[name] for line in lines if name in line]
    return sum(known) / len(known) if known else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _bits(rate: float) -> str:
    size, unit = next(
        (size, unit)
        for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s"))
        if rate >= size
    )
    return f"{rate / size:g} {unit}"
