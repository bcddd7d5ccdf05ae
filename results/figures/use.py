"""What limited a step: utilization and saturation of every host's CPU, disks, network and memory
(the USE method).

B. Gregg, "Thinking Methodically about Performance", CACM 56(2), 2013: for every resource its
utilization, saturation and errors. His page on the method takes 100 % for a bottleneck and
distrusts means from 60 % on, since a mean hides bursts; UTILIZED lies between, and is also the
bound on the driver's own CPU in `results.figures.validity`.

- CPU: seconds used relative to its quota. Also saturated from USED_UP on if the quota ran out in
  THROTTLED or more of the periods with something to run: work then waited for the CPU.
- Disk: bytes or requests per second relative to its limits, reading and writing apart; and the
  share of time with a request in progress. The kernel counts that in ticks, too much if requests
  are short, but it cannot exceed the mean number of requests in progress, which it counts well: the
  smaller of the two counts.
- Network: bits per second relative to the NIC's limit, each way. Memory, without page cache: full
  from MEMORY_FULL on, since using it costs nothing, only running out of it does.

A resource without a limit has no figure. Probes run on the hosts that they observe: what they use
is included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Annotated, Final, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.results.numbers import listed, show_figure, show_share
from weighbridge.results.run import (
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    ProbeSecond,
    Telemetry,
    Tier,
)
from weighbridge.results.run.telemetry import mean_rate

# Throttling: how often and how long a CPU quota stopped a host in a step, and which latencies it
# may have set.
#
# A host that has used up its quota is stopped until the period ends. A quota represents a slower
# CPU, which would never stop but be slow all the time. If stops are short compared to a latency
# the two are the same; if not, the latency reflects how the kernel hands out time. A percentile
# is set by the limit if both hold:
#
# - the host was stopped for at least the share of the time beyond the percentile, so that it is
#     chance which requests are beyond it; for a maximum any stop suffices;
# - a stop took STALL_SHARE or more of the percentile, on average.
#
# `benchmarks/cpu_period.py` compares periods of 100, 20, 10 and 5 ms (its table is in docs/cpu-
# limits.md): a p90 of which a stop is half or more is off by 40 % and more, either way, from that
# with periods of 5 ms; others by 11 % at most.


STALL_SHARE: Final = 0.5
"""A stop of this share of a percentile means that the limit set it."""


class Throttled(Record):
    """What the CPU quota of one host did in the window of one step."""

    host: str
    tier: Tier
    quota_cpus: Annotated[float, Field(gt=0)]
    """The quota, in CPUs."""
    share_of_periods: Annotated[float, Field(ge=0, le=1)]
    """The share of periods with something to run in which the quota ran out."""
    share_of_time: NonNegativeFloat | None = None
    """How long it was stopped over the window; each CPU counts. None: unknown."""
    period_ms: Annotated[float, Field(gt=0)] | None = None
    """None: unknown."""
    stall_ms: NonNegativeFloat | None = None
    """The mean length of a stop, at most one period; None: unknown."""
    stalls: Annotated[int, Field(ge=0)] = 0
    """Periods in which the quota ran out."""

    @classmethod
    def counted(
        cls,
        *,
        host: str,
        tier: Tier,
        quota_cpus: float,
        period_ms: float | None,
        periods: float | None,
        throttled_periods: float | None,
        throttled_s: float | None,
        window_s: float,
    ) -> Self | None:
        """From the kernel's counters over `window_s` seconds; None if it counts no periods."""
        if periods is None or throttled_periods is None:
            return None
        share_of_time = stall_ms = None
        if throttled_s is not None:
            share_of_time = throttled_s / window_s
            # The kernel counts each of several CPUs stopped at once; together at most a period.
            stall_ms = (
                min(1e3 * throttled_s / throttled_periods, period_ms or math.inf)
                if throttled_periods
                else 0.0
            )
        return cls(
            host=host,
            tier=tier,
            quota_cpus=quota_cpus,
            share_of_periods=min(1.0, throttled_periods / periods) if periods else 0.0,
            share_of_time=share_of_time,
            period_ms=period_ms,
            stall_ms=stall_ms,
            stalls=round(throttled_periods),
        )

    @property
    def words(self) -> str:
        """`gateway-1 (limit 0.6 CPU) was throttled in 96 % of its periods of 100 ms ...`."""
        periods = (
            "its periods" if self.period_ms is None else f"its periods of {self.period_ms:g} ms"
        )
        each = "" if self.stall_ms is None else f", {show_figure(self.stall_ms)} ms each time"
        share = f"{self.share_of_periods * 100:.0f} % of {periods}{each}"
        return f"{self.host} (limit {self.quota_cpus:g} CPU) was throttled in {share}"

    def touches(self, percent: float, latency_ms: float) -> bool:
        """Whether it may have set a percentile (100: the maximum) of this length."""
        if self.stall_ms is None or self.share_of_time is None or not self.stalls:
            return False
        return self.share_of_time >= 1 - percent / 100 and self.stall_ms >= STALL_SHARE * latency_ms


