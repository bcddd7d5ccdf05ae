"""The results of a run on a terminal: the answer first, then table, sentences, doubts and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from rich.console import Console

from weighbridge.common.errors import missing
from weighbridge.results.derivation import Derived
from weighbridge.results.features.compare_runs import RunsSummary, RunsVerdict
from weighbridge.results.features.history import History, RunChange
from weighbridge.results.features.run_guard import NOT_RECORDED, Guarded
from weighbridge.results.features.run_series import HistoryPoint, RunSeries, break_words
from weighbridge.results.features.tuning.feature import WINNERS
from weighbridge.results.features.tuning.tuning_result import confirmation_folder
from weighbridge.results.figures.doubt import ACKNOWLEDGED, CUTS_THAT_LOST, doubt_words, graves
from weighbridge.results.figures.metrics import METRICS, PRIMARY, MetricKey
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.use import limit_brief, saturated
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of
from weighbridge.results.judge.reasons import Reason, marks
from weighbridge.results.judge.words import verdict_words
from weighbridge.results.numbers import UNKNOWN, alike_as_one, counted, show_figure, show_percent
from weighbridge.results.run.step import driver_label
from weighbridge.results.run.trial import CONFIRMATION
from weighbridge.results.show.pictures import DRAWING
from weighbridge.results.show.section import Grid, Section
from weighbridge.results.show.terminal import fits, print_grid, print_line


def print_section(section: Section, console: Console, answer: str = "") -> None:
    """Print a feature's tables and what it says; what the answer says is not said again."""
    print_line(console, f"\n{section.title}", "bold")
    for grid in section.terminal:
        if grid.caption:
            print_line(console, f"\n{grid.caption}", "bold")
        print_grid(console, grid)
    for sentence in section.sentences:
        if sentence.rstrip(".") not in answer:
            print_line(console, f"• {sentence}")


def print_report_place(derived: Derived, console: Console) -> None:
    """Print where the report is, or what makes one."""
    if derived.report is not None:
        print_line(console, f"report  {derived.report}")
        print_line(console, f"open    weighbridge open {derived.folder.parent}")
        return
    print_line(console, f"report  {missing(DRAWING)}")
    print_line(console, f"        and then weighbridge report {derived.folder.parent}")


LIMITED_BY: Final = "limited by"
WIDE: Final = 140
"""Terminal columns from which figures have the interval of their repeats."""
_METRICS: Final = tuple(
    metric for metric in METRICS.values() if metric.terminal and metric.group != "cost"
)
NEEDED_LEAST: Final = (LIMITED_BY, METRICS["p50"].terminal, METRICS["bandwidth"].terminal)
"""Columns that a narrow terminal leaves out, the first one first."""


def print_outcome(derived: Derived, console: Console) -> None:
    """Print answer, table, findings and files; doubts have letters, explained below the table."""
    answer = derived.answered
    if derived.answer:
        print_line(console, derived.answer, "bold")
        print_line(console, f"{answer.context}.")
    if answer.caveat:
        print_line(console, f"{answer.caveat}.", "yellow")
    for section in derived.sections:
        if section.first:
            print_section(section, console, derived.answer)
    if derived.data.tuning is None:
        _print_comparison(derived, console)
    for section in derived.sections:
        if section.sentences and not section.first:
            print_section(section, console, derived.answer)
    for sentence in derived.hosts:
        print_line(console, f"{sentence.rstrip('.')}.", "dim")
    if derived.remedy is not None:
        command = f":\n  {derived.remedy.command}" if derived.remedy.command else ""
        print_line(console, f"\n{derived.remedy.says}{command}")
    print_line(console, "")
    for what, path in _files(derived):
        print_line(console, f"{what:<7} {path}")
    print_report_place(derived, console)


def _print_comparison(derived: Derived, console: Console) -> None:
    rows, comparison = derived.data.rows, derived.data.comparison
    if rows:
        _print_rows(rows, derived.reasons, console)
    for reason in derived.reasons:
        print_line(console, f"{reason.mark}  {reason.text}", "yellow")
    for lead in derived.answered.leads:
        if lead.effect is not None:
            print_line(console, f"• {_brief(lead.effect, derived.reasons)}")
    noise = [floor.words for floor in comparison.noise if floor.metric in PRIMARY]
    if not comparison.noise and not comparison.unused and comparison.effects:
        noise = ["How far runs of this machine differ is not known: compare --aa measures it."]
    for line in (verdict_words(comparison), *noise, *comparison.unused):
        print_line(console, line, "dim")


def _print_rows(rows: Sequence[Row], reasons: Sequence[Reason], console: Console) -> None:
    """One table; where it is too wide for the terminal, without what is needed least."""
    for number in range(len(NEEDED_LEAST) + 1):
        without = NEEDED_LEAST[:number]
        grid = _results(rows, reasons, spread=console.width >= WIDE, without=without)
        if fits(console, grid):
            break
    console.print()
    print_grid(console, grid)
    if without:
        words = ", ".join(without)
        print_line(console, f"Not shown for want of room: {words}. See the report.", "dim")
    console.print()


