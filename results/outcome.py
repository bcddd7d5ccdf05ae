"""The results of a run on a terminal: the answer first, then table, sentences, doubts and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from weighbridge.common.errors import missing
from weighbridge.results.derivation import Derived
from weighbridge.results.features.compare_runs import RunsSummary, RunsVerdict
from weighbridge.results.features.history import History, RunChange
from weighbridge.results.features.run_guard import NOT_RECORDED, Guarded
from weighbridge.results.features.run_series import HistoryPoint, RunSeries, break_words
from weighbridge.results.features.tuning.feature import WINNERS
from weighbridge.results.features.tuning.tuning_result import confirmation_folder
from weighbridge.results.figures.doubt import ACKNOWLEDGED, CUTS_THAT_LOST, doubt_words, graves
from weighbridge.results.figures.metrics import METRICS, Metric, MetricKey
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.use import limit_brief, saturated
from weighbridge.results.judge.comparing import ALWAYS
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, NoiseFloor, kind_of
from weighbridge.results.judge.reasons import Reason, marks
from weighbridge.results.judge.words import verdict_words
from weighbridge.results.numbers import UNKNOWN, alike_as_one, counted, show_figure, show_percent
from weighbridge.results.run.step import driver_label
from weighbridge.results.run.trial import CONFIRMATION
from weighbridge.results.show.pictures import DRAWING
from weighbridge.results.show.section import Section
from weighbridge.results.show.terminal import new_table, print_grid, print_line


def print_section(section: Section, console: Console, answer: str = "") -> None:
    """Print a feature's tables and what it says; what the answer says is not said again."""
    print_line(console, f"\n{section.title}", "bold")
    for grid in section.terminal:
        if grid.caption:
            print_line(console, f"\n{grid.caption}", "bold")
        lines = [list(map(escape, line)) for line in grid.lines]
        left = [head for n, head in enumerate(grid.head) if n not in grid.numbers]
        print_grid(console, list(map(escape, grid.head)), lines, labels=grid.labels, left=left)
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


BOTH: Final = 100
"""Terminal columns for rates beside latencies that are intervals, with a column for drivers."""
_MB_PER_GB: Final = 1000
_UNBOUND: Final = 10_000
"""Terminal columns on which any table fits."""
_FAR: Final = 1000
"""If bandwidths differ by this factor, each cell has its own unit."""
_METRICS: Final = tuple(one for one in METRICS.values() if one.terminal)
_RATES: Final = tuple(one.terminal for one in _METRICS if one.group in ("latency", "count"))
LIMITED_BY: Final = "limited by"
_WORDS: Final = (LIMITED_BY, CUTS_THAT_LOST)


def print_outcome(derived: Derived, console: Console) -> None:
    """Print the answer, then table, findings and files.

    Lines that are not ranked are dim. What is in doubt has a letter, which is explained once below
    the table. What the hosts used is printed if telemetry was recorded. A terminal has no room for
    all columns: size, p99, mean, samples and repeats are in summary.csv and in the report.
    """
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
        _print_rows(rows, _RowTable(derived.reasons, _unit(rows)), console)
        console.print()
    for reason in derived.reasons:
        print_line(console, f"{reason.mark}  {reason.text}", "yellow")
    for lead in derived.answered.leads:
        if lead.effect is not None:
            print_line(console, f"• {_brief(lead.effect, derived.reasons)}")
    noise = noise_words(comparison.noise)
    for line in (*verdict_words(comparison), *noise, *comparison.unused):
        print_line(console, line, "dim")


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


def noise_words(floors: Sequence[NoiseFloor]) -> tuple[str, ...]:
    """The result of A/A controls for throughput and p90; nothing without them."""
    return tuple(floor.words for floor in floors if floor.metric in ALWAYS)


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


