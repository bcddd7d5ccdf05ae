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
from itertools import groupby
from statistics import fmean, median
from typing import Annotated, Final, Literal

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
BESIDE: Final = 0.2
"""Share of a machine's CPUs used by others from which it is reported."""
WAITING: Final = 1.0
"""Mean number of requests in a daemon's queue from which it is reported."""
LOAD_GENERATOR: Final = "the load generator"
NOTHING_SEEN: Final = "nothing seen"

What = Literal["CPU", "disk", "network", "memory"]

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
    """What the CPU quota of one host did in a window of `window_s`, as the kernel counted it."""

    host: str
    quota_cpus: PositiveFloat
    period_ms: PositiveFloat | None = None
    """None: unknown."""
    periods: NonNegativeFloat
    """Periods with something to run."""
    throttled_periods: NonNegativeFloat
    """Those in which the quota ran out."""
    throttled_s: NonNegativeFloat | None = None
    """How long it was stopped; each CPU counts. None: unknown."""
    window_s: PositiveFloat

    @property
    def share_of_periods(self) -> float:
        return min(1.0, self.throttled_periods / self.periods) if self.periods else 0.0

    @property
    def stall_ms(self) -> float | None:
        """The mean length of a stop, at most one period; None: unknown."""
        if self.throttled_s is None or not self.throttled_periods:
            return None if self.throttled_s is None else 0.0
        # The kernel counts each of several CPUs stopped at once; together at most a period.
        return min(1e3 * self.throttled_s / self.throttled_periods, self.period_ms or math.inf)

    @property
    def words(self) -> str:
        """`gateway-1 (limit 0.6 CPU) was throttled in 96 % of its periods of 100 ms ...`."""
        periods = f"its periods{_of_period(self.period_ms)}"
        each = "" if self.stall_ms is None else f", {show_figure(self.stall_ms)} ms each time"
        share = f"{show_share(self.share_of_periods)} of {periods}{each}"
        return f"{self.host} (limit {self.quota_cpus:g} CPU) was throttled in {share}"

    def touches(self, percent: float, latency_ms: float) -> bool:
        """Whether it may have set a percentile (100: the maximum) of this length."""
        if not self.stall_ms or self.throttled_s is None or round(self.throttled_periods) == 0:
            return False
        share_of_time = self.throttled_s / self.window_s
        return share_of_time >= 1 - percent / 100 and self.stall_ms >= STALL_SHARE * latency_ms


def _of_period(period_ms: float | None) -> str:
    return "" if period_ms is None else f" of {period_ms:g} ms"


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
            periods = f"{'its ' * (self.period_ms is None)}periods{_of_period(self.period_ms)}"
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
    queues: dict[str, str] = Field(default_factory=dict)
    """By probe of a daemon with a queue, where requests waited, in words; empty: nowhere."""
    throttled: tuple[Throttled, ...] = ()
    """For each host with a CPU quota whose periods were counted, throttled or not."""
    others: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the machine used by others: neither our hosts nor the conductor, nor the kernel by
    itself if that was recorded. None: unknown, or not a lab.
    """
    machine_cpus: PositiveFloat | None = None
    lab: bool = False
    """Whether the hosts are containers of a machine to be sampled: `others` should then be known.
    """
    daemons: dict[tuple[str, str], float] = Field(default_factory=dict)
    """What daemons reported about themselves, by kind of daemon (`osd`) and label."""
    gaps: tuple[str, ...] = ()


def step_use(telemetry: Telemetry, window_s: float) -> StepUse:
    """What was used in the first `window_s` seconds after the step's window opened."""
    limits = telemetry.head.hosts
    machine = next((host for host in limits if host.tier == "machine"), None)
    seconds: dict[str, list[HostSecond]] = {}
    for second in telemetry.within(window_s):
        seconds.setdefault(second.host, []).append(second)
    covered = {
        name: lines
        for name, lines in seconds.items()
        if sum(line.span_s for line in lines) >= COVERED * window_s
    }
    gaps = ["its recording was cut short"] if telemetry.tail is None else [*telemetry.tail.gaps]
    resources: list[Resource] = []
    throttled: list[Throttled] = []
    for host in limits:
        if host.host not in covered:
            gaps.append(f"{host.host}: sampled in less than half of the window")
        elif host is not machine:
            resources += _resources(host, covered[host.host])
            throttled += _throttled(host, covered[host.host], window_s)
    return StepUse(
        gateway_cpu_s=_tier_cpu_s(limits, covered, "gateway", window_s),
        storage_cpu_s=_tier_cpu_s(limits, covered, "storage", window_s),
        disk_read_bytes=_disk_read_bytes(limits, covered, window_s),
        resources=tuple(resources),
        queues=_queues(telemetry.probes_within(window_s), telemetry.head.daemons),
        throttled=tuple(throttled),
        others=_used_by_others(limits, machine, seconds, COVERED * window_s),
        machine_cpus=None if machine is None else machine.cpus,
        lab=machine is not None,
        daemons=daemon_figures(telemetry, window_s),
        gaps=tuple(dict.fromkeys(gaps)),
    )


