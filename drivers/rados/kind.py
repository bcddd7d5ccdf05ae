"""Ceph's own benchmarks as a DriverKind, and the base of all kinds of tools on a cluster's host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.kind import ClusterSite, DriverKind, LoadSite, OpenedDriver
from weighbridge.drivers.rados.block import RbdBench
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.driver import RadosBench
from weighbridge.drivers.rados.fitness import unfit
from weighbridge.drivers.rados.given_pool import GivenPool
from weighbridge.drivers.rados.tool import ToolDriver
from weighbridge.results.record.driver_traits import DriverTraits
from weighbridge.suites import Api, RadosBenchOptions, Workload


class ToolKind(DriverKind):
    """A driver that runs a tool on a Ceph cluster's host with an admin keyring."""

    mark = ""  # pools have distinct names

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        return unfit(workload, api)

    @abstractmethod
    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> ToolDriver:
        """The driver for the pass's API."""

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[OpenedDriver]:
        """The driver; what it made in the cluster is removed with it."""
        if site.cluster is None:
            raise DriverError(
                f"{site.layout} has no Ceph cluster: {site.load_pass.api} cannot be loaded there"
            )
        cluster = RadosCluster(site.cluster.host, replicas=site.cluster.replicas)
        with self.tool(site, cluster, site.cluster) as tool:
            yield OpenedDriver(tool, tool.versions())
            tool.quit()


class RadosKind(ToolKind):
    """`rados bench` and `rbd bench`."""

    traits = DriverTraits(
        name="rados",
        label="Ceph’s benches",
        tools={"rados-bench": "rados bench", "rbd-bench": "rbd bench"},
        beside_gateway=True,
    )
    layers = ("rados", "rbd")

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[OpenedDriver]:
        """The same; in a pool that is given, what the run made there is removed with it."""
        if site.pool is None:
            with super().opened(site) as ready:
                yield ready
            return
        at = site.pool
        given = GivenPool(at.host, at.pool, namespace=site.prefix, log=site.log)
        with RadosBench(
            given, prefix=site.prefix, log=site.log, settings=_options(site), cpus=at.cpus
        ) as bench:
            yield OpenedDriver(bench, bench.versions())
            bench.quit()

    def tool(self, site: LoadSite, cluster: RadosCluster, at: ClusterSite) -> ToolDriver:
        suite = site.suite
        if site.load_pass.api == "rados":
            return RadosBench(
                cluster, prefix=site.prefix, log=site.log, settings=_options(site), cpus=at.cpus
            )
        return RbdBench(
            cluster, prefix=site.prefix, log=site.log, pg_num=suite.rados.pg_num, cpus=at.cpus
        )


def _options(site: LoadSite) -> RadosBenchOptions:
    return site.load_pass.rados or site.suite.rados


KIND: Final = RadosKind()
