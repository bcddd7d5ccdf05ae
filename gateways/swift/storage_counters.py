"""Counters of a Swift storage host, from where recon has them, as a program on the host.

The object server serves recon, and is itself being measured: a query every second would add load.
`storage_counters.py DEVICES RECON` prints a line of JSON at once and then one every second until
its stdin closes, an object of numbers: the host's TCP sockets as in /recon/sockstat, those counted
by network namespace; `async_folders`, the number of folders with deferred container updates on the
disks below DEVICES (up to 4096 a disk: few folders mean few updates, and counting these would need
a walk over all of them); and the numbers of the file RECON, which background daemons write, such as
async_pending as of the updater's last round.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from weighbridge.gateways.counter_loop import print_every_second

# The line's other numbers are for the whole machine, even in a container.
OWN_SOCKETS = ("inuse", "tw")


def sockets(text: str) -> dict[str, int]:
    """The numbers of the TCP line of /proc/net/sockstat."""
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "TCP:":
            return {f"tcp_{name}": int(words[words.index(name) + 1]) for name in OWN_SOCKETS}
    return {}


def async_folders(devices: Path) -> int:
    """Folders of deferred updates: a folder has two links, and one more for each folder in it."""
    return sum(path.stat().st_nlink - 2 for path in devices.glob("*/async_pending*"))


def recon(path: Path) -> dict[str, float]:
    """Numbers of a recon file; none while it is missing or being replaced."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8") or "{}")
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def main() -> None:
    """Print counters until stdin closes."""
    devices, path = Path(sys.argv[1]), Path(sys.argv[2])

    def look() -> dict[str, float]:
        found = sockets(Path("/proc/net/sockstat").read_text(encoding="utf-8"))
        return {**found, "async_folders": async_folders(devices), **recon(path)}

    print_every_second(look, str(path))


if __name__ == "__main__":
    main()
