"""What it means that something dies while load runs: each layout's figures, and its seconds.

Over repeats figures are medians with their range, since a time until something was noticed has few
values and no bell. Layouts are compared by the longest stall, the time to detect and the time to
90 %, as any other metric is: with the same tests, doubts, correction and noise floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import mean, median
from typing import Any, Final, get_args

from pydantic import NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt, PairDoubt, doubt_brief, few
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.reading import (
    OutageFigures,
    OutageSecond,
    Times,
    figures,
    series,
    times_of,
)
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.validity import class_words
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, Kind, Verdict, kind_of, subjects
from weighbridge.results.judge.host_equality import unequal_shares
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.judge.trust import (
    SignState,
    TrustSign,
    control_signs,
    driver_sign,
    failures_sign,
    hosts_sign,
    machine_sign,
    repeats_sign,
    rows_left_out,
    steadiness_words,
)
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, upper
from weighbridge.results.run import ResolvedPlan, StepKey, StepResult, Telemetry
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.results.run.telemetry import Attested
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
from weighbridge.results.show.table import Cell, Column, Filled, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, doubt_texts

STORING: Final = ("storage", "shared")


class Spread(Record):
    """A figure over repeats: its median and its range."""

    middle: NonNegativeFloat
    least: NonNegativeFloat
    most: NonNegativeFloat
    at_least: bool = False
    """Whether one of them is a lower bound."""

    @property
    def words(self) -> str:
        """`3.2 (2.1 to ≥ 60)`."""
        sign = "≥ " * self.at_least
        middle, least, most = (show_figure(one, 2) for one in (self.middle, self.least, self.most))
        if least == most:
            return f"{sign}{middle}"
        return f"{middle} ({least} to {sign}{most})"


class Traffic(Record):
    """MB/s that hosts which keep data sent, the load's own part included; None: unknown, or no such
    time.
    """

    before_mb_s: NonNegativeFloat | None = None
    away_mb_s: NonNegativeFloat | None = None
    back_mb_s: NonNegativeFloat | None = None


class CurveSecond(Record):
    """One second of a layout, over its repeats: means, and the median p99."""

    second: int
    ops_s: NonNegativeFloat
    errors_s: NonNegativeFloat
    p99_ms: NonNegativeFloat | None
    in_flight: NonNegativeFloat | None


class OutageRow(Record):
    """One layout, kind of requests and worker count."""

    row: Row
    what: tuple[str, ...]
    """What died, in each repeat another part perhaps."""
    fault_s: float
    back_s: float | None
    """When, in the window; medians."""
    returned_s: NonNegativeFloat | None = None
    errors: dict[str, int]
    """From the fault on, by class, over all repeats."""
    noticed_s: Spread | None = None
    """Until the store, or its front, said that something was missing; None: none of them did."""
    noticed_by: str = ""
    clean_s: Spread | None = None
    """From the return until the store had all of its parts and copies; None: it does not say."""
    traffic: Traffic = Traffic()
    settings: dict[str, str]
    """What decides how the layout meets it."""
    seconds: tuple[CurveSecond, ...]

    @property
    def layout(self) -> str:
        return self.row.layout

    def spread(self, metric: MetricKey) -> Spread | None:
        """A metric over the repeats that count; None if unknown of one."""
        figures = [point.figure(metric) for point in self.row.used]
        return _spread(
            [one.value for one in figures], at_least=any(one.at_least for one in figures)
        )

    @property
    def error_words(self) -> str:
        return class_words(self.errors) or "none"

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why its figures are in doubt, that there are few repeats included."""
        short = few(self.row.repeats)
        return (*self.row.doubts, *([] if short is None else [short]))

    @property
    def sentence(self) -> str:
        """What was seen, without a ranking."""
        if not self.row.used:
            return f"{self.layout}: {'; '.join(self.row.notes) or 'not measured'}."
        what = "; ".join(self.what) if len(self.what) < 3 else _fault_words(self.row)
        words = [f"{self.layout} ({what}): {self._words('recover', 'back at 90 % of its rate')}"]
        words.append(self._words("stall", "longest stall of a worker", after=False))
        missed = self.spread("missed")
        if missed is not None:
            words.append(f"{missed.words} s of work missed")
        failed = sum(self.errors.values())
        words.append(f"{counted(failed, 'error')}" + (f" ({self.error_words})" if failed else ""))
        if self.noticed_s is not None:
            words.append(f"{self.noticed_by} noticed after {self.noticed_s.words} s")
        if self.clean_s is not None:
            words.append(f"complete {self.clean_s.words} s after the return")
        seen = f"seen in {counted(self.row.repeats, 'repeat')}"
        doubt = f"; {doubt_brief(self.doubts)}" if self.doubts else ""
        valid = "" if self.row.valid else ", none of them valid"
        return f"{'; '.join(words)}; {seen}{valid}{doubt}."

    def _words(self, metric: MetricKey, name: str, *, after: bool = True) -> str:
        found = self.spread(metric)
        if found is None:
            return f"{name}: unknown"
        if after and found.most <= 1 and not found.at_least:  # no complete second was below
            return f"{name} within a second"
        return f"{name} {'after ' if after else ''}{found.words} s"


