"""The base of all records that cross a room's door."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen, validated record without unknown fields.

    Construction raises `pydantic.ValidationError`, whose message hides the input: it may be a key.
    Use tuples and frozen records inside; JSON by `model_dump_json` and `model_validate_json`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )


class JsonDocument(Record):
    """One document on stdout. Each kind has its own value of `document`, and fields that are only
    added to while `schema_version` stays. `exit_code` is that of the command.
    """

    document: str
    schema_version: Literal[1] = 1
    exit_code: int = 0
