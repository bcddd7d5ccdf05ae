"""The slides of settings: how each setting changes throughput, where layouts differ in one
setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.figures import percent, upper
from weighbridge.results.record import PlannedLayout
from weighbridge.results.show.charts.settings import WIDEST
from weighbridge.results.show.scales import AxisScale, nice_top
from weighbridge.results.show.theme import CLAIMED
from weighbridge.results.slides.evidence import Evidence, rests_on
from weighbridge.results.slides.recap import change_text
from weighbridge.results.slides.slide import BarChart, Slide, SlideBar

BARS: Final = 10


def tuning(evidence: Evidence, comparison: Comparison) -> tuple[Slide, ...]:
    """A slide for each kind of requests; none unless layouts differ in one setting."""
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
                lead=f"Throughput of {evidence.called[kind]} compared with {comparison.baseline}; "
                f"{rests_on(*evidence.repeats)}",
                chart=change_chart(
                    [(changed[one.subject], change_text(one), one) for one in shown], "throughput"
                ),
                foot="Over all worker counts; whiskers: 95 % interval. ~: not significant, or too "
                f"small to matter.{_left(known)}",
                notes=tuple(one.text for one in mine),
            )
        )
    return tuple(slides)


def _left(known: Sequence[Effect]) -> str:
    return f" {len(known) - BARS} smaller ones are in the notes." if len(known) > BARS else ""


def _title(one: Effect, changed: Mapping[str, str], about: str) -> str:
    if one.verdict not in ("better", "worse"):
        return (
            f"No setting changes the throughput of {about} significantly"
            if one.verdict != "provisional"
            else f"{upper(about)} by setting: provisional"
        )
    return f"{changed[one.subject]} changes the throughput of {about} most: {change_text(one)}"


def change_chart(changes: Sequence[tuple[str, str, Effect]], metric: str) -> BarChart:
    """Bars of changes in per cent: settings, their figures as text, and effects with a ratio."""
    bars = []
    for name, label, effect in changes:
        if effect.ratio is not None:
            value, low, high = (
                None if end is None else percent(end)
                for end in (effect.ratio.value, effect.ratio.low, effect.ratio.high)
            )
            tone = CLAIMED.get(effect.verdict, "axis")
            bars.append(
                SlideBar(name=name, value=value or 0.0, low=low, high=high, tone=tone, label=label)
            )
    farthest = max(abs(bar.value) for bar in bars)
    ends = [abs(end) for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    # An interval without an end would squeeze all bars together.
    top, step = nice_top(min(max(ends), WIDEST * farthest or 1.0) or 1.0)
    ticks = tuple(step * number for number in range(-round(top / step), round(top / step) + 1))
    x = AxisScale(low=-top, high=top, ticks=ticks, title=f"change of {metric}, %")
    return BarChart(x=x, bars=tuple(bars))


def one_setting_each(layouts: tuple[PlannedLayout, ...]) -> dict[str, str]:
    """By layout `radosgw threads: 512 → 256`; empty unless each differs in one setting."""
    first, *others = layouts
    changed = {}
    before = dict(_flat(first))
    for other in others:
        after = dict(_flat(other))
        differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if len(differing) != 1 or (other.gateway, other.release) != (first.gateway, first.release):
            return {}
        name = differing[0]
        key = name.replace(" ", ".")
        was, now = (
            own.get(name, one.by_size.get(key, "not set"))
            for one, own in ((first, before), (other, after))
        )
        changed[other.name] = f"{name}: {was} → {now}"
    return changed


def _flat(layout: PlannedLayout) -> Iterator[tuple[str, str]]:
    yield from _leaves("place", layout.place)
    yield from _leaves("", layout.settings)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name} {key}".strip(), inner)
    else:
        yield name, str(value)
