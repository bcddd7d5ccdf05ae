"""The `swift` gateway: proxies with memcached and storage hosts, perhaps behind a front."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from weighbridge.common.endpoint import Endpoint, ObjectApi, S3Way
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Scope, StoreLayer, Structure
from weighbridge.gateways import daemon, program
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import (
    FRONTS,
    front_parts,
    front_url,
    refuse_shared_ports,
    refuse_unfit,
)
from weighbridge.gateways.gateway import (
    Below,
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
    Unfit,
    tier_of,
    words,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import FileGrammar
from weighbridge.gateways.sizing import Sized, Sizes
from weighbridge.gateways.swift import change, config, options, running_swift
from weighbridge.gateways.swift.change import SwiftState, verified_text
from weighbridge.gateways.swift.config import Secrets, SwiftRoster, files, put, shown
from weighbridge.gateways.swift.facts import LOG
from weighbridge.gateways.swift.options import SWIFT_HOST, ask
from weighbridge.gateways.swift.releases import RELEASES, code_faults
from weighbridge.gateways.swift.running_swift import (
    MEMCACHED_SERVICE,
    SYSLOG,
    RunningSwift,
    mounts,
    run_prepared,
)
from weighbridge.gateways.swift.settings import (
    SERVERS,
    SwiftCluster,
    SwiftPlacement,
    SwiftSettings,
    by_size,
)
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
        for path, text in self.state.files[host.name].items():
            put(host, path, text)
        argv = program.ship(host, SWIFT_HOST)
        syslog = Service(SYSLOG, (*argv, "syslog", f"/var/log/host/{LOG}"))
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
        texts = ask(host, "rings", order, env=_ENVIRONMENT, timeout_s=180)
        contents = {kind: base64.b64decode(text) for kind, text in texts.items()}

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


OWN_PATIENCE: Final = {
    "proxy.conn_timeout": "500ms",
    "proxy.node_timeout": "10s",
    "proxy.recoverable_node_timeout": "10s",
    "proxy.error_suppression.limit": 10,
    "proxy.error_suppression.interval": "60s",
}
"""Swift's own: how long proxies wait for a storage server, and when they leave it out. Layouts that
ship wait longer, since hosts at their limit are slow and not dead.
"""
_NO_VERSIONS: Final = (
    "its proxies ignore X-Versions-Enabled, and s3api answers 501; set `settings: "
    "{versions: true}` in the layout"
)


class Swift(Gateway):
    """OpenStack Swift."""

    kind: ClassVar[str] = "swift"
    releases: ClassVar[Mapping[str, RootImage]] = {
        name: release.image for name, release in RELEASES.items()
    }
    Placement: ClassVar[type[Record]] = SwiftPlacement
    Settings: ClassVar[type[Record]] = SwiftSettings
    fault_settings: ClassVar[Mapping[str, object]] = OWN_PATIENCE
    cluster: SwiftCluster
    grammars: ClassVar[tuple[FileGrammar, ...]] = (config.GRAMMAR,)

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises ValueError when release, placement and settings do not fit together."""
        assert isinstance(place, SwiftPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, SwiftSettings)  # noqa: S101
        self.release = release
        self.place, self.settings = place, settings
        self.cluster = SwiftCluster(release=release, place=place, settings=settings)
        ec = settings.ec
        if ec is not None and ec.failure_domain == "host":
            count = ec.fragments.count
            if len(place.storage) < count:
                raise Unfit(
                    f"{count} fragments (k {ec.k}, m {ec.m}) on separate hosts need {count} "
                    f"storage hosts, not {len(place.storage)}: lower k or m, or set "
                    "failure_domain to disk",
                    ("settings", "ec"),
                )
        if settings.formpost and settings.pipeline != "standard":
            raise ValueError("formpost needs the standard pipeline, whose tempurl has its key")
        if settings.versions and settings.pipeline != "standard":
            raise Unfit(
                f"versions need versioned_writes and symlink, which {settings.pipeline} does "
                "not have",
                ("settings", "versions"),
            )
        if len(place.storage) < settings.replicas:
            raise ValueError(
                f"{settings.replicas} replicas, each in its own zone, need {settings.replicas} "
                "storage hosts"
            )
        if (
            settings.object.etag_validate_pct != 100
            and "etag_validate_pct" in RELEASES[release].lacks
        ):
            have = [name for name, one in RELEASES.items() if "etag_validate_pct" not in one.lacks]
            raise ValueError(
                f"the object server of {release} checks the MD5 of every read; {', '.join(have)} "
                "have etag_validate_pct"
            )
        daemons = len(place.proxy) * settings.proxy.daemons
        refuse_unfit(place, settings, daemons, "proxies", tls=settings.proxy.tls)
        wanted = [(name, config.MEMCACHED_PORT, "memcached") for name in place.proxy]
        wanted += [
            (name, port, f"the {server} server")
            for name in place.storage
            for server, port in config.PORTS.items()
        ]
        wanted += [
            (name, settings.proxy.port + index, "the proxy")
            for name in place.proxy
            for index in range(settings.proxy.daemons)
        ]
        refuse_shared_ports(place, self.cluster.front(), wanted)

    @classmethod
    def settings_elsewhere(cls, release: str) -> str | None:
        return RELEASES[release].settings_of or None

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift", "s3") if self.settings.s3api else ("swift",)

    def s3_lacks(self) -> Mapping[S3Way, str]:
        return RELEASES[self.release].s3_lacks

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        release = RELEASES[self.release]
        lacks = release.s3_lacks_operations
        if api == "swift":
            lacks = {**release.lacks_operations, **config.operations_lacked(self.settings)}
        return lacks if self.settings.versions else {**lacks, "versions": _NO_VERSIONS}

    @property
    def own_ca(self) -> bool:
        return self.cluster.tls_host is not None

    def cannot_restart(self) -> str:
        return ""

    def spreads(self) -> bool:
        return self.settings.endpoints is not None

    @classmethod
    def scope(cls, key: str) -> Scope:
        return change.scope_of(key)

    def layers(self) -> tuple[StoreLayer, ...]:
        # Clients send whole objects to object servers, which keep fragments with erasure coding.
        servers: tuple[StoreLayer, ...] = ("object-server",) if self.settings.ec is None else ()
        return servers if self.place.front is None else ("gateway", *servers)

    def structure(self, disks: Mapping[str, int]) -> Structure:
        place, settings = self.place, self.settings
        used = {name: tuple(range(disks.get(name, 0)))[: settings.disks] for name in place.storage}
        return Structure(
            entrances=place.proxy if place.front is None else (place.front,),
            gateways=place.proxy,
            daemons=len(place.proxy) * settings.proxy.daemons,
            front=None if place.front_name is None else FRONTS[place.front_name].label,
            stores=place.storage,
            disks={name: mine if len(mine) == 1 else mine[1:] for name, mine in used.items()},
            replicas=settings.kept.replicas,
            fragments=settings.kept.fragments,
            answers="disk",
            copied_by="gateway",
            layer="object-server" if settings.ec is None else None,
        )

    def needs(self) -> Mapping[str, HostNeed]:
        place = self.place
        roles: dict[str, list[str]] = {name: ["proxy", "memcached"] for name in place.proxy}
        roles |= {name: ["storage"] for name in place.storage}
        if place.front is not None and place.front_name is not None:
            roles.setdefault(place.front, []).append(place.front_name)
        disks = self.settings.disks or 1
        return {
            name: HostNeed(
                roles=tuple(of),
                disks=disks if "storage" in of else 0,
                tier=tier_of(of, ("storage",)),
            )
            for name, of in roles.items()
        }

    def by_size(self, sizes: Sizes) -> tuple[Sized, ...]:
        return by_size(self.place, self.settings, sizes)

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """More fragments than object disks, each of which has at most one of an object."""
        ec, structure = self.settings.ec, self.structure(disks)
        count = sum(len(own) for own in structure.disks.values())
        if ec is None or ec.fragments.count <= count:
            return ()
        message = (
            f"{ec.fragments.count} fragments (k {ec.k}, m {ec.m}) need as many object disks; the "
            f"storage hosts have {count}: lower k or m, or give the hosts more disks"
        )
        return (Unfit(message, ("settings", "ec")),)

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        roster, place = SwiftRoster(self.place, self.settings, sites), self.place
        alone = "the only proxy" if len(roster.proxies) == 1 else ""
        found = [Part(one.host, one.service, "gateway-daemon", alone) for one in roster.proxies]
        found += [Part(name, "memcached") for name in place.proxy]
        for name in place.storage:
            found += [
                Part(
                    name,
                    f"{one}-server",
                    "storage-daemon" if one == "object" else None,
                    disks=roster.disks(sites[name], one),
                )
                for one in SERVERS
            ]
        return (*found, *front_parts(place))

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        secret = Secrets.of(self.cluster, sites)
        roster = SwiftRoster(self.place, self.settings, sites)
        texts = files(self.release, self.settings, roster, secret, self.cluster.front())
        return shown(texts, secret)

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        roster = SwiftRoster(self.place, self.settings, hosts)
        front = self.cluster.front()
        secret = Secrets.of(self.cluster, hosts)
        texts = files(self.release, self.settings, roster, secret, front)
        proxy = hosts[self.place.proxy[0]]
        known = options.known_to(proxy)
        other = RELEASES[self.release].settings_of
        mine = {str(server): own for server, own in self.settings.options.items()}
        found = [
            line
            for own in texts.values()
            for server, text in options.own_files(own)
            for line in options.faults(known, server, text, mine.get(server, {}) if other else None)
        ]
        if other:
            ignored = options.ignored(known, texts)
            say(f"{self.release}: settings are {words(self.release, other, ignored)}")
        found += code_faults(proxy, self.settings)
        if front is not None and roster.front is not None:
            host = hosts[roster.front.name]
            for path, text in texts[host.name].items():
                put(host, path, text)
            try:
                front.check(host)
            except UsageError as error:
                found.append(str(error))
        if found:
            raise UsageError(f"{self.release}:\n" + "\n".join(dict.fromkeys(found)))

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        return SwiftBringUp(self.cluster, hosts, client, say).run()
