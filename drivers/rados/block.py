"""RBD as what is weighed: `rbd bench` on one image, in a pool of its own.

`rbd bench` works until a number of bytes is done, not for a time, and tells no latencies. It is
given more bytes than it can do and watched: each second it prints how many operations there have
been. The window is from the first such line after the warm-up to the first one after the runtime,
by the clock of its host, and then it is ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.driver import GaveUp, Heard
from weighbridge.drivers.order import Measured, Progress, Step
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.image import OnImages
from weighbridge.drivers.rados.tool import GRACE_S, now, object_bytes, one_operation
from weighbridge.results.record.measurement import Measurement, Tally

_ENDLESS_BYTES: Final = 2**50
_PATTERNS: Final[Mapping[str, str]] = {"sequential": "seq", "uniform": "rand"}
_LINE: Final = re.compile(r"^\s*[0-9]+\s+([0-9]{1,18})\s+[0-9.e+-]+\s")
"""`    1      1248      1251    78 MiB/s`; in 14.2 the last column has no unit."""


@dataclass(frozen=True)
class BlockProgress:
    """So many operations had been done so long after the start."""

    seconds: float
    count: int


def marks(ran: CommandOutput) -> list[BlockProgress]:
    """What `rbd bench` printed each second, with when it did."""
    return [
        BlockProgress(seconds, int(found[1]))
        for seconds, line in ran.lines
        if (found := _LINE.match(line))
    ]


def window(
    marked: Sequence[BlockProgress], warmup_s: float, runtime_s: float
) -> tuple[BlockProgress, BlockProgress] | None:
    """Its two ends: the first mark after the warm-up, and the first one at least the runtime later;
    None where they are not yet.

    Raises DriverError when there are fewer operations at the second one than at the first.
    """
    began = next((one for one in marked if one.seconds >= warmup_s), None)
    if began is None:
        return None
    ended = next((one for one in marked if one.seconds >= began.seconds + runtime_s), None)
    if ended is not None and ended.count < began.count:
        raise DriverError(
            f"rbd bench: it had done {began.count} operations, and {ended.count} later: its lines "
            "cannot be believed"
        )
    return None if ended is None else (began, ended)


class RbdBench(OnImages):
    """The driver."""

    mark = "rbd"

    def versions(self) -> Mapping[str, str]:
        """Ceph's release, and how it is run."""
        return {"rbd bench": f"{self.cluster.version()}; image without cache, written whole first"}

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Run it through warm-up and window, and end it."""
        workload = order.workload
        operation = one_operation(workload)
        if workload.name not in self._images:
            raise DriverError(f"{workload.name} was not prepared")
        size = object_bytes(workload)
        words = [
            "--io-type",
            operation,
            "--io-pattern",
            _PATTERNS[str(workload.pick)],
            "--io-size",
            str(size),
        ]
        words += ["--io-threads", str(order.workers), "--io-total", str(_ENDLESS_BYTES)]
        # Without stdbuf, rbd of 14.2 would keep its lines to itself until it ends.
        command = ("stdbuf", "-oL", "rbd", "bench", *words, self._images[workload.name].path)
        warmup_s, runtime_s = workload.warmup, workload.runtime

        def tick(seconds: float, ran: Sequence[CommandOutput]) -> bool:
            marked = marks(ran[0])
            if heard is not None:
                phase = "measure" if seconds > warmup_s else "warm-up"
                done = seconds - warmup_s if phase == "measure" else seconds
                total = runtime_s if phase == "measure" else warmup_s
                rate = _rate(marked)
                rates = {"operations_per_s": rate, "bytes_per_s": rate * size}
                heard(
                    Progress.model_validate(
                        {"phase": phase, "done": min(done, total), "total": total, **rates}
                    )
                )
            return window(marked, warmup_s, runtime_s) is not None

        started_at = now()
        ran = self.crew.run([command], tick, within_s=warmup_s + runtime_s + GRACE_S)
        ends = window(marks(ran[0]), warmup_s, runtime_s)
        kept = kept_of(ran, "rbd-bench")
        if ends is None:
            raise GaveUp(
                f"{self.machine.name}: rbd bench ended before its time: {ran[0].text[-300:]!r}",
                kept=kept,
            )
        began, ended = ends
        count = ended.count - began.count
        measurement = Measurement(
            api="rbd",
            workload=workload.name,
            workers=order.workers,
            driver="rbd-bench",
            started_at=started_at,
            window_s=ended.seconds - began.seconds,
            warmup_s=began.seconds,
            # It tells no latency: unknown, and not what Little's law would make of the rate.
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


def _rate(marked: Sequence[BlockProgress]) -> float:
    """Operations a second between the last two marks."""
    if len(marked) < 2:
        return 0.0
    before, last = marked[-2:]
    return (
        max(0.0, (last.count - before.count) / (last.seconds - before.seconds))
        if last.seconds > before.seconds
        else 0.0
    )
