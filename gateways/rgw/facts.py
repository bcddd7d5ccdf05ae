"""Facts about a running Ceph cluster: versions, rules, and options as its daemons report them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from weighbridge.common.endpoint import bracketed
from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import package_versions, words
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.ceph_state import CephState, Media, conf_of
from weighbridge.gateways.rgw.config import DATA_POOL, INDEX_POOL, pools, unknown_options
from weighbridge.gateways.rgw.data_pool import compression
from weighbridge.gateways.rgw.monitor import CephDaemon, running_values
from weighbridge.gateways.rgw.releases import RELEASES
from weighbridge.gateways.rgw.settings import RgwSettings

_MEDIA: Mapping[Media, str] = {"hdd": "spinning (rotational)", "ssd": "solid state"}

_RGW_OPTIONS = (
    "rgw_frontends",
    "rgw_thread_pool_size",
    "rgw_max_concurrent_requests",
    "rgw_max_chunk_size",
    "rgw_obj_stripe_size",
    "rgw_put_obj_min_window_size",
    "rgw_get_obj_window_size",
    "rgw_override_bucket_index_max_shards",
    "rgw_dynamic_resharding",
    "rgw_enable_lc_threads",
    "rgw_gc_obj_min_wait",
    "rgw_enable_ops_log",
    "rgw_print_continue",
    "debug_rgw",
)
_OSD_OPTIONS = (
    "osd_objectstore",
    "osd_memory_target",
    "osd_max_scrubs",
    "bdev_aio_poll_ms",
    "debug_osd",
)
_STORE_OPTIONS = {
    "bluestore": (),
    "filestore": ("osd_journal", "osd_journal_size"),
    "memstore": ("memstore_device_bytes",),
}
UNEVEN: Final = 1.5
"""Times an even share of the reads. With 64 placement groups, chance gives one of three OSDs as
much in 1 of 100 clusters, with 32 in 11.
"""
_BYTES = (
    "osd_memory_target",
    "memstore_device_bytes",
    "rgw_max_chunk_size",
    "rgw_obj_stripe_size",
    "rgw_put_obj_min_window_size",
    "rgw_get_obj_window_size",
)


def facts(state: CephState) -> dict[str, str]:
    """What decides results, in words; values of options as the running daemons report them.

    Raises ServiceFailed when a daemon does not know an option that the layout sets.
    """
    cluster, data_pool, osds = state.cluster, state.data_pool, state.osds
    settings, gateways = cluster.settings, tuple(state.radosgws)
    pool = settings.pools
    rgw_host = gateways[0].host
    packages = ("radosgw", "ceph-osd", "ceph-mon")
    store, written = objectstore.words(settings.osd)
    each = Counter(one.host.name for one in gateways)
    where = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in each.items())
    knows = cluster.knows(rgw_host)
    modules = " (without its Python modules)" if knows("mgr_disabled_modules") else ""
    found = {
        "gateway": f"Ceph RGW, release {cluster.release}",
        "radosgw": rgw_host.run(["radosgw", "--version"]).stdout.strip(),
        "packages": package_versions(rgw_host, packages),
        "daemons": f"mon and mgr{modules} on {', '.join(cluster.place.mon)}, {len(osds)} OSDs on "
        f"{len(cluster.place.osd)} "
        f"hosts, radosgw on {where}",
        "object store": store,
        "replicas": f"{data_pool.words}, each on "
        f"{'a host' if pool.failure_domain == 'host' else 'an OSD'} of its own"
        + ("" if data_pool.profile is None else f"; other pools {pool.replicas} replicas"),
        "acknowledgement": (
            f"a write is acknowledged when all {data_pool.size} {data_pool.parts} have it "
            f"{written}; fewer than {data_pool.min_size} {data_pool.parts}: no answer"
        ),
        "compression": _compression(settings, rgw_host),
        "placement groups": ", ".join(
            f"{name} {count}"
            for name, count in pools(pool).items()
            if name in (DATA_POOL, INDEX_POOL)
        )
        + f", others {pool.other_pg_num}",
        "reads by OSD": spread(state.primaries),
        **_background(settings),
    }
    front = cluster.front(native=state.native)
    if front is not None and front.wants_fastcgi:
        found["FastCGI of radosgw"] = (
            f"yes: {front.label} speaks to it directly"
            if state.native
            else "none in this release's program"
        )
    wanted = (*_OSD_OPTIONS, *_STORE_OPTIONS[settings.osd.objectstore])
    for what, ceph, names in (("rgw", gateways[0], _RGW_OPTIONS), ("osd", osds[0], wanted)):
        for name, value in running_values(ceph, [name for name in names if knows(name)]).items():
            shown = f"{value} ({show_bytes(int(value))})" if name in _BYTES else value
            found[f"{what}: {name}"] = _with_name(shown, ceph.host)
    for radosgw in gateways[1:]:
        value = running_values(radosgw, ["rgw_frontends"])["rgw_frontends"]
        found[f"{radosgw.name}: rgw_frontends"] = _with_name(value, radosgw.host)
    found |= _queue(state, knows) | _extra(state)
    if front is not None and cluster.place.front is not None:
        found |= front.facts(state.hosts[cluster.place.front])
    return found | _taken_as(state)


def _with_name(value: str, host: Host) -> str:
    """Facts are compared, and an address belongs to one deployment: the host's name replaces it."""
    return value.replace(f"{bracketed(host.address)}:", f"{host.name}:")


