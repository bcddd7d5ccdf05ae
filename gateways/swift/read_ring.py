"""The object ring on a host, as a program there: read by Swift's own code, whatever its file
format.

stdout is JSON `{"part_power": n, "disks": [{"address": a, "port": n, "device": name}, ...],
"table": [[n, ...], ...]}`: a row of the table for each replica, with a disk's index for each
partition.
"""

from __future__ import annotations

import json
import sys
from typing import Any

PATH = "/etc/swift/object.ring.gz"


def described(ring: Any) -> dict[str, Any]:
    """The printed form of a ring."""
    # A removed device leaves a hole in the list: disks are renumbered without holes.
    there = [one for one in ring.devs if one is not None]
    number = {one["id"]: index for index, one in enumerate(there)}
    # RingData has no public access to its table; these two names are the same from 2.26 to 2.38.
    return {
        "part_power": 32 - ring._part_shift,  # noqa: SLF001
        "disks": [
            {"address": one["ip"], "port": one["port"], "device": one["device"]} for one in there
        ],
        "table": [[number[device] for device in row] for row in ring._replica2part2dev_id],  # noqa: SLF001
    }


if __name__ == "__main__":
    from swift.common.ring.ring import RingData  # type: ignore[import-not-found]

    json.dump(described(RingData.load(PATH)), sys.stdout)
