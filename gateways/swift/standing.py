"""A Swift deployment that stands, and what is true of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from gateways import daemon, program
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Rendered, Standing
from gateways.host import Host
from gateways.swift import config
from gateways.together import together
from ground.quantities import show_bytes

if TYPE_CHECKING:
    from gateways.swift.swift import Swift

_MODIFIED = re.compile(r'Pipeline was modified\. New pipeline is "([^"]*)"')
_RESELLER = "AUTH_"


class SwiftStanding(Standing):
    """Proxy and storage servers, verified."""

    def __init__(
        self,
        daemons: Sequence[Daemon],
        proxy: Host,
        stores: Sequence[Host],
        *,
        endpoints: Sequence[Endpoint],
        found: Mapping[str, str],
        rendered: Sequence[Rendered],
    ) -> None:
        self._daemons = tuple(daemons)
        self._proxy = proxy
        self._stores = tuple(stores)
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(found))
        self.rendered = tuple(rendered)

    def settle(self) -> tuple[str, ...]:
        """Send the container updates that object servers have put off: without an updater they would stay for ever."""
        pending = sum(together([partial(_pending, host) for host in self._stores]))
        if not pending:
            return ("no container updates were put off (async_pending)",)
        update = ["swift-object-updater", "/etc/swift/object-server.conf", "once"]
        together([partial(host.run, update, timeout_s=3600) for host in self._stores])
        left = sum(together([partial(_pending, host) for host in self._stores]))
        return (f"{pending} container updates that were put off (async_pending) sent, {left} left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Empty memcached but for tempauth's token; Swift's own processes keep nothing of objects in memory."""
        order = {
            "address": self._proxy.address,
            "port": config.MEMCACHED_PORT,
            "prefix": _RESELLER,
            "user": f"{config.ACCOUNT}:{config.USER}",
        }
        command = program.ship(self._proxy, "gateways.swift.drop_memcached")
        done = json.loads(self._proxy.run(command, stdin=json.dumps(order)).stdout)
        return (
            f"memcached: {done['dropped']} entries dropped",
            f"not dropped: {done['kept']} entries of memcached, the user's token: clients need not authenticate again",
        )

    def check(self) -> None:
        """Raise ServiceFailed when a server has died."""
        daemon.check(self._daemons)


def facts(gateway: Swift, proxy: Host, stores: Sequence[Host], log: str) -> dict[str, str]:
    """What decides results, in words."""
    settings = gateway.settings
    objects, front = settings.object, settings.proxy
    packages = ("python3-swift", "python3-eventlet", "liberasurecode1", "memcached", "python3")
    versions = proxy.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages]).stdout
    disks = len(stores[0].disks[: settings.disks])
    quorum = settings.replicas // 2 + 1
    suppression = front.error_suppression
    kept = "stay in the page cache" if objects.keep_cache_private else "leave the page cache"
    return {
        "gateway": f"OpenStack Swift, release {gateway.release}",
        "packages": ", ".join(versions.split("\n")).strip(", "),
        "daemons": f"proxy and memcached on {proxy.name}; account, container and object server on {len(stores)} hosts, a zone each",
        "pipeline": _pipeline(proxy, log, settings.pipeline),
        "replicas": f"{settings.replicas}, each in a zone of its own; rings of 2^{settings.part_power} partitions",
        "acknowledgement": (
            f"a write is acknowledged when {quorum} of {settings.replicas} replicas have been synced to disk (quorum); "
            "the last one is waited for half a second"
        ),
        "disks": "objects and databases on one disk a host, XFS"
        if disks == 1
        else f"{disks - 1} disk(s) a host for objects, one apart for account and container databases, XFS",
        "workers": f"proxy {front.workers}, account {settings.account.workers}, "
        f"container {settings.container.workers}, object {objects.workers}",
        "keep_cache_private": f"{str(objects.keep_cache_private).lower()}: objects that were read {kept}",
        "keep_cache_size": f"{objects.keep_cache_size} ({show_bytes(objects.keep_cache_size)})",
        "etag_validate_pct": f"{objects.etag_validate_pct} % of the reads have their MD5 checked",
        "timeouts": f"proxy: node {front.node_timeout:g} s, connect {front.conn_timeout:g} s, "
        f"recoverable node {front.recoverable_node_timeout:g} s; object server: node {objects.node_timeout:g} s",
        "error suppression": f"after {suppression.limit} errors a node is left out for {suppression.interval:g} s",
        "tcp_nodelay": "on, by Swift's own listening socket",
        "name resolution": "none: addresses only (EVENTLET_NO_GREENDNS=yes, which shortens the start of the servers)",
        "memcached": f"{show_bytes(front.memcached_memory)}, {front.memcache_connections} connections a worker",
        "logging": f"{settings.log_level}; request lines of storage servers {'on' if settings.log_requests else 'off'}",
        "background daemons": "replicators, auditors, updaters and reaper run" if settings.background else "none run",
        **{
            f"option {server}-server.conf [{section}] {name}": str(value)
            for server, sections in settings.options.items()
            for section, options in sections.items()
            for name, value in options.items()
        },
    }


def _pipeline(proxy: Host, log: str, configured: Sequence[str]) -> str:
    """The pipeline as it runs: Swift puts in what it cannot do without, and says so in its log."""
    path = proxy.log(log)
    found = _MODIFIED.findall(path.read_text(errors="replace")) if path.exists() else []
    return f"{found[-1]} (as the proxy logged it)" if found else f"{' '.join(configured)} (as configured)"


def _pending(host: Host) -> int:
    found = host.run(["sh", "-ec", f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true"], timeout_s=600)
    return int(found.stdout)
