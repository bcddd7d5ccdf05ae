"""What must be started anew for a setting of Swift to count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weighbridge.common.scope import Scope
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.swift.settings import SwiftSettings

_CLUSTER = frozenset(
    {
        # What rings, disks and the set of daemons are made from, and what clients are told.
        *("s3api", "replicas", "part_power", "disks", "background", "proxy.daemons", "proxy.port"),
        # A port for each disk, or not, is in the ring.
        "object.servers_per_port",
        # A memcached that starts anew has forgotten the clients' token.
        "proxy.memcached_memory",
    }
)
_KEPT = frozenset(
    {
        *("bind_ip", "bind_port", "servers_per_port", "swift_dir", "devices", "user"),
        *("memcache_servers", "use", "token_life", "reseller_prefix", "auth_prefix"),
    }
)
"""Options that say where servers are, what is stored where, and which tokens are good."""


def scope(key: str) -> Scope:
    """The least that must be started anew for a setting to count; of one that the settings do not
    have, all.
    """
    head, _, rest = key.partition(".")
    if key in _CLUSTER or head not in SwiftSettings.model_fields:
        return "cluster"
    if head in FRONTS:
        return FRONTS[head].scope(rest)
    if head == "options":
        name = key.rpartition(".")[2].removeprefix("set ").strip()
        return "cluster" if name in _KEPT or name.startswith("user_") else "restart"
    model = SwiftSettings.model_fields[head].annotation
    fields: Mapping[str, Any] = getattr(model, "model_fields", {})
    return "restart" if not rest or rest.partition(".")[0] in fields else "cluster"
