"""What one disk was asked in a step: sizes, latencies and seeks, from the kernel's block events.

They are the events that blktrace records: Q, a request is queued (block_bio_queue); D, it is given
to the device (block_rq_issue); C, it is done (block_rq_complete). Q2C and D2C are the times between
them, as btt has them.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import statistics
from collections.abc import Iterator, Sequence
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
Way = Literal["read", "write"]


class Times(Record):
    """Latencies of some requests, in ms, each of them counted: no histogram is between."""

    mean_ms: NonNegativeFloat
    p50_ms: NonNegativeFloat
    p99_ms: NonNegativeFloat
    max_ms: NonNegativeFloat


class DiskRequests(Record):
    """What a disk was asked in one way.

    None where no request was seen from its beginning to its end.
    """

    way: Way
    requests: NonNegativeInt
    """Given to the device; those queued may be more, the kernel joins neighbours."""
    bytes: NonNegativeInt
    smallest_bytes: NonNegativeInt
    median_bytes: NonNegativeInt
    largest_bytes: NonNegativeInt
    q2c: Times | None
    d2c: Times | None
    seeks: NonNegativeInt
    """Requests that do not begin where the one before them on the disk, of either way, has ended.
    """
    median_seek_bytes: NonNegativeInt | None
    """How far, of those that seek; None where none does."""


class DiskTrace(Record):
    """What was seen of one disk."""

    host: str
    disk: str
    seconds: NonNegativeFloat
    ways: tuple[DiskRequests, ...]
    flushes: NonNegativeInt
    """Requests that carry no data: the disk is told to write its cache."""


@dataclass(frozen=True)
class _Event:
    letter: str
    at_s: float
    way: Way
    sector: int
    sectors: int


def parse(told: str, *, device: str, host: str, disk: str, seconds: float) -> DiskTrace:
    """What `perf script -F time,event,trace` printed of `device` (such as `7,3`), other devices
    left out.
    """
    events, flushes = _events(told, device)
    issued = [one for one in events if one.letter == "D"]
    times = _times(events)
    asked = []
    for way in ("read", "write"):
        own = [one for one in issued if one.way == way]
        if not own:
            continue
        sizes = sorted(one.sectors * SECTOR_BYTES for one in own)
        jumps = [abs(gap) for one, gap in _gaps(issued) if one.way == way and gap]
        asked.append(
            DiskRequests(
                way=way,
                requests=len(own),
                bytes=sum(sizes),
                smallest_bytes=sizes[0],
                median_bytes=_rank(sizes, 0.5),
                largest_bytes=sizes[-1],
                q2c=_told([took for of, letter, took in times if (of, letter) == (way, "Q")]),
                d2c=_told([took for of, letter, took in times if (of, letter) == (way, "D")]),
                seeks=len(jumps),
                median_seek_bytes=round(statistics.median(jumps)) * SECTOR_BYTES if jumps else None,
            )
        )
    return DiskTrace(host=host, disk=disk, seconds=seconds, ways=tuple(asked), flushes=flushes)


def _events(told: str, device: str) -> tuple[list[_Event], int]:
    """The events of a device in order of time, and how many flushes it was given."""
    events, flushes = [], 0
    for line in told.splitlines():
        found = _LINE.match(line)
        letter = _LETTERS.get(found["event"]) if found else None
        if found is None or letter is None or found["device"] != device:
            continue
        place = _PLACE.search(found["rest"])
        flags = found["flags"]
        if place is None or not int(place["sectors"]):
            flushes += letter == "D" and flags.startswith("F")
            continue
        # RWBS: R or W is the way; what stands before it (F) or after it (S, M, A, F) are manners. D
        # is a discard.
        way: Way | None = "read" if "R" in flags else "write" if "W" in flags else None
        if way is not None and "D" not in flags:
            events.append(
                _Event(
                    letter, float(found["time"]), way, int(place["sector"]), int(place["sectors"])
                )
            )
    return sorted(events, key=lambda one: one.at_s), flushes


def _times(events: Sequence[_Event]) -> list[tuple[Way, str, float]]:
    """Way, letter and ms from that event to the end, for every Q and D whose end was seen."""
    waiting: dict[tuple[Way, str], dict[int, float]] = {}
    took = []
    for one in events:
        if one.letter != "C":
            waiting.setdefault((one.way, one.letter), {})[one.sector] = one.at_s
            continue
        for letter in ("Q", "D"):
            begun = waiting.get((one.way, letter), {})
            # One request may carry several that were queued: neighbours are joined.
            done = [sector for sector in begun if one.sector <= sector < one.sector + one.sectors]
            took += [(one.way, letter, 1000 * (one.at_s - begun.pop(sector))) for sector in done]
    return took


def _gaps(issued: Sequence[_Event]) -> Iterator[tuple[_Event, int]]:
    """Each request but the first, with how far from the end of the one before it it begins, in
    sectors.
    """
    for before, one in itertools.pairwise(issued):
        yield one, one.sector - (before.sector + before.sectors)


def _told(times_ms: Sequence[float]) -> Times | None:
    if not times_ms:
        return None
    ordered = sorted(times_ms)
    mean = statistics.fmean(ordered)
    return Times(
        mean_ms=mean, p50_ms=_rank(ordered, 0.5), p99_ms=_rank(ordered, 0.99), max_ms=ordered[-1]
    )


def _rank(ordered: Sequence[Number], share: float) -> Number:
    """The value below or at which so many are."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def disk_csv(trace: DiskTrace) -> str:
    """A line for each way. What is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    latencies = ("mean_ms", "p50_ms", "p99_ms", "max_ms")
    plain = (
        "requests",
        "bytes",
        "smallest_bytes",
        "median_bytes",
        "largest_bytes",
        "seeks",
        "median_seek_bytes",
    )
    writer.writerow(
        [
            "host",
            "disk",
            "seconds",
            "way",
            *plain,
            *(f"{kind}_{name}" for kind in ("q2c", "d2c") for name in latencies),
        ]
    )
    for one in trace.ways:
        times = [
            None if kind is None else f"{getattr(kind, name):.4f}"
            for kind in (one.q2c, one.d2c)
            for name in latencies
        ]
        writer.writerow(
            [
                trace.host,
                trace.disk,
                f"{trace.seconds:.2f}",
                one.way,
                *(getattr(one, name) for name in plain),
                *times,
            ]
        )
    return text.getvalue()
