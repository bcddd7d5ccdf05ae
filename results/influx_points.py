"""What of a run goes to an InfluxDB: its points, made of the same records that the report is made of, live and afterwards alike.

    weighbridge_run      one a run, when it began: its layouts and repeats
    weighbridge_second   one a second of a step and operation, at the start of the second: counts and latencies
    weighbridge_step     one a step and operation, at the end of its window: throughput, percentiles, errors, whether it is valid
    weighbridge_host     one a sample of a host, when it was taken: shares of CPU and disks, bytes of its NIC, memory
    weighbridge_live     while a step runs: the rates that its driver tells, for watching alone, and kept nowhere else

Times are the wall clock's, in milliseconds: the start of the window as the driver told it, and seconds counted from there. They
are for placing points on a screen; nothing is computed of them. All but those of `weighbridge_live` come out the same however
often they are made, so that a point that is sent again takes the place of the first.

A field that is not known is left out. A percentile is there under the rule of the report: with enough samples beyond it, and of a
driver that tells latencies in bins as the two ends of an interval. A step without a measurement has no time, and no point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from ground.errors import InvalidMeasurement
from results.histogram import Histogram
from results.interval import percentile
from results.line_protocol import Point
from results.measurement import Measurement, Second, Tally
from results.resolved import ResolvedPlan
from results.step import StepKey, StepResult
from results.store import RunStore
from results.telemetry import DiskSecond, HostLimits, HostSecond, Telemetry
from results.validity import enough_samples

PERCENTS: Final = (50, 90, 99)
RUN_TAGS: Final = ("run", "suite")
STEP_TAGS: Final = (*RUN_TAGS, "layout", "api", "driver", "layer", "workload", "workers", "repeat")
"""`layer` is there only below and beside gateways; `repeat` counts from 1, as it does in the report."""

TAGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "weighbridge_run": RUN_TAGS,
        "weighbridge_second": (*STEP_TAGS, "operation"),
        "weighbridge_step": (*STEP_TAGS, "operation"),
        "weighbridge_host": (*STEP_TAGS, "host", "tier", "phase"),
        "weighbridge_live": (*STEP_TAGS, "phase"),
    }
)
FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "weighbridge_run": ("layouts", "repeats"),
        "weighbridge_second": ("ops", "bytes", "errors", "mean_ms", "max_ms"),
        "weighbridge_step": (
            "throughput_ops_s",
            "bandwidth_bytes_s",
            *(f"p{one}{end}_ms" for one in PERCENTS for end in ("", "_low", "_high")),
            "mean_ms",
            "max_ms",
            "samples",
            "errors",
            "valid",
            "window_s",
        ),
        "weighbridge_host": (
            "cpus_used",
            "cpu_share",
            "disk_busy_share",
            "read_bytes_s",
            "written_bytes_s",
            "received_bytes_s",
            "sent_bytes_s",
            "memory_bytes",
            "memory_held_bytes",
        ),
        "weighbridge_live": ("ops_s", "bytes_s", "errors"),
    }
)
"""Every measurement with its fields. Counts and bytes are integers, `valid` is 1 or 0; rates, shares, ms and s are floats."""


def run_lines(store: RunStore, plan: ResolvedPlan) -> Iterator[str]:
    """The run itself. Raises InvalidMeasurement where its manifest has no time."""
    manifest = store.manifest
    yield from _lines(
        Point(
            measurement="weighbridge_run",
            tags={"run": manifest.run_id, "suite": manifest.suite},
            fields={"layouts": len(plan.layouts), "repeats": plan.suite.repeats},
            at_ms=_ms_of(manifest.created_at),
        )
    )


def step_lines(store: RunStore, step: StepResult) -> Iterator[str]:
    """All points of a step, with what its hosts used where that was recorded; none of a step without a measurement.

    Raises InvalidMeasurement where a time, a histogram or the telemetry cannot be read.
    """
    measurement = step.measurement
    if measurement is None:
        return
    tags = step_tags(store, step.key)
    began_ms = _ms_of(measurement.started_at)
    for second in measurement.seconds:
        yield from _lines(_second(tags, second, began_ms))
    for tally in measurement.tallies:
        yield from _lines(_step(tags, step, measurement, tally, began_ms))
    telemetry = store.telemetry(step.key)
    if telemetry is not None:
        yield from _host_lines(tags, telemetry, began_ms)


def live_line(store: RunStore, key: StepKey, phase: str, rates: tuple[float, float], errors: int, at_ms: int) -> str | None:
    """What a driver told at this time of a step that runs: operations and bytes a second, and errors."""
    ops_s, bytes_s = rates
    tags = {**step_tags(store, key), "phase": phase}
    fields = {"ops_s": ops_s, "bytes_s": bytes_s, "errors": errors}
    return Point(measurement="weighbridge_live", tags=tags, fields=fields, at_ms=at_ms).line


def step_tags(store: RunStore, key: StepKey) -> dict[str, str | None]:
    """The tags of all points of a step."""
    return {
        "run": store.manifest.run_id,
        "suite": store.manifest.suite,
        "layout": key.layout,
        "api": key.api,
        "driver": key.driver,
        "layer": key.layer,
        "workload": key.workload,
        "workers": str(key.workers),
        "repeat": str(key.repeat + 1),
    }


def _second(tags: Mapping[str, str | None], second: Second, began_ms: int) -> Point:
    return Point(
        measurement="weighbridge_second",
        tags={**tags, "operation": second.operation},
        fields={
            "ops": second.count,
            "bytes": second.bytes,
            "errors": second.errors,
            "mean_ms": second.sum_us / second.count / 1000 if second.count else None,
            "max_ms": second.max_us / 1000 if second.count else None,
        },
        at_ms=began_ms + second.second * 1000,
    )


def _step(tags: Mapping[str, str | None], step: StepResult, measurement: Measurement, tally: Tally, began_ms: int) -> Point:
    return Point(
        measurement="weighbridge_step",
        tags={**tags, "operation": tally.operation},
        fields={
            "throughput_ops_s": tally.count / measurement.window_s,
            "bandwidth_bytes_s": tally.bytes / measurement.window_s,
            **_percentiles(tally),
            "mean_ms": tally.sum_us / tally.count / 1000 if tally.count and tally.sum_us is not None else None,
            "max_ms": None if tally.max_us is None else tally.max_us / 1000,
            "samples": tally.count,
            "errors": tally.failed,
            "valid": int(step.valid),
            "window_s": measurement.window_s,
        },
        at_ms=began_ms + round(measurement.window_s * 1000),
    )


def _percentiles(tally: Tally) -> dict[str, float | None]:
    given = [percent for percent in PERCENTS if enough_samples(tally.count, percent)]
    if tally.latency is not None and tally.max_us is not None:
        histogram = Histogram.decode(tally.latency)
        # A bucket's top may lie above the exact maximum.
        return {f"p{one}_ms": min(histogram.percentile_us(one), tally.max_us) / 1000 for one in given}
    if tally.bins is None:
        return {}
    within = {one: percentile(tally.bins, one) for one in given}
    ends = {f"p{one}_low_ms": found.low_ms for one, found in within.items()}
    return {**ends, **{f"p{one}_high_ms": found.high_ms for one, found in within.items()}}


def _host_lines(tags: Mapping[str, str | None], telemetry: Telemetry, began_ms: int) -> Iterator[str]:
    limits = {one.host: one for one in telemetry.head.hosts}
    for sample in telemetry.hosts:
        # Where the window never opened, seconds are of another clock than the window's start.
        if sample.phase != "unplaced":
            yield from _lines(_host(tags, sample, limits.get(sample.host), began_ms))


def _host(tags: Mapping[str, str | None], sample: HostSecond, limits: HostLimits | None, began_ms: int) -> Point:
    cpus = limits.cpus if limits is not None else None
    used = _rate(sample.cpu_s, sample.span_s)
    disks = sample.disks
    return Point(
        measurement="weighbridge_host",
        tags={**tags, "host": sample.host, "tier": sample.tier, "phase": sample.phase},
        fields={
            "cpus_used": used,
            "cpu_share": used / cpus if used is not None and cpus is not None else None,
            "disk_busy_share": max(_busy(one, sample.span_s) for one in disks) if disks else None,
            "read_bytes_s": sum(one.read_bytes for one in disks) / sample.span_s if disks else None,
            "written_bytes_s": sum(one.written_bytes for one in disks) / sample.span_s if disks else None,
            "received_bytes_s": _rate(sample.received_bytes, sample.span_s),
            "sent_bytes_s": _rate(sample.sent_bytes, sample.span_s),
            "memory_bytes": sample.memory_bytes,
            "memory_held_bytes": sample.memory_held_bytes,
        },
        at_ms=began_ms + round(sample.at_s * 1000),
    )


def _busy(disk: DiskSecond, span_s: float) -> float:
    """Of the busiest disk, as `results.use` counts it: the kernel's ticks are too many where requests are short."""
    return min(disk.busy_s, disk.waited_s, span_s) / span_s


def _rate(value: float | None, span_s: float) -> float | None:
    return None if value is None else value / span_s


def _lines(point: Point) -> Iterator[str]:
    line = point.line
    if line is not None:
        yield line


def _ms_of(at: str) -> int:
    """Milliseconds since 1970 of a time in ISO 8601; one without a zone is UTC, as all that is written here."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        raise InvalidMeasurement(f"{at!r} is no time in ISO 8601: a point cannot be placed by it") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
