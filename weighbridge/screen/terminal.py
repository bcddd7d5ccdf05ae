"""The console that verbs print to, and how they print lines and tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from weighbridge.common.escaping import escape_controls

WIDTH_ELSEWHERE = 120
"""Characters in a line where there is no terminal (a pipe, a log) and $COLUMNS is not set."""


class InertConsole(Console):
    """A console that escapes control characters in texts, except those that rich itself sends."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As Console does; texts may come from servers, logs and files."""
        for segment in super().render(renderable, options):
            yield (
                segment
                if segment.control
                else Segment(escape_controls(segment.text), segment.style)
            )


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, on stdout, or on stderr beside a document there."""
    found = InertConsole(stderr=stderr)
    if found.is_terminal or "COLUMNS" in os.environ:
        return found
    return InertConsole(stderr=stderr, width=WIDTH_ELSEWHERE)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a text as it is: no markup, no highlighting, wrapped by the terminal alone."""
    console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)


def new_table(*columns: str, right: Collection[str] = (), **options: Any) -> Table:
    """A table with a rule below its header; columns named in `right` are right-aligned."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), **options)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table