def _print_rows(rows: Sequence[Row], drawing: _RowTable, console: Console) -> None:
    if len({row.driver for row in rows}) > 1 and console.width < BOTH:
        for driver in dict.fromkeys(row.driver for row in rows):
            console.print(f"By {driver_label(driver)}:", style="bold")
            _print_parts([row for row in rows if row.driver == driver], drawing, console)
    else:
        _print_parts(rows, drawing, console)


def _print_parts(rows: Sequence[Row], drawing: _RowTable, console: Console) -> None:
    """The table; what power cuts did is one of its own where there is no room for it."""
    several, cuts = len({row.driver for row in rows}) > 1, drawing.cuts(rows)
    if console.width < BOTH and any(row.within("max") is not None for row in rows):
        for part in (drawing.rates, _RATES):
            _print(drawing.table(rows, several=several, only=part), console)
        apart = cuts
        lacking: tuple[str, ...] = ("what limited each step",)
    else:
        limits = (LIMITED_BY,) * any(row.resources for row in rows)
        rates, fewer = drawing.rates, [*drawing.rates[:1], *_RATES[1:]]
        if not any(row.count("errors") for row in rows):
            fewer.remove(METRICS["errors"].terminal)
        dropped = ("intervals", "p50", *(["what limited each step"] if limits else []))
        choices = (
            ((*rates, *_RATES), (*cuts, *limits), True, ()),
            ((*rates, *_RATES), (*cuts, *limits), False, dropped[:1]),
            ((*rates, *_RATES), cuts, True, dropped[2:]),
            ((*rates, *_RATES), cuts, False, (dropped[0], *dropped[2:])),
            ((*rates, *_RATES[1:]), cuts, False, dropped),
            ((*rates, *_RATES[1:]), (), False, dropped),
            (fewer, (), False, (*dropped, "bandwidth")),
        )
        for choice in choices:
            titles, beside, spread, lacking = choice
            table = drawing.table(rows, several=several, spread=spread, only=(*titles, *beside))
            if _fits(table, console):
                break
        apart = () if set(cuts) <= set(beside) else cuts
        _print(table, console)
    if apart:
        writes = [row for row in rows if row.power is not None]
        _print(drawing.table(writes, several=several, only=apart), console)
    if lacking:
        words = ", ".join(lacking)
        print_line(console, f"Not shown for want of room: {words}. See the report.", "dim")


def _print(table: Table, console: Console) -> None:
    console.print("", table, sep="\n")


def _fits(table: Table, console: Console) -> bool:
    wide = console.options.update_width(_UNBOUND)
    return Measurement.get(console, wide, table).maximum <= console.width


def _unit(rows: Sequence[Row]) -> str:
    """The unit of a column of bandwidths; empty if each cell needs its own."""
    known = [mb_s for row in rows if (mb_s := row.value("bandwidth"))]
    if known and max(known) > _FAR * min(known):
        return ""
    return "GB/s" if known and min(known) >= _MB_PER_GB else "MB/s"


