"""What limited a step: utilization and saturation of every host's CPU, disks, network and memory
(the USE method).

B. Gregg, "Thinking Methodically about Performance", CACM 56(2), 2013: for every resource its
utilization, saturation and errors. His page on the method takes 100 % for a bottleneck and
distrusts means from 60 % on, since a mean hides bursts; UTILIZED lies between, and is also the
bound on the driver's own CPU in `results.analysis.steps.validity`.

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

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final, Literal

from pydantic import NonNegativeFloat, PositiveFloat

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.daemons import DaemonFigure, figures
from weighbridge.results.analysis.steps.other_programs import OtherPrograms, other_programs
from weighbridge.results.analysis.steps.queues import Queue, queues
from weighbridge.results.analysis.steps.throttling import Throttled, touching
from weighbridge.results.record import (
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    Telemetry,
    Tier,
)
from weighbridge.results.record.telemetry import mean_rate

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
            held = f", throttled in {percent(self.throttled)} of {periods}"
        own = ": the driver’s own limit" if self.tier == "client" else ""
        return f"{self.name} ({percent(self.share)} of {self.limit}{held}){own}"


class StepUse(Record):
    """What the hosts used in the window of one step. Sums are extrapolated to the complete window.

    CPU seconds are None if a host of the tier could not be sampled, if there is none, and if one
    host has both tiers: its use cannot be split.
    """

    gateway_cpu_s: NonNegativeFloat | None = None
    storage_cpu_s: NonNegativeFloat | None = None
    disk_read_bytes: NonNegativeFloat | None = None
    """Read from all disks of hosts that keep data; None if one could not be sampled, or if there
    is none.
    """
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
    """The share of the machine's CPUs used by others, per repeat (None: unknown); empty without a
    lab.
    """
    shares = tuple(None if use is None else use.others for use in uses)
    lab = any(use is not None and (use.lab or use.others is not None) for use in uses)
    return shares if lab else ()


def percent(share: float) -> str:
    """`97 %`."""
    return f"{share * 100:.0f} %"


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
    """For the complete window, extrapolated from what was sampled."""
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
    """Shares of a disk's limits, each with the limit's name."""
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