class OutageKind(Record):
    """One kind of requests, fault and worker count: the layouts side by side."""

    key: str
    about: str
    rows: tuple[OutageRow, ...]
    between: tuple[PairDoubt, ...] = ()
    """Why layouts are not like each other."""

    @property
    def headline(self) -> str:
        """The longest stall on each layout, with its doubts, for a title; no ranking."""
        known = [(row, found) for row in self.rows if (found := row.spread("stall")) is not None]
        if not known:
            return upper(self.about)
        words = ", ".join(f"{found.words} s on {row.layout}" for row, found in known)
        names = {row.layout for row, _ in known}
        doubts = [doubt for row, _ in known for doubt in row.doubts]
        doubts += [one.doubt for one in self.between if names.issuperset(one.layouts)]
        return f"Longest stall of a worker: {words}" + (
            f" ({doubt_brief(doubts)})" if doubts else ""
        )


class Outages(Record):
    """All that died in a run."""

    kinds: tuple[OutageKind, ...] = ()
    comparison: Comparison | None = None
    """None: with a single layout, or none."""

    @property
    def rows(self) -> tuple[OutageRow, ...]:
        return tuple(row for kind in self.kinds for row in kind.rows)

    @property
    def sentences(self) -> tuple[str, ...]:
        found = [f"{upper(kind.about)}: {row.sentence}" for kind in self.kinds for row in kind.rows]
        effects = () if self.comparison is None else self.comparison.effects
        cells = [one for one in effects if one.workers is not None]
        claims = [upper(one.text) for one in cells if one.claimed]
        counts = Counter(one.verdict for one in cells)
        words = ", ".join(f"{counts[one]} {one}" for one in get_args(Verdict) if counts[one])
        doubts = dict.fromkeys(doubt.what for one in cells for doubt in one.doubts)
        why = f" ({', '.join(doubts)})" if doubts else ""
        first = "" if self.comparison is None else self.comparison.baseline
        total = (
            f"Longest stalls, times to detect and to 90 %, {len(cells)} cells compared with "
            f"{first}: {words}{why}."
        )
        return (*found, *claims, *([total] if cells else []))


Read = Callable[[StepKey], Telemetry | None]


@of_run
def outages(data: RunData) -> Outages:
    """What died in a run, and what its layouts did then."""
    broken = [] if data.tuning else [row for row in data.every_row if row.fault is not None]
    return outages_of(
        data.plan,
        data.in_doubt(broken),
        data.steps,
        read_outages(data.store.folder),
        data.store.telemetry,
        data.between if broken else (),
    )


