"""fio on RBD and on CephFS as a DriverKind."""

from __future__ import annotations

from typing import Final

from weighbridge.drivers.fio.tool import FioCephFs, FioRbd
from weighbridge.drivers.kind import ClusterSite, LoadSite
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.kind import ToolKind
from weighbridge.drivers.rados.tool import ToolDriver
from weighbridge.results.run.step import DriverTraits


class FioKind(ToolKind):
    """fio by its rbd engine, and on files of a mount by ceph-fuse."""

    traits = DriverTraits(name="fio", label="fio", tools={"fio-rbd": "fio"}, beside_gateway=True)
    layers = ("rbd", "cephfs")
    rank = 1
    runs_tools = True

    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> ToolDriver:
        pg_num = site.suite.rados.pg_num
        if site.load_pass.api == "cephfs":
            return FioCephFs(cluster, at.mon, prefix=site.prefix, log=site.log, pg_num=pg_num)
        return FioRbd(cluster, prefix=site.prefix, log=site.log, pg_num=pg_num, cpus=at.cpus)


KIND: Final = FioKind()
