"""WHAT came out: the run folder, its analysis, charts, slides, exports and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.results.derivation import Derived

__all__ = ["derive"]


def derive(run_folder: Path, *, pictures: bool = True) -> Derived:
    """Rebuild `derived/` of a run folder (`results.derivation.derive`)."""
    from weighbridge.results.derivation import derive as rebuild  # noqa: PLC0415

    return rebuild(run_folder, pictures=pictures)
