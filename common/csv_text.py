"""CSV (RFC 4180, UTF-8): all digits, `true`, `false`, times in UTC (ISO 8601), lists as JSON, empty
cells for unknowns; text is no formula (OWASP, "CSV Injection"), and its controls are escaped.

Text gets a leading apostrophe if it begins with `=`, `+`, `-`, `@` (or their full-width forms,
which spreadsheets in East Asia also obey), a tab or a line end, also after apostrophes, blanks and
invisible characters, which some spreadsheets drop. Numbers stay numbers, also in text (`-1.5`).
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
    if isinstance(value, bool | tuple | list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return text if escape_controls(text) == text else json.dumps(value)
    if isinstance(value, datetime):
        return show_time(value)
    return repr(value) if isinstance(value, float) else formula_safe(str(value))


def csv_lines(head: Sequence[str], lines: Iterable[Iterable[object]]) -> str:
    """A CSV file with a header and rows; cells by `csv_cell`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for line in lines:
        writer.writerow(map(csv_cell, line))
    return out.getvalue()


def show_time(value: datetime) -> str:
    """A time in UTC as ISO 8601, ending in `Z`."""
    return f"{value.isoformat(timespec='milliseconds')}Z"
