"""Which settings help, for every output: answer, tables, slides and sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weighbridge.results.features.tuning.charts import (
    WIDEST,
    changes_of,
    drift_chart,
    finding,
    tornado_charts,
    tornados,
)
from weighbridge.results.features.tuning.setting_table import (
    SettingEntry,
    could_be_shown,
    interval_words,
)
from weighbridge.results.features.tuning.tuning_result import (
    BLUE,
    ORANGE,
    SIGNS,
    TuningResult,
    cards,
    change_figure,
    cpu_words,
    short_names,
    tuned,
)
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, listed, percent, show_ratio, upper
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.show.chart_source import ChartKind
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section, sortable
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
from weighbridge.results.show.table import Filled, Line, Table, columns, line
from weighbridge.results.show.tables import METRIC_KEYS, RATIO_ENDS, RUN, ratio_cells
from weighbridge.suites.tuning import Parameter, show_setting

WINNERS: Final = "winner"
"""Folder of a tuning's choice: one file for each configuration file, ready to paste."""


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
            for number, called in enumerate(result.called):
                yield _ledger_line(result, entry, number, called)


def _ledger_line(result: TuningResult, entry: SettingEntry, number: int, called: str) -> Line:
    effect, settings = entry.effects[number], entry.variant.settings
    winner = result.winner
    interval = interval_words(effect)
    texts = {
        "ratio": f"{change_figure(effect)}{f' ({interval})' if interval else ''}",
        "smallest": could_be_shown(effect) or UNKNOWN,
        "scope": result.needs(entry.variant),
        "gateway_cpu": cpu_words(entry.gateway_cpu),
        "storage_cpu": cpu_words(entry.storage_cpu),
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
        scope=result.scope(entry.variant),
        objective=called,
        pairs=None if effect.ratio is None else effect.ratio.repeats,
        effect=effect.verdict,
        chosen=None if winner is None else settings.items() <= winner.arm.settings.items(),
    ).showing(texts)


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
    yield from result.drift_words
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
        for number, called in enumerate(result.called):
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
                objective=called,
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

VERDICT_INKS: Final = {"better": BETTER, "worse": WORSE}


def _topic(data: RunData) -> Topic | None:
    result = tuned(data)
    if result is None:
        return None
    readings = result.table.readings
    lost = sum(reading.value is None for reading in readings) or "none"
    doubts = [f"Of {counted(len(readings), 'reading')}, {lost} could not be used."]
    doubts += result.drift_words
    if result.run.tuning.strategy == "screen":
        doubts.append(
            "Each setting was tried alone: combined effects are known only where confirmed."
        )
    meaning = [result.winner_words, *([result.confirmation_words] if result.winner else [])]
    if files := [fragment.name for fragment in result.to_paste]:
        meaning.append(f"Ready to paste, in derived/winner: {listed(files)}.")
    settings = counted(len(result.table.entries), "setting")
    objectives = listed(result.called)
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
            for card in cards(result)
        ),
        slides=tuple(_effects(result)),
        backup=tuple(_ledger_slides(data, result)),
        doubts=tuple(doubts),
        meaning=tuple(meaning),
    )


def _effects(result: TuningResult) -> Iterator[Slide]:
    """The changes of each objective, the largest first."""
    for number, called in enumerate(result.called):
        changes = changes_of(result, number)
        short = short_names([change.setting for change in changes])
        bars = [
            _bar(change.effect.ratio, short[change.setting], change.effect)
            for change in changes
            if change.effect.ratio is not None
        ]
        if not bars:
            continue
        limit = WIDEST * max(abs(bar.y) for bar in bars) or 1.0
        yield Slide(
            title=finding(
                [replace(change, setting=short[change.setting]) for change in changes], called
            ),
            charts=(bar_chart(f"{called}, change in %", bars[:MAX_BARS], limit),),
            foot="Compared with the baseline beside it. Blue: better, orange: worse, grey, ~: no "
            "significant effect. Whiskers: 95 % interval. The backup has all settings.",
            notes=tuple(f"{change.effect.text}." for change in changes if change.effect.ratio),
        )


