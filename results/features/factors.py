"""What ways to sign requests and to encrypt objects cost the clients and the gateway: workloads
that differ in nothing but `signing`, or `encryption`, each beside the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.figures.statistics import Ratio, geometric_mean, ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.visit import JudgedStep
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.report import ratio_cell, ratio_times
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.suites import Factor, Suite, Workload
from weighbridge.suites.factors import FACTORS

_Place = tuple[str, str, int, str]
"""Layout, driver, worker count and workload of S3 requests to gateways."""


class FactorCost(Record):
    """One way of a factor at one step of a layout: geometric means of the repeats that count."""

    factor: str
    layout: str
    driver: str
    workload: str
    workers: int
    label: str
    beside: str
    """The way that it is compared with."""
    repeats: int
    client_us: float | None
    """CPU microseconds of the load generator for a successful operation."""
    gateway_us: float | None
    """The same of all gateway hosts; None if they were not sampled."""
    p90_ms: float | None
    """Of the workload's operation; None if it has several."""
    ops_s: float | None
    client: Ratio | None = None
    gateway: Ratio | None = None
    """Its cost divided by that of the way beside; None for that one, if unknown or not ranked."""
    verdict: Literal["ranked", "provisional", "not ranked"]
    doubts: tuple[str, ...] = ()


def variant_groups(suite: Suite, factor: Factor) -> tuple[tuple[Workload, ...], ...]:
    """The workloads that differ in nothing but name and a factor, in the suite's order."""
    groups: dict[str, list[Workload]] = {}
    for one in suite.workloads:
        alike = one.model_copy(update={"name": "", factor.key: factor.usual})
        groups.setdefault(alike.model_dump_json(), []).append(one)
    several = (
        group
        for group in groups.values()
        if len({str(getattr(one, factor.key)) for one in group}) > 1
    )
    return tuple(tuple(group) for group in several)


def factor_costs(
    factor: Factor,
    suite: Suite,
    steps: Mapping[StepKey, StepResult],
    visits: Mapping[StepKey, JudgedStep],
    rows: Sequence[Row],
) -> tuple[FactorCost, ...]:
    """What each way of a factor costs, layout by layout; empty where there is only one way."""
    keys: dict[_Place, list[StepKey]] = {}
    for key in steps:
        if key.api == "s3" and key.layer is None and key.rate_per_s is None:
            place = (key.layout, key.driver, key.workers)
            keys.setdefault((*place, key.workload), []).append(key)
    lines: dict[_Place, list[Row]] = {}
    for row in rows:
        if row.api == "s3" and row.layer is None:
            lines.setdefault((row.layout, row.driver, row.workers, row.workload), []).append(row)
    found: list[FactorCost] = []
    for group in variant_groups(suite, factor):
        names = [one.name for one in group]
        places = dict.fromkeys(place[:3] for place in keys if place[3] in names)
        for layout, driver, workers in places:
            first: _Cost | None = None
            for one in group:
                at = (layout, driver, workers, one.name)
                cost = _Cost(keys.get(at, ()), steps, visits, lines.get(at, ()))
                first = first or cost
                found.append(
                    FactorCost(
                        factor=factor.key,
                        layout=layout,
                        driver=driver,
                        workload=one.name,
                        workers=workers,
                        label=suite.factor_label(factor, one),
                        beside=suite.factor_label(factor, group[0]),
                        repeats=cost.repeats,
                        client_us=_mean(cost.client_us),
                        gateway_us=_mean(cost.gateway_us),
                        p90_ms=cost.p90_ms,
                        ops_s=_mean(cost.ops_s),
                        client=cost.beside(first, cost.client_us, first.client_us),
                        gateway=cost.beside(first, cost.gateway_us, first.gateway_us),
                        verdict=cost.verdict,
                        doubts=cost.doubts,
                    )
                )
    return tuple(found)


