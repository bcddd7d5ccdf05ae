"""Configuration files of a Swift deployment, from its settings."""

from __future__ import annotations

from collections.abc import Mapping

from gateways import ini
from gateways.swift.settings import SERVERS, Server, Settings

PORTS: Mapping[str, int] = {"object": 6200, "container": 6201, "account": 6202}
RSYNC_PORT = 873
MEMCACHED_PORT = 11211
ACCOUNT = "weigh"
USER = "bench"

OBJECTS = "/srv/node"
"""Where disks of objects are mounted; object daemons walk every folder below it."""
DATABASES = "/srv/database"
"""Where the disk of account and container databases is mounted, apart, so that object daemons do not walk it."""

DAEMONS: Mapping[str, tuple[str, ...]] = {
    "account": ("replicator", "auditor", "reaper"),
    "container": ("replicator", "auditor", "updater"),
    "object": ("replicator", "auditor", "updater"),
}
"""Background daemons by server."""

_CACHE = {"recon_cache_path": "/var/cache/swift"}


def swift_conf(prefix: str, suffix: str) -> str:
    """The text of swift.conf; prefix and suffix are this deployment's secrets."""
    hashes = {"swift_hash_path_prefix": prefix, "swift_hash_path_suffix": suffix}
    return ini.render({"swift-hash": hashes, "storage-policy:0": {"name": "gold", "default": "yes"}})


def proxy_conf(settings: Settings, address: str, key: str) -> str:
    """The text of proxy-server.conf; `key` is the user's."""
    proxy = settings.proxy
    sections: dict[str, Mapping[str, ini.Value]] = {
        "DEFAULT": {
            "bind_ip": address,
            "bind_port": proxy.port,
            "workers": proxy.workers,
            "user": "swift",
            "log_name": "proxy-server",
            "log_level": settings.log_level,
        },
        "pipeline:main": {"pipeline": " ".join(settings.pipeline)},
        "app:proxy-server": {
            "use": "egg:swift#proxy",
            "account_autocreate": True,
            "node_timeout": _number(proxy.node_timeout),
            "conn_timeout": _number(proxy.conn_timeout),
            "recoverable_node_timeout": _number(proxy.recoverable_node_timeout),
            "error_suppression_limit": proxy.error_suppression.limit,
            "error_suppression_interval": _number(proxy.error_suppression.interval),
        },
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
        "filter:cache": {
            "use": "egg:swift#memcache",
            "memcache_servers": f"{address}:{MEMCACHED_PORT}",
            "memcache_max_connections": proxy.memcache_connections,
        },
        "filter:tempauth": {
            "use": "egg:swift#tempauth",
            f"user_{ACCOUNT}_{USER}": f"{key} .admin",
            "token_life": 7 * 86400,
        },
    }
    if settings.s3api:
        sections["filter:s3api"] = {"use": "egg:swift#s3api", "location": "us-east-1", "s3_acl": False}
        sections["filter:slo"] = {"use": "egg:swift#slo"}
    return ini.render(ini.merge(sections, settings.options.get("proxy", {})))


def storage_conf(settings: Settings, server: str, address: str) -> str:
    """The text of {account,container,object}-server.conf of one storage host."""
    own = {"account": settings.account, "container": settings.container, "object": settings.object}[server]
    default: dict[str, ini.Value] = {
        "bind_ip": address,
        "bind_port": PORTS[server],
        "workers": own.workers,
        "user": "swift",
        "devices": OBJECTS if server == "object" else DATABASES,
        "mount_check": True,
        "log_name": f"{server}-server",
        "log_level": settings.log_level,
    }
    app: dict[str, ini.Value] = {
        "use": f"egg:swift#{server}",
        "node_timeout": _number(own.node_timeout),
        "log_requests": settings.log_requests,
    }
    if server == "object":
        disk = settings.object
        default |= {"disk_chunk_size": disk.disk_chunk_size, "network_chunk_size": disk.network_chunk_size}
        app |= {
            "keep_cache_private": disk.keep_cache_private,
            "keep_cache_size": disk.keep_cache_size,
            "etag_validate_pct": disk.etag_validate_pct,
            "mb_per_sync": disk.mb_per_sync,
        }
    sections: dict[str, Mapping[str, ini.Value]] = {
        "DEFAULT": default,
        "pipeline:main": {"pipeline": f"healthcheck recon {server}-server"},
        f"app:{server}-server": app,
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
        "filter:recon": {"use": "egg:swift#recon", **_CACHE},
        **{f"{server}-{daemon}": _CACHE for daemon in DAEMONS[server]},
    }
    return ini.render(ini.merge(sections, settings.options.get(_server(server), {})))


def rsyncd_conf(address: str) -> str:
    """The text of rsyncd.conf of a storage host, over which replicators copy."""
    modules: dict[str, Mapping[str, ini.Value]] = {
        str(server): {
            "path": OBJECTS if server == "object" else DATABASES,
            "max connections": 8,
            "read only": False,
            "lock file": f"/run/lock/{server}.lock",
        }
        for server in SERVERS
    }
    head: dict[str, ini.Value] = {
        "uid": "swift",
        "gid": "swift",
        "address": address,
        "port": RSYNC_PORT,
        "use chroot": False,
        "reverse lookup": False,
    }
    return ini.render(modules, head=head)


def _server(name: str) -> Server:
    return next(server for server in SERVERS if server == name)


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
