"""A running Swift deployment."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, base_url
from weighbridge.common.host import Host
from weighbridge.common.structure import CounterFigure, DaemonCounters, Scope
from weighbridge.gateways import daemon, file_store, program
from weighbridge.gateways.certificates import ca_file_of, trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    Below,
    DiskSpace,
    Gateway,
    KeptBytes,
    ObjectServer,
    RunningGateway,
    Say,
    SwiftBelow,
    Tolerance,
    words,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.swift import config, options
from weighbridge.gateways.swift.change import SwiftChange, SwiftState, fitting
from weighbridge.gateways.swift.config import Proxy, Secrets, SwiftRoster, is_proxy, shown
from weighbridge.gateways.swift.facts import facts
from weighbridge.gateways.swift.options import SWIFT_HOST, ask
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together

RESELLER = "AUTH_"
"""tempauth's prefix of accounts."""


def endpoints_below(
    base: str, key: str, settings: SwiftSettings, *, storage_url: str | None = None
) -> tuple[Endpoint, ...]:
    """The endpoints at a URL of proxies, for the user with `key`."""
    user = f"{config.ACCOUNT}:{config.USER}"
    own: dict[str, Any] = {"user": user, "key": SecretStr(key), "ca_file": ca_file_of(base)}
    swift = Endpoint(api="swift", url=f"{base}/auth/v1.0", storage_url=storage_url, **own)
    s3 = Endpoint(api="s3", url=base, **own)
    return (swift, s3) if settings.s3api else (swift,)


def url_of(proxy: Proxy, settings: SwiftSettings) -> str:
    """The URL of one proxy."""
    return base_url(proxy.address, proxy.port, tls=settings.proxy.tls)


def direct_proxy(
    proxy: Proxy, key: str, settings: SwiftSettings, *, fronted: bool
) -> tuple[Endpoint, ...]:
    """The endpoints of one proxy. Behind a front, auth would return the front as storage URL."""
    base = url_of(proxy, settings)
    storage_url = f"{base}/v1/{RESELLER}{config.ACCOUNT}" if fronted else None
    return endpoints_below(base, key, settings, storage_url=storage_url)


def object_servers(
    host: Host, stores: Sequence[Host], secret: Secrets, replicas: int
) -> SwiftBelow:
    """The object servers in the ring on `host`, which has Swift installed. Raises CommandFailed."""
    ring = ask(host, "ring", "/etc/swift/object.ring.gz", timeout_s=180)
    names = {store.address: store.name for store in stores}
    return SwiftBelow(
        servers=tuple(ObjectServer(host=names[one["address"]], **one) for one in ring["disks"]),
        ring=tuple(tuple(row) for row in ring["table"]),
        part_power=ring["part_power"],
        hash_prefix=SecretStr(secret.prefix),
        hash_suffix=SecretStr(secret.suffix),
        replicas=replicas,
        account=RESELLER + config.ACCOUNT,
    )


SYSLOG: Final = "syslog"
MEMCACHED_SERVICE: Final = "memcached"


def _start(
    state: SwiftState,
    daemons: Sequence[Daemon],
    scripts: Mapping[str, Sequence[str]],
    say: Say,
) -> None:
    """Start daemons in the order of a bring-up: syslog and memcached, servers and proxies, the
    front once these answer, background daemons last. `scripts` are run before servers, by host.
    """
    first = [one for one in daemons if one.service.name in {SYSLOG, MEMCACHED_SERVICE}]
    fronts = [one for one in daemons if one in _fronts(state)]
    servers = [
        one for one in daemons if one.service.name.endswith("-server") or is_proxy(one.service.name)
    ]
    rest = [one for one in daemons if one not in (*first, *servers, *fronts)]
    daemon.start(first)
    logging = {one.host.name: one.host for one in first if one.service.name == SYSLOG}
    together([partial(run_prepared, host, scripts.get(name, ())) for name, host in logging.items()])
    for some in (servers, fronts, rest):
        daemon.start(some)
        await_ports(state.client, [one for one in some if one.port is not None], say)


def _fronts(state: SwiftState) -> Sequence[Daemon]:
    front, place = state.cluster.front(), state.front_host
    return () if front is None or place is None else front.daemons(place)


def mounts(roster: SwiftRoster, host: Host) -> list[str]:
    """Shell lines that mount the disks of a storage host."""
    script = []
    for disk, folders in zip(host.disks, roster.folders(host), strict=False):
        script += _mounted(disk, folders)
    return script


def _mounted(disk: str, folders: Sequence[str]) -> list[str]:
    options = "noatime,nodiratime,logbufs=8"
    return [
        f"mkdir -p {folders[0]} && mount -t xfs -o {options} {disk} {folders[0]}",
        # The only disk of a host also has the databases: the same file system, mounted in both
        # places.
        *(f"mkdir -p {other} && mount --bind {folders[0]} {other}" for other in folders[1:]),
        f"chown swift:swift {' '.join(folders)}",
    ]


