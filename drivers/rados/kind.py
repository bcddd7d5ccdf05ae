"""What the suite knows of Ceph's own benches, and of what else runs as a tool on a host of a Ceph
cluster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.kind import ClusterSite, DriverKind, LoadSite, Opened
from weighbridge.drivers.rados.block import RbdBench
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.driver import RadosBench
from weighbridge.drivers.rados.fitness import unfit
from weighbridge.drivers.rados.tool import Tool
from weighbridge.results.record.driver_traits import DriverTraits
from weighbridge.suites import Api, Workload


class ClusterTool(DriverKind):
    """A driver that runs a tool on the host of a Ceph cluster that has its keys."""

    mark = ""  # pools have names of their own

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """See fitness."""
        return unfit(workload, api)

    @abstractmethod
    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> Tool:
        """The driver for the API of the pass."""

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[Opened]:
        """The driver; what it made in the cluster is taken away with it."""
        if site.cluster is None:
            raise DriverError(
                f"{site.layout} has no Ceph cluster below it: nothing makes load of "
                f"{site.way.api} there"
            )
        cluster = RadosCluster(site.cluster.host, replicas=site.cluster.replicas)
        with self.tool(site, cluster, site.cluster) as tool:
            yield Opened(tool, tool.versions())
            tool.quit()


class RadosKind(ClusterTool):
    """`rados bench` and `rbd bench`."""

    traits = DriverTraits(
        name="rados",
        label="Ceph’s benches",
        tools={"rados-bench": "rados bench", "rbd-bench": "rbd bench"},
        beside_gateway=True,
    )
    layers = ("rados", "rbd")

    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> Tool:
        """The bench of objects, or that of images."""
        suite = site.suite
        if site.way.api == "rados":
            settings = site.way.rados or suite.rados
            return RadosBench(
                cluster, prefix=site.prefix, log=site.log, settings=settings, cpus=at.cpus
            )
        return RbdBench(
            cluster, prefix=site.prefix, log=site.log, pg_num=suite.rados.pg_num, cpus=at.cpus
        )


KIND: Final = RadosKind()
