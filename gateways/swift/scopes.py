"""The least restart for a setting of Swift to take effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weighbridge.common.scope import Scope
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.swift.settings import SwiftSettings

_CLUSTER = frozenset(
    {
        # Rings, disks and the set of daemons depend on these, and what clients know.
        *(
            "s3api",
            "replicas",
            "ec",
            "part_power",
            "disks",
            "background",
            "proxy.daemons",
            "proxy.port",
        ),
        "proxy.tls",
        *("endpoints", "endpoints.spread", "endpoints.drop_dead"),
        # The ring contains the ports.
        "object.servers_per_port",
        # A restarted memcached has lost the clients' token.
        "proxy.memcached_memory",
    }
)
_KEPT = frozenset(
    {
        *("bind_ip", "bind_port", "servers_per_port", "swift_dir", "devices", "user"),
        *("memcache_servers", "use", "token_life", "reseller_prefix", "auth_prefix"),
    }
)
"""Options that define where servers are, where data is stored, and which tokens are valid."""


def scope(key: str) -> Scope:
    """The least restart for a setting to take effect; `cluster` for an unknown one."""
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
