"""What comparing two runs came to, on a terminal: what differs between them, the table, one
sentence a workload.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.analysis.across_runs.guard import ComparedRun, Guarded
from weighbridge.results.analysis.across_runs.runs_comparison import RUNS
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS
from weighbridge.results.percent import show_percent
from weighbridge.screen.outcome import noise_words, verdict_words

_STYLES: Final = {
    "better": "blue",
    "worse": "dark_orange",
    "not comparable": "dim",
    "provisional": "italic",
}
WIDE: Final = 120
"""Columns that the table needs with the intervals of its changes."""
_LONE: Final = 12
"""So many settings that only one of two layouts has are listed; of more only the number is."""
_LONGEST: Final = 100
"""Characters of a value that differs, before it is cut."""


def print_comparison(
    a: ComparedRun,
    b: ComparedRun,
    guarded: Guarded,
    comparison: Comparison,
    console: Console,
    *,
    earlier: int = 0,
) -> None:
    """Print what was compared with what, the table of effects and its sentences; `earlier` runs of
    the same thing are known.
    """
    for side, run in (("A", a), ("B", b)):
        state = "" if run.manifest.state == "done" else f", {run.manifest.state}: not whole"
        _say(console, f"{side}  {run.manifest.run_id}, {run.manifest.created_at}{state}")
    _say(console, f"Alike in {', '.join(guarded.same) or 'nothing that is known'}.", "dim")
    if guarded.unknown:
        _say(console, f"Not known of either run: {', '.join(guarded.unknown)}.", "yellow")
    for one in guarded.unlike:
        _say(console, f"compared although unlike: {one.text}", "yellow")
    if guarded.differs:
        console.print(_differences(guarded))
    console.print(_effects(comparison, intervals=console.width >= WIDE))
    for effect in comparison.effects:
        if effect.workers is None:
            _say(console, f"• {effect.text}")
    for line in dict.fromkeys((*verdict_words(comparison), *noise_words(comparison.noise))):
        _say(console, line, "dim")
    _say(console, "Figures are geometric means of the repeats.", "dim")
    _say(console, _apart_words(earlier), "dim")


def _apart_words(earlier: int) -> str:
    """What the runs not being interleaved does to their comparison."""
    told = (
        "The runs were not interleaved: what changed on the machine between them is in every "
        "difference"
    )
    if earlier + 1 < RUNS:
        return (
            f"{told}, and without two earlier runs of A (--history) nothing tells it from the "
            "gateways."
        )
    return (
        f"{told}; A and {earlier} earlier runs of the same thing tell how much that is, and "
        "intervals are as wide."
    )


def _differences(guarded: Guarded) -> Table:
    drawn = Table(
        header_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title="What differs between the runs",
    )
    for title in ("of", "what", "A", "B"):
        drawn.add_column(title, overflow="fold")
    for fact, group in groupby(guarded.differs, key=lambda one: one.fact):
        found = list(group)
        lone = [one for one in found if UNKNOWN in (one.a, one.b)]
        # Two kinds of gateway have hardly a setting in common: what each is set to is in the report
        # of its own run.
        for one in [one for one in found if one not in lone] if len(lone) > _LONE else found:
            drawn.add_row(*(escape(_cut(text)) for text in (one.fact, one.of, one.a, one.b)))
        if len(lone) > _LONE:
            counts = (
                sum(other == UNKNOWN for other in others)
                for others in ([one.b for one in lone], [one.a for one in lone])
            )
            drawn.add_row(escape(fact), "settings of one alone", *(str(count) for count in counts))
    return drawn


def _effects(comparison: Comparison, *, intervals: bool) -> Table:
    """A line for each cell: both sides' figures and the change of each metric, as far as it may be
    claimed.
    """
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    heads = [METRICS[metric].terminal for metric in ALWAYS]
    for title in (
        "requests",
        "layout",
        "workers",
        *(title for head in heads for title in (f"{head} A", f"{head} B", "change")),
    ):
        drawn.add_column(
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
            drawn.add_section()
        before = (about, subject)
        told = [
            part for metric in ALWAYS for part in _cells(by_metric.get(metric), intervals=intervals)
        ]
        drawn.add_row(escape(about), escape(_named(baseline, subject)), str(workers), *told)
    return drawn


def _named(baseline: str, subject: str) -> str:
    one, other = (name.rpartition(" (")[0] for name in (baseline, subject))
    return one if one == other else f"{one} → {other}"


def _cells(effect: Effect | None, *, intervals: bool) -> tuple[str, str, str]:
    if effect is None:
        return "", "", ""
    style = _STYLES.get(effect.verdict, "")
    change = change_words(effect)
    if (
        intervals
        and change.endswith("%")
        and effect.ratio is not None
        and effect.ratio.low is not None
        and effect.ratio.high is not None
    ):
        low, high = (
            show_percent(end).removesuffix(" %") for end in (effect.ratio.low, effect.ratio.high)
        )
        change = f"{change} ({low} to {high})"
    return (
        show_figure(effect.baseline_value),
        show_figure(effect.subject_value),
        f"[{style}]{change}[/]" if style else change,
    )


def change_words(effect: Effect) -> str:
    """The change of a cell as far as it may be claimed:

    `+12 %`, `~` where none is shown, in brackets without a claim.
    """
    if effect.ratio is None:
        return "×"
    if effect.verdict == "not shown":
        return "~"
    change = show_percent(effect.ratio.value)
    return change if effect.verdict in ("better", "worse", "too small to matter") else f"({change})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)
