from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.history.change_points import RULE
from weighbridge.results.analysis.history.history import History, RunChange, break_words
from weighbridge.results.analysis.history.run_outliers import OUTLIER_RULE
from weighbridge.results.figures import show_figure, show_p, show_percent
from weighbridge.results.metrics import METRICS
from weighbridge.results.report.page import render
from weighbridge.results.show.chart import Chart

CHANGE_HEAD: Final = (
    *("From", "Run", "Layout", "Requests", "Workers", "Metric", "Before", "After"),
    *("Change", "Runs", "p", "Verdict"),
)
CHANGE_NUMBERS: Final = frozenset({"Workers", "Before", "After", "Change", "p"})


def history_page(
    history: History,
    charts: Sequence[Chart],
    *,
    version: str,
    gone: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> str:
    """The page. `gone` runs have no folder any more, `left_out` says what could not be read."""
    return render(
        "history.html.j2",
        charts,
        charts[0].layouts if charts else (),
        history=history,
        version=version,
        drawn=charts,
        change_head=CHANGE_HEAD,
        change_numbers=CHANGE_NUMBERS,
        changes=[
            (change_cells(one), _sorted_by(one), bool(one.doubts))
            for each in history.changes
            for one in each.changes
        ],
        breaks=break_words(history.breaks),
        gone=gone,
        left_out=left_out,
        rule=RULE,
        outlier_rule=OUTLIER_RULE,
    )


def change_cells(one: RunChange) -> tuple[str, ...]:
    """The cells of a change, below CHANGE_HEAD."""
    metric = METRICS[one.metric]
    return (
        f"{one.begun:%Y-%m-%d}",
        one.run,
        one.label,
        one.about,
        str(one.workers),
        metric.name,
        f"{show_figure(one.before)} {metric.unit}",
        f"{show_figure(one.after)} {metric.unit}",
        show_percent(one.ratio),
        f"{one.runs_before} and {one.runs_after}"
        + (f", {one.passing} between left out" if one.passing else ""),
        show_p(one.p),
        one.standing,
    )


def _sorted_by(one: RunChange) -> tuple[str, ...]:
    numbers = {
        "Before": one.before,
        "After": one.after,
        "Change": one.ratio,
        "p": one.p,
    }
    return tuple(
        f"{numbers[title]:.9g}" if title in numbers else cell
        for title, cell in zip(CHANGE_HEAD, change_cells(one), strict=True)
    )
