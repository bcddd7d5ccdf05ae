"""Configuration files of a Swift deployment, from its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from weighbridge.common.address import host_port
from weighbridge.gateways import ini
from weighbridge.gateways.file_grammar import IniGrammar
from weighbridge.gateways.swift import pipeline
from weighbridge.gateways.swift.settings import SERVERS, EcSettings, Server, SwiftSettings

PORTS: Mapping[str, int] = {"object": 6200, "container": 6201, "account": 6202}
DISK_PORT = 6210
"""Port of a host's first disk with servers_per_port; the other disks use the next ones."""
RSYNC_PORT = 873
MEMCACHED_PORT = 11211
CERTIFICATE = "/etc/swift/server.pem"
"""Certificate and key of a proxy that speaks TLS itself: for Swift's user, as it rereads them."""
ACCOUNT = "weigh"
USER = "bench"

OBJECTS = "/srv/node"
"""Where object disks are mounted; object daemons walk every folder below it."""
DATABASES = "/srv/database"
"""Where the database disk is mounted, outside OBJECTS: object daemons must not walk it."""

DAEMONS: Mapping[str, tuple[str, ...]] = {
    "account": ("replicator", "auditor", "reaper"),
    "container": ("replicator", "auditor", "updater"),
    "object": ("replicator", "auditor", "updater"),
}
"""Background daemons by server."""

EC_POLICY = 1
"""Index of the erasure coded policy: 0 is for what was stored before there were policies."""


def daemons_of(settings: SwiftSettings) -> Mapping[str, tuple[str, ...]]:
    """Background daemons by server, with the one that repairs fragments where there are some."""
    if settings.ec is None:
        return DAEMONS
    return {**DAEMONS, "object": (*DAEMONS["object"], "reconstructor")}


RECON = "/var/cache/swift"
"""Where background daemons write statistics for recon."""

_CACHE: Mapping[str, ini.Value] = {"recon_cache_path": RECON}


def swift_conf(prefix: str, suffix: str, ec: EcSettings | None = None) -> str:
    """The text of swift.conf; prefix and suffix are the deployment's secrets."""
    hashes = {"swift_hash_path_prefix": prefix, "swift_hash_path_suffix": suffix}
    sections: dict[str, Mapping[str, ini.Value]] = {"swift-hash": hashes}
    if ec is None:
        return ini.render({**sections, "storage-policy:0": {"name": "gold", "default": "yes"}})
    sections["storage-policy:0"] = {"name": "gold"}
    sections[f"storage-policy:{EC_POLICY}"] = {
        "name": f"ec-{ec.k}-{ec.m}",
        "default": "yes",
        "policy_type": "erasure_coding",
        "ec_type": ec.type,
        "ec_num_data_fragments": ec.k,
        "ec_num_parity_fragments": ec.m,
        "ec_object_segment_size": ec.segment_size,
    }
    return ini.render(sections)


def proxy_conf(
    settings: SwiftSettings,
    address: str,
    port: int,
    key: str,
    *,
    memcacheds: Sequence[str],
    tls: bool = False,
) -> str:
    """The text of a proxy server's file, with the user's `key` and all memcacheds' addresses.

    `tls`: clients speak TLS, to the proxy or to a front.
    """
    proxy = settings.proxy
    cache: dict[str, ini.Value] = {
        "memcache_servers": ",".join(host_port(one, MEMCACHED_PORT) for one in memcacheds),
        "memcache_max_connections": proxy.memcache_connections,
    }
    users: dict[str, ini.Value] = {
        f"user_{ACCOUNT}_{USER}": f"{key} .admin",
        "token_life": 7 * 86400,
        # By itself it takes the scheme of its own connection, which a front makes by HTTP.
        **({"storage_url_scheme": "https"} if tls else {}),
    }
    own_tls = {"cert_file": CERTIFICATE, "key_file": CERTIFICATE} if proxy.tls else {}
    sections: dict[str, Mapping[str, ini.Value]] = {
        "DEFAULT": {
            "bind_ip": address,
            "bind_port": port,
            **own_tls,
            "workers": proxy.workers,
            "user": "swift",
            "log_name": "proxy-server",
            "log_level": settings.log_level,
        },
        "pipeline:main": {"pipeline": " ".join(pipeline.words(settings))},
        "app:proxy-server": {
            "use": "egg:swift#proxy",
            "account_autocreate": True,
            "node_timeout": _number(proxy.node_timeout),
            "conn_timeout": _number(proxy.conn_timeout),
            "recoverable_node_timeout": _number(proxy.recoverable_node_timeout),
            "post_quorum_timeout": _number(proxy.post_quorum_timeout),
            "client_chunk_size": proxy.client_chunk_size,
            "object_chunk_size": proxy.object_chunk_size,
            "error_suppression_limit": proxy.error_suppression.limit,
            "error_suppression_interval": _number(proxy.error_suppression.interval),
        },
        **pipeline.filters(settings, cache, users),
    }
    return ini.render(ini.merge(sections, settings.options.get("proxy", {})))


def storage_conf(
    settings: SwiftSettings, server: str, address: str, *, lacks: frozenset[str] = frozenset()
) -> str:
    """The text of {account,container,object}-server.conf, without options the release `lacks`."""
    own = {"account": settings.account, "container": settings.container, "object": settings.object}[
        server
    ]
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
        threads = "auto" if disk.tpool_threads is None else disk.tpool_threads
        default |= {
            "servers_per_port": disk.servers_per_port,
            "eventlet_tpool_num_threads": threads,
        }
        default |= {
            "disk_chunk_size": disk.disk_chunk_size,
            "network_chunk_size": disk.network_chunk_size,
        }
        app |= {
            "keep_cache_private": disk.keep_cache_private,
            "keep_cache_size": disk.keep_cache_size,
            "etag_validate_pct": disk.etag_validate_pct,
            "mb_per_sync": disk.mb_per_sync,
        }
    app = {name: value for name, value in app.items() if name not in lacks}
    every: dict[str, ini.Value] = {**_CACHE}
    if settings.background_interval is not None:
        every["interval"] = _number(settings.background_interval)
    sections: dict[str, Mapping[str, ini.Value]] = {
        "DEFAULT": default,
        "pipeline:main": {"pipeline": f"healthcheck recon {server}-server"},
        f"app:{server}-server": app,
        "filter:healthcheck": {"use": "egg:swift#healthcheck"},
        "filter:recon": {"use": "egg:swift#recon", **_CACHE},
        **{f"{server}-{daemon}": every for daemon in daemons_of(settings)[server]},
    }
    return ini.render(ini.merge(sections, settings.options.get(_server(server), {})))


def rsyncd_conf(address: str) -> str:
    """The text of rsyncd.conf of a storage host, used by replicators."""
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


class SwiftGrammar(IniGrammar):
    """Files of Swift's servers, and swift.conf."""

    names: ClassVar[tuple[str, ...]] = ("swift.conf", "*-server.conf")
    where: ClassVar[str] = (
        "Where: in the existing sections of these names, in place of their lines for the same "
        "options: Swift refuses a file with a section or option twice. Its servers read the file "
        "when they start."
    )


GRAMMAR = SwiftGrammar()
