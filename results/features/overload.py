"""Goodput over the offered rate: what each layout still serves when more is asked than it can.

A curve has the steps of workloads with `overload` that differ only in name, rate, connections and
times. Words follow from steps that can be judged: one whose driver was saturated, or with another
grave doubt, is shown and never part of a sentence. That goodput falls is claimed if it does over
the repeats; with few of them all is provisional.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from weighbridge.results.figures import metrics
from weighbridge.results.figures.doubt import (
    Doubt,
    doubt_brief,
    doubt_words,
    few,
    marks_of,
    power_words,
    touching,
)
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio, one_sample
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import requests_of
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import counted, listed, show_figure, show_share, upper
from weighbridge.results.run.step import driver_label
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    End,
    Panel,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartKind, ChartSource, place_of
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.section import Part, Section
from weighbridge.results.show.slide import Point, Series, Slide, SlideChart, Topic
from weighbridge.suites import Workload

KEPT: Final = 0.95
"""The share of the offered rate from which a layout keeps up with it."""
FALLEN: Final = 0.95
"""Goodput of at most this share of the best has fallen: as the bound of throughputs."""
SHARES: Final = tuple(metric.key for metric in metrics.SHARES)
"""Metrics of what became of the other requests, in % of those that were due."""
_MIN_PERCENT: Final = 0.5
"""Smaller shares are not named in sentences."""


@dataclass(frozen=True)
class OfferedPoint:
    """One layout at one rate."""

    offered_per_s: float
    row: Row

    @property
    def goodput(self) -> float:
        """In operations per second; 0 if unknown."""
        return self.row.value("goodput") or 0.0

    @property
    def judged(self) -> bool:
        return self.row.value("goodput") is not None and may_rank(self.row, "goodput")

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        return touching(self.row.doubts, "goodput")

    @property
    def note(self) -> str:
        """Why it is not judged, else what readers must know."""
        doubts = [doubt.words for doubt in self.doubts]
        return "; ".join(dict.fromkeys((*doubts, *self.row.notes)))

    @property
    def shares(self) -> str:
        """` (58 % refused, 12 % late)`: what became of the requests that do not count."""
        values = [(METRICS[key].name, self.row.value(key)) for key in SHARES]
        words = ", ".join(
            f"{show_figure(value, 2)} % {name}"
            for name, value in values
            if value is not None and value >= _MIN_PERCENT
        )
        return f" ({words})" if words else ""

    @property
    def rate(self) -> str:
        return f"{show_figure(self.offered_per_s)}/s"

    @property
    def served(self) -> str:
        """Its goodput, in words."""
        return f"{show_figure(self.row.value('goodput'))}/s"


@dataclass(frozen=True)
class GoodputCurve:
    """One layout at all rates, ascending."""

    layout: str
    points: tuple[OfferedPoint, ...]

    @property
    def judged(self) -> tuple[OfferedPoint, ...]:
        return tuple(point for point in self.points if point.judged)

    @property
    def kept(self) -> OfferedPoint | None:
        """The highest rate up to which it keeps up with every judged one; None: with none."""
        highest = None
        for point in self.judged:
            if point.goodput < KEPT * point.offered_per_s:
                break
            highest = point
        return highest

    @property
    def best(self) -> OfferedPoint | None:
        return max(self.judged, key=lambda point: point.goodput, default=None)

    @property
    def sentence(self) -> str:
        """What the curve shows, and what power cuts did to what is written, without a full stop."""
        marks = power_words(marks_of([point.row.power for point in self.points]))
        words = self._words()
        return f"{words}; {marks}" if marks else words

    def _words(self) -> str:
        judged, kept = self.judged, self.kept
        if not judged:
            why = next((point.note for point in self.points if point.note), "not measured")
            return f"{self.layout}: no rate can be judged: {why}"
        if kept is None:
            first = f"does not keep up even with {judged[0].rate}"
            first += f": its goodput is {judged[0].served} there"
        elif kept is judged[-1]:
            first = f"keeps up with every rate, up to {kept.rate}"
        else:
            first = f"keeps up to {kept.rate}"
        words = [f"{self.layout} {first}"]
        if kept is not judged[-1] and len(judged) > 1:
            words.append(self._beyond_words())
        lost = len(self.points) - len(judged)
        if lost:
            words.append(f"{counted(lost, 'rate')} of {len(self.points)} cannot be judged")
        doubts = [*few(min(point.row.repeats for point in judged))]
        doubts += [doubt for point in judged for doubt in point.doubts]
        words += [f"provisional: {doubt_words(doubts)}"] if doubts else []
        return "; ".join(words)

    def _beyond_words(self) -> str:
        """What becomes of goodput beyond the rate that it keeps up with."""
        last = self.judged[-1]
        best = max(self.judged, key=lambda point: point.goodput)
        if best is last:
            return f"its goodput is highest at {last.rate}, {last.served}{last.shares}"
        most = f"{best.served} at {best.rate}"
        repeats = [point.value("goodput") for point in last.row.used]
        if 0 in repeats:
            where = f" in {repeats.count(0)} of {counted(len(repeats), 'repeat')}"
            where = where if len(repeats) > 1 else ""
            text = f"goodput at {last.rate} is nothing{where}; its best is {most}"
            return f"{text}{last.shares}"
        fall = _fall(best, last)
        share = show_share(last.goodput / (best.goodput or 1.0))
        if fall is not None and fall.low is not None and fall.high is not None:
            share += f" ({100 * fall.low:.0f} to {100 * fall.high:.0f})"
        clear = fall is not None and (fall.high is None or fall.high < 1)
        if fall is not None and fall.value <= FALLEN and clear:
            text = f"goodput at {last.rate} falls to {share} of its best, {most}"
        elif last.goodput > FALLEN * best.goodput:
            text = f"beyond that its goodput holds: {last.served} at {last.rate}"
        else:
            text = f"at {last.rate} its goodput is {share} of its best, {most}: no clear fall"
        return f"{text}{last.shares}"


def _fall(best: OfferedPoint, last: OfferedPoint) -> Ratio | None:
    """Goodput at the highest judged rate over the best; None if a repeat served nothing."""
    now = {point.repeat: point.value("goodput") for point in last.row.used}
    then = {point.repeat: point.value("goodput") for point in best.row.used}
    ratios = [(now[repeat] or 0.0) / (then[repeat] or 1.0) for repeat in now if then.get(repeat)]
    if not ratios or min(ratios) <= 0:
        return None
    if len(ratios) == 1:
        return Ratio(value=ratios[0], repeats=1)
    return one_sample([math.log(ratio) for ratio in ratios]).ratio


@dataclass(frozen=True)
class OverloadKind:
    """One kind of requests, offered at several rates."""

    key: str
    about: str
    """`16 kB reads within 1 s`."""
    curves: tuple[GoodputCurve, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{self.about}: {curve.sentence}." for curve in self.curves)

    @property
    def best(self) -> str:
        """The best goodput of each layout, for a title; no ranking."""
        words = [
            f"{best.served} on {curve.layout}" for curve in self.curves if (best := curve.best)
        ]
        return f"The most {self.about}: {listed(words)}" if words else f"Goodput of {self.about}"

    @property
    def headline(self) -> str:
        """The best goodput with its doubts."""
        rows = [best.row for curve in self.curves if (best := curve.best)]
        doubts = [*touching([doubt for row in rows for doubt in row.doubts], "goodput")]
        doubts += [doubt for row in rows for doubt in few(row.repeats)]
        return f"{self.best} ({doubt_brief(doubts)})" if doubts else self.best


@of_run
def overloads(data: RunData) -> tuple[OverloadKind, ...]:
    """Goodput by offered rate, without A/A controls; none without workloads with `overload`."""
    plan = data.plan
    workloads = {one.name: one for one in plan.suite.workloads if one.overload is not None}
    kinds: dict[tuple[object, ...], list[tuple[Workload, Row]]] = {}
    for row in data.rows:
        workload = workloads.get(row.workload)
        if workload is not None and row.layout not in plan.twins:
            alike = workload.model_dump_json(
                exclude={"name", "rate_per_s", "workers", "runtime", "warmup"}
            )
            kind = (alike, row.operation, row.api, row.driver)
            kinds.setdefault(kind, []).append((workload, row))
    rows = [row for steps in kinds.values() for _, row in steps]
    apis, drivers = len({row.api for row in rows}) > 1, len({row.driver for row in rows}) > 1
    return tuple(_kind(steps, api=apis, driver=drivers) for steps in kinds.values())


def _kind(steps: Sequence[tuple[Workload, Row]], *, api: bool, driver: bool) -> OverloadKind:
    workload, first = steps[0]
    about = requests_of(first.operation, first.object_size_bytes)
    if workload.overload is not None and workload.overload.within is not None:
        about += f" within {workload.overload.within:g} s"
    about += f" over {first.api}" if api else ""
    about += f" by {driver_label(first.driver)}" if driver else ""
    points: dict[str, list[OfferedPoint]] = {}
    for offered, row in steps:
        # A mixed workload offers each operation its share of the rate.
        share = offered.operations[row.operation] / sum(offered.operations.values())
        point = OfferedPoint((offered.rate_per_s or 0.0) * share, row)
        points.setdefault(row.layout, []).append(point)
    return OverloadKind(
        key=f"{first.workload}-{first.operation}-{first.api}-{first.driver}",
        about=about,
        curves=tuple(
            GoodputCurve(layout, tuple(sorted(own, key=lambda point: point.offered_per_s)))
            for layout, own in points.items()
        ),
    )


_NAMED_PERCENT: Final = 5.0
"""Refusals from this share on are written beside a point."""


def goodput_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run with workloads that may be beyond capacity; else none."""
    kinds, repeats = overloads(source.data), source.plan.suite.repeats
    if not kinds:
        return ()
    bars = "Bars: 95 % interval over the repeats." if repeats > 1 else "One repeat."
    short = ""
    if repeats < REPEATS_FOR_A_CLAIM:
        short = f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
    chart = Chart(
        key="goodput-over-rate",
        title="Goodput over the offered rate",
        finding="; ".join(kind.headline for kind in kinds),
        caption="Requests come at a constant rate, and latency counts from their intended start. "
        f"Dotted: everything is served. Beside points: refused requests. {bars} "
        f"Hollow: provisional. ×: cannot be judged.{short}",
        panels=tuple(map(_panel, kinds)),
        layouts=source.layouts,
    )
    return (chart,)