def run_prepared(host: Host, script: Sequence[str]) -> None:
    """Run `script`, make folders of a host's /run, await its syslog. Raises CommandFailed."""
    lines = [
        *script,
        "mkdir -p /run/swift /run/lock /var/cache/swift",
        "chown swift:swift /run/swift /run/lock /var/cache/swift",
        # A server that finds no /dev/log never logs: wait for it before any server starts.
        "tries=0",
        "until [ -S /dev/log ]; do",
        "tries=$((tries + 1)); [ $tries -lt 3000 ]; sleep 0.01",
        "done",
    ]
    host.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)


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
        """`below` is called at most once, on demand: its result is fixed. Raises CommandFailed."""
        self._state = state
        self._caches = tuple(state.hosts[name] for name in state.cluster.place.proxy)
        self._stores = tuple(state.hosts[name] for name in state.cluster.place.storage)
        self._below = functools.cache(below)
        self.endpoints = state.endpoints
        self._describe()

    def _describe(self) -> None:
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
        """Tokens are gone with their memcached: clients log in again."""
        state = self._state
        hosts = {name: host for name, host in state.hosts.items() if name in names}
        trust(hosts, state.secret.certificates)
        roster = self._roster()
        scripts = {name: mounts(roster, state.hosts[name]) for name in state.cluster.place.storage}
        _start(state, [one for one in state.daemons if one.host.name in names], scripts, say)

    def revive(self, daemons: Sequence[Daemon]) -> None:
        """A host's syslog leaves its socket, which refuses servers that start before the next."""
        state = self._state
        for one in daemons:
            if one.service.name == SYSLOG:
                one.host.run(["rm", "-f", "/dev/log"])
        _start(state, daemons, {}, lambda _: None)

    def mend_disk(self, host: str, disk: str) -> None:
        """Its file system shuts down at an error of its log, until it is mounted again."""
        state = self._state
        mine = [one for one in state.daemons if one.host.name == host]
        daemons = [
            one
            for one in mine
            if one.service.name not in {SYSLOG, MEMCACHED_SERVICE}
            and not is_proxy(one.service.name)
            and one not in _fronts(state)
        ]
        for one in daemons:
            one.host.kill(one.service.name)
        site = state.hosts[host]
        roster = self._roster()
        folders = dict(zip(site.disks, roster.folders(site), strict=False))[disk]
        lines = [*(f"umount {one}" for one in reversed(folders)), *_mounted(disk, folders)]
        site.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)
        self.revive(daemons)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        fitting(self._state, gateway, scope)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        done = SwiftChange(self._state, fitting(self._state, gateway, scope), say).run()
        self._describe()
        return done

    def settle(self) -> tuple[str, ...]:
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
        done = ask(self._caches[0], "drop", order)
        dropped, kept = done["dropped"], done["kept"]
        return (
            f"memcached: {dropped} entries dropped",
            f"not dropped: {kept} entries of memcached: the user's token, which clients still use",
        )

    def check(self) -> None:
        daemon.check(self._state.daemons)

    def below(self) -> Below:
        return self._below()

    def disk_space(self) -> DiskSpace:
        size, _, free = self._disk_usage(config.OBJECTS)
        return DiskSpace(bytes=size, free_bytes=free, kept=self._state.cluster.settings.kept)

    def kept_bytes(self) -> KeptBytes:
        _, objects, _ = self._disk_usage(config.OBJECTS)
        if len(self._roster().folders(self._stores[0])) == 1:
            return KeptBytes(objects, None, "XFS: used bytes of all disks, databases included")
        _, beside, _ = self._disk_usage(config.DATABASES)
        return KeptBytes(objects, beside, "XFS: used bytes of object disks; of database disks")

    def tolerance(self) -> Tolerance:
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

    def _disk_usage(self, below: str) -> tuple[int, int, int]:
        roster = self._roster()
        mounted = []
        for host in self._stores:
            folders = [folder for places in roster.folders(host) for folder in places]
            mounted.append((host, [folder for folder in folders if folder.startswith(f"{below}/")]))
        return file_store.disk_usage(mounted)

    def probes(self) -> tuple[Probe, ...]:
        return self._probes


def probes(caches: Sequence[Host], stores: Sequence[Host]) -> tuple[Probe, ...]:
    """Counters of memcached, and recon's of storage hosts without load on their servers."""
    recon = f"{config.RECON}/object.recon"
    found = []
    for host in caches:
        argv = (*program.ship(host, SWIFT_HOST), "memcached", host.address)
        argv = (*argv, str(config.MEMCACHED_PORT))
        found.append(Probe(host, f"memcached.{host.name}", argv, counters=MEMCACHED))
    for host in stores:
        argv = (*program.ship(host, SWIFT_HOST), "storage", config.OBJECTS, recon)
        found.append(Probe(host, f"swift.{host.name}", argv, counters=STORAGE))
    return tuple(found)


def _pending(host: Host) -> int:
    script = f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true"
    return int(host.run(["sh", "-ec", script], timeout_s=600).stdout)


def _taken_as(state: SwiftState, proxy: Host) -> dict[str, str]:
    release = state.cluster.release
    other = RELEASES[release].settings_of
    if not other:
        return {}
    ignored = options.ignored(options.known_to(proxy), state.files)
    return {"release settings": words(release, other, ignored)}
