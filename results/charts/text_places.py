from __future__ import annotations

from typing import Final

from weighbridge.results.charts.panels import Panel, Spot
from weighbridge.results.charts.placing import LabelSpot, along, pieces

NOTE_PX: Final = 13


def level_place(panel: Panel, spot: Spot) -> LabelSpot:
    """The place of the text of a level."""
    level = panel.y.share(number(spot.y)) * panel.height
    return along(level, panel.width, spot.text, taken(panel, words=False), NOTE_PX)


def taken(panel: Panel, *, words: bool) -> list[LabelSpot]:
    """What is drawn, in small pieces that no text should cover; `words`: texts, too."""
    spots: list[LabelSpot] = []
    floor = panel.y.low
    for mark in panel.marks:
        for trace in mark.traces:
            spots += pieces([panel.px(x, y) for x, y in zip(trace.x, trace.y, strict=True)])
        covered = ("interval", "pale bin", *(("drop",) if words else ()))
        for one in mark.spots if mark.kind in covered else ():
            x, y = panel.px(number(one.x), number(one.y))
            bottom = number(one.y2, number(one.y, floor))
            to_x, to_y = panel.px(number(one.x2, number(one.x)), bottom)
            pale = mark.kind == "pale bin"
            width = 10.0 if pale else 4.0
            height = max(abs(to_y - y), 8.0 if pale else 0.0)
            if one.x2 is not None:
                width, height = width if pale else max(12.0, abs(to_x - x)), 12.0
            spots.append(LabelSpot(x=(x + to_x) / 2, y=(y + to_y) / 2, width=width, height=height))
        for one in mark.spots if mark.kind == "level" and words else ():
            level = panel.y.share(number(one.y)) * panel.height
            spots.append(level_place(panel, one))
            spots.append(LabelSpot(x=panel.width / 2, y=level, width=float(panel.width), height=3))
    return spots


def number(value: float | str | None, otherwise: float = 0.0) -> float:
    """A coordinate as a number; `otherwise` for a name or None."""
    return value if isinstance(value, float) else otherwise
