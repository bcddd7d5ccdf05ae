"""The `swift` gateway: a proxy with memcached, and storage hosts with account, container and object servers."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal

from pydantic import SecretStr

from gateways import daemon, ini, program
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Gateway, HostNeed, Image, Rendered, Say, Site, Standing
from gateways.host import Host, Service
from gateways.ports import await_ports
from gateways.swift import config
from gateways.swift.settings import RELEASES, SERVERS, Place, Settings
from gateways.swift.standing import SwiftStanding, facts
from gateways.together import together
from gateways.verify import verify
from ground.record import Record

LOG = "swift.log"
"""Log of a host that all its Swift servers write to."""

_RING_SEED = 2014

# eventlet's own resolver takes a third of a server's start, which is nothing but CPU. No server of ours resolves a name: all are
# given addresses. Other OpenStack services set this for themselves.
_ENVIRONMENT = {"EVENTLET_NO_GREENDNS": "yes"}


class Swift(Gateway):
    """OpenStack Swift."""

    kind: ClassVar[str] = "swift"
    releases: ClassVar[Mapping[str, Image]] = RELEASES
    Placement: ClassVar[type[Record]] = Place
    Settings: ClassVar[type[Record]] = Settings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises ValueError when placement and settings do not fit each other."""
        assert isinstance(place, Place)  # noqa: S101 - the seam's contract
        assert isinstance(settings, Settings)  # noqa: S101
        self.release = release
        self.place = place
        self.settings = settings
        if len(place.storage) < settings.replicas:
            raise ValueError(f"{settings.replicas} replicas in zones of their own need {settings.replicas} storage hosts")

    def apis(self) -> tuple[Literal["swift", "s3"], ...]:
        """Swift's own, and S3 where the layout has s3api."""
        return ("swift", "s3") if self.settings.s3api else ("swift",)

    def needs(self) -> Mapping[str, HostNeed]:
        """Disks for the storage hosts."""
        stores = {name: HostNeed(roles=("storage",), disks=self.settings.disks or 1) for name in self.place.storage}
        return {**{name: HostNeed(roles=("proxy", "memcached")) for name in self.place.proxy}, **stores}

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """See Gateway."""
        raise NotImplementedError

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """See Gateway."""

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> Standing:
        """Stand it up; see the class Rise for the order."""
        return Rise(self, hosts, client, say).run()


