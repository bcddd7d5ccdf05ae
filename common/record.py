"""The base of every record that crosses a room's door: frozen, validated, without unknown
fields.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen, self-validating record. Construction raises `pydantic.ValidationError` on any
    fault, without what was given: that may be a key.

    Use tuples and frozen records inside; JSON comes from `model_dump_json` and goes in by
    `model_validate_json`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )
