"""RBD by fio's rbd engine, on the same kind of image as `rbd bench`: without a cache, completely
written first.

fio uses the librbd of the tools' image (16.2), the same client for all releases of clusters.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.drivers.fio.tool import FioDriver
from weighbridge.drivers.rados.image import ImageDriver
from weighbridge.suites import Workload


class FioRbd(ImageDriver, FioDriver):
    """The driver of RBD by fio. A worker is an outstanding request: all come from one client."""

    api = "rbd"
    driver_name = "fio-rbd"
    mark = "fio"

    def versions(self) -> Mapping[str, str]:
        how = (
            "engine rbd with the librbd of the tools' image, image without cache, completely "
            "written first"
        )
        return {"fio on rbd": f"{self.fio()}, {how}; the cluster: {self.cluster.version()}"}

    def is_prepared(self, workload: Workload) -> bool:
        return workload.name in self._images

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        image = self._images[workload.name]
        where = (
            "--ioengine=rbd",
            "--clientname=admin",
            f"--pool={image.pool}",
            f"--rbdname={image.name}",
        )
        return (*where, f"--iodepth={workers}")
