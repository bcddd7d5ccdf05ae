"""What it means that something dies while load runs: each layout's figures, and its seconds.

Over repeats figures are medians with their range, since a time until something was noticed has few
values and no bell. Layouts are compared by the longest stall, the time to detect and the time to
90 %, as any other metric is: with the same tests, doubts, correction and noise floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Final, get_args

from pydantic import NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison, Verdict
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import class_words
from weighbridge.results.analysis.steps.visit import (
    OutageSecond,
    Times,
    figures,
    series,
    times_of,
)
from weighbridge.results.doubt import Doubt, PairDoubt, doubt_brief, few
from weighbridge.results.figures import counted, show_figure, upper
from weighbridge.results.metric import OutageFigures
from weighbridge.results.metrics import MetricKey
from weighbridge.results.record import ResolvedPlan, StepKey, StepResult, Telemetry
from weighbridge.results.record.outage import Outage

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
        figures(measured.seconds, measured.window_s, row.operation, when)
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
