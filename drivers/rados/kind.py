"""Ceph's own benchmarks as a DriverKind, and the base of all kinds of tools on a cluster's host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.common.quantities import show_bytes
from weighbridge.drivers.kind import ClusterSite, DriverKind, LoadSite, OpenedDriver
from weighbridge.drivers.rados.block import RbdBench
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.driver import RadosBench
from weighbridge.drivers.rados.given_pool import GivenPool
from weighbridge.drivers.rados.tool import ToolDriver
from weighbridge.results.run.step import DriverTraits
from weighbridge.suites import Api, RadosBenchOptions, Workload
from weighbridge.suites.workload import VERIFIED_SHARE

MOST_RADOS_BYTES: Final = 90 * 2**20
"""`osd_max_write_size` of all releases."""
MOST_IN_HAND_BYTES: Final = 512 * 2**20
"""The tools have a buffer for each outstanding request, and the smallest shipped host has 1 GiB."""


def unfit(workload: Workload, api: Api) -> tuple[str, ...]:
    """What of a workload they cannot do: anything but one operation on one size, unthrottled."""
    found = []
    if len(workload.operations) > 1 or not set(workload.operations) <= {"read", "write"}:
        found.append(
            f"{api} is either read or written in a workload, not "
            f"{' and '.join(workload.operations)}"
        )
    if not isinstance(workload.objects.size, int):
        found.append(f"{api} needs objects of one size")
    if workload.objects.compressible is not None:
        found.append(f"what is written to {api} is the tool's own content, not `compressible`")
    if workload.pick not in ("uniform", "sequential"):
        found.append(f"{api} picks objects at random or in turn, not by popularity")
    if workload.rate_per_s is not None:
        found.append(f"{api} is loaded as fast as it answers, not at a rate")
    if workload.verify > VERIFIED_SHARE:
        found.append(f"what is read from {api} is not verified")
    if isinstance(workload.objects.size, int):
        found += _bench_sizes(workload.objects.size, max(workload.workers), api)
    if (
        api == "rados"
        and set(workload.operations) == {"read"}
        and workload.objects.count < max(workload.workers)
    ):
        counts = f"{max(workload.workers)} workers have {workload.objects.count} objects to read"
        found.append(f"{counts}: rados bench needs at least one for each")
    return tuple(found)


def _bench_sizes(size_bytes: int, workers: int, api: Api) -> list[str]:
    if not size_bytes:
        return [f"{api} needs objects of a size above 0"]
    found = []
    if api == "rados" and size_bytes > MOST_RADOS_BYTES:
        found.append(
            f"OSDs accept no more than {show_bytes(MOST_RADOS_BYTES)} at once, and an object of "
            f"{api} is one write"
        )
    if size_bytes * workers > MOST_IN_HAND_BYTES:
        held = f"{workers} workers with {show_bytes(size_bytes)} each"
        found.append(
            f"{held} are more than the {show_bytes(MOST_IN_HAND_BYTES)} that its tool may use of "
            "a host's memory"
        )
    return found


def one_by_one(workload: Workload, tool: str) -> tuple[str, ...]:
    """What of a workload a tool cannot do that has one request outstanding, goes through blocks of
    one size in their order, and has no warm-up: dd and bonnie++.
    """
    found = []
    if len(workload.operations) > 1 or not set(workload.operations) <= {"read", "write"}:
        found.append(f"{tool} either reads or writes, not {' and '.join(workload.operations)}")
    if not isinstance(workload.objects.size, int) or not workload.objects.size:
        found.append(f"{tool} needs blocks of one size above 0")
    if workload.pick != "sequential":
        found.append(f"{tool} takes blocks in their order: pick: sequential")
    if workload.workers != (1,):
        found.append(f"{tool} has one request outstanding: workers: [1]")
    if workload.warmup:
        found.append(f"{tool} has no warm-up: warmup: 0s")
    if workload.rate_per_s is not None:
        found.append(f"{tool} is as fast as it can be, not at a rate")
    if workload.verify > VERIFIED_SHARE:
        found.append(f"what {tool} reads is not verified")
    return tuple(found)


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
