"""The layers below Swift's clients: one proxy behind its front, and the object servers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, base_url
from weighbridge.common.host import Host
from weighbridge.gateways import program
from weighbridge.gateways.below import ObjectServer, SwiftBelow
from weighbridge.gateways.certificates import ca_file_of
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.files import Secrets
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift_roster import Proxy

RESELLER = "AUTH_"
"""tempauth's prefix of accounts."""


def endpoints(
    base: str, key: str, settings: SwiftSettings, *, storage_url: str | None = None
) -> tuple[Endpoint, ...]:
    """The endpoints at a URL of proxies, for the user with `key`."""
    user, secret, ca_file = f"{config.ACCOUNT}:{config.USER}", SecretStr(key), ca_file_of(base)
    swift = Endpoint(
        api="swift",
        url=f"{base}/auth/v1.0",
        user=user,
        key=secret,
        storage_url=storage_url,
        ca_file=ca_file,
    )
    s3 = Endpoint(api="s3", url=base, user=user, key=secret, ca_file=ca_file)
    return (swift, s3) if settings.s3api else (swift,)


def url_of(proxy: Proxy, settings: SwiftSettings) -> str:
    """The URL of one proxy."""
    return base_url(proxy.address, proxy.port, tls=settings.proxy.tls)


def direct(
    proxy: Proxy, key: str, settings: SwiftSettings, *, fronted: bool
) -> tuple[Endpoint, ...]:
    """The endpoints of one proxy. Behind a front, auth would return the front as storage URL."""
    base = url_of(proxy, settings)
    storage_url = f"{base}/v1/{RESELLER}{config.ACCOUNT}" if fronted else None
    return endpoints(base, key, settings, storage_url=storage_url)


def object_servers(
    host: Host, stores: Sequence[Host], secret: Secrets, replicas: int
) -> SwiftBelow:
    """The object servers in the ring on `host`, which has Swift installed. Raises CommandFailed."""
    ring = json.loads(
        host.run(program.ship(host, "weighbridge.gateways.swift.read_ring"), timeout_s=180).stdout
    )
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
