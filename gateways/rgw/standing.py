"""A Ceph cluster with radosgw that stands, and what is true of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from gateways import daemon
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Rendered, Standing
from gateways.host import Host
from gateways.rgw.config import DATA_POOL, INDEX_POOL, pools
from gateways.rgw.monitor import Ceph, ask, option
from gateways.rgw.settings import Settings
from gateways.together import together
from ground.errors import ServiceFailed
from ground.quantities import show_bytes

if TYPE_CHECKING:
    from gateways.rgw.rgw import Rgw


_RGW_OPTIONS = (
    "rgw_frontends",
    "rgw_thread_pool_size",
    "rgw_max_concurrent_requests",
    "rgw_override_bucket_index_max_shards",
    "rgw_dynamic_resharding",
    "rgw_gc_obj_min_wait",
    "rgw_enable_ops_log",
    "debug_rgw",
)
_OSD_OPTIONS = ("osd_objectstore", "osd_memory_target", "osd_max_scrubs", "bdev_aio_poll_ms", "debug_osd")


class RgwStanding(Standing):
    """The cluster, healthy, with its gateway verified."""

    def __init__(
        self,
        daemons: Sequence[Daemon],
        osds: Sequence[Ceph],
        gateways: Sequence[Ceph],
        *,
        endpoints: Sequence[Endpoint],
        found: Mapping[str, str],
        rendered: Sequence[Rendered],
    ) -> None:
        self._daemons = tuple(daemons)
        self._osds = tuple(osds)
        self._gateways = tuple(gateways)
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(found))
        self.rendered = tuple(rendered)

    def settle(self) -> tuple[str, ...]:
        """Run RGW's garbage collection to its end: deleted and overwritten objects' data goes now, not in the next step."""
        host = self._gateways[0].host
        host.run(["radosgw-admin", "gc", "process", "--include-all"], timeout_s=3600)
        left = len(json.loads(host.run(["radosgw-admin", "gc", "list", "--include-all"], timeout_s=600).stdout))
        return (f"RGW garbage collection run to its end, {left} entries left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Drop BlueStore's object and buffer caches and RGW's metadata cache; RocksDB's block cache has no such command."""
        groups = [list(group) for _, group in groupby(self._osds, key=lambda osd: osd.host.name)]
        dropped = together([partial(ask, group, {"prefix": "cache drop"}) for group in groups])
        zapped = ask(self._gateways, {"prefix": "cache zap"})
        for ceph, answer in [item for answers in (*dropped, zapped) for item in answers.items()]:
            # Both answer nothing when they have done it; a refusal is a text.
            if answer[0].strip():
                raise ServiceFailed(
                    ceph.host.name, ceph.name, f"caches not dropped: {answer[0].strip()}", log=_log(ceph), tail=_tail(ceph)
                )
        return (
            f"BlueStore's onode and buffer caches of {len(self._osds)} OSDs (cache drop)",
            "RGW's metadata cache (cache zap)",
            "not dropped: RocksDB's block cache in the OSDs, which has no command for it",
        )

    def check(self) -> None:
        """Raise ServiceFailed when a daemon has died."""
        daemon.check(self._daemons)


def facts(gateway: Rgw, osds: Sequence[Ceph], gateways: Sequence[Ceph], mon: Host) -> dict[str, str]:
    """What decides results, in words; values of options as the running daemons give them, not as they were written.

    Raises ServiceFailed when a daemon does not know an option that the layout sets.
    """
    settings = gateway.settings
    pool = settings.pools
    rgw_host = gateways[0].host
    packages = ("radosgw", "ceph-osd", "ceph-mon")
    found = {
        "gateway": f"Ceph RGW, release {gateway.release}",
        "radosgw": rgw_host.run(["radosgw", "--version"]).stdout.strip(),
        "packages": ", ".join(
            rgw_host.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages]).stdout.split("\n")
        ).strip(", "),
        "daemons": f"mon and mgr on {mon.name}, {len(osds)} OSDs on {len(gateway.place.osd)} hosts, radosgw on {rgw_host.name}",
        "replicas": f"{pool.replicas}, each on {'a host' if pool.failure_domain == 'host' else 'an OSD'} of its own",
        "acknowledgement": (
            f"a write is acknowledged when all {pool.replicas} replicas have it in BlueStore's write-ahead log or on disk; "
            f"fewer than {pool.min_size} replicas: no answer"
        ),
        "placement groups": ", ".join(f"{name} {count}" for name, count in pools(pool).items() if name in (DATA_POOL, INDEX_POOL))
        + f", others {pool.other_pg_num}; autoscaler and balancer off",
        "scrub": "on, by Ceph's schedule" if settings.osd.scrub else "off (osd_max_scrubs 0)",
    }
    for what, ceph, names in (("rgw", gateways[0], _RGW_OPTIONS), ("osd", osds[0], _OSD_OPTIONS)):
        for name, value in _values(ceph, names).items():
            found[f"{what}: {name}"] = f"{value} ({show_bytes(int(value))})" if name == "osd_memory_target" else value
    found |= _extra(settings, osds, gateways, mon)
    return found


def _extra(settings: Settings, osds: Sequence[Ceph], gateways: Sequence[Ceph], mon: Host) -> dict[str, str]:
    """Values of the layout's own options. Ceph takes unknown ones in silence, so the daemons are asked for them."""
    knows = {"mon": Ceph(mon, "mon.a"), "mgr": Ceph(mon, "mgr.a"), "osd": osds[0], "client": gateways[0], "global": osds[0]}
    found: dict[str, str] = {}
    for section, options in settings.options.items():
        if options:
            values = _values(knows[section], tuple(options))
            found |= {f"option [{section}] {name}": value for name, value in values.items()}
    return found


def _values(ceph: Ceph, names: Sequence[str]) -> dict[str, str]:
    commands = [{"prefix": "config get", "var": name} for name in names]
    values = {}
    for name, answer in zip(names, ask([ceph], *commands)[ceph], strict=True):
        value = option(answer, name)
        if value is None:
            raise ServiceFailed(ceph.host.name, ceph.name, f"does not know the option {name!r}", log=_log(ceph), tail=_tail(ceph))
        values[name] = value
    return values


def _log(ceph: Ceph) -> str:
    return str(ceph.host.log(f"{ceph.name}.log"))


def _tail(ceph: Ceph) -> list[str]:
    return ceph.host.tail(f"{ceph.name}.log")
