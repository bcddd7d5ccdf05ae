"""Opening the driver of a pass: the process or the tool that makes its load, set up for the deployment that stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.conductor.client_programs import ClientPrograms
from weighbridge.conductor.cosbench_drivers import CosbenchDrivers
from weighbridge.conductor.stations import Stations
from weighbridge.drivers.driver import Driver
from weighbridge.drivers.order import CosbenchSite, Ring, RingDisk, Setup
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.rados import RadosBench, RadosCluster, RbdBench
from weighbridge.drivers.rados.tool import Tool
from weighbridge.results.record.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment

LOCUST: Final = ("weighbridge.drivers.locust",)
COSBENCH: Final = ("weighbridge.drivers.cosbench",)
"""Modules of this suite with their arguments, as hosts run them (`Host.module`)."""

MARKS: Final[Mapping[str, str]] = {"cosbench": "c", "gateway": "g", "object-server": "o"}
"""What a bucket's prefix ends with for drivers and layers that must not find one another's objects."""


@dataclass(frozen=True)
class Opened:
    """A driver that is set up, with the versions of what makes the load."""

    driver: Driver
    versions: Mapping[str, str]


def prefix_of(prefix: str, one: Pass) -> str:
    """What the names of a pass's buckets begin with."""
    return prefix + MARKS.get(one.driver, "") + MARKS.get(one.layer or "", "")


@contextmanager
def opened(
    deployment: Deployment,
    suite: Suite,
    one: Pass,
    *,
    prefix: str,
    log: Path,
    locust: Sequence[str] = LOCUST,
    cosbench: CosbenchSite | None = None,
    alone: bool = False,
) -> Iterator[Opened]:
    """The driver of a pass, ended on every path. `prefix` is the run's own, `log` gets what the driver says to people.
    `locust` is the module that Locust's driver is, with its arguments. `alone`: on the first client, whatever others there are.

    Raises DriverError when it cannot be set up, or did not end well.
    """
    if one.driver in ("locust", "cosbench") and one.api in ("swift", "s3", "object-server"):
        clients = deployment.clients[:1] if alone else deployment.clients
        spread = one.driver == "locust" and len(clients) > 1
        target, ring = _target(deployment, one)
        setup = Setup(
            target=target,
            ring=ring,
            # Nobody but the engine knows the way to object servers.
            users="engine" if one.api == "object-server" else suite.users,
            processes=suite.processes,
            clients=tuple(client.name for client in clients) if spread else (),
            listen=deployment.client.address if spread else None,
            bucket_prefix=prefix_of(prefix, one),
            seed=suite.seed,
            request_timeout_s=suite.timeout,
            cosbench=cosbench if one.driver == "cosbench" else None,
        )
        with _by_locust(clients, setup, log, locust) if one.driver == "locust" else _by_cosbench(clients, setup, log) as ready:
            yield ready
        return
    if one.api in ("rados", "rbd", "cephfs"):
        with _of_cluster(deployment, suite, one, prefix=prefix_of(prefix, one), log=log) as tool:
            yield Opened(tool, tool.versions())
            tool.quit()
        return
    raise DriverError(f"nothing makes load of {one.api} by {one.driver}")


@contextmanager
def _by_locust(clients: Sequence[Host], setup: Setup, log: Path, module: Sequence[str]) -> Iterator[Opened]:
    """Locust's driver on the first of the clients, and its stations on the others."""
    # The driver is ended first: it misses none of its stations then.
    with Stations(clients, module, setup, log) as stations, _driver(clients[0], module, log, stations) as driver:
        versions = driver.setup(setup, stations.start).versions
        yield Opened(driver, {**versions, **(_spread(setup) if setup.listen else {})})
        driver.quit()


@contextmanager
def _by_cosbench(clients: Sequence[Host], setup: Setup, log: Path) -> Iterator[Opened]:
    """COSBench's driver. An installation that is started runs on each of the clients, its controller on the first."""
    site = setup.cosbench
    started = site is not None and site.home is not None
    with CosbenchDrivers(clients[1:] if started else (), log) as further:
        if site is not None and site.home is not None:
            site = site.model_copy(update={"drivers": further.start(site.home)})
        with _driver(clients[0], COSBENCH, log, further) as driver:
            yield Opened(driver, driver.setup(setup.model_copy(update={"cosbench": site})).versions)
            driver.quit()


def _driver(client: Host, module: Sequence[str], log: Path, beside: ClientPrograms) -> DriverProcess:
    command = client.module(*module)
    return DriverProcess(client.spawn(command.argv, stderr=log, env=command.env), log, look=beside.check)


def _spread(setup: Setup) -> dict[str, str]:
    """That several clients made the load, as a fact of the driver."""
    each = "a station" if setup.processes == 1 else f"{setup.processes} stations"
    return {"load made by": f"{len(setup.clients)} clients, {each} on each: {', '.join(setup.clients)}"}


def _of_cluster(deployment: Deployment, suite: Suite, one: Pass, *, prefix: str, log: Path) -> Tool:
    """The driver that runs a tool on the host of a Ceph cluster that has its keys. Raises DriverError where there is none."""
    below = deployment.standing.below().ceph
    if below is None:
        raise DriverError(f"{deployment.layout.name} has no Ceph cluster below it: nothing makes load of {one.api} there")
    cluster = RadosCluster(below.host, replicas=below.replicas)
    cpus = deployment.hardware.hosts[below.host.name].cpus
    if one.driver == "fio":
        from weighbridge.drivers.fio import FioCephFs, FioRbd  # noqa: PLC0415 - wanted for few passes

        if one.api == "cephfs":
            return FioCephFs(cluster, below.mon, prefix=prefix, log=log, pg_num=suite.rados.pg_num)
        return FioRbd(cluster, prefix=prefix, log=log, pg_num=suite.rados.pg_num, cpus=cpus)
    if one.api == "rados":
        return RadosBench(cluster, prefix=prefix, log=log, settings=one.rados or suite.rados, cpus=cpus)
    return RbdBench(cluster, prefix=prefix, log=log, pg_num=suite.rados.pg_num, cpus=cpus)


def _target(deployment: Deployment, one: Pass) -> tuple[Endpoint, Ring | None]:
    if one.api != "object-server":
        return _endpoint(deployment, one), None
    return object_servers(deployment)


def object_servers(deployment: Deployment) -> tuple[Endpoint, Ring]:
    """The object servers below a Swift deployment, as the engine is told of them. Raises DriverError where there are none."""
    below = deployment.standing.below().swift
    if below is None:
        raise DriverError(f"{deployment.layout.name} has no object servers of Swift")
    disks = tuple(RingDisk(address=one.address, port=one.port, device=one.device) for one in below.servers)
    ring = Ring(
        disks=disks, table=below.ring, part_power=below.part_power, hash_prefix=below.hash_prefix, hash_suffix=below.hash_suffix
    )
    url = f"http://{disks[0].address}:{disks[0].port}/{below.account}"
    return Endpoint(api="swift", url=url, user=below.account), ring


def _endpoint(deployment: Deployment, one: Pass) -> Endpoint:
    known = deployment.standing.below().gateway if one.layer == "gateway" else deployment.endpoints
    for endpoint in known:
        if endpoint.api == one.api:
            return endpoint
    raise DriverError(f"{deployment.layout.name} has no endpoint of {one.api}" + (" behind its front" if one.layer else ""))
