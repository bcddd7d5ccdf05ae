"""Ask Ceph daemons through their admin sockets, as a program on their host.

Without arguments, stdin is JSON, a list of `[socket, command]`, each command `{"prefix": ...}`;
stdout is JSON, the answers' texts in the same order. A `ceph daemon` process for each would cost
0.2 s of CPU.

With arguments it prints counters of a daemon: its admin socket, and the counters wanted, each
`key=group.counter` with groups and counters of the daemon's `perf dump`; after a comma, other
places of the same counter. Prints a line of JSON at once and then every second until stdin closes:
an object of numbers by key. A latency gives two, the total seconds (`key_sum_s`) and the number of
operations (`key_count`). Counters that the daemon lacks are left out, and so is the line of a
second in which it does not answer; stderr gives the reason.
"""

from __future__ import annotations

import json
import socket
import sys

from weighbridge.gateways.counter_loop import print_every_second

COUNTERS_WITHIN_S = 5.0


def ask(path: str, command: object, *, timeout_s: float = 60) -> str:
    """The answer of the daemon that listens on `path`: a length of four bytes, then the text."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(timeout_s)
        wire.connect(path)
        wire.sendall(json.dumps(command).encode() + b"\0")
        with wire.makefile("rb") as answer:
            length = int.from_bytes(answer.read(4), "big")
            return answer.read(length).decode(errors="replace")


def dump(path: str, group: str) -> dict[str, dict[str, object]]:
    """The counters of a group; empty if the daemon has none. Raises OSError or ValueError."""
    text = ask(path, {"prefix": "perf dump", "logger": group}, timeout_s=COUNTERS_WITHIN_S)
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError(f"perf dump returned endless nesting: {text[:100]!r}") from None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError(f"perf dump returned no groups of counters: {text[:100]!r}")
    return found


Wanted = dict[str, list[tuple[str, str]]]
"""The places, group and name, of each counter by key."""


def parse(arguments: list[str]) -> Wanted:
    """The counters that the arguments ask for."""
    wanted: Wanted = {}
    for argument in arguments:
        key, _, places = argument.partition("=")
        for place in places.split(","):
            group, _, name = place.rpartition(".")
            wanted.setdefault(key, []).append((group, name))
    return wanted


def counters(path: str, wanted: Wanted) -> dict[str, float]:
    """The counters wanted, by key. Raises OSError or ValueError."""
    names = dict.fromkeys(group for places in wanted.values() for group, _ in places)
    groups = {name: dump(path, name).get(name, {}) for name in names}
    found: dict[str, float] = {}
    for key, places in wanted.items():
        value = next((groups[group][name] for group, name in places if name in groups[group]), None)
        if isinstance(value, dict):
            try:
                found[f"{key}_sum_s"] = float(value["sum"])
                found[f"{key}_count"] = float(value["avgcount"])
            except (KeyError, OverflowError, TypeError) as error:
                raise ValueError(
                    f"{key} is no latency with a sum and a count ({error!r}): {str(value)[:100]!r}"
                ) from None
        elif isinstance(value, (int, float)):
            found[key] = value
    return found


def main() -> None:
    """Answer what stdin asks, or print counters until it closes."""
    if len(sys.argv) > 1:
        path, wanted = sys.argv[1], parse(sys.argv[2:])
        print_every_second(lambda: counters(path, wanted), path)
    else:
        json.dump([ask(path, command) for path, command in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
