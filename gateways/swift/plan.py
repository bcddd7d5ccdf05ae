"""What a Swift layout makes on its hosts: servers, disks and files."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, base_url
from weighbridge.common.host import Host, Service
from weighbridge.gateways.certificates import SERVER_FILE, Certificates, ca_file_of, issued
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, front_url
from weighbridge.gateways.gateway import Gateway, Site
from weighbridge.gateways.running import HostFile, StorePlan, front_daemons
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.settings import (
    SERVERS,
    SwiftPlacement,
    SwiftSettings,
    front_before,
    host_of_tls,
)

RESELLER: Final = "AUTH_"
"""tempauth's prefix of accounts."""
LOG: Final = "swift.log"
"""The host's log that all its Swift servers write to."""
SYSLOG: Final = "syslog"
PROXY: Final = "proxy-server"
_MOUNT: Final = "mount -t xfs -o noatime,nodiratime,logbufs=8"

# Loading eventlet's DNS resolver takes a third of a server's start, all CPU. These servers resolve
# no names: they get addresses. Other OpenStack services set this themselves. Loading setuptools in
# place of Python's own distutils takes another fifth; nothing here builds packages.
ENVIRONMENT: Final = {"EVENTLET_NO_GREENDNS": "yes", "SETUPTOOLS_USE_DISTUTILS": "stdlib"}


@dataclass(frozen=True)
class Secrets:
    """Secrets of a deployment, new for each."""

    key: str = field(default_factory=lambda: secrets.token_urlsafe(30))
    """The user's key."""
    prefix: str = field(default_factory=lambda: secrets.token_hex(16))
    suffix: str = field(default_factory=lambda: secrets.token_hex(16))
    certificates: Certificates | None = None
    """None: clients use plain HTTP."""


@dataclass(frozen=True)
class Proxy:
    """A planned proxy server. `service` is its service on the host, `conf` its file."""

    service: str
    site: Site
    port: int

    @property
    def conf(self) -> str:
        return f"/etc/swift/{self.service}.conf"


