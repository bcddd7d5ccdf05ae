"""RBD: `rbd bench` on one image, in a separate pool.

`rbd bench` runs until a number of bytes is done, not for a time, and prints no latencies. It gets
more bytes than it can do and is watched: each second it prints the number of operations so far. The
window is from the first such line after the warm-up to the first one after the runtime, by its
host's clock; then it is ended.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    DriverFailure,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Progress,
    Step,
)
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import (
    FILL_S,
    GRACE_S,
    AdminToolDriver,
    now,
    object_bytes,
    one_operation,
)
from weighbridge.results.run.step import Measurement, Tally
from weighbridge.suites import Workload

# An image has no cache (`rbd_cache` is off) and no features but layering: every operation goes to
# the OSDs, and a killed tool leaves no lock. It is written completely first, so that no step
# allocates space.


OBJECT_BYTES: Final = 4 * 2**20
"""Size of an image's objects, by default; image sizes are multiples of it."""
_FILLERS: Final = 4


@dataclass(frozen=True)
class RbdImage:
    """An image with its size."""

    pool: str
    name: str
    size_bytes: int

    @property
    def path(self) -> str:
        return f"{self.pool}/{self.name}"


def make_image(cluster: RadosCluster, image: RbdImage) -> None:
    """Make an image without a cache and without locks. Raises CommandFailed."""
    size = f"{image.size_bytes // 2**20}M"
    cluster.machine.run(
        ["rbd", "create", "--size", size, "--image-feature", "layering", image.path]
    )
    cluster.machine.run(["rbd", "config", "image", "set", image.path, "rbd_cache", "false"])


def image_of(workload: Workload, pool: str) -> RbdImage:
    """An image for all objects of a workload, of complete objects for each of its first writers."""
    unit = OBJECT_BYTES * _FILLERS
    size_bytes = -(-workload.objects.count * object_bytes(workload) // unit) * unit
    return RbdImage(pool, workload.name, size_bytes)


def fill_argv(image: RbdImage) -> tuple[str, ...]:
    """The command that writes a complete image."""
    words = ["--io-type", "write", "--io-pattern", "seq", "--io-size", str(OBJECT_BYTES)]
    words += ["--io-threads", str(_FILLERS), "--io-total", str(image.size_bytes)]
    return ("rbd", "bench", *words, image.path)


class ImageDriver(AdminToolDriver):
    """A driver whose tool uses an image for each workload; `pg_num` is their pool's."""

    mark: ClassVar[str]
    """The end of its pool's name."""

    def __init__(
        self,
        cluster: RadosCluster,
        *,
        prefix: str,
        log: Path,
        pg_num: int = 32,
        cpus: float | None = None,
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self._pg_num = pg_num
        self._images: dict[str, RbdImage] = {}

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        began = time.monotonic()
        workload = command.workload
        if workload.name in self._images:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        pool = f"{self.prefix}-{self.mark}"
        self.cluster.make_pools({pool: self._pg_num}, "rbd")
        image = image_of(workload, pool)
        make_image(self.cluster, image)
        self._images[workload.name] = image
        ran = self.run([fill_argv(image)], "prepare", on_progress, total_s=FILL_S)
        return Prepared(
            objects=1,
            bytes=image.size_bytes,
            seconds=time.monotonic() - began,
            kept=kept_of(ran, "rbd-bench"),
        )

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """A step overwrites data; `all` removes the image, and with the last one the pool."""
        if command.what == "written" or command.workload.name not in self._images:
            return Cleaned(deleted=0)
        del self._images[command.workload.name]
        if not self._images:
            self.cluster.remove_made()
        return Cleaned(deleted=1)


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
    if len(lines) < 2 or lines[-1].seconds <= lines[-2].seconds:
        return 0.0
    before, last = lines[-2:]
    return max(0.0, (last.count - before.count) / (last.seconds - before.seconds))
