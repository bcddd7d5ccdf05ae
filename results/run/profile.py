"""A profile of a step: CPU samples of its daemons as folded stacks, and what one disk was asked.

Each has its own folder below `profile/` of the run folder: `profile.json`, `stacks.folded` (one
stack a line from root to leaf, separated by semicolons, and a count, as Brendan Gregg's tools have
it).
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.run.reading import read_bounded
from weighbridge.suites import Suite

# What one disk was asked to do in a step: sizes, latencies and seeks, from kernel block events.
#
# The events are those that blktrace records: Q, a request is queued (block_bio_queue); D, it is
# issued to the device (block_rq_issue); C, it completes (block_rq_complete). Q2C and D2C are the
# times between them, as in btt.


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
    issued = [event for event in events if event.letter == "D"]
    jumps: dict[Direction, list[int]] = {"read": [], "write": []}
    for before, after in itertools.pairwise(issued):
        if gap := abs(after.sector - before.sector - before.sectors):
            jumps[after.way].append(gap)
    ways = []
    for way, seeks in jumps.items():
        sizes = sorted(event.sectors * SECTOR_BYTES for event in issued if event.way == way)
        if sizes:
            q2c, d2c = (
                _summary([took for of, kind, took in times if (of, kind) == (way, letter)])
                for letter in "QD"
            )
            requests = DiskRequests(
                way=way,
                requests=len(sizes),
                bytes=sum(sizes),
                smallest_bytes=sizes[0],
                median_bytes=_rank(sizes, 0.5),
                largest_bytes=sizes[-1],
                q2c=q2c,
                d2c=d2c,
                seeks=len(seeks),
                median_seek_bytes=round(median(seeks)) * SECTOR_BYTES if seeks else None,
            )
            ways.append(requests)
    return DiskTrace(host=host, disk=disk, seconds=seconds, ways=tuple(ways), flushes=flushes)


def _events(script: str, device: str) -> tuple[list[_Event], int]:
    """The events of a device in order of time, and the number of flushes."""
    events, flushes = [], 0
    for line in script.splitlines():
        match = _LINE.match(line)
        letter = _LETTERS.get(match["event"]) if match else None
        if match is None or letter is None or match["device"] != device:
            continue
        place, flags = _PLACE.search(match["rest"]), match["flags"]
        if place is None or not int(place["sectors"]):
            flushes += letter == "D" and flags.startswith("F")
            continue
        # RWBS: R or W is the direction; F before it and S, M, A, F after it are flags. D is a
        # discard.
        way: Direction | None = "read" if "R" in flags else "write" if "W" in flags else None
        if way is not None and "D" not in flags:
            sector, sectors = int(place["sector"]), int(place["sectors"])
            events.append(_Event(letter, float(match["time"]), way, sector, sectors))
    return sorted(events, key=lambda event: event.at_s), flushes


def _times(events: Sequence[_Event]) -> list[tuple[Direction, str, float]]:
    """Direction, letter and ms to completion of every Q and D whose completion was seen."""
    waiting: dict[tuple[Direction, str], dict[int, float]] = {}
    took = []
    for event in events:
        if event.letter != "C":
            waiting.setdefault((event.way, event.letter), {})[event.sector] = event.at_s
            continue
        end = event.sector + event.sectors
        for letter in ("Q", "D"):
            begun = waiting.get((event.way, letter), {})
            # One request may complete several queued ones: the kernel merges neighbours.
            done = [sector for sector in begun if event.sector <= sector < end]
            took += [(event.way, letter, 1000 * (event.at_s - begun.pop(at))) for at in done]
    return took


def _summary(times_ms: Sequence[float]) -> Times | None:
    if not times_ms:
        return None
    ordered = sorted(times_ms)
    p50_ms, p99_ms = _rank(ordered, 0.5), _rank(ordered, 0.99)
    return Times(mean_ms=fmean(ordered), p50_ms=p50_ms, p99_ms=p99_ms, max_ms=ordered[-1])


def _rank(ordered: Sequence[Number], share: float) -> Number:
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


Kind = Literal["gateway", "storage"]
KERNEL: Final = "_[k]"
"""Suffix of a kernel frame."""
FOLDER: Final = "profile"

_HEAD: Final = re.compile(r"^(?P<comm>\S.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s")
_NUMBERED: Final = re.compile(r"[-_]?\d+$")
_INTERPRETER: Final = re.compile(r"_?Py[A-Z_]|_PyEval|\[python3|greenlet::|\[_greenlet|\[greenlet")
PYTHON: Final = "Python’s interpreter"
_FRAME: Final = re.compile(r"^\s+(?P<ip>[0-9a-f]+)\s(?P<symbol>.*)\s\((?P<dso>.*)\)$")


class ProfiledProgram(Record):
    """A profiled process: its tier, host and name."""

    kind: Kind
    host: str
    name: str


class Chosen(Record):
    """The step to profile on every layout, in its first repeat."""

    workload: str
    workers: int


class Stack(Record):
    """Frames from root to leaf, and their number of samples."""

    frames: Annotated[tuple[str, ...], Field(min_length=1)]
    samples: Annotated[int, Field(gt=0)]


class Profile(Record):
    """`profile.json`. Fields from `event` on are None without stacks; `remarks` say why."""

    layout: str
    api: str
    workload: str
    workers: int
    repeat: int
    seconds: NonNegativeFloat
    """How much of the step's window was profiled."""
    event: str | None = None
    hertz: int | None = None
    samples: NonNegativeInt = 0
    unresolved: NonNegativeInt = 0
    """Samples whose stack ends in an unnamed frame."""
    perf_cpu_s: NonNegativeFloat | None = None
    """What perf itself used."""
    disk: DiskTrace | None = None
    remarks: tuple[str, ...] = ()
    """What could not be recorded and why, and caveats about what was."""


