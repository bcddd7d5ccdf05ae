"""Where the time goes: the efficiency of layers where they were measured, and the hosts'
bottlenecks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.structure import Level
from weighbridge.results.analysis.layers.staircase import (
    NAMES,
    PLAIN,
    LayerStep,
    Staircase,
    doubts,
    gaps,
    percent,
)
from weighbridge.results.analysis.steps.bottleneck import limit_brief, limit_words
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import saturated
from weighbridge.results.figures import counted, show_figure, upper
from weighbridge.results.show.charts.resources import resource_finding
from weighbridge.results.show.theme import Look
from weighbridge.results.slides.evidence import Evidence
from weighbridge.results.slides.fitting import ROOM_PT, body_pt, size_for
from weighbridge.results.slides.setup import shade
from weighbridge.results.slides.slide import Slide, SlideTable, TableCell, head_cells

ABREAST: Final = 6
"""The most layouts side by side; more are on another slide."""
_LEAD: Final = "The most used resource at the largest worker count, in % of its limit"
_FOOT: Final = (
    "Shaded: it may have been the bottleneck (80 % or more, or throttled in half of its CPU "
    "quota periods). +1: so may another."
)
LONGEST: Final = 110
"""The longest title, in characters, that names each layout."""
_ORDER: Final[tuple[Level, ...]] = (
    "front",
    "gateway",
    "object-server",
    "rados",
    "network",
    "osd",
    "disk",
)
"""Layers from the top down."""


def where_time_goes(evidence: Evidence, look: Look) -> tuple[Slide, ...]:
    """The slides of layers, then those of resources, of runs that recorded them."""
    return (*_layers(evidence, look), *_resources(evidence, look))


def _chunks(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(names[at : at + ABREAST]) for at in range(0, len(names), ABREAST)]


# ---- layers


def _layers(evidence: Evidence, look: Look) -> Iterator[Slide]:
    known = [stair for stair in evidence.stairs if stair.known]
    by_kind = {
        about: list(stairs) for about, stairs in groupby(known, key=lambda stair: stair.about)
    }
    for number, (about, stairs) in enumerate(by_kind.items(), start=1):
        for part, mine in enumerate(
            [stairs[at : at + ABREAST] for at in range(0, len(stairs), ABREAST)], start=1
        ):
            held = any(step.held for stair in mine for step in stair.steps)
            yield Slide(
                key=f"layers-{number}-{part}",
                title=f"{'Provisional: ' * _doubted(evidence, about)}{_layers_title(about, mine)}",
                lead=f"What each layer serves of {about}, in op/s, and of the layer below",
                grid=_stairs_grid(mine, look),
                foot="–: not "
                f"known.{' ≥: its load client ran out of CPU, so it can do more.' * held} "
                "Disks, OSDs and network: what clients could get after replication.",
                notes=(*(f"{stair.words}." for stair in mine), *doubts(mine), *gaps(mine)),
            )


def _doubted(evidence: Evidence, about: str) -> bool:
    """Whether the figures of these requests are in doubt, by which the layers are divided."""
    touched = {cell for one in evidence.reasons for cell in one.cells}
    return any(evidence.called[kind] == about for _, kind, _ in touched)


def _layers_title(about: str, stairs: Sequence[Staircase]) -> str:
    steps = [
        (step.of_below, stair, step)
        for stair in stairs
        for step in stair.known
        if step.of_below is not None and step.believable
    ]
    if not steps:
        return f"What the layers serve of {about} cannot be compared: too few of them are known"
    share, stair, step = min(steps, key=lambda one: one[0])
    name = (
        step.name
        if step.level == "front"
        else f"the {PLAIN[step.level]}"
        if step.level != "rados"
        else "RADOS"
    )
    below = PLAIN[step.below] if step.below is not None else "the layer below"
    return (
        f"{upper(about)} lose most at {name} of {stair.layout}: {percent(share)} of what its "
        f"{below} can do"
    )


def _stairs_grid(stairs: Sequence[Staircase], look: Look) -> SlideTable:
    levels = {step.level for stair in stairs for step in stair.steps}
    lines = [tuple(head_cells(("", *(stair.layout for stair in stairs)), look))]
    for level in (one for one in _ORDER if one in levels):
        found = [
            next((step for step in stair.steps if step.level == level), None) for stair in stairs
        ]
        lines.append(
            (TableCell(text=NAMES[level], bold=True), *(_step_cell(step, look) for step in found))
        )
    return SlideTable(
        widths=(0.18, *(0.82 / len(stairs),) * len(stairs)), lines=tuple(lines), largest_pt=20
    )


def _step_cell(step: LayerStep | None, look: Look) -> TableCell:
    if step is None or step.throughput_ops_s is None:
        return TableCell(text="–" if step is not None else "", ink=look.muted, align="center")
    share = (
        f"\n{percent(step.of_below)} of {PLAIN[step.below]}"
        if step.of_below is not None and step.below is not None
        else ""
    )
    doubt = (
        f" ({step.doubt.verdict})"
        if step.doubt is not None and step.doubt.verdict != "at least"
        else ""
    )
    text = f"{'≥ ' if step.held else ''}{show_figure(step.throughput_ops_s)}{share}{doubt}"
    return TableCell(text=text, ink=None if step.believable else look.bad, align="center")


# ---- resources


def _resources(evidence: Evidence, look: Look) -> Iterator[Slide]:
    rows = [row for row in evidence.rows if row.resources]
    if not rows:
        return
    finding = resource_finding(evidence.rows)
    title = finding if len(finding) <= LONGEST else _most_often(rows)
    parts = _chunks(list(dict.fromkeys(row.layout for row in rows)))
    for number, layouts in enumerate(parts, start=1):
        tops = _at_most_workers(evidence, layouts)
        for page, mine in enumerate(
            _fitting(tops, layouts, look, body_pt(title, _LEAD, _FOOT)), start=1
        ):
            yield Slide(
                key=f"limits-{number}-{page}",
                title=title,
                lead=_LEAD,
                grid=_resource_grid(mine, layouts, look),
                foot=_FOOT,
                notes=(
                    finding + ".",
                    *(_limit_words(row) for row in rows if row.layout in layouts),
                ),
            )


def _most_often(rows: Sequence[Row]) -> str:
    steps = {(row.layout, row.workload, row.api, row.driver, row.workers): row for row in rows}
    full = [found[0] for row in steps.values() if (found := saturated(row.resources))]
    if not full:
        return f"Nothing ran out on any host in {counted(len(steps), 'step')}"
    names = [f"{'the driver’s' if one.tier == 'client' else one.tier} {one.what}" for one in full]
    most = max(dict.fromkeys(names), key=names.count)
    return (
        f"{upper(most)} was the bottleneck most often: in {names.count(most)} of "
        f"{counted(len(steps), 'step')}"
    )


def _at_most_workers(evidence: Evidence, layouts: Sequence[str]) -> dict[str, dict[str, Row]]:
    """By requests and worker count, each layout's row at the largest worker count."""
    found: dict[str, dict[str, Row]] = {}
    for kind, rows in evidence.kinds.items():
        most = max(row.workers for row in rows)
        by_layout = {
            row.layout: row for row in rows if row.workers == most and row.layout in layouts
        }
        found[f"{upper(evidence.called[kind])}, {counted(most, 'worker')}"] = by_layout
    return found