def _files(derived: Derived) -> Iterator[tuple[str, Path]]:
    """The table, or of a tuning its ledger, the files of its winner, and its confirmation."""
    if derived.data.tuning is None:
        yield "table", derived.summary
        return
    yield "ledger", derived.folder / "ledger.csv"
    for path in sorted((derived.folder / WINNERS).glob("*")):
        yield "winner", path
    confirmation = confirmation_folder(derived.data.store.folder / CONFIRMATION)
    if confirmation is not None:
        yield "confirmation", confirmation


def _brief(effect: Effect, reasons: Sequence[Reason]) -> str:
    """The effect's sentence, with letters in place of the reasons, which are printed above."""
    sides, kind = (effect.baseline, effect.subject), kind_of(effect)
    marked = ", ".join(
        one.mark
        for one in reasons
        if any(one.words.startswith(f"{doubt.what}:") for doubt in effect.doubts)
        and any(layout in sides and of == kind for layout, of, _ in one.cells)
    )
    if not marked:
        return effect.text
    grave = doubt_words(graves(effect.doubts))
    every = "; ".join(alike_as_one(doubt.words for doubt in effect.doubts))
    text = effect.text.replace(f" ({grave})", f" (see {marked})")
    return text.replace(f"caveat: {every}", f"caveat: see {marked}")


def _results(
    rows: Sequence[Row], reasons: Sequence[Reason], *, spread: bool, without: Sequence[str] = ()
) -> Grid:
    """A line for each row, `spread`: with the ± of repeats. Columns of which nothing is known are
    left out, and size, p99, mean, samples and repeats are in summary.csv and in the report.
    """
    lines = [_result(row, rows, reasons, spread=spread) for row in rows]
    optional = ("caveat", LIMITED_BY, CUTS_THAT_LOST, ACKNOWLEDGED)
    empty = {title for title in optional if not any(line[title] for line in lines)}
    empty |= {title for title in ("api", "driver") if len({line[title] for line in lines}) == 1}
    empty |= {*without}
    head = [title for title in lines[0] if title not in empty]
    texts = ("workload", "api", "driver", "layout", *optional)
    return Grid(
        "",
        head,
        [[line[title] for title in head] for line in lines],
        [place for place, title in enumerate(head) if title not in texts],
        [number for number, row in enumerate(rows) if not row.ranked],
        labels=head.index(_METRICS[0].terminal),
    )


def _result(
    row: Row, rows: Sequence[Row], reasons: Sequence[Reason], *, spread: bool
) -> dict[str, str]:
    """A row's cells by their heads; a letter for each of these reasons that affects it."""
    mixed = len({other.operation for other in rows if other.workload == row.workload}) > 1
    limit = "none" if row.resources else ""
    if saturated(row.resources):
        limit = limit_brief(row.resources) or UNKNOWN
    power = row.power
    return {
        "workload": f"{row.workload}: {row.operation}" if mixed else row.workload,
        "api": row.api,
        "driver": driver_label(row.driver),
        "layout": row.layout,
        "workers": str(row.workers),
        "caveat": marks(row, reasons),
        **{metric.terminal: shown(row, metric.key, spread=spread) for metric in _METRICS},
        LIMITED_BY: limit,
        CUTS_THAT_LOST: power.count if power is not None else "",
        ACKNOWLEDGED: (power.answers or "") if power is not None else "",
    }


_LONE: Final = 12
"""How many settings that only one of two layouts has are listed; if more, they are counted."""
_LONGEST: Final = 100
"""Characters of a value before it is cut."""


def print_comparison(summary: RunsSummary, console: Console) -> None:
    """Print two runs, effects and sentences."""
    guarded, comparison = summary.guarded, summary.comparison
    for side, run in (("A", summary.a), ("B", summary.b)):
        state = "" if run.manifest.state == "done" else f", {run.manifest.state}: incomplete"
        print_line(console, f"{side}  {run.manifest.run_id}, {run.manifest.created_at}{state}")
    same = ", ".join(guarded.same) or "nothing that is known"
    print_line(console, f"The same in both: {same}.", "dim")
    if guarded.unknown:
        print_line(console, f"Not known for either run: {', '.join(guarded.unknown)}.", "yellow")
    for one in guarded.unlike:
        print_line(console, f"compared despite a difference: {one.text}", "yellow")
    for caption, grid in (
        ("What differs between the runs", _differences(guarded)),
        ("", _effects(comparison)),
    ):
        if grid.lines:
            console.print()
            if caption:
                print_line(console, caption, "bold")
            print_grid(console, grid)
    for effect in comparison.effects:
        if effect.workers is None:
            print_line(console, f"• {effect.text}")
    print_line(console, verdict_words(comparison), "dim")
    print_line(console, "Values are geometric means of the repeats.", "dim")
    print_line(console, summary.drift_words, "dim")


