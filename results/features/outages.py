"""What it means that something dies while load runs: each layout's figures, and its seconds.

Over repeats figures are medians with their range, since a time until something was noticed has few
values and no bell. Layouts are compared by the longest stall, the time to detect and the time to
90 %, as any other metric is: with the same tests, doubts, correction and noise floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, pairwise
from statistics import mean, median
from typing import Any, Final, get_args

from weighbridge.results.figures.doubt import Doubt, PairDoubt, doubt_brief, few
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.reading import OutageSecond, Times, figures, series, times_of
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.validity import class_words
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, Verdict, kind_of, subjects
from weighbridge.results.judge.host_equality import unequal_shares
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.judge.trust import TrustSign, rows_left_out, steadiness_words, trust
from weighbridge.results.numbers import UNKNOWN, counted, grouped, show_figure, upper
from weighbridge.results.run import StepKey, Telemetry
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.results.show.chart import (
    BAD,
    COLOUR,
    FULL_HEIGHT,
    MUTED,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.section import Grid, Part, Section, grid_of
from weighbridge.results.show.slide import Point, Slide, SlideCard, Topic, bar_chart
from weighbridge.results.show.table import Cell, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, doubt_texts

STORING: Final = ("storage", "shared")
"""Tiers of the hosts that keep data."""


@dataclass(frozen=True)
class Spread:
    """A figure over repeats: its median and its range."""

    middle: float
    least: float
    most: float
    at_least: bool = False
    """Whether one of them is a lower bound."""

    @classmethod
    def of(cls, values: Sequence[float | None], *, at_least: bool = False) -> Spread | None:
        """None without values, and if one of them is unknown."""
        known = [float(value) for value in values if value is not None]
        if not known or len(known) < len(values):
            return None
        return cls(median(known), min(known), max(known), at_least)

    @property
    def words(self) -> str:
        """`3.2 (2.1 to ≥ 60)`."""
        sign = "≥ " * self.at_least
        middle, least, most = (show_figure(end, 2) for end in (self.middle, self.least, self.most))
        if least == most:
            return f"{sign}{middle}"
        return f"{middle} ({least} to {sign}{most})"


@dataclass(frozen=True)
class CurveSecond:
    """One second of a layout, over its repeats: means, and the median p99."""

    second: int
    ops_s: float
    errors_s: float
    p99_ms: float | None
    in_flight: float | None


@dataclass(frozen=True)
class OutageRow:
    """One layout, kind of requests and worker count."""

    row: Row
    what: tuple[str, ...]
    """What died, in each repeat another part perhaps."""
    fault_s: float
    back_s: float | None
    """When, in the window; medians."""
    returned_s: float | None
    """How long starting it took."""
    errors: Mapping[str, int]
    """From the fault on, by class, over all repeats."""
    noticed_s: Spread | None
    """Until the store, or its front, said that something was missing; None: none of them did."""
    noticed_by: str
    clean_s: Spread | None
    """From the return until the store had all of its parts and copies; None: it does not say."""
    traffic_mb_s: tuple[float | None, float | None, float | None]
    """Sent by hosts that keep data, the load's own part included: before the fault, until the
    return, after it; None: unknown, or no such time.
    """
    settings: Mapping[str, str]
    """What decides how the layout meets it."""
    seconds: tuple[CurveSecond, ...]

    @property
    def layout(self) -> str:
        return self.row.layout

    def spread(self, metric: MetricKey) -> Spread | None:
        """A metric over the repeats that count; None if unknown of one."""
        each = [point.figure(metric) for point in self.row.used]
        at_least = any(figure.at_least for figure in each)
        return Spread.of([figure.value for figure in each], at_least=at_least)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why its figures are in doubt, that there are few repeats included."""
        return (*self.row.doubts, *few(self.row.repeats))

    @property
    def caveat(self) -> str:
        """Its doubts in brief, or why nothing was seen."""
        if not self.row.used:
            return "; ".join(self.row.notes) or "not measured"
        valid = "" if self.row.valid else "no repeat is valid"
        return "; ".join(filter(None, (valid, doubt_brief(self.doubts))))


