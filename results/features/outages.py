"""What layouts do while something is broken, and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.results.analysis.outages import Spread
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.metrics import METRICS
from weighbridge.results.show.table import Cell, Column, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, Feature, doubt_texts

_METRICS: Final = tuple(one for one in METRICS.values() if one.of_outage)


def _columns(name: str, about: str, unit: str) -> tuple[Column, ...]:
    return (
        Column(name, "number", f"{about} Median over the repeats.", unit),
        Column(f"least_{name}", "number", "The least of all repeats.", unit),
        Column(f"most_{name}", "number", "The most of all repeats.", unit),
    )


def _cells(name: str, spread: Spread | None) -> dict[str, Cell]:
    ends = (None,) * 3 if spread is None else (spread.middle, spread.least, spread.most)
    return dict(zip((name, f"least_{name}", f"most_{name}"), ends, strict=True))


def _lines(data: RunData) -> Iterator[Line]:
    for kind in data.outages.kinds:
        for one in kind.rows:
            spreads = {metric.column: one.spread(metric.key) for metric in _METRICS}
            spreads |= {"noticed_s": one.noticed_s, "clean_s": one.clean_s}
            cells = [_cells(name, spread) for name, spread in spreads.items()]
            yield line(
                one,
                one.row,
                **{name: cell for some in cells for name, cell in some.items()},
                about=kind.about,
                sent_before_mb_s=one.traffic.before_mb_s,
                sent_away_mb_s=one.traffic.away_mb_s,
                sent_back_mb_s=one.traffic.back_mb_s,
                errors=one.error_words,
                doubts=doubt_texts(one.doubts),
            )


OUTAGES: Final = Table(
    "outages",
    "A line for each layout, workload and fault: what it did while something was broken.",
    (
        *columns(f"""
{RUN}
layout text | The layout.
workload text | The workload.
operation text | The operation on objects.
workers integer | Workers.
about text | Requests and fault in words.
what texts | What died.
fault_s number s | When, in the window.
back_s number s | When it came back; unknown: not in it.
returned_s number s | How long starting it took.
"""),
        *(
            column
            for metric in _METRICS
            for column in _columns(metric.column, metric.about, metric.unit)
        ),
        *_columns("noticed_s", "Until the store or its front said that a part is missing.", "s"),
        *_columns("clean_s", "From the return until the store had all parts and copies.", "s"),
        *columns("""
sent_before_mb_s number MB/s | Sent by hosts that keep data, before the fault.
sent_away_mb_s number MB/s | Until the return.
sent_back_mb_s number MB/s | After the return.
errors text | By class, over all repeats.
doubts texts | Doubts, each with its grade, grave (not comparable) or mild (provisional).
repeats integer | How often it was seen.
"""),
    ),
    _lines,
)
FEATURE: Final = Feature(tables=(OUTAGES,))