def _bar(ratio: Ratio, name: str, effect: Effect) -> Point:
    return Point(
        x=name,
        y=percent(ratio.value),
        low=None if ratio.low is None else percent(ratio.low),
        high=None if ratio.high is None else percent(ratio.high),
        label=change_figure(effect),
        colour=VERDICT_INKS.get(effect.verdict, MUTED),
    )


def _ledger_slides(data: RunData, result: TuningResult) -> Iterator[Slide]:
    """All settings with their effects and verdicts, by objective."""
    counts = Counter(entry.verdict for entry in result.table.entries)
    better, worse = counts["better"] or "None", counts["worse"] or "none"
    settings = counted(counts.total(), "setting")
    for called in result.called if counts else ():
        grid = _tried(data, "", called, result.by_gain, _ON_SLIDE)
        lines = [
            [
                SlideCell(cell, ink=VERDICT_INKS.get(cell[2:], INK)) if head == "Verdict" else cell
                for head, cell in zip(grid.head, line, strict=True)
            ]
            for line in grid.lines
        ]
        yield Slide(
            title=f"{better} of {settings} better, {worse} worse: {called}",
            table=table_of(grid.head, lines),
            foot="Compared with the baseline beside each trial. ~: not significant. In brackets: "
            "95 % interval. Detectable: the smallest effect that so many trials find 8 times in "
            "10.",
        )


# The sections of the page.


BEST: Final = 5
"""How many better settings get a sentence at the top."""

_TRIED: Final = {
    "name": "Setting",
    "ratio": "Change",
    "smallest": "Detectable",
    "verdict": "Verdict",
    "gateway_cpu": "Gateway CPU",
    "storage_cpu": "Storage CPU",
    "trials": "Trials",
    "scope": "Needs",
}
_ON_SLIDE: Final = {
    name: head for name, head in _TRIED.items() if name not in ("storage_cpu", "scope")
}
_REFUSED: Final = {"name": "Setting", "verdict": "Verdict", "notes": "Why"}
_LEFT_OUT: Final = {"trial": "Trial", "arm": "Layout", "objective": "Objective", "why": "Why"}
_METHOD: Final = """
With several objectives, a setting is better if it is better in one and worse in none.

A trial is every step of the reduced suite once, with one setting. Before it, only what the setting
needs was restarted; the deployment, its buckets and its data stayed.

Each trial is compared with the baseline’s trials before and after it in the same round,
interpolated by time on logarithms. Whatever slows down or speeds up the entire machine affects both
and cancels out.

A setting is clear, and tried no more, when its entire interval lies beyond what matters or within
it.

No effect found: these trials found none; one too small for them to find may exist. Too small to
matter: the interval lies within what matters, or the effect is significant but smaller than that.
“Detectable” is how large an effect would have been found in 8 of 10 such tunings.

CPU is in CPU seconds per operation of gateway hosts, and of hosts that store data, relative to the
baseline next to it in time. ~: the interval includes “no change”.
"""


