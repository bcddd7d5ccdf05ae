"""Paths as people give them: anything may stand where one is wanted."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether there is such a file.

    What can be no path, since it is too long or goes round in links, is no file.
    """
    try:
        return path.is_file()
    except OSError:
        return False


def expanded(name: str) -> Path:
    """A path with `~` as the user's own folder; as it is where there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)