@dataclass(frozen=True)
class OutageKind:
    """One kind of requests, fault and worker count: the layouts side by side."""

    key: str
    about: str
    rows: tuple[OutageRow, ...]
    between: tuple[PairDoubt, ...] = ()
    """Why layouts are not like each other."""

    def doubt(self, rows: Sequence[OutageRow]) -> str:
        """The doubts about some of its rows, in brief."""
        layouts = {row.layout for row in rows}
        doubts = [doubt for row in rows for doubt in row.doubts]
        doubts += [pair.doubt for pair in self.between if layouts.issuperset(pair.layouts)]
        return doubt_brief(doubts)

    @property
    def title(self) -> str:
        """The longest stall on each layout; no ranking."""
        stalls = [(row.layout, row.spread("stall")) for row in self.rows]
        words = [f"{stall.words} s on {layout}" for layout, stall in stalls if stall is not None]
        return f"Longest stall of a worker: {', '.join(words)}" if words else upper(self.about)

    @property
    def headline(self) -> str:
        """The title with its doubts."""
        doubt = self.doubt([row for row in self.rows if row.spread("stall") is not None])
        return f"{self.title} ({doubt})" if doubt else self.title


@dataclass(frozen=True)
class Outages:
    """All that died in a run."""

    kinds: tuple[OutageKind, ...] = ()
    comparison: Comparison | None = None
    """None: with a single layout, or none."""

    @property
    def rows(self) -> tuple[OutageRow, ...]:
        return tuple(row for kind in self.kinds for row in kind.rows)

    @property
    def answers(self) -> tuple[str, ...]:
        """The longest stalls of each kind of requests."""
        several = len(self.kinds) > 1
        return tuple(f"{f'{kind.about}: ' * several}{kind.headline}" for kind in self.kinds)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answers, and how layouts compare."""
        texts = [f"{upper(answer)}." for answer in self.answers]
        if self.comparison is None:
            return tuple(texts)
        cells = [cell for cell in self.comparison.effects if cell.workers is not None]
        texts += [upper(cell.text) for cell in cells if cell.claimed]
        if cells:
            counts = Counter(cell.verdict for cell in cells)
            words = [f"{counts[each]} {each}" for each in get_args(Verdict) if counts[each]]
            doubts = dict.fromkeys(doubt.what for cell in cells for doubt in cell.doubts)
            why = f" ({', '.join(doubts)})" if doubts else ""
            texts.append(
                f"Longest stalls, times to detect and to 90 %, {len(cells)} cells compared with "
                f"{self.comparison.baseline}: {', '.join(words)}{why}."
            )
        return tuple(texts)


@of_run
def outages(data: RunData) -> Outages:
    """What died in a run, and what its layouts did then; nothing without workloads with a fault."""
    plan = data.plan
    broken = [] if data.tuning else [row for row in data.every_row if row.fault is not None]
    if not broken:
        return Outages()
    rows = data.in_doubt(broken)
    own = [row for row in rows if row.layout not in plan.twins]
    names, recorded = subjects(own), read_outages(data.store.folder)
    groups = grouped(own, lambda row: (kind_of(row), row.workers))
    kinds = tuple(
        OutageKind(
            key=f"{kind[0]}-{kind[1]}-{kind[2]}-w{workers}",
            about=f"{names[kind]} by {counted(workers, 'worker')}, {_fault_words(alike[0])}",
            rows=tuple(_outage_row(data, recorded, row) for row in alike),
            between=data.between,
        )
        for (kind, workers), alike in groups.items()
    )
    several = len({row.layout for row in rows}) > 1
    comparison = compare(rows, plan.twins, plan.suite.bounds, data.between) if several else None
    return Outages(kinds, comparison)


def _fault_words(row: Row) -> str:
    return "" if row.fault is None else row.fault.words


def _outage_row(data: RunData, recorded: Mapping[StepKey, Outage], row: Row) -> OutageRow:
    died: list[Outage] = []
    times: list[Times] = []
    watched: list[tuple[Times, Telemetry]] = []
    curves: list[Sequence[OutageSecond]] = []
    errors: Counter[str] = Counter()
    for point in row.used:
        key = StepKey(
            layout=row.layout,
            api=row.api,
            workload=row.workload,
            workers=row.workers,
            repeat=point.repeat,
            driver=row.driver,
        )
        if key not in data.steps or row.fault is None:
            continue
        outage, measured = recorded.get(key), data.steps[key].measurement
        when = times_of(row.fault, outage)
        times.append(when)
        died += [outage] if outage is not None else []
        if (telemetry := data.store.telemetry(key)) is not None:
            watched.append((when, telemetry))
        if measured is not None:
            curves.append(series(measured.seconds, measured.window_s, (row.operation,)))
            after = figures(measured, row.operation, when)
            errors.update({} if after is None else after.errors)
    noticed_s, noticed_by = Spread.of([each.noticed_s for each in died]), "the store"
    if noticed_s is None:
        noticed_s, noticed_by = Spread.of([_down_s(*each) for each in watched]), "HAProxy"
    backs = [when.back_s for when in times if when.back_s is not None]
    starts = [each.back.done_s - each.back.begun_s for each in died if each.back is not None]
    return OutageRow(
        row=row,
        what=tuple(dict.fromkeys(each.words for each in died)),
        fault_s=median([when.fault_s for when in times]) if times else 0.0,
        back_s=median(backs) if backs else None,
        returned_s=median(starts) if starts else None,
        errors=dict(errors),
        noticed_s=noticed_s,
        noticed_by="" if noticed_s is None else noticed_by,
        clean_s=Spread.of([each.clean_s for each in died]),
        traffic_mb_s=_traffic(watched),
        settings=died[-1].settings if died else {},
        seconds=_curve(curves),
    )


def _down_s(when: Times, telemetry: Telemetry) -> float | None:
    """Seconds until a probe says that a server which was up is not (`NAME.up`)."""
    up: dict[str, float] = {}
    until_s = when.back_s if when.back_s is not None else float("inf")
    for probe in telemetry.probes:
        for name, value in probe.values.items():
            if not name.endswith(".up"):
                continue
            if when.fault_s < probe.at_s < until_s and up.get(name) == 1 and value == 0:
                return probe.at_s - when.fault_s
            up[name] = value
    return None


def _traffic(
    watched: Sequence[tuple[Times, Telemetry]],
) -> tuple[float | None, float | None, float | None]:
    """Means over the repeats that were watched, of samples that lie whole in their part."""
    rates: tuple[list[float | None], ...] = ([], [], [])
    for when, telemetry in watched:
        measured = [each for each in telemetry.hosts if each.phase == "measure"]
        end_s = max((each.at_s for each in measured), default=0.0)
        moments = (0.0, when.fault_s, end_s if when.back_s is None else when.back_s, end_s)
        for of_span, (from_s, to_s) in zip(rates, pairwise(moments), strict=True):
            whole = [
                each
                for each in measured
                if each.tier in STORING and each.at_s - each.span_s >= from_s and each.at_s <= to_s
            ]
            if to_s - from_s < 1 or not whole:
                of_span.append(None)
                continue
            begin_s = min(each.at_s - each.span_s for each in whole)
            watched_s = max(each.at_s for each in whole) - begin_s
            of_span.append(sum(each.sent_bytes or 0 for each in whole) / 1e6 / watched_s)
    before, away, back = map(_known_mean, rates)
    return before, away, back


def _known_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(mean(known)) if known else None


def _curve(curves: Sequence[Sequence[OutageSecond]]) -> tuple[CurveSecond, ...]:
    seconds = []
    # Repeats may differ in length by a second.
    for number, repeats in enumerate(zip(*curves, strict=False)):
        p99 = [each.p99_ms for each in repeats if each.p99_ms is not None]
        seconds.append(
            CurveSecond(
                second=number,
                ops_s=float(mean(each.count for each in repeats)),
                errors_s=float(mean(each.errors for each in repeats)),
                p99_ms=median(p99) if p99 else None,
                in_flight=_known_mean([each.in_flight for each in repeats]),
            )
        )
    return tuple(seconds)


_METRICS: Final = tuple(metric for metric in METRICS.values() if metric.of_outage)
_SPREADS: Final = (
    *((metric.column, metric.unit, metric.about, metric.title) for metric in _METRICS),
    ("noticed_s", "s", "Until the store or its front said that a part is missing.", "Noticed"),
    ("clean_s", "s", "From the return until the store had all parts and copies.", "Complete again"),
)
"""Columns with the median of repeats, followed by their range: name, unit, meaning and head."""


def _line(kind: OutageKind, outage: OutageRow) -> Line:
    spreads = {metric.column: outage.spread(metric.key) for metric in _METRICS}
    spreads |= {"noticed_s": outage.noticed_s, "clean_s": outage.clean_s}
    cells: dict[str, Cell] = {}
    texts = {}
    for name, spread in spreads.items():
        ends = (None,) * 3 if spread is None else (spread.middle, spread.least, spread.most)
        cells[name], cells[f"least_{name}"], cells[f"most_{name}"] = ends
        texts[name] = UNKNOWN if spread is None else spread.words
    if outage.noticed_s is not None:
        texts["noticed_s"] += f" ({outage.noticed_by})"
    before, away, back = outage.traffic_mb_s
    texts["sent_before_mb_s"] = " → ".join(map(show_figure, outage.traffic_mb_s))
    return line(
        outage,
        outage.row,
        **cells,
        about=kind.about,
        sent_before_mb_s=before,
        sent_away_mb_s=away,
        sent_back_mb_s=back,
        errors=class_words(dict(outage.errors)) or "none",
        doubts=doubt_texts(outage.doubts),
    ).showing({**texts, "doubts": outage.caveat})


OUTAGES: Final = Table(
    "outages",
    "A line for each layout, workload and fault: what it did while something was broken.",
    (
        *columns(f"""
{RUN}
layout text | The layout. | Layout
workload text | The workload.
operation text | The operation on objects.
workers integer | Workers.
about text | Requests and fault in words. | Requests
what texts | What died. | What
fault_s number s | When, in the window.
back_s number s | When it came back; unknown: not in it.
returned_s number s | How long starting it took.
"""),
        *(
            column
            for name, unit, about, head in _SPREADS
            for column in columns(f"""
{name} number {unit} | {about} Median over the repeats. | {head}
least_{name} number {unit} | The least of all repeats.
most_{name} number {unit} | The most of all repeats.
""")
        ),
        *columns("""
