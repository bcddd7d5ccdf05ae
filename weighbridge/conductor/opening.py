from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from weighbridge.common.endpoint import Endpoint, host_port
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.kind import KINDS, ClusterSite, LoadSite, OpenedDriver, PoolSite
from weighbridge.drivers.protocol import Ring, RingDisk
from weighbridge.results.run.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment

LAYER_MARKS: Final[Mapping[str, str]] = {"gateway": "g", "object-server": "o"}
"""Ends a bucket's prefix for layers that must not find each other's objects."""

DriverSettings = Mapping[str, object]
NO_SETTINGS: Final[DriverSettings] = MappingProxyType({})


def prefix_of(prefix: str, one: Pass) -> str:
    """The prefix of a pass's buckets."""
    return prefix + KINDS.get_or_refuse(one.driver).mark + LAYER_MARKS.get(one.layer or "", "")


def settings_of(
    drivers: Iterable[str], given: Mapping[str, object], *, lab: bool
) -> dict[str, object]:
    """Drivers' settings by name, from the command's options. Raises UsageError, also for another
    driver's. `lab`: its hosts have their own versions of some folders.
    """
    drivers = tuple(dict.fromkeys(drivers))
    for name, kind in KINDS.items():
        for option in kind.options if name not in drivers else ():
            if given.get(option.name or "") not in {None, option.default}:
                raise UsageError(
                    f"{option.opts[0]} is for the driver {name}, which this run does not use: it "
                    f"uses {', '.join(drivers)}"
                )
    hidden: tuple[str, ...] = ()
    if lab:
        from weighbridge.topologies.lab.bundle import OWN_FOLDERS  # noqa: PLC0415 - only for lab hosts

        hidden = tuple(OWN_FOLDERS)
    made = {name: KINDS.get_or_refuse(name).settings(given, hidden) for name in drivers}
    return {name: settings for name, settings in made.items() if settings is not None}


@contextmanager
def opened(
    deployment: Deployment,
    suite: Suite,
    one: Pass,
    *,
    prefix: str,
    log: Path,
    settings: DriverSettings = NO_SETTINGS,
    alone: bool = False,
) -> Iterator[OpenedDriver]:
    """A pass's driver, ended on every path. `prefix` is the run's; `alone`: on the first client
    only. Raises DriverError if it cannot be set up, or ends badly.
    """
    target: Endpoint | None = None
    ring: Ring | None = None
    if one.api == "object-server":
        target, ring = object_servers(deployment)
    elif one.api in ("swift", "s3"):
        target = _endpoint(deployment, one)
    site = LoadSite(
        layout=deployment.layout.name,
        clients=tuple(deployment.clients[:1] if alone else deployment.clients),
        suite=suite,
        load_pass=one,
        prefix=prefix_of(prefix, one),
        log=log,
        settings=settings.get(one.driver),
        target=target,
        ring=ring,
        cluster=_cluster(deployment) if one.api in ("rados", "rbd", "cephfs") else None,
        pool=_pool(deployment) if one.api == "rados" else None,
    )
    with KINDS.get_or_refuse(one.driver).opened(site) as ready:
        yield ready


def _cluster(deployment: Deployment) -> ClusterSite | None:
    below = deployment.running_gateway.below().ceph
    if below is None:
        return None
    return ClusterSite(
        below.host, below.mon, below.replicas, deployment.hardware.hosts[below.host.name].most_cpus
    )


def _pool(deployment: Deployment) -> PoolSite | None:
    pool = deployment.running_gateway.below().pool
    if pool is None:
        return None
    host = deployment.machines.observed[pool.host]
    return PoolSite(host, pool, host.cores)


def object_servers(deployment: Deployment) -> tuple[Endpoint, Ring]:
    """The object servers below a Swift deployment. Raises DriverError if there are none."""
    below = deployment.running_gateway.below().swift
    if below is None:
        raise DriverError(f"{deployment.layout.name} has no Swift object servers")
    disks = tuple(
        RingDisk(address=one.address, port=one.port, device=one.device) for one in below.servers
    )
    ring = Ring(
        disks=disks,
        table=below.ring,
        part_power=below.part_power,
        hash_prefix=below.hash_prefix,
        hash_suffix=below.hash_suffix,
    )
    url = f"http://{host_port(disks[0].address, disks[0].port)}/{below.account}"
    return Endpoint(api="swift", url=url, user=below.account), ring


def _endpoint(deployment: Deployment, one: Pass) -> Endpoint:
    known = (
        deployment.running_gateway.below().gateway
        if one.layer == "gateway"
        else deployment.endpoints
    )
    for endpoint in known:
        if endpoint.api == one.api:
            return endpoint
    raise DriverError(
        f"{deployment.layout.name} has no endpoint of {one.api}"
        + (" behind its front" if one.layer else "")
    )
