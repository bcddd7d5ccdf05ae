"""Which settings help, for every output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from weighbridge.results.features.tuning.charts import drift_chart, tornado_charts
from weighbridge.results.features.tuning.setting_table import SettingEntry
from weighbridge.results.features.tuning.tuning_result import (
    BLUE,
    ORANGE,
    RESTARTED,
    TuningResult,
    change_figure,
    could_be_shown,
    interval_words,
    setting_lines,
    short_names,
    tuned,
)
from weighbridge.results.features.tuning.tuning_result import cards as tuning_cards
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, listed, show_percent, upper
from weighbridge.results.numbers import percent as percent_of_ratio
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.show.chart_source import ChartKind
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.slide import (
    BETTER,
    INK,
    MUTED,
    WORSE,
    Point,
    Slide,
    SlideCard,
    SlideCell,
    Topic,
    bar_chart,
    table_of,
)
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import METRIC_KEYS, RATIO_ENDS, RUN, ratio_cells

WINNERS: Final = "winner"
"""Folder of a tuning's choice: one file for each configuration file, ready to paste."""


def _answer(data: RunData) -> str:
    result = tuned(data)
    return "" if result is None else result.headline


def _write(data: RunData) -> None:
    """Write what was chosen; what was chosen earlier, from fewer trials, must not be pasted."""
    result, store = tuned(data), data.store
    if result is None:
        return
    winner = store.derived / WINNERS
    if winner.exists():
        store.make_derived(WINNERS)  # fails if it is a link to another folder
        for old in winner.iterdir():
            if not old.is_dir():
                old.unlink()
    for fragment in result.to_paste:
        write_atomically(winner / fragment.name, fragment.text, folder=store.folder)


def _ledger(data: RunData) -> Iterator[Line]:
    result = tuned(data)
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
    result = tuned(data)
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
    result = tuned(data)
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


MAX_BARS: Final = 10

WIDEST: Final = 2.0
"""An axis ends at so many times the largest change, wherever an interval ends."""

VERDICT_INKS: Final = {"better": BETTER, "worse": WORSE}


def tuning_topic(data: RunData) -> Topic | None:
    """Which settings help."""
    result = tuned(data)
    if result is None:
        return None
    readings = result.table.readings
    lost = sum(reading.value is None for reading in readings) or "none"
    doubts = [f"Of {counted(len(readings), 'reading')}, {lost} could not be used."]
    doubts += [f"{upper(drift.words.rstrip('.'))}." for drift in result.table.drift]
    if result.run.tuning.strategy == "screen":
        doubts.append(
            "Each setting was tried alone: combined effects are known only where confirmed."
        )
    meaning = [result.winner_words, *([result.confirmation_words] if result.winner else [])]
    if files := [fragment.name for fragment in result.to_paste]:
        meaning.append(f"Ready to paste, in derived/winner: {listed(files)}.")
    settings = counted(len(result.table.entries), "setting")
    objectives = listed([result.called(number) for number in range(len(result.run.objectives))])
    tones = {BLUE: BETTER, ORANGE: WORSE}
    return Topic(
        question=f"Which of {settings} of {result.run.tuning.layout} help {objectives}?",
        answer=result.headline,
        cards=tuple(
            SlideCard(
                figure=card.figure,
                about=card.about,
                text=short_names([card.text])[card.text],
                detail=card.detail,
                colour=tones.get(card.colour, MUTED),
            )
            for card in tuning_cards(result)
        ),
        slides=tuple(_effects(result)),
        backup=tuple(_ledger_slides(result)),
        doubts=tuple(doubts),
        meaning=tuple(meaning),
    )


def _effects(result: TuningResult) -> Iterator[Slide]:
    """The changes of each objective, the largest first."""
    entries = result.table.entries
    short = short_names([entry.name for entry in entries])
    for number in range(len(result.run.objectives)):
        changes = [
            (effect.ratio, short[entry.name], effect)
            for entry in entries
            if (effect := entry.effects[number]).ratio is not None
        ]
        changes.sort(key=lambda change: -change[0].either_way)
        if not changes:
            continue
        called, (_, name, effect) = result.called(number), changes[0]
        bars = [_bar(*change) for change in changes]
        title = f"No setting changes the {called} significantly"
        if effect.verdict in VERDICT_INKS:
            title = f"{name} changes the {called} most: {change_figure(effect)}"
        limit = WIDEST * max(abs(bar.y) for bar in bars) or 1.0
        yield Slide(
            title=title,
            charts=(bar_chart(f"{called}, change in %", bars[:MAX_BARS], limit),),
            foot="Compared with the baseline beside it. Blue: better, orange: worse, grey, ~: no "
            "significant effect. Whiskers: 95 % interval. The backup has all settings.",
            notes=tuple(f"{effect.text}." for _, _, effect in changes),
        )


def _bar(ratio: Ratio, name: str, effect: Effect) -> Point:
    return Point(
        x=name,
        y=percent_of_ratio(ratio.value),
        low=None if ratio.low is None else percent_of_ratio(ratio.low),
        high=None if ratio.high is None else percent_of_ratio(ratio.high),
        label=change_figure(effect),
        colour=VERDICT_INKS.get(effect.verdict, MUTED),
    )


def _ledger_slides(result: TuningResult) -> Iterator[Slide]:
    """All settings with their effects and verdicts."""
    settings = setting_lines(result)
    if not settings:
        return
    entries = {entry.variant.name: entry for entry in result.table.entries}
    short = short_names([setting.name for setting in settings])
    lines = []
    for setting in settings:
        cells: list[str | SlideCell] = [short[setting.name]]
        for change, effect in zip(setting.changes, entries[setting.variant].effects, strict=True):
            interval = f" ({change.interval})" if change.interval else ""
            cells += [f"{change.change}{interval}", could_be_shown(effect) or UNKNOWN]
        ink = VERDICT_INKS.get(setting.verdict, INK)
        cells += [
            SlideCell(f"{setting.sign} {setting.verdict}", ink=ink),
            setting.gateway_cpu,
            str(setting.trials),
        ]
        lines.append(cells)
    called = [upper(result.called(number)) for number in range(len(result.run.objectives))]
    head = [part for name in called for part in (name, "would be found")]
    counts = Counter(setting.verdict for setting in settings)
    better, worse = counts["better"] or "None", counts["worse"] or "none"
    yield Slide(
        title=f"{better} of {counted(len(settings), 'setting')} better, {worse} worse",
        table=table_of(("Setting", *head, "Verdict", "Gateway CPU", "Trials"), lines),
        foot="Compared with the baseline beside each trial. ~: not significant. In brackets: 95 % "
        "interval. Would be found: the smallest effect that so many trials find 8 times in 10.",
    )


FEATURE: Final = Feature(
    answer=_answer,
    tables=(LEDGER, TRIALS),
    charts={
        "tornado": ChartKind(tornado_charts, runs=("comparison", "tuning")),
        "drift": ChartKind(drift_chart, runs=("tuning",)),
    },
    topic=tuning_topic,
    write=_write,
)
