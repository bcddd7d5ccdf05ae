"""The chart of the highest rates within a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from weighbridge.results.features.find.rates import (
    RATE_HEAD,
    FoundKind,
    FoundRate,
    highest_rates,
    rate_lines,
)
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import counted, upper
from weighbridge.results.show.chart import COMPARABLE, NOT_COMPARABLE, PROVISIONAL, Chart
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.charts.bars import bar_panel
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import Point, Slide, Topic, bar_chart, table_of

_RATE: Final = (
    *("layout", "api", "driver", "workload", "connections", "repeats", "steps", "rate_per_s"),
    "latency_ms",
)


def rate_bars(source: ChartSource) -> tuple[Chart, ...]:
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


def find_topic(data: RunData) -> Topic | None:
    """The highest rate within a bound on latency."""
    found = highest_rates(data)
    if found is None or not found.kinds:
        return None
    bound = str(found.bound)
    sentences = zip(found.kinds, found.sentences, strict=True)
    slides = tuple(_rates(kind, bound, sentence) for kind, sentence in sentences)
    table = table_of(RATE_HEAD, rate_lines(found))
    return Topic(
        question=f"Which rate does each serve within {bound}?",
        answer=slides[0].title,
        slides=slides,
        backup=(Slide(title=f"Rates within {bound}", labels=2, table=table),),
    )


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


def find_sections(data: RunData) -> Iterator[Section]:
    """The highest rates within a bound; none where none was searched."""
    found = highest_rates(data)
    if found is None:
        return
    grid = Grid(
        "Requests sent at a constant rate, by bisection. The most that is served lies between the "
        "two rates: the first was served, the second was not; over repeats they are the ends of "
        "the 95 % interval.",
        RATE_HEAD,
        rate_lines(found),
        range(2, len(RATE_HEAD) - 1),
    )
    # The sentences have the notes.
    brief = Grid(
        "", RATE_HEAD[:-1], [line[:-1] for line in grid.lines], range(2, len(RATE_HEAD)), labels=2
    )
    part = Part(
        sentences=found.sentences,
        grids=(grid,),
        foot="The sentences below are of the closed loop before each search.",
    )
    title = f"The highest rates within {found.bound}"
    yield Section("found", title, (part,), found.sentences, (brief,), first=True)


def find_answer(data: RunData) -> str:
    """The highest rates within the bound; empty where none was searched."""
    found = highest_rates(data)
    return "" if found is None else "; ".join(text.rstrip(".") for text in found.sentences)


FEATURE: Final = Feature(
    answer=find_answer,
    charts={"highest-rates": ChartKind(rate_bars)},
    sections=find_sections,
    topic=find_topic,
)
