"""Facts about a Swift deployment that decide results, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import package_versions
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.plan import LOG, SwiftPlan
from weighbridge.gateways.swift.releases import RELEASES, ask

_MODIFIED: Final = re.compile(r'Pipeline was modified\. New pipeline is "([^"]*)"')
_PACKAGES: Final = (
    *("python3-swift", "python3-eventlet", "liberasurecode1", "memcached", "python3"),
)

# Of each fact a line, and further ones that are indented.
_ALL: Final = """
gateway: OpenStack Swift, release {release}
packages: {packages}
daemons: {daemons} on {proxies}; account, container and object server on {stores} hosts, a zone
  each
pipeline: {pipeline}
pipeline kind: {pipeline_kind}
replicas: {all.replicas}, each in a zone of its own; rings of 2^{all.part_power} partitions
acknowledgement: a write is acknowledged when {quorum} of {all.replicas} replicas have been synced
  to disk (quorum); the last one is waited for {proxy.post_quorum_timeout:g} s
disks: {disks}, XFS
workers: proxy {proxy.workers}, account {all.account.workers}, container {all.container.workers},
  object {object_workers}; threads for disk I/O of each object process: {threads}
keep_cache_private: {private}: objects that were read {kept} the page cache
keep_cache_size: {object.keep_cache_size} ({keep_cache_size})
etag_validate_pct: {object.etag_validate_pct} % of the reads have their MD5 checked{no_choice}
chunks: proxy: client {proxy.client_chunk_size}, object {proxy.object_chunk_size}; object server:
  network {object.network_chunk_size}, disk {object.disk_chunk_size} bytes
timeouts: proxy: node {proxy.node_timeout:g} s, connect {proxy.conn_timeout:g} s, recoverable node
  {proxy.recoverable_node_timeout:g} s; object server: node {object.node_timeout:g} s
error suppression: after {errors.limit} errors a node is left out for {errors.interval:g} s
tcp_nodelay: on, by Swift's own listening socket
name resolution: none: addresses only (EVENTLET_NO_GREENDNS=yes, which shortens the start of the
  servers)
memcached: {memory} on each of {caches} hosts, one list for all proxies,
  {proxy.memcache_connections} connections a worker
logging: {all.log_level}; request lines of {logging}
background: checking of data: auditors {background}
background: repair of replicas: replicators {background}
background: balancing: none: the rings are fixed
background: splitting of listings: sharder does not run
background: deferred updates: updaters {background}
background: deletion: files of objects go at once; account reapers {background}
background: expiry: expirer does not run
"""
_CODED: Final = """
replicas: erasure coded, {ec_ndata} data and {ec_nparity} parity fragments ({ec_type}, segments of
  {ec_segment_size} bytes), each in {apart} of its own; accounts and containers {all.replicas}
  replicas; rings of 2^{all.part_power} partitions
acknowledgement: a write is acknowledged when {quorum} of {count} fragments have been synced to disk
  (quorum of the policy); the others are waited for {proxy.post_quorum_timeout:g} s
"""
_LINE: Final = re.compile(r"^((?:background: )?[^:\n]+): (.*(?:\n  .*)*)", re.MULTILINE)


def facts(plan: SwiftPlan, proxy: Host, stores: Sequence[Host]) -> dict[str, str]:
    """All facts; `proxy` is the first proxy host. Raises CommandFailed."""
    settings, release = plan.settings, plan.gateway.release
    objects, front, count = settings.object, settings.proxy, settings.proxy.daemons
    written = proxy.read_log(LOG).decode(errors="replace")
    running = [f"{pipeline} (as the proxy logged it)" for pipeline in _MODIFIED.findall(written)]
    configured = f"{' '.join(config.pipeline_text(settings))} (as configured)"
    disks = len(stores[0].disks[: settings.disks])
    kept_on = "objects and databases on one disk per host"
    if disks > 1:
        kept_on = f"{disks - 1} disk(s) per host for objects, one apart for account and container "
        kept_on += "databases"
    own = f"{objects.servers_per_port} for each disk, on a port of its own (servers_per_port)"
    every = "at Swift's own intervals"
    if settings.background_interval is not None:
        every = f"every {settings.background_interval:g} s"
    values = {
        "all": settings,
        "proxy": front,
        "object": objects,
        "errors": front.error_suppression,
        "release": release,
        "packages": package_versions(proxy, _PACKAGES),
        "daemons": f"{count} proxies and memcached" if count > 1 else "proxy and memcached",
        "proxies": ", ".join(plan.place.proxy),
        "caches": len(plan.caches),
        "stores": len(stores),
        "pipeline": [configured, *running][-1],
        "pipeline_kind": config.pipeline_facts(settings),
        "quorum": settings.replicas // 2 + 1,
        "disks": kept_on,
        "object_workers": own if objects.servers_per_port else objects.workers,
        "threads": objects.tpool_threads or "Swift's own number",
        "private": str(objects.keep_cache_private).lower(),
        "kept": "stay in" if objects.keep_cache_private else "leave",
        "keep_cache_size": show_bytes(objects.keep_cache_size),
        "no_choice": " (this release has no choice)"
        * ("etag_validate_pct" in RELEASES[release].lacks),
        "memory": show_bytes(front.memcached_memory),
        "logging": _logging(plan),
        "background": f"run, {every}" if settings.background else "do not run",
    }
    found = _filled(_ALL, values)
    if settings.ec is not None:
        # What Swift itself reads of the policy of new containers.
        policy = ask(proxy, "policy")
        values["apart"] = "a zone" if settings.ec.failure_domain == "host" else "a disk"
        values["count"] = policy["ec_ndata"] + policy["ec_nparity"]
        found |= _filled(_CODED, {**values, **policy})
    for server, sections in settings.options.items():
        for section, options in sections.items():
            for name, value in options.items():
                found[f"option {server}-server.conf [{section}] {name}"] = str(value)
    return found


def _filled(text: str, values: dict[str, object]) -> dict[str, str]:
    lines = [match.groups() for match in _LINE.finditer(text)]
    return {name: words.replace("\n ", "").format_map(values) for name, words in lines}


def _logging(plan: SwiftPlan) -> str:
    switch = "on" if plan.settings.log_requests else "off"
    if plan.settings.pipeline == "study-2014":
        return f"storage servers {switch}, of proxies none (no proxy-logging)"
    if plan.settings.log_requests:
        return "proxies and storage servers on"
    return (
        "proxies and storage servers off (proxy-logging makes a line of each request, which is not "
        "written)"
    )
