"""A file that an export gives, before it is written anywhere."""

from __future__ import annotations

from weighbridge.common.record import Record


class ExportFile(Record):
    """Its name, which has no folder in it, and what is in it."""

    name: str
    content: bytes


class Produced(Record):
    """What a format made of a run. `remarks` are sentences about what could not go in; `folder`: the files belong in one."""

    files: tuple[ExportFile, ...]
    remarks: tuple[str, ...] = ()
    folder: str = ""
    """The name of the folder that they belong in; empty: each stands alone."""