def _fitting(
    tops: dict[str, dict[str, Row]], layouts: Sequence[str], look: Look, room_pt: float
) -> list[dict[str, dict[str, Row]]]:
    pages: list[dict[str, dict[str, Row]]] = [{}]
    for about, rows in tops.items():
        if (
            pages[-1]
            and size_for(
                _resource_grid({**pages[-1], about: rows}, layouts, look), ROOM_PT, room_pt
            )
            is None
        ):
            pages.append({})
        pages[-1][about] = rows
    return pages


def _resource_grid(
    tops: dict[str, dict[str, Row]], layouts: Sequence[str], look: Look
) -> SlideTable:
    lines = [tuple(head_cells(("", *layouts), look))]
    for about, rows in tops.items():
        lines.append(
            (
                TableCell(text=about, bold=True),
                *(_limit_cell(rows.get(name), look) for name in layouts),
            )
        )
    return SlideTable(
        widths=(0.22, *(0.78 / len(layouts),) * len(layouts)), lines=tuple(lines), largest_pt=20
    )


def _limit_cell(row: Row | None, look: Look) -> TableCell:
    brief = limit_brief(row.resources) if row is not None else None
    if row is None or brief is None:
        return TableCell(text="not recorded", ink=look.muted, align="center")
    full = bool(saturated(row.resources))
    return TableCell(text=brief, fill=shade(look) if full else None, bold=full, align="center")


def _limit_words(row: Row) -> str:
    words = limit_words(row.resources) or "not recorded"
    return (
        f"{row.layout}, {row.workload} {row.operation}, {counted(row.workers, 'worker')}: "
        f"{words}; n = {row.repeats}."
    )
