"""The console that verbs print to."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from weighbridge.common.inert import inert

WIDTH_ELSEWHERE = 120
"""Characters of a line where there is no terminal to ask (a pipe, a log) and $COLUMNS says nothing.
"""


class InertConsole(Console):
    """A console on which no text is obeyed by the terminal: what rich itself says to it is no
    text.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As Console does; texts may come from servers, logs and files."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(inert(segment.text), segment.style)


def console() -> Console:
    """A console as wide as the terminal."""
    found = InertConsole()
    return (
        found
        if found.is_terminal or "COLUMNS" in os.environ
        else InertConsole(width=WIDTH_ELSEWHERE)
    )
