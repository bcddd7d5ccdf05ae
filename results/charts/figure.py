"""A figure: one chart of several panels as it is drawn for a page, a talk or a print, with the data that it shows.

A figure is built for one look, light or dark, by the function that knows what it shows; everything after that (pictures, the
report, slides) treats all figures alike. `results.charts.charts.write_charts` writes one as PNG, SVG, PDF, CSV and text.

Finished charts are put together by hand: Altair's own functions copy every chart and all that is in it several times over, which
is most of the time that a report of many panels takes. What they would also do, to lift data that charts share, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import altair as alt
from pydantic import NonNegativeInt, PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.charts.chart_theme import LIGHT, Look, config

_OF_THE_WHOLE = ("$schema", "config", "datasets")


def together(specs: Sequence[Mapping[str, Any]], how: Literal["concat", "hconcat", "vconcat"], **rest: Any) -> dict[str, Any]:
    """One Vega-Lite spec of several, of which each is what `to_dict` of a chart gave. `rest` is said of the whole: columns, title.

    A config is left to whoever draws the whole. Raises ValueError where there is none to put together.
    """
    if not specs:
        raise ValueError("no charts to put together")
    datasets = {name: data for spec in specs for name, data in spec.get("datasets", {}).items()}
    parts = [{key: value for key, value in spec.items() if key not in _OF_THE_WHOLE} for spec in specs]
    schema = {"$schema": specs[0]["$schema"]} if "$schema" in specs[0] else {}
    return {**schema, **rest, how: parts, "datasets": datasets}


WIDTH: Final = 440
HEIGHT: Final = 260
WIDE_CHARACTERS: Final = 64
"""Characters of a title on a figure of two columns; subtitles have more than twice as many, since their type is smaller."""


class Plot(Record):
    """One panel: `spec` is its Vega-Lite spec without config, title, width and height; `lines` are what it shows, as a table."""

    key: str
    """A slug that tells it from the figure's other panels."""
    title: str
    finding: str
    """What it says, in a few words or a sentence; empty where there is nothing to say."""
    spec: dict[str, Any]
    head: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    width: PositiveInt = WIDTH
    height: PositiveInt = HEIGHT


class Figure(Record):
    """One chart. `finding` is its title, one sentence without a full stop; `caption` says how to read it."""

    name: str
    """What its files are called."""
    title: str
    """What kind of chart it is: its heading on a page."""
    finding: str
    caption: str
    csv: str
    plots: tuple[Plot, ...]
    columns: PositiveInt = 2
    look: Look = LIGHT
    labels_px: NonNegativeInt = 0
    """How wide long labels left of a lone column of panels are: the title begins above them. 0: it begins above the panels."""

    def plot_spec(self, plot: Plot) -> dict[str, Any]:
        """The spec of one panel that takes the width it is given: the page has its title, and gives the margins."""
        size = {"width": "container", "height": plot.height}
        return {**plot.spec, **size, "config": {**config(self.look), "padding": 4, "background": None}}

    def spec(self) -> dict[str, Any]:
        """The spec of the whole figure, with its sentence as title."""
        wide = len(self.plots) > 1 and self.columns > 1
        widest = max((plot.width for plot in self.plots), default=WIDTH) + self.labels_px
        # Of the type that titles and captions are set in, a character takes 13.5 and 7.6 pixels on average.
        characters = WIDE_CHARACTERS if wide else max(38, round(widest / 13.5))
        below = round(WIDE_CHARACTERS * 2.3) if wide else max(74, round(widest / 7.6))
        # Where no panel has a sentence of its own no room is left for one.
        blank = " " if any(plot.finding for plot in self.plots) else ""
        drawn = [
            {
                **{part: content for part, content in plot.spec.items() if part != "datasets"},
                "width": plot.width,
                "height": plot.height,
                "title": {
                    "text": plot.title,
                    "subtitle": in_lines(plot.finding, round(plot.width / 7)) if plot.finding else blank,
                    "fontSize": 18,
                    "fontWeight": 600,
                    "subtitleFontSize": 15,
                    "offset": 14,
                },
            }
            for plot in self.plots
        ]
        # Altair names datasets by what is in them, and Vega-Lite looks for them only at the top of a spec.
        datasets = {name: values for plot in self.plots for name, values in plot.spec.get("datasets", {}).items()}
        title: dict[str, Any] = {"text": in_lines(self.finding, characters), "subtitle": in_lines(self.caption, below)}
        if self.labels_px:
            title["frame"] = "bounds"
        return {
            "$schema": alt.SCHEMA_URL,
            "datasets": datasets,
            "concat": drawn,
            "columns": self.columns if wide else 1,
            "title": title,
            "config": config(self.look),
        }


def in_lines(text: str, width: int) -> list[str]:
    """A text broken into lines of about this many characters."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
