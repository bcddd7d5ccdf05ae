"""The page of a tuning: what helps, what does not, what was chosen and whether that held, in one
file that opens anywhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.sameness import sameness
from weighbridge.results.analysis.tuning.ledger import LedgerEntry
from weighbridge.results.analysis.tuning.ledger_table import SIGNS, ledger_lines
from weighbridge.results.analysis.tuning.tuning_cards import cards
from weighbridge.results.analysis.tuning.tuning_result import (
    TuningResult,
    change_words,
    could_be_shown,
    interval_words,
)
from weighbridge.results.charts.chart_theme import styles
from weighbridge.results.charts.gallery import Gallery
from weighbridge.results.figures import UNKNOWN, counted, show_ratio, upper
from weighbridge.results.percent import show_percent
from weighbridge.results.report.page import render, specs_of
from weighbridge.results.report.report import TURNS
from weighbridge.results.report.tables import HEAD, NUMBERS, effect_lines
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.suites.tuning import Parameter, show_setting

NOTES: Final = 3
"""Notes of a setting that the page shows; the ledger's file has all."""
HELPS: Final = 5
"""Settings that are better of which a sentence each is shown at the top."""


class Unmoved(Record):
    """A setting without an effect: for each objective what was measured, its interval, and what
    would have been shown.
    """

    name: str
    trials: int
    cells: tuple[tuple[str, str, str], ...]
    verdict: str


class ParameterNotes(Record):
    """A parameter as its file tells it, with what was tried and what came of it."""

    key: str
    option: str
    default: str
    was: str
    tried: tuple[tuple[str, str, str], ...]
    """Each value: sign and verdict, value, change."""
    effect: str
    trap: str
    reference: str


def tuning_page(data: RunData, result: TuningResult, gallery: Gallery) -> str:
    """The page. Its link to the confirmation's own report is relative to the run's `derived`
    folder.
    """
    manifest, plan, run = data.manifest, data.plan, result.run
    baseline = result.ledger.baseline.name
    shown = {
        sheet.title: sheet.facts for sheet in manifest.sheets if sheet.layout in (None, baseline)
    }
    return render(
        "tuning.html.j2",
        specs_of(figure for figure in gallery.figures if figure.section == "figures"),
        manifest=manifest,
        plan=plan.model_copy(
            update={"layouts": tuple(one for one in plan.layouts if one.name == baseline)}
        ),
        plan_yaml=data.store.plan_yaml(),
        result=result,
        run=run,
        tuning=run.tuning,
        ledger=result.ledger,
        baseline=baseline,
        lead=_lead(result),
        cards=cards(result),
        sentences=tuple(_sentences(result)),
        called=[result.called(number) for number in range(len(run.objectives))],
        lines=ledger_lines(result),
        tornados=[figure for figure in gallery.of("figures") if figure.name.startswith("tornado")],
        drift=[figure for figure in gallery.of("figures") if not figure.name.startswith("tornado")],
        unmoved=tuple(_unmoved(one) for one in result.ledger.without_effect),
        refused=tuple(
            (SIGNS[one.verdict], one.verdict, one.name, *_brief(one.notes))
            for one in result.refused
        ),
        parameters=tuple(_told(result, one) for one in run.tuning.parameters),
        confirmed=tuple(_confirmed(result)),
        confirmation_link=_link(data, result),
        invalid=tuple(_invalid(result)),
        limits=tuple(_limits(data, baseline)),
        threshold=run.tuning.threshold,
        ratio=show_ratio,
        facts=shown,
        differing=tuple(_differing(data, baseline)),
        configs=[one for one in manifest.configs if one.layout == baseline],
        attested=sameness(data.attested, [baseline]),
        command=shlex.join(manifest.command),
        gaps=(*data.gaps, *gallery.left_out),
        turns=[event for event in data.events if event.kind in TURNS],
        effect_head=HEAD,
        effect_numbers=NUMBERS,
        effect_lines=effect_lines(data.comparison),
        claim_trials=REPEATS_FOR_A_CLAIM,
        colours={style.layout: style.colour for style in styles(plan.layouts[:1])},
    )


def _lead(result: TuningResult) -> str:
    """What was tried, how, and how often, in a sentence or two."""
    tuning, run = result.run.tuning, result.run
    how = {
        "screen": "each by itself",
        "grid": "in every combination",
        "search": "in combinations that a search proposed",
    }[tuning.strategy]
    release = f" at {run.release}" if run.release else ""
    trials = result.ledger.trials
    return (
        f"{tuning.about.rstrip('.')}: {tuning.layout}{release}, "
        f"{counted(len(tuning.parameters), 'parameter')} {how}; "
        f"{counted(len(result.ledger.entries), 'setting')} in {counted(trials, 'trial')} and "
        f"{counted(result.rounds, 'round')}."
    )


