"""The base of every record that crosses a room's door: frozen, validated, without unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen, self-validating record. Construction raises `pydantic.ValidationError` on any fault.

    Use tuples and frozen records inside; JSON comes from `model_dump_json` and goes in by `model_validate_json`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
