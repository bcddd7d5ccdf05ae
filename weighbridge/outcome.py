"""What a run came to, on a terminal: the table, one sentence a workload, and where everything is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, get_args

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.comparison import Comparison, NoiseFloor, Verdict
from results.derivation import Derived
from results.figures import UNKNOWN, show_figure
from results.findings import DRIVERS
from results.interval import show_latency
from results.summary import NOT_STEADY, NOT_VALID, Row
from results.use import limit_brief, saturated
from results.validity import ASIDES
from weighbridge.study_outcome import print_study
from weighbridge.tuning_outcome import print_tuning

WIDE: Final = 132
"""Columns that the whole table needs with names of a usual length; on a narrower terminal it comes in two parts."""
BOTH: Final = 100
"""Columns that rates and latencies need beside each other where these are intervals, and drivers beside them."""

_RATES: Final = ("op/s", "MB/s", "p50 ms", "p90 ms", "max ms", "errors")
_USES: Final = ("gw\nCPU-s/1k", "st\nCPU-s/1k", "saturated")


def print_outcome(derived: Derived, console: Console) -> None:
    """Print table, findings and places, or the ledger of a tuning. Lines that are not valid are dim, with their reasons below.

    What the hosts used is told where telemetry was recorded. A terminal has no room for all columns: size, p99, mean,
    samples and repeats are in summary.csv and in the report.
    """
    if derived.tuned is not None:
        print_tuning(derived, console)
        return
    rows = derived.rows
    recorded, several = any(row.resources for row in rows), len({row.driver for row in rows}) > 1
    if recorded and console.width >= WIDE:
        console.print(_table(rows, (*_RATES, *_USES), lambda row: (*_rates(row), *_used(row))))
    elif several and console.width < BOTH:
        for driver in dict.fromkeys(row.driver for row in rows):
            console.print(f"By {DRIVERS[driver]}:", style="bold")
            _print_parts([row for row in rows if row.driver == driver], console)
    else:
        _print_parts(rows, console)
    reasons = []
    for row in rows:
        if not row.ranked:
            by = f" by {DRIVERS[row.driver]}" if several else ""
            what = "not ranked" if row.valid else "not valid"
            reasons.append(f"{what}: {row.layout}{by}, {row.workload}, {row.workers} workers: {'; '.join(_faults(row))}")
    for reason in dict.fromkeys(reasons):
        console.print(reason, style="yellow", markup=False, highlight=False)
    for finding in derived.findings:
        if finding.workers is None:
            console.print(f"• {finding.text}", markup=False, highlight=False, soft_wrap=True)
    for line in (*verdict_words(derived.comparison), *noise_words(derived.comparison.noise)):
        console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.stairs:
        console.print(f"↗ {sentence}", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.agreement:
        console.print(f"≈ {sentence}.", markup=False, highlight=False, soft_wrap=True)
    for sentence in derived.hosts:
        console.print(f"  {sentence}", style="dim", markup=False, highlight=False, soft_wrap=True)
    if derived.replayed is not None:
        print_study(derived.replayed, console)
    console.print(f"\ntable   {derived.summary}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report  {derived.report}", markup=False, highlight=False, soft_wrap=True)


def noise_words(floors: Sequence[NoiseFloor]) -> tuple[str, ...]:
    """What A/A trials told, a line for each metric; nothing where there was none."""
    return tuple(floor.words for floor in floors)


def verdict_words(comparison: Comparison) -> tuple[str, ...]:
    """How many cells have which verdict, and that there was no A/A trial where one is missed; nothing of a lone layout."""
    found = Counter(effect.verdict for effect in comparison.effects if effect.workers is not None)
    if not found:
        return ()
    told = ", ".join(f"{found[verdict]} {verdict}" for verdict in get_args(Verdict) if found[verdict])
    against = f" against {comparison.baseline}" if len(comparison.subjects) > 1 else ""
    words = f"Of {found.total()} cells{against}: {told}."
    unmeasured = not comparison.noise and (found["better"] or found["worse"])
    return (words, "The rig’s noise floor was not measured: compare --aa.") if unmeasured else (words,)


def _print_parts(rows: Sequence[Row], console: Console) -> None:
    """The table in the parts that a terminal has room for."""
    if console.width < BOTH and any(row.max_in is not None for row in rows):
        console.print(_table(rows, _RATES[:2], lambda row: _rates(row)[:2]))
        console.print(_table(rows, _RATES[2:], lambda row: _rates(row)[2:]))
    else:
        console.print(_table(rows, _RATES, _rates))
    if any(row.resources for row in rows):
        console.print(_table(rows, _USES, _used))


def _table(rows: Sequence[Row], titles: Sequence[str], cells: Callable[[Row], tuple[str, ...]]) -> Table:
    """A line for each row: what it is of, and its cells."""
    several_apis, several_drivers = len({row.api for row in rows}) > 1, len({row.driver for row in rows}) > 1
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("workload", *(["api"] if several_apis else []), *(["driver"] if several_drivers else []), "layout"):
        drawn.add_column(title)
    for title in ("workers", *titles):
        drawn.add_column(title, justify="left" if title == "saturated" else "right", no_wrap=True)
    before = None
    for row in rows:
        mixed = len({other.operation for other in rows if other.workload == row.workload}) > 1
        name = f"{row.workload}: {row.operation}" if mixed else row.workload
        if before not in {None, name}:
            drawn.add_section()
        before = name
        ways = (*([row.api] if several_apis else []), *([DRIVERS[row.driver]] if several_drivers else []))
        drawn.add_row(
            *map(escape, (name, *ways, row.layout, str(row.workers), *cells(row))), style="" if row.ranked else "dim italic"
        )
    return drawn


def _rates(row: Row) -> tuple[str, ...]:
    return (
        *(show_figure(value) for value in (row.throughput_ops_s, row.bandwidth_mb_s)),
        *(show_latency(*one) for one in ((row.p50_ms, row.p50_in), (row.p90_ms, row.p90_in), (row.max_ms, row.max_in))),
        UNKNOWN if row.errors is None else f"{row.errors:,}",
    )


def _used(row: Row) -> tuple[str, ...]:
    """CPU seconds of gateway and storage hosts for 1000 operations, and what was the limit."""
    cpu_s = (row.gateway_cpu_s_per_1000_ops, row.storage_cpu_s_per_1000_ops)
    limit = "none" if row.resources and not saturated(row.resources) else limit_brief(row.resources)
    return (*(show_figure(value) for value in cpu_s), limit or UNKNOWN)


def _faults(row: Row) -> list[str]:
    """Why a line is not valid, without what is only to be known about it."""
    remarks = tuple(remark for point in row.points for remark in point.remarks)
    told = [note for note in row.notes if note not in (NOT_VALID, NOT_STEADY) and not any(aside in note for aside in ASIDES)]
    return [note.splitlines()[0] for note in told if not note.endswith(remarks)]
