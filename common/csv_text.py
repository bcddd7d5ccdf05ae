"""Texts in cells of CSV, written so that a spreadsheet does not take them for formulas (OWASP, "CSV
Injection").

A text that begins with `=`, `+`, `-` or `@`, also as full-width letters, which spreadsheets in East
Asia obey as well, or with a tab or an end of a line, gets one apostrophe more in front: also behind
apostrophes, blanks and letters that do not show, which some spreadsheets drop. Numbers stay
numbers, also where a text is one, such as `-1.5` or `+3e9`: programs that read the file must find
them. `plain` is the way back.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Final

_OBEYED: Final = re.compile(
    r"'*[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]"
)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def inert(text: str) -> str:
    """A text as it is to stand in a cell."""
    return f"'{text}" if _OBEYED.match(text) and not _NUMBER.fullmatch(text) else text


def plain(cell: str) -> str:
    """The text that a cell was made of."""
    return cell[1:] if cell.startswith("'") and _OBEYED.match(cell) else cell


def csv_cell(value: object) -> str:
    """A value as a cell of a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return inert("; ".join(str(part) for part in value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.3f}"
    return inert(str(value))


def csv_lines(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A CSV file of a head and lines, cells by `csv_cell`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([csv_cell(cell) for cell in line] for line in lines)
    return out.getvalue()
