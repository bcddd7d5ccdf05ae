"""The comparison of a run as data: a line for each metric, kind of requests and worker count of a layout against the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import DataColumn, DataTable, Kind, TableSchema
from weighbridge.results.metrics import METRICS


@dataclass(frozen=True)
class EffectOfRun:
    """One effect and its run."""

    data: RunData
    effect: Effect


METRIC_WORDS: Final = ", ".join(f"{one.key} ({'more' if one.rising_is_better else 'less'} is better)" for one in METRICS.values())


def _effect_column(name: str, kind: Kind, about: str, unit: str = "") -> DataColumn[EffectOfRun]:
    return DataColumn(name, kind, about, lambda one: getattr(one.effect, name), unit)


def _ratio_column(name: str, kind: Kind, about: str, of: str) -> DataColumn[EffectOfRun]:
    return DataColumn(name, kind, about, lambda one: getattr(one.effect.ratio, of, None))


EFFECTS: Final[TableSchema[EffectOfRun]] = TableSchema(
    "effects",
    "A line for each metric, kind of requests and worker count of each layout against the first; workers unknown: over all.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.data.manifest.run_id),
        _effect_column("workload", "text", "Name of the workload in the suite."),
        _effect_column("operation", "text", "What was done to objects."),
        _effect_column("api", "text", "The interface that requests used."),
        _effect_column("driver", "text", "What made the load."),
        _effect_column("about", "text", "What the requests are called."),
        _effect_column("workers", "whole", "Worker count; unknown for all of them together."),
        _effect_column("metric", "text", f"{METRIC_WORDS}."),
        _effect_column("baseline", "text", "The layout that is compared with."),
        _effect_column("subject", "text", "The layout that is compared."),
        _effect_column("baseline_value", "number", "Geometric mean of the baseline's repeats: op/s of throughput, else ms."),
        _effect_column("subject_value", "number", "The same of the subject."),
        _ratio_column("ratio", "number", "How many times the baseline's the subject's figure is: of geometric means.", "value"),
        _ratio_column("ratio_low", "number", "Lower end of its 95 % interval.", "low"),
        _ratio_column("ratio_high", "number", "Upper end of its 95 % interval.", "high"),
        _ratio_column("repeats", "whole", "Repeats of the side that has fewer.", "repeats"),
        _effect_column("p", "number", "Of Welch's test on logarithms, two-sided."),
        _effect_column("q", "number", "The same, corrected over all cells (Benjamini and Hochberg)."),
        _effect_column("rank_p", "number", "Of the Mann-Whitney test, two-sided."),
        _effect_column("delta", "number", "Cliff's delta, from -1 to 1."),
        _effect_column("smallest", "number", "The smallest ratio above 1 that so many repeats would show 8 times in 10."),
        _effect_column("noise", "number", "The noise floor of this machine, a ratio above 1; unknown without an A/A control."),
        _effect_column("verdict", "text", "better, worse, too small to matter, not shown, provisional or not comparable."),
        DataColumn(
            "doubts",
            "texts",
            "What is in doubt of either side, the grade before it: grave (not comparable) or mild (provisional).",
            lambda one: tuple(doubt_text(doubt) for doubt in one.effect.doubts),
        ),
        _effect_column("text", "text", "The verdict in one sentence."),
    ),
)


def effects_table(runs: Sequence[RunData]) -> DataTable:
    """What was compared in these runs."""
    return EFFECTS.fill(EffectOfRun(data, effect) for data in runs for effect in data.comparison.effects)