def _sentences(result: TuningResult) -> Iterator[str]:
    """What came of it: settings that help, what was chosen, whether that held, and how the machine
    moved.
    """
    for entry in result.better[:HELPS]:
        yield (
            "; ".join(
                one.text if number == 0 else one.text.removeprefix(f"{entry.name}: ")
                for number, one in enumerate(entry.effects)
            )
            + "."
        )
    if len(result.better) > HELPS:
        yield f"{len(result.better) - HELPS} more help: see the ledger."
    yield result.winner_words
    if result.winner is not None:
        yield result.confirmation_words
    if result.without_effect_words:
        yield result.without_effect_words
    for one in result.ledger.drift:
        yield f"{upper(one.words.rstrip('.'))}."


def _unmoved(entry: LedgerEntry) -> Unmoved:
    return Unmoved(
        name=entry.name,
        trials=entry.trials,
        cells=tuple(_cells(one) for one in entry.effects),
        verdict=entry.verdict,
    )


def _cells(effect: Effect) -> tuple[str, str, str]:
    change = UNKNOWN if effect.ratio is None else show_percent(effect.ratio.value)
    return change, interval_words(effect) or UNKNOWN, could_be_shown(effect) or UNKNOWN


def _told(result: TuningResult, one: Parameter) -> ParameterNotes:
    was = (
        show_setting(result.run.layout_settings[one.key])
        if one.key in result.run.layout_settings
        else UNKNOWN
    )
    default = one.default_at(result.run.release)
    tried = []
    for entry in result.ledger.entries:
        if one.key in entry.arm.settings and len(result.parameters(entry.arm)) == 1:
            changes = [change_words(effect) for effect in entry.effects if effect.ratio is not None]
            value = show_setting(entry.arm.settings[one.key])
            tried.append((f"{SIGNS[entry.verdict]} {entry.verdict}", value, "; ".join(changes)))
    return ParameterNotes(
        key=one.key,
        option=one.option,
        default=UNKNOWN if default is None else show_setting(default),
        was=was,
        tried=tuple(tried),
        effect=one.effect,
        trap=one.trap,
        reference=one.reference,
    )


def _confirmed(result: TuningResult) -> Iterator[tuple[str, ...]]:
    """For each objective: what it is, what the winner's settings came to in their trials, and what
    it did on fresh deployments.
    """
    if result.winner is None or result.confirmation is None:
        return
    chosen = result.winner.arm.settings.items()
    parts = [
        one
        for one in result.ledger.entries
        if one.arm.settings.items() <= chosen and one.verdict == "better"
    ]
    for number, effect in enumerate(result.confirmation.effects):
        before = [
            show_percent(ratio.value)
            for one in parts
            if (ratio := one.effects[number].ratio) is not None
        ]
        if effect is None or effect.ratio is None:
            yield (
                result.called(number),
                ", ".join(before) or UNKNOWN,
                UNKNOWN,
                UNKNOWN,
                "0",
                "not comparable",
            )
            continue
        fresh = (
            show_percent(effect.ratio.value),
            interval_words(effect) or UNKNOWN,
            str(effect.ratio.repeats),
            effect.verdict,
        )
        yield (result.called(number), ", ".join(before) or UNKNOWN, *fresh)


def _link(data: RunData, result: TuningResult) -> str:
    """Where the confirmation's own report is, from the page; empty where there is none."""
    found = result.confirmation
    if found is None or not (found.folder / "derived" / "report.html").exists():
        return ""
    return f"../{found.folder.relative_to(data.store.folder).as_posix()}/derived/report.html"


def _invalid(result: TuningResult) -> Iterator[tuple[str, ...]]:
    """Trials that do not count, and why."""
    trials = {one.number: one for one in result.trials}
    names = {one.arm.name: one.name for one in result.ledger.entries}
    for trial in result.failures:
        yield (
            str(trial.number + 1),
            names.get(trial.arm.name, trial.arm.name),
            "all",
            trial.failed,
        )
    for one in result.ledger.readings:
        trial = trials[one.trial]
        if one.value is None and not trial.failed:
            yield (
                str(one.trial + 1),
                names.get(trial.arm.name, trial.arm.name),
                result.called(one.objective),
                one.why,
            )


def _limits(data: RunData, baseline: str) -> Iterator[tuple[str, str]]:
    """What the baseline was limited by, step by step, where that was recorded."""
    for row in data.rows:
        if row.layout == baseline and row.saturated:
            yield (
                f"{row.workload}: {row.operation} at {counted(row.workers, 'worker')}",
                row.saturated,
            )


def _differing(data: RunData, baseline: str) -> Iterator[tuple[str, str, str, str]]:
    """Facts of settings that were tried which are not the baseline's: layout, fact, before, with
    it.
    """
    names = {
        one.arm.name: one.name for one in (data.ledger.entries if data.ledger is not None else ())
    }
    before = {
        name: value
        for sheet in data.manifest.sheets
        if sheet.layout == baseline
        for name, value in sheet.facts.items()
    }
    for sheet in data.manifest.sheets:
        if sheet.layout is not None and sheet.layout != baseline:
            for name, value in sheet.facts.items():
                if before.get(name) != value:
                    yield (
                        names.get(sheet.layout, sheet.layout),
                        name,
                        before.get(name, UNKNOWN),
                        value,
                    )


def _brief(notes: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """The first notes, and how many more there are."""
    return notes[:NOTES], max(0, len(notes) - NOTES)
