"""The base of the documents that verbs print with `--json`."""

from __future__ import annotations

from typing import Literal

from weighbridge.common.record import Record


class JsonDocument(Record):
    """One document on stdout. Each kind has its own value of `document`, and fields that are only
    added to while `schema_version` stays. `exit_code` is that of the command.
    """

    document: str
    schema_version: Literal[1] = 1
    exit_code: int = 0
