from __future__ import annotations

from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.doubt import doubt_words

COLUMNS: Final = (
    *("workload", "operation", "api", "driver", "about"),
    *("workers", "metric", "baseline", "subject"),
    *("baseline_value", "subject_value", "ratio", "low", "high", "repeats"),
    *("p", "q", "rank_p", "delta", "smallest", "noise", "verdict", "doubts", "text"),
)
"""Columns of `effects.csv`.

`workers` is `all` over all worker counts. Values are op/s for throughput and ms for latencies.
Ratios are relative to the baseline, `low` to `high` is their 95 % interval. `smallest` is the
smallest ratio that could have been found; `doubts` are in words.
"""
_SMALL: Final = frozenset({"p", "q", "rank_p"})


def effects_csv(comparison: Comparison) -> str:
    """The table, in the order of the comparison; without lines where nothing is known."""
    return csv_lines(
        COLUMNS, ([_cell(effect, column) for column in COLUMNS] for effect in comparison.effects)
    )


def _cell(effect: Effect, column: str) -> object:
    if column == "ratio":
        return None if effect.ratio is None else effect.ratio.value
    if column in ("low", "high", "repeats"):
        return getattr(effect.ratio, column, None)
    if column == "workers":
        return "all" if effect.workers is None else effect.workers
    if column == "doubts":
        return doubt_words(effect.doubts)
    value = getattr(effect, column)
    # With three decimals a small p-value would be 0.
    return f"{value:.3g}" if column in _SMALL and value is not None else value