def outages_of(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    steps: Mapping[StepKey, StepResult],
    outages: Mapping[StepKey, Outage],
    telemetry: Read,
    between: Sequence[PairDoubt] = (),
) -> Outages:
    """What died in a run; nothing without workloads with a fault. `rows` are those of them."""
    if not rows:
        return Outages()
    own = [row for row in rows if row.layout not in plan.twins]
    names = subjects(own)
    groups: dict[tuple[Kind, int], list[Row]] = {}
    for row in own:
        groups.setdefault((kind_of(row), row.workers), []).append(row)
    kinds = tuple(
        OutageKind(
            key=f"{kind[0]}-{kind[1]}-{kind[2]}-w{workers}",
            about=f"{names[kind]} by {counted(workers, 'worker')}, {_fault_words(same[0])}",
            rows=tuple(_row(row, steps, outages, telemetry) for row in same),
            between=tuple(between),
        )
        for (kind, workers), same in groups.items()
    )
    several = len({row.layout for row in rows}) > 1
    comparison = compare(rows, plan.twins, plan.suite.bounds, between) if several else None
    return Outages(kinds=kinds, comparison=comparison)


def _row(
    row: Row,
    steps: Mapping[StepKey, StepResult],
    outages: Mapping[StepKey, Outage],
    telemetry: Read,
) -> OutageRow:
    keys = [key for key in map(_key_of(row), [one.repeat for one in row.used]) if key in steps]
    made = [outages[key] for key in keys if key in outages]
    times = [times_of(row.fault, outages.get(key)) for key in keys if row.fault is not None]
    each = [
        series(measured.seconds, measured.window_s, (row.operation,))
        for key in keys
        if (measured := steps[key].measurement) is not None
    ]
    watched = [
        (when, found) for key, when in zip(keys, times, strict=True) if (found := telemetry(key))
    ]
    noticed, by = _noticed(made, watched)
    backs = [one.back_s for one in times if one.back_s is not None]
    returned = [one.back.done_s - one.back.begun_s for one in made if one.back is not None]
    errors: Counter[str] = Counter()
    for point_errors in _errors(row, steps, keys, times):
        errors.update(point_errors)
    return OutageRow(
        row=row,
        what=tuple(dict.fromkeys(one.words for one in made)),
        fault_s=median([one.fault_s for one in times]) if times else 0.0,
        back_s=median(backs) if backs else None,
        returned_s=median(returned) if returned else None,
        errors=dict(errors),
        noticed_s=noticed,
        noticed_by=by,
        clean_s=_spread([one.clean_s for one in made]) if made else None,
        traffic=_traffic(watched),
        settings=made[-1].settings if made else {},
        seconds=_curve(each),
    )


def _fault_words(row: Row) -> str:
    return "" if row.fault is None else row.fault.words


def _key_of(row: Row) -> Callable[[int], StepKey]:
    def key(repeat: int) -> StepKey:
        return StepKey(
            layout=row.layout,
            api=row.api,
            workload=row.workload,
            workers=row.workers,
            repeat=repeat,
            driver=row.driver,
        )

    return key


def _errors(
    row: Row, steps: Mapping[StepKey, StepResult], keys: Sequence[StepKey], times: Sequence[Times]
) -> list[dict[str, int]]:
    found: list[OutageFigures | None] = [
        figures(measured, row.operation, when)
        for key, when in zip(keys, times, strict=True)
        if (measured := steps[key].measurement) is not None
    ]
    return [one.errors for one in found if one is not None]


def _spread(values: Sequence[float | None], *, at_least: bool = False) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Spread(middle=median(known), least=min(known), most=max(known), at_least=at_least)


def _noticed(
    made: Sequence[Outage], watched: Sequence[tuple[Times, Telemetry]]
) -> tuple[Spread | None, str]:
    """When a part of the layout first said that another was missing, and which part."""
    store = _spread([one.noticed_s for one in made]) if made else None
    if store is not None:
        return store, "the store"
    front = _spread([_down_s(when, found) for when, found in watched]) if watched else None
    return (front, "HAProxy") if front is not None else (None, "")