class _Cost:
    """The figures of a way at a step, repeat by repeat."""

    def __init__(
        self,
        keys: Iterable[StepKey],
        steps: Mapping[StepKey, StepResult],
        visits: Mapping[StepKey, JudgedStep],
        rows: Sequence[Row],
    ) -> None:
        self.client_us: list[float] = []
        self.gateway_us: list[float] = []
        self.ops_s: list[float] = []
        self.repeats = 0
        self.ranked = bool(rows) and all(row.ranked for row in rows)
        self.doubts = tuple(dict.fromkeys(one.words for row in rows for one in row.doubts))
        self.p90_ms = rows[0].value("p90") if len(rows) == 1 else None
        counted = {point.repeat for row in rows for point in row.used if point.valid}
        for key in keys:
            measured, visit = steps[key].measurement, visits.get(key)
            if measured is None or visit is None or not measured.done:
                continue
            if key.repeat not in counted:
                continue
            self.repeats += 1
            self.ops_s.append(measured.done / measured.window_s)
            if measured.driver_cpu_us_per_op is not None:
                self.client_us.append(measured.driver_cpu_us_per_op)
            if visit.use is not None and visit.use.gateway_cpu_s:
                self.gateway_us.append(visit.use.gateway_cpu_s / measured.done * 1e6)

    @property
    def verdict(self) -> Literal["ranked", "provisional", "not ranked"]:
        if not self.ranked:
            return "not ranked"
        return "provisional" if self.doubts else "ranked"

    def beside(self, first: _Cost, mine: Sequence[float], its: Sequence[float]) -> Ratio | None:
        """How many times the first way's figures, `its`, this one's are."""
        if first is self or not (mine and its and self.ranked and first.ranked):
            return None
        return ratio(mine, its)


def _mean(values: Sequence[float]) -> float | None:
    return geometric_mean(values) if values else None


FACTOR_NUMBERS: Final = (1, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class FactorSection:
    """The section of a factor; `differs` ends a sentence about its workloads."""

    key: str
    column: str
    differs: str
    client: str
    """Why ways differ for the load generator."""
    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()


_SECTIONS: Final = (
    FactorSection(
        "signing",
        "Signing",
        "in how S3 requests are signed and checked",
        "which hashes and signs every request",
    ),
    FactorSection(
        "encryption",
        "Encryption",
        "in how stores are asked to encrypt S3 objects",
        "which sends the headers that ask for it",
    ),
)


def _costs(data: RunData) -> Iterator[FactorCost]:
    for factor in FACTORS:
        yield from factor_costs(factor, data.plan.suite, data.steps, data.visits, data.rows)


def factor_sections(every: Iterable[FactorCost]) -> Iterator[Section]:
    """A section for each factor of which several ways were measured."""
    costs = list(every)
    for about in _SECTIONS:
        found = [cost for cost in costs if cost.factor == about.key]
        title = f"What {about.key} costs"
        part = Part(
            text=f"Workloads that differ only {about.differs}, each beside the first of them. CPU "
            f"for a successful operation: of the load generator, {about.client}, and of all "
            "gateway hosts. Geometric means of the repeats that count; factors with their 95 % "
            "intervals, each for its own cell alone.",
            sentences=factor_sentences(found),
            grids=(
                Grid(
                    f"What each way costs: {about.key}",
                    _head(about.column),
                    factor_lines(found),
                    FACTOR_NUMBERS,
                ),
            ),
        )
        if found:
            yield Section(about.key, title, (part,))


def factor_lines(found: Sequence[FactorCost]) -> tuple[tuple[str, ...], ...]:
    """The cells of each way, over its repeats."""
    return tuple(
        (
            one.workload,
            str(one.workers),
            one.layout,
            one.label,
            show_figure(one.client_us),
            _beside(one, one.client),
            show_figure(one.gateway_us),
            _beside(one, one.gateway),
            show_figure(one.ops_s),
            show_figure(one.p90_ms),
            one.verdict,
        )
        for one in found
    )


def factor_sentences(found: Sequence[FactorCost]) -> tuple[str, ...]:
    """What was found of the costs, one sentence for each way and step with known ratios."""
    return tuple(
        f"{one.workload} on {one.layout}, {counted(one.workers, 'worker')}, beside {one.beside}: "
        + ", ".join(
            f"{who} CPU for an operation is {ratio_times(known)}"
            for who, known in (("client", one.client), ("gateway", one.gateway))
            if known is not None
        )
        + (f". Provisional: {'; '.join(one.doubts)}." if one.doubts else ".")
        for one in found
        if one.client is not None or one.gateway is not None
    )


def _head(column: str) -> tuple[str, ...]:
    return (
        "Workload",
        "Workers",
        "Layout",
        column,
        "Client CPU µs/op",
        "beside the first",
        "Gateway CPU µs/op",
        "beside the first",
        "op/s",
        "p90 ms",
        "Verdict",
    )


def _beside(one: FactorCost, known: Ratio | None) -> str:
    if known is None:
        return "1" if one.label == one.beside else UNKNOWN
    return ratio_cell(known)


FEATURE: Final = Feature(sections=lambda data: factor_sections(_costs(data)))
