"""Where requests queued: what daemons report of their queues and workers in a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic import NonNegativeFloat

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.record import Record
from weighbridge.results.figures import show_figure
from weighbridge.results.record import ProbeSecond

WAITING: Final = 1.0
"""Mean number of requests in a daemon's queue from which it is reported."""


class Queue(Record):
    """A daemon's mean queue length and workers over a window; None: it does not report them.

    Its probe declares which of its counters these are (`common.counters.DaemonCounters`).
    """

    probe: str
    waiting: NonNegativeFloat | None = None
    busy: NonNegativeFloat | None = None
    idle: NonNegativeFloat | None = None

    @property
    def words(self) -> str:
        """That requests had to wait, or that no worker was idle; else empty."""
        if self.waiting is not None and self.waiting >= WAITING:
            return f"{show_figure(self.waiting)} requests wait in {self.probe}"
        if self.busy and self.idle is not None and self.idle < WAITING:
            return f"{self.probe} has no idle worker ({show_figure(self.busy)} busy)"
        return ""


def queues(lines: Sequence[ProbeSecond], declared: Sequence[DaemonCounters]) -> Iterator[Queue]:
    """The queues of daemons from the lines of their probes in a window."""
    counters_of = {one.daemon: one for one in declared}
    ordered = sorted(lines, key=lambda one: one.probe)
    for probe, group in groupby(ordered, key=lambda one: one.probe):
        names = counters_of.get(probe.partition(".")[0])
        if names is None:
            continue
        values = [line.values for line in group]
        waiting, worked = _mean(values, names.waiting), _mean(values, names.working)
        if names.working:
            waiting = waiting - worked if waiting is not None and worked is not None else None
        busy, idle = _mean(values, names.busy), _mean(values, names.idle)
        if waiting is not None or busy is not None:
            yield Queue(
                probe=probe,
                waiting=None if waiting is None else max(0.0, waiting),
                busy=busy,
                idle=idle,
            )


def queue_words(repeats: Sequence[Sequence[Queue]]) -> str:
    """Where requests waited in most of the repeats, in words; else empty."""
    by_probe: dict[str, list[Queue]] = {}
    for queue in (queue for repeat in repeats for queue in repeat):
        by_probe.setdefault(queue.probe, []).append(queue)
    found = []
    for same in by_probe.values():
        known = [queue for queue in same if queue.words]
        if 2 * len(known) > len(same):
            found.append(known[len(known) // 2].words)
    return ", ".join(found)


def _mean(lines: Sequence[Mapping[str, float]], name: str) -> float | None:
    known = [line[name] for line in lines if name in line]
    return sum(known) / len(known) if known else None
