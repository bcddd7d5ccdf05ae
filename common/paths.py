"""Paths from users, which may be any text."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for what can be no path (too long, a loop of links)."""
    try:
        return path.is_file()
    except OSError:
        return False


def expanded(name: str) -> Path:
    """The path with `~` expanded; unchanged if there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
