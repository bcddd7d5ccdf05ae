"""RBD: `rbd bench` on one image, in a separate pool.

`rbd bench` runs until a number of bytes is done, not for a time, and prints no latencies. It gets
more bytes than it can do and is watched: each second it prints the number of operations so far. The
window is from the first such line after the warm-up to the first one after the runtime, by its
host's clock; then it is ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.driver import DriverFailure, OnProgress
from weighbridge.drivers.protocol import Measured, Progress, Step
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.image import ImageDriver
from weighbridge.drivers.rados.tool import GRACE_S, now, object_bytes, one_operation
from weighbridge.results.record.measurement import Measurement, Tally

_ENDLESS_BYTES: Final = 2**50
_PATTERNS: Final[Mapping[str, str]] = {"sequential": "seq", "uniform": "rand"}
_LINE: Final = re.compile(r"^\s*[0-9]+\s+([0-9]{1,18})\s+[0-9.e+-]+\s")
"""`    1      1248      1251    78 MiB/s`; in 14.2 the last column has no unit."""


@dataclass(frozen=True)
class BlockProgress:
    """The number of operations so far, at a time after the start."""

    seconds: float
    count: int


def progress_lines(ran: CommandOutput) -> list[BlockProgress]:
    """What `rbd bench` printed each second, with the time."""
    return [
        BlockProgress(seconds, int(found[1]))
        for seconds, line in ran.lines
        if (found := _LINE.match(line))
    ]


def window(
    lines: Sequence[BlockProgress], warmup_s: float, runtime_s: float
) -> tuple[BlockProgress, BlockProgress] | None:
    """The ends of the window: the first line after the warm-up, and the first one at least the
    runtime later; None while one is missing.

    Raises DriverError when there are fewer operations at the second one than at the first.
    """
    first = next((one for one in lines if one.seconds >= warmup_s), None)
    if first is None:
        return None
    last = next((one for one in lines if one.seconds >= first.seconds + runtime_s), None)
    if last is not None and last.count < first.count:
        raise DriverError(
            f"rbd bench: its output is wrong: {first.count} operations, and {last.count} later"
        )
    return None if last is None else (first, last)


class RbdBench(ImageDriver):
    """The rbd bench driver."""

    mark = "rbd"

    def versions(self) -> Mapping[str, str]:
        settings = "image without cache, completely written first"
        return {"rbd bench": f"{self.cluster.version()}; {settings}"}

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        workload = command.workload
        operation = one_operation(workload)
        if workload.name not in self._images:
            raise DriverError(f"{workload.name} was not prepared")
        size = object_bytes(workload)
        words = ["--io-type", operation, "--io-pattern", _PATTERNS[str(workload.pick)]]
        words += ["--io-size", str(size), "--io-threads", str(command.workers)]
        words += ["--io-total", str(_ENDLESS_BYTES)]
        # Without stdbuf, rbd of 14.2 would buffer its lines until it ends.
        argv = ("stdbuf", "-oL", "rbd", "bench", *words, self._images[workload.name].path)
        warmup_s, runtime_s = workload.warmup, workload.runtime

        def tick(seconds: float, ran: Sequence[CommandOutput]) -> bool:
            lines = progress_lines(ran[0])
            if on_progress is not None:
                rate = _rate(lines)
                in_window = seconds > warmup_s
                total = runtime_s if in_window else warmup_s
                on_progress(
                    Progress(
                        phase="measure" if in_window else "warm-up",
                        done=min(seconds - warmup_s if in_window else seconds, total),
                        total=total,
                        operations_per_s=rate,
                        bytes_per_s=rate * size,
                    )
                )
            return window(lines, warmup_s, runtime_s) is not None

        started_at = now()
        ran = self.commands.run([argv], tick, within_s=warmup_s + runtime_s + GRACE_S)
        ends = window(progress_lines(ran[0]), warmup_s, runtime_s)
        kept = kept_of(ran, "rbd-bench")
        if ends is None:
            raise DriverFailure(
                f"{self.machine.name}: rbd bench ended too early: {ran[0].text[-300:]!r}",
                kept=kept,
            )
        first, last = ends
        count = last.count - first.count
        measurement = Measurement(
            api="rbd",
            workload=workload.name,
            workers=command.workers,
            driver="rbd-bench",
            started_at=started_at,
            window_s=last.seconds - first.seconds,
            warmup_s=first.seconds,
            # Latencies are unknown, rather than what Little's law would make of the rate.
            tallies=(
                Tally(
                    operation=operation,
                    count=count,
                    bytes=count * size,
                    sum_us=None if count else 0,
                ),
            ),
            load=self.load(ran),
        )
        return Measured(measurement=measurement, kept=kept)


def _rate(lines: Sequence[BlockProgress]) -> float:
    """Operations a second between the last two lines."""
    if len(lines) < 2 or lines[-1].seconds <= lines[-2].seconds:
        return 0.0
    before, last = lines[-2:]
    return max(0.0, (last.count - before.count) / (last.seconds - before.seconds))