def touching(throttled: Sequence[Throttled], percent: float, latency_ms: float) -> Throttled | None:
    """The host, longest stopped, whose limit may have set a percentile (100: the maximum)."""
    found = [one for one in throttled if one.touches(percent, latency_ms)]
    return max(found, key=lambda one: one.stall_ms or 0.0, default=None)


BESIDE: Final = 0.2
"""Share of a machine's CPUs used by others from which it is reported."""


class OtherPrograms(Record):
    """CPUs of the machine used by anything but its hosts and the programs that conduct the run.

    The kernel's own interrupts and threads mostly work for the hosts' disks and network, so they
    are separate, in `kernel`.
    """

    cpus: NonNegativeFloat
    of_cpus: NonNegativeFloat
    kernel: NonNegativeFloat

    @property
    def share(self) -> float:
        return self.cpus / self.of_cpus


def other_programs(
    limits: Sequence[HostLimits], seconds: Mapping[str, Sequence[HostSecond]], least_s: float
) -> OtherPrograms | None:
    """From seconds with samples of every host and the machine; None if below `least_s`."""
    machine = next((one for one in limits if one.tier == "machine"), None)
    if machine is None or machine.cpus is None:
        return None
    lines_of = {
        one.host: [line for line in seconds.get(one.host, ()) if line.cpu_s is not None]
        for one in limits
    }
    common = set.intersection(*({line.second for line in lines} for lines in lines_of.values()))
    kept = {
        host: [line for line in lines if line.second in common] for host, lines in lines_of.items()
    }
    if min(sum(line.span_s for line in lines) for lines in kept.values()) < least_s:
        return None
    rates = {host: mean_rate(lines, "cpu_s") or 0.0 for host, lines in kept.items()}
    conductor, kernel = (
        mean_rate(kept[machine.host], name) for name in ("conductor_cpu_s", "kernel_cpu_s")
    )
    if conductor is None or kernel is None:
        return None
    ours = sum(rates[one.host] for one in limits if one is not machine)
    others = rates[machine.host] - ours - conductor - kernel
    return OtherPrograms(cpus=max(0.0, others), of_cpus=machine.cpus, kernel=kernel)


def beside_words(repeats: Sequence[OtherPrograms | None]) -> str:
    """What others used over the repeats, in words; empty below BESIDE, or if unknown."""
    known = [one for one in repeats if one is not None]
    if not known:
        return ""
    cpus, of_cpus = median(one.cpus for one in known), known[0].of_cpus
    if cpus < BESIDE * of_cpus:
        return ""
    return f"other programs used {show_figure(cpus)} of this machine’s {of_cpus:g} CPUs"


WAITING: Final = 1.0
"""Mean number of requests in a daemon's queue from which it is reported."""


class Queue(Record):
    """A daemon's mean queue and workers (`common.counters.DaemonCounters`); None: unknown."""

    probe: str
    waiting: NonNegativeFloat | None = None
    busy: NonNegativeFloat | None = None
    idle: NonNegativeFloat | None = None

    @property
    def words(self) -> str:
        """That requests had to wait, or that no worker was idle; else empty."""
        if self.waiting is not None and self.waiting >= WAITING:
            return f"{show_figure(self.waiting)} requests wait in {self.probe}"
        if self.busy and self.idle is not None and self.idle < WAITING:
            return f"{self.probe} has no idle worker ({show_figure(self.busy)} busy)"
        return ""


