from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weighbridge.results.analysis.cards import FigureCard
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.sameness import verdict
from weighbridge.results.analysis.tuning.setting_lines import (
    RESTARTED,
    SettingLine,
    change_figure,
    setting_lines,
    short_names,
)
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import (
    TuningResult,
    cards,
    could_be_shown,
    gain_words,
    interval_words,
)
from weighbridge.results.charts.chart_theme import Look, diverging
from weighbridge.results.figures import UNKNOWN, counted, show_percent, upper
from weighbridge.results.slides.closing import loop_words, repeat
from weighbridge.results.slides.evidence import Evidence
from weighbridge.results.slides.fitting import ROOM_PT, body_pt, size_for
from weighbridge.results.slides.setup import setup
from weighbridge.results.slides.slide import Deck, Slide, SlideCard, SlideTable, TableCell
from weighbridge.results.slides.tuning import change_chart
from weighbridge.suites.tuning import Parameter, show_setting

_READABLE_PT: Final = 14
"""The least font size of a table; below it, the table continues on another slide."""
Line = tuple[TableCell, ...]


def tried_slides(result: TuningResult, look: Look) -> Iterator[Slide]:
    """The parameters, with the values that were tried."""
    run, tuning = result.run, result.run.tuning
    how = {
        "screen": "each alone",
        "grid": "in every combination",
        "search": "in combinations that a search proposed",
    }
    title = f"{counted(len(tuning.parameters), 'parameter')} were tried, {how[tuning.strategy]}"
    foot = (
        f"Each round: the baseline, up to {tuning.trials.baseline_every} settings in random "
        "order, the baseline again. "
        f"A setting is tried {tuning.trials.least} to {tuning.trials.most} times, until its "
        "interval excludes effects that matter."
    )
    lines = []
    for one in tuning.parameters:
        scope = run.scopes.get(one.key)
        was = (
            show_setting(run.layout_settings[one.key])
            if one.key in run.layout_settings
            else UNKNOWN
        )
        tried = ", ".join(show_setting(level.value) for level in one.levels)
        needs = UNKNOWN if scope is None else RESTARTED[scope]
        lines.append(
            (
                TableCell(text=one.key, bold=True),
                *(TableCell(text=text) for text in (was, tried, needs)),
            )
        )
    notes = tuple(_parameter_words(one) for one in tuning.parameters)
    yield from _pages(
        "tried",
        title,
        foot,
        ("Parameter", "Here", "Tried", "Needs"),
        (0.46, 0.14, 0.24, 0.16),
        lines,
        notes,
        look,
    )


def _parameter_words(one: Parameter) -> str:
    trap = f" Trap: {one.trap}" if one.trap else ""
    source = f" ({one.reference})" if one.reference else ""
    return f"{one.key}: {one.effect}{trap}{source}"


def setting_slides(result: TuningResult, look: Look) -> Iterator[Slide]:
    """All settings with their effects and verdicts."""
    found = setting_lines(result)
    if not found:
        return
    objectives = range(len(result.run.objectives))
    better, worse = (sum(one.verdict == kind for one in found) for kind in ("better", "worse"))
    verb = "is" if better in (0, 1) else "are"
    title = (
        f"{better or 'None'} of {counted(len(found), 'setting')} {verb} better, "
        f"{worse or 'none'} worse"
    )
    head = (
        "Setting",
        *(upper(result.called(number)) for number in objectives),
        "Verdict",
        "Gateway CPU",
        "Trials",
    )
    widths = (0.36, *(0.32 / max(2, len(objectives)) for _ in objectives), 0.2, 0.1, 0.08)
    short = short_names([one.name for one in found])
    lines = [_setting_line(one, short[one.name], look) for one in found]
    foot = (
        "Compared with the baseline beside each trial. ~: not significant. In brackets: no claim."
    )
    notes = tuple(f"{effect.text}." for entry in result.table.entries for effect in entry.effects)
    yield from _pages("ledger", title, foot, head, widths, lines, notes, look)


def _setting_line(one: SettingLine, name: str, look: Look) -> Line:
    ink = _ink(one.verdict, look)
    return (
        TableCell(text=name, bold=not one.weak),
        *(
            TableCell(
                text=change.change,
                align="right",
                ink=_ink(change.tone, look),
                bold=bool(change.tone),
            )
            for change in one.changes
        ),
        TableCell(text=f"{one.sign} {one.verdict}", ink=ink, bold=not one.weak),
        TableCell(text=one.gateway_cpu, align="right"),
        TableCell(text=str(one.trials), align="right"),
    )


