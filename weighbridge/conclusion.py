"""Charts as files, the last thing that is made of what was measured: it is all there, and told,
without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from weighbridge.common.errors import WeighbridgeError
from weighbridge.gateways.gateway import Say
from weighbridge.results.charts.panels import Figure
from weighbridge.results.charts.pictures import write_charts
from weighbridge.results.derivation import Derived
from weighbridge.screen.outcome import print_outcome


def conclude(derived: Derived, screen: Console, *, pictures: bool) -> None:
    """Print what a run came to, and then write its charts, if that is wanted."""
    print_outcome(derived, screen)
    if pictures:

        def say(words: str) -> None:
            screen.print(words, markup=False, highlight=False, soft_wrap=True)

        for said in derived.gallery.left_out:
            say(said)
        draw(
            derived.gallery.figures,
            derived.charts_folder,
            say,
            again=f"weighbridge charts {derived.folder.parent}",
        )


def draw(figures: Sequence[Figure], folder: Path, say: Say, *, again: str = "") -> tuple[Path, ...]:
    """Write charts into a folder; returns their files. Where they cannot be drawn that is said, and
    is no failure of a run.

    `again` is the command that tries once more.
    """
    try:
        return write_charts(figures, folder)
    except (WeighbridgeError, OSError, MemoryError) as error:
        retry = f"; to try again: {again}" if again else ""
        why = " ".join(str(error).split()) or "no memory is left"
        say(f"the charts could not be drawn ({why}); nothing else is lost{retry}")
        return ()
