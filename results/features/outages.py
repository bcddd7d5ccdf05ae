"""What layouts do while something is broken, and after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weighbridge.results.analysis.outages import OutageKind, OutageRow, Spread
from weighbridge.results.doubt import doubt_brief
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS
from weighbridge.results.show.table import Cell, Column, Filled, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, Feature, doubt_texts

_METRICS: Final = tuple(one for one in METRICS.values() if one.of_outage)


def _columns(name: str, head: str, about: str, unit: str) -> tuple[Column, ...]:
    return (
        Column(name, "number", f"{about} Median over the repeats.", unit, head),
        Column(f"least_{name}", "number", "The least of all repeats.", unit),
        Column(f"most_{name}", "number", "The most of all repeats.", unit),
    )


def _cells(name: str, spread: Spread | None) -> dict[str, Cell]:
    ends = (None,) * 3 if spread is None else (spread.middle, spread.least, spread.most)
    return dict(zip((name, f"least_{name}", f"most_{name}"), ends, strict=True))


def outage_table(kinds: Iterable[OutageKind]) -> Filled:
    """A line for each layout and fault: medians over the repeats, with their range."""
    return Filled(OUTAGES, tuple(_line(kind, row) for kind in kinds for row in kind.rows))


def tolerance_lines(rows: Iterable[OutageRow]) -> tuple[tuple[str, ...], ...]:
    """What decides how a layout meets a fault: layout, setting, value; each once."""
    found = {(row.layout, name): value for row in rows for name, value in row.settings.items()}
    return tuple((layout, name, value) for (layout, name), value in found.items())


def _line(kind: OutageKind, one: OutageRow) -> Line:
    spreads = {metric.column: one.spread(metric.key) for metric in _METRICS}
    spreads |= {"noticed_s": one.noticed_s, "clean_s": one.clean_s}
    cells = {
        name: cell for of, spread in spreads.items() for name, cell in _cells(of, spread).items()
    }
    sent = (one.traffic.before_mb_s, one.traffic.away_mb_s, one.traffic.back_mb_s)
    texts = {name: UNKNOWN if spread is None else spread.words for name, spread in spreads.items()}
    texts["sent_before_mb_s"] = " → ".join(map(show_figure, sent))
    return line(
        one,
        one.row,
        **cells,
        about=kind.about,
        sent_before_mb_s=sent[0],
        sent_away_mb_s=sent[1],
        sent_back_mb_s=sent[2],
        errors=one.error_words,
        doubts=doubt_texts(one.doubts),
    ).showing({**texts, "doubts": doubt_brief(one.doubts)})


OUTAGES: Final = Table(
    "outages",
    "A line for each layout, workload and fault: what it did while something was broken.",
    (
        *columns(f"""
{RUN}
layout text | The layout. | Layout
workload text | The workload.
operation text | The operation on objects.
workers integer | Workers.
about text | Requests and fault in words. | Requests
what texts | What died. | What
fault_s number s | When, in the window.
back_s number s | When it came back; unknown: not in it.
returned_s number s | How long starting it took.
"""),
        *(
            column
            for metric in _METRICS
            for column in _columns(metric.column, metric.title, metric.about, metric.unit)
        ),
        *_columns(
            "noticed_s", "Noticed", "Until the store or its front said that a part is missing.", "s"
        ),
        *_columns(
            "clean_s",
            "Complete again",
            "From the return until the store had all parts and copies.",
            "s",
        ),
        *columns("""
sent_before_mb_s number MB/s | Sent by hosts that keep data, before the fault. | Sent by stores
sent_away_mb_s number MB/s | Until the return.
sent_back_mb_s number MB/s | After the return.
errors text | By class, over all repeats. | Errors
doubts texts | Doubts, each with its grade, grave (not comparable) or mild (provisional).
    | In doubt
repeats integer | How often it was seen. | Repeats
"""),
    ),
    lambda data: outage_table(data.outages.kinds).lines,
)
FEATURE: Final = Feature(tables=(OUTAGES,))