def _tier_cpu_s(
    limits: Sequence[HostLimits],
    covered: Mapping[str, Sequence[HostSecond]],
    tier: Tier,
    window_s: float,
) -> float | None:
    if any(host.tier == "shared" for host in limits):
        return None
    rates = [mean_rate(covered.get(host.host, ()), "cpu_s") for host in limits if host.tier == tier]
    rate = _total(rates)
    return None if rate is None else rate * window_s


def _disk_read_bytes(
    limits: Sequence[HostLimits], covered: Mapping[str, Sequence[HostSecond]], window_s: float
) -> float | None:
    rates: list[float] = []
    for host in (host.host for host in limits if host.tier in ("storage", "shared")):
        seconds = covered.get(host, ())
        if not seconds or not all(second.disks for second in seconds):
            return None
        read = sum(disk.read_bytes for second in seconds for disk in second.disks or ())
        rates.append(read / sum(second.span_s for second in seconds))
    return sum(rates) * window_s if rates else None


def _throttled(
    limits: HostLimits, seconds: Sequence[HostSecond], window_s: float
) -> Iterator[Throttled]:
    periods, held, held_s = (
        mean_rate(seconds, name) for name in ("cpu_periods", "throttled_periods", "throttled_s")
    )
    if limits.cpus is not None and periods is not None and held is not None:
        yield Throttled(
            host=limits.host,
            quota_cpus=limits.cpus,
            period_ms=limits.cpu_period_ms,
            periods=periods * window_s,
            throttled_periods=held * window_s,
            throttled_s=None if held_s is None else held_s * window_s,
            window_s=window_s,
        )


def _resources(limits: HostLimits, seconds: Sequence[HostSecond]) -> Iterator[Resource]:
    about = {"host": limits.host, "tier": limits.tier}
    cpu, periods, held = (
        mean_rate(seconds, name) for name in ("cpu_s", "cpu_periods", "throttled_periods")
    )
    cpus = limits.cpus or limits.cores
    if cpu is not None and cpus is not None:
        yield Resource(
            what="CPU",
            share=cpu / cpus,
            limit=f"{cpus:g}",
            throttled=held / periods if held is not None and periods else None,
            period_ms=limits.cpu_period_ms,
            **about,
        )
    for number, disk in enumerate(limits.disks):
        spans = [
            (second.disks[number], second.span_s)
            for second in seconds
            if second.disks is not None and number < len(second.disks)
        ]
        if len(spans) == len(seconds):
            share, limit = max(_disk(disk, spans))
            place = number + 1 if len(limits.disks) > 1 else None
            yield Resource(what="disk", share=share, limit=limit, number=place, **about)
    sent, received = (mean_rate(seconds, name) for name in ("sent_bytes", "received_bytes"))
    if limits.nic_bits_s is not None and sent is not None and received is not None:
        rate, way = max((sent, "sent"), (received, "received"))
        limit = f"{_bits(limits.nic_bits_s)} {way}"
        yield Resource(what="network", share=rate * 8 / limits.nic_bits_s, limit=limit, **about)
    held_bytes = [
        second.memory_held_bytes for second in seconds if second.memory_held_bytes is not None
    ]
    if limits.memory_bytes is not None and held_bytes:
        share, limit = max(held_bytes) / limits.memory_bytes, show_bytes(limits.memory_bytes)
        yield Resource(what="memory", share=share, limit=limit, **about)


