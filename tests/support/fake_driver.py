"""A driver that makes no load: it answers each command at once, with measurements from a seed.

`python -m tests.support.fake_driver [--fail COMMAND] [--end COMMAND] [--hang COMMAND]`: answer that
kind of command with Failed, by exiting, or never; `--fail-prepare-of WORKLOAD`: fail to prepare
that one. The figures are consistent: counts, sums and per-second series add up, and Little's law
holds.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self, TextIO, cast

from hdrh.histogram import HdrHistogram

from weighbridge.drivers.protocol import (
    DRIVER_COMMAND,
    AgeBuckets,
    Aged,
    Cleaned,
    Cleanup,
    DriverCommand,
    Event,
    Failed,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Progress,
    Ready,
    Setup,
    Step,
)
from weighbridge.results.run.step import Load, Measurement, Second, Tally
from weighbridge.suites import Operation, Workload

CAPACITY = 0.9
"""What is served at a rate, relative to the throughput of a closed loop."""
VALUES = 200
"""Distinct latencies of one tally."""
COST = {"read": 1.0, "write": 1.6, "delete": 0.7, "list": 1.2, "head": 0.5}
"""Latency of an operation, relative to a read of the same size."""


def latencies_us(setup: Setup, step: Step, operation: Operation) -> list[int]:
    """`VALUES` lognormal latencies in us: higher above 8 workers, and different for each target."""
    place = random.Random(f"{setup.seed} {setup.api} {setup.target.url}")
    dice = random.Random(
        f"{setup.seed} {setup.target.url} {step.workload.name} {step.workers} {step.repeat} "
        f"{operation}"
    )
    size_bytes = step.workload.objects.mean_bytes if operation in ("read", "write") else 0
    base_us = (
        (2000 + size_bytes / 100)
        * COST.get(operation, 1.0)
        * max(1, step.workers / 8)
        * place.uniform(0.9, 1.1)
    )
    return [max(1, round(base_us * dice.lognormvariate(0, 0.25))) for _ in range(VALUES)]


def tally(
    operation: Operation, count: int, values_us: Sequence[int], workload: Workload
) -> tuple[Tally, tuple[Second, ...]]:
    """`count` successes, spread evenly over the latencies and over the seconds of the window."""
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    times = [count // VALUES + (index < count % VALUES) for index in range(VALUES)]
    for value_us, many in zip(values_us, times, strict=True):
        histogram.record_value(value_us, many)
    happened = values_us if count >= VALUES else values_us[:count]
    moved_bytes = (
        round(count * workload.objects.mean_bytes) if operation in ("read", "write") else 0
    )
    sum_us = sum(value * many for value, many in zip(values_us, times, strict=True))
    coded = histogram.encode().decode()
    parts = max(1, int(workload.runtime))

    def part(total: int, index: int) -> int:
        return total * (index + 1) // parts - total * index // parts

    seconds = tuple(
        Second(
            second=at,
            operation=operation,
            count=part(count, at),
            bytes=part(moved_bytes, at),
            errors=0,
            max_us=max(happened) if at == 0 else sorted(happened)[len(happened) * 9 // 10],
            sum_us=part(sum_us, at),
        )
        for at in range(parts)
    )
    total = Tally(
        operation=operation,
        count=count,
        bytes=moved_bytes,
        latency=coded,
        first_byte=coded if operation == "read" else None,
        min_us=min(happened),
        max_us=max(happened),
        sum_us=sum_us,
    )
    return total, seconds


def measure(setup: Setup, step: Step) -> Measurement:
    """The step as a closed loop would measure it: workers x window = sum of latencies.

    With a rate, `CAPACITY` of a closed loop's throughput is served, and requests queue as at one
    server: latencies are divided by the share of the capacity that is left.
    """
    workload = step.workload
    if workload.rate_per_s is not None:
        return measure_at(setup, step, workload.rate_per_s)
    values = {operation: latencies_us(setup, step, operation) for operation in workload.operations}
    weights = {
        operation: weight / sum(workload.operations.values())
        for operation, weight in workload.operations.items()
    }
    mean_us = sum(weights[operation] * sum(values[operation]) / VALUES for operation in values)
    total = step.workers * workload.runtime * 1e6 / mean_us
    both = [
        tally(operation, max(1, round(total * weights[operation])), values[operation], workload)
        for operation in values
    ]
    return measurement_of(
        step,
        both,
        api=setup.api,
        driver=f"locust-{setup.users}",
        notes=("made up by the fake driver",),
    )


def measure_at(setup: Setup, step: Step, rate_per_s: float) -> Measurement:
    """The step at a rate. Its latencies are those of the first repeat, whatever the step's."""
    workload = step.workload
    first = step.model_copy(update={"repeat": 0})
    values = {operation: latencies_us(setup, first, operation) for operation in workload.operations}
    weights = {
        operation: weight / sum(workload.operations.values())
        for operation, weight in workload.operations.items()
    }
    mean_us = sum(weights[operation] * sum(values[operation]) / VALUES for operation in values)
    capacity_per_s = CAPACITY * step.workers * 1e6 / mean_us
    load = rate_per_s / capacity_per_s
    sent = round(min(rate_per_s, capacity_per_s) * workload.runtime)
    slowed = {
        operation: [
            round(value_us / (1 - load)) if load < 0.999 else 10_000_000 + value_us
            for value_us in mine
        ]
        for operation, mine in values.items()
    }
    both = [
        tally(operation, max(1, round(sent * weights[operation])), slowed[operation], workload)
        for operation in slowed
    ]
    return measurement_of(
        step,
        both,
        api=setup.api,
        driver=f"locust-{setup.users}",
        begun=sent,
        behind_us=0 if load < 1 else 5_000_000,
    )


