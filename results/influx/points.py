"""The points of a run for an InfluxDB, made of the report's records, the same live and afterwards.

    weighbridge_run      one per run, at its start: layouts and repeats
    weighbridge_second   one per second and operation, at its start: counts and latencies
    weighbridge_step     one per step and operation, at the end of its window: throughput,
                         percentiles, errors, valid, steady
    weighbridge_host     one per sample of a host: CPU and disk shares, NIC bytes, memory
    weighbridge_live     while a step runs: the rates that its driver reports, only for watching

Times are wall clock times in milliseconds: the start of the window as the driver reported it, and
seconds from there. They place points on a screen; nothing is computed from them. All but those of
`weighbridge_live` are the same whenever they are made, so a point that is sent again replaces the
first.

Unknown fields are omitted. A step has the same figures as in the report: a percentile only with
enough samples beyond it, the two ends of a bin where the driver reports bins, `steady` only where
it can be determined. A step without a measurement has no time, and no point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.steps.use import StepUse, step_use
from weighbridge.results.analysis.steps.visit import Point, visit, workloads_of
from weighbridge.results.influx.line_protocol import InfluxPoint
from weighbridge.results.metrics import METRICS, Figures, by_column
from weighbridge.results.record import (
    DiskSecond,
    HostLimits,
    HostSecond,
    ResolvedPlan,
    RunStore,
    Second,
    StepKey,
    StepResult,
    Tally,
    Telemetry,
)
from weighbridge.suites import Workload

RUN_TAGS: Final = ("run", "suite")
STEP_TAGS: Final = (*RUN_TAGS, "layout", "api", "driver", "layer", "workload", "workers", "repeat")
"""`layer` is set only for load below and beside gateways; `repeat` counts from 1, as in the
report. The workload of a step of a search has its rate: `small-read at 342/s`.
"""

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
            *by_column(Figures(), intervals=False),
            *(f"{one.stem}_at_least" for one in METRICS.values() if one.percent is not None),
            "bandwidth_bytes_s",
            "valid",
            "steady",
            "others_share",
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
"""All measurements with their fields.

Counts and bytes are integers, as are `valid`, `steady` and fields that end in `at_least` (1 or 0;
1: the figure is a lower bound, since requests that had not ended took as long or longer); others
are floats. `others_share` is the share of the machine's CPUs that other programs used, 0 to 1.
"""


class RunPoints:
    """The points of one run, as lines."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def run(self) -> Iterator[str]:
        """Raises UsageError and InvalidMeasurement where plan or time cannot be read."""
        yield from _lines(
            InfluxPoint(
                measurement="weighbridge_run",
                tags=self._tags,
                fields={"layouts": len(self._plan.layouts), "repeats": self._plan.suite.repeats},
                at_ms=_ms_of(self._store.manifest.created_at),
            )
        )

    def step(self, step: StepResult) -> Iterator[str]:
        """A step's points, with its hosts' use; none without a measurement. Raises
        InvalidMeasurement, and UsageError about the plan.
        """
        measurement = step.measurement
        if measurement is None:
            return
        tags = self._tags_of(step.key)
        began_ms = _ms_of(measurement.started_at)
        for second in measurement.seconds:
            yield from _lines(_second(tags, second, began_ms))
        telemetry = self._store.telemetry(step.key)
        use = None if telemetry is None else step_use(telemetry, measurement.window_s)
        workload = self._workloads.get(step.key.workload)
        found = visit(
            step,
            use,
            closed_loop=workload is None or workload.rate_per_s is None,
            workload=workload,
        )
        for tally in measurement.tallies:
            yield from _lines(
                _step(
                    tags, tally, found.points[tally.operation], use, measurement.window_s, began_ms
                )
            )
        if telemetry is not None:
            yield from _host_lines(tags, telemetry, began_ms)

    def live(
        self, key: StepKey, phase: str, rates: tuple[float, float], errors: int, at_ms: int
    ) -> Iterator[str]:
        """What a driver reports of a running step: operations and bytes per second, and errors."""
        ops_s, bytes_s = rates
        tags = {**self._tags_of(key), "phase": phase}
        fields = {"ops_s": ops_s, "bytes_s": bytes_s, "errors": errors}
        yield from _lines(
            InfluxPoint(measurement="weighbridge_live", tags=tags, fields=fields, at_ms=at_ms)
        )

    @cached_property
    def _plan(self) -> ResolvedPlan:
        return self._store.plan()

    @cached_property
    def _workloads(self) -> dict[str, Workload]:
        return workloads_of(self._plan)

    @property
    def _tags(self) -> dict[str, str | None]:
        return {"run": self._store.manifest.run_id, "suite": self._store.manifest.suite}

    def _tags_of(self, key: StepKey) -> dict[str, str | None]:
        rate = "" if key.rate_per_s is None else f" at {key.rate_per_s:g}/s"
        return {
            **self._tags,
            "layout": key.layout,
            "api": key.api,
            "driver": key.driver,
            "layer": key.layer,
            "workload": key.workload + rate,
            "workers": str(key.workers),
            "repeat": str(key.repeat + 1),
        }


