"""Goodput over the offered rate: what each layout still serves when more is asked than it can.

A curve has the steps of workloads with `overload` that differ only in name, rate, connections and
times. Words follow from steps that can be judged: one whose driver was saturated, or with another
grave doubt, is shown and never part of a sentence. That goodput falls is claimed if it does over
the repeats; with few of them all is provisional.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from pydantic import PositiveFloat

from weighbridge.common.record import Record
from weighbridge.results.figures import metrics
from weighbridge.results.figures.doubt import doubt_brief, few, touching
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.power_mark import marks_of, power_words
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio, one_sample
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import requests_of
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import counted, listed, show_figure, upper
from weighbridge.results.run import ResolvedPlan
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
SHARES: Final = tuple(one.key for one in metrics.SHARES)
"""Metrics of what became of the other requests, in % of those that were due."""
_LEAST_PERCENT: Final = 0.5
"""Smaller shares are not named in sentences."""


class OfferedPoint(Record):
    """One layout at one rate. `refused` is in % of the requests that were due."""

    offered_per_s: PositiveFloat
    row: Row

    @property
    def goodput(self) -> float | None:
        """In operations per second; None if unknown."""
        return self.row.value("goodput")

    @property
    def refused(self) -> float | None:
        """Requests that were refused, in % of those that were due; None if unknown."""
        return self.row.value("refused")

    @property
    def judged(self) -> bool:
        return self.goodput is not None and may_rank(self.row, "goodput")

    @property
    def note(self) -> str:
        """Why it is not judged, else what readers must know."""
        doubts = [one.words for one in touching(self.row.doubts, "goodput")]
        return "; ".join(dict.fromkeys((*doubts, *self.row.notes)))

    @property
    def shares(self) -> str:
        """`58 % refused, 12 % late`: what became of the requests that do not count."""
        known = [(METRICS[key].name, self.row.value(key)) for key in SHARES]
        return ", ".join(
            f"{show_figure(value, 2)} % {name}"
            for name, value in known
            if value is not None and value >= _LEAST_PERCENT
        )


class GoodputCurve(Record):
    """One layout at all rates, ascending."""

    layout: str
    points: tuple[OfferedPoint, ...]

    @property
    def judged(self) -> tuple[OfferedPoint, ...]:
        return tuple(point for point in self.points if point.judged)

    @property
    def kept(self) -> OfferedPoint | None:
        """The highest rate up to which it keeps up with every judged one; None: with none."""
        found = None
        for point in self.judged:
            if (point.goodput or 0.0) < KEPT * point.offered_per_s:
                break
            found = point
        return found

    @property
    def best(self) -> OfferedPoint | None:
        return max(self.judged, key=lambda point: point.goodput or 0.0, default=None)

    @property
    def fall(self) -> Ratio | None:
        """Goodput at the highest judged rate divided by the best, repeat by repeat; None if they
        are the same point, and if a repeat served nothing.
        """
        best = self.best
        if best is None or best is self.judged[-1]:
            return None
        now = {one.repeat: one.value("goodput") for one in self.judged[-1].row.used}
        then = {one.repeat: one.value("goodput") for one in best.row.used}
        ratios = [
            (now[repeat] or 0.0) / (then[repeat] or 1.0) for repeat in now if then.get(repeat)
        ]
        if not ratios or min(ratios) <= 0:
            return None
        if len(ratios) == 1:
            return Ratio(value=ratios[0], repeats=1)
        return one_sample([math.log(ratio) for ratio in ratios]).ratio

    @property
    def sentence(self) -> str:
        """What the curve shows, and what power cuts did to what is written, without a full stop."""
        marks = power_words(marks_of([point.row.power for point in self.points]))
        return f"{self._shown_words}; {marks}" if marks else self._shown_words

    @property
    def _shown_words(self) -> str:
        judged = self.judged
        if not judged:
            why = next((point.note for point in self.points if point.note), "not measured")
            return f"{self.layout}: no rate can be judged: {why}"
        words = [f"{self.layout} {self._kept_words()}", *self._beyond_words()]
        lost = len(self.points) - len(judged)
        if lost:
            words.append(f"{counted(lost, 'rate')} of {len(self.points)} cannot be judged")
        return f"{'; '.join(words)}{self._doubt_words()}"

    def _kept_words(self) -> str:
        kept, last = self.kept, self.judged[-1]
        if kept is None:
            first = self.judged[0]
            return (
                f"does not keep up even with {show_figure(first.offered_per_s)}/s: its goodput is "
                f"{show_figure(first.goodput)}/s there"
            )
        if kept is last:
            return f"keeps up with every rate, up to {show_figure(last.offered_per_s)}/s"
        return f"keeps up to {show_figure(kept.offered_per_s)}/s"

    def _beyond_words(self) -> Iterator[str]:
        """What becomes of goodput beyond the rate that it keeps up with."""
        best, last = self.best, self.judged[-1]
        if best is None or self.kept is last or len(self.judged) == 1:
            return
        at = f"at {show_figure(last.offered_per_s)}/s"
        shares = f" ({last.shares})" if last.shares else ""
        most = f"{show_figure(best.goodput)}/s at {show_figure(best.offered_per_s)}/s"
        if best is last:
            yield f"its goodput is highest {at}, {show_figure(best.goodput)}/s{shares}"
            return
        served = [one.value("goodput") for one in last.row.used]
        if 0 in served:
            repeats = f" in {served.count(0)} of {counted(len(served), 'repeat')}"
            where = repeats if len(served) > 1 else ""
            yield f"goodput {at} is nothing{where}; its best is {most}{shares}"
            return
        fall = self.fall
        share = f"{100 * (last.goodput or 0.0) / (best.goodput or 1.0):.0f} %"
        span = (
            f" ({100 * fall.low:.0f} to {100 * fall.high:.0f})"
            if fall is not None and fall.low is not None and fall.high is not None
            else ""
        )
        clear = fall is not None and (fall.high is None or fall.high < 1)
        if fall is not None and fall.value <= FALLEN and clear:
            yield f"goodput {at} falls to {share}{span} of its best, {most}{shares}"
        elif (last.goodput or 0.0) > FALLEN * (best.goodput or 0.0):
            yield f"beyond that its goodput holds: {show_figure(last.goodput)}/s {at}{shares}"
        else:
            yield f"{at} its goodput is {share}{span} of its best, {most}: no clear fall{shares}"

    def _doubt_words(self) -> str:
        doubts = [
            f"{one.what}: {one.words}"
            for point in self.judged
            for one in touching(point.row.doubts, "goodput")
        ]
        repeats = min(point.row.repeats for point in self.judged)
        if (short := few(repeats)) is not None:
            doubts.insert(0, f"{short.what}: {short.words}")
        return f"; provisional: {'; '.join(dict.fromkeys(doubts))}" if doubts else ""


class OverloadKind(Record):
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
        known = [(curve.layout, point) for curve in self.curves if (point := curve.best)]
        words = [f"{show_figure(point.goodput)}/s on {layout}" for layout, point in known]
        return f"The most {self.about}: {listed(words)}" if words else f"Goodput of {self.about}"

    @property
    def headline(self) -> str:
        """The same with its doubts."""
        rows = [point.row for curve in self.curves if (point := curve.best)]
        short = [few(row.repeats) for row in rows]
        doubts = [*touching([doubt for row in rows for doubt in row.doubts], "goodput")]
        brief = doubt_brief([*doubts, *(doubt for doubt in short if doubt is not None)])
        return f"{self.best} ({brief})" if brief else self.best


@of_run
def overloads(data: RunData) -> tuple[OverloadKind, ...]:
    """Goodput over the offered rate; none without workloads that may be beyond capacity."""
    return overload_of(data.plan, data.rows)


def overload_of(plan: ResolvedPlan, rows: Sequence[Row]) -> tuple[OverloadKind, ...]:
    """The curves of a run, without its A/A controls; none without workloads with `overload`."""
    workloads = {one.name: one for one in plan.suite.workloads if one.overload is not None}
    kinds: dict[tuple[object, ...], list[tuple[Workload, Row]]] = {}
    for row in rows:
        workload = workloads.get(row.workload)
        if workload is not None and row.layout not in plan.twins:
            same = workload.model_dump_json(
                exclude={"name", "rate_per_s", "workers", "runtime", "warmup"}
            )
            kind = (same, row.operation, row.api, row.driver)
            kinds.setdefault(kind, []).append((workload, row))
    apis = len({row.api for found in kinds.values() for _, row in found}) > 1
    drivers = len({row.driver for found in kinds.values() for _, row in found}) > 1
    return tuple(_kind(found, api=apis, driver=drivers) for found in kinds.values())


def _kind(found: Sequence[tuple[Workload, Row]], *, api: bool, driver: bool) -> OverloadKind:
    workload, first = found[0]
    about = requests_of(first.operation, first.object_size_bytes)
    if workload.overload is not None and workload.overload.within is not None:
        about += f" within {workload.overload.within:g} s"
    about += f" over {first.api}" if api else ""
    about += f" by {driver_label(first.driver)}" if driver else ""
    points: dict[str, list[OfferedPoint]] = {}
    for one, row in found:
        # A mixed workload offers each operation its share of the rate.
        share = one.operations[row.operation] / sum(one.operations.values())
        point = OfferedPoint(offered_per_s=(one.rate_per_s or 0.0) * share, row=row)
        points.setdefault(row.layout, []).append(point)
    return OverloadKind(
        key=f"{first.workload}-{first.operation}-{first.api}-{first.driver}",
        about=about,
        curves=tuple(
            GoodputCurve(
                layout=layout,
                points=tuple(sorted(mine, key=lambda point: point.offered_per_s)),
            )
            for layout, mine in points.items()
        ),
    )


_NAMED_PERCENT: Final = 5.0
"""Refusals from this share on are written beside a point."""


def goodput_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run with workloads that may be beyond capacity; else none."""
    kinds, repeats = overloads(source.data), source.plan.suite.repeats
    if not kinds:
        return ()
    bars = " Bars: 95 % interval over the repeats." if repeats > 1 else " One repeat."
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    chart = Chart(
        key="goodput-over-rate",
        title="Goodput over the offered rate",
        finding="; ".join(kind.headline for kind in kinds),
        caption="Requests come at a constant rate, and latency counts from their intended start. "
        f"Dotted: everything is served. Beside points: refused requests.{bars} "
        f"Hollow: provisional. ×: cannot be judged.{few}",
        panels=tuple(_panel(kind) for kind in kinds),
        layouts=source.layouts,
    )
    return (chart,)


