from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.features.compare_runs import RunsVerdict, drift_words
from weighbridge.results.features.history import History, RunChange, break_words
from weighbridge.results.features.run_guard import NOT_RECORDED, ComparedRun, Guarded
from weighbridge.results.features.run_series import HistoryPoint, RunSeries
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.judge.comparing import ALWAYS
from weighbridge.results.judge.comparison import Comparison, Effect, Kind
from weighbridge.results.judge.words import verdict_words
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, show_percent
from weighbridge.screen.outcome import noise_words
from weighbridge.screen.terminal import new_table, print_line

_STYLES: Final = {
    "better": "blue",
    "worse": "dark_orange",
    "not comparable": "dim",
    "provisional": "italic",
}
WIDE: Final = 120
"""Columns for the table with the intervals of its changes."""
_LONE: Final = 12
"""How many settings that only one of two layouts has are listed; if more, they are counted."""
_LONGEST: Final = 100
"""Characters of a value before it is cut."""


def print_comparison(
    a: ComparedRun,
    b: ComparedRun,
    guarded: Guarded,
    comparison: Comparison,
    console: Console,
    *,
    earlier: int = 0,
) -> None:
    """Print two runs, effects and sentences; `earlier`: how many runs like A were given."""
    for side, run in (("A", a), ("B", b)):
        state = "" if run.manifest.state == "done" else f", {run.manifest.state}: incomplete"
        print_line(console, f"{side}  {run.manifest.run_id}, {run.manifest.created_at}{state}")
    same = ", ".join(guarded.same) or "nothing that is known"
    print_line(console, f"The same in both: {same}.", "dim")
    if guarded.unknown:
        print_line(console, f"Not known for either run: {', '.join(guarded.unknown)}.", "yellow")
    for one in guarded.unlike:
        print_line(console, f"compared despite a difference: {one.text}", "yellow")
    if guarded.differs:
        console.print(_differences(guarded))
    console.print(_effects(comparison, intervals=console.width >= WIDE))
    for effect in comparison.effects:
        if effect.workers is None:
            print_line(console, f"• {effect.text}")
    for line in dict.fromkeys((*verdict_words(comparison), *noise_words(comparison.noise))):
        print_line(console, line, "dim")
    print_line(console, "Values are geometric means of the repeats.", "dim")
    print_line(console, drift_words(a, b, earlier), "dim")


def print_verdict(verdict: RunsVerdict, console: Console) -> None:
    """Print what a verb ends with, if that is not 0."""
    if verdict.answer:
        print_line(console, verdict.answer, "bold")
    for text in verdict.details:
        print_line(console, f"  {text}")


def _differences(guarded: Guarded) -> Table:
    table = new_table("of", "what", "A", "B", title="What differs between the runs")
    for fact, group in groupby(guarded.differs, key=lambda one: one.fact):
        found = list(group)
        lone = [one for one in found if one.kind == "not recorded"]
        # Two kinds of gateway have few settings in common: the report of each run lists its own.
        for one in [one for one in found if one not in lone] if len(lone) > _LONE else found:
            table.add_row(*(escape(_cut(text)) for text in (one.fact, one.of, one.a, one.b)))
        if len(lone) > _LONE:
            only_a, only_b = (
                sum(one.b == NOT_RECORDED for one in lone),
                sum(one.a == NOT_RECORDED for one in lone),
            )
            table.add_row(escape(fact), "recorded in one run only", str(only_a), str(only_b))
    return table


def _effects(comparison: Comparison, *, intervals: bool) -> Table:
    table = new_table()
    heads = [METRICS[metric].terminal for metric in ALWAYS]
    for title in (
        "requests",
        "layout",
        "workers",
        *(title for head in heads for title in (f"{head} A", f"{head} B", "change")),
    ):
        table.add_column(
            title,
            justify="left" if title in ("requests", "layout") else "right",
            no_wrap=title != "requests",
        )
    cells: dict[tuple[str, str, str, int], dict[str, Effect]] = {}
    for effect in comparison.effects:
        if effect.workers is not None:
            cells.setdefault((effect.about, effect.baseline, effect.subject, effect.workers), {})[
                effect.metric
            ] = effect
    before = None
    for (about, baseline, subject, workers), by_metric in cells.items():
        if before not in {None, (about, subject)}:
            table.add_section()
        before = (about, subject)
        values = [
            part for metric in ALWAYS for part in _cells(by_metric.get(metric), intervals=intervals)
        ]
        table.add_row(escape(about), escape(_named(baseline, subject)), str(workers), *values)
    return table


def _named(baseline: str, subject: str) -> str:
    one, other = (name.rpartition(" (")[0] for name in (baseline, subject))
    return one if one == other else f"{one} → {other}"


def _cells(effect: Effect | None, *, intervals: bool) -> tuple[str, str, str]:
    if effect is None:
        return "", "", ""
    style = _STYLES.get(effect.verdict, "")
    change = change_words(effect)
    if intervals and change.endswith("%") and effect.ratio is not None:
        ends = [end for end in (effect.ratio.low, effect.ratio.high) if end is not None]
        if len(ends) == 2:
            low, high = (show_percent(end).removesuffix(" %") for end in ends)
            change = f"{change} ({low} to {high})"
    return (
        show_figure(effect.baseline_value),
        show_figure(effect.subject_value),
        f"[{style}]{change}[/]" if style else change,
    )


def change_words(effect: Effect) -> str:
    """The change of a cell: `+12 %`; `~` if not significant; in brackets if it is no claim."""
    if effect.ratio is None:
        return "×"
    if effect.verdict == "not significant":
        return "~"
    change = show_percent(effect.ratio.value)
    return change if effect.verdict in ("better", "worse", "too small to matter") else f"({change})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


Cell = tuple[str, Kind, str, int]
"""Suite, kind of requests, layout with release, and worker count."""


def print_history(
    history: History, console: Console, *, gone: Sequence[str], left_out: Sequence[str]
) -> None:
    """Print the answer, a table of all cells, the changes, and what is not compared."""
    print_line(console, history.headline, "bold")
    console.print(_history_cells(history))
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


def _history_cells(history: History) -> Table:
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