class SwiftPlan:
    """The servers of a layout on these hosts, which need not exist yet."""

    def __init__(
        self, gateway: Gateway, sites: Mapping[str, Site], secret: Secrets | None = None
    ) -> None:
        """Without `secret` with new ones."""
        self.gateway, self.sites = gateway, sites
        self.place: SwiftPlacement = gateway.place
        self.settings: SwiftSettings = gateway.settings
        self.tls_host = host_of_tls(self.place, self.settings)
        self.front = front_before(self.place, self.settings)
        self.stores = tuple(sites[name] for name in self.place.storage)
        self.caches = tuple(sites[name] for name in self.place.proxy)
        """Hosts of proxies, each with a memcached."""
        count, port = self.settings.proxy.daemons, self.settings.proxy.port
        self.proxies = tuple(
            Proxy(PROXY if count == 1 else f"{PROXY}-{index}", site, port + index)
            for site in self.caches
            for index in range(count)
        )
        if secret is None:
            certified = None if self.tls_host is None else issued(sites[self.tls_host])
            secret = Secrets(certificates=certified)
        self.secret = secret

    # disks

    def folders(self, store: Site) -> Mapping[str, tuple[str, ...]]:
        """Where each disk of a storage host is mounted: the first one for databases, the others for
        objects; a single one for both.
        """
        disks = store.disks[: self.settings.disks]
        if len(disks) == 1:
            return {disks[0]: (f"{config.OBJECTS}/d0", f"{config.DATABASES}/db0")}
        first = dict.fromkeys(disks[:1], (f"{config.DATABASES}/db0",))
        return first | {disk: (f"{config.OBJECTS}/d{i}",) for i, disk in enumerate(disks[1:])}

    def mounted(self, store: Site, below: str) -> dict[str, str]:
        """The disks of a storage host with a folder below this one, each with its folder."""
        return {
            disk: folder
            for disk, folders in self.folders(store).items()
            for folder in folders
            if folder.startswith(f"{below}/")
        }

    def disks(self, store: Site, server: str) -> tuple[str, ...]:
        """The disks that a server keeps its data on."""
        return tuple(self.mounted(store, config.devices(server)))

    def mounts(self, store: Site, disk: str) -> list[str]:
        """Shell lines that mount a disk."""
        first, *others = self.folders(store)[disk]
        return [
            f"mkdir -p {first} && {_MOUNT} {disk} {first}",
            # The only disk of a host also has the databases: the same file system, mounted in both
            # places.
            *(f"mkdir -p {other} && mount --bind {first} {other}" for other in others),
            f"chown swift:swift {' '.join((first, *others))}",
        ]

    def ports(self, store: Site, server: str) -> tuple[int, ...]:
        """The ports of a server on its host: one, or one for each disk."""
        if server == "object" and self.settings.object.servers_per_port:
            return tuple(config.DISK_PORT + i for i in range(len(self.disks(store, server))))
        return (config.PORTS[server],)

    def rings(self) -> dict[str, dict[str, Any]]:
        """What each ring is made of, by its type."""
        rings: dict[str, dict[str, Any]] = {}
        for server in SERVERS:
            devices: list[dict[str, object]] = []
            for zone, store in enumerate(self.stores, 1):
                ports, folders = (
                    self.ports(store, server),
                    self.mounted(store, config.devices(server)),
                )
                for index, folder in enumerate(folders.values()):
                    place = {"ip": store.address, "port": ports[index % len(ports)]}
                    devices.append({"zone": zone, **place, "device": folder.rpartition("/")[2]})
            rings[server] = {"replicas": self.settings.replicas, "devices": devices}
        if (ec := self.settings.ec) is not None:
            coded = {**rings["object"], "replicas": ec.fragments.count}
            rings[f"object-{config.EC_POLICY}"] = coded
        return rings

    # files

    def files(self) -> list[HostFile]:
        """All files but rings, which are binary and made by Swift itself. Those of Swift are for
        its user only.
        """
        secret, certificates = self.secret, self.secret.certificates
        shared = config.swift_conf(secret.prefix, secret.suffix, self.settings.ec)
        texts: dict[str, dict[str, str]] = {name: {} for name in self.place.hosts}
        for store in self.stores:
            own = texts[store.name]
            own["/etc/swift/swift.conf"] = shared
            own["/etc/rsyncd.conf"] = config.rsyncd_conf(store.address)
            for server in SERVERS:
                own[f"/etc/swift/{server}-server.conf"] = config.storage_conf(
                    self.settings, server, store.address, lacks=RELEASES[self.gateway.release].lacks
                )
        for proxy in self.proxies:
            own = texts[proxy.site.name]
            own["/etc/swift/swift.conf"] = shared
            own[proxy.conf] = config.proxy_conf(
                self.settings,
                proxy.site.address,
                proxy.port,
                secret.key,
                memcacheds=[site.address for site in self.caches],
                tls=certificates is not None,
            )
        if self.place.front is not None:
            texts[self.place.front] |= self._front_files()
        if self.tls_host is not None and certificates is not None:
            path = config.CERTIFICATE if self.place.front is None else SERVER_FILE
            texts[self.tls_host][path] = certificates.server
        hidden = [secret.key, secret.prefix, secret.suffix]
        if certificates is not None:
            hidden.append(certificates.secret)
        files = []
        for host, own in texts.items():
            for path, text in own.items():
                of_swift = path.startswith("/etc/swift/")
                masked = tuple(hidden) if of_swift or path == SERVER_FILE else ()
                files.append(HostFile(host, path, text, masked, "swift" if of_swift else "root"))
        return files

    def _front_files(self) -> Mapping[str, str]:
        front, place = self.front, self.place.front
        if front is None or place is None:
            return {}
        backends = [
            Backend(f"{one.site.name}-{one.port}", one.site.address, one.port)
            for one in self.proxies
        ]
        return front.files(self.sites[place].address, backends)

    # daemons and endpoints

    def on(self, hosts: Mapping[str, Host], program: Sequence[str]) -> StorePlan[Gateway]:
        """Its daemons on hosts that have `program`, the one of `swift_host`."""
        place, settings = self.place, self.settings
        first, servers, background = list[Daemon](), list[Daemon](), list[Daemon]()
        for name in dict.fromkeys((*place.proxy, *place.storage)):
            argv = (*program, "syslog", f"/var/log/host/{LOG}")
            first.append(Daemon(hosts[name], Service(SYSLOG, argv)))
        memory = str(settings.proxy.memcached_memory // 2**20)
        for name in place.proxy:
            listen = ("-l", hosts[name].address, "-p", str(config.MEMCACHED_PORT))
            service = Service("memcached", ("memcached", "-u", "memcache", *listen, "-m", memory))
            first.append(Daemon(hosts[name], service, config.MEMCACHED_PORT))
        for proxy in self.proxies:
            host, port = hosts[proxy.site.name], proxy.port
            servers.append(_daemon(host, PROXY, proxy.conf, port=port, name=proxy.service))
        for host in (hosts[name] for name in place.storage):
            argv = ("rsync", "--daemon", "--no-detach", "--config=/etc/rsyncd.conf")
            background.append(
                Daemon(host, Service("rsync", argv), config.RSYNC_PORT, disks=host.disks)
            )
            for server, names in config.daemons_of(settings).items():
                disks, conf = self.disks(host, server), f"/etc/swift/{server}-server.conf"
                port = self.ports(host, server)[0]
                servers.append(_daemon(host, f"{server}-server", conf, port=port, disks=disks))
                background += [_daemon(host, f"{server}-{one}", conf, disks=disks) for one in names]
        fronts: Sequence[Daemon] = ()
        if place.front is not None:
            fronts = front_daemons(self.front, hosts[place.front], self._front_files())
        return StorePlan(
            self.gateway,
            [first, servers],
            self.files(),
            self.front,
            fronts,
            background if settings.background else (),
        )

    def url(self, proxy: Proxy) -> str:
        """The URL of one proxy."""
        return base_url(proxy.site.address, proxy.port, tls=self.settings.proxy.tls)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """What clients use."""
        first, *others = map(self.url, self.proxies)
        front = front_url(self.place, self.settings, self.sites)
        found = self._endpoints_at(front or first)
        if self.settings.endpoints is None:
            return found
        more = {"others": tuple(others), "spreading": self.settings.endpoints}
        return tuple(one.model_copy(update=more) for one in found)

    def behind_front(self) -> tuple[Endpoint, ...]:
        """The first proxy behind the front, which auth would return as storage URL."""
        base = self.url(self.proxies[0])
        return self._endpoints_at(base, f"{base}/v1/{RESELLER}{config.ACCOUNT}")

    def _endpoints_at(self, base: str, storage_url: str | None = None) -> tuple[Endpoint, ...]:
        user = f"{config.ACCOUNT}:{config.USER}"
        own: dict[str, Any] = {"user": user, "key": SecretStr(self.secret.key)}
        own["ca_file"] = ca_file_of(base)
        swift = Endpoint(api="swift", url=f"{base}/auth/v1.0", storage_url=storage_url, **own)
        s3 = Endpoint(api="s3", url=base, **own)
        return (swift, s3) if self.settings.s3api else (swift,)


def _daemon(
    host: Host,
    program: str,
    conf: str,
    *,
    port: int | None = None,
    disks: tuple[str, ...] = (),
    name: str = "",
) -> Daemon:
    service = Service(name or program, (f"swift-{program}", conf), ENVIRONMENT)
    return Daemon(host, service, port, (LOG,), (conf,), disks)
