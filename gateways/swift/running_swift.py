"""A running Swift deployment, and its start."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from pydantic import SecretStr

from weighbridge.common.endpoint import base_url
from weighbridge.common.host import Host
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.gateways import daemon, file_store, program
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    Below,
    DiskSpace,
    Gateway,
    KeptBytes,
    ObjectServer,
    Say,
    SwiftBelow,
    Tolerance,
    words,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.running import RunningStore, StorePlan, put_files, run_scripts
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.facts import facts
from weighbridge.gateways.swift.plan import ENVIRONMENT, PROXY, RESELLER, SYSLOG, SwiftPlan
from weighbridge.gateways.swift.releases import RELEASES, SWIFT_HOST, Known, ask
from weighbridge.gateways.swift.settings import SERVERS
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck

_RING_SEED: Final = 2014
_USER: Final = f"{config.ACCOUNT}:{config.USER}"
_PENDING: Final = f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true"
_PREPARE: Final = """mkdir -p /run/swift /run/lock /var/cache/swift
chown swift:swift /run/swift /run/lock /var/cache/swift
# A server that finds no /dev/log never logs: wait for it before any server starts.
tries=0
until [ -S /dev/log ]; do
tries=$((tries + 1)); [ $tries -lt 3000 ]; sleep 0.01
done"""

MEMCACHED: Final = DaemonCounters(
    daemon="memcached",
    figures=(CounterFigure(words="{} % hits", reckon="hits", counters=("get_hits", "get_misses")),),
)
STORAGE: Final = DaemonCounters(
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


class RunningSwift(RunningStore[Gateway]):
    """Proxy and storage servers: `bring_up` starts and verifies them."""

    profile_remark = (
        "Swift is Python: perf shows its interpreter's frames as one, not Swift's functions"
    )

    def __init__(self, gateway: Gateway, hosts: Mapping[str, Host], client: Host) -> None:
        first = SwiftPlan(gateway, hosts)
        self.secret, self.certificates = first.secret, first.secret.certificates
        self.caches = [hosts[name] for name in gateway.place.proxy]
        self.stores = [hosts[name] for name in gateway.place.storage]
        self._program = program.ship(self.caches[0], SWIFT_HOST)
        self._probes: tuple[Probe, ...] = ()
        self.endpoints, self.facts = (), {}
        super().__init__(gateway, hosts, client)

    @property
    def swift(self) -> SwiftPlan:
        """The servers, as they run now."""
        return SwiftPlan(self.plan.gateway, self.hosts, self.secret)

    def planned(self, gateway: Gateway) -> StorePlan[Gateway]:
        return SwiftPlan(gateway, self.hosts, self.secret).on(self.hosts, self._program)

    # its start

    def bring_up(self, say: Say) -> None:
        """Start it all. Raises ServiceFailed, CommandFailed or VerificationFailed.

        Rings are computed while disks are formatted and before any server starts: ten Python
        programs starting at once leave no CPU for it. Proxies get no requests before every storage
        port answers: they would suppress the silent nodes for a minute. The front starts after the
        proxies, so that its first health checks succeed.
        """
        plan, (first, servers) = self.plan, self.plan.stages
        say("creating file systems, configuration and rings")
        trust(self.hosts, self.certificates)
        put_files(plan.files, self.hosts)
        together([partial(program.ship, host, SWIFT_HOST) for host in self.stores + self.caches])
        calls: list[Callable[[], None]] = [self._make_rings, partial(self.start, first, say)]
        calls += [partial(run_scripts, {host: self._new_disks(host)}) for host in self.stores]
        together(calls)
        say("waiting for the storage servers and the proxies")
        self.start([*servers, *plan.front_daemons], say)
        self.endpoints = self.swift.endpoints()
        checks = self.verify()
        say(f"verified: {self._verified(checks)}")
        if plan.background:
            self.start(plan.background, say)
            say(f"started {len(plan.background)} background daemons")
        self.describe(checks)

    def _new_disks(self, store: Host) -> str:
        lines = ["pids="]
        for disk in self.swift.folders(store):
            lines += [f"mkfs.xfs -q -f -K {disk} &", 'pids="$pids $!"']
        return "\n".join([*lines, "for pid in $pids; do wait $pid; done", self.mounts(store)])

    def _make_rings(self) -> None:
        part_power = self.plan.gateway.settings.part_power
        order = {"part_power": part_power, "seed": _RING_SEED, "rings": self.swift.rings()}
        texts = ask(self.caches[0], "rings", order, env=ENVIRONMENT, timeout_s=180)

        def put_rings(host: Host) -> None:
            for kind, text in texts.items():
                host.put(f"/etc/swift/{kind}.ring.gz", base64.b64decode(text))

        together([partial(put_rings, host) for host in (*self.caches, *self.stores)])

    def mounts(self, host: Host) -> str:
        if host not in self.stores:
            return ""
        swift = self.swift
        return "\n".join(line for disk in swift.folders(host) for line in swift.mounts(host, disk))

    def remounts(self, host: Host, disk: str) -> str:
        """Its file system shuts down at an error of its log, until it is mounted again."""
        folders = self.swift.folders(host)[disk]
        # The second place of a file system first: it would keep the disk busy.
        lines = [f"umount {folder}" for folder in reversed(folders)]
        return "\n".join([*lines, *self.swift.mounts(host, disk)])

    @contextlib.contextmanager
    def starting(self, daemons: Sequence[Daemon], say: Say) -> Iterator[None]:
        """After the first start, proxies and storage servers answer requests at its end, not only
        connections: proxies would count failed ones.
        """
        logging = [one.host for one in daemons if one.service.name == SYSLOG]
        servers = [one for one in daemons if one in self.plan.stages[1]]
        again = bool(self.facts)
        if again:
            # A syslog leaves its socket, which refuses servers that start before the next.
            run_scripts(dict.fromkeys(logging, "rm -f /dev/log"))
        yield
        run_scripts(dict.fromkeys(logging, _PREPARE))
        # A server with a port for each disk is still one daemon.
        ports = [replace(one, port=port) for one in servers for port in self._ports(one)]
        if again and ports:
            await_ports(self.client, ports, say, url=self._health_url)
        elif len(ports) > len(servers):
            await_ports(self.client, ports, say)

    def _ports(self, one: Daemon) -> Sequence[int | None]:
        server = one.service.name.removesuffix("-server")
        return self.swift.ports(one.host, server) if server in SERVERS else (one.port,)

    def _health_url(self, one: Daemon) -> str:
        """Without this filter in its pipeline a server answers 404."""
        tls = self.plan.gateway.settings.proxy.tls and one.service.name.startswith(PROXY)
        return f"{base_url(one.host.address, one.port or 0, tls=tls)}/healthcheck"

    def confirm(
        self, restarted: Sequence[Daemon], before: StorePlan[Gateway], plan: StorePlan[Gateway]
    ) -> None:
        """Each server's processes are younger than the file they read, which has the content."""
        digests = {
            (file.host, file.path): hashlib.sha256(file.text.encode()).hexdigest()
            for file in plan.files
        }

        def check(daemons: Sequence[Daemon]) -> None:
            host, order = daemons[0].host, {}
            for word in (word for one in daemons for word in one.service.argv):
                if (host.name, word) in digests:
                    order[word] = digests[host.name, word]
            faults = ask(host, "faults", order)
            for one in daemons:
                for word in one.service.argv:
                    if word in faults:
                        raise one.failed(faults[word])

        together([partial(check, group) for group in daemon.by_host(restarted)])

    # what it says of itself

    def describe(self, checks: Sequence[OperationCheck]) -> None:
        gateway, plan = self.plan.gateway, self.plan
        found = facts(self.swift, self.caches[0], self.stores)
        own_probes = self._own_probes()
        if plan.front is not None:
            host = plan.front_daemons[0].host
            found |= plan.front.facts(host)
            own_probes += plan.front.probes(host)
        if other := RELEASES[gateway.release].settings_of:
            ignored = Known.by(self.caches[0]).ignored(plan.files)
            found["release settings"] = words(gateway.release, other, ignored)
        found["tls"] = negotiated(self.client, self.endpoints)
        found["verified"] = f"{self._verified(checks)}, reads byte for byte"
        self.facts, self._probes = MappingProxyType(found), tuple(own_probes)
        self.rendered = tuple(file.rendered for file in plan.files)

    def _verified(self, checks: Sequence[OperationCheck]) -> str:
        return f"{len(checks)} operations over {' and '.join(one.api for one in self.endpoints)}"

    def _own_probes(self) -> list[Probe]:
        found = []
        for host in self.caches:
            argv = (*self._program, "memcached", host.address, str(config.MEMCACHED_PORT))
            found.append(Probe(host, f"memcached.{host.name}", argv, counters=MEMCACHED))
        for host in self.stores:
            argv = (*self._program, "storage", config.OBJECTS, f"{config.RECON}/object.recon")
            found.append(Probe(host, f"swift.{host.name}", argv, counters=STORAGE))
        return found

    def probes(self) -> tuple[Probe, ...]:
        return self._probes

    def tolerance(self) -> Tolerance:
        settings, front = self.plan.gateway.settings, self.plan.front
        proxy = settings.proxy
        found = {
            "conn_timeout": f"{proxy.conn_timeout:g} s",
            "node_timeout": f"{proxy.node_timeout:g} s, of reads "
            f"{proxy.recoverable_node_timeout:g} s (recoverable_node_timeout)",
            "error_suppression": f"a node is left out for {proxy.error_suppression.interval:g} s "
            f"after {proxy.error_suppression.limit} errors",
            "replicators": "run" if settings.background else "do not run",
        }
        return Tolerance(found | ({} if front is None else front.tolerance()))

    # between steps

    def settle(self) -> tuple[str, ...]:
        pending = self._pending()
        if not pending:
            return ("no container updates were deferred (async_pending)",)
        update = ["swift-object-updater", "/etc/swift/object-server.conf", "once"]
        together([partial(host.run, update, timeout_s=3600) for host in self.stores])
        return (
            f"{pending} deferred container updates (async_pending) sent, {self._pending()} left",
        )

    def _pending(self) -> int:
        script = ["sh", "-ec", _PENDING]
        done = together([partial(host.run, script, timeout_s=600) for host in self.stores])
        return sum(int(one.stdout) for one in done)

    def drop_caches(self) -> tuple[str, ...]:
        """Empty every memcached except for tempauth's token; Swift itself caches no objects."""
        servers = [[host.address, config.MEMCACHED_PORT] for host in self.caches]
        order = {"servers": servers, "prefix": RESELLER, "user": _USER}
        done = ask(self.caches[0], "drop", order)
        dropped, kept = done["dropped"], done["kept"]
        return (
            f"memcached: {dropped} entries dropped",
            f"not dropped: {kept} entries of memcached: the user's token, which clients still use",
        )

    # what is below it

    def below(self) -> Below:
        return self._below

    @functools.cached_property
    def _below(self) -> Below:
        """Only where a layer is measured: reading the ring costs a start of Python."""
        ring = ask(self.caches[0], "ring", "/etc/swift/object.ring.gz", timeout_s=180)
        names = {store.address: store.name for store in self.stores}
        swift = SwiftBelow(
            servers=tuple(
                ObjectServer(host=names[disk["address"]], **disk) for disk in ring["disks"]
            ),
            ring=tuple(tuple(row) for row in ring["table"]),
            part_power=ring["part_power"],
            hash_prefix=SecretStr(self.secret.prefix),
            hash_suffix=SecretStr(self.secret.suffix),
            replicas=self.plan.gateway.settings.replicas,
            account=RESELLER + config.ACCOUNT,
        )
        return Below(self.swift.behind_front() if self.plan.front else (), swift=swift)

    def disk_space(self) -> DiskSpace:
        size, _, free = self._disk_usage(config.OBJECTS)
        return DiskSpace(bytes=size, free_bytes=free, kept=self.plan.gateway.settings.kept)

    def kept_bytes(self) -> KeptBytes:
        _, objects, _ = self._disk_usage(config.OBJECTS)
        if len(self.swift.folders(self.stores[0])) == 1:
            return KeptBytes(objects, None, "XFS: used bytes of all disks, databases included")
        _, beside, _ = self._disk_usage(config.DATABASES)
        return KeptBytes(objects, beside, "XFS: used bytes of object disks; of database disks")

    def _disk_usage(self, below: str) -> tuple[int, int, int]:
        mounted = [(host, list(self.swift.mounted(host, below).values())) for host in self.stores]
        return file_store.disk_usage(mounted)
