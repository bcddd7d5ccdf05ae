from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.outages import OutageKind, OutageRow, Spread
from weighbridge.results.doubt import doubt_brief
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS, MetricKey

_METRICS: Final[tuple[MetricKey, ...]] = (
    "rate-before",
    "unanswered",
    "detect",
    "recover",
    "stall",
    "missed",
    "away-p99",
    "away-max",
    "lowest-back",
)
OUTAGE_HEAD: Final = (
    "Requests",
    "Layout",
    "What",
    *(f"{METRICS[key].title}, {METRICS[key].unit}" for key in _METRICS),
    "Noticed, s",
    "Complete again, s",
    "Errors",
    "Sent by stores, MB/s",
    "In doubt",
    "Repeats",
)
OUTAGE_NUMBERS: Final = (*range(3, 3 + len(_METRICS) + 2), len(OUTAGE_HEAD) - 1)


def outage_lines(kinds: Sequence[OutageKind]) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout: medians over the repeats, with their range."""
    return tuple(_line(kind, row) for kind in kinds for row in kind.rows)


def _line(kind: OutageKind, row: OutageRow) -> tuple[str, ...]:
    sent = row.traffic
    return (
        kind.about,
        row.layout,
        "; ".join(row.what),
        *(_words(row.spread(key)) for key in _METRICS),
        _words(row.noticed_s),
        _words(row.clean_s),
        row.error_words,
        " → ".join(map(show_figure, (sent.before_mb_s, sent.away_mb_s, sent.back_mb_s))),
        doubt_brief(row.doubts),
        str(row.row.repeats),
    )


def _words(found: Spread | None) -> str:
    return UNKNOWN if found is None else found.words


def tolerance_lines(rows: Sequence[OutageRow]) -> tuple[tuple[str, ...], ...]:
    """What decides it: layout, setting, value; each once."""
    found = {(row.layout, name): value for row in rows for name, value in row.settings.items()}
    return tuple((layout, name, value) for (layout, name), value in found.items())