def _sections(data: RunData) -> Iterator[Section]:
    result = tuned(data)
    if result is None:
        return
    table, baseline = result.table, result.table.baseline.name
    parts = [Part(text=_lead(result), sentences=list(_findings(result)))]
    interval = f" (95 % over all {table.looks} looks)" if table.looks > 1 else " (95 %)"
    caption = (
        f"Each setting vs the trials of {baseline} next to it in time, by gain: change with its "
        f"interval{interval}. ~: no difference found. In brackets: not enough trials for a claim. "
        "The same data are in ledger.csv."
    )
    charts = {one.panels[0].key: one.key for one in tornados(result)}
    for number, called in enumerate(result.called if table.entries else (), start=1):
        chart = charts.get(f"objective-{number}", "")
        grid = _tried(data, caption, called, result.by_gain)
        parts.append(Part(title=upper(called), chart=chart, grids=[grid]))
    if not table.entries:
        parts.append(Part(text="No setting has a trial yet."))
    said = [
        *_findings(result),
        *(f"{entry.name}: {entry.notes[0]}." for entry in result.refused if entry.notes),
    ]
    yield Section("trials", "Results of the trials", parts, said, [_brief(result)], first=True)
    if result.winner is not None:
        yield from _winner_sections(data, result)
    if result.refused:
        what = "Settings that broke a constraint, or with which the gateway did not work."
        grid = _tried(data, what, result.called[0], result.refused, _REFUSED)
        grid = replace(grid, bad=range(len(grid.lines)))
        yield Section("refused", "Not allowed or failed", [Part(grids=[grid])], folded=True)
    parameters = Grid(
        "What each parameter does, from the tuning file and its sources.",
        ("Parameter", "Default", "Here", "What it does"),
        [_parameter(result, one) for one in result.run.tuning.parameters],
    )
    title = "The parameters and what is known about them"
    yield Section("parameters", title, [Part(grids=[parameters])], folded=True)
    yield Section("drift", "Every trial, in order of time", [Part(chart="drift")], folded=True)
    yield Section("method", "Method", [Part(sentences=list(_method(result)))], folded=True)
    left_out = sortable(
        "Trials that failed, and figures that are not valid. They are part of no difference.",
        Filled(TRIALS, tuple(one for one in _trials(data) if one.cells["why"])),
        _LEFT_OUT,
    )
    words = "" if left_out.lines else "Every trial succeeded, and all their figures count."
    parts = [Part(text=words), Part(grids=[left_out])]
    yield Section("left-out", "What does not count", parts, folded=True)
    differing = Grid(
        "What differed with each setting, as reported by the daemons.",
        ("Setting", "Fact", "Baseline", "With it"),
        list(_differing(data, result)),
    )
    if differing.lines:
        yield Section("differing", "What differed", [Part(grids=[differing])], folded=True)


def _lead(result: TuningResult) -> str:
    run, tuning, table = result.run, result.run.tuning, result.table
    how = {
        "screen": "each by itself",
        "grid": "in every combination",
        "search": "in combinations that a search proposed",
    }[tuning.strategy]
    release = f" at {run.release}" if run.release else ""
    return (
        f"{tuning.about.rstrip('.')}: {tuning.layout}{release}, "
        f"{counted(len(tuning.parameters), 'parameter')} {how}; "
        f"{counted(len(table.entries), 'setting')} in {counted(table.trials, 'trial')} and "
        f"{counted(result.rounds, 'round')}."
    )


def _findings(result: TuningResult) -> Iterator[str]:
    """What helps, the winner, whether it was confirmed, and how the machine drifted."""
    for entry in result.better[:BEST]:
        first, *others = (one.text for one in entry.effects)
        yield f"{'; '.join([first, *(one.removeprefix(f'{entry.name}: ') for one in others)])}."
    if len(result.better) > BEST:
        yield f"{len(result.better) - BEST} more settings help: see the results."
    yield result.winner_words
    if result.winner is not None:
        yield result.confirmation_words
    if result.without_effect_words:
        yield result.without_effect_words
    yield from result.drift_words


def _brief(result: TuningResult) -> Grid:
    """The settings as a terminal has them, with intervals where there is one objective."""
    short = short_names([entry.name for entry in result.by_gain])
    lines = []
    for entry in result.by_gain:
        changes = list(map(change_figure, entry.effects))
        if len(changes) == 1 and (interval := interval_words(entry.effects[0])):
            changes = [f"{changes[0]} ({interval})"]
        verdict = f"{SIGNS[entry.verdict]} {entry.verdict}"
        cpu = cpu_words(entry.gateway_cpu)
        lines.append((short[entry.name], *changes, verdict, cpu, str(entry.trials)))
    head = ("setting", *result.called, "verdict", "gateway CPU", "trials")
    numbers = {*range(1, 1 + len(result.called)), len(head) - 2, len(head) - 1}
    return Grid("", head, lines, numbers)


def _tried(
    data: RunData,
    caption: str,
    called: str,
    entries: Sequence[SettingEntry],
    heads: Mapping[str, str] = _TRIED,
) -> Grid:
    """The ledger's lines of these settings and one objective."""
    ledger = {one.cells["arm"]: one for one in _ledger(data) if one.cells["objective"] == called}
    lines = []
    for entry in entries:
        one = ledger[entry.variant.name]
        verdict = f"{SIGNS[entry.verdict]} {entry.verdict}"
        lines.append(one.showing({**one.shown, "verdict": verdict}))
    return sortable(caption, Filled(LEDGER, tuple(lines)), heads)


