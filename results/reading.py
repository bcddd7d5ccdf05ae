"""Reading what stands in a run folder: records in JSON, one a file or one a line. Nothing that cannot be read is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ground.errors import InvalidMeasurement, UsageError
from results.manifest import MANIFEST_VERSION

Model = TypeVar("Model", bound=BaseModel)
Line = TypeVar("Line")


def read_lines(path: Path, read: Callable[[bytes], Line], *, advice: str = "") -> Iterator[Line]:
    """The records of a file, one a line; none where there is no file. A torn last line is dropped.

    Raises InvalidMeasurement with file:line, and this advice, about any other line that cannot be read; UsageError when the file
    cannot be.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return  # torn by a kill or a full disk: it was never acknowledged
                try:
                    yield read(line)
                except ValidationError as error:
                    words = f"The line is kept as it is; nothing was left out. {advice}".rstrip()
                    raise InvalidMeasurement(f"{path}:{number}: {why(error)}", advice=words) from None
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def read_record(path: Path, model: type[Model], *, advice: str = "") -> Model:
    """The record that a file is. Raises UsageError, with this advice, when there is none or it cannot be read."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", advice=advice) from error
    except ValidationError as error:
        raise UsageError(f"{path}: {why(error)}", advice=advice) from None


def torn(path: Path) -> bool:
    """Whether the last line of a file is torn; not where there is no such file. Raises UsageError when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def why(error: ValidationError) -> str:
    """The first fault of a record in words; a version that is not known before all else."""
    faults = error.errors(include_url=False, include_context=False)
    for fault in faults:
        if fault["loc"] and fault["loc"][-1] == "schema_version":
            return (
                f"written in version {fault['input']!r} of its format; this program knows version {MANIFEST_VERSION}: "
                "read it with the weighbridge that wrote it, or a newer one"
            )
    place = ".".join(str(part) for part in faults[0]["loc"])
    return f"{place}: {faults[0]['msg']}" if place else str(faults[0]["msg"])