def _ink(verdict: str, look: Look) -> str:
    colours = diverging(look)
    if verdict == "better":
        return colours[-1]
    return colours[0] if verdict in ("worse", "trade-off", "not allowed", "failed") else look.muted


def without_effect_slides(result: TuningResult, look: Look) -> Iterator[Slide]:
    """Settings without a significant effect, with the smallest effect that would be found."""
    none = result.table.without_effect
    if not none:
        return
    title = result.without_effect_words.rstrip(".")
    objectives = [result.called(number) for number in range(len(result.run.objectives))]
    head = ("Setting", *(part for name in objectives for part in (upper(name), "would be found")))
    share = 0.58 / len(objectives)
    widths = (0.42, *(part for _ in objectives for part in (share * 0.62, share * 0.38)))
    short = short_names([one.name for one in none])
    lines = [_without_line(one, short[one.name], look) for one in none]
    foot = (
        "Would be found: the smallest effect that this many trials find 8 times in 10. A smaller "
        "one may exist."
    )
    notes = tuple(f"{effect.text}." for entry in none for effect in entry.effects)
    yield from _pages("no-effect", title, foot, head, widths, lines, notes, look)


def _without_line(entry: SettingEntry, name: str, look: Look) -> Line:
    cells = [TableCell(text=name)]
    for effect in entry.effects:
        cells.append(
            TableCell(text=interval_words(effect) or UNKNOWN, align="right", ink=look.muted)
        )
        cells.append(TableCell(text=could_be_shown(effect) or UNKNOWN, align="right"))
    return tuple(cells)


def chosen_slides(result: TuningResult, look: Look) -> Iterator[Slide]:
    """The chosen settings, each with its own effect; notes have the files to paste."""
    winner = result.winner
    if winner is None:
        return
    run = result.run
    names = result.named(winner.arm)
    title = names[0] if len(names) == 1 else f"The winner has {counted(len(names), 'setting')}"
    head = (
        "Setting",
        "Was",
        "Chosen",
        *(upper(result.called(number)) for number in range(len(run.objectives))),
    )
    widths = (0.42, 0.13, 0.13, *(0.32 / len(run.objectives) for _ in run.objectives))
    lines = []
    for key, value in winner.arm.settings.items():
        alone = next(
            (
                one
                for one in result.table.entries
                if {key: value}.items() <= one.variant.settings.items()
            ),
            None,
        )
        effects = (
            () if alone is None or len(result.parameters(alone.variant)) != 1 else alone.effects
        )
        was = show_setting(run.layout_settings[key]) if key in run.layout_settings else UNKNOWN
        changes = [change_figure(one) for one in effects] or [UNKNOWN] * len(run.objectives)
        lines.append(
            (
                TableCell(text=key, bold=True),
                TableCell(text=was),
                TableCell(text=show_setting(value), bold=True, ink=_ink("better", look)),
                *(TableCell(text=text, align="right") for text in changes),
            )
        )
    files = ", ".join(fragment.name for fragment in result.to_paste)
    foot = (
        "Effects: each setting alone, in its own trials."
        f"{f' Ready to paste: {files}, in the run’s derived/winner.' if files else ''}"
    )
    notes = (result.winner_words, *(f"{one.name}:\n{one.text}" for one in result.to_paste))
    yield from _pages("chosen", title, foot, head, widths, lines, notes, look)


