"""What a fault did to one operation of a step."""

from __future__ import annotations

from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record

SPAN_S: Final = 5
"""Rates are means of so many seconds."""
SERVES: Final = 0.5
"""A rate of this share of the one before, without an error, shows that the fault was dealt with."""
BACK: Final = 0.9
"""A rate of this share of the one before is as before."""


class OutageFigures(Record):
    """Figures of a fault. Times are seconds since the fault, rates per second.

    A time of at most 1 s means that not one complete second was below.
    """

    before_ops_s: NonNegativeFloat
    """The median of the complete seconds before the fault."""
    detect_s: NonNegativeFloat | None
    """Until the first of SPAN_S seconds without an error and with SERVES of the rate before, which
    end before it comes back; None: not within that time.
    """
    detect_within_s: NonNegativeFloat
    """How long that was looked for."""
    recover_s: NonNegativeFloat | None
    """Until the first of SPAN_S seconds with BACK of the rate before; None: not in the window."""
    recover_within_s: NonNegativeFloat
    unanswered_s: NonNegativeInt
    """Complete seconds after the fault in which nothing succeeded."""
    missed_s: NonNegativeFloat
    """What was not done from the fault to the end, in seconds of the rate before."""
    away_p99_ms: NonNegativeFloat | None
    away_max_ms: NonNegativeFloat | None
    """Of what succeeded between the fault and the return, or the end."""
    lowest_back: NonNegativeFloat | None
    """The lowest rate of SPAN_S seconds after the return, as a share of the one before."""
    errors: dict[str, NonNegativeInt]
    """From the fault on, by class; `unknown` where the driver does not say."""