def _panel(kind: OverloadKind) -> Panel:
    points = [point for curve in kind.curves for point in curve.points]
    most = max((point.row.figure("goodput").high or point.goodput or 0.0) for point in points)
    x = AxisScale.from_zero(max(point.offered_per_s for point in points), "offered, op/s")
    y = AxisScale.from_zero((most or 1.0) * 1.1, "goodput, op/s")
    column = METRICS["goodput"].column
    low, high = METRICS["goodput"].spread_columns
    end = min(x.high, y.high)
    served = layer("line", "uncounted", x="at", y="at", color=MUTED)
    served["data"] = {"values": [{"at": 0.0}, {"at": end}]}
    interval = layer("rule", "interval", f"isValid(datum.{high})", y=low, y2=high)
    interval["mark"]["clip"] = True
    line = layer("line", "path", "isValid(datum._stretch)", y=column)
    line["encoding"]["detail"] = {"field": "_stretch", "type": "nominal"}
    refused = layer("text", "note", "isValid(datum._text)", y=column, text="_text")
    return Panel(
        key=kind.key,
        title=upper(kind.about),
        finding=_finding(kind),
        rows=[row for curve in kind.curves for row in _rows(curve)],
        spec={
            "encoding": {
                "x": {**x.encoding(), "field": "offered_ops_s"},
                "y": y.encoding(),
                "color": COLOUR,
            },
            "layer": [served, interval, line, *standing_layers(column), refused],
        },
        ends=tuple(_end(curve) for curve in kind.curves),
        y=y,
        alt_text=" ".join(kind.sentences),
    )


