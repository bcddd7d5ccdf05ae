from __future__ import annotations

import errno
import os
import re
import signal
import textwrap
from collections.abc import Collection, Iterable, Sequence
from math import ceil
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from weighbridge.common.escaping import as_started, escape_controls
from weighbridge.results.show.section import Grid

WIDTH_ELSEWHERE = 120
"""Characters in a line where there is no terminal (a pipe, a log) and $COLUMNS is not set."""


WHOLE: Final = 20
"""Characters up to which the cells of a table are not broken between words."""
_BETWEEN: Final = 2
_AROUND: Final = 3
"""Spaces that a column takes at most beside its text."""
_BEGIN: Final = re.compile(r" *(?:• |[a-z]  )?")
"""What a line begins with before its text: spaces, and the mark of a list or of a doubt."""


class InertConsole(Console):
    """A console that escapes control characters in texts, except those that rich itself sends.

    Where its terminal has gone, that is a hangup: it ends a run as SIGHUP does, or nothing at all
    where that is ignored (nohup), and no teardown fails for what cannot be shown.
    """

    def __exit__(self, *_: object) -> None:
        try:
            super().__exit__(None, None, None)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            os.kill(os.getpid(), signal.SIGHUP)

    def on_broken_pipe(self) -> None:
        """End as what SIGPIPE ends; rich's own status 1 would say that a difference was found."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise SystemExit(128 + signal.SIGPIPE) from None

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
    """Print a text as it is, but for commands, which can be pasted: no markup, no highlighting. On
    a terminal, lines that are too long are broken between words and go on below where their text
    begins; elsewhere they stay whole.
    """
    text = as_started(text)
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


class _NamesWhole(Table):
    """Takes room from columns of sentences, and leaves single words whole, if they fit."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free = [column for column in self.columns if column.width is None]
        cells = [[str(cell) for cell in column._cells] for column in free]  # noqa: SLF001 - `cells` are not as given
        spans = [_span([str(one.header), *texts]) for one, texts in zip(free, cells, strict=True)]
        names = [not any(" " in text.strip() for text in texts) for texts in cells]
        least = sum(most if name else word for (word, most), name in zip(spans, names, strict=True))
        if least + _AROUND * len(free) <= options.max_width:
            for column, name in zip(free, names, strict=True):
                column.no_wrap = column.no_wrap or name
        yield from super().__rich_console__(console, options)


def new_table(*columns: str, right: Collection[str] = (), **options: Any) -> Table:
    """A table with a rule below its header; names break only where it would not fit."""
    table = _NamesWhole(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), **options)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def print_table(
    console: Console,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = (),
    whole: bool = False,
) -> None:
    """Print texts as they are; `right`: columns on the right; `whole`: the first is not broken."""
    table = new_table(*head, right=right)
    table.columns[0].no_wrap = whole
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def print_grid(console: Console, grid: Grid) -> None:
    """Print a table with no word of it broken. One that is too wide becomes several, each with its
    first `labels` columns, which are one line high where that leaves half of the width to the
    others. Lines with the same first cell are a group, and lines that are `bad` are dim.
    """
    head = [*map(escape, grid.head)]
    lines = [[*map(escape, line)] for line in grid.lines]
    firsts = [line[0] for line in lines]
    labels, spans = grid.labels, _spans(grid, console.width)
    for place, part in enumerate(_parts(spans, labels, console.width)):
        chosen = (*range(labels), *part)
        widths = _widths([spans[n] for n in chosen], console.width)
        table = new_table(show_edge=False, pad_edge=False)
        for n, width in zip(chosen, widths, strict=True):
            table.add_column(head[n], justify="right" if n in grid.numbers else "left", width=width)
        for number, line in enumerate(lines):
            if number and firsts[number] != firsts[number - 1] and len({*firsts}) < len(firsts):
                table.add_section()
            style = "dim italic" if number in grid.bad else ""
            table.add_row(*(line[n] for n in chosen), style=style)
        if place:
            console.print()
        console.print(table)


def fits(console: Console, grid: Grid) -> bool:
    """Whether a table is printed as one."""
    return len(_parts(_spans(grid, console.width), grid.labels, console.width)) == 1


def _spans(grid: Grid, width: int) -> list[tuple[int, int]]:
    """The least and the most characters of each column."""
    spans = []
    for n, title in enumerate(grid.head):
        cells = [escape(line[n]) for line in grid.lines]
        (word, most), (_, cell) = _span([escape(title), *cells]), _span(cells)
        spans.append((max(word, cell) if cell <= WHOLE else word, most))
    if sum(most for _, most in spans[: grid.labels]) <= width // 2:
        spans[: grid.labels] = [(most, most) for _, most in spans[: grid.labels]]
    return spans


def _span(cells: Sequence[str]) -> tuple[int, int]:
    """The longest word and the longest line of a column, in characters."""
    texts = [Text.from_markup(cell) for cell in cells]
    words = (word for text in texts for word in text.plain.split())
    return max(map(cell_len, words), default=0), max(
        (cell_len(line) for text in texts for line in text.plain.splitlines()), default=0
    )


def _parts(spans: Sequence[tuple[int, int]], labels: int, width: int) -> list[Sequence[int]]:
    """The columns after the labels in as few tables as fit; evenly, if that needs few more."""
    values = range(labels, len(spans))

    def parts(size: int) -> list[Sequence[int]]:
        return [values[n : n + size] for n in range(0, len(values), size)]

    def is_narrow(part: Sequence[int]) -> bool:
        columns = (*range(labels), *part)
        least: int = sum(spans[n][0] for n in columns) + _BETWEEN * (len(columns) - 1)
        return least <= width

    sizes = dict.fromkeys(ceil(len(values) / count) for count in range(1, len(values) + 1))
    most = next((size for size in sizes if all(map(is_narrow, parts(size)))), 1)
    even = next((size for size in range(most, 0, -1) if len(values) % size == 0), 1)
    return parts(even if 2 * even >= most else most) or [()]


def _widths(spans: Sequence[tuple[int, int]], width: int) -> list[int]:
    """Each column's width: its longest word, and what is left for those that lack least."""
    found = [least for least, _ in spans]
    for n in sorted(range(len(spans)), key=lambda n: spans[n][1] - spans[n][0]):
        room = width - sum(found) - _BETWEEN * (len(spans) - 1)
        found[n] += max(0, min(spans[n][1] - found[n], room))
    return found
