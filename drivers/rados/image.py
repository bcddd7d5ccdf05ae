"""Images of RBD that drivers work on, each in a pool of its own.

An image has no cache (`rbd_cache` is off) and no features but layering: every operation goes to the
OSDs, and a tool that was ended leaves no lock. It is written whole first, so that no step is about
making room.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.drivers.driver import Heard
from weighbridge.drivers.order import Cleaned, Cleanup, Prepare, Prepared
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import kept_of
from weighbridge.drivers.rados.tool import FILL_S, Tool, object_bytes
from weighbridge.suites import Workload

OBJECT_BYTES: Final = 4 * 2**20
"""What images are cut into, by default: an image is a multiple of it."""
_FILLERS: Final = 4


@dataclass(frozen=True)
class RbdImage:
    """An image, and how large it is."""

    pool: str
    name: str
    size_bytes: int

    @property
    def path(self) -> str:
        """As Ceph's tools name it."""
        return f"{self.pool}/{self.name}"


def make_image(cluster: RadosCluster, image: RbdImage) -> None:
    """Make an image without a cache and without locks. Raises CommandFailed."""
    size = f"{image.size_bytes // 2**20}M"
    cluster.machine.run(
        ["rbd", "create", "--size", size, "--image-feature", "layering", image.path]
    )
    cluster.machine.run(["rbd", "config", "image", "set", image.path, "rbd_cache", "false"])


def image_of(workload: Workload, pool: str) -> RbdImage:
    """An image that all objects of a workload fit in, made of whole objects for each of those that
    write it at first.
    """
    unit = OBJECT_BYTES * _FILLERS
    size_bytes = -(-workload.objects.count * object_bytes(workload) // unit) * unit
    return RbdImage(pool, workload.name, size_bytes)


def fill_argv(image: RbdImage) -> tuple[str, ...]:
    """The command that writes a whole image."""
    words = [
        "--io-type",
        "write",
        "--io-pattern",
        "seq",
        "--io-size",
        str(OBJECT_BYTES),
        "--io-threads",
        str(_FILLERS),
    ]
    return ("rbd", "bench", *words, "--io-total", str(image.size_bytes), image.path)


class OnImages(Tool):
    """A driver whose tool works on an image for each workload; `pg_num` placement groups for their
    pool.
    """

    mark: ClassVar[str]
    """What the name of its pool ends with."""

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

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make the pool and an image that all objects fit in, and write it whole."""
        began = time.monotonic()
        workload = order.workload
        if workload.name in self._images:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        pool = f"{self.prefix}-{self.mark}"
        self.cluster.make_pools({pool: self._pg_num}, "rbd")
        image = image_of(workload, pool)
        make_image(self.cluster, image)
        self._images[workload.name] = image
        ran = self.run([fill_argv(image)], "prepare", heard, total_s=FILL_S)
        return Prepared(
            objects=1,
            bytes=image.size_bytes,
            seconds=time.monotonic() - began,
            kept=kept_of(ran, "rbd-bench"),
        )

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Nothing after a step, which overwrites what is there; for `all` the image goes, and the
        pool with the last one.
        """
        if order.what == "written" or order.workload.name not in self._images:
            return Cleaned(deleted=0)
        del self._images[order.workload.name]
        if not self._images:
            self.cluster.remove_pools()
        return Cleaned(deleted=1)
