"""The console that verbs print to, and how they print lines and tables."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Collection, Iterable
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from weighbridge.common.escaping import escape_controls

WIDTH_ELSEWHERE = 120
"""Characters in a line where there is no terminal (a pipe, a log) and $COLUMNS is not set."""


_BEGIN: Final = re.compile(r" *(?:• |[a-z]  )?")
"""What a line begins with before its text: spaces, and the mark of a list or of a doubt."""


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
    """Print a text as it is: no markup, no highlighting. On a terminal, lines that are too long are
    broken between words and go on below where their text begins; elsewhere they stay whole.
    """
    shown = _wrapped(text, console.width) if console.is_terminal else text
    console.print(shown, style=style or None, markup=False, highlight=False, soft_wrap=True)


def _wrapped(text: str, width: int) -> str:
    """The text with its lines broken between words; words, such as paths, stay whole."""
    lines = []
    for line in text.split("\n"):
        begin = _BEGIN.match(line)
        indent = min(begin.end() if begin is not None else 0, width // 4)
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        ) or [line]
    return "\n".join(lines)


def new_table(*columns: str, right: Collection[str] = (), **options: Any) -> Table:
    """A table with a rule below its header; columns named in `right` are right-aligned."""
    table = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), **options)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table
