"""What lies below Swift's clients: one proxy past its front, and the object servers past the
proxies.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import Host
from weighbridge.gateways import program
from weighbridge.gateways.gateway import ObjectServer, SwiftBelow
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.files import Secrets
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift_roster import Proxy

RESELLER = "AUTH_"
"""What tempauth puts before a user's account."""


def endpoints(
    base: str, key: str, settings: SwiftSettings, *, storage_url: str | None = None
) -> tuple[Endpoint, ...]:
    """The APIs that proxies answer at a URL, for the user of `key`."""
    user, secret = f"{config.ACCOUNT}:{config.USER}", SecretStr(key)
    swift = Endpoint(
        api="swift", url=f"{base}/auth/v1.0", user=user, key=secret, storage_url=storage_url
    )
    return (
        (swift, Endpoint(api="s3", url=base, user=user, key=secret)) if settings.s3api else (swift,)
    )


def direct(
    proxy: Proxy, key: str, settings: SwiftSettings, *, fronted: bool
) -> tuple[Endpoint, ...]:
    """One proxy by itself.

    Its auth answers with the name it was asked by, so past a front it names itself.
    """
    base = f"http://{proxy.address}:{proxy.port}"
    storage_url = f"{base}/v1/{RESELLER}{config.ACCOUNT}" if fronted else None
    return endpoints(base, key, settings, storage_url=storage_url)


def object_servers(
    host: Host, stores: Sequence[Host], secret: Secrets, replicas: int
) -> SwiftBelow:
    """The object servers by the ring that `host`, which has Swift, was given.

    Raises CommandFailed.
    """
    ring = json.loads(
        host.run(program.ship(host, "weighbridge.gateways.swift.tell_ring"), timeout_s=180).stdout
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
