"""Starting Swift, from empty hosts to a verified gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import Host, Service
from weighbridge.gateways import daemon, program
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import front_url
from weighbridge.gateways.gateway import Below, RunningGateway, Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.swift import config, running_swift
from weighbridge.gateways.swift.change import SwiftState, verified_text
from weighbridge.gateways.swift.config import Secrets, SwiftRoster, files, put
from weighbridge.gateways.swift.facts import LOG
from weighbridge.gateways.swift.running_swift import (
    MEMCACHED_SERVICE,
    SYSLOG,
    RunningSwift,
    mounts,
    run_prepared,
)
from weighbridge.gateways.swift.settings import SERVERS, SwiftCluster
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import verify

_RING_SEED = 2014

# Loading eventlet's DNS resolver takes a third of a server's start, all CPU. These servers resolve
# no names: they get addresses. Other OpenStack services set this themselves. Loading setuptools in
# place of Python's own distutils takes another fifth; nothing here builds packages.
_ENVIRONMENT = {"EVENTLET_NO_GREENDNS": "yes", "SETUPTOOLS_USE_DISTUTILS": "stdlib"}


class SwiftBringUp:
    """Starts one deployment.

    Rings are computed while disks are formatted and before any server starts: ten Python programs
    starting at once leave no CPU for it. Proxies get no requests before every storage port answers:
    they would suppress the silent nodes for a minute. The front starts after the proxies, so that
    its first health checks succeed.
    """

    def __init__(
        self, cluster: SwiftCluster, hosts: Mapping[str, Host], client: Host, say: Say
    ) -> None:
        self.settings = cluster.settings
        self.say = say
        self.roster = SwiftRoster(cluster.place, cluster.settings, hosts)
        self.stores = [hosts[name] for name in cluster.place.storage]
        self.caches = [hosts[name] for name in cluster.place.proxy]
        self.front = cluster.front()
        secret = Secrets.of(cluster, hosts)
        texts = files(cluster.release, cluster.settings, self.roster, secret, self.front)
        self.state = SwiftState(cluster, hosts, client, secret, texts)

    def run(self) -> RunningGateway:
        """Start it all. Raises ServiceFailed, CommandFailed or VerificationFailed."""
        state = self.state
        self.say("creating file systems, configuration and rings")
        trust(state.hosts, state.secret.certificates)
        stores: list[Callable[[], None]] = [partial(self._make_store, host) for host in self.stores]
        caches: list[Callable[[], None]] = [partial(self._make_proxy, host) for host in self.caches]
        together([self._make_rings, *caches, *stores])
        self._start_servers()
        self._start_front()
        state.endpoints = self._endpoints()
        with daemon.blaming(state.daemons):
            checks = verify(state.client, state.endpoints)
        state.verified = verified_text(checks, state.endpoints)
        self.say(f"verified: {state.verified}")
        if self.settings.background:
            self._start_background()
        return RunningSwift(state, self._below)

    def _prepare(self, host: Host, script: Sequence[str] = ()) -> None:
        """Set a host up, run `script` there, and return when its syslog listens."""
        for path, text in self.state.files[host.name].items():
            put(host, path, text)
        argv = program.ship(host, "weighbridge.gateways.swift.write_syslog")
        syslog = Service(SYSLOG, (*argv, f"/var/log/host/{LOG}"))
        self._start([Daemon(host, syslog)])
        run_prepared(host, script)

    def _make_store(self, host: Host) -> None:
        script = ["pids="]
        for disk in host.disks[: self.settings.disks]:
            script += [f"mkfs.xfs -q -f -K {disk} &", 'pids="$pids $!"']
        script.append("for pid in $pids; do wait $pid; done")
        self._prepare(host, [*script, *mounts(self.roster, host)])

    def _make_proxy(self, host: Host) -> None:
        self._prepare(host)
        memory = str(self.settings.proxy.memcached_memory // 2**20)
        address = ("-l", host.address, "-p", str(config.MEMCACHED_PORT))
        argv = ("memcached", "-u", "memcache", *address, "-m", memory)
        self._start([Daemon(host, Service(MEMCACHED_SERVICE, argv), config.MEMCACHED_PORT)])

    def _start_servers(self) -> None:
        proxies = [
            Daemon(
                self.state.hosts[one.host],
                Service(one.service, ("swift-proxy-server", one.conf), _ENVIRONMENT),
                one.port,
                (LOG,),
            )
            for one in self.roster.proxies
        ]
        stores = [
            [self._server(host, server, port) for port in self.roster.ports(host, server)]
            for host in self.stores
            for server in SERVERS
        ]
        # A server with a port for each disk is still one daemon.
        self._start([*proxies, *(ports[0] for ports in stores)])
        self.say("waiting for the storage servers and the proxies")
        further = [one for ports in stores for one in ports[1:]]
        await_ports(self.state.client, [*self.state.daemons, *further], self.say)

    @staticmethod
    def _server(host: Host, server: str, port: int) -> Daemon:
        argv = (f"swift-{server}-server", f"/etc/swift/{server}-server.conf")
        return Daemon(host, Service(f"{server}-server", argv, _ENVIRONMENT), port, (LOG,))

    def _start_front(self) -> None:
        if self.front is None or self.roster.front is None:
            return
        host = self.state.hosts[self.roster.front.name]
        if host.name not in {one.name for one in (*self.caches, *self.stores)}:
            for path, text in self.state.files[host.name].items():
                put(host, path, text)
        daemons = self.front.daemons(host)
        self._start(daemons)
        await_ports(self.state.client, daemons, self.say)

    def _make_rings(self) -> None:
        devices: dict[str, list[dict[str, str | int]]] = {server: [] for server in SERVERS}
        for one in self.roster.devices:
            devices[one.server].append(
                {"zone": one.zone, "ip": one.address, "port": one.port, "device": one.name}
            )
        copies = self.settings.replicas
        rings = {kind: {"replicas": copies, "devices": own} for kind, own in devices.items()}
        ec = self.settings.ec
        if ec is not None:
            own = {"replicas": ec.fragments.count, "devices": devices["object"]}
            rings[f"object-{config.EC_POLICY}"] = own
        order = {"part_power": self.settings.part_power, "seed": _RING_SEED, "rings": rings}
        host = self.caches[0]
        command = program.ship(host, "weighbridge.gateways.swift.make_rings")
        done = host.run(command, stdin=json.dumps(order), env=_ENVIRONMENT, timeout_s=180)
        contents = {kind: base64.b64decode(text) for kind, text in json.loads(done.stdout).items()}

        def put_rings(host: Host) -> None:
            for kind, content in contents.items():
                host.put(f"/etc/swift/{kind}.ring.gz", content)

        together([partial(put_rings, host) for host in (*self.caches, *self.stores)])

    def _endpoints(self) -> tuple[Endpoint, ...]:
        front = front_url(self.state.cluster.place, self.settings, self.state.hosts)
        if front is not None:
            return running_swift.endpoints_below(front, self.state.secret.key, self.settings)
        first, *rest = self.roster.proxies
        key = self.state.secret.key
        found = running_swift.direct_proxy(first, key, self.settings, fronted=False)
        if self.settings.endpoints is None:
            return found
        others = tuple(running_swift.url_of(one, self.settings) for one in rest)
        more = {"others": others, "spreading": self.settings.endpoints}
        return tuple(one.model_copy(update=more) for one in found)

    def _below(self) -> Below:
        """Called when a layer is measured: reading the ring costs a start of Python."""
        gateway: tuple[Endpoint, ...] = ()
        if self.front is not None:
            gateway = running_swift.direct_proxy(
                self.roster.proxies[0], self.state.secret.key, self.settings, fronted=True
            )
        servers = running_swift.object_servers(
            self.caches[0], self.stores, self.state.secret, self.settings.replicas
        )
        return Below(gateway=gateway, swift=servers)

    def _start_background(self) -> None:
        daemons = []
        for host in self.stores:
            argv = ("rsync", "--daemon", "--no-detach", "--config=/etc/rsyncd.conf")
            daemons.append(Daemon(host, Service("rsync", argv), config.RSYNC_PORT))
            for server, names in config.daemons_of(self.settings).items():
                for name in names:
                    words = (f"swift-{server}-{name}", f"/etc/swift/{server}-server.conf")
                    daemons.append(
                        Daemon(host, Service(f"{server}-{name}", words, _ENVIRONMENT), logs=(LOG,))
                    )
        self._start(daemons)
        self.say(f"started {len(daemons)} background daemons")
        await_ports(self.state.client, daemons, self.say)

    def _start(self, daemons: Sequence[Daemon]) -> None:
        self.state.daemons += daemons
        daemon.start(daemons)
