"""Counters of a Ceph daemon, every second, as a program on its host.

Arguments: the path of the daemon's admin socket, and the counters wanted, each `group.name` as in the daemon's `perf dump`. A
line of JSON is printed at once and then every second until stdin ends: an object of numbers by name. A latency gives two, the
seconds of all (`name_sum_s`) and how many they were (`name_count`). A counter that the daemon does not have is left out, and so
is the line of a second in which it does not answer; why it did not goes to stderr.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

EVERY_S = 1.0
ANSWER_WITHIN_S = 5.0


def dump(path: str, group: str) -> dict[str, dict[str, object]]:
    """The counters of one group; empty when the daemon has no such group. Raises OSError or ValueError."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(ANSWER_WITHIN_S)
        wire.connect(path)
        wire.sendall(json.dumps({"prefix": "perf dump", "logger": group}).encode() + b"\0")
        with wire.makefile("rb") as answer:
            length = int.from_bytes(answer.read(4), "big")
            found: dict[str, dict[str, object]] = json.loads(answer.read(length))
            return found


def flat(path: str, wanted: dict[str, list[str]]) -> dict[str, float]:
    """The counters wanted, by name. Raises OSError or ValueError."""
    told: dict[str, float] = {}
    for group, names in wanted.items():
        counters = dump(path, group).get(group, {})
        for name in names:
            value = counters.get(name)
            if isinstance(value, dict):
                told[f"{name}_sum_s"] = float(value["sum"])
                told[f"{name}_count"] = float(value["avgcount"])
            elif isinstance(value, (int, float)):
                told[name] = value
    return told


def main() -> None:
    """Tell until stdin ends."""
    path = sys.argv[1]
    wanted: dict[str, list[str]] = {}
    for one in sys.argv[2:]:
        group, _, name = one.rpartition(".")
        wanted.setdefault(group, []).append(name)
    due = time.monotonic()
    while True:
        try:
            sys.stdout.write(json.dumps(flat(path, wanted)) + "\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{path}: {error}\n")
            sys.stderr.flush()
        # Seconds that were missed are not made up for.
        due = max(due + EVERY_S, time.monotonic())
        if select.select([sys.stdin], [], [], due - time.monotonic())[0]:
            return


if __name__ == "__main__":
    main()
