"""What recon would tell of a Swift storage host, as a program on it, from where recon has it.

Recon is served by the object server, which is what is being weighed: asking it every second would
be load of ours. `tell_storage.py DEVICES RECON` prints a line of JSON at once and then one every
second until its stdin ends, an object of numbers: the host's TCP sockets as in /recon/sockstat,
those that are counted by network namespace; `async_folders`, in how many folders of the disks below
DEVICES container updates wait that were put off (there are up to 4096 a disk: few folders, few
updates; one look a disk, where counting the updates would be a walk over all of them); and the
numbers of the file RECON, which background daemons write, such as async_pending as of the updater's
last round.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from weighbridge.gateways.each_second import tell

# The other numbers of that line are the whole machine's, also on a host that is a container.
OWN_SOCKETS = ("inuse", "tw")


def sockets(text: str) -> dict[str, int]:
    """Numbers of /proc/net/sockstat's line of TCP."""
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "TCP:":
            return {f"tcp_{name}": int(words[words.index(name) + 1]) for name in OWN_SOCKETS}
    return {}


def async_folders(devices: Path) -> int:
    """Folders of updates that were put off: a folder's links are its own two and one for each
    folder in it.
    """
    return sum(path.stat().st_nlink - 2 for path in devices.glob("*/async_pending*"))


def recon(path: Path) -> dict[str, float]:
    """Numbers of a file that daemons write for recon; none while it is not there or being
    replaced.
    """
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8") or "{}")
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def main() -> None:
    """Tell until stdin ends."""
    devices, path = Path(sys.argv[1]), Path(sys.argv[2])

    def look() -> dict[str, float]:
        found = sockets(Path("/proc/net/sockstat").read_text(encoding="utf-8"))
        return {**found, "async_folders": async_folders(devices), **recon(path)}

    tell(look, str(path))


if __name__ == "__main__":
    main()
