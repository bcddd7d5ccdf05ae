"""Writing to the folder of a run, or to one of results."""

from __future__ import annotations

from pathlib import Path

from weighbridge.common import safe_files
from weighbridge.common.errors import DISK_FULL, WeighbridgeError
from weighbridge.results.record.appending import append


class StoreError(WeighbridgeError):
    """The run folder could not be written to (`path`). What was complete before stays readable."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.path = path
        full = error.errno in DISK_FULL
        advice = f"Everything finished before is kept in {path.parent}."
        super().__init__(
            f"{path}: {'the disk is full' if full else 'cannot be written'} ({error.strerror})",
            advice=f"{advice} Make room, or choose another folder with --out." if full else advice,
        )


def make_folder(path: Path) -> Path:
    """Create a folder and its parents if missing. Raises StoreError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(path, error) from error
    return path


def write_atomically(path: Path, content: str | bytes, *, folder: Path | None = None) -> None:
    """Write a file atomically, replacing also a link of that name.

    `folder`: the run folder, for a file deeper in it; folders between are created, and none may be
    a link. Raises StoreError.
    """
    folder = folder or path.parent
    data = content.encode() if isinstance(content, str) else content
    try:
        safe_files.write(folder, path.relative_to(folder).as_posix(), data)
    except OSError as error:
        raise StoreError(path, error) from error


def append_line(path: Path, line: str) -> None:
    """Append a line, or several, in one write after the last complete one; synced to disk.

    Raises StoreError.
    """
    try:
        append(path, line.encode() + b"\n")
    except OSError as error:
        raise StoreError(path, error) from error
