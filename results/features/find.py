"""What the searches of a run found: for each layout and workload the highest rate within the bound.

Over repeats it is the geometric mean of the repeats' rates with its 95 % interval; for one repeat
the most that is served lies between the rate that was and the lowest one that was not. Nothing here
compares layouts: each answer is shown with its own doubts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge.results.features.rate_search import RateSearch, Searches
from weighbridge.results.figures.doubt import (
    Doubt,
    PairDoubt,
    PowerMark,
    few,
    graves,
    marks_of,
    power_words,
)
from weighbridge.results.figures.statistics import geometric_mean, one_sample
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Kind, called, requests_of
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN, counted, listed, show_figure, upper
from weighbridge.results.run import LatencyBound, ResolvedPlan, StepKey
from weighbridge.results.show.chart import COMPARABLE, NOT_COMPARABLE, PROVISIONAL, Chart
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.charts.bars import bar_panel
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.latencies import PLACE
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import Point, Slide, Topic, bar_chart
from weighbridge.suites import Api, DriverName

_DEPLOYED: Final = ("machine busy", "reads uneven")
"""Doubts about an ordinary step that are about its deployment, and so about the steps after it."""


@dataclass(frozen=True)
class FoundRate:
    """The answer for one layout and workload: the highest rate that was served (None: none was, or
    it is not known), and where the most that is served lies: for one repeat between two rates,
    over repeats in the 95 % interval.
    """

    layout: str
    api: Api
    driver: DriverName
    workload: str
    connections: int
    repeats: int
    steps: int
    """Steps at a rate, over all searches."""
    rate_per_s: float | None = None
    low_per_s: float | None = None
    high_per_s: float | None = None
    latency_ms: float | None = None
    """The bound's metric at that rate: the highest of the steps in which it was served."""
    lowest_per_s: float | None = None
    """If no rate was served, the lowest one that was not."""
    at_least: bool = False
    """Whether no higher rate was found that is not served."""
    why: str = ""
    """Why there is no answer, or not as exact a one as was searched."""
    doubts: tuple[Doubt, ...] = ()
    power: PowerMark | None = None

    @property
    def words(self) -> str:
        """`392 requests/s (392 to 412)`; `not even 5.1 requests/s`; `not known`."""
        if self.rate_per_s is None:
            if self.lowest_per_s is not None:
                return f"not even {show_figure(self.lowest_per_s)} requests/s"
            return f"not known: {self.why}"
        most = "at least " if self.at_least else ""
        ends = ""
        if self.low_per_s is not None and self.high_per_s is not None:
            ends = f" ({show_figure(self.low_per_s)} to {show_figure(self.high_per_s)})"
        return f"{most}{show_figure(self.rate_per_s)} requests/s{ends}"

    @property
    def figure(self) -> str:
        """`392`, `≥ 392`, or a dash."""
        if self.rate_per_s is None:
            return UNKNOWN
        return f"{'≥ ' * self.at_least}{show_figure(self.rate_per_s)}"

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


@dataclass(frozen=True)
class FoundKind:
    """The answers of all layouts for one workload, API and driver."""

    about: str
    connections: int
    rates: tuple[FoundRate, ...]


