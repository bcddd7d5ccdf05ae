"""The layers below a gateway that can be measured without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import SecretStr

from weighbridge.common.ceph_pool import CephPool
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import Host


@dataclass(frozen=True)
class CephBelow:
    """The Ceph cluster below a gateway, for Ceph's own benchmarks.

    `host` has ceph.conf, an administrator's keys and Ceph's programs, and no daemon of the store;
    `mon` is the mon's host.
    """

    host: Host
    mon: Host
    osds: Mapping[int, str]
    """Host by OSD number."""
    replicas: int
    failure_domain: Literal["host", "osd"]


@dataclass(frozen=True)
class ObjectServer:
    """One disk of one of Swift's object servers, as the ring has it."""

    host: str
    address: str
    port: int
    device: str


@dataclass(frozen=True)
class SwiftBelow:
    """The object servers below a Swift proxy.

    `ring` has a row for each replica: the disk's number for each partition.
    """

    servers: tuple[ObjectServer, ...]
    ring: tuple[tuple[int, ...], ...]
    part_power: int
    hash_prefix: SecretStr
    hash_suffix: SecretStr
    replicas: int
    account: str
    """The account of the gateway's clients."""


@dataclass(frozen=True)
class Below:
    """The layers below a gateway, so far as they can be measured without it.

    `gateway`: one of its daemons, behind its front.
    """

    gateway: tuple[Endpoint, ...] = ()
    ceph: CephBelow | None = None
    pool: CephPool | None = None
    """Where the cluster ran before: a pool for `rados bench`."""
    swift: SwiftBelow | None = None