def _taken_as(state: CephState) -> dict[str, str]:
    """Which release's settings it has, if not its own, and what its programs say of them."""
    release, place = state.cluster.release, state.cluster.place
    other = RELEASES[release].settings_of
    if not other:
        return {}
    ignored = unknown_options(state.hosts[place.radosgw[0]], release, conf_of(state.files))
    return {"release settings": words(release, other, [*ignored.values()])}


def _compression(settings: RgwSettings, host: Host) -> str:
    """The algorithm; the zone, which only this suite changes, is asked where one is wanted."""
    if settings.radosgw.compression == "none":
        return "none"
    return f"{compression(host)}, by radosgw before it writes"


def spread(primaries: Mapping[int, int]) -> str:
    """Such as `osd.0 39 %, osd.1 31 %, osd.2 30 % of reads, by 64 placement groups of data`."""
    total = sum(primaries.values())
    shares = ", ".join(
        f"osd.{number} {100 * count / total:.0f} %" for number, count in sorted(primaries.items())
    )
    return f"{shares} of reads, by {total} placement groups of object data"


def uneven(primaries: Mapping[int, int]) -> tuple[str, ...]:
    """A sentence when one OSD answers UNEVEN times its share of the reads or more, else nothing."""
    most = max(primaries, key=lambda number: primaries[number])
    total = sum(primaries.values())
    if primaries[most] * len(primaries) < UNEVEN * total:
        return ()
    share, even = 100 * primaries[most] / total, 100 / len(primaries)
    return (
        (
            f"osd.{most} answers {share:.0f} % of the reads; an even share of {len(primaries)} "
            f"OSDs would be {even:.0f} %"
        ),
    )


def _queue(state: CephState, knows: Callable[[str], bool]) -> dict[str, str]:
    """How OSDs queue requests and which writes they defer, which depends on their kind of disk.

    They ask the kernel, which calls loop disks rotational. BlueStore then writes data up to
    `bluestore_prefer_deferred_size_hdd` to its log first; the option
    `bluestore_debug_enforce_settings` overrides the kind.
    """
    each = Counter(state.media)
    found = {
        "disks as Ceph takes them": ", ".join(
            f"{count} {_MEDIA[one]}" for one, count in sorted(each.items())
        )
    }
    one, osd = state.media[0], state.osds[0]
    names = ("osd_op_queue", f"osd_op_num_shards_{one}", f"osd_op_num_threads_per_shard_{one}")
    values = running_values(osd, [name for name in names if knows(name)])
    if state.cluster.settings.osd.objectstore == "bluestore":
        names = (
            f"bluestore_prefer_deferred_size_{one}",
            f"bluestore_min_alloc_size_{one}",
            "bluestore_debug_enforce_settings",
        )
        values |= running_values(osd, [name for name in names if knows(name)])
    if values.get("osd_op_queue") == "mclock_scheduler":
        values |= running_values(osd, ("osd_mclock_profile", f"osd_mclock_max_capacity_iops_{one}"))
    return found | {f"osd: {name}": value for name, value in values.items()}


def _background(settings: RgwSettings) -> dict[str, str]:
    """Background work of the daemons, named by purpose to compare it with other gateways'."""
    rgw, gc = settings.radosgw, settings.radosgw.gc
    collected = (
        f"garbage collection every {gc.processor_period:g} s"
        if gc.enabled
        else "garbage collection off"
    )
    return {
        "background: checking of data": "scrub by Ceph's schedule"
        if settings.osd.scrub
        else "scrub off (osd_max_scrubs 0)",
        "background: repair of replicas": "only when an OSD fails",
        "background: balancing": "autoscaler and balancer off",
        "background: splitting of listings": "dynamic resharding "
        f"{'on' if rgw.dynamic_resharding else 'off'}",
        "background: deferred updates": "none",
        "background: deletion": f"{collected}, and run to its end after each step",
        "background: expiry": f"lifecycle threads {'on' if rgw.lifecycle else 'off'}",
    }


def _extra(state: CephState) -> dict[str, str]:
    """Values of the layout's own options, from the daemons: Ceph ignores unknown ones."""
    daemons = {
        "mon": CephDaemon(state.mon_host, "mon.a"),
        "mgr": CephDaemon(state.mon_host, "mgr.a"),
        "osd": state.osds[0],
        "client": next(iter(state.radosgws)),
        "global": state.osds[0],
    }
    found: dict[str, str] = {}
    for section, options in state.cluster.settings.options.items():
        if options:
            values = running_values(daemons[section], tuple(options))
            found |= {f"option [{section}] {name}": value for name, value in values.items()}
    return found
