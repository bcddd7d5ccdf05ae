"""RBD as what is weighed: `rbd bench` on one image, in a pool of its own.

`rbd bench` works until a number of bytes is done, not for a time, and tells no latencies. It is given more bytes than it can do
and watched: each second it prints how many operations there have been. The window is from the first such line after the
warm-up to the first one after the runtime, by the clock of its host, and then it is ended.

The image has no cache (`rbd_cache` is off) and no features but layering: every operation goes to the OSDs, and one that was
ended leaves no lock. It is written whole first, so that no step is about making room.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drivers.driver import GaveUp, Heard
from drivers.order import Cleaned, Cleanup, Measured, Prepare, Prepared, Progress, Step
from drivers.rados.cluster import Cluster
from drivers.rados.crew import Ran, kept_of
from drivers.rados.tool import FILL_S, GRACE_S, Tool, now, object_bytes, one_operation
from ground.errors import DriverError
from results.measurement import Measurement, Tally
from suites import Workload

OBJECT_BYTES: Final = 4 * 2**20
"""What images are cut into, by default: an image is a multiple of it."""
_FILLERS: Final = 4
_ENDLESS_BYTES: Final = 2**50
_PATTERNS: Final[Mapping[str, str]] = {"sequential": "seq", "uniform": "rand"}
_LINE: Final = re.compile(r"^\s*\d+\s+(\d+)\s+[0-9.e+-]+\s")
"""`    1      1248      1251    78 MiB/s`; in 14.2 the last column has no unit."""


@dataclass(frozen=True)
class Mark:
    """So many operations had been done so long after the start."""

    seconds: float
    count: int


@dataclass(frozen=True)
class Image:
    """An image, and how large it is."""

    pool: str
    name: str
    size_bytes: int

    @property
    def path(self) -> str:
        """As Ceph's tools name it."""
        return f"{self.pool}/{self.name}"


def make_image(cluster: Cluster, image: Image) -> None:
    """Make an image without a cache and without locks. Raises CommandFailed."""
    size = f"{image.size_bytes // 2**20}M"
    cluster.machine.run(["rbd", "create", "--size", size, "--image-feature", "layering", image.path])
    cluster.machine.run(["rbd", "config", "image", "set", image.path, "rbd_cache", "false"])


def image_of(workload: Workload, pool: str) -> Image:
    """An image that all objects of a workload fit in, made of whole objects for each of those that write it at first."""
    unit = OBJECT_BYTES * _FILLERS
    size_bytes = -(-workload.objects.count * object_bytes(workload) // unit) * unit
    return Image(pool, workload.name, size_bytes)


def fill_argv(image: Image) -> tuple[str, ...]:
    """The command that writes a whole image."""
    words = ["--io-type", "write", "--io-pattern", "seq", "--io-size", str(OBJECT_BYTES), "--io-threads", str(_FILLERS)]
    return ("rbd", "bench", *words, "--io-total", str(image.size_bytes), image.path)


def marks(ran: Ran) -> list[Mark]:
    """What `rbd bench` printed each second, with when it did."""
    return [Mark(seconds, int(found[1])) for seconds, line in ran.lines if (found := _LINE.match(line))]


def window(marked: Sequence[Mark], warmup_s: float, runtime_s: float) -> tuple[Mark, Mark] | None:
    """Its two ends: the first mark after the warm-up, and the first one at least the runtime later; None where they are not yet."""
    began = next((one for one in marked if one.seconds >= warmup_s), None)
    if began is None:
        return None
    ended = next((one for one in marked if one.seconds >= began.seconds + runtime_s), None)
    return None if ended is None else (began, ended)


class RbdBench(Tool):
    """The driver; `pg_num` placement groups for its pool."""

    def __init__(self, cluster: Cluster, *, prefix: str, log: Path, pg_num: int = 32, cpus: float | None = None) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self._pg_num = pg_num
        self._images: dict[str, Image] = {}

    def versions(self) -> Mapping[str, str]:
        """Ceph's release, and how it is run."""
        return {"rbd bench": f"{self.cluster.version()}; image without cache, written whole first"}

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make the pool and an image that all objects fit in, and write it whole."""
        began = time.monotonic()
        workload = order.workload
        if workload.name in self._images:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        pool = f"{self.prefix}-rbd"
        self.cluster.make_pools({pool: self._pg_num}, "rbd")
        image = image_of(workload, pool)
        make_image(self.cluster, image)
        self._images[workload.name] = image
        ran = self.run([fill_argv(image)], "prepare", heard, total_s=FILL_S)
        return Prepared(objects=1, bytes=image.size_bytes, seconds=time.monotonic() - began, kept=kept_of(ran, "rbd-bench"))

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Run it through warm-up and window, and end it."""
        workload = order.workload
        operation = one_operation(workload)
        if workload.name not in self._images:
            raise DriverError(f"{workload.name} was not prepared")
        size = object_bytes(workload)
        words = ["--io-type", operation, "--io-pattern", _PATTERNS[str(workload.pick)], "--io-size", str(size)]
        words += ["--io-threads", str(order.workers), "--io-total", str(_ENDLESS_BYTES)]
        # Without stdbuf, rbd of 14.2 would keep its lines to itself until it ends.
        command = ("stdbuf", "-oL", "rbd", "bench", *words, self._images[workload.name].path)
        warmup_s, runtime_s = workload.warmup, workload.runtime

        def tick(seconds: float, ran: Sequence[Ran]) -> bool:
            marked = marks(ran[0])
            if heard is not None:
                phase = "measure" if seconds > warmup_s else "warm-up"
                done = seconds - warmup_s if phase == "measure" else seconds
                total = runtime_s if phase == "measure" else warmup_s
                rate = _rate(marked)
                rates = {"operations_per_s": rate, "bytes_per_s": rate * size}
                heard(Progress.model_validate({"phase": phase, "done": min(done, total), "total": total, **rates}))
            return window(marked, warmup_s, runtime_s) is not None

        started_at = now()
        ran = self.crew.run([command], tick, within_s=warmup_s + runtime_s + GRACE_S)
        ends = window(marks(ran[0]), warmup_s, runtime_s)
        kept = kept_of(ran, "rbd-bench")
        if ends is None:
            raise GaveUp(f"{self.machine.name}: rbd bench ended before its time: {ran[0].text[-300:]!r}", kept=kept)
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
            tallies=(Tally(operation=operation, count=count, bytes=count * size, sum_us=None if count else 0),),
            load=self.load(ran),
        )
        return Measured(measurement=measurement, kept=kept)

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Nothing after a step, which overwrites what is there; for `all` the image goes, and the pool with the last one."""
        if order.what == "written" or order.workload.name not in self._images:
            return Cleaned(deleted=0)
        del self._images[order.workload.name]
        if not self._images:
            self.cluster.remove_pools()
        return Cleaned(deleted=1)


def _rate(marked: Sequence[Mark]) -> float:
    """Operations a second between the last two marks."""
    if len(marked) < 2:
        return 0.0
    before, last = marked[-2:]
    return max(0.0, (last.count - before.count) / (last.seconds - before.seconds)) if last.seconds > before.seconds else 0.0