sent_before_mb_s number MB/s | Sent by hosts that keep data, before the fault. | Sent by stores
sent_away_mb_s number MB/s | Until the return.
sent_back_mb_s number MB/s | After the return.
errors text | By class, over all repeats. | Errors
doubts texts | Doubts, each with its grade, grave (not comparable) or mild (provisional).
    | In doubt
repeats integer | How often it was seen. | Repeats
"""),
    ),
    lambda data: [_line(kind, row) for kind in outages(data).kinds for row in kind.rows],
)


def outage_sections(data: RunData) -> Iterator[Section]:
    """While something is broken; none where nothing died."""
    broken = outages(data)
    settings = {
        (row.layout, name): value for row in broken.rows for name, value in row.settings.items()
    }
    grid = grid_of(
        "Medians over the repeats, with their range. Times count from the fault, or from the "
        "return for what follows it; a time of at most 1 s means that no complete second was "
        "below. Noticed: until the store, or the front, said that a part is missing. Complete "
        "again: until the store had all of its parts and copies. Sent by stores: over the network, "
        "before the fault, until the return, after it, the load’s own part included.",
        OUTAGES.of_runs([data]),
    )
    part = Part(
        sentences=broken.sentences,
        grids=(
            grid,
            Grid(
                "What decides how a layout meets a fault, as its daemons or files have it",
                ("Layout", "Setting", "Value"),
                [(layout, name, value) for (layout, name), value in settings.items()],
            ),
        ),
        foot="Steps in which something dies are in no other table. They are ranked only by the "
        "longest stall, the time to detect and the time to 90 %. The charts below show the "
        "moments.",
    )
    if broken.kinds:
        brief = replace(grid, caption="")
        title, said = "While something is broken", broken.sentences
        yield Section("outages", title, (part,), said, (brief,), first=True)


def outage_signs(data: RunData) -> tuple[TrustSign, ...]:
    """Signs of trust where something died in every step: rates are judged until then."""
    broken, plan = outages(data), data.plan
    rows = [outage.row for outage in broken.rows]
    unequal = bool(unequal_shares(plan))
    signs = []
    for sign in trust(
        plan.hardware.kind, plan.measured, rows, data.attested, broken.comparison, unequal=unequal
    ):
        update: dict[str, Any] = {}
        if sign.title == "Steady":
            update = _steady_before([row for row in rows if row.points])
        elif sign.title == "Errors":
            update = _failures_before(broken.rows, sign)
        # Such a report has hardly any other section.
        update |= {} if sign.section == "hosts" else {"section": "outages"}
        signs.append(replace(sign, **update))
    return tuple(signs)


def _steady_before(rows: Sequence[Row]) -> dict[str, str]:
    each = [{point.steady_before for point in row.used} for row in rows]
    verdicts = [False if False in one else None if None in one else True for one in each]
    state, words = steadiness_words(verdicts, blind="unknown")
    return {
        "state": state,
        "words": f"{words}, until the fault" if state == "good" else words,
        "detail": "results: throughput before something died",
    }


def _failures_before(broken: Sequence[OutageRow], sign: TrustSign) -> dict[str, str]:
    """Requests that failed before anything died; those after it are what was to be seen."""
    # Of complete seconds, over the repeats that count.
    counts = [
        round(
            sum(each.errors_s for each in outage.seconds if each.second + 1 <= outage.fault_s)
            * len(outage.row.used)
        )
        for outage in broken
        if outage.seconds
    ]
    before, after = sum(counts), sum(sum(outage.errors.values()) for outage in broken)
    update = {"detail": f"failed requests before something died; {after:,} after it"}
    rows = [outage.row for outage in broken]
    if any(not row.valid for row in rows) or rows_left_out(rows):
        return {"state": sign.state, "words": sign.words, **update}
    if len(counts) < len(rows):
        words = f"not recorded in {len(rows) - len(counts)} of {len(rows)}"
        return {"state": "unknown", "words": words, **update}
    if before:
        return {"state": "doubt", "words": f"{before:,}", **update}
    return {"state": "good", "words": "none before", **update}


def outage_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each kind of requests with a fault; none without."""
    return tuple(_chart(source, kind) for kind in outages(source.data).kinds)