def _down_s(when: Times, found: Telemetry) -> float | None:
    """Seconds until a probe says that a server which was up is not (`NAME.up`)."""
    up: dict[str, float] = {}
    until_s = when.back_s if when.back_s is not None else float("inf")
    for one in found.probes:
        for name, value in one.values.items():
            if not name.endswith(".up"):
                continue
            if when.fault_s < one.at_s < until_s and up.get(name) == 1 and value == 0:
                return one.at_s - when.fault_s
            up[name] = value
    return None


def _traffic(watched: Sequence[tuple[Times, Telemetry]]) -> Traffic:
    """Means over the repeats that were watched."""
    each = [_traffic_of(when, found) for when, found in watched]

    def over(name: str) -> float | None:
        values = [value for one in each if (value := getattr(one, name)) is not None]
        return mean(values) if values else None

    return Traffic(
        before_mb_s=over("before_mb_s"), away_mb_s=over("away_mb_s"), back_mb_s=over("back_mb_s")
    )


def _traffic_of(when: Times, found: Telemetry) -> Traffic:
    end_s = max((one.at_s for one in found.hosts if one.phase == "measure"), default=0.0)
    back_s = end_s if when.back_s is None else when.back_s

    def sent(from_s: float, to_s: float) -> float | None:
        if to_s - from_s < 1:
            return None
        total = sum(
            one.sent_bytes or 0
            for one in found.hosts
            if one.phase == "measure"
            and one.tier in STORING
            and one.at_s - one.span_s >= from_s
            and one.at_s <= to_s
        )
        return total / 1e6 / (to_s - from_s)

    return Traffic(
        before_mb_s=sent(0.0, when.fault_s),
        away_mb_s=sent(when.fault_s, back_s),
        back_mb_s=sent(back_s, end_s),
    )


def _curve(each: Sequence[Sequence[OutageSecond]]) -> tuple[CurveSecond, ...]:
    length = min(map(len, each), default=0)
    found = []
    for number in range(length):
        same = [one[number] for one in each]
        p99 = [one.p99_ms for one in same if one.p99_ms is not None]
        flight = [one.in_flight for one in same if one.in_flight is not None]
        found.append(
            CurveSecond(
                second=number,
                ops_s=mean(one.count for one in same),
                errors_s=mean(one.errors for one in same),
                p99_ms=median(p99) if p99 else None,
                in_flight=mean(flight) if flight else None,
            )
        )
    return tuple(found)


_METRICS: Final = tuple(one for one in METRICS.values() if one.of_outage)


def _columns(name: str, head: str, about: str, unit: str) -> tuple[Column, ...]:
    return (
        Column(name, "number", f"{about} Median over the repeats.", unit, head),
        Column(f"least_{name}", "number", "The least of all repeats.", unit),
        Column(f"most_{name}", "number", "The most of all repeats.", unit),
    )


def _cells(name: str, spread: Spread | None) -> dict[str, Cell]:
    ends = (None,) * 3 if spread is None else (spread.middle, spread.least, spread.most)
    return dict(zip((name, f"least_{name}", f"most_{name}"), ends, strict=True))


def outage_table(kinds: Iterable[OutageKind]) -> Filled:
    """A line for each layout and fault: medians over the repeats, with their range."""
    return Filled(OUTAGES, tuple(_line(kind, row) for kind in kinds for row in kind.rows))


def tolerance_lines(rows: Iterable[OutageRow]) -> tuple[tuple[str, ...], ...]:
    """What decides how a layout meets a fault: layout, setting, value; each once."""
    found = {(row.layout, name): value for row in rows for name, value in row.settings.items()}
    return tuple((layout, name, value) for (layout, name), value in found.items())


