"""Lock files: whoever can open one, even read-only, can lock it and block everybody else."""

from __future__ import annotations

import os
from pathlib import Path

from weighbridge.common import safe_files


def open_lock(path: Path, flags: int = 0) -> int:
    """The descriptor of a lock file, created if missing, for this user only. Raises OSError."""
    return safe_files.open_descriptor(
        path.parent, path.name, os.O_RDWR | os.O_CREAT | flags, mode=0o600
    )
