"""A profile as a run keeps it: what the CPUs of a step's daemons did, by folded stacks, and what
one disk was asked.

Below `profile/` of the run folder each has a folder of its own: `profile.json`, `stacks.folded`
(one stack a line from its root to its leaf, with semicolons between and a count at the end, as the
tools of Brendan Gregg have it), `disk.csv` and `flame.svg`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.record.block_trace import DiskTrace
from weighbridge.results.record.reading import read_whole
from weighbridge.suites import Suite

Kind = Literal["gateway", "storage"]
KERNEL: Final = "_[k]"
"""What a frame of the kernel ends with."""
FOLDER: Final = "profile"

_HEAD: Final = re.compile(r"^(?P<comm>\S.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s")
_NUMBERED: Final = re.compile(r"[-_]?\d+$")
_INTERPRETER: Final = re.compile(r"_?Py[A-Z_]|_PyEval|\[python3|greenlet::|\[_greenlet|\[greenlet")
PYTHON: Final = "Python’s interpreter"
_FRAME: Final = re.compile(r"^\s+(?P<ip>[0-9a-f]+)\s(?P<symbol>.*)\s\((?P<dso>.*)\)$")


class ProfiledProgram(Record):
    """A process that is profiled: whose it is, on which host, what it is called."""

    kind: Kind
    host: str
    name: str


class Chosen(Record):
    """The step that is profiled on every layout, in its first repeat."""

    workload: str
    workers: int


class Stack(Record):
    """Frames from the root to the leaf, and how many samples were of it."""

    frames: Annotated[tuple[str, ...], Field(min_length=1)]
    samples: Annotated[int, Field(gt=0)]


class Profile(Record):
    """`profile.json`. `event` and what follows it are None where no stacks were taken; `remarks`
    say why.
    """

    layout: str
    api: str
    workload: str
    workers: int
    repeat: int
    seconds: NonNegativeFloat
    """Of the step's window that were looked at."""
    event: str | None = None
    hertz: int | None = None
    samples: NonNegativeInt = 0
    unresolved: NonNegativeInt = 0
    """Samples whose stack ends in a frame without a name."""
    perf_cpu_s: NonNegativeFloat | None = None
    """What perf itself used."""
    disk: DiskTrace | None = None
    remarks: tuple[str, ...] = ()
    """What could not be had and why, and what ought to be known of what could."""


class Profiled(Record):
    """A profile with its stacks, as it is read again."""

    profile: Profile
    stacks: tuple[Stack, ...]


def choose(text: str, suite: Suite) -> Chosen:
    """The step of `WORKLOAD:WORKERS`. Raises UsageError when the suite has no such step."""
    name, colon, count = text.rpartition(":")
    if not colon or not count.isdigit():
        raise UsageError(
            f"--profile {text!r} is no WORKLOAD:WORKERS", advice="Write --profile small-read:16."
        )
    workload = next((one for one in suite.workloads if one.name == name), None)
    if workload is None:
        known = [one.name for one in suite.workloads]
        advice = f"Its workloads are {', '.join(known)}."
        raise UsageError(
            f"--profile: {suite.name} has no workload {name!r}{did_you_mean(name, known)}",
            advice=advice,
        )
    if int(count) not in workload.workers:
        steps = ", ".join(map(str, workload.workers))
        raise UsageError(
            f"--profile: {name} is not replayed at {count} workers",
            advice=f"Its steps are {steps}.",
        )
    return Chosen(workload=name, workers=int(count))


def fold(told: str, programs: Mapping[int, ProfiledProgram]) -> tuple[Stack, ...]:
    """The stacks of what `perf script -F comm,pid,tid,time,ip,sym,dso` printed, by process number;
    most samples first.

    A stack begins with kind, program and thread. What belongs to none of the programs is left out.
    """
    counted: Counter[tuple[str, ...]] = Counter()
    for block in told.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        head = _HEAD.match(lines[0]) if lines else None
        if head is None:
            continue
        program = programs.get(int(head["pid"]))
        if program is None:
            continue
        frames = [_frame(found) for line in lines[1:] if (found := _FRAME.match(line))]
        # Threads that are told apart by a number alone do the same; one that is called as its
        # program says nothing.
        thread = _NUMBERED.sub("", head["comm"])
        named = (
            (program.name,) if thread == _NUMBERED.sub("", program.name) else (program.name, thread)
        )
        counted[(program.kind, *named, *_calm(reversed(frames)))] += 1
    return tuple(Stack(frames=frames, samples=count) for frames, count in counted.most_common())


def _calm(frames: Iterable[str]) -> Iterator[str]:
    """Frames with those of Python's interpreter joined to one: it calls itself dozens of times for
    each function of Python.
    """
    for interpreted, group in itertools.groupby(
        frames, key=lambda frame: _INTERPRETER.match(frame) is not None
    ):
        yield from (PYTHON,) if interpreted else group


def _frame(found: re.Match[str]) -> str:
    symbol, dso = found["symbol"].strip(), found["dso"]
    kernel = dso.startswith("[") and dso not in ("[unknown]", "[vdso]")
    # A function's parameters say little and take most of the room; semicolons part frames.
    name = (
        re.sub(r"\(.*\)", "", re.sub(r"\+0x[0-9a-f]+$", "", symbol)).replace(";", ":").strip()
        or symbol
    )
    if name == "[unknown]":
        return f"[{dso.rpartition('/')[2].strip('[]')}]"
    return f"{name}{KERNEL}" if kernel else name


def folded(stacks: Sequence[Stack]) -> str:
    """`stacks.folded`."""
    return "".join(f"{';'.join(stack.frames)} {stack.samples}\n" for stack in stacks)


def unfolded(text: str) -> tuple[Stack, ...]:
    """The stacks of a `stacks.folded`. Raises ValueError."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line)
    return tuple(
        Stack(frames=tuple(frames.split(";")), samples=int(count)) for frames, _, count in lines
    )


def unresolved(stacks: Sequence[Stack]) -> int:
    """How many samples have no name where they were taken."""
    return sum(stack.samples for stack in stacks if stack.frames[-1].startswith("["))


def read_profiles(run: Path) -> tuple[Profiled, ...]:
    """The profiles of a run folder, in order of layouts.

    Raises InvalidMeasurement about one that cannot be read.
    """
    found = []
    for path in sorted((run / FOLDER).glob("*/profile.json")):
        stacks = path.with_name("stacks.folded")
        try:
            profile = Profile.model_validate_json(read_whole(path, folder=run))
            sampled = unfolded(read_whole(stacks, folder=run).decode()) if stacks.exists() else ()
            found.append(Profiled(profile=profile, stacks=sampled))
        except OSError as error:
            raise InvalidMeasurement(
                f"{error.filename or path.parent}: {error.strerror}"
            ) from error
        except ValueError as error:
            raise InvalidMeasurement(f"{path.parent}: cannot be read: {error}") from error
    return tuple(found)
