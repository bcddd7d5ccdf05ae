"""The configuration files of a Swift deployment, by host and path."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.common.host import Host
from weighbridge.gateways import ini
from weighbridge.gateways.certificates import SERVER_FILE, Certificates, issued
from weighbridge.gateways.front import Front
from weighbridge.gateways.gateway import Rendered, Site
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.settings import SERVERS, SwiftCluster, SwiftSettings
from weighbridge.gateways.swift.swift_roster import SwiftRoster


@dataclass(frozen=True)
class Secrets:
    """Secrets of a deployment, new for each."""

    key: str = field(default_factory=lambda: secrets.token_urlsafe(30))
    """The user's key."""
    prefix: str = field(default_factory=lambda: secrets.token_hex(16))
    suffix: str = field(default_factory=lambda: secrets.token_hex(16))
    certificates: Certificates | None = None
    """None: clients use plain HTTP."""

    @classmethod
    def of(cls, cluster: SwiftCluster, sites: Mapping[str, Site]) -> Secrets:
        """New secrets for a deployment."""
        host = cluster.tls_host
        return cls(certificates=None if host is None else issued(sites[host]))

    @property
    def all(self) -> tuple[str, ...]:
        """All secrets."""
        own = () if self.certificates is None else (self.certificates.secret,)
        return (self.key, self.prefix, self.suffix, *own)


def files(
    release: str,
    settings: SwiftSettings,
    roster: SwiftRoster,
    secret: Secrets,
    front: Front | None,
) -> dict[str, dict[str, str]]:
    """File texts by path, by host. Without rings, which are binary and made by Swift itself."""
    shared = config.swift_conf(secret.prefix, secret.suffix, settings.ec)
    found: dict[str, dict[str, str]] = {name: {} for name in roster.sites}
    for store in roster.stores:
        own = found[store.name]
        own["/etc/swift/swift.conf"] = shared
        own["/etc/rsyncd.conf"] = config.rsyncd_conf(store.address)
        for server in SERVERS:
            lacks = RELEASES[release].lacks
            own[f"/etc/swift/{server}-server.conf"] = config.storage_conf(
                settings, server, store.address, lacks=lacks
            )
    memcacheds = [site.address for site in roster.caches]
    for proxy in roster.proxies:
        own = found[proxy.host]
        own["/etc/swift/swift.conf"] = shared
        own[proxy.conf] = config.proxy_conf(
            settings,
            proxy.address,
            proxy.port,
            secret.key,
            memcacheds=memcacheds,
            tls=secret.certificates is not None,
        )
    if front is not None and roster.front is not None:
        found[roster.front.name] |= front.files(roster.front.address, roster.backends)
    if secret.certificates is not None:
        site, path = (
            (roster.caches[0], config.CERTIFICATE)
            if roster.front is None
            else (roster.front, SERVER_FILE)
        )
        found[site.name][path] = secret.certificates.server
    return found


def put(host: Host, path: str, text: str) -> None:
    """Write a file to its host. Those in /etc/swift are readable by Swift's user only: some hold
    secrets.

    Raises TargetError.
    """
    if path.startswith("/etc/swift/"):
        host.put(path, text, mode=0o600, owner="swift")
    else:
        host.put(path, text, mode=0o600 if path == SERVER_FILE else 0o644)


def shown(texts: Mapping[str, Mapping[str, str]], secret: Secrets) -> tuple[Rendered, ...]:
    """The files with `***` for secrets."""
    return tuple(
        Rendered(host=host, path=path, text=ini.mask(text, secret.all))
        for host, own in texts.items()
        for path, text in own.items()
    )
