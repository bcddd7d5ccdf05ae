"""Facts about a Swift deployment that decide results, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import package_versions
from weighbridge.gateways.swift import config, releases
from weighbridge.gateways.swift.plan import LOG, SwiftPlan
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.settings import SwiftSettings

_MODIFIED = re.compile(r'Pipeline was modified\. New pipeline is "([^"]*)"')


def facts(plan: SwiftPlan, proxy: Host, stores: Sequence[Host]) -> dict[str, str]:
    """All facts; `proxy` is the first proxy host."""
    settings, place, release = plan.settings, plan.place, plan.gateway.release
    objects, front = settings.object, settings.proxy
    packages = ("python3-swift", "python3-eventlet", "liberasurecode1", "memcached", "python3")
    quorum = settings.replicas // 2 + 1
    suppression = front.error_suppression
    kept = "stay in the page cache" if objects.keep_cache_private else "leave the page cache"
    many = f"{front.daemons} proxies and memcached" if front.daemons > 1 else "proxy and memcached"
    return {
        "gateway": f"OpenStack Swift, release {release}",
        "packages": package_versions(proxy, packages),
        "daemons": f"{many} on {', '.join(place.proxy)}; account, container and object server on "
        f"{len(stores)} hosts, a zone each",
        "pipeline": _pipeline(proxy, config.pipeline_text(settings)),
        "pipeline kind": config.pipeline_facts(settings),
        "replicas": f"{settings.replicas}, each in a zone of its own; rings of "
        f"2^{settings.part_power} partitions",
        "acknowledgement": (
            f"a write is acknowledged when {quorum} of {settings.replicas} replicas have been "
            "synced to disk (quorum); "
            f"the last one is waited for {front.post_quorum_timeout:g} s"
        ),
        **releases.policy_facts(proxy, settings),
        "disks": _disks(len(stores[0].disks[: settings.disks])),
        "workers": _workers(settings),
        "keep_cache_private": f"{str(objects.keep_cache_private).lower()}: objects that were read "
        f"{kept}",
        "keep_cache_size": f"{objects.keep_cache_size} ({show_bytes(objects.keep_cache_size)})",
        "etag_validate_pct": f"{objects.etag_validate_pct} % of the reads have their MD5 checked"
        + (
            " (this release has no choice)"
            if "etag_validate_pct" in RELEASES[release].lacks
            else ""
        ),
        "chunks": f"proxy: client {front.client_chunk_size}, object {front.object_chunk_size}; "
        f"object server: network {objects.network_chunk_size}, "
        f"disk {objects.disk_chunk_size} bytes",
        "timeouts": f"proxy: node {front.node_timeout:g} s, connect {front.conn_timeout:g} s, "
        f"recoverable node {front.recoverable_node_timeout:g} s; object server: node "
        f"{objects.node_timeout:g} s",
        "error suppression": f"after {suppression.limit} errors a node is left out for "
        f"{suppression.interval:g} s",
        "tcp_nodelay": "on, by Swift's own listening socket",
        "name resolution": "none: addresses only (EVENTLET_NO_GREENDNS=yes, which shortens the "
        "start of the servers)",
        "memcached": f"{show_bytes(front.memcached_memory)} on each of {len(place.proxy)} hosts, "
        "one list for all proxies, "
        f"{front.memcache_connections} connections a worker",
        "logging": _logging(settings),
        **_background(settings),
        **{
            f"option {server}-server.conf [{section}] {name}": str(value)
            for server, sections in settings.options.items()
            for section, options in sections.items()
            for name, value in options.items()
        },
    }


def _disks(count: int) -> str:
    if count == 1:
        return "objects and databases on one disk per host, XFS"
    return (
        f"{count - 1} disk(s) per host for objects, one apart for account and container "
        "databases, XFS"
    )


def _workers(settings: SwiftSettings) -> str:
    objects = settings.object
    own = f"object {objects.workers}"
    if objects.servers_per_port:
        own = (
            f"object {objects.servers_per_port} for each disk, on a port of its own "
            "(servers_per_port)"
        )
    threads = "Swift's own number" if objects.tpool_threads is None else str(objects.tpool_threads)
    return (
        f"proxy {settings.proxy.workers}, account {settings.account.workers}, container "
        f"{settings.container.workers}, {own}; "
        f"threads for disk I/O of each object process: {threads}"
    )


def _logging(settings: SwiftSettings) -> str:
    switch = "on" if settings.log_requests else "off"
    if settings.pipeline == "study-2014":
        return (
            f"{settings.log_level}; request lines of storage servers {switch}, of proxies none "
            "(no proxy-logging)"
        )
    made = (
        ""
        if settings.log_requests
        else " (proxy-logging makes a line of each request, which is not written)"
    )
    return f"{settings.log_level}; request lines of proxies and storage servers {switch}{made}"


def _background(settings: SwiftSettings) -> dict[str, str]:
    every = (
        "at Swift's own intervals"
        if settings.background_interval is None
        else f"every {settings.background_interval:g} s"
    )
    how = f"run, {every}" if settings.background else "do not run"
    return {
        "background: checking of data": f"auditors {how}",
        "background: repair of replicas": f"replicators {how}",
        "background: balancing": "none: the rings are fixed",
        "background: splitting of listings": "sharder does not run",
        "background: deferred updates": f"updaters {how}",
        "background: deletion": f"files of objects go at once; account reapers {how}",
        "background: expiry": "expirer does not run",
    }


def _pipeline(proxy: Host, configured: Sequence[str]) -> str:
    found = _MODIFIED.findall(proxy.read_log(LOG).decode(errors="replace"))
    return (
        f"{found[-1]} (as the proxy logged it)"
        if found
        else f"{' '.join(configured)} (as configured)"
    )