def _line(kind: OutageKind, one: OutageRow) -> Line:
    spreads = {metric.column: one.spread(metric.key) for metric in _METRICS}
    spreads |= {"noticed_s": one.noticed_s, "clean_s": one.clean_s}
    cells = {
        name: cell for of, spread in spreads.items() for name, cell in _cells(of, spread).items()
    }
    sent = (one.traffic.before_mb_s, one.traffic.away_mb_s, one.traffic.back_mb_s)
    texts = {name: UNKNOWN if spread is None else spread.words for name, spread in spreads.items()}
    texts["sent_before_mb_s"] = " → ".join(map(show_figure, sent))
    return line(
        one,
        one.row,
        **cells,
        about=kind.about,
        sent_before_mb_s=sent[0],
        sent_away_mb_s=sent[1],
        sent_back_mb_s=sent[2],
        errors=one.error_words,
        doubts=doubt_texts(one.doubts),
    ).showing({**texts, "doubts": doubt_brief(one.doubts)})


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
            for metric in _METRICS
            for column in _columns(metric.column, metric.title, metric.about, metric.unit)
        ),
        *_columns(
            "noticed_s", "Noticed", "Until the store or its front said that a part is missing.", "s"
        ),
        *_columns(
            "clean_s",
            "Complete again",
            "From the return until the store had all parts and copies.",
            "s",
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
    lambda data: outage_table(outages(data).kinds).lines,
)


def outage_sections(data: RunData) -> Iterator[Section]:
    """While something is broken; none where nothing died."""
    found = outages(data)
    part = Part(
        sentences=found.sentences,
        grids=(
            grid_of(
                "Medians over the repeats, with their range. Times count from the fault, or from "
                "the return for what follows it; a time of at most 1 s means that no complete "
                "second was below. Noticed: until the store, or the front, said that a part is "
                "missing. Complete again: until the store had all of its parts and copies. Sent by "
                "stores: over the network, before the fault, until the return, after it, the "
                "load’s own part included.",
                outage_table(found.kinds),
            ),
            Grid(
                "What decides how a layout meets a fault, as its daemons or files have it",
                ("Layout", "Setting", "Value"),
                tolerance_lines(found.rows),
            ),
        ),
        foot="Steps in which something dies are in no other table. They are ranked only by the "
        "longest stall, the time to detect and the time to 90 %. The charts below show the "
        "moments.",
    )
    if found.kinds:
        yield Section("outages", "While something is broken", (part,), found.sentences, first=True)


_OUTAGES: Final = "outages"


def outage_signs(data: RunData) -> tuple[TrustSign, ...]:
    """The signs of trust where something died in every step."""
    plan, unequal = data.plan, bool(unequal_shares(data.plan))
    return outage_trust(
        plan.hardware.kind, plan.measured, outages(data), data.attested, unequal=unequal
    )


def outage_trust(
    hardware_kind: str,
    layouts: Sequence[str],
    found: Outages,
    attested: Sequence[Attested],
    *,
    unequal: bool = False,
) -> tuple[TrustSign, ...]:
    """Signs of trust of what is measured until something dies: rates are judged until then."""
    broken = found.rows
    measured = [one.row for one in broken if one.row.points]
    if not measured:
        return ()
    repeats = repeats_sign(measured)
    control = [replace(one, section=_OUTAGES) for one in control_signs(found.comparison)]
    signs = (
        hosts_sign(attested, layouts, unequal=unequal),
        machine_sign(hardware_kind, measured),
        _steady_before(measured),
        driver_sign(measured),
        replace(repeats, section=_OUTAGES),
        *control,
        _failures_before(broken),
    )
    # Such a report has no section of bottlenecks.
    return tuple(
        replace(one, section=_OUTAGES) if one.section == "limits" else one for one in signs
    )


def _steady_before(rows: Sequence[Row]) -> TrustSign:
    each = [{point.steady_before for point in row.used} for row in rows]
    verdicts = [False if False in one else None if None in one else True for one in each]
    state, words = steadiness_words(verdicts, blind="unknown")
    return TrustSign(
        title="Steady",
        state=state,
        words=f"{words}, until the fault" if state == "good" else words,
        detail="results: throughput before something died",
        section=_OUTAGES,
    )


