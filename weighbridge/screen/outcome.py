"""What a run came to, on a terminal: the answer first, the table, one sentence a workload, what is
open, where everything is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from weighbridge.results.analysis.comparison import Comparison, NoiseFloor, Verdict
from weighbridge.results.analysis.findings import Finding, headline
from weighbridge.results.analysis.reasons import Reason, marks
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import limit_brief, saturated
from weighbridge.results.derivation import Derived
from weighbridge.results.doubt import doubt_words, graves
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.screen.study_outcome import print_study
from weighbridge.screen.tuning_outcome import print_tuning

BOTH: Final = 100
"""Columns that rates and latencies need beside each other where these are intervals, and drivers
beside them.
"""

_MB_PER_GB: Final = 1000
_UNBOUND: Final = 10_000
"""Columns of a terminal on which any table fits."""
_FAR: Final = 1000
"""Bandwidths that are so many times apart have a unit in each cell: one unit would not do for all.
"""
_METRICS: Final = tuple(one for one in METRICS.values() if one.terminal)
_RATES: Final = tuple(one.terminal for one in _METRICS if one.group in ("latency", "count"))
_USES: Final = (*(one.terminal for one in _METRICS if one.group == "cost"), "saturated")


def print_outcome(derived: Derived, console: Console) -> None:
    """Print the answer, then table, findings and places, or the ledger of a tuning.

    Lines that are not ranked are dim. What is in doubt has a letter that stands below the table
    with its reason, once. What the hosts used is told where telemetry was recorded. A terminal has
    no room for all columns: size, p99, mean, samples and repeats are in summary.csv and in the
    report.
    """
    if derived.tuned is not None:
        print_tuning(derived, console)
        return
    rows = derived.rows
    if derived.comparison.subjects:
        console.print(
            f"{headline(derived.findings)}.",
            style="bold",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    several = len({row.driver for row in rows}) > 1
    drawing = _Shown(derived.reasons, _unit(rows))
    tries = [drawing.table(rows, several=several, spread=spread) for spread in (True, False)]
    whole = (
        [drawn for drawn in tries if _fits(drawn, console)]
        if any(row.resources for row in rows)
        else []
    )
    if whole:
        console.print(whole[0])
    elif several and console.width < BOTH:
        for driver in dict.fromkeys(row.driver for row in rows):
            console.print(f"By {driver_label(driver)}:", style="bold")
            _print_parts([row for row in rows if row.driver == driver], drawing, console)
    else:
        _print_parts(rows, drawing, console)
    for reason in derived.reasons:
        console.print(
            f"{reason.mark}  {reason.text}",
            style="yellow",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    for finding in derived.findings:
        if finding.workers is None and not finding.rival:
            console.print(
                f"• {_brief(finding, derived.reasons)}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
    for line in (
        *verdict_words(derived.comparison),
        *noise_words(derived.comparison.noise),
        *derived.comparison.unused,
    ):
        console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.stairs:
        console.print(f"↗ {sentence}", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.agreement:
        console.print(f"≈ {sentence}.", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.hosts:
        console.print(f"  {sentence}", style="dim", markup=False, highlight=False, soft_wrap=True)
    if derived.replayed is not None:
        print_study(derived.replayed, console)
    if derived.remedy is not None:
        command = f":\n  {derived.remedy.command}" if derived.remedy.command else ""
        console.print(
            f"\n{derived.remedy.says}{command}", markup=False, highlight=False, soft_wrap=True
        )
    console.print(f"\ntable   {derived.summary}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report  {derived.report}", markup=False, highlight=False, soft_wrap=True)


def noise_words(floors: Sequence[NoiseFloor]) -> tuple[str, ...]:
    """What A/A trials told, a line for each metric; nothing where there was none."""
    return tuple(floor.words for floor in floors)


def verdict_words(comparison: Comparison) -> tuple[str, ...]:
    """How many cells have which verdict, and that there was no A/A trial where one is missed;
    nothing of a lone layout.
    """
    found = Counter(effect.verdict for effect in comparison.effects if effect.workers is not None)
    if not found:
        return ()
    told = ", ".join(
        f"{found[verdict]} {verdict}" for verdict in get_args(Verdict) if found[verdict]
    )
    against = f" against {comparison.baseline}" if len(comparison.subjects) > 1 else ""
    words = f"Of {found.total()} cells{against}: {told}."
    unmeasured = (
        not comparison.noise and not comparison.unused and (found["better"] or found["worse"])
    )
    return (
        (words, "The rig’s noise floor was not measured: compare --aa.") if unmeasured else (words,)
    )


def _brief(finding: Finding, reasons: Sequence[Reason]) -> str:
    """The finding's sentence, with the marks of what is in doubt in place of the reasons: these
    stand above, once.
    """
    marked = ", ".join(
        one.mark
        for one in reasons
        if any(one.words.startswith(f"{doubt.what}:") for doubt in finding.doubts)
    )
    grave, all_of = (
        doubt_words(graves(finding.doubts)),
        "; ".join(dict.fromkeys(doubt.words for doubt in finding.doubts)),
    )
    text = finding.text
    for said in (told for told in (grave, all_of) if told and marked):
        text = text.replace(f"({said})", f"(see {marked})").replace(
            f"provisional, {said}", f"provisional (see {marked})"
        )
    return text


def _print_parts(rows: Sequence[Row], drawing: _Shown, console: Console) -> None:
    """The table in the parts that a terminal has room for; the spread of repeats where there is
    room for that, too.
    """
    several = len({row.driver for row in rows}) > 1
    if console.width < BOTH and any(row.within("max") is not None for row in rows):
        console.print(drawing.table(rows, several=several, only=drawing.rates))
        console.print(drawing.table(rows, several=several, only=_RATES))
    else:
        titles = (*drawing.rates, *_RATES)
        tries = [
            drawing.table(rows, several=several, spread=spread, only=titles)
            for spread in (True, False)
        ]
        tries.append(
            drawing.table(
                rows, several=several, only=tuple(title for title in titles if title != _RATES[0])
            )
        )
        console.print(next((drawn for drawn in tries if _fits(drawn, console)), tries[-1]))
    if any(row.resources for row in rows):
        console.print(drawing.table(rows, several=several, only=_USES))


def _fits(drawn: Table, console: Console) -> bool:
    wide = console.options.update_width(_UNBOUND)
    return Measurement.get(console, wide, drawn).maximum <= console.width


def _unit(rows: Sequence[Row]) -> str:
    """The unit of a column of bandwidths:

    GB/s where all are large; empty where each cell needs its own.
    """
    known = [mb_s for row in rows if (mb_s := row.value("bandwidth"))]
    if known and max(known) > _FAR * min(known):
        return ""
    return "GB/s" if known and min(known) >= _MB_PER_GB else "MB/s"


@dataclass(frozen=True)
class _Shown:
    """How the rows of a table are shown: with the marks of these reasons, and bandwidths in this
    unit (empty: one in each cell).
    """

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
        """A line for each row: what it is of, and its cells under `only` these titles (else all);
        `spread`: with the ± of repeats.

        `several` drivers have a column.
        """
        titles = (*self.rates, *_RATES, *_USES) if only is None else tuple(only)
        several_apis = len({row.api for row in rows}) > 1
        marked = self.rates[0] in titles and any(marks(row, self.reasons) for row in rows)
        drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for title in (
            "workload",
            *(["api"] if several_apis else []),
            *(["driver"] if several else []),
            "layout",
        ):
            drawn.add_column(title)
        for title in ("workers", *titles):
            drawn.add_column(
                title, justify="left" if title == "saturated" else "right", no_wrap=True
            )
        if marked:
            drawn.add_column("in doubt" if spread else "", no_wrap=True)
        before = None
        for row in rows:
            mixed = len({other.operation for other in rows if other.workload == row.workload}) > 1
            name = f"{row.workload}: {row.operation}" if mixed else row.workload
            if before not in {None, name}:
                drawn.add_section()
            before = name
            ways = (
                *([row.api] if several_apis else []),
                *([driver_label(row.driver)] if several else []),
            )
            cells = self._cells(row, spread=spread)
            drawn.add_row(
                *map(
                    escape,
                    (
                        name,
                        *ways,
                        row.layout,
                        str(row.workers),
                        *(cells[title] for title in titles),
                    ),
                ),
                *([escape(marks(row, self.reasons))] if marked else []),
                style="" if row.ranked else "dim italic",
            )
        return drawn

    def _cells(self, row: Row, *, spread: bool) -> dict[str, str]:
        """A row's cells by title."""
        limit = (
            "none" if row.resources and not saturated(row.resources) else limit_brief(row.resources)
        )
        cells = {self.head(one): shown(row, one.key, spread=spread) for one in _METRICS}
        return cells | {
            self.unit or "bandwidth": self._bandwidth(row.value("bandwidth")),
            "saturated": limit or UNKNOWN,
        }

    def head(self, metric: Metric) -> str:
        """The head of a metric's column: bandwidths have a unit of their own."""
        return self.unit if metric.key == "bandwidth" and self.unit else metric.terminal

    def _bandwidth(self, mb_s: float | None) -> str:
        if mb_s is None:
            return UNKNOWN
        if self.unit:
            return show_figure(mb_s / _MB_PER_GB if self.unit == "GB/s" else mb_s)
        return (
            f"{show_figure(mb_s / _MB_PER_GB)} GB/s"
            if mb_s >= _MB_PER_GB
            else f"{show_figure(mb_s)} MB/s"
        )