@dataclass(frozen=True)
class Found:
    """What was searched within which bound, and the answers."""

    bound: LatencyBound
    kinds: tuple[FoundKind, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(_sentence(self.bound, kind) for kind in self.kinds)


def rates_grid(found: Found) -> Grid:
    """The answers as a table; the sentences have the notes."""
    rates = [(kind.about, rate) for kind in found.kinds for rate in kind.rates]
    head = ("Requests", "Layout", "Connections", "Requests/s", "From", "To", "Latency, ms")
    lines = []
    for about, rate in rates:
        figures = map(show_figure, (rate.low_per_s, rate.high_per_s, rate.latency_ms))
        counts = (str(rate.repeats), str(rate.steps))
        lines.append((about, rate.layout, str(rate.connections), rate.figure, *figures, *counts))
    bad = [number for number, (_, rate) in enumerate(rates) if rate.condemned]
    return Grid("", (*head, "Repeats", "Steps"), lines, range(2, 9), bad, labels=2)


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
    rates: dict[Kind, list[FoundRate]] = {}
    asked: dict[Kind, str] = {}
    for layout in plan.layouts:
        of_hosts = [pair.doubt for pair in pairs if layout.name in pair.layouts]
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
                places = [row for row in rows if PLACE(row) == PLACE(first)]
                doubts = [one for row in places for one in row.doubts if one.what in _DEPLOYED]
                rate = _answer({key: searches.of(key) for key in keys}, lost, doubts + of_hosts)
                power = next(iter(marks_of([row.power for row in places])), None)
                kind = (workload.name, next(iter(workload.operations)), way.api, way.driver)
                sizes = [(one, workload.request_bytes(one)) for one in workload.operations]
                asked[kind] = listed([requests_of(*size) for size in sizes])
                rates.setdefault(kind, []).append(replace(rate, power=power))
    workloads = [workload.name for workload in plan.suite.workloads]
    kinds = sorted(rates, key=lambda kind: (workloads.index(kind[0]), *kind[1:]))
    abouts = called(asked)
    return Found(
        searches.bound,
        tuple(
            FoundKind(abouts[kind], rates[kind][0].connections, tuple(rates[kind]))
            for kind in kinds
        ),
    )


def _answer(
    found: Mapping[StepKey, RateSearch | None], lost: Mapping[StepKey, str], doubts: Sequence[Doubt]
) -> FoundRate:
    """The answer of the searches of each repeat."""
    key = next(iter(found))
    searches = [search for search in found.values() if search is not None and search.trials]
    served = [search for search in searches if search.low is not None]
    missed = [search for search in searches if search.low is None and search.high is not None]
    missed = [search for search in missed if not search.tied]
    reasons = [
        f"repeat {repeat.repeat + 1}: {reason}" if len(found) > 1 else reason
        for repeat, search in found.items()
        for reason in _reasons(repeat, search, lost)
    ]
    rate = FoundRate(
        layout=key.layout,
        api=key.api,
        driver=key.driver,
        workload=key.workload,
        connections=key.workers,
        repeats=len(served) or len(missed),
        steps=sum(len(search.trials) for search in searches),
        why="; ".join(dict.fromkeys(reasons)),
    )
    few_repeats = few(rate.repeats)
    if not served and not missed:
        return replace(rate, why=rate.why or "no step at a rate was measured")
    if not served:
        lowest = min(search.high for search in missed if search.high is not None)
        return replace(rate, lowest_per_s=lowest, doubts=(*few_repeats, *doubts))
    lows = [search.low for search in served if search.low is not None]
    low: float | None = lows[0]
    high = served[0].high
    if len(lows) > 1:
        ratio = one_sample([math.log(value) for value in lows]).ratio
        low, high = ratio.low, ratio.high
    trials = [
        trial for search in served for trial in search.trials if trial.rate_per_s == search.low
    ]
    latencies = [trial.latency_ms for trial in trials if trial.verdict == "served"]
    own = [*few_repeats, *_left_out(len(found), len(served), len(missed))]
    own += [doubt for trial in trials for doubt in trial.doubts]
    return replace(
        rate,
        rate_per_s=geometric_mean(lows),
        low_per_s=low,
        high_per_s=high,
        latency_ms=max((one for one in latencies if one is not None), default=None),
        at_least=any(search.high is None for search in served),
        doubts=tuple(dict.fromkeys((*own, *doubts))),
    )


def _left_out(repeats: int, served: int, missed: int) -> Iterator[Doubt]:
    unknown = repeats - served - missed
    for count, words in (
        (missed, f"in {missed} of {repeats} repeats no rate was served"),
        (unknown, f"{unknown} of {repeats} repeats have no answer"),
    ):
        if count:
            yield Doubt(what="repeats left out", grade="mild", words=words)


def _reasons(key: StepKey, search: RateSearch | None, lost: Mapping[StepKey, str]) -> Iterator[str]:
    """Why a search has no answer, or not the one that was searched."""
    if search is None:
        why = lost.get(key, "it was not measured")
        yield f"the closed loop before it gave no rate to start from: {why}"
        return
    blocked = search.blocked
    if search.next_per_s is not None:
        ordinary = {"rate_per_s": None, "search_step": None}
        at_rates = {step: why for step, why in lost.items() if step.rate_per_s is not None}
        whys = [why for step, why in at_rates.items() if step.model_copy(update=ordinary) == key]
        yield ": ".join(["the search is not finished", *whys[-1:]])
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


def _doubt(doubt: Doubt) -> str:
    return f"{doubt.what}: {doubt.words}"


def _sentence(bound: LatencyBound, kind: FoundKind) -> str:
    """`64 kB reads within p90 <= 50 ms over 16 connections: rgw-beast serves 392 requests/s (392 to
    412), swift 95 requests/s (95 to 99); provisional: ...`.
    """
    parts: list[str] = []
    notes: list[str] = []
    for rate in kind.rates:
        known = rate.rate_per_s is not None or rate.lowest_per_s is not None
        verb = "serves " if known else "is "
        verb = "" if parts and rate.rate_per_s is not None else verb
        parts.append(f"{rate.layout} {verb}{rate.words}")
        for note in rate.notes:
            shared = all(note in other.notes for other in kind.rates)
            notes.append(note if shared else f"{rate.layout}: {note}")
    grave = dict.fromkeys(words for rate in kind.rates for words in rate.condemned)
    doubts = f"; not comparable: {'; '.join(grave)}" if grave else ""
    doubts += f"; provisional: {'; '.join(dict.fromkeys(notes))}" if notes else ""
    connections = counted(kind.connections, "connection")
    marks = power_words(marks_of([rate.power for rate in kind.rates]))
    return (
        f"{upper(kind.about)} within {bound} over {connections}: {', '.join(parts)}{doubts}."
        f"{f' {upper(marks)}.' if marks else ''}"
    )


# Chart, slides, section.


_RATE: Final = (
    *("layout", "api", "driver", "workload", "connections", "repeats", "steps", "rate_per_s"),
    "latency_ms",
)


def _bars(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run that searched rates and found one; else none. A whisker is where the most
    that is served lies: up to the lowest rate that was not served, or over repeats the interval.
    """
    found = highest_rates(source.data)
    rates = [] if found is None else [rate for kind in found.kinds for rate in kind.rates]
    answered = [rate for rate in rates if rate.rate_per_s is not None]
    if found is None or not answered:
        return ()
    whiskers = (
        "Whiskers end at the lowest rate that was not served"
        if max(rate.repeats for rate in answered) == 1
        else "Whiskers are the 95 % interval over the repeats"
    )
    start = "Provisional: the" if any(rate.doubts for rate in answered) else "The"
    if any(rate.condemned for rate in answered):
        start = "Not comparable: the"
    panels = []
    for kind in found.kinds:
        first = kind.rates[0]
        panels.append(
            bar_panel(
                [_rate_row(rate) for rate in kind.rates],
                "rate_per_s",
                key=f"{first.workload}-{first.api}-{first.driver}",
                title=f"{upper(kind.about)}, {counted(kind.connections, 'connection')}",
            )
        )
    chart = Chart(
        key="highest-rates",
        title=f"The highest rate within {found.bound}",
        finding=f"{start} most requests/s that each layout serves within {found.bound}",
        caption=f"Requests are sent at a constant rate. {whiskers}.",
        panels=tuple(panels),
        layouts=source.layouts,
    )
    return (chart,)


def _rate_row(rate: FoundRate) -> dict[str, Any]:
    return {
        **{name: getattr(rate, name) for name in _RATE},
        "low": rate.low_per_s,
        "high": rate.high_per_s,
        "standing": NOT_COMPARABLE
        if rate.condemned
        else PROVISIONAL
        if rate.doubts
        else COMPARABLE,
        "why": "; ".join(rate.notes) if rate.rate_per_s is not None else rate.words,
        "_text": f"{rate.figure}/s",
    }


def _topic(data: RunData) -> Topic | None:
    found = highest_rates(data)
    if found is None or not found.kinds:
        return None
    bound = str(found.bound)
    sentences = zip(found.kinds, found.sentences, strict=True)
    slides = tuple(_rates(kind, bound, sentence) for kind, sentence in sentences)
    question = f"Which rate does each serve within {bound}?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _rates(kind: FoundKind, bound: str, sentence: str) -> Slide:
    graves = dict.fromkeys(words for rate in kind.rates for words in rate.condemned)
    notes = dict.fromkeys(note for rate in kind.rates for note in rate.notes)
    caveat = f"Provisional: {'; '.join(notes)}" if notes else ""
    bars = [
        Point(
            x=rate.layout,
            y=rate.rate_per_s or 0.0,
            low=rate.low_per_s,
            high=rate.high_per_s,
            label=rate.figure,
            colour=rate.layout,
        )
        for rate in kind.rates
    ]
    answers = ", ".join(f"{rate.layout} {rate.words}" for rate in kind.rates)
    return Slide(
        title=f"{upper(kind.about)} within {bound}: {answers}",
        caveat=f"Not comparable: {'; '.join(graves)}" if graves else caveat,
        charts=(bar_chart("highest rate, requests/s", bars),),
        foot=f"{counted(kind.connections, 'connection')}; whiskers: 95 % interval over repeats.",
        notes=(sentence,),
    )


def _sections(data: RunData) -> Iterator[Section]:
    found = highest_rates(data)
    if found is None:
        return
    brief = rates_grid(found)
    caption = (
        "Requests sent at a constant rate, by bisection. The most that is served lies between the "
        "two rates: the first was served, the second was not; over repeats they are the ends of "
        "the 95 % interval."
    )
    part = Part(
        sentences=found.sentences,
        grids=(replace(brief, caption=caption),),
        foot="The sentences below are of the closed loop before each search.",
    )
    title = f"The highest rates within {found.bound}"
    yield Section("found", title, (part,), found.sentences, (brief,), first=True)


def _answer_of(data: RunData) -> str:
    found = highest_rates(data)
    return "" if found is None else "; ".join(text.rstrip(".") for text in found.sentences)


FEATURE: Final = Feature(
    answer=_answer_of, charts={"highest-rates": ChartKind(_bars)}, sections=_sections, topic=_topic
)
