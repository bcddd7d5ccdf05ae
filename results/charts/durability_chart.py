"""What each power cut took: objects lost and objects in no listing, over the time of the cut.

A panel for each layout, and one apart for its control, which must lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.results.analysis.durability import (
    FINDING_WORDS,
    LISTINGS,
    LOSSES,
    CutSeries,
    LayoutDurability,
)
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Tone
from weighbridge.results.figures import counted, show_figure
from weighbridge.results.record.durability import FINDINGS, PowerCut

_HEAD: Final = (
    "Layout",
    "Cut",
    "After, s",
    "Acknowledged",
    *(FINDING_WORDS[one].capitalize() for one in FINDINGS),
    "Serves after, s",
)


def durability_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The figure of a run in which power was cut; else none."""
    found = [one for one in source.durability if one.store.made]
    if not found:
        return ()
    marks = "; ".join(f"{one.layout}: {one.mark.words}" for one in found)
    panels = [_panel(one.layout, one.store, of=one, control=False) for one in found]
    panels += [
        _panel(one.layout, one.control, of=one, control=True) for one in found if one.control.made
    ]
    figure = Figure(
        name="power-cuts",
        title="Objects lost, by power cut",
        finding=f"Power cuts: {marks}",
        caption="Each mark is a cut, at its second of the load. ×: acknowledged objects that were "
        "lost, torn, wrong, stale, back or unreadable. Hollow: readable, and in no listing. Dots "
        "at 0: cuts that lost nothing. Controls, whose syncs do nothing, must lose.",
        panels=tuple(panels),
        section="durability",
        layouts=source.layouts,
    )
    return (figure,)


def _panel(name: str, series: CutSeries, *, of: LayoutDurability, control: bool) -> Panel:
    losses = [(cut, _sum(cut, LOSSES)) for cut in series.cuts]
    listings = [(cut, _sum(cut, LISTINGS)) for cut in series.cuts]
    most = max(number for _, number in (*losses, *listings))
    last = max(cut.at_s for cut in (*of.store.cuts, *of.control.cuts))
    return Panel(
        key=f"{name}-control" if control else name,
        title=f"{name}, control: its syncs do nothing" if control else name,
        finding=(
            f"lost writes in {series.losing} of {counted(series.made, 'cut')}"
            if control
            else of.mark.words
        ),
        x=AxisScale.from_zero(last or 1.0, "seconds of load before the cut"),
        y=AxisScale.from_zero(max(most, 1) * 1.05, "objects"),
        marks=(
            Mark(kind="dot", spots=tuple(_spots(losses, "", of.layout, zero=True))),
            Mark(kind="hollow", spots=tuple(_spots(listings, "listed wrongly", of.layout))),
            Mark(kind="cross", spots=tuple(_spots(losses, "lost", of.layout, tone="bad"))),
        ),
        head=_HEAD,
        lines=tuple(_line(f"{name}, control" if control else name, cut) for cut in series.cuts),
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
    """The cuts with any, or with `zero` those without."""
    for cut, number in found:
        if (number == 0) == zero:
            words = f"{number:,} {what}" if number else "nothing lost"
            tip = f"cut {cut.number}, after {show_figure(cut.at_s)} s: {words}"
            yield Spot(x=cut.at_s, y=float(number), layout=layout, tone=tone, tip=tip)


def _line(name: str, cut: PowerCut) -> tuple[str, ...]:
    return (
        name,
        str(cut.number),
        show_figure(cut.at_s),
        f"{cut.acknowledged:,}",
        *(f"{cut.count(one):,}" for one in FINDINGS),
        show_figure(cut.serves_s),
    )
