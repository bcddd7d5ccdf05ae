"""What each setting of a tuning does, and the trials behind that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.setting_lines import RESTARTED, change_figure
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, interval_words
from weighbridge.results.figures import UNKNOWN, show_percent, upper
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import METRIC_KEYS, RATIO_ENDS, RUN, Feature, ratio_cells
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio


def _ledger(data: RunData) -> Iterator[Line]:
    result = data.tuned
    if result is not None:
        for entry in result.table.entries:
            for number in range(len(entry.effects)):
                yield _objective(result, entry, number)


def _objective(result: TuningResult, entry: SettingEntry, number: int) -> Line:
    effect, settings = entry.effects[number], entry.variant.settings
    scope, winner = result.scope(entry.variant), result.winner
    interval = interval_words(effect)
    texts = {
        "ratio": f"{change_figure(effect)}{f' ({interval})' if interval else ''}",
        "scope": UNKNOWN if scope is None else RESTARTED[scope],
        "gateway_cpu": _cpu(entry.gateway_cpu),
        "storage_cpu": _cpu(entry.storage_cpu),
    }
    return line(
        entry,
        effect,
        **ratio_cells(effect.ratio),
        **ratio_cells(entry.gateway_cpu, "gateway_cpu"),
        **ratio_cells(entry.storage_cpu, "storage_cpu"),
        tuning=result.run.tuning.name,
        arm=entry.variant.name,
        settings=tuple(f"{key}={value}" for key, value in settings.items()),
        scope=scope,
        objective=result.called(number),
        pairs=None if effect.ratio is None else effect.ratio.repeats,
        effect=effect.verdict,
        chosen=None if winner is None else settings.items() <= winner.arm.settings.items(),
    ).showing(texts)


def _cpu(ratio: Ratio | None) -> str:
    return UNKNOWN if ratio is None else show_percent(ratio.value)


def _ledger_notes(data: RunData) -> Iterator[str]:
    result = data.tuned
    if result is None:
        return
    looks = result.table.looks
    yield (
        f"Changes vs {result.table.baseline.name}, of geometric means from the baseline's trials "
        "before and after each trial; more is better for throughput, less for latencies. "
        f"Intervals: 95 %{f' over {looks} looks' if looks > 1 else ''}. ~: not significant."
    )
    if any(one.verdict == "provisional" for one in result.table.entries):
        yield f"In brackets: fewer than {REPEATS_FOR_A_CLAIM} trials, provisional."
    for drift in result.table.drift:
        yield f"{upper(drift.words.rstrip('.'))}."
    if result.winner is not None:
        yield result.winner_words
        yield result.confirmation_words
    for entry in result.refused:
        if entry.notes:
            yield f"{entry.name}: {entry.verdict}: {entry.notes[0]}."


LEDGER: Final = Table(
    "ledger",
    "Of a tuning: a line for each setting and objective, the largest gain first; none for other "
    "runs.",
    columns(f"""
{RUN}
tuning text | Name of the tuning.
arm text | Name of the layout with the setting.
name text | The setting in words. | Setting
settings texts | Each key and its value.
scope text | What must be restarted: nothing, reload, restart, buckets or cluster. | Needs
objective text | The objective. | Objective
metric text | {METRIC_KEYS}.
trials integer | Trials of the setting that count. | Trials
baseline_value number | Geometric mean of the baseline beside the trials, in the metric’s unit.
subject_value number | Geometric mean of the setting's trials.
ratio number | The setting's figure divided by that of the baseline beside it, a geometric mean.
    | Change
{RATIO_ENDS}
pairs integer | Trials with a figure and a baseline beside it.
p number | Of Student's t on logarithms, two-sided, times the number of looks.
q number | The same, corrected over all tests of the tuning (Benjamini and Hochberg).
rank_p number | Of Wilcoxon's signed rank test, two-sided.
smallest number | The smallest ratio above 1 that this number of trials would find 8 times in 10.
effect text | The verdict on this objective.
verdict text | The verdict over all objectives. | Verdict
clear boolean | Whether each interval excludes the threshold, so that no more trials were needed.
gain number | How many times better it is, a geometric mean over the objectives.
gateway_cpu number | CPU of gateway hosts per operation, divided by the baseline's. | Gateway CPU
gateway_cpu_low number | Lower end of its interval.
gateway_cpu_high number | Upper end of its interval.
storage_cpu number | The same of storage hosts. | Storage CPU
storage_cpu_low number | Lower end of its interval.
storage_cpu_high number | Upper end of its interval.
chosen boolean | Whether the winner includes all of it.
notes texts | Why it is not allowed or failed, and what else must be known.
text text | The verdict on this objective in one sentence.
"""),
    _ledger,
    _ledger_notes,
)


def _trials(data: RunData) -> Iterator[Line]:
    result = data.tuned
    if result is None:
        return
    readings = {(one.trial, one.objective): one for one in result.table.readings}
    for trial in result.trials:
        for number in range(len(result.run.objectives)):
            # A trial that failed has none.
            reading = readings.get((trial.number, number))
            why = trial.failed or (reading.why if reading is not None else "")
            yield line(
                reading,
                trial,
                trial=trial.number + 1,
                arm=trial.arm.name,
                baseline=trial.arm.is_baseline,
                repeat=trial.repeat + 1,
                round=trial.round + 1,
                deployment=trial.deployment + 1,
                objective=result.called(number),
                baseline_beside=None if reading is None else reading.reference,
                why=why or None,
            )


TRIALS: Final = Table(
    "trials",
    "Of a tuning: a line for each trial and objective, in order of time; none for other runs.",
    columns(f"""
{RUN}
trial integer | Which trial of the run, from 1.
arm text | Name of the layout that was tried.
baseline boolean | Whether it is the layout without changes.
repeat integer | Which trial of this layout, from 1.
round integer | Which round, from 1.
deployment integer | Which deployment of the layout, from 1.
at time | Time of the trial.
started_s number s | When its first step started, by its process's clock.
scope text | What was restarted before it.
changed texts | What was done before it, in words.
changed_s number s | Duration of these changes.
objective text | The objective.
value number | The objective's figure, in its metric’s unit.
baseline_beside number | The baseline's figure at that moment, between its trials on both sides.
why text | Why it has no figure, or failed.
"""),
    _trials,
)
FEATURE: Final = Feature(tables=(LEDGER, TRIALS))