class Rise:
    """One bring-up, from empty hosts to a verified gateway.

    Rings are computed while disks are formatted and before any server starts: ten Python programs starting at once leave no
    CPU for it. Nothing is asked of the proxy before every storage port answers: it would hold the silent nodes in error
    for a minute.
    """

    def __init__(self, gateway: Swift, hosts: Mapping[str, Host], client: Host, say: Say) -> None:
        self.gateway = gateway
        self.settings = gateway.settings
        self.client = client
        self.say = say
        self.proxy = hosts[gateway.place.proxy[0]]
        self.stores = [hosts[name] for name in gateway.place.storage]
        self.key = secrets.token_urlsafe(30)
        self.hash_prefix = secrets.token_hex(16)
        self.hash_suffix = secrets.token_hex(16)
        self.started: list[Daemon] = []

    def run(self) -> Standing:
        """Do it all; returns what stands. Raises ServiceFailed, CommandFailed or VerificationFailed."""
        self.say("making file systems, configuration and rings")
        stores: list[Callable[[], list[Rendered]]] = [partial(self._make_store, host) for host in self.stores]
        rendered = [one for written in together([self._make_rings, self._make_proxy, *stores]) for one in written]
        self._start_servers()
        self.say("waiting for the storage servers and the proxy")
        await_ports(self.client, self.started, self.say)
        endpoints = self._endpoints()
        with daemon.blaming(self.started):
            checks = verify(self.client, endpoints)
        self.say(f"verified: {len(checks)} operations over {' and '.join(one.api for one in endpoints)}")
        if self.settings.background:
            self._start_background()
        found = facts(self.gateway, self.proxy, self.stores, LOG)
        found["verified"] = f"{len(checks)} operations over {' and '.join(one.api for one in endpoints)}, reads byte for byte"
        return SwiftStanding(self.started, self.proxy, self.stores, endpoints=endpoints, found=found, rendered=rendered)

    def _prepare(self, host: Host, files: Mapping[str, str], script: Sequence[str] = ()) -> list[Rendered]:
        """Configuration, folders and a log for one host; `script` is done besides. Its syslog listens when this returns."""
        for path, text in files.items():
            host.put(path, text)
        syslog = Service("syslog", (*program.ship(host, "gateways.swift.write_syslog"), f"/var/log/host/{LOG}"))
        self._start([Daemon(host, syslog)])
        lines = [
            *script,
            "mkdir -p /run/swift /run/lock /var/cache/swift",
            "chown swift:swift /run/swift /run/lock /var/cache/swift",
            # A server that finds no /dev/log writes its log nowhere: the reader must be there before any of them.
            "tries=0; until [ -S /dev/log ]; do tries=$((tries + 1)); [ $tries -lt 3000 ]; sleep 0.01; done",
        ]
        host.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)
        secret = (self.key, self.hash_prefix, self.hash_suffix)
        return [Rendered(host=host.name, path=path, text=ini.mask(text, secret)) for path, text in files.items()]

    def _make_store(self, host: Host) -> list[Rendered]:
        """Configuration and file systems of one storage host."""
        files = {
            "/etc/swift/swift.conf": config.swift_conf(self.hash_prefix, self.hash_suffix),
            "/etc/rsyncd.conf": config.rsyncd_conf(host.address),
            **{f"/etc/swift/{server}-server.conf": config.storage_conf(self.settings, server, host.address) for server in SERVERS},
        }
        disks = host.disks[: self.settings.disks]
        script = ["pids="]
        for disk in disks:
            script += [f"mkfs.xfs -q -f -K {disk} &", 'pids="$pids $!"']
        script.append("for pid in $pids; do wait $pid; done")
        for disk, folders in zip(disks, self._folders(host), strict=True):
            script.append(f"mkdir -p {folders[0]} && mount -t xfs -o noatime,nodiratime,logbufs=8 {disk} {folders[0]}")
            # The only disk of a host holds the databases as well: the same file system in both places, as a mount point in each.
            script += [f"mkdir -p {other} && mount --bind {folders[0]} {other}" for other in folders[1:]]
            script.append(f"chown swift:swift {' '.join(folders)}")
        return self._prepare(host, files, script)

    def _folders(self, host: Host) -> list[tuple[str, ...]]:
        """Where each disk of a storage host is mounted: the first for databases, the others for objects; an only one for both."""
        count = len(host.disks[: self.settings.disks])
        first = f"{config.DATABASES}/db0"
        if count == 1:
            return [(f"{config.OBJECTS}/d0", first)]
        return [(first,), *((f"{config.OBJECTS}/d{index}",) for index in range(count - 1))]

    def _make_proxy(self) -> list[Rendered]:
        """Configuration of the proxy host, and its memcached."""
        files = {
            "/etc/swift/swift.conf": config.swift_conf(self.hash_prefix, self.hash_suffix),
            "/etc/swift/proxy-server.conf": config.proxy_conf(self.settings, self.proxy.address, self.key),
        }
        rendered = self._prepare(self.proxy, files)
        memory = str(self.settings.proxy.memcached_memory // 2**20)
        argv = ("memcached", "-u", "memcache", "-l", self.proxy.address, "-p", str(config.MEMCACHED_PORT), "-m", memory)
        self._start([Daemon(self.proxy, Service("memcached", argv), config.MEMCACHED_PORT)])
        return rendered

    def _start_servers(self) -> None:
        self._start(
            [
                self._server(self.proxy, "proxy", self.settings.proxy.port),
                *(self._server(host, server, config.PORTS[server]) for host in self.stores for server in SERVERS),
            ]
        )

    @staticmethod
    def _server(host: Host, server: str, port: int) -> Daemon:
        argv = (f"swift-{server}-server", f"/etc/swift/{server}-server.conf")
        return Daemon(host, Service(f"{server}-server", argv, _ENVIRONMENT), port, (LOG,))

    def _make_rings(self) -> list[Rendered]:
        """Compute the three ring files on the proxy host and give them to every host; nothing of them is text."""
        rings: dict[str, list[dict[str, str | int]]] = {server: [] for server in SERVERS}
        for zone, host in enumerate(self.stores, 1):
            names = [folder.rsplit("/", 2)[-1] for folders in self._folders(host) for folder in folders]
            for server in SERVERS:
                for name in names:
                    if (name == "db0") != (server == "object"):
                        rings[server].append({"zone": zone, "ip": host.address, "port": config.PORTS[server], "device": name})
        settings = self.settings
        order = {"part_power": settings.part_power, "replicas": settings.replicas, "seed": _RING_SEED, "rings": rings}
        command = program.ship(self.proxy, "gateways.swift.make_rings")
        done = self.proxy.run(command, stdin=json.dumps(order), env=_ENVIRONMENT, timeout_s=180)
        made = {kind: base64.b64decode(text) for kind, text in json.loads(done.stdout).items()}

        def give(host: Host) -> None:
            for kind, content in made.items():
                host.put(f"/etc/swift/{kind}.ring.gz", content)

        together([partial(give, host) for host in (self.proxy, *self.stores)])
        return []

    def _endpoints(self) -> tuple[Endpoint, ...]:
        base = f"http://{self.proxy.address}:{self.settings.proxy.port}"
        user = f"{config.ACCOUNT}:{config.USER}"
        swift = Endpoint(api="swift", url=f"{base}/auth/v1.0", user=user, key=SecretStr(self.key))
        return (swift, Endpoint(api="s3", url=base, user=user, key=SecretStr(self.key))) if self.settings.s3api else (swift,)

    def _start_background(self) -> None:
        daemons = []
        for host in self.stores:
            argv = ("rsync", "--daemon", "--no-detach", "--config=/etc/rsyncd.conf")
            daemons.append(Daemon(host, Service("rsync", argv), config.RSYNC_PORT))
            for server, names in config.DAEMONS.items():
                for name in names:
                    words = (f"swift-{server}-{name}", f"/etc/swift/{server}-server.conf")
                    daemons.append(Daemon(host, Service(f"{server}-{name}", words, _ENVIRONMENT), logs=(LOG,)))
        self._start(daemons)
        self.say(f"started {len(daemons)} background daemons")
        await_ports(self.client, [one for one in daemons if one.port], self.say)

    def _start(self, daemons: Sequence[Daemon]) -> None:
        self.started += daemons
        daemon.start(daemons)
