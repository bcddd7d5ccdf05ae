"""CSV (RFC 4180, UTF-8) with all digits, `true` and `false`, times as ISO 8601 in UTC, lists as
JSON, empty cells for unknowns; no spreadsheet takes text for a formula (OWASP, "CSV Injection"),
and control characters and marks that reverse text are escaped as on a terminal.

Text gets a leading apostrophe if it begins with `=`, `+`, `-`, `@` (or their full-width forms,
which spreadsheets in East Asia also obey), a tab or a line end, also after apostrophes, blanks and
invisible characters, which some spreadsheets drop. Numbers stay numbers, also in text (`-1.5`,
`+3e9`), so that programs can read them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from weighbridge.common.escaping import escape_controls

_OBEYED: Final = re.compile(
    r"'*[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]"
)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def formula_safe(text: str) -> str:
    """The text as it goes into a cell."""
    quote = "'" if _OBEYED.match(text) and not _NUMBER.fullmatch(text) else ""
    return quote + escape_controls(text)


def csv_cell(value: object) -> str:
    """A value as a cell of a CSV file."""
    if value is None or value == ():
        return ""
    if isinstance(value, bool | tuple):
        return escape_controls(json.dumps(value, ensure_ascii=False))
    if isinstance(value, datetime):
        return show_time(value)
    return repr(value) if isinstance(value, float) else formula_safe(str(value))


def csv_lines(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A CSV file with a header and rows; cells by `csv_cell`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([csv_cell(cell) for cell in line] for line in lines)
    return out.getvalue()


def show_time(value: datetime) -> str:
    """A time in UTC as ISO 8601, ending in `Z`."""
    return f"{value.isoformat(timespec='milliseconds')}Z"