def _disk(
    limit: DiskLimit, spans: Sequence[tuple[DiskSecond, float]]
) -> Iterable[tuple[float, str]]:
    seconds = [second for second, _ in spans]
    span_s = sum(span for _, span in spans)
    models = [second.model for second in seconds if second.model is not None]
    if models and len(models) == len(seconds):
        # A request in the cache keeps the kernel's disk busy, but not the media.
        at_work_s = sum(model.busy_s for model in models)
        yield min(at_work_s, span_s) / span_s, "the time, with its media at work"
    else:
        busy_s = sum(second.busy_s for second in seconds)
        waited_s = sum(second.waited_s for second in seconds)
        yield min(busy_s, waited_s, span_s) / span_s, "the time, with a request in progress"
    for way, moved, requests in (
        ("read", "read_bytes", "reads"),
        ("written", "written_bytes", "writes"),
    ):
        if limit.bandwidth_bytes_s is not None:
            rate = sum(getattr(second, moved) for second in seconds) / span_s
            yield rate / limit.bandwidth_bytes_s, f"{show_bytes(limit.bandwidth_bytes_s)}/s {way}"
        if limit.iops is not None:
            rate = sum(getattr(second, requests) for second in seconds) / span_s
            yield rate / limit.iops, f"{limit.iops} {requests}/s"


