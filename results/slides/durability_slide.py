from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.durability import LISTINGS, LayoutDurability
from weighbridge.results.analysis.power_mark import loss_words
from weighbridge.results.figures import counted, show_figure
from weighbridge.results.show.theme import Look
from weighbridge.results.slides.slide import Slide, SlideTable, TableCell, head_cells

MOST: Final = 8
"""The most layouts that are readable; the notes have all."""
_HEAD: Final = (
    "",
    "cuts that lost",
    "acknowledged",
    "listed wrongly",
    "serves after",
    "control lost",
)


def durability_slides(found: Sequence[LayoutDurability], look: Look) -> tuple[Slide, ...]:
    """The slide; none where no power was cut."""
    tried = [one for one in found if one.store.made]
    if not tried:
        return ()
    lines = [tuple(head_cells(_HEAD, look)), *(_line(one, look) for one in tried[:MOST])]
    more = f" {counted(len(tried) - MOST, 'more layout')}: see the notes." * (len(tried) > MOST)
    return (
        Slide(
            key="power-cuts",
            title=_title(tried),
            lead="All hosts of a store lose power at one instant, under load",
            grid=SlideTable(widths=(0.22, 0.17, 0.16, 0.15, 0.15, 0.15), lines=tuple(lines)),
            foot=(
                "Acknowledged: objects, each counted once at every cut. The control has syncs "
                f"that keep nothing, and must lose writes.{more}"
            ),
            notes=tuple(one.sentence for one in tried),
        ),
    )


def _title(found: Sequence[LayoutDurability]) -> str:
    """Who lost writes; else of whom it is not known; else that none did."""
    marks = [one.mark for one in found]
    if lost := loss_words(marks):
        return "; ".join(lost)
    unknown = [one.layout for one in found if one.judgement == "cannot-tell"]
    if unknown:
        return f"What a power cut destroys of {', '.join(unknown)} is not known"
    return "No power cut lost an acknowledged write"


def _line(one: LayoutDurability, look: Look) -> tuple[TableCell, ...]:
    store, control = one.store, one.control
    lost = one.judgement == "lost"
    listings = sum(store.found[finding].objects for finding in LISTINGS)
    middle = "did not" if store.serves_s is None else f"{show_figure(store.serves_s[0], 2)} s"
    told = "cannot tell" if one.judgement == "cannot-tell" else f"{store.losing} of {store.made}"
    cells = (
        told,
        f"{store.acknowledged:,}",
        f"{listings:,}",
        middle,
        f"{control.losing} of {control.made}" if control.made else "not run",
    )
    return (
        TableCell(text=one.layout, bold=True),
        TableCell(text=cells[0], align="center", bold=lost, ink=look.bad if lost else None),
        *(TableCell(text=cell, align="center") for cell in cells[1:]),
    )
