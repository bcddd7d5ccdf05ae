"""Whether the latest run of a history is worse than those before it, as CI asks."""

from __future__ import annotations

from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID
from weighbridge.results.analysis.across_runs.runs_summary import RunsVerdict
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.history.change_points import RULE
from weighbridge.results.analysis.history.history import History
from weighbridge.results.analysis.history.run_series import RunSeries, SeriesCell
from weighbridge.results.figures import counted
from weighbridge.results.metrics import METRICS


def latest_verdict(history: History) -> RunsVerdict:
    """Worse if it is at a level that a change for the worse began, of any cell's throughput or p90.

    What could not be judged has not passed: figures that are not comparable, too few comparable
    runs, and changes that are provisional.
    """
    latest = history.runs[-1].run
    series = [
        one for one in history.series if one.metric in ALWAYS and one.points[-1].run == latest
    ]
    last = {_place(change): change for of_layout in history.changes for change in of_layout.changes}
    worse = [
        change
        for one in series
        if (change := last.get(_place(one))) is not None and change.direction == "worse"
    ]
    sure = [one for one in worse if not one.doubts]
    if sure:
        return RunsVerdict(
            exit_code=EXIT_DIFFERENCE,
            answer=f"{latest} is worse than the runs before it: {len(sure)} of "
            f"{counted(len(series), 'figure')}.",
            details=tuple(one.text for one in sure),
        )
    details = [*(_open(one) for one in series), *(one.text for one in worse)]
    details = [text for text in details if text]
    if details or not series:
        among = f"{len(details)} of {counted(len(series), 'figure')}" if series else "it has none"
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=f"Whether {latest} is worse than the runs before it cannot be judged: {among}.",
            details=tuple(details),
        )
    return RunsVerdict(exit_code=EXIT_FINE)


def _place(one: SeriesCell) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in SeriesCell.model_fields)


def _open(one: RunSeries) -> str:
    """Why the last figure of a series cannot be judged; empty if it can."""
    last, count = one.points[-1], len(one.searched)
    where = (
        f"{METRICS[one.metric].name} of {one.about} at {counted(one.workers, 'worker')} on "
        f"{one.label}"
    )
    if not last.searched:
        return f"{where}: {last.why or 'known in bins alone'}"
    if count < RULE.runs:
        return f"{where}: {counted(count, 'comparable run')} of the {RULE.runs} that are needed"
    return ""
