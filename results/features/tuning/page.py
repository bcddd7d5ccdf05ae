from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.features.tuning.setting_table import SettingEntry
from weighbridge.results.features.tuning.tuning_result import (
    SIGNS,
    TuningResult,
    cards,
    change_words,
    could_be_shown,
    interval_words,
    setting_lines,
    setting_results,
)
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.judge.host_equality import sameness
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_percent, show_ratio, upper
from weighbridge.results.show.gallery import Gallery
from weighbridge.results.show.page import render
from weighbridge.results.show.report import NOTABLE_EVENTS, effects_grid
from weighbridge.suites.tuning import Parameter, show_setting

NOTES: Final = 3
"""Notes of a setting that the page shows; ledger.csv has all of them."""
BEST: Final = 5
"""How many better settings get a sentence at the top."""


class WithoutEffect(Record):
    """A setting without an effect: for each objective change, interval and detectable effect."""

    name: str
    trials: int
    cells: tuple[tuple[str, str, str], ...]
    verdict: str


class ParameterNotes(Record):
    """A parameter as its file describes it, with the values tried and their results."""

    key: str
    option: str
    default: str
    was: str
    tried: tuple[tuple[str, str, str], ...]
    """For each value: sign and verdict, value, change."""
    effect: str
    trap: str
    reference: str


def tuning_page(data: RunData, result: TuningResult, gallery: Gallery) -> str:
    """Render the page; it links to the confirmation's report relative to the `derived` folder."""
    manifest, plan, run = data.manifest, data.plan, result.run
    baseline, charts = result.table.baseline.name, gallery.of("figures")
    return render(
        "tuning.html.j2",
        charts,
        plan.layouts[:1],
        manifest=manifest,
        plan=plan.model_copy(
            update={"layouts": tuple(one for one in plan.layouts if one.name == baseline)}
        ),
        plan_yaml=data.store.plan_yaml(),
        result=result,
        run=run,
        tuning=run.tuning,
        table=result.table,
        baseline=baseline,
        lead=_lead(result),
        cards=cards(result),
        sentences=tuple(_sentences(result)),
        called=[result.called(number) for number in range(len(run.objectives))],
        lines=setting_lines(result),
        tornados=[chart for chart in charts if chart.key.startswith("tornado")],
        drift=[chart for chart in charts if not chart.key.startswith("tornado")],
        without_effect=tuple(_without_effect(one) for one in result.table.without_effect),
        refused=tuple(
            (SIGNS[one.verdict], one.verdict, one.name, one.notes[:NOTES], len(one.notes[NOTES:]))
            for one in result.refused
        ),
        parameters=tuple(_notes(result, one) for one in run.tuning.parameters),
        confirmed=tuple(_confirmed(result)),
        chosen_title="Settings to paste" if result.to_paste else "Settings that were chosen",
        confirmation_link=_link(data, result),
        invalid=tuple(_invalid(result)),
        limits=tuple(_limits(data, baseline)),
        threshold=run.tuning.threshold,
        ratio=show_ratio,
        facts={
            sheet.title: sheet.facts
            for sheet in manifest.sheets
            if sheet.layout in (None, baseline)
        },
        differing=tuple(_differing(data, baseline)),
        configs=[one for one in manifest.configs if one.layout == baseline],
        attested=sameness(data.attested, [baseline]),
        command=shlex.join(manifest.command),
        gaps=(*data.gaps, *gallery.left_out),
        turns=[event for event in data.events if event.kind in NOTABLE_EVENTS],
        effects=effects_grid(data.comparison, over="trials", subject="setting"),
        claim_trials=REPEATS_FOR_A_CLAIM,
    )


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


def _sentences(result: TuningResult) -> Iterator[str]:
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
    for one in result.table.drift:
        yield f"{upper(one.words.rstrip('.'))}."


def _without_effect(entry: SettingEntry) -> WithoutEffect:
    return WithoutEffect(
        name=entry.name,
        trials=entry.trials,
        cells=tuple(
            (
                UNKNOWN if one.ratio is None else show_percent(one.ratio.value),
                interval_words(one) or UNKNOWN,
                could_be_shown(one) or UNKNOWN,
            )
            for one in entry.effects
        ),
        verdict=entry.verdict,
    )


def _notes(result: TuningResult, one: Parameter) -> ParameterNotes:
    settings, default = result.run.layout_settings, one.default_at(result.run.release)
    tried = []
    for entry in result.table.entries:
        if one.key in entry.variant.settings and len(result.parameters(entry.variant)) == 1:
            changes = [change_words(effect) for effect in entry.effects if effect.ratio is not None]
            value = show_setting(entry.variant.settings[one.key])
            tried.append((f"{SIGNS[entry.verdict]} {entry.verdict}", value, "; ".join(changes)))
    return ParameterNotes(
        key=one.key,
        option=one.option,
        default=UNKNOWN if default is None else show_setting(default),
        was=show_setting(settings[one.key]) if one.key in settings else UNKNOWN,
        tried=tuple(tried),
        effect=one.effect,
        trap=one.trap,
        reference=one.reference,
    )


def _confirmed(result: TuningResult) -> Iterator[tuple[str, ...]]:
    """By objective: each chosen setting's change alone, and the winner's when confirmed."""
    if result.winner is None or result.confirmation is None:
        return
    chosen = result.winner.arm.settings.items()
    parts = [
        one
        for one in result.table.entries
        if one.variant.settings.items() <= chosen and one.verdict == "better"
    ]
    for number, effect in enumerate(result.confirmation.effects):
        ratios = (one.effects[number].ratio for one in parts)
        alone = ", ".join(show_percent(ratio.value) for ratio in ratios if ratio is not None)
        fresh = (
            (UNKNOWN, UNKNOWN, "0", "not comparable")
            if effect is None or effect.ratio is None
            else (
                show_percent(effect.ratio.value),
                interval_words(effect) or UNKNOWN,
                str(effect.ratio.repeats),
                effect.verdict,
            )
        )
        yield (result.called(number), alone or UNKNOWN, *fresh)


def _link(data: RunData, result: TuningResult) -> str:
    found = result.confirmation
    if found is None or not (found.folder / "derived" / "report.html").exists():
        return ""
    return f"../{found.folder.relative_to(data.store.folder).as_posix()}/derived/report.html"


def _invalid(result: TuningResult) -> Iterator[tuple[str, ...]]:
    names = {one.variant.name: one.name for one in result.table.entries}
    setting = {one.number: names.get(one.arm.name, one.arm.name) for one in result.trials}
    for trial in result.failures:
        yield str(trial.number + 1), setting[trial.number], "all", trial.failed
    failed = {one.number for one in result.failures}
    for one in result.table.readings:
        if one.value is None and one.trial not in failed:
            yield str(one.trial + 1), setting[one.trial], result.called(one.objective), one.why


def _limits(data: RunData, baseline: str) -> Iterator[tuple[str, str]]:
    for row in data.rows:
        if row.layout == baseline and row.saturated:
            workers = counted(row.workers, "worker")
            yield f"{row.workload}: {row.operation} at {workers}", row.saturated


def _differing(data: RunData, baseline: str) -> Iterator[tuple[str, str, str, str]]:
    table = setting_results(data)
    names = {entry.variant.name: entry.name for entry in (table.entries if table else ())}
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