def _bits(rate: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate >= size:
            return f"{rate / size:g} {unit}"
    return f"{rate:g} bit/s"


def _used_by_others(
    limits: Sequence[HostLimits],
    machine: HostLimits | None,
    seconds: Mapping[str, Sequence[HostSecond]],
    least_s: float,
) -> float | None:
    """The share of the machine's CPUs used by anything but its hosts and the programs that conduct
    the run, from seconds with samples of every host and the machine; None if below `least_s`.

    The kernel's own interrupts and threads mostly work for the hosts' disks and network, so they
    are left out.
    """
    if machine is None or machine.cpus is None:
        return None
    sampled = {
        host.host: [line for line in seconds.get(host.host, ()) if line.cpu_s is not None]
        for host in limits
    }
    common = set.intersection(*({line.second for line in lines} for lines in sampled.values()))
    kept = {
        host: [line for line in lines if line.second in common] for host, lines in sampled.items()
    }
    if min(sum(line.span_s for line in lines) for lines in kept.values()) < least_s:
        return None
    own = [kept[machine.host], *(lines for host, lines in kept.items() if host != machine.host)]
    total, *hosts = (mean_rate(lines, "cpu_s") or 0.0 for lines in own)
    apart = _total([mean_rate(own[0], name) for name in ("conductor_cpu_s", "kernel_cpu_s")])
    if apart is None:
        return None
    return min(1.0, max(0.0, total - sum(hosts) - apart) / machine.cpus)


# What daemons reported about themselves in a window: where requests waited, and a few figures
# each; telemetry has the rest.
#
# Which of their counters mean what is declared with each probe (`common.structure`) and kept with
# the telemetry. Counters count from the daemon's start, so figures use the difference between the
# first and last line in the window.

_Lines = Sequence[ProbeSecond]
"""One daemon's lines inside a window."""


def _by_probe(lines: _Lines) -> Iterator[tuple[str, list[ProbeSecond]]]:
    """The kind of daemon (`osd`) and the lines of each probe (`osd.0`)."""
    for probe, group in groupby(
        sorted(lines, key=lambda line: line.probe), lambda line: line.probe
    ):
        yield probe.partition(".")[0], list(group)


def _queues(lines: _Lines, declared: Sequence[DaemonCounters]) -> dict[str, str]:
    """By probe, that requests had to wait, or that no worker was idle, in words; else empty."""
    counters_of = {counters.daemon: counters for counters in declared}
    found: dict[str, str] = {}
    for daemon, group in _by_probe(lines):
        names, probe = counters_of.get(daemon), group[0].probe
        if names is None:
            continue
        waiting, worked, busy, idle = (
            _mean(group, name) for name in (names.waiting, names.working, names.busy, names.idle)
        )
        if names.working:
            waiting = waiting - worked if waiting is not None and worked is not None else None
        if waiting is not None and waiting >= WAITING:
            found[probe] = f"{show_figure(waiting)} requests wait in {probe}"
        elif busy and idle is not None and idle < WAITING:
            found[probe] = f"{probe} has no idle worker ({show_figure(busy)} busy)"
        elif waiting is not None or busy is not None:
            found[probe] = ""
    return found


def daemon_figures(telemetry: Telemetry, window_s: float) -> dict[tuple[str, str], float]:
    """The figures of all daemons of a kind with two or more lines in the window, by kind and label;
    unknown ones are left out.
    """
    groups: dict[str, list[list[ProbeSecond]]] = {}
    for daemon, lines in _by_probe(telemetry.probes_within(window_s)):
        if lines[-1].at_s > lines[0].at_s:
            groups.setdefault(daemon, []).append(lines)
    found = {}
    for shown in telemetry.head.daemons:
        for figure in shown.figures if shown.daemon in groups else ():
            value = _reckoned(figure, groups[shown.daemon])
            if value is not None:
                found[shown.daemon, figure.words] = value
    return found


def _reckoned(figure: CounterFigure, daemons: Sequence[_Lines]) -> float | None:
    first, *others = figure.counters
    if figure.reckon == "sum":
        return _total([_mean(lines, first) for lines in daemons])
    if figure.reckon == "rate":
        return _total([_grown(lines, first, lines[-1].at_s - lines[0].at_s) for lines in daemons])
    part, whole, scale = first, (first, *others), 100.0
    if figure.reckon == "latency":
        part, whole, scale = f"{first}_sum_s", (f"{first}_count",), 1e3
    above = _total([_grown(lines, part) for lines in daemons])
    below = _total([_grown(lines, name) for lines in daemons for name in whole])
    return None if above is None or not below else above / below * scale


def _mean(lines: _Lines, name: str) -> float | None:
    values = [line.values[name] for line in lines if name in line.values]
    return fmean(values) if values else None


def _grown(lines: _Lines, name: str, divisor: float = 1.0) -> float | None:
    """The increase of a counter; None if it is not reported, or was reset by a restart."""
    values = [line.values[name] for line in lines if name in line.values]
    if len(values) < 2 or values[-1] < values[0]:
        return None
    return (values[-1] - values[0]) / divisor


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None without values, and if one is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


# Over the repeats of a step.


def over_repeats(uses: Sequence[StepUse]) -> tuple[Resource, ...]:
    """Each resource's median shares over the repeats that have it."""
    groups: dict[tuple[object, ...], list[Resource]] = {}
    for resource in (resource for use in uses for resource in use.resources):
        groups.setdefault((resource.host, resource.what, resource.number), []).append(resource)
    merged = []
    for same in groups.values():
        held = [resource.throttled for resource in same if resource.throttled is not None]
        middle = sorted(same, key=lambda resource: resource.share)[(len(same) - 1) // 2]
        share = median(resource.share for resource in same)
        medians = {"share": share, "throttled": median(held) if held else None}
        merged.append(middle.model_copy(update=medians))
    return tuple(merged)


def aside_words(uses: Sequence[StepUse]) -> str:
    """Where requests waited in most of the repeats, and what others used of the machine if it is
    BESIDE or more, in words; else empty.
    """
    by_probe: dict[str, list[str]] = {}
    for probe, words in (item for use in uses for item in use.queues.items()):
        by_probe.setdefault(probe, []).append(words)
    waits = []
    for repeats in by_probe.values():
        known = [words for words in repeats if words]
        if 2 * len(known) > len(repeats):
            waits.append(known[len(known) // 2])
    parts = [", ".join(waits)] if waits else []
    shares = [use.others for use in uses if use.others is not None]
    cpus = next((use.machine_cpus for use in uses if use.machine_cpus is not None), None)
    if cpus is not None and shares and median(shares) >= BESIDE:
        used = show_figure(median(shares) * cpus)
        parts.append(f"other programs used {used} of this machine’s {cpus:g} CPUs")
    return "; ".join(parts)


def daemon_words(uses: Sequence[StepUse]) -> str:
    """Medians over the repeats: `radosgw: 15.8 requests in work, ...; osd: 812 op/s, ...`."""
    values: dict[tuple[str, str], list[float]] = {}
    for place, value in (item for use in uses for item in use.daemons.items()):
        values.setdefault(place, []).append(value)
    by_daemon: dict[str, list[str]] = {}
    for (daemon, label), known in values.items():
        by_daemon.setdefault(daemon, []).append(label.format(show_figure(round(median(known), 2))))
    return "; ".join(f"{daemon}: {', '.join(words)}" for daemon, words in by_daemon.items())


def others(uses: Sequence[StepUse | None]) -> tuple[float | None, ...]:
    """The share of the machine's CPUs used by others, per repeat; empty without a lab."""
    shares = tuple(None if use is None else use.others for use in uses)
    lab = any(use is not None and (use.lab or use.others is not None) for use in uses)
    return shares if lab else ()


def saturated(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Those that may have been the bottleneck, most used first."""
    full = (resource for resource in resources if resource.saturated)
    return tuple(sorted(full, key=lambda resource: -resource.share))


def full_nics(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """NICs of load generators that are close to their limit."""
    return tuple(
        nic
        for nic in resources
        if (nic.what, nic.tier) == ("network", "client") and nic.share >= NIC_FULL
    )


def highest(resources: Iterable[Resource], what: What, tiers: Sequence[Tier]) -> float | None:
    """The highest share of a kind of resource on hosts of these tiers; None if there is none."""
    same = (resource for resource in resources if resource.what == what and resource.tier in tiers)
    return max((resource.share for resource in same), default=None)


def quota_touches(use: StepUse, percent: float, latency_ms: float) -> str | None:
    """The CPU limit, of the host stopped longest, that may have set a step's percentile (100: the
    maximum), in words; or None.
    """
    held = [host for host in use.throttled if host.touches(percent, latency_ms)]
    return max(held, key=lambda host: host.stall_ms or 0.0).words if held else None


def limited_by(resources: Sequence[Resource], reached: Sequence[What] = ()) -> str | None:
    """What limited a step, by kind, the most used first; None if unknown. `reached`: resources
    whose ceiling, measured without a gateway, it came close to.
    """
    if not resources:
        return None
    kinds = [_LIMITS.get((full.what, full.tier), LOAD_GENERATOR) for full in saturated(resources)]
    kinds += [_LIMITS[what, "storage"] for what in reached]
    return listed(list(dict.fromkeys(kinds))) if kinds else NOTHING_SEEN


def limit_words(resources: Sequence[Resource]) -> str | None:
    """The bottleneck: `CPU of store-1 (99 % of 0.3), also CPU of store-2`; None if unknown."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none above {show_share(UTILIZED)}: {_highest(resources)}"
    more = f", also {', '.join(resource.name for resource in full[1:])}" if len(full) > 1 else ""
    return f"{full[0].words}{more}"


def limit_brief(resources: Sequence[Resource]) -> str | None:
    """The bottleneck in brief: `store-1 CPU 99 % +1`, `none (gateway-1 CPU 64 %)`, or None."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none ({_highest(resources)})"
    more = f" +{len(full) - 1}" if len(full) > 1 else ""
    return f"{full[0].host} {full[0].what} {show_share(full[0].share)}{more}"


def _highest(resources: Sequence[Resource]) -> str:
    # Memory in use means nothing as long as some is left.
    # Rounded down: what is just below the bound must not look as if it reached it.
    limits = [resource for resource in resources if resource.what != "memory"]
    top = max(limits, key=lambda resource: resource.share, default=resources[0])
    return f"{top.host} {top.what} {math.floor(top.share * 100 + 1e-9)} %"