def _winner_sections(data: RunData, result: TuningResult) -> Iterator[Section]:
    files = [(fragment.name, fragment.text) for fragment in result.to_paste]
    chosen = Part(
        text=result.winner_words,
        sentences=() if files else result.chosen,
        files=files,
        foot="The same files are in derived/winner." if files else "",
    )
    title = "Settings to paste" if files else "Settings that were chosen"
    yield Section("winner", title, [chosen])
    found = result.confirmation
    report = None if found is None else found.folder / "derived" / "report.html"
    link = ""
    if report is not None and report.exists():
        link = f"../{report.relative_to(data.store.folder).as_posix()}"
    good = found is not None and found.confirmed
    confirmed = Part(
        title="▲ Confirmed" if good else "× Not confirmed",
        text="A winner is chosen for its figures, which therefore flatter it. Here it was "
        f"compared with {result.table.baseline.name} again, on fresh deployments and data that "
        "had no part in the choice.",
        sentences=[result.confirmation_words],
        foot="The report of that run" if link else "",
        link=link,
    )
    yield Section("confirmation", "Confirmation", [confirmed])


def _parameter(result: TuningResult, one: Parameter) -> tuple[str, ...]:
    default, settings = one.default_at(result.run.release), result.run.layout_settings
    does = [one.effect, *([f"Trap: {one.trap}"] if one.trap else [])]
    does += [f"({one.reference})"] if one.reference else []
    return (
        f"{one.key} ({one.option})" if one.option not in ("", one.key) else one.key,
        UNKNOWN if default is None else show_setting(default),
        show_setting(settings[one.key]) if one.key in settings else UNKNOWN,
        " ".join(does),
    )


def _method(result: TuningResult) -> Iterator[str]:
    trials, looks, threshold = (
        result.run.tuning.trials,
        result.table.looks,
        result.run.tuning.threshold,
    )
    yield f"Objectives: {'; '.join(result.called)}."
    yield from (" ".join(text.split()) for text in _METHOD.split("\n\n"))
    yield (
        f"Each round tries the baseline, up to {trials.baseline_every} settings in an order drawn "
        "from the seed, the baseline again, and so on to its end. Rounds measured: "
        f"{result.rounds}."
    )
    yield (
        "Intervals and p are Student’s t of the log ratios over a setting’s trials. A setting is "
        f"first looked at after {trials.least} trials and after each round up to {trials.most}: "
        f"{counted(looks, 'look')} at most, so p is multiplied by {looks} and intervals are at "
        f"{100 - 5 / looks:.3g} %. q is p corrected for all tests of the tuning (Benjamini and "
        "Hochberg); a difference is significant if q is below 0.05. Fewer than "
        f"{REPEATS_FOR_A_CLAIM} trials make no claim."
    )
    yield (
        f"What matters: throughput that differs by {show_ratio(threshold.throughput_ratio)} or "
        f"more, a p90 that differs by {show_ratio(threshold.p90_ratio)} or more."
    )


def _differing(data: RunData, result: TuningResult) -> Iterator[tuple[str, str, str, str]]:
    baseline = result.table.baseline.name
    names = {entry.variant.name: entry.name for entry in result.table.entries}
    before: dict[str, str] = {}
    for sheet in data.manifest.sheets:
        if sheet.layout == baseline:
            before |= sheet.facts
    for sheet in data.manifest.sheets:
        if sheet.layout is not None and sheet.layout != baseline:
            setting = names.get(sheet.layout, sheet.layout)
            for name, value in sheet.facts.items():
                if before.get(name) != value:
                    yield setting, name, before.get(name, UNKNOWN), value


FEATURE: Final = Feature(
    answer=lambda data: "" if (result := tuned(data)) is None else result.headline,
    tables=(LEDGER, TRIALS),
    charts={
        "tornado": ChartKind(tornado_charts, runs=("tuning",)),
        "drift": ChartKind(drift_chart, runs=("tuning",)),
    },
    sections=_sections,
    cards=lambda data: () if (result := tuned(data)) is None else cards(result),
    topic=_topic,
    write=_write,
)
