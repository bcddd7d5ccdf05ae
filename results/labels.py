"""Where the texts of a panel stand: names of layouts in a column at its right with a thread to what they name, and small texts
beside points where there is room. All places are worked out here, so that no two texts lie on one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.record import Record
from weighbridge.results.chart_data import spread
from weighbridge.results.chart_theme import Look, Style
from weighbridge.results.charts import colour_of
from weighbridge.results.frame import Frame

NAME_PX: Final = 15
NOTE_PX: Final = 13
THREAD_PX: Final = 26
"""From the right edge of a panel to the names."""


class Label(Record):
    """A layout's name at the right of a panel, and what it names: the end of a line at `x`, `y`, by the panel's scales."""

    layout: str
    x: float | None
    """None: it names nothing that is drawn, and has no thread."""
    y: float
    note: str = ""
    """Below the name, smaller."""


def side_labels(labels: Sequence[Label], frame: Frame, look: Look, shown: Sequence[Style]) -> list[alt.Chart]:
    """Layers of names, moved up or down where two would overlap."""
    noted = any(label.note for label in labels)
    row = (NAME_PX + 5 + (NOTE_PX + 4) * noted) / frame.height
    spots = spread([frame.up.share(label.y) for label in labels], row)
    # Names that stand apart are moved back into the panel where they fit into it.
    low, high = min(spots, default=0.0), max(spots, default=1.0)
    shift = max(0.0, row / 3 - low) - max(0.0, high - 1) if high - low < 1 else 0.0
    values = [
        {**label.model_dump(), "to": frame.up.value(spot + shift), "edge": frame.across.high}
        for label, spot in zip(labels, spots, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=values))
    colour, to = colour_of(shown), frame.y("to")
    thread: dict[str, Any] = {"strokeWidth": 1.2, "opacity": 0.5, "clip": False}
    lift = (NOTE_PX + 2) / 2 if noted else 0
    text: dict[str, Any] = {"align": "left", "baseline": "middle", "dx": THREAD_PX, "clip": False}
    return [
        base.transform_filter("datum.x !== null")
        .mark_rule(**thread, x2Offset=THREAD_PX - 6)
        .encode(x=frame.x(), x2=alt.X2("edge:Q"), y=frame.y(), y2=alt.Y2("to:Q"), color=colour),
        base.mark_text(**text, dy=-lift, fontSize=NAME_PX, fontWeight=600).encode(
            x=frame.x("edge"), y=to, color=colour, text=alt.Text("layout:N")
        ),
        base.transform_filter("datum.note !== ''")
        .mark_text(**text, dy=lift + 2, fontSize=NOTE_PX, color=look.muted)
        .encode(x=frame.x("edge"), y=to, text=alt.Text("note:N")),
    ]


class Spot(Record):
    """A place for a small text: `x` and `y` in pixels from the panel's lower left corner, of its middle."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: Spot) -> bool:
        """Whether two would lie on one another."""
        return abs(self.x - other.x) * 2 < self.width + other.width and abs(self.y - other.y) * 2 < self.height + other.height


def beside(points: Sequence[tuple[float, float, str]], taken: Sequence[Spot], size_px: int, far_px: float) -> list[Spot | None]:
    """A place for the text of each point, in pixels, above it, below it, left or right of it; None where there is no room.

    `taken` is what no text may lie on beside the points themselves; the first points choose first.
    """
    filled = [*taken, *(Spot(x=x, y=y, width=far_px, height=far_px) for x, y, _ in points)]
    places: list[Spot | None] = []
    for x, y, text in points:
        width, height = 0.62 * size_px * len(text), float(size_px)
        aside, above = (far_px + width) / 2 + 1, (far_px + height) / 2 + 1
        tried = [(x, y + above), (x - aside, y), (x + aside, y), (x, y - above), (x - aside, y + above), (x + aside, y - above)]
        spots = (Spot(x=one, y=other, width=width, height=height) for one, other in tried)
        place = next((spot for spot in spots if not any(spot.touches(other) for other in filled)), None)
        places.append(place)
        filled += [place] if place is not None else []
    return places


def along(height_px: float, width_px: float, text: str, taken: Sequence[Spot], size_px: int) -> Spot:
    """A place for a text above or below a level line across a panel of this width, where it lies on as little as can be."""
    width = 0.6 * size_px * len(text)
    spots = [
        Spot(x=left + width / 2, y=height_px + side * (size_px / 2 + 4), width=width, height=float(size_px))
        for side in (1, -1)
        for left in range(6, max(7, round(width_px - width)), 12)
    ]
    return min(spots, key=lambda spot: sum(spot.touches(other) for other in taken))
