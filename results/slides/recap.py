"""The map of changes from the first layout: throughput and p90, a line per kind of requests and
worker count.

Blue is better and orange worse for either metric. `~`: not significant, or too small to matter. In
brackets: provisional.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.power_mark import power_brief, with_losses
from weighbridge.results.doubt import graves
from weighbridge.results.figures import counted, listed, show_figure, show_ratio, upper
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.show.theme import Look, colour_at, diverging, ink_on, neutral
from weighbridge.results.slides.evidence import Evidence, rests_on
from weighbridge.results.slides.fitting import ROOM_PT, body_pt, size_for
from weighbridge.results.slides.slide import Slide, SlideTable, TableCell

ABREAST: Final = 5
"""The most layouts beside each other, with two figures each; more are on another slide."""
_DEEPEST: Final = 1.5
"""Log2 of the ratio at which colours end: nearly three times, or a third."""
LARGE_PT: Final = 18
"""Font size that can be read from the last row of most rooms."""

Line = tuple[Kind, int | None]
"""A line of the map: a kind of requests at a worker count, or (None) over all of them."""


def recap(evidence: Evidence, comparison: Comparison, look: Look) -> tuple[Slide, ...]:
    """The slides of the map; none where nothing was to be compared."""
    cells = {
        (kind_of(one), one.workers, one.subject, one.metric): one for one in comparison.effects
    }
    lines = list(dict.fromkeys((kind, workers) for kind, workers, _, _ in cells))
    if not lines:
        return ()
    parts = [
        comparison.subjects[at : at + ABREAST] for at in range(0, len(comparison.subjects), ABREAST)
    ]
    title, lead, foot = (
        with_losses(_title(comparison), [mark for one in comparison.effects for mark in one.power]),
        f"Change from {comparison.baseline}; {_based_on(comparison)}",
        _foot(comparison),
    )
    drawn = _Map(evidence, cells, look, body_pt(f"{title} (1 of 9)", lead, foot))
    if (drawn.size(parts[0], lines) or 0) < LARGE_PT:
        # Without room for readable type, figures over all worker counts are only on the first slide
        # and in the notes.
        lines = [line for line in lines if line[1] is not None]
    pages = [(subjects, page) for subjects in parts for page in drawn.pages(subjects, lines)]
    return tuple(
        Slide(
            key=f"recap-{number}",
            title=f"{title} ({number} of {len(pages)})" if len(pages) > 1 else title,
            lead=lead,
            grid=drawn.grid(subjects, page),
            foot=foot,
            notes=(
                *_noise(comparison),
                *_effect_notes(comparison, subjects, {kind for kind, _ in page}),
            ),
        )
        for number, (subjects, page) in enumerate(pages, start=1)
    )


def _effect_notes(
    comparison: Comparison, subjects: Sequence[str], kinds: set[Kind]
) -> Iterator[str]:
    for one in comparison.effects:
        if one.subject in subjects and kind_of(one) in kinds:
            unit = METRICS[one.metric].unit
            known = one.baseline_value is not None and one.subject_value is not None
            figures = (
                f" [{show_figure(one.baseline_value)} vs {show_figure(one.subject_value)} {unit}]"
            )
            yield f"{one.text}{figures if known else ''}"


def _title(comparison: Comparison) -> str:
    cells = [
        one for one in comparison.effects if one.workers is not None and one.metric == "throughput"
    ] or list(comparison.effects)
    known = [one for one in cells if one.verdict != "not comparable"]
    if not known:
        why = f": {_why(cells)}" if any(one.doubts for one in cells) else ""
        return f"Nothing could be compared with {comparison.baseline}{why}"
    if all(one.verdict == "provisional" for one in known):
        return (
            f"Provisional compared with {comparison.baseline} in {counted(len(known), 'case')}: "
            f"{_why(known)}"
        )
    counts = {}
    for subject in comparison.subjects:
        mine = [one.verdict for one in known if one.subject == subject]
        counts[subject] = (mine.count("better"), mine.count("worse"), len(mine))
    subject, (better, worse, count) = max(counts.items(), key=lambda one: (one[1][0], one[1][1]))
    if not better and not worse:
        return (
            f"No significant difference from {comparison.baseline} in {counted(len(known), 'case')}"
        )
    if not better:
        others = (
            f"No layout is significantly faster than {comparison.baseline}; "
            if len(counts) > 1
            else ""
        )
        return (
            f"{others}{subject} is slower {f'than {comparison.baseline} ' * (not others)}in "
            f"{worse} of {counted(count, 'case')}"
        )
    return (
        f"{subject} is faster than {comparison.baseline} in {better} of "
        f"{counted(count, 'case')} and slower in {worse or 'none'}"
    )


def _why(effects: Sequence[Effect]) -> str:
    """The doubts in a few words: only the grave ones where there are any."""
    doubts = [doubt for one in effects for doubt in one.doubts]
    return listed(
        list(dict.fromkeys(doubt.what for doubt in graves(doubts) or doubts))
        or ["nothing is claimed"]
    )


def _based_on(comparison: Comparison) -> str:
    known = [one.ratio.repeats for one in comparison.effects if one.ratio is not None]
    return rests_on(min(known), max(known)) if known else "not comparable"


@dataclass(frozen=True)
class _Map:
    """The layout of the map: which lines fit on a slide, and what they look like."""

    evidence: Evidence
    cells: dict[tuple[Kind, int | None, str, MetricKey], Effect]
    look: Look
    room_pt: float

    def size(self, subjects: Sequence[str], page: Sequence[Line]) -> int | None:
        """The font size at which these lines fit; None where they do not."""
        return size_for(self.grid(subjects, page), ROOM_PT, self.room_pt)

    def pages(self, subjects: Sequence[str], lines: Sequence[Line]) -> list[list[Line]]:
        """Lines on as few pages as possible; a kind of requests is kept together where possible."""
        pages: list[list[Line]] = []
        for _, group in groupby(lines, key=lambda line: line[0]):
            mine = list(group)
            if pages and self.size(subjects, [*pages[-1], *mine]) is not None:
                pages[-1] += mine
                continue
            pages.append([])
            for line in mine:
                if pages[-1] and self.size(subjects, [*pages[-1], line]) is None:
                    pages.append([])
                pages[-1].append(line)
        return pages

    def grid(self, subjects: Sequence[str], page: Sequence[Line]) -> SlideTable:
        """The table of these layouts and lines."""
        look = self.look
        blank = TableCell(text="", fill=look.grid)
        names = [
            cell
            for name in subjects
            for cell in (_head(name, look, across=2), blank.model_copy(update={"covered": True}))
        ]
        heads = [
            one.unit if one.group == "rate" else one.name
            for one in map(METRICS.__getitem__, ALWAYS)
        ]
        units = [_head(unit, look) for _ in subjects for unit in heads]
        lines = [
            (
                blank.model_copy(update={"down": 2}),
                _head("workers", look).model_copy(update={"down": 2}),
                *names,
            ),
            (
                blank.model_copy(update={"covered": True}),
                blank.model_copy(update={"covered": True}),
                *units,
            ),
        ]
        for kind, group in groupby(page, key=lambda line: line[0]):
            mine = list(group)
            called = upper(self.evidence.called.get(kind, kind[0]))
            for number, (_, workers) in enumerate(mine):
                about = TableCell(
                    text=called, bold=True, down=1 if number else len(mine), covered=number > 0
                )
                at = TableCell(
                    text="all" if workers is None else str(workers),
                    align="center",
                    bold=workers is None,
                )
                values = [
                    _cell(self.cells.get((kind, workers, name, metric)), look)
                    for name in subjects
                    for metric in ALWAYS
                ]
                lines.append((about, at, *values))
        share = 0.71 / (2 * len(subjects))
        return SlideTable(
            widths=(0.18, 0.11, *(share,) * (2 * len(subjects))),
            lines=tuple(lines),
            heads=2,
            largest_pt=22,
        )


def _head(text: str, look: Look, *, across: int = 1) -> TableCell:
    return TableCell(text=text, fill=look.grid, bold=True, align="center", across=across)


def _cell(one: Effect | None, look: Look) -> TableCell:
    """A change, coloured where it is significant, in brackets where it is provisional."""
    text = change_text(one)
    if (
        one is None
        or one.ratio is None
        or one.verdict in ("not significant", "too small to matter", "not comparable")
    ):
        return TableCell(
            text=text,
            fill=neutral(look) if one is not None else None,
            ink=look.muted,
            align="center",
        )
    if one.verdict == "provisional":
        return TableCell(text=text, fill=neutral(look), ink=look.ink, align="center")
    doubled = math.log2(one.ratio.value) * (1 if one.metric == "throughput" else -1) / _DEEPEST
    doubled = min(1.0, max(-1.0, doubled))
    fill = colour_at(doubled, diverging(look))
    return TableCell(text=text, fill=fill, ink=ink_on(fill), bold=True, align="center")


def change_text(one: Effect | None) -> str:
    """A change in per cent, from threefold on a multiple; in brackets if provisional."""
    if one is None:
        return ""
    if one.ratio is None or one.verdict == "not comparable":
        return "×"
    if one.verdict in ("not significant", "too small to matter"):
        return "~"
    value = one.ratio.value
    percent = round((value - 1) * 100)
    words = (
        f"{value:.1f}×"
        if value >= 3
        else f"{percent:+} %".replace("-", "\N{MINUS SIGN}")
        if percent
        else "0 %"
    )
    return f"({words})" if one.verdict == "provisional" else words


def _foot(comparison: Comparison) -> str:
    signs = {change_text(one)[:1] for one in comparison.effects}
    parts = ["blue: better, orange: worse"]
    parts += ["~: not significant, or too small to matter"] * ("~" in signs)
    parts += ["in brackets: provisional"] * ("(" in signs)
    parts += ["×: not comparable"] * ("×" in signs)
    noise = [f"{one.metric} {show_ratio(one.ratio)}" for one in comparison.noise]
    parts += [f"noise floor: {listed(noise)}"] if noise else []
    marks = power_brief(mark for one in comparison.effects for mark in one.power)
    parts += [marks] if marks else []
    return f"{upper('; '.join(parts))}."


def _noise(comparison: Comparison) -> tuple[str, ...]:
    return tuple(one.words for one in comparison.noise)
