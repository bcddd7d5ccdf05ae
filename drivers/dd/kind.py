"""dd on RBD and on CephFS as a DriverKind."""

from __future__ import annotations

from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.drivers.dd.driver import DdCephFs, DdRbd
from weighbridge.drivers.kind import ClusterSite, LoadSite
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.kind import ToolKind, one_by_one
from weighbridge.drivers.rados.tool import ToolDriver
from weighbridge.results.run.step import DriverTraits
from weighbridge.suites import Api, Workload

MOST_BYTES: Final = 2**30
"""Linux moves no more than 2 GiB at once; dd has all of a block in memory."""


class DdKind(ToolKind):
    """dd, for studies that name it: no layer is measured with it otherwise."""

    traits = DriverTraits(name="dd", label="dd", beside_gateway=True)
    runs_tools = True

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        found = [*one_by_one(workload, "dd")]
        if workload.objects.largest_bytes > MOST_BYTES:
            found.append(f"dd moves no more than {show_bytes(MOST_BYTES)} at once")
        return tuple(found)

    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> ToolDriver:
        pg_num = site.suite.rados.pg_num
        if site.load_pass.api == "cephfs":
            return DdCephFs(cluster, at.mon, prefix=site.prefix, log=site.log, pg_num=pg_num)
        return DdRbd(cluster, prefix=site.prefix, log=site.log, pg_num=pg_num, cpus=at.cpus)


KIND: Final = DdKind()