def _chart(source: ChartSource, kind: OutageKind) -> Chart:
    repeats = min(outage.row.repeats for outage in kind.rows)
    notes = ["Means over the repeats, of p99 the median" if repeats > 1 else "One repeat"]
    if repeats < REPEATS_FOR_A_CLAIM:
        notes.append(f"Fewer than {REPEATS_FOR_A_CLAIM} repeats: nothing is ranked")
    seconds = [second for outage in kind.rows for second in outage.seconds]
    rate = max((second.ops_s for second in seconds), default=1.0) or 1.0
    length = max((len(outage.seconds) for outage in kind.rows), default=0) or 1
    nice = AxisScale.from_zero(length, "s since the window opened")
    ticks = tuple(tick for tick in nice.ticks if tick <= length)
    x = nice.model_copy(update={"high": float(length), "ticks": ticks})
    rates = AxisScale.from_zero(rate * 1.08, "op/s")
    tails = AxisScale.logarithmic(
        [second.p99_ms for second in seconds if second.p99_ms], "p99 ms (log scale)"
    )
    panels = []
    for outage in kind.rows:
        rows, what = _rows(outage), f"{outage.layout}: {'; '.join(outage.what)}"
        for name, title, y, column in (
            ("rate", what, rates, "ops_s"),
            ("p99", " ", tails, "p99_ms"),
        ):
            spec = _spec(outage, x, y, column)
            panels.append(Panel(f"{outage.layout}-{name}", title, rows, spec, height=150))
    return Chart(
        key=f"outage-{kind.key}",
        title=f"While something is broken: {kind.about}",
        finding=kind.headline,
        caption="Each complete second of the window. Crosses: seconds with errors. p99: an upper "
        f"bound for what succeeded, from bands of 19 to 25 %. {'. '.join(notes)}.",
        panels=tuple(panels),
        layouts=source.layouts,
    )


