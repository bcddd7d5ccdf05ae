"""Pictures: a chart of any kind as PNG, SVG and PDF, beside it what it was drawn from and what it says.

The fonts that ship are given to the renderer, so that a machine without them draws the same. A PDF holds the letters that it
shows; an SVG names the font and is drawn with what its reader has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from altair.utils.schemapi import debug_mode

from weighbridge.common import inside
from weighbridge.results.chart_theme import font_folder
from weighbridge.results.rendering import draw
from weighbridge.results.store import StoreError, make_folder, write_whole


class Drawing(Protocol):
    """What can be written as a picture with its data and its sentence."""

    @property
    def name(self) -> str:
        """Of its files."""

    @property
    def finding(self) -> str:
        """What it says, in one sentence."""

    @property
    def caption(self) -> str:
        """How to read it."""

    @property
    def csv(self) -> str:
        """What it is drawn from."""

    def spec(self) -> dict[str, Any]:
        """Its Vega-Lite spec."""


def write_charts(drawn: Sequence[Drawing], folder: Path) -> tuple[Path, ...]:
    """Write each chart as PNG (2x), SVG, PDF and CSV into a folder, which is made. Raises RenderingError or StoreError."""
    make_folder(folder.parent)
    try:
        inside.make_folder(folder.parent, folder.name)  # which is an error where it is a link to somebody's folder
    except OSError as error:
        raise StoreError(folder, error) from error
    # Altair checks every part of a chart against its schema as it is made, which takes longer than making it; tests do that.
    with debug_mode(arg=False):
        pictures = draw((chart.spec() for chart in drawn), font_folder()) if drawn else ()
    written = []
    for chart, picture in zip(drawn, pictures, strict=True):
        contents: dict[str, str | bytes] = {
            "png": picture.png,
            "svg": picture.svg,
            "pdf": picture.pdf,
            "csv": chart.csv,
            "txt": f"{chart.finding}\n{chart.caption}\n",
        }
        for ending, content in contents.items():
            path = folder / f"{chart.name}.{ending}"
            write_whole(path, content, folder=folder)
            written.append(path)
    return tuple(written)