def measurement_of(
    step: Step, both: Sequence[tuple[Tally, tuple[Second, ...]]], **more: Any
) -> Measurement:
    """A measurement of these tallies and their series; `more` are its other fields."""
    runtime_s = step.workload.runtime
    return Measurement(
        workload=step.workload.name,
        workers=step.workers,
        started_at="2014-11-04T00:00:00Z",
        window_s=runtime_s,
        warmup_s=step.workload.warmup,
        tallies=tuple(total for total, _ in both),
        seconds=tuple(second for _, seconds in both for second in seconds),
        stall_us=max((total.max_us or 0 for total, _ in both), default=0),
        load=Load(cpu_s=0.1 * runtime_s, cpu_limit=1.0, window_s=runtime_s),
        **more,
    )


def answer(setup: Setup | None, command: DriverCommand, say: Callable[[Event], object]) -> Event:
    """The last event of a command; Progress goes to `say` before it."""
    if isinstance(command, Setup):
        return Ready(versions={"fake": "1"})
    if setup is None:
        return Failed(message=f"{command.kind!r} came before 'setup'")
    if isinstance(command, Prepare):
        objects = command.workload.objects.count if command.workload.needs_objects else 0
        say(Progress(phase="prepare", done=objects, total=objects))
        return Prepared(
            objects=objects,
            bytes=round(objects * command.workload.objects.mean_bytes),
            seconds=0.001,
        )
    if isinstance(command, Step):
        total = command.workload.runtime
        for done in (0.25, 0.5, 1.0):
            say(Progress(phase="measure", done=done * total, total=total, operations_per_s=100))
        return Measured(measurement=measure(setup, command))
    if isinstance(command, AgeBuckets):
        bytes_ = round(command.objects * command.age.objects(1).mean_bytes)
        return Aged(
            objects=command.objects,
            bytes=bytes_,
            filled_bytes=bytes_,
            rounds=(),
            seconds=0.001,
            fingerprint="made up",
        )
    if isinstance(command, Cleanup) and command.what == "all":
        return Cleaned(deleted=command.workload.objects.count)
    return Cleaned(deleted=0)


class Answering:
    """A driver with made-up measurements, without its own process."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def _answer(self, order: Any, heard: OnProgress | None) -> Any:
        return answer(
            self.setup,
            order,
            lambda event: None if heard is None else heard(cast("Progress", event)),
        )

    def prepare(self, order: Prepare, heard: OnProgress | None = None) -> Prepared:
        return cast("Prepared", self._answer(order, heard))

    def step(self, order: Step, heard: OnProgress | None = None) -> Measured:
        return cast("Measured", self._answer(order, heard))

    def cleanup(self, order: Cleanup, heard: OnProgress | None = None) -> Cleaned:
        return cast("Cleaned", self._answer(order, heard))

    def quit(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def serve(arguments: Sequence[str], commands: TextIO, events: TextIO) -> int:
    """Answer commands until Quit or end of file; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.fake_driver", description=__doc__
    )
    for flaw in ("--fail", "--end", "--hang"):
        parser.add_argument(flaw, metavar="COMMAND", help="kind of command, such as step")
    parser.add_argument("--fail-prepare-of", metavar="WORKLOAD")
    flaws = parser.parse_args(arguments)

    def say(event: Event) -> None:
        events.write(event.model_dump_json() + "\n")
        events.flush()

    setup: Setup | None = None
    for line in commands:
        command = DRIVER_COMMAND.validate_json(line)
        if command.kind in ("quit", flaws.end):
            return 0 if command.kind == "quit" else 1
        if command.kind == flaws.hang:
            threading.Event().wait()
        setup = command if isinstance(command, Setup) else setup
        event = (
            answer(setup, command, say)
            if command.kind != flaws.fail
            and not (
                isinstance(command, Prepare) and command.workload.name == flaws.fail_prepare_of
            )
            else Failed(message=f"{command.kind!r} fails as asked")
        )
        say(event)
        if isinstance(event, Failed):
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1:], sys.stdin, sys.stdout))
