"""A talk from a run, as PowerPoint with native charts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.results.record import RunStore

__all__ = ["deck"]


def deck(store: RunStore, *, dark: bool = False) -> bytes:
    """The talk of a run as a PPTX file. Raises InvalidMeasurement if it cannot be read."""
    from weighbridge.results.show.theme import DARK, LIGHT  # noqa: PLC0415
    from weighbridge.results.slides.evidence import evidence  # noqa: PLC0415
    from weighbridge.results.slides.powerpoint import powerpoint  # noqa: PLC0415
    from weighbridge.results.slides.talk import talk  # noqa: PLC0415

    return powerpoint(talk(evidence(store), DARK if dark else LIGHT))
