"""A running Swift deployment."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import MappingProxyType

from weighbridge.common.counters import CounterFigure, DaemonCounters
from weighbridge.common.host import Host
from weighbridge.common.scope import Scope
from weighbridge.gateways import daemon, program, xfs_disks
from weighbridge.gateways.below import Below
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.disk_space import DiskSpace, KeptBytes
from weighbridge.gateways.gateway import Gateway, RunningGateway, Say
from weighbridge.gateways.known_release import words
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.swift import config, options
from weighbridge.gateways.swift.below import RESELLER
from weighbridge.gateways.swift.change import SwiftChange, SwiftState, fitting
from weighbridge.gateways.swift.facts import facts
from weighbridge.gateways.swift.files import shown
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.start_again import mend_disk, revive, start_again
from weighbridge.gateways.swift.swift_roster import SwiftRoster
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together
from weighbridge.gateways.tolerance import Tolerance

MEMCACHED = DaemonCounters(
    daemon="memcached",
    figures=(CounterFigure(words="{} % hits", reckon="hits", counters=("get_hits", "get_misses")),),
)
STORAGE = DaemonCounters(
    daemon="swift",
    figures=(
        CounterFigure(
            words="{} folders of deferred container updates",
            reckon="sum",
            counters=("async_folders",),
        ),
        CounterFigure(words="{} TCP sockets in use", reckon="sum", counters=("tcp_inuse",)),
    ),
)


class RunningSwift(RunningGateway):
    """Verified proxy and storage servers."""

    profile_remark = (
        "Swift is Python: perf shows its interpreter's frames as one, not Swift's functions"
    )

    def __init__(self, state: SwiftState, below: Callable[[], Below]) -> None:
        """`below` is called at most once, on demand: its result never changes.

        Raises CommandFailed.
        """
        self._state = state
        self._caches = tuple(state.hosts[name] for name in state.cluster.place.proxy)
        self._stores = tuple(state.hosts[name] for name in state.cluster.place.storage)
        self._below = functools.cache(below)
        self.endpoints = state.endpoints
        self._describe()

    def _describe(self) -> None:
        """Update facts, files and probes. Raises CommandFailed."""
        state = self._state
        found = facts(state.cluster, self._caches[0], self._stores)
        found_probes = probes(self._caches, self._stores)
        front, host = state.cluster.front(), state.front_host
        if front is not None and host is not None:
            found |= front.facts(host)
            found_probes = (*found_probes, *front.probes(host))
        self.facts = MappingProxyType(
            {
                **found,
                **_taken_as(state, self._caches[0]),
                "tls": negotiated(state.client, self.endpoints),
                "verified": f"{state.verified}, reads byte for byte",
            }
        )
        self._probes = found_probes
        self.rendered = shown(state.files, state.secret)

    def start_again(self, names: Collection[str], say: Say) -> None:
        start_again(self._state, names, say)

    def revive(self, daemons: Sequence[Daemon]) -> None:
        revive(self._state, daemons)

    def mend_disk(self, host: str, disk: str) -> None:
        mend_disk(self._state, host, disk)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        fitting(self._state, gateway, scope)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        """Restart servers whose files differ; see SwiftChange, and RunningGateway for errors."""
        done = SwiftChange(self._state, fitting(self._state, gateway, scope), say).run()
        self._describe()
        return done

    def settle(self) -> tuple[str, ...]:
        """Send deferred container updates: without an updater they would stay forever."""
        pending = sum(together([partial(_pending, host) for host in self._stores]))
        if not pending:
            return ("no container updates were deferred (async_pending)",)
        update = ["swift-object-updater", "/etc/swift/object-server.conf", "once"]
        together([partial(host.run, update, timeout_s=3600) for host in self._stores])
        left = sum(together([partial(_pending, host) for host in self._stores]))
        return (f"{pending} deferred container updates (async_pending) sent, {left} left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Empty every memcached except for tempauth's token; Swift itself caches no objects."""
        order = {
            "servers": [[host.address, config.MEMCACHED_PORT] for host in self._caches],
            "prefix": RESELLER,
            "user": f"{config.ACCOUNT}:{config.USER}",
        }
        host = self._caches[0]
        command = program.ship(host, "weighbridge.gateways.swift.drop_memcached")
        done = json.loads(host.run(command, stdin=json.dumps(order)).stdout)
        dropped, kept = done["dropped"], done["kept"]
        return (
            f"memcached: {dropped} entries dropped",
            f"not dropped: {kept} entries of memcached: the user's token, which clients still use",
        )

    def check(self) -> None:
        daemon.check(self._state.daemons)

    def below(self) -> Below:
        """The object servers, and one proxy by itself behind a front. Raises CommandFailed."""
        return self._below()

    def disk_space(self) -> DiskSpace:
        """The file systems of the disks in the object ring."""
        rows = self._file_systems(config.OBJECTS)
        return DiskSpace(
            bytes=sum(size for size, _, _ in rows),
            free_bytes=sum(free for _, _, free in rows),
            kept=self._state.cluster.settings.kept,
        )

    def kept_bytes(self) -> KeptBytes:
        """What is used of the disks' file systems, inodes and folders included."""
        objects = sum(used for _, used, _ in self._file_systems(config.OBJECTS))
        if len(self._roster().folders(self._stores[0])) == 1:
            return KeptBytes(objects, None, "XFS: used bytes of all disks, databases included")
        beside = sum(used for _, used, _ in self._file_systems(config.DATABASES))
        return KeptBytes(objects, beside, "XFS: used bytes of object disks; of database disks")

    def tolerance(self) -> Tolerance:
        """See RunningGateway: of its files. It knows nothing of itself as a whole."""
        cluster = self._state.cluster
        proxy, front = cluster.settings.proxy, cluster.front()
        found = {
            "conn_timeout": f"{proxy.conn_timeout:g} s",
            "node_timeout": f"{proxy.node_timeout:g} s, of reads "
            f"{proxy.recoverable_node_timeout:g} s (recoverable_node_timeout)",
            "error_suppression": f"a node is left out for {proxy.error_suppression.interval:g} s "
            f"after {proxy.error_suppression.limit} errors",
            "replicators": "run" if cluster.settings.background else "do not run",
        }
        return Tolerance(found | ({} if front is None else front.tolerance()))

    def daemons(self) -> tuple[Daemon, ...]:
        return tuple(self._state.daemons)

    def _roster(self) -> SwiftRoster:
        cluster = self._state.cluster
        return SwiftRoster(cluster.place, cluster.settings, self._state.hosts)

    def _file_systems(self, below: str) -> list[tuple[int, int, int]]:
        """Size, used and free bytes of every disk that is mounted there. Raises TargetError."""
        roster = self._roster()
        return xfs_disks.file_systems(
            [
                (
                    host,
                    [
                        folder
                        for folders in roster.folders(host)
                        for folder in folders
                        if folder.startswith(f"{below}/")
                    ],
                )
                for host in self._stores
            ]
        )

    def probes(self) -> tuple[Probe, ...]:
        return self._probes


def probes(caches: Sequence[Host], stores: Sequence[Host]) -> tuple[Probe, ...]:
    """Counters of memcached, and recon's of storage hosts without load on their servers."""
    return (
        *(
            Probe(
                host,
                f"memcached.{host.name}",
                (
                    *program.ship(host, "weighbridge.gateways.swift.memcached_counters"),
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
                    *program.ship(host, "weighbridge.gateways.swift.storage_counters"),
                    config.OBJECTS,
                    f"{config.RECON}/object.recon",
                ),
                counters=STORAGE,
            )
            for host in stores
        ),
    )


def _pending(host: Host) -> int:
    script = f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true"
    return int(host.run(["sh", "-ec", script], timeout_s=600).stdout)


def _taken_as(state: SwiftState, proxy: Host) -> dict[str, str]:
    """Which release's settings it has, if not its own, and what its code says of them."""
    release = state.cluster.release
    other = RELEASES[release].settings_of
    if not other:
        return {}
    ignored = options.ignored(options.ask(proxy), state.files)
    return {"release settings": words(release, other, ignored)}
