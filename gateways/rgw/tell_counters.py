"""Counters of a Ceph daemon, every second, as a program on its host.

Arguments: the path of the daemon's admin socket, and the counters wanted, each `told=group.counter`
with groups and counters as the daemon's `perf dump` has them; after a comma, other places of the
same counter. A line of JSON is printed at once and then every second until stdin ends: an object of
numbers by told name. A latency gives two, the seconds of all (`told_sum_s`) and how many they were
(`told_count`). A counter that the daemon does not have is left out, and so is the line of a second
in which it does not answer; why it did not goes to stderr.
"""

from __future__ import annotations

import json
import socket
import sys

from weighbridge.gateways.each_second import tell

ANSWER_WITHIN_S = 5.0


def dump(path: str, group: str) -> dict[str, dict[str, object]]:
    """The counters of one group; empty when the daemon has no such group.

    Raises OSError or ValueError.
    """
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(ANSWER_WITHIN_S)
        wire.connect(path)
        wire.sendall(json.dumps({"prefix": "perf dump", "logger": group}).encode() + b"\0")
        with wire.makefile("rb") as answer:
            length = int.from_bytes(answer.read(4), "big")
            said = answer.read(length)
    try:
        found = json.loads(said)
    except RecursionError:
        raise ValueError(
            f"perf dump was answered with what is nested without end: {said[:100]!r}"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError(
            f"perf dump was answered with what are no groups of counters: {said[:100]!r}"
        )
    return found


Wanted = dict[str, list[tuple[str, str]]]
"""Places of each counter, group and name, by what it is told as."""


def asked(arguments: list[str]) -> Wanted:
    """What the arguments want."""
    wanted: Wanted = {}
    for argument in arguments:
        told, _, places = argument.partition("=")
        for place in places.split(","):
            group, _, name = place.rpartition(".")
            wanted.setdefault(told, []).append((group, name))
    return wanted


def flat(path: str, wanted: Wanted) -> dict[str, float]:
    """The counters wanted, by name. Raises OSError or ValueError."""
    groups = dict.fromkeys(group for places in wanted.values() for group, _ in places)
    counters = {group: dump(path, group).get(group, {}) for group in groups}
    told: dict[str, float] = {}
    for name, places in wanted.items():
        value = next(
            (counters[group][counter] for group, counter in places if counter in counters[group]),
            None,
        )
        if isinstance(value, dict):
            try:
                told[f"{name}_sum_s"], told[f"{name}_count"] = (
                    float(value["sum"]),
                    float(value["avgcount"]),
                )
            except (KeyError, OverflowError, TypeError) as error:
                raise ValueError(
                    f"{name} is no latency with a sum and a count ({error!r}): {str(value)[:100]!r}"
                ) from None
        elif isinstance(value, (int, float)):
            told[name] = value
    return told


def main() -> None:
    """Tell until stdin ends."""
    path, wanted = sys.argv[1], asked(sys.argv[2:])
    tell(lambda: flat(path, wanted), path)


if __name__ == "__main__":
    main()