def confirmation_slides(result: TuningResult, look: Look) -> Iterator[Slide]:
    """The winner's effects on fresh deployments, or that it is not confirmed."""
    if result.winner is None:
        return
    found = result.confirmation
    if found is None:
        yield Slide(
            key="confirmation",
            title="The winner is not confirmed yet",
            lines=(result.confirmation_words,),
            notes=(result.confirmation_words,),
        )
        return
    better = f"On fresh deployments the winner gives {gain_words(found.known)}"
    title = better if found.confirmed else "The winner was not confirmed on fresh deployments"
    lines = []
    for number, effect in enumerate(found.effects):
        known = effect is not None and effect.ratio is not None
        cells = (
            show_percent(effect.ratio.value)
            if effect is not None and effect.ratio is not None
            else UNKNOWN,
            (interval_words(effect) if effect is not None else "") or UNKNOWN,
            effect.verdict if effect is not None and known else "not comparable",
        )
        ink = _ink(cells[2], look)
        lines.append(
            (
                TableCell(text=upper(result.called(number)), bold=True),
                TableCell(text=cells[0], align="right", bold=True, ink=ink),
                TableCell(text=cells[1], align="right"),
                TableCell(text=cells[2], ink=ink),
            )
        )
    foot = (
        f"{counted(found.repeats, 'visit')} of each, in random order, on other data than those "
        "that it was chosen by."
    )
    if found.survival is not None:
        foot += f" Power of the winner: {found.survival.words}."
    widths = (0.46, 0.14, 0.22, 0.18)
    yield from _pages(
        "confirmation",
        title,
        foot,
        ("Objective", "Change", "95 % interval", "Verdict"),
        widths,
        lines,
        (result.confirmation_words,),
        look,
    )


def _pages(
    key: str,
    title: str,
    foot: str,
    head: Sequence[str],
    widths: tuple[float, ...],
    lines: Sequence[Line],
    notes: tuple[str, ...],
    look: Look,
) -> Iterator[Slide]:
    """A table on as few slides as keep it readable; the first one has all notes."""
    right = [next((line[place].align for line in lines), "left") for place in range(len(head))]
    first = tuple(
        TableCell(text=text, bold=True, fill=look.grid, align=align)
        for text, align in zip(head, right, strict=True)
    )

    def grid(part: Sequence[Line]) -> SlideTable:
        return SlideTable(widths=widths, lines=(first, *part), largest_pt=20)

    room = body_pt(f"{title} (1 of 9)", foot=foot)
    parts = _parts(lines, lambda part: (size_for(grid(part), ROOM_PT, room) or 0) >= _READABLE_PT)
    for number, part in enumerate(parts, start=1):
        yield Slide(
            key=f"{key}-{number}" if len(parts) > 1 else key,
            title=f"{title} ({number} of {len(parts)})" if len(parts) > 1 else title,
            grid=grid(part),
            foot=foot,
            notes=notes if number == 1 else (f"Continued: see the notes of slide {title}.",),
        )


