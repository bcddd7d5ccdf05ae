"""Reading what stands in a run folder: records in JSON, one a file or one a line. Nothing that
cannot be read is passed over.

The folder may come from anybody: links in it are not followed, what is no regular file is not read,
and nothing without a bound. `folder` is where that begins: the run's folder, of files that are
deeper in it; without it the file's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from pydantic import BaseModel, ValidationError

from weighbridge.common import inside
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.results.record.manifest import MANIFEST_VERSION

LARGEST_RECORD_BYTES: Final = 2**28
"""Of a file that is one record, or one text: a plan of a large study has a few MB, a manifest with
all configurations too.
"""
LONGEST_LINE_BYTES: Final = 2**28
"""A step of a day has 40 MB of seconds."""
LARGEST_LINES_BYTES: Final = 2**36
"""Of a file of lines, which is read line by line: thousands of steps, or what many hosts used in
each second of days.
"""

Model = TypeVar("Model", bound=BaseModel)
Line = TypeVar("Line")


def read_lines(
    path: Path, read: Callable[[bytes], Line], *, advice: str = "", folder: Path | None = None
) -> Iterator[Line]:
    """The records of a file, one a line; none where there is no file. A torn last line is dropped.

    Raises InvalidMeasurement with file:line, and this advice, about any other line that cannot be
    read; UsageError when the file cannot be.
    """
    return (line for line, _ in read_lines_from(path, read, advice=advice, folder=folder))


def read_lines_from(
    path: Path,
    read: Callable[[bytes], Line],
    at_bytes: int = 0,
    *,
    advice: str = "",
    folder: Path | None = None,
) -> Iterator[tuple[Line, int]]:
    """The same, from a place on at which a line begins; each with the place at which it ends, in
    bytes.
    """
    try:
        with _opened(path, folder) as file:
            file.seek(at_bytes)
            lines = iter(lambda: file.readline(LONGEST_LINE_BYTES), b"")
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    if len(line) == LONGEST_LINE_BYTES:
                        raise InvalidMeasurement(
                            f"{path}:{number + _lines_before(file, at_bytes)}: is longer than "
                            f"{show_bytes(LONGEST_LINE_BYTES)}"
                        )
                    return  # torn by a kill or a full disk: it was never acknowledged
                try:
                    found = read(line)
                except ValidationError as error:
                    words = f"The line is kept as it is; nothing was left out. {advice}".rstrip()
                    raise InvalidMeasurement(
                        f"{path}:{number + _lines_before(file, at_bytes)}: {why(error)}",
                        advice=words,
                    ) from None
                yield found, file.tell()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def read_record(
    path: Path, model: type[Model], *, advice: str = "", folder: Path | None = None
) -> Model:
    """The record that a file is.

    Raises UsageError, with this advice, when there is none or it cannot be read.
    """
    try:
        return model.model_validate_json(read_whole(path, folder=folder))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", advice=advice) from error
    except ValidationError as error:
        raise UsageError(f"{path}: {why(error)}", advice=advice) from None


def read_whole(path: Path, *, folder: Path | None = None) -> bytes:
    """All of a file that is one record or one text. Raises OSError."""
    folder = folder or path.parent
    return inside.read(
        folder, path.relative_to(folder).as_posix(), largest_bytes=LARGEST_RECORD_BYTES
    )


def whole_lines(path: Path, at_bytes: int = 0, *, folder: Path | None = None) -> int:
    """How many whole lines a file has from a place on; none where there is no file.

    Raises UsageError when it cannot be read.
    """
    try:
        with _opened(path, folder) as file:
            file.seek(at_bytes)
            return sum(piece.count(b"\n") for piece in iter(lambda: file.read(2**20), b""))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def torn(path: Path, *, folder: Path | None = None) -> bool:
    """Whether the last line of a file is torn; not where there is no such file.

    Raises UsageError when it cannot be read.
    """
    try:
        with _opened(path, folder) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def line_begins(path: Path, at_bytes: int, *, folder: Path | None = None) -> bool:
    """Whether a line begins at this place, or would if one were appended.

    Raises UsageError when the file cannot be read.
    """
    try:
        with _opened(path, folder) as file:
            if at_bytes > file.seek(0, os.SEEK_END):
                return False
            file.seek(max(0, at_bytes - 1))
            return not at_bytes or file.read(1) == b"\n"
    except FileNotFoundError:
        return not at_bytes
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _lines_before(file: BinaryIO, at_bytes: int) -> int:
    file.seek(0)
    return file.read(at_bytes).count(b"\n")


def _opened(path: Path, folder: Path | None) -> BinaryIO:
    """A file of lines. Raises OSError."""
    folder = folder or path.parent
    return inside.reading(
        folder, path.relative_to(folder).as_posix(), largest_bytes=LARGEST_LINES_BYTES
    )


def why(error: ValidationError) -> str:
    """The first fault of a record in words; a version that is not known before all else."""
    faults = error.errors(include_url=False, include_context=False)
    for fault in faults:
        if fault["loc"] and fault["loc"][-1] == "schema_version":
            return (
                f"written in version {fault['input']!r} of its format; this program knows version "
                f"{MANIFEST_VERSION}: "
                "read it with the weighbridge that wrote it, or a newer one"
            )
    place = ".".join(str(part) for part in faults[0]["loc"])
    return f"{place}: {faults[0]['msg']}" if place else str(faults[0]["msg"])
