"""What the searches of a run found: for each layout and workload the highest rate within the bound.

Over repeats it is the geometric mean of the repeats' rates with its 95 % interval; for one repeat
the most that is served lies between the rate that was and the lowest one that was not. Nothing here
compares layouts: each answer is shown with its own doubts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import parse_seconds
from weighbridge.common.record import Record
from weighbridge.results.features.find.searches import RateSearch, RateTrial, Searches
from weighbridge.results.figures.doubt import Doubt, PairDoubt, few, graves
from weighbridge.results.figures.metric import Metric
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.power_mark import PowerMark, marks_of, power_words
from weighbridge.results.figures.statistics import geometric_mean, one_sample
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import requests_of
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN, counted, listed, show_figure, upper
from weighbridge.results.run import LatencyBound, ResolvedPlan, StepKey
from weighbridge.results.run.step import driver_label
from weighbridge.suites import Api, DriverName, Workload

_OF_DEPLOYMENTS: Final = ("machine busy", "reads uneven")
"""Doubts about an ordinary step that are about its deployment, and so about the steps after it."""


class FoundRate(Record):
    """The answer for one layout and workload."""

    layout: str
    api: Api
    driver: DriverName
    workload: str
    connections: PositiveInt
    repeats: NonNegativeInt
    steps: NonNegativeInt
    """Steps at a rate, over all searches."""
    rate_per_s: PositiveFloat | None = None
    """The highest rate that was served; None: none was, or it is not known."""
    low_per_s: PositiveFloat | None = None
    high_per_s: PositiveFloat | None = None
    """Where the most served lies, for one repeat; over repeats the 95 % interval. None: unknown."""
    latency_ms: NonNegativeFloat | None = None
    """The bound's metric at that rate: the highest of the steps in which it was served."""
    lowest_per_s: PositiveFloat | None = None
    """If no rate was served, the lowest one that was not."""
    at_least: bool = False
    """Whether no higher rate was found that is not served."""
    why: str = ""
    """Why there is no answer, or not as exact a one as was searched."""
    doubts: tuple[Doubt, ...] = ()
    power: PowerMark | None = None
    """What power cuts did to the layout; None if nothing is written, or no layout was tried."""

    @property
    def words(self) -> str:
        """`392 requests/s (392 to 412)`; `not even 5.1 requests/s`; `not known`."""
        if self.rate_per_s is None:
            if self.lowest_per_s is not None:
                return f"not even {show_figure(self.lowest_per_s)} requests/s"
            return f"not known: {self.why}"
        most = "at least " if self.at_least else ""
        return f"{most}{show_figure(self.rate_per_s)} requests/s{self.span}"

    @property
    def figure(self) -> str:
        """`392`, `≥ 392`, or a dash."""
        if self.rate_per_s is None:
            return UNKNOWN
        return f"{'≥ ' * self.at_least}{show_figure(self.rate_per_s)}"

    @property
    def span(self) -> str:
        """` (392 to 412)`; empty if an end is unknown."""
        if self.low_per_s is None or self.high_per_s is None:
            return ""
        return f" ({show_figure(self.low_per_s)} to {show_figure(self.high_per_s)})"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of it, each once: why it is not exact, then its mild doubts."""
        shown = self.why if self.rate_per_s is not None or self.lowest_per_s is not None else ""
        mild = [doubt for doubt in self.doubts if doubt.grade == "mild"]
        return tuple(dict.fromkeys(note for note in (shown, *map(_doubt, mild)) if note))

    @property
    def condemned(self) -> tuple[str, ...]:
        """Its grave doubts: it must not be compared with that of another layout."""
        return tuple(dict.fromkeys(_doubt(doubt) for doubt in graves(self.doubts)))


class FoundKind(Record):
    """The answers of all layouts for one workload, API and driver."""

    about: str
    connections: PositiveInt
    rates: tuple[FoundRate, ...]


class Found(Record):
    """What was searched within which bound, and the answers."""

    bound: LatencyBound
    kinds: tuple[FoundKind, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(_sentence(self.bound, kind) for kind in self.kinds)


RATE_HEAD: Final = (
    *("Requests", "Layout", "Connections", "Requests/s", "From", "To", "Latency, ms"),
    *("Repeats", "Steps", "Notes"),
)


def rate_lines(found: Found) -> tuple[tuple[str, ...], ...]:
    """The answers as lines of a table with `RATE_HEAD`."""
    return tuple(
        (
            kind.about,
            rate.layout,
            str(rate.connections),
            rate.figure,
            show_figure(rate.low_per_s),
            show_figure(rate.high_per_s),
            show_figure(rate.latency_ms),
            str(rate.repeats),
            str(rate.steps),
            "; ".join(
                (
                    *([rate.words] if rate.rate_per_s is None else []),
                    *(f"not comparable: {words}" for words in rate.condemned),
                    *rate.notes,
                    *([rate.power.words] if rate.power is not None else []),
                )
            ),
        )
        for kind in found.kinds
        for rate in kind.rates
    )


@of_run
def highest_rates(data: RunData) -> Found | None:
    """The highest rates within the bound that the run searched; None if it searched none."""
    if data.plan.find is None:
        return None
    searches = Searches(data.plan.find, data.plan.suite)
    for key, step in data.steps.items():
        searches.add(step, data.visits[key])
    lost = {key: "; ".join(step.notes[:1]) for key, step in data.steps.items() if not step.complete}
    return found_rates(data.plan, searches, lost, data.rows, data.between)


def found_rates(
    plan: ResolvedPlan,
    searches: Searches,
    lost: Mapping[StepKey, str],
    rows: Sequence[Row] = (),
    pairs: Sequence[PairDoubt] = (),
) -> Found:
    """The answers of a run's searches. `lost`: steps not measured, with the reason; `rows`:
    ordinary steps; `pairs`: doubts about layouts' hosts.
    """
    answers: list[tuple[tuple[str, Api, DriverName], Workload, FoundRate]] = []
    for layout in plan.layouts:
        for way in plan.passes_of(layout.name):
            for workload in way.workloads if way.layer is None else ():
                first = StepKey(
                    layout=layout.name,
                    api=way.api,
                    workload=workload.name,
                    workers=max(workload.workers),
                    repeat=0,
                    driver=way.driver,
                )
                keys = [
                    first.model_copy(update={"repeat": repeat})
                    for repeat in range(plan.suite.repeats)
                ]
                mine = [row for row in rows if _measured_as(row, first)]
                doubts = (
                    *(one for row in mine for one in row.doubts if one.what in _OF_DEPLOYMENTS),
                    *(pair.doubt for pair in pairs if layout.name in pair.layouts),
                )
                answer = _answer(first, [(key, searches.of(key)) for key in keys], lost, doubts)
                power = next(iter(marks_of([row.power for row in mine])), None)
                answer = answer.model_copy(update={"power": power})
                answers.append(((workload.name, way.api, way.driver), workload, answer))
    names = [workload.name for workload in plan.suite.workloads]
    answers.sort(key=lambda one: (names.index(one[0][0]), *one[0][1:]))
    groups = [(kind, list(some)) for kind, some in groupby(answers, key=lambda one: one[0])]
    abouts = _abouts([(kind, some[0][1]) for kind, some in groups])
    return Found(
        bound=searches.bound,
        kinds=tuple(
            FoundKind(
                about=about,
                connections=some[0][2].connections,
                rates=tuple(rate for _, _, rate in some),
            )
            for about, (_, some) in zip(abouts, groups, strict=True)
        ),
    )


def _abouts(kinds: Sequence[tuple[tuple[str, Api, DriverName], Workload]]) -> list[str]:
    """The names of kinds of requests, which differ."""
    several = len({kind[1] for kind, _ in kinds}) > 1, len({kind[2] for kind, _ in kinds}) > 1
    names = []
    for (_, api, driver), workload in kinds:
        sizes = {one: workload.request_bytes(one) for one in workload.operations}
        name = listed([requests_of(one, size) for one, size in sizes.items()])
        name = f"{name} over {api}" if several[0] else name
        names.append(f"{name} by {driver_label(driver)}" if several[1] else name)
    return [
        f"{name} of {kind[0]}" if names.count(name) > 1 else name
        for name, (kind, _) in zip(names, kinds, strict=True)
    ]


def _answer(
    first: StepKey,
    found: Sequence[tuple[StepKey, RateSearch | None]],
    lost: Mapping[StepKey, str],
    doubts: Sequence[Doubt],
) -> FoundRate:
    searches = [search for _, search in found if search is not None and search.trials]
    with_low = [search for search in searches if search.low is not None]
    missed = [
        search
        for search in searches
        if search.low is None and search.high is not None and not search.tied
    ]
    head = {
        "layout": first.layout,
        "api": first.api,
        "driver": first.driver,
        "workload": first.workload,
        "connections": first.workers,
        "repeats": len(with_low) or len(missed),
        "steps": sum(len(search.trials) for search in searches),
    }
    reasons = list(dict.fromkeys(_reasons(found, lost)))
    why = "; ".join(reasons)
    if not with_low:
        lowest = min((search.missed[0] for search in missed), default=None)
        unknown = why or "no step at a rate was measured"
        few_doubt = [one for one in (few(len(missed)),) if one is not None] if missed else []
        return FoundRate(
            **head,
            lowest_per_s=lowest,
            why=why if missed else unknown,
            doubts=(*few_doubt, *doubts) if missed else (),
        )
    lows = [search.low or 0.0 for search in with_low]
    low: float | None = lows[0]
    high = with_low[0].high
    if len(lows) > 1:
        ratio = one_sample([math.log(value) for value in lows]).ratio
        low, high = ratio.low, ratio.high
    at = [trial for search in with_low for trial in search.trials if trial.rate_per_s == search.low]
    latencies = [
        trial.latency_ms
        for trial in at
        if trial.verdict == "served" and trial.latency_ms is not None
    ]
    return FoundRate(
        **head,
        rate_per_s=geometric_mean(lows),
        low_per_s=low,
        high_per_s=high,
        latency_ms=max(latencies, default=None),
        at_least=any(search.high is None for search in with_low),
        why=why,
        doubts=tuple(dict.fromkeys((*_own_doubts(len(found), with_low, missed, at), *doubts))),
    )


def _own_doubts(
    repeats: int,
    with_low: Sequence[RateSearch],
    missed: Sequence[RateSearch],
    at: Sequence[RateTrial],
) -> Iterator[Doubt]:
    """The doubts about an answer: how many searches it comes from, and their steps at that rate."""
    doubt = few(len(with_low))
    if doubt is not None:
        yield doubt
    if missed:
        words = f"in {len(missed)} of {repeats} repeats no rate was served"
        yield Doubt(what="repeats left out", grade="mild", words=words)
    unknown = repeats - len(with_low) - len(missed)
    if unknown:
        words = f"{unknown} of {repeats} repeats have no answer"
        yield Doubt(what="repeats left out", grade="mild", words=words)
    for trial in at:
        yield from trial.doubts


def _reasons(
    found: Sequence[tuple[StepKey, RateSearch | None]], lost: Mapping[StepKey, str]
) -> Iterator[str]:
    """Why searches have no answer, or not the one that was searched."""
    several = len(found) > 1
    for key, search in found:
        for reason in _reasons_of(key, search, lost):
            yield f"repeat {key.repeat + 1}: {reason}" if several else reason


def _reasons_of(
    key: StepKey, search: RateSearch | None, lost: Mapping[StepKey, str]
) -> Iterator[str]:
    if search is None:
        why = lost.get(key, "it was not measured")
        yield f"the closed loop before it gave no rate to start from: {why}"
        return
    blocked = search.blocked
    if search.next_per_s is not None:
        texts = [text for one, text in lost.items() if _is_of(one, key)]
        yield f"the search is not finished: {texts[-1]}" if texts else "the search is not finished"
    elif blocked is not None:
        rate = show_figure(blocked.rate_per_s)
        yield f"two steps at {rate} requests/s were inconclusive: {blocked.why}"
    elif search.low is not None and search.high is None:
        yield "no higher rate was tried"
    elif search.low is not None and not search.resolved:
        yield f"{counted(len(search.trials), 'step')} were not enough for 5 %"
    if search.next_per_s is None and search.tied:
        rates = listed([show_figure(rate) for rate in search.tied])
        beyond = "" if search.high is None else f", {show_figure(search.high)} are not served"
        yield f"steps at {rates} requests/s disagree{beyond}"
    if search.next_per_s is None and search.low is not None and not search.confirmed:
        yield "it was measured once, and not confirmed"
    if search.low is None and search.high is not None and not search.tied:
        yield next(
            trial.why
            for trial in search.trials
            if (trial.rate_per_s, trial.verdict) == (search.high, "not served")
        )


def _is_of(step: StepKey, key: StepKey) -> bool:
    """Whether a step at a rate belongs to the search of an ordinary step."""
    update = {"rate_per_s": None, "search_step": None}
    return step.rate_per_s is not None and step.model_copy(update=update) == key


def _measured_as(row: Row, key: StepKey) -> bool:
    names = ("layout", "api", "driver", "workload", "workers")
    return all(getattr(row, name) == getattr(key, name) for name in names)


def _doubt(doubt: Doubt) -> str:
    return f"{doubt.what}: {doubt.words}"


def _sentence(bound: LatencyBound, kind: FoundKind) -> str:
    """`64 kB reads within p90 <= 50 ms over 16 connections: rgw-beast serves 392 requests/s (392 to
    412), swift 95 requests/s (95 to 99); provisional: ...`.
    """
    parts: list[str] = []
    for rate in kind.rates:
        verb = "" if parts and rate.rate_per_s is not None else _verb(rate)
        parts.append(f"{rate.layout} {verb}{rate.words}")
    notes = [
        f"{rate.layout}: {note}" if len(kind.rates) > 1 and not _shared(note, kind) else note
        for rate in kind.rates
        for note in rate.notes
    ]
    grave = dict.fromkeys(words for rate in kind.rates for words in rate.condemned)
    doubts = f"; not comparable: {'; '.join(grave)}" if grave else ""
    doubts += f"; provisional: {'; '.join(dict.fromkeys(notes))}" if notes else ""
    connections = counted(kind.connections, "connection")
    marks = power_words(marks_of([rate.power for rate in kind.rates]))
    return (
        f"{upper(kind.about)} within {bound} over {connections}: {', '.join(parts)}{doubts}."
        f"{f' {upper(marks)}.' if marks else ''}"
    )


def _verb(rate: FoundRate) -> str:
    known = rate.rate_per_s is not None or rate.lowest_per_s is not None
    return "serves " if known else "is "


def _shared(note: str, kind: FoundKind) -> bool:
    return all(note in rate.notes for rate in kind.rates)


_BOUND: Final = re.compile(r"\s*([^<>=\s]+)\s*([<>=]*)\s*(.*?)\s*", re.DOTALL)
_EXAMPLE: Final = 'Give a metric and its largest value, in quotes: --find "p90<=50ms".'


def may_bound(metric: Metric) -> bool:
    """Whether a rate can be searched within this metric: in ms, of which less is better."""
    return metric.unit == "ms" and (metric.better == "less" or metric.percent is not None)


def parse_bound(text: str) -> LatencyBound:
    """The bound of `p90<=50ms`. Raises UsageError."""
    found = _BOUND.fullmatch(text)
    if found is None or not found[3]:
        raise UsageError(f"{text[:100]!r} is not a bound", advice=_EXAMPLE)
    key, relation, value = found.groups()
    known = [name for name, metric in METRICS.items() if may_bound(metric)]
    if key not in known:
        why = "is not a latency" if key in METRICS else "is not known"
        hint = did_you_mean(key, known, known=False)
        advice = f"Bounds are on {listed(known, 'or')}."
        raise UsageError(f"{text[:100]!r}: the metric {key[:80]!r} {why}{hint}", advice=advice)
    if relation != "<=":
        advice = f'Only "at most" can be a bound: --find "{key}<={value[:40]}".'
        raise UsageError(f"{text[:100]!r}: {relation or 'nothing'!r} is not <=", advice=advice)
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise UsageError(f"{text[:100]!r}: {error}", advice=_EXAMPLE) from None
    if not isinstance(seconds, float) or not 0 < seconds <= 3600:
        raise UsageError(f"{text[:100]!r}: a bound is above 0 and at most 1h", advice=_EXAMPLE)
    return LatencyBound(metric=key, most_ms=round(seconds * 1000, 6))