def print_verdict(verdict: RunsVerdict, console: Console) -> None:
    """Print what a verb ends with, if that is not 0."""
    if verdict.answer:
        print_line(console, verdict.answer, "bold")
    for text in verdict.details:
        print_line(console, f"  {text}")


def _differences(guarded: Guarded) -> Grid:
    lines = []
    for fact, group in groupby(guarded.differs, key=lambda difference: difference.fact):
        differences = list(group)
        lone = [each for each in differences if each.kind == "not recorded"]
        # Two kinds of gateway have few settings in common: the report of each run lists its own.
        shown_ones = differences
        if len(lone) > _LONE:
            shown_ones = [each for each in differences if each not in lone]
        lines += [[_cut(text) for text in (fact, each.of, each.a, each.b)] for each in shown_ones]
        if len(lone) > _LONE:
            of_a = sum(each.b == NOT_RECORDED for each in lone)
            counts = (str(of_a), str(len(lone) - of_a))
            lines.append([fact, "recorded in one run only", *counts])
    return Grid("", ("of", "what", "A", "B"), lines, labels=2)


def _effects(comparison: Comparison) -> Grid:
    """A line for each pair at a worker count: the figures of both, and the change with its ends."""
    cells: dict[tuple[str, str, str, int], dict[str, Effect]] = {}
    for effect in comparison.effects:
        if effect.workers is not None:
            place = (effect.about, effect.baseline, effect.subject, effect.workers)
            cells.setdefault(place, {})[effect.metric] = effect
    head = ["requests", "layout", "workers"]
    for metric in PRIMARY:
        title = METRICS[metric].terminal
        head += [f"{title} A", f"{title} B", "change"]
    lines = []
    for (about, baseline, subject, workers), by_metric in cells.items():
        names = (name.rpartition(" (")[0] for name in (baseline, subject))
        line = [about, " → ".join(dict.fromkeys(names)), str(workers)]
        for metric in PRIMARY:
            line += _pair(by_metric[metric]) if metric in by_metric else [""] * 3
        lines.append(line)
    return Grid("", head, lines, range(2, len(head)), labels=3)


def _pair(effect: Effect) -> list[str]:
    change = change_words(effect)
    if change.endswith("%") and effect.ratio is not None:
        ends = [end for end in (effect.ratio.low, effect.ratio.high) if end is not None]
        if len(ends) == 2:
            low, high = (show_percent(end).removesuffix(" %") for end in ends)
            change = f"{change} ({low} to {high})"
    return [show_figure(effect.baseline_value), show_figure(effect.subject_value), change]


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
    console.print()
    print_grid(console, _history_cells(history))
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


def _history_cells(history: History) -> Grid:
    """A line for each cell: runs, the last figures, and the last change of each metric."""
    series: dict[Cell, dict[MetricKey, list[RunSeries]]] = {}
    for one in history.series:
        if one.metric in PRIMARY:
            place = (one.suite, one.kind, one.label, one.workers)
            series.setdefault(place, {}).setdefault(one.metric, []).append(one)
    changes: dict[tuple[Cell, MetricKey], RunChange] = {}
    for each in history.changes:
        for change in each.changes:
            cell = (change.suite, change.kind, change.label, change.workers)
            changes[cell, change.metric] = change
    suites = len({suite for suite, *_ in series}) > 1
    head = [*["suite"] * suites, "requests", "layout", "workers", "runs"]
    labels = len(head) - 1
    for metric in PRIMARY:
        head += [METRICS[metric].terminal, "change"]
    lines = []
    for place, by_metric in series.items():
        newest = {metric: of_metric[-1] for metric, of_metric in by_metric.items()}
        latest = next(iter(newest.values()))
        earlier = sum(len(one.points) for one in next(iter(by_metric.values()))[:-1])
        runs = f"{len(latest.points)}{f' + {earlier}' if earlier else ''}"
        cells = [*[place[0]] * suites, latest.about, latest.label, str(latest.workers), runs]
        for metric in PRIMARY:
            last = newest.get(metric)
            cells += [
                UNKNOWN if last is None else _last(last.points[-1]),
                _change(changes.get((place, metric))),
            ]
        points = [one.points[-1] for one in newest.values()]
        doubts = [f"not comparable: {one.why}" if one.why else one.notes for one in points]
        lines.append([*cells, "; ".join(filter(None, dict.fromkeys(doubts)))])
    texts = ("suite", "requests", "layout", "change")
    numbers = [place for place, title in enumerate(head) if title not in texts]
    return Grid("", [*head, "in doubt"], lines, numbers, labels=labels)


def _last(point: HistoryPoint) -> str:
    """The last figure; in brackets if provisional, with a cross if not comparable."""
    if point.standing == "not comparable":
        return f"× {point.shown}"
    return f"({point.shown})" if point.standing == "provisional" else point.shown


def _change(change: RunChange | None) -> str:
    if change is None:
        return ""
    words = show_percent(change.ratio)
    return f"{f'({words})' if change.doubts else words} {change.begun:%Y-%m-%d}"