def _rows(curve: GoodputCurve) -> Iterator[dict[str, Any]]:
    goodput = METRICS["goodput"]
    groups = groupby(curve.points, lambda point: point.judged)
    for number, (judged, group) in enumerate(groups):
        for point in group:
            figure = point.row.figure("goodput")
            doubted = bool(touching(point.row.doubts, "goodput"))
            named = judged and point.refused is not None and point.refused >= _NAMED_PERCENT
            yield {
                **place_of(point.row),
                "offered_ops_s": point.offered_per_s,
                goodput.column: point.goodput,
                goodput.spread_columns[0]: figure.low if judged else None,
                goodput.spread_columns[1]: figure.high if judged else None,
                **{METRICS[key].column: point.row.value(key) for key in SHARES},
                "standing": NOT_COMPARABLE
                if not judged
                else PROVISIONAL
                if doubted
                else COMPARABLE,
                "note": point.note,
                "_at": point.goodput or 0.0,
                "_stretch": f"{curve.layout}-{number}" if judged else None,
                "_text": f"{show_figure(point.refused, 2)} % refused" if named else None,
            }


def _end(curve: GoodputCurve) -> End:
    drawn = curve.judged or curve.points
    last, kept = drawn[-1], curve.kept
    note = "" if kept is None else f"keeps up to {show_figure(kept.offered_per_s)}/s"
    return End(curve.layout, last.offered_per_s, last.goodput or 0.0, note)


def _finding(kind: OverloadKind) -> str:
    """The range of what the layouts keep of their best at the highest rate."""
    shares = [
        f"{100 * (curve.judged[-1].goodput or 0.0) / curve.best.goodput:.0f} % {curve.layout}"
        for curve in kind.curves
        if curve.best is not None and curve.best.goodput
    ]
    return f"of its best at the highest rate: {', '.join(shares)}" if shares else ""


def overload_topic(data: RunData) -> Topic | None:
    """What is still served when more is asked than can be."""
    slides = tuple(_goodput(kind) for kind in overloads(data))
    if not slides:
        return None
    question = "What does each still serve when more is asked than it can?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _goodput(kind: OverloadKind) -> Slide:
    series = []
    caveats: list[str] = []
    for curve in kind.curves:
        points = []
        for point in curve.judged:
            figure, short = point.row.figure("goodput"), few(point.row.repeats)
            points.append(Point(point.offered_per_s, figure.value or 0.0, figure.low, figure.high))
            doubts = [*touching(point.row.doubts, "goodput"), *([short] if short else [])]
            caveats += [upper(doubt_brief(doubts))] if doubts else []
        series += [Series(curve.layout, tuple(points), curve.layout)] if points else []
    return Slide(
        title=kind.best,
        caveat="; ".join(dict.fromkeys(caveats)),
        charts=(SlideChart("paths", "goodput, /s", tuple(series), "offered, /s"),)
        if series
        else (),
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
