from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.listing import CompleteListing
from weighbridge.results.doubt import Doubt, few
from weighbridge.results.figures import UNKNOWN, counted, show_figure
from weighbridge.results.metrics import MetricKey
from weighbridge.results.report.ratio_words import ratio_cell, ratio_times

LISTING_HEAD: Final = (
    "Workload",
    "Layout",
    "Workers",
    "Names",
    "Deleted before",
    "Pages/s",
    "Listing p50 s",
    "p90 s",
    "µs a name",
    "beside before deletes",
    "Verdict",
)
LISTING_NUMBERS: Final = (2, 3, 4, 5, 6, 7, 8, 9)


def listing_lines(found: Sequence[CompleteListing]) -> tuple[tuple[str, ...], ...]:
    """The cells of each step."""
    return tuple(
        (
            one.row.workload,
            one.row.layout,
            str(one.row.workers),
            UNKNOWN if one.names is None else f"{one.names:,}",
            _share(one),
            show_figure(one.pages_per_s),
            _seconds(one, "p50"),
            _seconds(one, "p90"),
            _by_name(one),
            UNKNOWN if one.beside is None else ratio_cell(one.beside),
            _verdict(one),
        )
        for one in found
    )


def listing_sentences(found: Sequence[CompleteListing]) -> tuple[str, ...]:
    """What was found of each step with known figures, one sentence each."""
    return tuple(_sentence(one) for one in found if one.row.value("p50") is not None)


def _sentence(one: CompleteListing) -> str:
    row = one.row
    after = f" after {_share(one)} of the objects were deleted" if one.deleted else ""
    names = "" if one.names is None else f" of {one.names:,} names"
    p90 = "" if row.value("p90") is None else f" (p90 {_seconds(one, 'p90')} s)"
    text = (
        f"{row.layout}, {counted(row.workers, 'worker')}: a complete listing{names}{after} takes "
        f"{_seconds(one, 'p50')} s{p90}, {show_figure(one.pages_per_s)} pages/s"
    )
    if one.beside is not None:
        text += f"; a name takes {ratio_times(one.beside)} what it took before"
    # What each doubt is about stands in the table of results.
    whats = ", ".join(dict.fromkeys(doubt.what for doubt in _doubts(one)))
    if not row.ranked:
        return f"{text}. Not ranked: {whats or '; '.join(row.notes)}."
    return f"{text}. Provisional: {whats}." if whats else f"{text}."


def _doubts(one: CompleteListing) -> tuple[Doubt, ...]:
    short = few(one.row.repeats)
    return one.row.doubts if short is None else (*one.row.doubts, short)


def _share(one: CompleteListing) -> str:
    return f"{100 * one.deleted:.0f} %"


def _seconds(one: CompleteListing, metric: MetricKey) -> str:
    figure = one.row.figure(metric)
    if figure.value is None:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value / 1000)}"


def _by_name(one: CompleteListing) -> str:
    figure = one.row.figure("p50")
    if figure.value is None or not one.names:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value * 1000 / one.names)}"


def _verdict(one: CompleteListing) -> str:
    if not one.row.ranked:
        return "not ranked"
    return "provisional" if _doubts(one) else "ranked"
