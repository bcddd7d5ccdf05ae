"""Rates that may be beyond capacity."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record


class Overload(Record):
    """Requests come at a rate that may be beyond capacity: those that fail, are late or could not
    be sent are part of the result and make no step invalid.
    """

    within: Annotated[Seconds, Field(gt=0)] | None = None
    """Goodput counts requests that succeeded within this time from their intended start; None: all
    that succeeded.
    """
