"""What one disk was asked to do in a step: sizes, latencies and seeks, from kernel block events.

The events are those that blktrace records: Q, a request is queued (block_bio_queue); D, it is
issued to the device (block_rq_issue); C, it completes (block_rq_complete). Q2C and D2C are the
times between them, as in btt.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record

SECTOR_BYTES: Final = 512
EVENTS: Final = ("block:block_bio_queue", "block:block_rq_issue", "block:block_rq_complete")
_LINE: Final = re.compile(
    r"^\s*(?P<time>\d+\.\d+):\s+block:(?P<event>block_\w+):\s+(?P<device>\d+,\d+)\s+(?P<flags>\S+)\s+(?P<rest>.*)$"
)
_PLACE: Final = re.compile(r"(?P<sector>\d+) \+ (?P<sectors>\d+)")
_LETTERS: Final = {"block_bio_queue": "Q", "block_rq_issue": "D", "block_rq_complete": "C"}

Number = TypeVar("Number", int, float)
Direction = Literal["read", "write"]


class Times(Record):
    """Latencies of a set of requests in ms, from every request rather than a histogram."""

    mean_ms: NonNegativeFloat
    p50_ms: NonNegativeFloat
    p99_ms: NonNegativeFloat
    max_ms: NonNegativeFloat


class DiskRequests(Record):
    """Requests of one direction. None where no request was seen from start to end."""

    way: Direction
    requests: NonNegativeInt
    """Issued to the device; more may have been queued, since the kernel merges neighbours."""
    bytes: NonNegativeInt
    smallest_bytes: NonNegativeInt
    median_bytes: NonNegativeInt
    largest_bytes: NonNegativeInt
    q2c: Times | None
    d2c: Times | None
    seeks: NonNegativeInt
    """Requests that do not start where the disk's previous request, of either direction, ended."""
    median_seek_bytes: NonNegativeInt | None
    """The median distance of those that seek; None if none does."""


class DiskTrace(Record):
    """What was recorded of one disk."""

    host: str
    disk: str
    seconds: NonNegativeFloat
    ways: tuple[DiskRequests, ...]
    flushes: NonNegativeInt
    """Requests without data that make the disk write its cache."""


@dataclass(frozen=True)
class _Event:
    letter: str
    at_s: float
    way: Direction
    sector: int
    sectors: int


def parse(script: str, *, device: str, host: str, disk: str, seconds: float) -> DiskTrace:
    """The trace of `device` (such as `7,3`) in the output of `perf script -F time,event,trace`."""
    events, flushes = _events(script, device)
    times = _times(events)
    issued = [one for one in events if one.letter == "D"]
    gaps = [
        (after.way, abs(after.sector - before.sector - before.sectors))
        for before, after in itertools.pairwise(issued)
    ]
    requests = []
    for way in ("read", "write"):
        sizes = sorted(one.sectors * SECTOR_BYTES for one in issued if one.way == way)
        if not sizes:
            continue
        jumps = [gap for of, gap in gaps if of == way and gap]
        requests.append(
            DiskRequests(
                way=way,
                requests=len(sizes),
                bytes=sum(sizes),
                smallest_bytes=sizes[0],
                median_bytes=_rank(sizes, 0.5),
                largest_bytes=sizes[-1],
                q2c=_summary([took for of, letter, took in times if (of, letter) == (way, "Q")]),
                d2c=_summary([took for of, letter, took in times if (of, letter) == (way, "D")]),
                seeks=len(jumps),
                median_seek_bytes=round(statistics.median(jumps)) * SECTOR_BYTES if jumps else None,
            )
        )
    return DiskTrace(host=host, disk=disk, seconds=seconds, ways=tuple(requests), flushes=flushes)


def _events(script: str, device: str) -> tuple[list[_Event], int]:
    """The events of a device in order of time, and the number of flushes."""
    events, flushes = [], 0
    for line in script.splitlines():
        found = _LINE.match(line)
        letter = _LETTERS.get(found["event"]) if found else None
        if found is None or letter is None or found["device"] != device:
            continue
        place = _PLACE.search(found["rest"])
        flags = found["flags"]
        if place is None or not int(place["sectors"]):
            flushes += letter == "D" and flags.startswith("F")
            continue
        # RWBS: R or W is the direction; F before it and S, M, A, F after it are flags. D is a
        # discard.
        way: Direction | None = "read" if "R" in flags else "write" if "W" in flags else None
        if way is not None and "D" not in flags:
            events.append(
                _Event(
                    letter, float(found["time"]), way, int(place["sector"]), int(place["sectors"])
                )
            )
    return sorted(events, key=lambda one: one.at_s), flushes


def _times(events: Sequence[_Event]) -> list[tuple[Direction, str, float]]:
    """Direction, letter and ms to completion of every Q and D whose completion was seen."""
    waiting: dict[tuple[Direction, str], dict[int, float]] = {}
    took = []
    for one in events:
        if one.letter != "C":
            waiting.setdefault((one.way, one.letter), {})[one.sector] = one.at_s
            continue
        for letter in ("Q", "D"):
            begun = waiting.get((one.way, letter), {})
            # One request may complete several queued ones: the kernel merges neighbours.
            done = [sector for sector in begun if one.sector <= sector < one.sector + one.sectors]
            took += [(one.way, letter, 1000 * (one.at_s - begun.pop(sector))) for sector in done]
    return took


def _summary(times_ms: Sequence[float]) -> Times | None:
    if not times_ms:
        return None
    ordered = sorted(times_ms)
    mean = statistics.fmean(ordered)
    return Times(
        mean_ms=mean, p50_ms=_rank(ordered, 0.5), p99_ms=_rank(ordered, 0.99), max_ms=ordered[-1]
    )


def _rank(ordered: Sequence[Number], share: float) -> Number:
    """The value at rank ceil(n * share)."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def disk_csv(trace: DiskTrace) -> str:
    """One line per direction; unknown values are empty."""
    plain = (
        "requests",
        "bytes",
        "smallest_bytes",
        "median_bytes",
        "largest_bytes",
        "seeks",
        "median_seek_bytes",
    )
    times = [f"{kind}_{name}" for kind in ("q2c", "d2c") for name in Times.model_fields]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, ["host", "disk", "seconds", "way", *plain, *times], lineterminator="\n"
    )
    writer.writeheader()
    for one in trace.ways:
        row = {"host": trace.host, "disk": trace.disk, "seconds": f"{trace.seconds:.2f}"}
        row |= {"way": one.way, **{name: getattr(one, name) for name in plain}}
        for kind, latencies in (("q2c", one.q2c), ("d2c", one.d2c)):
            if latencies is not None:
                row |= {f"{kind}_{name}": f"{value:.4f}" for name, value in latencies}
        writer.writerow(row)
    return text.getvalue()