def _failures_before(broken: Sequence[OutageRow]) -> TrustSign:
    """Requests that failed before anything died; those after it are what was to be seen."""
    rows = [one.row for one in broken]
    judged = failures_sign(rows)
    known = [count for one in broken if (count := _errors_before(one)) is not None]
    before, after = sum(known), sum(sum(one.errors.values()) for one in broken)
    state: SignState = judged.state
    words = judged.words
    if not any(not row.valid for row in rows) and not rows_left_out(rows):
        if len(known) < len(rows):
            state, words = "unknown", f"not recorded in {len(rows) - len(known)} of {len(rows)}"
        else:
            state, words = ("doubt", f"{before:,}") if before else ("good", "none before")
    return TrustSign(
        title="Errors",
        state=state,
        words=words,
        detail=f"failed requests before something died; {after:,} after it",
        section=_OUTAGES,
    )


def _errors_before(one: OutageRow) -> int | None:
    """Over the repeats that count, in complete seconds; None: not recorded."""
    if not one.seconds:
        return None
    each = sum(second.errors_s for second in one.seconds if second.second + 1 <= one.fault_s)
    return round(each * len(one.row.used))


def outage_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each kind of requests with a fault; none without."""
    return tuple(_chart(source, kind) for kind in outages(source.data).kinds)


def _chart(source: ChartSource, kind: OutageKind) -> Chart:
    repeats = min(row.row.repeats for row in kind.rows)
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: nothing is ranked."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    several = "Means over the repeats, of p99 the median" if repeats > 1 else "One repeat"
    rate = max((one.ops_s for row in kind.rows for one in row.seconds), default=1.0) or 1.0
    known = [one.p99_ms for row in kind.rows for one in row.seconds if one.p99_ms]
    length = max((len(row.seconds) for row in kind.rows), default=0) or 1
    nice = AxisScale.from_zero(length, "s since the window opened")
    ticks = tuple(tick for tick in nice.ticks if tick <= length)
    x = nice.model_copy(update={"high": float(length), "ticks": ticks})
    rates = AxisScale.from_zero(rate * 1.08, "op/s")
    tails = AxisScale.logarithmic(known, "p99 ms (log scale)")
    panels = []
    for row in kind.rows:
        rows, what = _rows(row), f"{row.layout}: {'; '.join(row.what)}"
        panels += [
            Panel(f"{row.layout}-rate", what, rows, _spec(row, x, rates, "ops_s"), height=150),
            Panel(f"{row.layout}-p99", " ", rows, _spec(row, x, tails, "p99_ms"), height=150),
        ]
    return Chart(
        key=f"outage-{kind.key}",
        title=f"While something is broken: {kind.about}",
        finding=kind.headline,
        caption="Each complete second of the window. Crosses: seconds with errors. p99: an upper "
        f"bound for what succeeded, from bands of 19 to 25 %. {several}.{few}",
        panels=tuple(panels),
        layouts=source.layouts,
    )


def _rows(row: OutageRow) -> list[dict[str, Any]]:
    """A row for each second; `_stretch` numbers the runs of seconds with an answer."""
    rows: list[dict[str, Any]] = []
    for number, (_, run) in enumerate(groupby(row.seconds, lambda one: bool(one.p99_ms))):
        moments = {"layout": row.layout, "fault_s": row.fault_s, "back_s": row.back_s}
        rows += [
            {**moments, **one.model_dump(), "_at": one.second + 0.5, "_stretch": number}
            for one in run
        ]
    return rows


def _spec(row: OutageRow, x: AxisScale, y: AxisScale, column: str) -> Spec:
    line = layer("line", "path", f"datum.{column}" if column == "p99_ms" else "", y=column)
    if column == "p99_ms":
        # No line goes through seconds without an answer.
        line["encoding"]["detail"] = {"field": "_stretch", "type": "nominal"}
    failed = layer("point", "cross", "datum.errors_s", y=column, color=BAD)
    moments = [(row.fault_s, upper(row.row.fault.way) if row.row.fault is not None else "")]
    moments += [(row.back_s, "Back")] if row.back_s is not None else []
    rules = layer("rule", "moment", x="at", color=BAD)
    words = layer("text", "note", x="at", text="name", color=MUTED)
    for one in (rules, words):
        one["data"] = {"values": [{"at": at, "name": name} for at, name in moments]}
    rules["encoding"] |= FULL_HEIGHT
    words["encoding"]["y"] = {"datum": y.value(0.93)}
    return {
        "encoding": {"x": {**x.encoding(), "field": "_at"}, "y": y.encoding(), "color": COLOUR},
        "layer": [rules, words, line, *([failed] if column == "ops_s" else [])],
    }


def outage_topic(data: RunData) -> Topic | None:
    """What happens while something is broken."""
    kinds = outages(data).kinds
    if not kinds:
        return None
    slides = tuple(_stalls(kind) for kind in kinds)
    question = "What do clients see when something dies?"
    if len(kinds) == 1:
        question = f"{question} {upper(kinds[0].about)}"
        return Topic(question=question, answer=slides[0].title, slides=slides)
    cards = []
    longest = []
    for kind, slide in zip(kinds, slides, strict=True):
        spreads = [row.spread("stall") for row in kind.rows]
        stall = max((spread.middle for spread in spreads if spread is not None), default=None)
        figure = f"{show_figure(stall, 2)} s"
        caveat = slide.caveat
        cards.append(SlideCard(figure, upper(kind.about), slide.title, caveat, caveat=bool(caveat)))
        longest += [stall] if stall is not None else []
    low, high = min(longest, default=None), max(longest, default=None)
    span = f"{show_figure(low, 2)} to {show_figure(high, 2)} s"
    answer = f"Longest stall of a worker: {span} in {len(kinds)} cases"
    return Topic(question=question, answer=answer, cards=tuple(cards), slides=slides)


def _stalls(kind: OutageKind) -> Slide:
    layouts = {row.layout for row in kind.rows}
    doubts = [doubt for row in kind.rows for doubt in row.doubts]
    doubts += [pair.doubt for pair in kind.between if layouts.issuperset(pair.layouts)]
    brief = doubt_brief(doubts)
    metrics: dict[MetricKey, str] = {"stall": "longest stall, s", "recover": "until 90 % again, s"}
    charts = []
    for metric, title in metrics.items():
        bars = []
        for row in kind.rows:
            spread = row.spread(metric)
            if spread is not None:
                bars.append(
                    Point(
                        x=row.layout,
                        y=spread.middle,
                        low=spread.least,
                        high=spread.most,
                        label=spread.words,
                        colour=row.layout,
                    )
                )
        charts += [bar_chart(title, bars)] if bars else []
    sentences = tuple(row.sentence for row in kind.rows)
    return Slide(
        title=kind.headline.removesuffix(f" ({brief})"),
        caveat=upper(brief),
        lead=upper(kind.about),
        charts=tuple(charts),
        lines=() if charts else sentences,
        foot="Bars: median; whiskers: lowest and highest repeat.",
        notes=sentences,
    )


def outage_answer(data: RunData) -> str:
    """The longest stalls; empty where nothing died."""
    kinds = outages(data).kinds
    if len(kinds) == 1:
        return kinds[0].headline
    return "; ".join(f"{kind.about}: {kind.headline}" for kind in kinds)


FEATURE: Final = Feature(
    answer=outage_answer,
    tables=(OUTAGES,),
    charts={"outages": ChartKind(outage_charts)},
    sections=outage_sections,
    topic=outage_topic,
    signs=outage_signs,
)
