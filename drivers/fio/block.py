"""RBD by fio's rbd engine, on the same kind of image as `rbd bench` works on: without a cache, and written whole first.

fio's librbd is the tools' own (16.2), whatever release the cluster is of: the same client for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from drivers.driver import Heard
from drivers.fio.tool import FioTool
from drivers.order import Cleaned, Cleanup, Prepare, Prepared
from drivers.rados.block import Image, fill_argv, image_of, make_image
from drivers.rados.cluster import Cluster
from drivers.rados.crew import kept_of
from drivers.rados.tool import FILL_S
from suites import Workload


class FioRbd(FioTool):
    """The driver; `pg_num` placement groups for its pool. A worker is a request in hand: they all come from one client."""

    api = "rbd"
    named = "fio-rbd"

    def __init__(self, cluster: Cluster, *, prefix: str, log: Path, pg_num: int = 32, cpus: float | None = None) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self._pg_num = pg_num
        self._images: dict[str, Image] = {}

    def versions(self) -> Mapping[str, str]:
        """Of fio and of the cluster."""
        how = "engine rbd with the librbd of the tools' image, image without cache, written whole first"
        return {"fio on rbd": f"{self.fio()}, {how}; the cluster: {self.cluster.version()}"}

    def ready(self, workload: Workload) -> bool:
        """Whether there is an image for it."""
        return workload.name in self._images

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        """The image, with so many requests in hand."""
        image = self._images[workload.name]
        where = ("--ioengine=rbd", "--clientname=admin", f"--pool={image.pool}", f"--rbdname={image.name}")
        return (*where, f"--iodepth={workers}")

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make the pool and an image that all objects fit in, and write it whole."""
        began = time.monotonic()
        workload = order.workload
        if workload.name in self._images:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        pool = f"{self.prefix}-fio"
        self.cluster.make_pools({pool: self._pg_num}, "rbd")
        image = image_of(workload, pool)
        make_image(self.cluster, image)
        self._images[workload.name] = image
        ran = self.run([fill_argv(image)], "prepare", heard, total_s=FILL_S)
        return Prepared(objects=1, bytes=image.size_bytes, seconds=time.monotonic() - began, kept=kept_of(ran, "rbd-bench"))

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Nothing after a step, which overwrites what is there; for `all` the image goes, and the pool with the last one."""
        if order.what == "written" or order.workload.name not in self._images:
            return Cleaned(deleted=0)
        del self._images[order.workload.name]
        if not self._images:
            self.cluster.remove_pools()
        return Cleaned(deleted=1)
