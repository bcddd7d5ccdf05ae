"""The tornado of a tuning: how far each setting moves throughput, where each layout differs from
the first in one setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.charts.chart_theme import Look, diverging, neutral
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.figures import upper
from weighbridge.results.record import PlannedLayout
from weighbridge.results.slides.evidence import Evidence, rests_on
from weighbridge.results.slides.recap import change_text
from weighbridge.results.slides.slide import Axis, BarChart, Slide, SlideBar

BARS: Final = 10
"""As many as can be read."""


def tuning(evidence: Evidence, comparison: Comparison, look: Look) -> tuple[Slide, ...]:
    """A slide for each kind of requests; none where a layout differs from the first in more than
    one setting, or in none.
    """
    changed = one_setting_each(evidence.plan.layouts)
    if not changed:
        return ()
    slides = []
    for kind in evidence.kinds:
        mine = [
            one
            for one in comparison.effects
            if kind_of(one) == kind and one.workers is None and one.metric == "throughput"
        ]
        known = sorted(
            (one for one in mine if one.ratio is not None),
            key=lambda one: -abs((one.ratio.value if one.ratio else 1) - 1),
        )
        if not known:
            continue
        shown = known[:BARS]
        slides.append(
            Slide(
                key="tuning-" + "-".join(kind),
                title=_title(shown[0], changed, evidence.called[kind]),
                lead=f"Throughput of {evidence.called[kind]} against {comparison.baseline}; "
                f"{rests_on(*evidence.repeats)}",
                chart=_chart(shown, changed, look),
                foot="Over all worker counts; whiskers: 95 % interval. ~: not shown, or too "
                f"small to matter.{_left(known)}",
                notes=tuple(one.text for one in mine),
            )
        )
    return tuple(slides)


def _left(known: Sequence[Effect]) -> str:
    return f" {len(known) - BARS} smaller ones are in the notes." if len(known) > BARS else ""


def _title(one: Effect, changed: Mapping[str, str], about: str) -> str:
    """What moves throughput most, if anything is shown to."""
    if one.verdict not in ("better", "worse"):
        return (
            f"No setting is shown to move the throughput of {about}"
            if one.verdict != "provisional"
            else f"{upper(about)} by setting: provisional"
        )
    return f"{changed[one.subject]} moves the throughput of {about} most: {change_text(one)}"


def _chart(effects: list[Effect], changed: Mapping[str, str], look: Look) -> BarChart:
    bars = tuple(_bar(one, changed[one.subject], look) for one in effects)
    ends = [value for bar in bars for value in (bar.value, bar.low, bar.high) if value is not None]
    top, step = nice_top(max(abs(value) for value in ends) or 1.0)
    return BarChart(
        across=Axis(title="change of throughput, %", low=-top, high=top, step=step), bars=bars
    )


def _bar(one: Effect, name: str, look: Look) -> SlideBar:
    if one.ratio is None:
        raise ValueError(f"{one.subject} has no ratio to draw")
    value, low, high = (
        None if end is None else (end - 1) * 100
        for end in (one.ratio.value, one.ratio.low, one.ratio.high)
    )
    colours = diverging(look)
    colour = {"better": colours[5], "worse": colours[1]}.get(
        one.verdict, look.axis if one.verdict != "provisional" else neutral(look)
    )
    return SlideBar(
        name=name, value=value or 0.0, low=low, high=high, colour=colour, label=change_text(one)
    )


def one_setting_each(layouts: tuple[PlannedLayout, ...]) -> dict[str, str]:
    """By layout, the one setting in which it differs from the first:

    `radosgw threads: 512 → 256`; empty where one has more.
    """
    first, *others = layouts
    changed = {}
    before = dict(_flat(first))
    for other in others:
        after = dict(_flat(other))
        differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if len(differing) != 1 or (other.gateway, other.release) != (first.gateway, first.release):
            return {}
        name = differing[0]
        changed[other.name] = (
            f"{name}: {before.get(name, 'not set')} → {after.get(name, 'not set')}"
        )
    return changed


def _flat(layout: PlannedLayout) -> Iterator[tuple[str, str]]:
    """Where a layout's services sit and what is set of them, by names."""
    yield from _leaves("place", layout.place)
    yield from _leaves("", layout.settings)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name} {key}".strip(), inner)
    else:
        yield name, str(value)
