"""A Swift deployment that stands."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType

from weighbridge.common.counters import CounterFigure, DaemonCounters
from weighbridge.common.host import Host
from weighbridge.common.scope import Scope
from weighbridge.gateways import daemon, program
from weighbridge.gateways.gateway import Below, Gateway, Room, Say, Standing
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.below import RESELLER
from weighbridge.gateways.swift.change import SwiftChange, SwiftDeployment, fitting
from weighbridge.gateways.swift.facts import facts
from weighbridge.gateways.swift.files import shown
from weighbridge.gateways.together import together

MEMCACHED = DaemonCounters(
    daemon="memcached",
    figures=(CounterFigure(words="{} % hits", reckon="hits", counters=("get_hits", "get_misses")),),
)
STORAGE = DaemonCounters(
    daemon="swift",
    figures=(
        CounterFigure(
            words="{} folders of container updates put off",
            reckon="sum",
            counters=("async_folders",),
        ),
        CounterFigure(words="{} TCP sockets in use", reckon="sum", counters=("tcp_inuse",)),
    ),
)


class SwiftStanding(Standing):
    """Proxy and storage servers, verified."""

    profile_remark = (
        "Swift is Python: perf sees its interpreter, whose frames are shown as one, "
        "not its functions"
    )

    def __init__(self, stood: SwiftDeployment, below: Callable[[], Below]) -> None:
        """`below` is asked once, when it is wanted: nothing of it can be changed.

        Raises CommandFailed.
        """
        self._stood = stood
        self._caches = tuple(stood.hosts[name] for name in stood.cluster.place.proxy)
        self._stores = tuple(stood.hosts[name] for name in stood.cluster.place.storage)
        self._below = functools.cache(below)
        self.endpoints = stood.endpoints
        self._describe()

    def _describe(self) -> None:
        """What is true of it as it stands now. Raises CommandFailed."""
        stood = self._stood
        found = facts(stood.cluster, self._caches[0], self._stores)
        watched = probes(self._caches, self._stores)
        front, host = stood.cluster.front(), stood.front_host
        if front is not None and host is not None:
            found |= front.facts(host)
            watched = (*watched, *front.probes(host))
        self.facts = MappingProxyType(
            {**found, "verified": f"{stood.verified}, reads byte for byte"}
        )
        self._watched = watched
        self.rendered = shown(stood.files, stood.secret)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        """See Standing."""
        fitting(self._stood, gateway, scope)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        """Restart those servers whose files differ; see SwiftChange, and Standing for what is
        raised.
        """
        done = SwiftChange(self._stood, fitting(self._stood, gateway, scope), say).run()
        self._describe()
        return done

    def settle(self) -> tuple[str, ...]:
        """Send the container updates that object servers have put off: without an updater they
        would stay for ever.
        """
        pending = sum(together([partial(_pending, host) for host in self._stores]))
        if not pending:
            return ("no container updates were put off (async_pending)",)
        update = ["swift-object-updater", "/etc/swift/object-server.conf", "once"]
        together([partial(host.run, update, timeout_s=3600) for host in self._stores])
        left = sum(together([partial(_pending, host) for host in self._stores]))
        return (f"{pending} container updates that were put off (async_pending) sent, {left} left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Empty every memcached but for tempauth's token; Swift's own processes keep nothing of
        objects in memory.
        """
        order = {
            "servers": [[host.address, config.MEMCACHED_PORT] for host in self._caches],
            "prefix": RESELLER,
            "user": f"{config.ACCOUNT}:{config.USER}",
        }
        host = self._caches[0]
        command = program.ship(host, "weighbridge.gateways.swift.drop_memcached")
        done = json.loads(host.run(command, stdin=json.dumps(order)).stdout)
        return (
            f"memcached: {done['dropped']} entries dropped",
            (
                f"not dropped: {done['kept']} entries of memcached, the user's token: clients need "
                "not authenticate again"
            ),
        )

    def check(self) -> None:
        """Raise ServiceFailed when a server has died."""
        daemon.check(self._stood.daemons)

    def below(self) -> Below:
        """The object servers, and one proxy by itself where a front hides it.

        Raises CommandFailed.
        """
        return self._below()

    def room(self) -> Room:
        """The file systems of the disks in the ring of objects."""
        servers = self.below().swift
        assert servers is not None  # noqa: S101 - as `below` says
        folders: dict[str, list[str]] = {}
        for one in servers.servers:
            folders.setdefault(one.host, []).append(f"{config.OBJECTS}/{one.device}")
        hosts = {host.name: host for host in self._stores}
        rows = [
            line.split()
            for name, some in folders.items()
            for line in hosts[name]
            .run(["df", "--block-size=1", "--output=size,avail", *some])
            .stdout.splitlines()[1:]
        ]
        return Room(
            bytes=sum(int(size) for size, _ in rows),
            free_bytes=sum(int(free) for _, free in rows),
            replicas=servers.replicas,
        )

    def probes(self) -> tuple[Probe, ...]:
        """Each memcached, each storage host, and the front."""
        return self._watched


def probes(caches: Sequence[Host], stores: Sequence[Host]) -> tuple[Probe, ...]:
    """What memcached counts, and what recon would tell of a storage host, without asking its
    servers, which are being weighed.
    """
    return (
        *(
            Probe(
                host,
                f"memcached.{host.name}",
                (
                    *program.ship(host, "weighbridge.gateways.swift.tell_memcached"),
                    host.address,
                    str(config.MEMCACHED_PORT),
                ),
                counters=MEMCACHED,
            )
            for host in caches
        ),
        *(
            Probe(
                host,
                f"swift.{host.name}",
                (
                    *program.ship(host, "weighbridge.gateways.swift.tell_storage"),
                    config.OBJECTS,
                    f"{config.RECON}/object.recon",
                ),
                counters=STORAGE,
            )
            for host in stores
        ),
    )


def _pending(host: Host) -> int:
    found = host.run(
        [
            "sh",
            "-ec",
            f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true",
        ],
        timeout_s=600,
    )
    return int(found.stdout)
