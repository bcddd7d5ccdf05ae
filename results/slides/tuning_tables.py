from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

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
    could_be_shown,
    gain_words,
    interval_words,
)
from weighbridge.results.figures import UNKNOWN, counted, show_percent, upper
from weighbridge.results.show.theme import Look, diverging
from weighbridge.results.slides.fitting import ROOM_PT, body_pt, size_for
from weighbridge.results.slides.slide import Slide, SlideTable, TableCell
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
