"""The effects of a comparison as CSV: a line for each cell of each metric, and for each metric over
all worker counts.
"""

from __future__ import annotations

import csv
import io
from typing import Final

from weighbridge.common.csv_text import csv_cell
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.doubt import doubt_words

COLUMNS: Final = (
    *(
        "workload",
        "operation",
        "api",
        "driver",
        "about",
        "workers",
        "metric",
        "baseline",
        "subject",
    ),
    *("baseline_value", "subject_value", "ratio", "low", "high", "repeats"),
    *("p", "q", "rank_p", "delta", "smallest", "noise", "verdict", "doubts", "text"),
)
"""Columns of `effects.csv`. `workers` is `all` over all of them; values are op/s of throughput and
ms of latencies; ratios are times the baseline's, `low` to `high` their 95 % interval; `smallest` is
the smallest ratio that could have been shown; `doubts` is what is in doubt, in words.
"""
_SMALL: Final = frozenset({"p", "q", "rank_p"})


def effects_csv(comparison: Comparison) -> str:
    """The table, in the order of the comparison; empty where nothing is known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for effect in comparison.effects:
        writer.writerow([_cell(effect, column) for column in COLUMNS])
    return out.getvalue()


def _cell(effect: Effect, column: str) -> str:
    if column in ("ratio", "low", "high", "repeats"):
        value = (
            None
            if effect.ratio is None
            else getattr(effect.ratio, "value" if column == "ratio" else column)
        )
    elif column == "workers":
        value = "all" if effect.workers is None else effect.workers
    elif column == "doubts":
        value = doubt_words(effect.doubts)
    else:
        value = getattr(effect, column)
    # Three decimals would make 0 of a small p-value.
    return f"{value:.3g}" if column in _SMALL and value is not None else csv_cell(value)
