"""How several endpoints of a gateway shared the requests: of a step, and over its repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.validity import least_samples
from weighbridge.results.figures import counted
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import EndpointTally
from weighbridge.results.record.step import StepKey, StepResult


class EndpointUse(Record):
    """One endpoint over all repeats of a step: sums of counts, and p90 of all latencies."""

    layout: str
    api: str
    workload: str
    workers: int
    name: str
    count: int
    share: float
    """Of the successes at all endpoints, from 0 to 1."""
    errors: dict[str, int]
    p90_ms: float | None
    """None with too few samples, or if a histogram cannot be read: `fault` says why."""
    fault: str = ""
    imbalance: float | None
    """How many times the mean of all endpoints the busiest one served, over all repeats."""
    left_out: int
    """Repeats in which it was left out."""

    @property
    def words(self) -> str:
        parts = [f"{count} {name}" for name, count in sorted(self.errors.items())]
        left_out = [f"left out in {counted(self.left_out, 'repeat')}"] if self.left_out else []
        return ", ".join([*parts, *left_out, *([self.fault] if self.fault else [])])


def endpoint_text(one: EndpointTally) -> str:
    """One endpoint of a step, for tables."""
    p90_ms, fault = _p90([one])
    parts = [
        f"{one.count} succeeded",
        *([f"p90 {p90_ms:.3g} ms"] if p90_ms is not None else []),
        *([fault] if fault else []),
        *(f"{count} {name}" for name, count in sorted(one.errors.items())),
        *(["left out"] if one.left_out else []),
    ]
    return f"{one.name}: {', '.join(parts)}"


def endpoint_use(steps: Iterable[StepResult]) -> tuple[EndpointUse, ...]:
    """How endpoints were used, step by step in their order; empty where each layout has one."""
    found: dict[tuple[str, ...], dict[str, list[EndpointTally]]] = {}
    keys: dict[tuple[str, ...], StepKey] = {}
    for step in steps:
        if step.measurement is None or not step.measurement.endpoints:
            continue
        key = step.key
        place = (key.layout, key.api, key.driver, str(key.layer), key.workload, str(key.workers))
        keys.setdefault(place, key)
        for one in step.measurement.endpoints:
            found.setdefault(place, {}).setdefault(one.name, []).append(one)
    return tuple(line for place, by_name in found.items() for line in _lines(keys[place], by_name))


def _lines(key: StepKey, by_name: dict[str, list[EndpointTally]]) -> list[EndpointUse]:
    counts = {name: sum(one.count for one in same) for name, same in by_name.items()}
    total = sum(counts.values())
    imbalance = max(counts.values()) * len(counts) / total if total else None
    lines = []
    for name, same in by_name.items():
        errors: Counter[str] = Counter()
        for one in same:
            errors.update(one.errors)
        p90_ms, fault = _p90(same)
        lines.append(
            EndpointUse(
                layout=key.layout,
                api=key.api,
                workload=key.workload,
                workers=key.workers,
                name=name,
                count=counts[name],
                share=counts[name] / total if total else 0.0,
                errors=dict(errors),
                p90_ms=p90_ms,
                fault=fault,
                imbalance=imbalance,
                left_out=sum(one.left_out for one in same),
            )
        )
    return lines


def _p90(same: Sequence[EndpointTally]) -> tuple[float | None, str]:
    """The p90 in ms of all latencies, None with too few; and why they cannot be read."""
    try:
        merged = Histogram.merged(
            Histogram.decode(one.latency) for one in same if one.latency is not None
        )
    except InvalidMeasurement as error:
        return None, f"latencies unreadable: {error}"
    if merged.count < least_samples(90):
        return None, ""
    return merged.percentile_us(90) / 1000, ""
