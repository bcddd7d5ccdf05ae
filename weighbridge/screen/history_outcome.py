"""The history of many runs on the terminal: what changed, and each cell's figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.history.history import History, RunChange, break_words
from weighbridge.results.analysis.history.run_series import HistoryPoint, RunSeries
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.figures import UNKNOWN, counted, show_figure
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.percent import show_percent
from weighbridge.screen.terminal import new_table, print_line

Cell = tuple[str, Kind, str, int]
"""Suite, kind of requests, layout with release, and worker count."""


def print_history(
    history: History, console: Console, *, gone: Sequence[str], left_out: Sequence[str]
) -> None:
    """Print the answer, a table of all cells, the changes, and what is not compared."""
    print_line(console, history.headline, "bold")
    console.print(_cells(history))
    for one in history.changes:
        print_line(console, f"• {one.text}.")
        if one.differs_words:
            print_line(console, f"  Changed with it: {one.differs_words}.", "dim")
    for text in history.outlier_words:
        print_line(console, f"• {text}.", "dim")
    if history.despite:
        print_line(console, history.despite_words, "yellow")
    for text in break_words(history.breaks):
        print_line(console, f"{text}.", "dim")
    if gone:
        are = "is" if len(gone) == 1 else "are"
        words = f"{counted(len(gone), 'run')} {are} kept as judged; not in the folders read."
        print_line(console, words, "dim")
    for text in left_out:
        print_line(console, text, "yellow")


def _cells(history: History) -> Table:
    """A line for each cell: runs, the last figures, and the last change of each metric."""
    series: dict[Cell, dict[MetricKey, list[RunSeries]]] = {}
    for one in history.series:
        if one.metric in ALWAYS:
            place = (one.suite, one.kind, one.label, one.workers)
            series.setdefault(place, {}).setdefault(one.metric, []).append(one)
    changes: dict[tuple[Cell, MetricKey], RunChange] = {}
    for each in history.changes:
        for change in each.changes:
            cell = (change.suite, change.kind, change.label, change.workers)
            changes[cell, change.metric] = change
    suites = len({suite for suite, *_ in series}) > 1
    table = new_table()
    for title in (
        *(("suite",) if suites else ()),
        *("requests", "layout", "workers", "runs"),
        *(title for metric in ALWAYS for title in (METRICS[metric].terminal, "change")),
        "in doubt",
    ):
        right = title not in ("suite", "requests", "layout", "change", "in doubt")
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for place, by_metric in series.items():
        newest = {metric: mine[-1] for metric, mine in by_metric.items()}
        some = next(iter(newest.values()))
        earlier = sum(len(one.points) for one in next(iter(by_metric.values()))[:-1])
        cells = [
            *((place[0],) if suites else ()),
            *(some.about, some.label, str(some.workers)),
            f"{len(some.points)}{f' + {earlier}' if earlier else ''}",
        ]
        for metric in ALWAYS:
            shown = newest.get(metric)
            cells += [
                UNKNOWN if shown is None else _last(shown.points[-1]),
                _change(changes.get((place, metric))),
            ]
        doubts = dict.fromkeys(
            words for one in newest.values() if (words := _in_doubt(one.points[-1]))
        )
        table.add_row(*map(escape, (*cells, "; ".join(doubts))))
    return table


def _last(point: HistoryPoint) -> str:
    """The last figure; in brackets if provisional, with a cross if not comparable."""
    figure = point.figure
    words = str(figure.within) if figure.within is not None else show_figure(figure.value)
    if point.standing == "not comparable":
        return f"× {words}"
    return f"({words})" if point.standing == "provisional" else words


def _change(change: RunChange | None) -> str:
    if change is None:
        return ""
    words = show_percent(change.ratio)
    return f"{f'({words})' if change.doubts else words} {change.begun:%Y-%m-%d}"


def _in_doubt(point: HistoryPoint) -> str:
    return f"not comparable: {point.why}" if point.why else point.notes
