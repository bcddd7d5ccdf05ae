from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData


class ExportFile(Record):
    """A file: its name, without a folder, and its content."""

    name: str
    content: bytes


class Produced(Record):
    """What a format made of a run; `remarks`: what could not be exported, and how the rest was."""

    files: tuple[ExportFile, ...]
    remarks: tuple[str, ...] = ()
    folder: str = ""
    """The name of the folder for the files; empty: none."""


@dataclass(frozen=True)
class Format:
    """One format. Its tables, and those exported if none is named; none for complete runs."""

    about: str
    """What it writes, in a few words."""
    make: Callable[[RunData, Sequence[str]], Produced]
    tables: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