def _panel(kind: OverloadKind) -> Panel:
    points = [point for curve in kind.curves for point in curve.points]
    most = max(point.row.figure("goodput").high or point.goodput for point in points)
    x = AxisScale.from_zero(max(point.offered_per_s for point in points), "offered, op/s")
    y = AxisScale.from_zero((most or 1.0) * 1.1, "goodput, op/s")
    column = METRICS["goodput"].column
    low, high = METRICS["goodput"].spread_columns
    served = layer("line", "uncounted", x="at", y="at", color=MUTED)
    served["data"] = {"values": [{"at": 0.0}, {"at": min(x.high, y.high)}]}
    interval = layer("rule", "interval", f"isValid(datum.{high})", y=low, y2=high)
    line = layer("line", "path", "isValid(datum._stretch)", y=column, detail="_stretch")
    refused = layer("text", "note", "isValid(datum._text)", y=column, text="_text")
    shares = [
        f"{show_share(curve.judged[-1].goodput / curve.best.goodput)} {curve.layout}"
        for curve in kind.curves
        if curve.best is not None and curve.best.goodput
    ]
    axis = {**x.encoding(), "field": "offered_ops_s"}
    return Panel(
        key=kind.key,
        title=upper(kind.about),
        finding=f"of its best at the highest rate: {', '.join(shares)}" if shares else "",
        rows=[row for curve in kind.curves for row in _rows(curve)],
        spec={
            "encoding": {"x": axis, "y": y.encoding(), "color": COLOUR},
            "layer": [served, interval, line, *standing_layers(column), refused],
        },
        ends=tuple(map(_end, kind.curves)),
        y=y,
        alt_text=" ".join(kind.sentences),
    )


