"""A profile of a step: CPU samples of its daemons as folded stacks, and what one disk was asked.

Each has its own folder below `profile/` of the run folder: `profile.json`, `stacks.folded` (one
stack a line from root to leaf, separated by semicolons, and a count, as Brendan Gregg's tools have
it), and `disk.csv`.
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
from weighbridge.results.record.reading import read_bounded
from weighbridge.suites import Suite

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
    """`profile.json`. `event` and the fields after it are None if no stacks were taken; `remarks`
    say why.
    """

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
        raise UsageError(
            f"--perf {text!r} is not WORKLOAD:WORKERS", advice="Write --perf small-read:16."
        )
    workload = next((one for one in suite.workloads if one.name == name), None)
    if workload is None:
        known = [one.name for one in suite.workloads]
        advice = f"Its workloads are {', '.join(known)}."
        raise UsageError(
            f"--perf: {suite.name} has no workload {name!r}{did_you_mean(name, known)}",
            advice=advice,
        )
    if int(count) not in workload.workers:
        steps = ", ".join(map(str, workload.workers))
        raise UsageError(
            f"--perf: {name} has no step with {count} workers",
            advice=f"Its steps are {steps}.",
        )
    return Chosen(workload=name, workers=int(count))


def fold(script: str, programs: Mapping[int, ProfiledProgram]) -> tuple[Stack, ...]:
    """The stacks in output of `perf script -F comm,pid,tid,time,ip,sym,dso`, most samples first.

    `programs` are by process id; other processes are left out. A stack begins with kind, program
    and thread.
    """
    counted: Counter[tuple[str, ...]] = Counter()
    for block in script.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        head = _HEAD.match(lines[0]) if lines else None
        if head is None:
            continue
        program = programs.get(int(head["pid"]))
        if program is None:
            continue
        frames = [_frame(found) for line in lines[1:] if (found := _FRAME.match(line))]
        # Threads that differ only by a number do the same; one named like its program adds nothing.
        thread = _NUMBERED.sub("", head["comm"])
        named = (
            (program.name,) if thread == _NUMBERED.sub("", program.name) else (program.name, thread)
        )
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
