"""RBD images for drivers, each driver's in a separate pool.

An image has no cache (`rbd_cache` is off) and no features but layering: every operation goes to the
OSDs, and a killed tool leaves no lock. It is written completely first, so that no step allocates
space.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.drivers.driver import OnProgress
from weighbridge.drivers.protocol import Cleaned, Cleanup, Prepare, Prepared
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import kept_of
from weighbridge.drivers.rados.tool import FILL_S, AdminToolDriver, object_bytes
from weighbridge.suites import Workload

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
        """Its name for Ceph's tools."""
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
        """Do nothing after a step, which overwrites data; for `all` remove the image, and with the
        last one the pool.
        """
        if command.what == "written" or command.workload.name not in self._images:
            return Cleaned(deleted=0)
        del self._images[command.workload.name]
        if not self._images:
            self.cluster.remove_made()
        return Cleaned(deleted=1)