def _second(tags: Mapping[str, str | None], second: Second, began_ms: int) -> InfluxPoint:
    return InfluxPoint(
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


def _step(
    tags: Mapping[str, str | None],
    tally: Tally,
    found: Point,
    use: StepUse | None,
    window_s: float,
    began_ms: int,
) -> InfluxPoint:
    bounded = [
        (one.stem, found.figure(one.key)) for one in METRICS.values() if one.percent is not None
    ]
    return InfluxPoint(
        measurement="weighbridge_step",
        tags={**tags, "operation": tally.operation},
        fields={
            **by_column(found, intervals=False),
            **{
                f"{stem}_at_least": int(one.at_least)
                for stem, one in bounded
                if one.value is not None
            },
            "bandwidth_bytes_s": tally.bytes / window_s,
            "valid": int(found.valid),
            "steady": None if found.steady is None else int(found.steady),
            "others_share": None if use is None else use.others,
            "window_s": window_s,
        },
        at_ms=began_ms + round(window_s * 1000),
    )


def _host_lines(
    tags: Mapping[str, str | None], telemetry: Telemetry, began_ms: int
) -> Iterator[str]:
    limits = {one.host: one for one in telemetry.head.hosts}
    for sample in telemetry.hosts:
        # Without a window, the seconds are not relative to its start.
        if sample.phase != "unplaced":
            yield from _lines(_host(tags, sample, limits.get(sample.host), began_ms))


def _host(
    tags: Mapping[str, str | None], sample: HostSecond, limits: HostLimits | None, began_ms: int
) -> InfluxPoint:
    cpus = limits.cpus if limits is not None else None
    used = _rate(sample.cpu_s, sample.span_s)
    disks = sample.disks
    return InfluxPoint(
        measurement="weighbridge_host",
        tags={**tags, "host": sample.host, "tier": sample.tier, "phase": sample.phase},
        fields={
            "cpus_used": used,
            "cpu_share": used / cpus if used is not None and cpus is not None else None,
            "disk_busy_share": max(_busy(one, sample.span_s) for one in disks) if disks else None,
            "read_bytes_s": sum(one.read_bytes for one in disks) / sample.span_s if disks else None,
            "written_bytes_s": sum(one.written_bytes for one in disks) / sample.span_s
            if disks
            else None,
            "received_bytes_s": _rate(sample.received_bytes, sample.span_s),
            "sent_bytes_s": _rate(sample.sent_bytes, sample.span_s),
            "memory_bytes": sample.memory_bytes,
            "memory_held_bytes": sample.memory_held_bytes,
        },
        at_ms=began_ms + round(sample.at_s * 1000),
    )


def _busy(disk: DiskSecond, span_s: float) -> float:
    """A disk's busy share: with short requests the kernel counts too many ticks."""
    return min(disk.busy_s, disk.waited_s, span_s) / span_s


def _rate(value: float | None, span_s: float) -> float | None:
    return None if value is None else value / span_s


def _lines(point: InfluxPoint) -> Iterator[str]:
    line = point.line
    if line is not None:
        yield line


def _ms_of(at: str) -> int:
    """Milliseconds since 1970 of a time in ISO 8601, by default UTC."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        raise InvalidMeasurement(f"{at!r} is not a time in ISO 8601: a point needs one") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
