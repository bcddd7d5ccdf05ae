"""The points of a run as they are sent, and what a panel of the dashboard should show of them."""

from __future__ import annotations

from collections.abc import Iterable

from weighbridge.results.influx.points import RunPoints
from weighbridge.results.record.store import RunStore

Tags = frozenset[tuple[str, str]]
Points = dict[tuple[str, Tags, int], dict[str, float]]
"""The fields of each point by measurement, tags and time in ms."""
Shown = dict[tuple[Tags, int], float]
"""A value by the tags that tell series apart, and time in ms."""


def read(lines: Iterable[str]) -> Points:
    """The points of lines that have nothing to escape."""
    found: Points = {}
    for line in lines:
        head, fields, at = line.split(" ")
        name, *tags = head.split(",")
        values = {
            key: float(value.removesuffix("i"))
            for key, _, value in (one.partition("=") for one in fields.split(","))
        }
        pairs = frozenset((key, value) for key, _, value in (one.partition("=") for one in tags))
        found[name, pairs, int(at)] = values
    return found


def lines_of(store: RunStore) -> list[str]:
    """All lines of a run, with one second of a step while it runs."""
    made = RunPoints(store)
    steps = list(store.steps())
    gateways = [one.key for one in steps if one.key.layer is None]
    return [
        *made.run(),
        *(line for step in steps for line in made.step(step)),
        *made.live(gateways[0], "measure", (120.0, 1e6), 0, 1415102401000),
    ]


def shown(points: Points, measurement: str, field: str, *, valid: bool) -> Shown:
    """What a panel shows of a field: of gateways only, if asked of valid steps only."""
    return {
        (frozenset(one for one in tags if one[0] != "suite"), at): fields[field]
        for (name, tags, at), fields in points.items()
        if name == measurement
        and field in fields
        and "layer" not in dict(tags)
        and (not valid or fields["valid"] == 1)
    }
