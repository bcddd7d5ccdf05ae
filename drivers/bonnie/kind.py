"""bonnie++ on CephFS as a DriverKind."""

from __future__ import annotations

from typing import Final

from weighbridge.drivers.bonnie.driver import BonnieCephFs
from weighbridge.drivers.kind import ClusterSite, LoadSite
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.kind import ToolKind, one_by_one
from weighbridge.drivers.rados.tool import ToolDriver
from weighbridge.results.run.step import DriverTraits
from weighbridge.suites import Api, Workload

SMALLEST_BYTES: Final = 512
"""A block of direct I/O; bonnie++ itself takes 256 bytes."""
LARGEST_BYTES: Final = 2**20


class BonnieKind(ToolKind):
    """bonnie++, for studies that name it: no layer is measured with it otherwise."""

    traits = DriverTraits(name="bonnie", label="bonnie++", beside_gateway=True)
    runs_tools = True

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        found = [*one_by_one(workload, "bonnie++")]
        if api != "cephfs":
            found.append(
                f"bonnie++ needs a file system, which {api} does not have without the kernel’s "
                "rbd or nbd"
            )
        size = workload.objects.largest_bytes
        if not SMALLEST_BYTES <= size <= LARGEST_BYTES or size & (size - 1):
            found.append("bonnie++ needs blocks of a power of two, from 512 B to 1 MiB")
        elif workload.objects.count * size % 2**20:
            found.append("bonnie++ needs files of whole MiB")
        return tuple(found)

    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> ToolDriver:
        pg_num = site.suite.rados.pg_num
        return BonnieCephFs(cluster, at.mon, prefix=site.prefix, log=site.log, pg_num=pg_num)


KIND: Final = BonnieKind()
