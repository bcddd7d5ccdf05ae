"""What dd prints at its end, or when it is interrupted, as a tally.

dd of GNU coreutils, in the C locale, on stderr (8.32 and 9.1 print the same):

    64+0 records in
    64+0 records out
    268435456 bytes (268 MB, 256 MiB) copied, 23.2027 s, 11.6 MB/s

It reports no latency. Partial records, of which there are none with direct I/O, do not count.
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.common.tool_output import printable
from weighbridge.results.record.measurement import Tally

_RECORDS: Final = re.compile(r"(?am)^([0-9]{1,15})\+([0-9]{1,15}) records (in|out)$")
_COPIED: Final = re.compile(
    r"(?am)^([0-9]{1,18}) bytes?(?: \([^()\n]{1,60}\))? copied, ([0-9.e+-]{1,24}) s(?:,|$)"
)
_SIDE: Final = {"read": "in", "write": "out"}


def tally_of(
    printed: str, operation: Literal["read", "write"], block_bytes: int
) -> tuple[Tally, float]:
    """The tally of one dd, and the seconds it took. Raises DriverError."""
    # Progress lines may come before: the last of each kind is the total.
    copied = [*_COPIED.finditer(printed)]
    records = [one for one in _RECORDS.finditer(printed) if one[3] == _SIDE[operation]]
    if not copied or not records:
        raise DriverError(f"dd: no total in what it printed: {printable(printed[-300:])!r}")
    count, partial = int(records[-1][1]), int(records[-1][2])
    moved = int(copied[-1][1])
    try:
        seconds = float(copied[-1][2])
    except ValueError as error:
        raise DriverError(f"dd: {printable(copied[-1][0])!r}: {error}") from error
    if not 0 < seconds < math.inf:
        raise DriverError(f"dd: {moved} bytes in {seconds} s")
    whole = count * block_bytes
    # Interrupted, it may have read a block more than it has copied.
    least = whole - block_bytes if operation == "read" else whole
    if not least <= moved <= whole + partial * block_bytes:
        raise DriverError(
            f"dd: {count}+{partial} blocks of {block_bytes} bytes are not {moved} bytes"
        )
    tally = Tally(
        operation=operation,
        count=count,
        bytes=count * block_bytes,
        sum_us=None if count else 0,
    )
    return tally, seconds
