from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.setting_effects import Reading
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import (
    DataColumn,
    DataTable,
    Kind,
    TableSchema,
    attribute,
    utc,
)
from weighbridge.results.metrics import compared
from weighbridge.results.record.trial import Trial
from weighbridge.results.statistics import Ratio


class HasEffect(Protocol):
    """A source of lines about an effect."""

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
    """One objective of one setting, and its run."""

    data: RunData
    result: TuningResult
    entry: SettingEntry
    number: int

    @property
    def effect(self) -> Effect:
        return self.entry.effects[self.number]

    @property
    def scope(self) -> str | None:
        """What must be restarted for it."""
        return self.result.scope(self.entry.variant)


@dataclass(frozen=True)
class TrialLine:
    """One objective of one trial, and its run; without a reading where the trial failed."""

    data: RunData
    result: TuningResult
    trial: Trial
    number: int
    reading: Reading | None


def _entry(name: str, kind: Kind, about: str) -> DataColumn[ObjectiveOfRun]:
    return attribute(name, kind, about, f"entry.{name}")


def _effect(name: str, kind: Kind, about: str) -> DataColumn[HasEffect]:
    return attribute(name, kind, about, f"effect.{name}")


def _ratio(name: str, kind: Kind, about: str, of: str) -> DataColumn[HasEffect]:
    return DataColumn(name, kind, about, lambda one: getattr(one.effect.ratio, of, None))


_METRICS: Final = ", ".join(f"{one.key} ({one.better} is better)" for one in compared())
_RUN: Final[DataColumn[HasEffect]] = attribute(
    "run", "text", "Name of the run.", "data.manifest.run_id"
)
_ENDS: Final = (
    _ratio(
        "ratio_low",
        "number",
        "Lower end of its 95 % interval, in a tuning widened for all looks.",
        "low",
    ),
    _ratio("ratio_high", "number", "Upper end of its interval.", "high"),
)


def _cpu(tier: str, end: str, about: str) -> DataColumn[ObjectiveOfRun]:
    def read(one: ObjectiveOfRun) -> float | None:
        ratio: Ratio | None = getattr(one.entry, f"{tier}_cpu")
        return getattr(ratio, end, None)

    return DataColumn(f"{tier}_cpu{'' if end == 'value' else f'_{end}'}", "number", about, read)


def _settings(one: ObjectiveOfRun) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in one.entry.variant.settings.items())


def _of_reading(name: str) -> Callable[[TrialLine], float | None]:
    return lambda one: getattr(one.reading, name, None)


def _why(one: TrialLine) -> str | None:
    return one.trial.failed or (one.reading.why if one.reading is not None else "") or None


def _chosen(one: ObjectiveOfRun) -> bool | None:
    winner = one.result.winner
    return (
        None
        if winner is None
        else one.entry.variant.settings.items() <= winner.arm.settings.items()
    )


EFFECTS: Final[TableSchema[EffectOfRun]] = TableSchema(
    "effects",
    "A line for each metric, kind of requests and worker count of each layout compared with the "
    "first; workers unknown: over all.",
    (
        _RUN,
        _effect("workload", "text", "Name of the workload in the suite."),
        _effect("operation", "text", "The operation on objects."),
        _effect("api", "text", "The interface that requests used."),
        _effect("driver", "text", "The program that made the load."),
        _effect("about", "text", "Name of the requests."),
        _effect("workers", "integer", "Worker count; unknown for all of them together."),
        _effect("metric", "text", f"{_METRICS}."),
        _effect("baseline", "text", "The layout that the subject is compared with."),
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
            "The subject's figure divided by the baseline's, of geometric means.",
            "value",
        ),
        *_ENDS,
        _ratio("repeats", "integer", "Repeats of the side that has fewer.", "repeats"),
        _effect("p", "number", "Of Welch's test on logarithms, two-sided."),
        _effect("q", "number", "The same, corrected over all cells (Benjamini and Hochberg)."),
        _effect("rank_p", "number", "Of the Mann-Whitney test, two-sided."),
        _effect("delta", "number", "Cliff's delta, from -1 to 1."),
        _effect(
            "smallest",
            "number",
            "The smallest ratio above 1 that this number of repeats would find 8 times in 10.",
        ),
        _effect(
            "noise",
            "number",
            "The noise floor of this machine, a ratio above 1; unknown without an A/A control.",
        ),
        _effect(
            "verdict",
            "text",
            "better, worse, too small to matter, not significant, provisional or not comparable.",
        ),
        DataColumn(
            "doubts",
            "texts",
            "Doubts about either side, each with its grade: grave (not comparable) or mild "
            "(provisional).",
            lambda one: tuple(doubt_text(doubt) for doubt in one.effect.doubts),
        ),
        _effect("text", "text", "The verdict in one sentence."),
    ),
)