def _rows(outage: OutageRow) -> list[dict[str, Any]]:
    """A row for each second; `_stretch` numbers the runs of seconds with an answer."""
    moments = {"layout": outage.layout, "fault_s": outage.fault_s, "back_s": outage.back_s}
    stretches = groupby(outage.seconds, lambda second: bool(second.p99_ms))
    return [
        {**moments, **asdict(second), "_at": second.second + 0.5, "_stretch": number}
        for number, (_, stretch) in enumerate(stretches)
        for second in stretch
    ]


def _spec(outage: OutageRow, x: AxisScale, y: AxisScale, column: str) -> Spec:
    curve = layer("line", "path", f"datum.{column}" if column == "p99_ms" else "", y=column)
    if column == "p99_ms":
        # No line goes through seconds without an answer.
        curve["encoding"]["detail"] = {"field": "_stretch", "type": "nominal"}
    failed = layer("point", "cross", "datum.errors_s", y=column, color=BAD)
    fault = outage.row.fault
    moments = [(outage.fault_s, "" if fault is None else upper(fault.way))]
    moments += [(outage.back_s, "Back")] if outage.back_s is not None else []
    top = {"datum": y.value(0.93)}
    rules = layer("rule", "moment", x="at", color=BAD, **FULL_HEIGHT)
    words = layer("text", "note", x="at", text="name", color=MUTED, y=top)
    for mark in (rules, words):
        mark["data"] = {"values": [{"at": at, "name": name} for at, name in moments]}
    return {
        "encoding": {"x": {**x.encoding(), "field": "_at"}, "y": y.encoding(), "color": COLOUR},
        "layer": [rules, words, curve, *([failed] if column == "ops_s" else [])],
    }


