"""A line of bonnie++ (2.00a, `-q`: only CSV on stdout) as a tally.

Its fields are those of bon_csv2html(1), format 1.98: 2 the name, 11 blocks written and 17 read, in
KiB a second as whole numbers. `+++++` stands for a part that took less than half a second: it is
not a figure. Latencies are only maxima of requests, without a mean, and are left out.
"""

from __future__ import annotations

import csv
import re
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.common.tool_output import printable
from weighbridge.results.record.measurement import Tally

_FORMATS: Final = ("1.96", "1.97", "1.98")
_FIELDS: Final = 44
"""All figures of the test of throughput are before this one."""
_NAME: Final = 2
_RATE: Final = {"write": 11, "read": 17}
_WHOLE: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
TOO_FAST: Final = "+++++"


def tally_of(
    printed: str,
    operation: Literal["read", "write"],
    *,
    name: str,
    block_bytes: int,
    file_bytes: int,
) -> tuple[Tally, float]:
    """The tally of one part, and how many seconds it took by its own rate. Raises DriverError."""
    try:
        lines = [line for line in csv.reader(printed.splitlines()) if line[:1]]
    except csv.Error as error:
        raise DriverError(f"bonnie++: {error}: {printable(printed[-300:])!r}") from error
    found = [line for line in lines if line[0] in _FORMATS and len(line) >= _FIELDS]
    if len(found) != 1 or found[0][_NAME] != name:
        raise DriverError(f"bonnie++: no single result line in {printable(printed[-300:])!r}")
    figure = found[0][_RATE[operation]]
    if figure == TOO_FAST:
        raise DriverError(
            f"bonnie++: it took less than half a second to {operation} its file, too short to "
            "measure",
            advice="Give the workload more objects.",
        )
    if not _WHOLE.fullmatch(figure) or not int(figure):
        raise DriverError(f"bonnie++: {printable(figure)!r} is not a number of KiB per second")
    count = file_bytes // block_bytes
    seconds = file_bytes / (int(figure) * 1024)
    return Tally(operation=operation, count=count, bytes=count * block_bytes, sum_us=None), seconds
