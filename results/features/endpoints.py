"""How several endpoints of a gateway shared the requests: of a step, and over its repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure
from weighbridge.results.run.step import EndpointTally, StepKey, StepResult
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.tables import endpoint_p90


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
        p90_ms, fault = endpoint_p90(same)
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


ENDPOINT_HEAD: Final = (
    "Workload",
    "API",
    "Workers",
    "Layout",
    "Endpoint",
    "Requests",
    "Share",
    "p90 ms",
    "Busiest / mean",
    "Failures",
)
ENDPOINT_NUMBERS: Final = (2, 5, 6, 7, 8)


def endpoint_lines(found: Sequence[EndpointUse]) -> tuple[tuple[str, ...], ...]:
    """The cells of each endpoint of each step, over all its repeats."""
    return tuple(
        (
            one.workload,
            one.api,
            str(one.workers),
            one.layout,
            one.name,
            str(one.count),
            f"{one.share:.1%}",
            UNKNOWN if one.p90_ms is None else show_figure(one.p90_ms),
            UNKNOWN if one.imbalance is None else f"{one.imbalance:.2f}",
            one.words or "none",
        )
        for one in found
    )


def endpoint_sections(data: RunData) -> Iterator[Section]:
    """What each of several endpoints served; none where there is one."""
    lines = endpoint_lines(endpoint_use(data.steps.values()))
    grid = Grid("What each endpoint served", ENDPOINT_HEAD, lines, ENDPOINT_NUMBERS)
    text = (
        "Requests went to several endpoints of a gateway without a front. Sums of all repeats; all "
        "operations of a workload together."
    )
    if lines:
        yield Section(
            "endpoints", "Several endpoints", (Part(text=text, grids=(grid,)),), folded=True
        )


FEATURE: Final = Feature(sections=endpoint_sections)