def _rows(curve: GoodputCurve) -> Iterator[dict[str, Any]]:
    goodput = METRICS["goodput"]
    low, high = goodput.spread_columns
    for number, (judged, points) in enumerate(groupby(curve.points, lambda point: point.judged)):
        for point in points:
            figure, refused = point.row.figure("goodput"), point.row.value("refused")
            named = judged and refused is not None and refused >= _NAMED_PERCENT
            standing = PROVISIONAL if point.doubts else COMPARABLE
            yield {
                **place_of(point.row),
                "offered_ops_s": point.offered_per_s,
                goodput.column: figure.value,
                low: figure.low if judged else None,
                high: figure.high if judged else None,
                **{METRICS[key].column: point.row.value(key) for key in SHARES},
                "standing": standing if judged else NOT_COMPARABLE,
                "note": point.note,
                "_at": point.goodput,
                "_stretch": f"{curve.layout}-{number}" if judged else None,
                "_text": f"{show_figure(refused, 2)} % refused" if named else None,
            }


def _end(curve: GoodputCurve) -> End:
    last, kept = (curve.judged or curve.points)[-1], curve.kept
    note = "" if kept is None else f"keeps up to {kept.rate}"
    return End(curve.layout, last.offered_per_s, last.goodput, note)


def overload_topic(data: RunData) -> Topic | None:
    """What is still served when more is asked than can be."""
    slides = tuple(map(_slide, overloads(data)))
    if not slides:
        return None
    question = "What does each still serve when more is asked than it can?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _slide(kind: OverloadKind) -> Slide:
    series = []
    caveats: list[str] = []
    for curve in kind.curves:
        points = []
        for point in curve.judged:
            figure = point.row.figure("goodput")
            points.append(Point(point.offered_per_s, figure.value or 0.0, figure.low, figure.high))
            doubts = [*point.doubts, *few(point.row.repeats)]
            caveats += [upper(doubt_brief(doubts))] if doubts else []
        series += [Series(curve.layout, tuple(points), curve.layout)] if points else []
    chart = SlideChart("paths", "goodput, /s", tuple(series), "offered, /s")
    return Slide(
        title=kind.best,
        caveat="; ".join(dict.fromkeys(caveats)),
        charts=(chart,) if series else (),
        lines=() if series else kind.sentences,
        foot="Whiskers: 95 % interval.",
        notes=kind.sentences,
    )


def overload_sections(data: RunData) -> Iterator[Section]:
    """Beyond capacity; none where no workload was offered more than it can take."""
    sentences = [text for kind in overloads(data) for text in kind.sentences]
    part = Part(
        sentences=sentences,
        foot="Keeps up: goodput is at least 95 % of the offered rate. The chart “Goodput over the "
        "offered rate” has the data.",
    )
    if sentences:
        yield Section("overload", "Beyond capacity", (part,), sentences, first=True)


FEATURE: Final = Feature(
    answer=lambda data: "; ".join(kind.headline for kind in overloads(data)),
    charts={"goodput-over-rate": ChartKind(goodput_chart)},
    sections=overload_sections,
    topic=overload_topic,
)
