"""Paths from users, which may be any text."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import weighbridge


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


PACKAGE: Final = Path(weighbridge.__file__).resolve().parent
"""The package's folder.

In a checkout the rooms below it are links: do not resolve paths below it.
"""
IMPORTED_FROM: Final = PACKAGE.parent
"""What must be on Python's path to import the suite: the checkout, or site-packages."""
ROOMS: Final = ("common", "drivers", "gateways", "results", "suites", "topologies")
"""The packages that are top-level folders of the repository; globs skip the links to them."""
