"""A talk from a run, as PowerPoint with native charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record import RunStore
from weighbridge.results.show.exports import ExportFile, Format, Produced
from weighbridge.results.show.table import Table

__all__ = ["PPTX", "deck"]


def deck(store: RunStore, *, dark: bool = False) -> bytes:
    """The talk of a run as a PPTX file. Raises InvalidMeasurement if it cannot be read."""
    from weighbridge.results.show.theme import DARK, LIGHT  # noqa: PLC0415
    from weighbridge.results.slides.evidence import evidence  # noqa: PLC0415
    from weighbridge.results.slides.powerpoint import powerpoint  # noqa: PLC0415
    from weighbridge.results.slides.talk import talk  # noqa: PLC0415

    return powerpoint(talk(evidence(store), DARK if dark else LIGHT))


def _export(data: RunData, _: Sequence[Table]) -> Produced:
    from weighbridge.results.slides.typeface import shown_here  # noqa: PLC0415

    return Produced(
        (ExportFile("slides.pptx", deck(data.store)),), (f"the slides are {shown_here()}",)
    )


PPTX: Final = Format("the slides of a talk", _export)
"""The export format."""