def choose(text: str, suite: Suite) -> Chosen:
    """The step named `WORKLOAD:WORKERS`. Raises UsageError if the suite has no such step."""
    name, colon, count = text.rpartition(":")
    if not colon or not count.isdigit():
        advice = "Write --perf small-read:16."
        raise UsageError(f"--perf {text!r} is not WORKLOAD:WORKERS", advice=advice)
    steps = {workload.name: workload.workers for workload in suite.workloads}
    if name not in steps:
        near = did_you_mean(name, list(steps))
        advice = f"Its workloads are {', '.join(steps)}."
        raise UsageError(f"--perf: {suite.name} has no workload {name!r}{near}", advice=advice)
    if int(count) not in steps[name]:
        advice = f"Its steps are {', '.join(map(str, steps[name]))}."
        raise UsageError(f"--perf: {name} has no step with {count} workers", advice=advice)
    return Chosen(workload=name, workers=int(count))


def fold(script: str, programs: Mapping[int, ProfiledProgram]) -> tuple[Stack, ...]:
    """The stacks of `perf script -F comm,pid,tid,time,ip,sym,dso`, most samples first; `programs`
    are by process id. A stack begins with kind, program and thread.
    """
    counted: Counter[tuple[str, ...]] = Counter()
    for block in script.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        head = _HEAD.match(lines[0]) if lines else None
        program = programs.get(int(head["pid"])) if head else None
        if head is None or program is None:
            continue
        frames = [_frame(match) for line in lines[1:] if (match := _FRAME.match(line))]
        # Threads that differ only by a number do the same; one named like its program adds nothing.
        thread = _NUMBERED.sub("", head["comm"])
        named = [program.name, thread][: 1 if thread == _NUMBERED.sub("", program.name) else 2]
        counted[(program.kind, *named, *_without_interpreter(reversed(frames)))] += 1
    return tuple(Stack(frames=frames, samples=count) for frames, count in counted.most_common())


def _without_interpreter(frames: Iterable[str]) -> Iterator[str]:
    """Join runs of interpreter frames: Python calls itself dozens of times per Python function."""
    for interpreted, group in itertools.groupby(
        frames, key=lambda frame: _INTERPRETER.match(frame) is not None
    ):
        yield from (PYTHON,) if interpreted else group


def _frame(found: re.Match[str]) -> str:
    symbol, dso = found["symbol"].strip(), found["dso"]
    kernel = dso.startswith("[") and dso not in ("[unknown]", "[vdso]")
    # A function's parameters say little and take most of the room; semicolons separate frames.
    name = (
        re.sub(r"\(.*\)", "", re.sub(r"\+0x[0-9a-f]+$", "", symbol)).replace(";", ":").strip()
        or symbol
    )
    if name == "[unknown]":
        return f"[{dso.rpartition('/')[2].strip('[]')}]"
    return f"{name}{KERNEL}" if kernel else name


def folded(stacks: Sequence[Stack]) -> str:
    """The content of `stacks.folded`."""
    return "".join(f"{';'.join(stack.frames)} {stack.samples}\n" for stack in stacks)


def unresolved(stacks: Sequence[Stack]) -> int:
    """How many samples ended in an unnamed frame."""
    return sum(stack.samples for stack in stacks if stack.frames[-1].startswith("["))


def read_profiles(run: Path) -> tuple[Profile, ...]:
    """A run's profiles in order of layouts. Raises InvalidMeasurement if one is unreadable."""
    found = []
    for path in sorted((run / FOLDER).glob("*/profile.json")):
        try:
            found.append(Profile.model_validate_json(read_bounded(path, folder=run)))
        except OSError as error:
            raise InvalidMeasurement(
                f"{error.filename or path.parent}: {error.strerror}"
            ) from error
        except ValueError as error:
            raise InvalidMeasurement(f"{path.parent}: cannot be read: {error}") from error
    return tuple(found)
