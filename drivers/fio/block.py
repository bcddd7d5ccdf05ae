"""RBD by fio's rbd engine, on the same kind of image as `rbd bench` works on: without a cache, and
written whole first.

fio's librbd is the tools' own (16.2), whatever release the cluster is of: the same client for all
of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.drivers.fio.tool import FioTool
from weighbridge.drivers.rados.image import OnImages
from weighbridge.suites import Workload


class FioRbd(OnImages, FioTool):
    """The driver. A worker is a request in hand: they all come from one client."""

    api = "rbd"
    named = "fio-rbd"
    mark = "fio"

    def versions(self) -> Mapping[str, str]:
        """Of fio and of the cluster."""
        how = (
            "engine rbd with the librbd of the tools' image, image without cache, written whole "
            "first"
        )
        return {"fio on rbd": f"{self.fio()}, {how}; the cluster: {self.cluster.version()}"}

    def ready(self, workload: Workload) -> bool:
        """Whether there is an image for it."""
        return workload.name in self._images

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        """The image, with so many requests in hand."""
        image = self._images[workload.name]
        where = (
            "--ioengine=rbd",
            "--clientname=admin",
            f"--pool={image.pool}",
            f"--rbdname={image.name}",
        )
        return (*where, f"--iodepth={workers}")
