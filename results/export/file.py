"""A format that runs leave in, and the files that it gives before they are written anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData


class ExportFile(Record):
    """Its name, which has no folder in it, and what is in it."""

    name: str
    content: bytes


class Produced(Record):
    """What a format made of a run.

    `remarks` are sentences about what could not go in; `folder`: the files belong in one.
    """

    files: tuple[ExportFile, ...]
    remarks: tuple[str, ...] = ()
    folder: str = ""
    """The name of the folder that they belong in; empty: each stands alone."""


@dataclass(frozen=True)
class Format:
    """One format. `tables` are those that it takes, `default` those it takes unasked; both empty:
    it takes the whole run.
    """

    about: str
    """What it writes, in a few words."""
    make: Callable[[RunData, Sequence[str]], Produced]
    tables: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
