"""What each power cut took: objects lost and objects in no listing, over the time of the cut.

The controls, which must lose, have a figure of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.results.analysis.durability import (
    FINDING_WORDS,
    LISTINGS,
    LOSSES,
    CutSeries,
)
from weighbridge.results.analysis.power_mark import power_words
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Tone
from weighbridge.results.figures import counted, show_figure, upper
from weighbridge.results.record.durability import FINDINGS, PowerCut

_NONE: Final = 0.5
"""Where cuts that lost nothing are drawn: at the foot of a logarithmic scale."""
_HEAD: Final = (
    "Cut",
    "After, s",
    "Acknowledged",
    *(upper(FINDING_WORDS[one]) for one in FINDINGS),
    "Serves after, s",
)


def durability_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The figures of a run in which power was cut, of stores and of controls; else none."""
    return tuple(_figures(source))


def _figures(source: ChartSource) -> Iterator[Figure]:
    found = [one for one in source.durability if one.store.made]
    if found:
        yield Figure(
            name="power-cuts",
            title="Objects lost, by power cut",
            finding=upper(power_words(one.mark for one in found)),
            caption="Each mark is a cut, at its second of the load. ×: acknowledged objects that "
            "were lost, torn, wrong, stale, back or unreadable. Hollow: objects that listings have "
            "wrong. Dots at the foot: cuts that lost nothing.",
            panels=_panels({one.layout: one.store for one in found}),
            section="durability",
            layouts=source.layouts,
        )
    controls = [one for one in found if one.control.made]
    if controls:
        each = ", ".join(f"{one.layout} in {_among(one.control)}" for one in controls)
        yield Figure(
            name="power-cut-controls",
            title="Objects lost by the controls, by power cut",
            finding=f"Controls must lose writes, and did: {each}",
            caption="No results of layouts: the same stores with syncs that keep nothing during "
            "the load. Marks as in the chart of power cuts.",
            panels=_panels({f"{one.layout}, control": one.control for one in controls}),
            section="durability",
            layouts=source.layouts,
        )


def _among(series: CutSeries) -> str:
    return f"{series.losing} of {counted(series.made, 'cut')}"


def _panels(found: Mapping[str, CutSeries]) -> tuple[Panel, ...]:
    every = [cut for series in found.values() for cut in series.cuts]
    last = max(cut.at_s for cut in every)
    most = max(_sum(cut, which) for cut in every for which in (LOSSES, LISTINGS))
    x = AxisScale.from_zero(last or 1.0, "seconds of load before the cut")
    scale = AxisScale.logarithmic((1.0, max(most, 10)), "objects (log scale)")
    y = scale.model_copy(update={"low": _NONE})
    return tuple(_panel(title, series, x, y) for title, series in found.items())


def _panel(title: str, series: CutSeries, x: AxisScale, y: AxisScale) -> Panel:
    layout = series.cuts[0].layout
    losses = [(cut, _sum(cut, LOSSES)) for cut in series.cuts]
    listings = [(cut, _sum(cut, LISTINGS)) for cut in series.cuts]
    return Panel(
        key=title.replace(", ", "-"),
        title=title,
        finding=f"lost writes in {_among(series)}",
        x=x,
        y=y,
        marks=(
            Mark(kind="dot", spots=tuple(_spots(losses, "", layout, zero=True))),
            Mark(kind="hollow", spots=tuple(_spots(listings, "that listings have wrong", layout))),
            Mark(kind="cross", spots=tuple(_spots(losses, "lost", layout, tone="bad"))),
        ),
        head=_HEAD,
        lines=tuple(_line(cut) for cut in series.cuts),
    )


def _sum(cut: PowerCut, which: Sequence[str]) -> int:
    return sum(cut.count(one) for one in FINDINGS if one in which)


def _spots(
    found: Sequence[tuple[PowerCut, int]],
    what: str,
    layout: str,
    *,
    zero: bool = False,
    tone: Tone | None = None,
) -> Iterator[Spot]:
    for cut, number in found:
        if (number == 0) == zero:
            words = f"{number:,} {what}" if number else "none lost"
            tip = f"cut {cut.number}, after {show_figure(cut.at_s)} s: {words}"
            yield Spot(x=cut.at_s, y=float(number) or _NONE, layout=layout, tone=tone, tip=tip)


def _line(cut: PowerCut) -> tuple[str, ...]:
    return (
        str(cut.number),
        show_figure(cut.at_s),
        f"{cut.acknowledged:,}",
        *(f"{cut.count(one):,}" for one in FINDINGS),
        show_figure(cut.serves_s),
    )
