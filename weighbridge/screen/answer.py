"""The result of an SQL query, as text for people, as CSV or as JSON.

In CSV and JSON nothing is rounded, and what is not a number (a division by zero) is NULL.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from rich.cells import cell_len

from weighbridge.common import csv_text
from weighbridge.common.csv_text import show_time
from weighbridge.common.errors import UsageError
from weighbridge.results.numbers import UNKNOWN, show_figure
from weighbridge.results.show.query import QueryResult

DIGITS: Final = 6
"""Significant digits in the text for people."""


def answer_text(answer: QueryResult) -> str:
    """Aligned columns, numbers to the right; nothing is cut off and no line is broken."""
    heads = [_shown(name) for name in answer.columns]
    cells = [[_shown(value) for value in line] for line in answer.lines]
    numeric = [
        all(
            isinstance(line[place], (int, float, Decimal)) or line[place] is None
            for line in answer.lines
        )
        and bool(answer.lines)
        for place in range(len(heads))
    ]
    widths = [max(cell_len(line[place]) for line in [heads, *cells]) for place in range(len(heads))]

    def row(line: list[str]) -> str:
        padded = (
            f"{' ' * (width - cell_len(cell))}{cell}"
            if right
            else f"{cell}{' ' * (width - cell_len(cell))}"
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    count = len(answer.lines)
    footer = f"({count} line{'' if count == 1 else 's'})"
    return "\n".join((row(heads), rule, *map(row, cells), footer)) + "\n"


def answer_csv(answer: QueryResult) -> str:
    """CSV with a header; empty cells are NULL."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([csv_text.formula_safe(name) for name in answer.columns])
    for line in answer.lines:
        writer.writerow([_cell(_plain(value)) for value in line])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, (bool, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return csv_text.formula_safe(value) if isinstance(value, str) else value


def answer_json(answer: QueryResult) -> str:
    """A list of objects. Raises UsageError if two columns have the same name."""
    twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
    if twice:
        raise UsageError(
            f"two columns are named {', '.join(twice)}",
            advice="Give one of them another name with AS.",
        )
    found = [dict(zip(answer.columns, map(_plain, line), strict=True)) for line in answer.lines]
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


ANSWERS: Final[Mapping[str, Callable[[QueryResult], str]]] = MappingProxyType(
    {"table": answer_text, "csv": answer_csv, "json": answer_json}
)


def _shown(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, (float, Decimal)):
        number = float(value)
        text = show_figure(number, DIGITS) if math.isfinite(number) else str(number)
        return text.rstrip("0").rstrip(".") if "." in text else text
    plain = _plain(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return show_time(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