@dataclass(frozen=True)
class _RowTable:
    """Draws rows, with letters for these reasons; `unit` of bandwidths: empty if in each cell."""

    reasons: Sequence[Reason]
    unit: str

    @property
    def rates(self) -> tuple[str, ...]:
        """Titles of the columns of rates."""
        return tuple(self.head(one) for one in _METRICS if one.group == "rate")

    def table(
        self,
        rows: Sequence[Row],
        *,
        several: bool,
        spread: bool = False,
        only: Sequence[str] | None = None,
    ) -> Table:
        """A line for each row; `several`: with drivers, `spread`: with the ± of repeats."""
        every = (*self.rates, *_RATES, LIMITED_BY, *self.cuts(rows))
        titles = every if only is None else tuple(only)
        several_apis = len({row.api for row in rows}) > 1
        marked = self.rates[0] in titles and any(marks(row, self.reasons) for row in rows)
        apis, drivers = ["api"] * several_apis, ["driver"] * several
        table = new_table(show_edge=False, pad_edge=False)
        for title in ("workload", *apis, *drivers, "layout"):
            table.add_column(title, overflow="fold")
        for title in ("workers", *titles):
            table.add_column(title, justify="left" if title in _WORDS else "right", no_wrap=True)
        if marked:
            table.add_column("caveat", no_wrap=True)
        before = None
        for row in rows:
            mixed = len({other.operation for other in rows if other.workload == row.workload}) > 1
            name = f"{row.workload}: {row.operation}" if mixed else row.workload
            if before not in {None, name}:
                table.add_section()
            before = name
            ways = (*[row.api] * several_apis, *[driver_label(row.driver)] * several)
            cells = self._cells(row, spread=spread)
            texts = (name, *ways, row.layout, str(row.workers), *(cells[title] for title in titles))
            table.add_row(
                *map(escape, (*texts, *[marks(row, self.reasons)] * marked)),
                style="" if row.ranked else "dim italic",
            )
        return table

    def _cells(self, row: Row, *, spread: bool) -> dict[str, str]:
        limit = (
            "none" if row.resources and not saturated(row.resources) else limit_brief(row.resources)
        )
        cells = {self.head(one): shown(row, one.key, spread=spread) for one in _METRICS}
        return cells | {
            self.unit or "bandwidth": self._bandwidth(row.value("bandwidth")),
            LIMITED_BY: limit or UNKNOWN,
            CUTS_THAT_LOST: row.power.count if row.power is not None else "",
            ACKNOWLEDGED: (row.power.answers or "") if row.power is not None else "",
        }

    def cuts(self, rows: Sequence[Row]) -> tuple[str, ...]:
        """The titles of the columns of power cuts, and of what acknowledgements rest on, if any."""
        marks = [row.power for row in rows if row.power is not None]
        cuts = (CUTS_THAT_LOST,) * any(mark.said for mark in marks)
        return (*cuts, *((ACKNOWLEDGED,) * any(mark.answers for mark in marks)))

    def head(self, metric: Metric) -> str:
        """The head of a metric's column; for bandwidths it is the unit."""
        return self.unit if metric.key == "bandwidth" and self.unit else metric.terminal

    def _bandwidth(self, mb_s: float | None) -> str:
        if mb_s is None:
            return UNKNOWN
        if self.unit:
            return show_figure(mb_s / _MB_PER_GB if self.unit == "GB/s" else mb_s)
        if mb_s >= _MB_PER_GB:
            return f"{show_figure(mb_s / _MB_PER_GB)} GB/s"
        return f"{show_figure(mb_s)} MB/s"


_EFFECT_STYLES: Final = {
    "better": "blue",
    "worse": "dark_orange",
    "not comparable": "dim",
    "provisional": "italic",
}
RUNS_WIDE: Final = 120
"""Columns for the table with the intervals of its changes."""
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
    if guarded.differs:
        console.print(_differences(guarded))
    console.print(_effects(comparison, intervals=console.width >= RUNS_WIDE))
    for effect in comparison.effects:
        if effect.workers is None:
            print_line(console, f"• {effect.text}")
    for line in dict.fromkeys((*verdict_words(comparison), *noise_words(comparison.noise))):
        print_line(console, line, "dim")
    print_line(console, "Values are geometric means of the repeats.", "dim")
    print_line(console, summary.drift_words, "dim")


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
    style = _EFFECT_STYLES.get(effect.verdict, "")
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
    if point.standing == "not comparable":
        return f"× {point.shown}"
    return f"({point.shown})" if point.standing == "provisional" else point.shown


def _change(change: RunChange | None) -> str:
    if change is None:
        return ""
    words = show_percent(change.ratio)
    return f"{f'({words})' if change.doubts else words} {change.begun:%Y-%m-%d}"


def _in_doubt(point: HistoryPoint) -> str:
    return f"not comparable: {point.why}" if point.why else point.notes