LEDGER: Final[TableSchema[ObjectiveOfRun]] = TableSchema(
    "ledger",
    "Of a tuning: a line for each setting and objective, the largest gain first; none for other "
    "runs.",
    (
        _RUN,
        attribute("tuning", "text", "Name of the tuning.", "result.run.tuning.name"),
        attribute("arm", "text", "Name of the layout with the setting.", "entry.variant.name"),
        _entry("name", "text", "The setting in words."),
        DataColumn("settings", "texts", "Each key and its value.", _settings),
        attribute(
            "scope",
            "text",
            "What must be restarted: nothing, reload, restart, buckets or cluster.",
        ),
        DataColumn(
            "objective", "text", "The objective.", lambda one: one.result.called(one.number)
        ),
        _effect("metric", "text", f"{_METRICS}."),
        _entry("trials", "integer", "Trials of the setting that count."),
        _effect(
            "baseline_value",
            "number",
            "Geometric mean of the baseline beside the trials, in the metric’s unit.",
        ),
        _effect("subject_value", "number", "Geometric mean of the setting's trials."),
        _ratio(
            "ratio",
            "number",
            "The setting's figure divided by that of the baseline beside it, a geometric mean.",
            "value",
        ),
        *_ENDS,
        _ratio("pairs", "integer", "Trials with a figure and a baseline beside it.", "repeats"),
        _effect(
            "p", "number", "Of Student's t on logarithms, two-sided, times the number of looks."
        ),
        _effect(
            "q",
            "number",
            "The same, corrected over all tests of the tuning (Benjamini and Hochberg).",
        ),
        _effect("rank_p", "number", "Of Wilcoxon's signed rank test, two-sided."),
        _effect(
            "smallest",
            "number",
            "The smallest ratio above 1 that this number of trials would find 8 times in 10.",
        ),
        attribute("effect", "text", "The verdict on this objective.", "effect.verdict"),
        _entry("verdict", "text", "The verdict over all objectives."),
        _entry(
            "clear",
            "boolean",
            "Whether each interval excludes the threshold, so that no more trials were needed.",
        ),
        _entry(
            "gain", "number", "How many times better it is, a geometric mean over the objectives."
        ),
        _cpu("gateway", "value", "CPU of gateway hosts per operation, divided by the baseline's."),
        _cpu("gateway", "low", "Lower end of its interval."),
        _cpu("gateway", "high", "Upper end of its interval."),
        _cpu("storage", "value", "The same of storage hosts."),
        _cpu("storage", "low", "Lower end of its interval."),
        _cpu("storage", "high", "Upper end of its interval."),
        DataColumn("chosen", "boolean", "Whether the winner includes all of it.", _chosen),
        _entry("notes", "texts", "Why it is not allowed or failed, and what else must be known."),
        _effect("text", "text", "The verdict on this objective in one sentence."),
    ),
)

TRIALS: Final[TableSchema[TrialLine]] = TableSchema(
    "trials",
    "Of a tuning: a line for each trial and objective, in order of time; none for other runs.",
    (
        attribute("run", "text", "Name of the run.", "data.manifest.run_id"),
        DataColumn(
            "trial", "integer", "Which trial of the run, from 1.", lambda one: one.trial.number + 1
        ),
        attribute("arm", "text", "Name of the layout that was tried.", "trial.arm.name"),
        attribute(
            "baseline",
            "boolean",
            "Whether it is the layout without changes.",
            "trial.arm.is_baseline",
        ),
        DataColumn(
            "repeat",
            "integer",
            "Which trial of this layout, from 1.",
            lambda one: one.trial.repeat + 1,
        ),
        DataColumn("round", "integer", "Which round, from 1.", lambda one: one.trial.round + 1),
        DataColumn(
            "deployment",
            "integer",
            "Which deployment of the layout, from 1.",
            lambda one: one.trial.deployment + 1,
        ),
        DataColumn("at", "time", "Time of the trial.", lambda one: utc(one.trial.at or None)),
        attribute(
            "started_s",
            "number",
            "When its first step started, by its process's clock.",
            "trial.started_s",
            "s",
        ),
        attribute("scope", "text", "What was restarted before it.", "trial.scope"),
        attribute("changed", "texts", "What was done before it, in words.", "trial.changed"),
        attribute("changed_s", "number", "Duration of these changes.", "trial.changed_s", "s"),
        DataColumn(
            "objective", "text", "The objective.", lambda one: one.result.called(one.number)
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
            "Why it has no figure, or failed.",
            _why,
        ),
    ),
)


def effects_table(runs: Sequence[RunData]) -> DataTable:
    """The comparisons of these runs."""
    return EFFECTS.fill(
        EffectOfRun(data, effect) for data in runs for effect in data.comparison.effects
    )


def ledger_table(runs: Sequence[RunData]) -> DataTable:
    """The settings of these runs' tunings."""
    return LEDGER.fill(_ledger_lines(runs))


def trials_table(runs: Sequence[RunData]) -> DataTable:
    """The trials of these runs' tunings."""
    return TRIALS.fill(_trial_lines(runs))


def _ledger_lines(runs: Sequence[RunData]) -> Iterator[ObjectiveOfRun]:
    for data in runs:
        if (result := data.tuned) is not None:
            for entry in result.table.entries:
                yield from (
                    ObjectiveOfRun(data, result, entry, number)
                    for number in range(len(entry.effects))
                )


def _trial_lines(runs: Sequence[RunData]) -> Iterator[TrialLine]:
    for data in runs:
        if (result := data.tuned) is not None:
            readings = {(one.trial, one.objective): one for one in result.table.readings}
            for trial in result.trials:
                for number in range(len(result.run.objectives)):
                    yield TrialLine(
                        data, result, trial, number, readings.get((trial.number, number))
                    )
