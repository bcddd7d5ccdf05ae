"""Settings of Apache."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ground.record import Record


class ApacheSettings(Record):
    """Apache, where a layout places one."""

    port: Annotated[int, Field(ge=1, le=65535)] = 80