def outage_topic(data: RunData) -> Topic | None:
    """What happens while something is broken."""
    kinds = outages(data).kinds
    if not kinds:
        return None
    slides = tuple(map(_slide, kinds))
    question = "What do clients see when something dies?"
    if len(kinds) == 1:
        question = f"{question} {upper(kinds[0].about)}"
        return Topic(question=question, answer=slides[0].title, slides=slides)
    cards = []
    longest = []
    for kind, slide in zip(kinds, slides, strict=True):
        spreads = [row.spread("stall") for row in kind.rows]
        stall = max((spread.middle for spread in spreads if spread is not None), default=None)
        figure, caveat = f"{show_figure(stall, 2)} s", slide.caveat
        cards.append(SlideCard(figure, upper(kind.about), slide.title, caveat, caveat=bool(caveat)))
        longest += [stall] if stall is not None else []
    low, high = min(longest, default=None), max(longest, default=None)
    span = f"{show_figure(low, 2)} to {show_figure(high, 2)} s"
    answer = f"Longest stall of a worker: {span} in {len(kinds)} cases"
    return Topic(question=question, answer=answer, cards=tuple(cards), slides=slides)


def _slide(kind: OutageKind) -> Slide:
    metrics: dict[MetricKey, str] = {"stall": "longest stall, s", "recover": "until 90 % again, s"}
    charts = []
    for metric, title in metrics.items():
        bars = []
        for row in kind.rows:
            spread = row.spread(metric)
            if spread is not None:
                ends = (spread.middle, spread.least, spread.most)
                bars.append(Point(row.layout, *ends, spread.words, row.layout))
        charts += [bar_chart(title, bars)] if bars else []
    unseen = [f"{row.layout}: {row.caveat}." for row in kind.rows if not row.row.used]
    return Slide(
        title=kind.title,
        caveat=upper(kind.doubt(kind.rows)),
        lead=upper(kind.about),
        charts=tuple(charts),
        lines=tuple(unseen),
        foot="Bars: median; whiskers: lowest and highest repeat.",
    )


FEATURE: Final = Feature(
    answer=lambda data: "; ".join(outages(data).answers),
    tables=(OUTAGES,),
    charts={"outages": ChartKind(outage_charts)},
    sections=outage_sections,
    topic=outage_topic,
    signs=outage_signs,
)
