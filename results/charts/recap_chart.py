"""The recap of a study as a map of heat: blue where the other level is faster, orange where it is slower, pale without a claim.

The text in each cell says what its colour does. Colour follows the logarithm of the ratio, so that half as much and twice as much
are equally far from the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import NEAR
from weighbridge.results.analysis.study.recap import Recap, RecapCell, recap_csv
from weighbridge.results.charts.chart_theme import LIGHT, Look, colour_at, config, diverging, ink_on, neutral
from weighbridge.results.charts.figure import in_lines
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

CELL_WIDTH: Final = 88
CELL_HEIGHT: Final = 34

_FULL: Final = 1.5
"""Logarithm to base 2 of the ratio that has the full colour; -1 is half as fast, 1 twice as fast."""
_FADED: Final = 0.45
"""How much of its colour is left of a cell that makes no claim."""


class RecapChart(Record):
    """All maps, and the CSV they are drawn from."""

    name: str = "recap"
    title: str = "What changed"
    finding: str
    caption: str
    csv: str
    maps: tuple[Recap, ...]
    look: Look = LIGHT

    def map_spec(self, one: Recap) -> dict[str, Any]:
        """The Vega-Lite spec of one map, for a page, which has its title."""
        spec: dict[str, Any] = _map(one, self.look).to_dict(validate=False)
        return {**spec, "config": {**config(self.look), "padding": 4, "background": None}}

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec of all maps, one below the other."""
        drawn = [
            _map(one, self.look).properties(title=alt.Title(one.title, fontSize=18, fontWeight=600, offset=12, anchor="start"))
            for one in self.maps
        ]
        widest = max((len(one.across) for one in self.maps), default=1) * CELL_WIDTH + 220
        title = alt.Title(in_lines(self.finding, max(36, widest // 15)), subtitle=in_lines(self.caption, max(60, widest // 8)))
        spec: dict[str, Any] = (
            alt.vconcat(*drawn, spacing=34).resolve_scale(x="independent", y="independent").properties(title=title)
        ).to_dict(validate=False)
        return {**spec, "config": config(self.look)}


def recap_chart(maps: Sequence[Recap], look: Look = LIGHT) -> RecapChart:
    """The chart of a study's maps."""
    return RecapChart(
        finding=_finding(maps),
        caption="Change of throughput in %, all else being the same; columns are object size × operations under way. Blue: faster. "
        f"Orange: slower. ~: less than {NEAR * 100:.0f} %, or not shown by {REPEATS_FOR_A_CLAIM} or more repeats. In brackets and "
        f"pale: fewer than {REPEATS_FOR_A_CLAIM} repeats, so no claim. ×: not measured or not valid.",
        csv=recap_csv(maps),
        maps=tuple(maps),
        look=look,
    )


def _finding(maps: Sequence[Recap]) -> str:
    """How many cells may be said to have changed, or that none makes a claim."""
    cells = [cell for one in maps for cell in one.cells]
    measured = [cell for cell in cells if cell.ratio is not None]
    if not measured:
        return "Nothing could be compared"
    claims = [cell for cell in measured if cell.verdict == "changed"]
    if all(cell.verdict == "provisional" for cell in measured):
        few = max(cell.ratio.repeats for cell in measured if cell.ratio is not None)
        pairs = f"{len(measured)} comparison{'s' * (len(measured) > 1)}"
        return f"What was measured in {pairs} by {few} repeat{'s' * (few > 1)}: too few for a claim"
    faster = sum(cell.percent is not None and cell.percent > 0 for cell in claims)
    changed = f"{faster} became faster and {len(claims) - faster} slower"
    return f"Of {len(measured)} comparisons {changed}; of the others nothing can be claimed"


def _map(one: Recap, look: Look) -> alt.LayerChart | alt.FacetChart:
    data = alt.InlineData(values=[_drawn(cell, look) for cell in one.cells])
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None, "labelOverlap": False}
    # Size and number stand one below the other.
    across = alt.Axis(orient="top", labelAngle=0, labelExpr="split(datum.label, ' × ')", labelPadding=24, **bare)
    x = alt.X("across:N", sort=list(one.across), axis=across)
    y = alt.Y("down:N", sort=list(one.down), axis=alt.Axis(labelLimit=420, **bare))
    base = alt.Chart(data)
    heat = base.mark_rect(stroke=look.axis, strokeOpacity=0.6, strokeWidth=1, cornerRadius=3).encode(
        x=x,
        y=y,
        color=alt.Color("colour:N", scale=None),
        tooltip=[alt.Tooltip("down:N"), alt.Tooltip("across:N"), alt.Tooltip("told:N", title="change")],
    )
    words = base.mark_text(fontSize=14, fontWeight=500).encode(x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None))
    return alt.layer(heat, words).properties(width=len(one.across) * CELL_WIDTH, height=max(1, len(one.down)) * CELL_HEIGHT)


def _drawn(cell: RecapCell, look: Look) -> dict[str, Any]:
    """A cell as it is drawn: pale without a claim."""
    doubled = 0.0 if cell.ratio is None or cell.verdict == "same" else math.log2(cell.ratio.value)
    colour = colour_at(doubled / _FULL, diverging(look))
    if cell.verdict != "changed":
        colour = colour_at(2 * _FADED - 1, (neutral(look), colour))
    return {
        "down": cell.down,
        "across": cell.across,
        "colour": colour,
        "ink": ink_on(colour),
        "text": cell.text,
        "told": told(cell),
    }


def told(cell: RecapCell) -> str:
    """The cell in words: change, interval, repeats."""
    if cell.ratio is None:
        return cell.why
    ends = (cell.ratio.low, cell.ratio.high)
    interval = "" if None in ends else f", 95 % interval {' to '.join(f'{((end or 1) - 1) * 100:+.0f} %' for end in ends)}"
    return f"{(cell.ratio.value - 1) * 100:+.1f} %{interval}, n = {cell.ratio.repeats}, {cell.verdict}"
