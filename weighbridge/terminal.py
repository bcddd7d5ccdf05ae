"""The console that verbs print to."""

from __future__ import annotations

import os

from rich.console import Console

WIDTH_ELSEWHERE = 120
"""Characters of a line where there is no terminal to ask (a pipe, a log) and $COLUMNS says nothing."""


def console() -> Console:
    """A console as wide as the terminal."""
    found = Console()
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(width=WIDTH_ELSEWHERE)
