"""What was compared as data: a line for each effect of a comparison; of a tuning its ledger and its
trials, by objective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.ledger import LedgerEntry, Reading
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import DataColumn, DataTable, Kind, TableSchema, utc
from weighbridge.results.metrics import compared
from weighbridge.results.record.trial import Trial
from weighbridge.results.statistics import Ratio


class HasEffect(Protocol):
    """What a line about an effect is made from."""

    @property
    def data(self) -> RunData:
        """Its run."""

    @property
    def effect(self) -> Effect:
        """The effect."""


@dataclass(frozen=True)
class EffectOfRun:
    """One effect and its run."""

    data: RunData
    effect: Effect


@dataclass(frozen=True)
class ObjectiveOfRun:
    """One objective of one entry, and its run."""

    data: RunData
    result: TuningResult
    entry: LedgerEntry
    number: int

    @property
    def effect(self) -> Effect:
        """What the setting does to the objective."""
        return self.entry.effects[self.number]

    @property
    def scope(self) -> str | None:
        """What must be started anew for it."""
        return self.result.scope(self.entry.arm)


@dataclass(frozen=True)
class TrialLine:
    """One objective of one trial, and its run; without a reading where the trial could not be
    made.
    """

    data: RunData
    result: TuningResult
    trial: Trial
    number: int
    reading: Reading | None


def _entry(name: str, kind: Kind, about: str) -> DataColumn[ObjectiveOfRun]:
    return DataColumn(name, kind, about, lambda one: getattr(one.entry, name))


def _effect(name: str, kind: Kind, about: str) -> DataColumn[HasEffect]:
    return DataColumn(name, kind, about, lambda one: getattr(one.effect, name))


def _ratio(name: str, kind: Kind, about: str, of: str) -> DataColumn[HasEffect]:
    return DataColumn(name, kind, about, lambda one: getattr(one.effect.ratio, of, None))


_METRICS: Final = ", ".join(f"{one.key} ({one.better} is better)" for one in compared())
_RUN: Final[DataColumn[HasEffect]] = DataColumn(
    "run", "text", "Name of the run.", lambda one: one.data.manifest.run_id
)
_ENDS: Final = (
    _ratio(
        "ratio_low", "number", "Lower end of its 95 % interval, in a tuning over all looks.", "low"
    ),
    _ratio("ratio_high", "number", "Upper end of it.", "high"),
)


def _cpu(tier: str, end: str, about: str) -> DataColumn[ObjectiveOfRun]:
    def read(one: ObjectiveOfRun) -> float | None:
        ratio: Ratio | None = getattr(one.entry, f"{tier}_cpu")
        return getattr(ratio, end, None)

    return DataColumn(f"{tier}_cpu{'' if end == 'value' else f'_{end}'}", "number", about, read)


def _settings(one: ObjectiveOfRun) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in one.entry.arm.settings.items())


def _of_reading(name: str) -> Callable[[TrialLine], float | None]:
    return lambda one: getattr(one.reading, name, None)


def _why(one: TrialLine) -> str | None:
    return one.trial.failed or (one.reading.why if one.reading is not None else "") or None


def _chosen(one: ObjectiveOfRun) -> bool | None:
    winner = one.result.winner
    return None if winner is None else one.entry.arm.settings.items() <= winner.arm.settings.items()


EFFECTS: Final[TableSchema[EffectOfRun]] = TableSchema(
    "effects",
    "A line for each metric, kind of requests and worker count of each layout against the first; "
    "workers unknown: over all.",
    (
        _RUN,
        _effect("workload", "text", "Name of the workload in the suite."),
        _effect("operation", "text", "What was done to objects."),
        _effect("api", "text", "The interface that requests used."),
        _effect("driver", "text", "What made the load."),
        _effect("about", "text", "What the requests are called."),
        _effect("workers", "whole", "Worker count; unknown for all of them together."),
        _effect("metric", "text", f"{_METRICS}."),
        _effect("baseline", "text", "The layout that is compared with."),
        _effect("subject", "text", "The layout that is compared."),
        _effect(
            "baseline_value",
            "number",
            "Geometric mean of the baseline's repeats, in the metric’s unit.",
        ),
        _effect("subject_value", "number", "The same of the subject."),
        _ratio(
            "ratio",
            "number",
            "How many times the baseline's the subject's figure is: of geometric means.",
            "value",
        ),
        *_ENDS,
        _ratio("repeats", "whole", "Repeats of the side that has fewer.", "repeats"),
        _effect("p", "number", "Of Welch's test on logarithms, two-sided."),
        _effect("q", "number", "The same, corrected over all cells (Benjamini and Hochberg)."),
        _effect("rank_p", "number", "Of the Mann-Whitney test, two-sided."),
        _effect("delta", "number", "Cliff's delta, from -1 to 1."),
        _effect(
            "smallest",
            "number",
            "The smallest ratio above 1 that so many repeats would show 8 times in 10.",
        ),
        _effect(
            "noise",
            "number",
            "The noise floor of this machine, a ratio above 1; unknown without an A/A control.",
        ),
        _effect(
            "verdict",
            "text",
            "better, worse, too small to matter, not shown, provisional or not comparable.",
        ),
        DataColumn(
            "doubts",
            "texts",
            "What is in doubt of either side, the grade before it: grave (not comparable) or mild "
            "(provisional).",
            lambda one: tuple(doubt_text(doubt) for doubt in one.effect.doubts),
        ),
        _effect("text", "text", "The verdict in one sentence."),
    ),
)


LEDGER: Final[TableSchema[ObjectiveOfRun]] = TableSchema(
    "ledger",
    "Of a tuning: a line for each setting that was tried and each objective, the largest gain "
    "first; of other runs nothing.",
    (
        _RUN,
        DataColumn("tuning", "text", "Name of the tuning.", lambda one: one.result.run.tuning.name),
        DataColumn(
            "arm", "text", "Name of the layout with the setting.", lambda one: one.entry.arm.name
        ),
        _entry("name", "text", "The setting in words."),
        DataColumn("settings", "texts", "Each key and its value.", _settings),
        DataColumn(
            "scope",
            "text",
            "What must be started anew: nothing, reload, restart, buckets or cluster.",
            lambda one: one.scope,
        ),
        DataColumn(
            "objective", "text", "What is to be better.", lambda one: one.result.called(one.number)
        ),
        _effect("metric", "text", f"{_METRICS}."),
        _entry("trials", "whole", "Trials of the setting that count."),
        _effect(
            "baseline_value",
            "number",
            "Geometric mean of the baseline beside the trials, in the metric’s unit.",
        ),
        _effect("subject_value", "number", "Geometric mean of the setting's trials."),
        _ratio(
            "ratio",
            "number",
            "How many times the baseline beside it the setting's figure is: a geometric mean.",
            "value",
        ),
        *_ENDS,
        _ratio("pairs", "whole", "Trials with a figure and a baseline beside it.", "repeats"),
        _effect(
            "p", "number", "Of Student's t on logarithms, two-sided, times the number of looks."
        ),
        _effect(
            "q",
            "number",
            "The same, corrected over all tests of the ledger (Benjamini and Hochberg).",
        ),
        _effect("rank_p", "number", "Of Wilcoxon's signed rank test, two-sided."),
        _effect(
            "smallest",
            "number",
            "The smallest ratio above 1 that so many trials would show 8 times in 10.",
        ),
        DataColumn(
            "effect", "text", "The verdict on this objective.", lambda one: one.effect.verdict
        ),
        _entry("verdict", "text", "The verdict over all objectives."),
        _entry(
            "clear",
            "truth",
            "Whether each interval is clear of the threshold, so that no more was to be learnt.",
        ),
        _entry(
            "gain", "number", "How many times better it is: a geometric mean over the objectives."
        ),
        _cpu("gateway", "value", "CPU of gateway hosts for an operation, as times the baseline's."),
        _cpu("gateway", "low", "Lower end of its interval."),
        _cpu("gateway", "high", "Upper end of it."),
        _cpu("storage", "value", "The same of hosts that keep data."),
        _cpu("storage", "low", "Lower end of its interval."),
        _cpu("storage", "high", "Upper end of it."),
        DataColumn("chosen", "truth", "Whether all that it sets is in what was chosen.", _chosen),
        _entry("notes", "texts", "Why it is not allowed or failed, and what else must be known."),
        _effect("text", "text", "The verdict on this objective in one sentence."),
    ),
)

TRIALS: Final[TableSchema[TrialLine]] = TableSchema(
    "trials",
    "Of a tuning: a line for each trial and each objective, in the order of time; of other runs "
    "nothing.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        DataColumn(
            "trial", "whole", "Which trial of the run, from 1.", lambda one: one.trial.number + 1
        ),
        DataColumn(
            "arm", "text", "Name of the layout that was tried.", lambda one: one.trial.arm.name
        ),
        DataColumn(
            "baseline",
            "truth",
            "Whether it is the layout as it was given.",
            lambda one: one.trial.arm.is_baseline,
        ),
        DataColumn(
            "repeat",
            "whole",
            "Which trial of this layout, from 1.",
            lambda one: one.trial.repeat + 1,
        ),
        DataColumn("round", "whole", "Which round, from 1.", lambda one: one.trial.round + 1),
        DataColumn(
            "deployment",
            "whole",
            "Which standing of the layout, from 1.",
            lambda one: one.trial.deployment + 1,
        ),
        DataColumn("at", "time", "When it was made.", lambda one: utc(one.trial.at or None)),
        DataColumn(
            "started_s",
            "number",
            "When its first step began, by its process's clock.",
            lambda one: one.trial.started_s,
            "s",
        ),
        DataColumn(
            "scope", "text", "What was started anew before it.", lambda one: one.trial.scope
        ),
        DataColumn(
            "changed", "texts", "What was done before it, in words.", lambda one: one.trial.changed
        ),
        DataColumn(
            "changed_s", "number", "How long that took.", lambda one: one.trial.changed_s, "s"
        ),
        DataColumn(
            "objective", "text", "What is to be better.", lambda one: one.result.called(one.number)
        ),
        DataColumn(
            "value",
            "number",
            "The objective's figure, in its metric’s unit.",
            _of_reading("value"),
        ),
        DataColumn(
            "baseline_beside",
            "number",
            "The baseline's figure at that moment, between its trials on both sides.",
            _of_reading("reference"),
        ),
        DataColumn(
            "why",
            "text",
            "Why it has no figure, or could not be made.",
            _why,
        ),
    ),
)


def effects_table(runs: Sequence[RunData]) -> DataTable:
    """What was compared in these runs."""
    return EFFECTS.fill(
        EffectOfRun(data, effect) for data in runs for effect in data.comparison.effects
    )


def ledger_table(runs: Sequence[RunData]) -> DataTable:
    """The ledgers of those of these runs that are tunings."""
    return LEDGER.fill(_ledger_lines(runs))


def trials_table(runs: Sequence[RunData]) -> DataTable:
    """The trials of those of these runs that are tunings."""
    return TRIALS.fill(_trial_lines(runs))


def _ledger_lines(runs: Sequence[RunData]) -> Iterator[ObjectiveOfRun]:
    for data in runs:
        if (result := data.tuned) is not None:
            for entry in result.ledger.entries:
                yield from (
                    ObjectiveOfRun(data, result, entry, number)
                    for number in range(len(entry.effects))
                )


def _trial_lines(runs: Sequence[RunData]) -> Iterator[TrialLine]:
    for data in runs:
        if (result := data.tuned) is not None:
            readings = {(one.trial, one.objective): one for one in result.ledger.readings}
            for trial in result.trials:
                for number in range(len(result.run.objectives)):
                    yield TrialLine(
                        data, result, trial, number, readings.get((trial.number, number))
                    )