def _parts(lines: Sequence[Line], fits: Callable[[Sequence[Line]], bool]) -> list[list[Line]]:
    """Lines in as few even parts as fit; a single line is a part whether it fits or not."""
    for count in range(1, len(lines) + 1):
        size = -(-len(lines) // count)
        parts = [list(lines[at : at + size]) for at in range(0, len(lines), size)]
        if all(len(part) == 1 or fits(part) for part in parts):
            return parts
    return [list(lines)]


BARS: Final = 12
_FAULTS: Final = 5
"""The most faults on the slide of limits; the notes have all."""


def tuning_talk(evidence: Evidence, result: TuningResult, look: Look) -> Deck:
    """The deck of a tuning."""
    manifest, tuning = evidence.manifest, result.run.tuning
    return Deck(
        title=result.headline,
        subject=f"{tuning.about}: {tuning.layout}",
        footer=f"Weighbridge · tuning {tuning.name} · {manifest.created_at[:10]}",
        dated=manifest.created_at,
        look=look,
        colours=(diverging(look)[5], diverging(look)[1]),
        slides=(
            _answer(evidence, result),
            *setup(_of_baseline(evidence, result), look),
            *tried_slides(result, look),
            *setting_slides(result, look),
            *_tornados(result),
            *without_effect_slides(result, look),
            *chosen_slides(result, look),
            *confirmation_slides(result, look),
            _limits(evidence, result),
            repeat(evidence),
        ),
    )


def _of_baseline(evidence: Evidence, result: TuningResult) -> Evidence:
    """The evidence of the baseline only, with as many repeats as it has trials."""
    name = result.table.baseline.name
    rows = tuple(row for row in evidence.rows if row.layout == name)
    suite = evidence.plan.suite.model_copy(
        update={"repeats": max((row.repeats for row in rows), default=1) or 1}
    )
    layouts = tuple(one for one in evidence.plan.layouts if one.name == name)
    return evidence.model_copy(
        update={
            "plan": evidence.plan.model_copy(update={"layouts": layouts, "suite": suite}),
            "rows": rows,
        }
    )


def _answer(evidence: Evidence, result: TuningResult) -> Slide:
    run, entries = result.run, result.table.entries
    objectives = " and ".join(result.called(number) for number in range(len(run.objectives)))
    lines = [
        (
            f"{counted(result.table.trials, 'trial')} in {counted(result.rounds, 'round')}, each "
            "compared with the baseline beside it."
        )
    ]
    if result.winner is not None:
        lines.append(result.confirmation_words)
    if evidence.manifest.state != "done":
        lines.insert(0, f"This tuning is not complete: {evidence.manifest.state}.")
    return Slide(
        key="answer",
        title=result.headline,
        lead=f"Which of {counted(len(entries), 'setting')} of {run.tuning.layout} help "
        f"{objectives}?",
        cards=tuple(_card(one) for one in cards(result)),
        lines=tuple(lines) if len(" ".join(lines)) < 260 else tuple(lines[:1]),
        notes=(
            *(f"{effect.text}." for entry in result.better for effect in entry.effects),
            result.winner_words,
            result.confirmation_words,
            result.without_effect_words or "No setting has been tried yet.",
        ),
        opening=True,
    )


def _card(one: FigureCard) -> SlideCard:
    """The card with the setting's short name, since a long one does not fit."""
    return SlideCard(
        figure=one.figure,
        about=one.about,
        text=short_names([one.text])[one.text],
        detail=one.detail,
        colour=one.colour,
    )


def _tornados(result: TuningResult) -> Iterator[Slide]:
    for number, objective in enumerate(result.run.objectives):
        mine = [(one.name, one.effects[number]) for one in result.table.entries]
        known = sorted(
            (one for one in mine if one[1].ratio is not None),
            key=lambda one: one[1].ratio.either_way if one[1].ratio is not None else 0.0,
            reverse=True,
        )
        if not known:
            continue
        shown = known[:BARS]
        short = short_names([name for name, _ in known])
        first, effect = shown[0]
        title = (
            f"{short[first]} changes the {result.called(number)} most: {change_figure(effect)}"
            if effect.verdict in ("better", "worse")
            else f"No setting changes the {result.called(number)} significantly"
        )
        left = f" The notes have {len(known) - len(shown)} more." if len(known) > len(shown) else ""
        yield Slide(
            key=f"tornado-{number + 1}",
            title=title,
            lead=f"{upper(result.called(number))} compared with the baseline beside it; "
            f"{_counted_trials(known)}",
            chart=change_chart(
                [(short[name], change_figure(one), one) for name, one in shown], objective.of
            ),
            foot="Blue: better, orange: worse, grey, ~: no significant effect. Whiskers: "
            f"95 % interval.{left}",
            notes=tuple(f"{one.text}." for _, one in mine),
        )


def _counted_trials(known: Sequence[tuple[str, Effect]]) -> str:
    counts = [one.ratio.repeats for _, one in known if one.ratio is not None]
    low, high = min(counts), max(counts)
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def _limits(evidence: Evidence, result: TuningResult) -> Slide:
    """What does not count, how the machine drifted, and what a screening cannot show."""
    bad = sum(one.value is None for one in result.table.readings)
    readings = len(result.table.readings)
    title = (
        f"{bad} of {counted(readings, 'reading')} {'does' if bad == 1 else 'do'} not count"
        if bad
        else f"All {counted(readings, 'reading')} count"
    )
    if evidence.manifest.state != "done":
        state = evidence.manifest.state
        title = f"The tuning is not complete ({state}): {title[:1].lower()}{title[1:]}"
    refused = [
        f"{one.name}: {one.verdict}{f' ({one.notes[0]})' if one.notes else ''}."
        for one in result.refused
    ]
    drift = [f"{upper(one.words.rstrip('.'))}." for one in result.table.drift]
    alone = ("Each setting was tried alone: combined effects are known only where confirmed.",) * (
        result.run.tuning.strategy == "screen"
    )
    hosts = (
        f"{verdict(evidence.attested)}." if evidence.attested else "The hosts were not attested."
    )
    why = dict.fromkeys(one.why for one in result.table.readings if one.value is None and one.why)
    return Slide(
        key="limits",
        title=title,
        lines=(
            *(f"{upper(gap)}." for gap in evidence.gaps),
            *refused[:_FAULTS],
            *drift[:2],
            *alone,
            hosts,
            *loop_words(evidence),
        ),
        notes=(*refused, *drift, *alone, hosts, *why),
    )