def queues(lines: Sequence[ProbeSecond], declared: Sequence[DaemonCounters]) -> Iterator[Queue]:
    """The queues of daemons from the lines of their probes in a window."""
    counters_of = {one.daemon: one for one in declared}
    ordered = sorted(lines, key=lambda one: one.probe)
    for probe, group in groupby(ordered, key=lambda one: one.probe):
        names = counters_of.get(probe.partition(".")[0])
        if names is None:
            continue
        values = [line.values for line in group]
        waiting, worked = _mean(values, names.waiting), _mean(values, names.working)
        if names.working:
            waiting = waiting - worked if waiting is not None and worked is not None else None
        busy, idle = _mean(values, names.busy), _mean(values, names.idle)
        if waiting is not None or busy is not None:
            yield Queue(
                probe=probe,
                waiting=None if waiting is None else max(0.0, waiting),
                busy=busy,
                idle=idle,
            )


def queue_words(repeats: Sequence[Sequence[Queue]]) -> str:
    """Where requests waited in most of the repeats, in words; else empty."""
    by_probe: dict[str, list[Queue]] = {}
    for queue in (queue for repeat in repeats for queue in repeat):
        by_probe.setdefault(queue.probe, []).append(queue)
    found = []
    for same in by_probe.values():
        known = [queue for queue in same if queue.words]
        if 2 * len(known) > len(same):
            found.append(known[len(known) // 2].words)
    return ", ".join(found)


def _mean(lines: Sequence[Mapping[str, float]], name: str) -> float | None:
    known = [line[name] for line in lines if name in line]
    return sum(known) / len(known) if known else None


# What daemons reported about themselves in a window, as a few figures each; telemetry has the
# rest.
#
# The figures are declared with each probe (`common.counters`) and kept with the telemetry.
# Counters count from the daemon's start, so figures use the difference between the first and last
# line in the window.


class DaemonFigure(Record):
    """One figure of all daemons of a kind (`radosgw`, `osd`), with a label."""

    daemon: str
    label: str
    value: float


@dataclass(frozen=True)
class _Spell:
    """One daemon's lines inside a window, at least two."""

    lines: Sequence[ProbeSecond]

    def mean(self, name: str) -> float | None:
        known = [line.values[name] for line in self.lines if name in line.values]
        return sum(known) / len(known) if known else None

    def grown(self, name: str) -> float | None:
        """The increase of a counter; None if it is not reported, or was reset by a restart."""
        known = [line.values[name] for line in self.lines if name in line.values]
        return known[-1] - known[0] if len(known) > 1 and known[-1] >= known[0] else None

    @property
    def span_s(self) -> float:
        return self.lines[-1].at_s - self.lines[0].at_s


def _reckoned(figure: CounterFigure, spells: Sequence[_Spell]) -> float | None:
    first, *others = figure.counters
    if figure.reckon == "sum":
        return _total([spell.mean(first) for spell in spells])
    if figure.reckon == "rate":
        grown = [(spell.grown(first), spell.span_s) for spell in spells]
        return _total([None if more is None else more / span_s for more, span_s in grown])
    if figure.reckon == "latency":
        return _part(spells, f"{first}_sum_s", (f"{first}_count",), 1e3)
    return _part(spells, first, (first, *others), 100)


def _part(
    spells: Sequence[_Spell], numerator: str, others: Sequence[str], scale: float
) -> float | None:
    """The increase of a counter divided by that of others, over all daemons; None without."""
    above = _total([spell.grown(numerator) for spell in spells])
    below = _total([spell.grown(name) for spell in spells for name in others])
    return None if above is None or not below else above / below * scale


def figures(telemetry: Telemetry, window_s: float) -> tuple[DaemonFigure, ...]:
    """The figures of daemons with two or more lines in the window; unknown ones are left out."""
    by_probe: dict[str, list[ProbeSecond]] = {}
    for line in telemetry.probes_within(window_s):
        by_probe.setdefault(line.probe, []).append(line)
    spells: dict[str, list[_Spell]] = {}
    for probe, lines in by_probe.items():
        if len(lines) > 1 and lines[-1].at_s > lines[0].at_s:
            spells.setdefault(probe.partition(".")[0], []).append(_Spell(lines))
    found = []
    for shown in telemetry.head.daemons:
        for figure in shown.figures if shown.daemon in spells else ():
            value = _reckoned(figure, spells[shown.daemon])
            if value is not None:
                found.append(DaemonFigure(daemon=shown.daemon, label=figure.words, value=value))
    return tuple(found)


def figure_words(repeats: Sequence[Sequence[DaemonFigure]]) -> str:
    """Medians over the repeats: `radosgw: 15.8 requests in work, ...; osd: 812 op/s, ...`."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in (figure for repeat in repeats for figure in repeat):
        values.setdefault((one.daemon, one.label), []).append(one.value)
    by_daemon: dict[str, list[str]] = {}
    for (daemon, label), known in values.items():
        by_daemon.setdefault(daemon, []).append(label.format(show_figure(round(median(known), 2))))
    return "; ".join(f"{daemon}: {', '.join(words)}" for daemon, words in by_daemon.items())


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


UTILIZED: Final = 0.8
THROTTLED: Final = 0.5
USED_UP: Final = 0.5
"""Below this share of its quota a host waits longer for other things. The kernel counts only
periods with something to run: a host that waits for its disks has few, each used up by a burst.
"""
MEMORY_FULL: Final = 0.95
COVERED: Final = 0.5
"""Telemetry that covers less of a window than this is not used."""

NIC_FULL: Final = 0.8
"""Share of a client's NIC from which it, not the gateway, may be the bottleneck; as for CPU."""


What = Literal["CPU", "disk", "network", "memory"]


class Resource(Record):
    """A resource of a host over a window; `share` is of `limit`: `0.6`, `200 MB/s written`."""

    what: What
    host: str
    tier: Tier
    share: NonNegativeFloat
    limit: str
    throttled: NonNegativeFloat | None = None
    """Share of the periods of a CPU quota in which it ran out."""
    period_ms: PositiveFloat | None = None
    """Length of those periods; None: unknown."""
    number: int | None = None
    """Which of its host's disks, from 1, if there are several."""

    @property
    def saturated(self) -> bool:
        """Whether it may have been the bottleneck."""
        full = MEMORY_FULL if self.what == "memory" else UTILIZED
        held = self.throttled is not None and self.throttled >= THROTTLED
        return self.share >= full or (held and self.share >= USED_UP)

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
            held = f", throttled in {show_share(self.throttled)} of {periods}"
        own = ": the driver’s own limit" if self.tier == "client" else ""
        return f"{self.name} ({show_share(self.share)} of {self.limit}{held}){own}"


class StepUse(Record):
    """What the hosts used in the window of one step. Sums are extrapolated to the complete window.

    CPU seconds are None if a host of the tier could not be sampled, if there is none, and if one
    host has both tiers: its use cannot be split.
    """

    gateway_cpu_s: NonNegativeFloat | None = None
    storage_cpu_s: NonNegativeFloat | None = None
    disk_read_bytes: NonNegativeFloat | None = None
    """Read from all disks of hosts that keep data; None if not known of one, or without any."""
    resources: tuple[Resource, ...] = ()
    queues: tuple[Queue, ...] = ()
    throttled: tuple[Throttled, ...] = ()
    """For each host with a CPU quota whose periods were counted, throttled or not."""
    beside: OtherPrograms | None = None
    others: NonNegativeFloat | None = None
    """Share of the machine, 0 to 1, used by others: neither our hosts nor the conductor, nor the
    kernel by itself if that was recorded. None: unknown, or not a lab.
    """
    lab: bool = False
    """Whether the hosts are containers of a machine to be sampled: `others` should then be known.
    """
    daemons: tuple[DaemonFigure, ...] = ()
    """What daemons reported about themselves."""
    gaps: tuple[str, ...] = ()


def step_use(telemetry: Telemetry, window_s: float) -> StepUse:
    """What was used in the first `window_s` seconds after the step's window opened."""
    seconds: dict[str, list[HostSecond]] = {}
    for second in telemetry.within(window_s):
        seconds.setdefault(second.host, []).append(second)
    covered = {
        name: mine
        for name, mine in seconds.items()
        if sum(one.span_s for one in mine) >= COVERED * window_s
    }
    limits = telemetry.head.hosts
    cpu_s = {one.host: mean_rate(covered.get(one.host, ()), "cpu_s") for one in limits}
    gaps = (
        list(telemetry.tail.gaps) if telemetry.tail is not None else ["its recording was cut short"]
    )
    gaps += [
        f"{one.host}: sampled in less than half of the window"
        for one in limits
        if one.host not in covered
    ]
    hosts = tuple(one for one in limits if one.tier != "machine")
    beside = other_programs(limits, seconds, COVERED * window_s)
    return StepUse(
        gateway_cpu_s=_tier_cpu_s(limits, cpu_s, "gateway", window_s),
        storage_cpu_s=_tier_cpu_s(limits, cpu_s, "storage", window_s),
        disk_read_bytes=_disk_read_bytes(limits, covered, window_s),
        resources=tuple(
            found
            for one in hosts
            if one.host in covered
            for found in _resources(one, covered[one.host])
        ),
        queues=tuple(queues(telemetry.probes_within(window_s), telemetry.head.daemons)),
        throttled=tuple(
            found
            for one in hosts
            if (found := _throttled(one, covered.get(one.host, ()), window_s)) is not None
        ),
        beside=beside,
        others=None if beside is None else min(1.0, beside.share),
        lab=any(one.tier == "machine" for one in limits),
        daemons=figures(telemetry, window_s),
        gaps=tuple(dict.fromkeys(gaps)),
    )


def over_repeats(uses: Sequence[StepUse]) -> tuple[Resource, ...]:
    """Each resource's median shares over the repeats that have it."""
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
    """Those that may have been the bottleneck, most used first."""
    return tuple(sorted((one for one in resources if one.saturated), key=lambda one: -one.share))


def full_nics(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """NICs of load generators that are close to their limit."""
    return tuple(
        one
        for one in resources
        if (one.what, one.tier) == ("network", "client") and one.share >= NIC_FULL
    )


def highest(resources: Iterable[Resource], what: What, tiers: Sequence[Tier]) -> float | None:
    """The highest share of a kind of resource on hosts of these tiers; None if there is none."""
    return max(
        (one.share for one in resources if one.what == what and one.tier in tiers), default=None
    )


def quota_touches(use: StepUse, percent: float, latency_ms: float) -> str | None:
    """The CPU limit that may have set a step's percentile (100: maximum), in words; or None."""
    found = touching(use.throttled, percent, latency_ms)
    return None if found is None else found.words


def others(uses: Sequence[StepUse | None]) -> tuple[float | None, ...]:
    """The share of the machine's CPUs used by others, per repeat; empty without a lab."""
    shares = tuple(None if use is None else use.others for use in uses)
    lab = any(use is not None and (use.lab or use.others is not None) for use in uses)
    return shares if lab else ()


def _tier_cpu_s(
    limits: Sequence[HostLimits], rates: Mapping[str, float | None], tier: Tier, window_s: float
) -> float | None:
    mine = [rates[one.host] for one in limits if one.tier == tier]
    if not mine or any(one.tier == "shared" for one in limits):
        return None
    known = [rate for rate in mine if rate is not None]
    return sum(known) * window_s if len(known) == len(mine) else None


def _disk_read_bytes(
    limits: Sequence[HostLimits], covered: Mapping[str, Sequence[HostSecond]], window_s: float
) -> float | None:
    rates: list[float] = []
    for host in (one.host for one in limits if one.tier in ("storage", "shared")):
        seconds = covered.get(host, ())
        if not seconds or not all(one.disks for one in seconds):
            return None
        read = sum(disk.read_bytes for one in seconds for disk in one.disks or ())
        rates.append(read / sum(one.span_s for one in seconds))
    return sum(rates) * window_s if rates else None


def _throttled(
    limits: HostLimits, seconds: Sequence[HostSecond], window_s: float
) -> Throttled | None:
    if limits.cpus is None:
        return None
    names = ("cpu_periods", "throttled_periods", "throttled_s")
    periods, held, held_s = (
        None if rate is None else rate * window_s
        for rate in (mean_rate(seconds, name) for name in names)
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


def _resources(limits: HostLimits, seconds: Sequence[HostSecond]) -> Iterable[Resource]:
    about = {"host": limits.host, "tier": limits.tier}
    cpu = mean_rate(seconds, "cpu_s")
    most_cpus = limits.cpus or limits.cores
    if cpu is not None and most_cpus is not None:
        throttled = _share(
            mean_rate(seconds, "throttled_periods"), mean_rate(seconds, "cpu_periods")
        )
        yield Resource(
            what="CPU",
            share=cpu / most_cpus,
            limit=f"{most_cpus:g}",
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
        (mean_rate(seconds, name), way)
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
    span_s = sum(span for _, span in seconds)
    busy_s, waited_s = (
        sum(one.busy_s for one, _ in seconds),
        sum(one.waited_s for one, _ in seconds),
    )
    said = [one.model for one, _ in seconds if one.model is not None]
    if said and len(said) == len(seconds):
        # A request in the cache keeps the kernel's disk busy, but not the media.
        at_work_s = sum(one.busy_s for one in said)
        yield min(at_work_s, span_s) / span_s, "the time, with its media at work"
    else:
        yield min(busy_s, waited_s, span_s) / span_s, "the time, with a request in progress"
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


def _share(part: float | None, total: float | None) -> float | None:
    return part / total if part is not None and total else None


def _bits(rate: float) -> str:
    size, unit = next(
        (size, unit)
        for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s"))
        if rate >= size
    )
    return f"{rate / size:g} {unit}"


_LIMITS: Final[Mapping[tuple[What, Tier], str]] = {
    ("CPU", "gateway"): "the gateway’s CPU",
    ("CPU", "storage"): "the stores’ CPU",
    ("CPU", "shared"): "the CPU of gateway and stores",
    ("disk", "storage"): "the stores’ disks",
    ("disk", "shared"): "the stores’ disks",
    ("disk", "gateway"): "the gateway’s disks",
    ("network", "gateway"): "the network",
    ("network", "storage"): "the network",
    ("network", "shared"): "the network",
    ("memory", "gateway"): "the gateway’s memory",
    ("memory", "storage"): "the stores’ memory",
    ("memory", "shared"): "the memory of gateway and stores",
}
LOAD_GENERATOR: Final = "the load generator"
NOTHING_SEEN: Final = "nothing seen"


def limited_by(resources: Sequence[Resource], reached: Sequence[What] = ()) -> str | None:
    """What limited a step, by kind, the most used first; None if unknown. `reached`: resources
    whose ceiling, measured without a gateway, it came close to.
    """
    if not resources:
        return None
    kinds = [_LIMITS.get((one.what, one.tier), LOAD_GENERATOR) for one in saturated(resources)]
    kinds += [_LIMITS[what, "storage"] for what in reached]
    return listed(list(dict.fromkeys(kinds))) if kinds else NOTHING_SEEN


def limit_words(resources: Sequence[Resource]) -> str | None:
    """The bottleneck: `CPU of store-1 (99 % of 0.3), also CPU of store-2`; None if unknown."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none above {show_share(UTILIZED)}: {_highest(resources)}"
    others = f", also {', '.join(one.name for one in full[1:])}" if len(full) > 1 else ""
    return f"{full[0].words}{others}"


def limit_brief(resources: Sequence[Resource]) -> str | None:
    """The bottleneck in brief: `store-1 CPU 99 % +1`, `none (gateway-1 CPU 64 %)`, or None."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none ({_highest(resources)})"
    return f"{_short(full[0])}{f' +{len(full) - 1}' if len(full) > 1 else ''}"


def _highest(resources: Sequence[Resource]) -> str:
    # Memory in use means nothing as long as some is left.
    # Rounded down: what is just below the bound must not look as if it reached it.
    top = max(
        (one for one in resources if one.what != "memory"),
        key=lambda one: one.share,
        default=resources[0],
    )
    return f"{top.host} {top.what} {math.floor(top.share * 100 + 1e-9)} %"


def _short(one: Resource) -> str:
    return f"{one.host} {one.what} {show_share(one.share)}"
