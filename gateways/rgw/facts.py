"""What a running cluster says of itself: facts that decide results, its health, what it keeps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, NonNegativeInt, TypeAdapter, ValidationError

from weighbridge.common.endpoint import bracketed
from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Ask, Gateway, KeptBytes, Standing, package_versions, words
from weighbridge.gateways.options import rows
from weighbridge.gateways.rgw.monitor import (
    Monitor,
    ask,
    ask_options,
    ceph_name,
    option,
    running_values,
    unknown_options,
)
from weighbridge.gateways.rgw.plan import CONF, CephPlan, store_words
from weighbridge.gateways.rgw.pools import DATA_POOL, INDEX_POOL, DataPool
from weighbridge.gateways.rgw.settings import OsdSettings, RadosgwSettings, RgwSettings
from weighbridge.gateways.running import StorePlan

Media = Literal["hdd", "ssd"]

ZONE: Final = ("--rgw-zone", "default")
PLACEMENT: Final = "default-placement"
STORAGE_CLASS: Final = "STANDARD"
_MEDIA: Mapping[Media, str] = {"hdd": "spinning (rotational)", "ssd": "solid state"}

_SHOWN_OF_RADOSGW = {"rgw_frontends": False, "debug_rgw": False}
_SHOWN_OF_OSD = {"osd_max_scrubs": False, "bdev_aio_poll_ms": False, "debug_osd": False}
"""Options beside those of settings, each with whether it is a size."""
_SHOWN_OF_STORE: Mapping[str, Mapping[str, bool]] = {
    "bluestore": {},
    "filestore": {"osd_journal": False, "osd_journal_size": False},
    "memstore": {"memstore_device_bytes": True},
}
UNEVEN: Final = 1.5
"""Times an even share of the reads. With 64 placement groups, chance gives one of three OSDs as
much in 1 of 100 clusters, with 32 in 11.
"""


@dataclass(frozen=True)
class Seen:
    """What the cluster said when it was healthy; changes leave it as it is."""

    media: tuple[Media, ...]
    """The kind of disk that each OSD believes it has."""
    primaries: Mapping[int, int]
    """For how many placement groups of the data pool each OSD, by number, answers reads."""
    data_pool: DataPool


def daemons_of(plan: StorePlan[Gateway], program: str) -> list[Daemon]:
    """The daemons of a program of Ceph, such as `ceph-osd`, in their order."""
    return [one for one in plan.daemons if one.service.argv[0] == program]


def facts(plan: StorePlan[Gateway], ceph: CephPlan, seen: Seen) -> dict[str, str]:
    """What decides results, in words; values of options as the running daemons report them.

    Raises ServiceFailed when a daemon does not know an option that the layout sets.
    """
    release, place, settings = plan.gateway.release, ceph.place, ceph.settings
    data_pool, pools = seen.data_pool, settings.pools
    osds, gateways = daemons_of(plan, "ceph-osd"), daemons_of(plan, "radosgw")
    host = gateways[0].host
    store, written = store_words(settings.osd)
    each = Counter(one.host.name for one in gateways)
    where = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in each.items())
    knows = ceph.knows(host)
    modules = " (without its Python modules)" if knows("mgr_disabled_modules") else ""
    apart = "a host" if pools.failure_domain == "host" else "an OSD"
    others = "" if data_pool.profile is None else f"; other pools {pools.replicas} replicas"
    groups = ", ".join(f"{name} {pools.groups[name]}" for name in (INDEX_POOL, DATA_POOL))
    found = {
        "gateway": f"Ceph RGW, release {release}",
        "radosgw": host.run(["radosgw", "--version"]).stdout.strip(),
        "packages": package_versions(host, ("radosgw", "ceph-osd", "ceph-mon")),
        "daemons": f"mon and mgr{modules} on {', '.join(place.mon)}, {len(osds)} OSDs on "
        f"{len(place.osd)} hosts, radosgw on {where}",
        "object store": store,
        "replicas": f"{data_pool.words}, each on {apart} of its own{others}",
        "acknowledgement": (
            f"a write is acknowledged when all {data_pool.size} {data_pool.parts} have it "
            f"{written}; fewer than {data_pool.min_size} {data_pool.parts}: no answer"
        ),
        "compression": "none"
        if settings.radosgw.compression == "none"
        else f"{zone_compression(host)}, by radosgw before it writes",
        "placement groups": f"{groups}, others {pools.other_pg_num}",
        "reads by OSD": spread(seen.primaries),
        **_background(settings),
    }
    front = plan.front
    if front is not None and front.wants_fastcgi:
        native = "rgw_frontends = fastcgi " in plan.text(host, CONF)
        found["FastCGI of radosgw"] = (
            f"yes: {front.label} speaks to it directly"
            if native
            else "none in this release's program"
        )
    radosgw_options = {**_shown(RadosgwSettings), **_SHOWN_OF_RADOSGW}
    osd_options = {
        **_shown(OsdSettings),
        **_SHOWN_OF_OSD,
        **_SHOWN_OF_STORE[settings.osd.objectstore],
    }
    for what, one, options in (
        ("rgw", gateways[0], radosgw_options),
        ("osd", osds[0], osd_options),
    ):
        for name, value in running_values(one, [name for name in options if knows(name)]).items():
            shown = f"{value} ({show_bytes(int(value))})" if options[name] else value
            found[f"{what}: {name}"] = _with_name(shown, one.host)
    for radosgw in gateways[1:]:
        value = running_values(radosgw, ["rgw_frontends"])["rgw_frontends"]
        found[f"{ceph_name(radosgw)}: rgw_frontends"] = _with_name(value, radosgw.host)
    found |= _queue(settings, osds[0], seen.media, knows) | _given_options(plan)
    if front is not None:
        found |= front.facts(plan.front_daemons[0].host)
    other = ceph.release.settings_of
    if other:
        ignored = unknown_options(host, release, plan.text(host, CONF))
        found["release settings"] = words(release, other, [*ignored.values()])
    return found


def _shown(settings: type[Record]) -> dict[str, bool]:
    """The options of settings that reports show, each with whether it is a size."""
    return {
        row.name: row.in_bytes for row in rows(settings) if row.option.section and row.option.shown
    }


def _with_name(value: str, host: Host) -> str:
    """Facts are compared, and an address belongs to one deployment: the host's name replaces it."""
    return value.replace(f"{bracketed(host.address)}:", f"{host.name}:")


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


def _queue(
    settings: RgwSettings, osd: Daemon, media: Sequence[Media], knows: Callable[[str], bool]
) -> dict[str, str]:
    """How OSDs queue requests and which writes they defer, which depends on their kind of disk.

    They ask the kernel, which calls loop disks rotational. BlueStore then writes data up to
    `bluestore_prefer_deferred_size_hdd` to its log first; the option
    `bluestore_debug_enforce_settings` overrides the kind.
    """
    kinds = ", ".join(f"{count} {_MEDIA[one]}" for one, count in sorted(Counter(media).items()))
    kind = media[0]
    names = ["osd_op_queue", f"osd_op_num_shards_{kind}", f"osd_op_num_threads_per_shard_{kind}"]
    if settings.osd.objectstore == "bluestore":
        names += [f"bluestore_prefer_deferred_size_{kind}", f"bluestore_min_alloc_size_{kind}"]
        names.append("bluestore_debug_enforce_settings")
    values = running_values(osd, [name for name in names if knows(name)])
    if values.get("osd_op_queue") == "mclock_scheduler":
        values |= running_values(
            osd, ("osd_mclock_profile", f"osd_mclock_max_capacity_iops_{kind}")
        )
    shown = {f"osd: {name}": value for name, value in values.items()}
    return {"disks as Ceph takes them": kinds, **shown}


def _background(settings: RgwSettings) -> dict[str, str]:
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


def _given_options(plan: StorePlan[Gateway]) -> dict[str, str]:
    """Values of the layout's own options, from the daemons: Ceph ignores unknown ones."""
    programs = {"mon": "ceph-mon", "mgr": "ceph-mgr", "client": "radosgw"}
    found: dict[str, str] = {}
    for section, options in plan.gateway.settings.options.items():
        one = daemons_of(plan, programs.get(section, "ceph-osd"))[0]
        values = running_values(one, options)
        found |= {f"option [{section}] {name}": value for name, value in values.items()}
    return found


def zone_compression(host: Host) -> str:
    """The algorithm by which the zone's default placement compresses, as the cluster has it; `none`
    without. Raises CommandFailed.
    """
    zone = json.loads(host.run(["radosgw-admin", "zone", "get", *ZONE]).stdout)
    for pool in zone.get("placement_pools", ()):
        if pool.get("key") == PLACEMENT:
            own = pool.get("val", {}).get("storage_classes", {}).get(STORAGE_CLASS, {})
            return str(own.get("compression_type") or "none")
    return "none"


# How a cluster meets the death of a part: its options, and what its mon says of it meanwhile.

_FAULTS_OF_OSD: Final = (
    "osd_heartbeat_interval",
    "osd_heartbeat_grace",
    "osd_fast_fail_on_connection_refused",
    "osd_max_backfills",
    "osd_recovery_sleep_hdd",
    "osd_recovery_sleep_ssd",
)
_FAULTS_OF_MON: Final = ("mon_osd_min_down_reporters", "mon_osd_down_out_interval")


def fault_options(osd: Daemon, mon: Daemon) -> dict[str, str]:
    """What decides when a dead daemon is noticed, of what the release has. Raises CommandFailed."""
    found = {}
    for source, names in ((osd, _FAULTS_OF_OSD), (mon, _FAULTS_OF_MON)):
        for name, answer in ask_options(source, "config get", names).items():
            value = option(answer, name)
            if value is not None:
                found[name] = value
    return found


@contextmanager
def asking(hosts: Sequence[Host], osds: int) -> Iterator[Ask]:
    """Asks the mons of these hosts, the next one that is up when one does not answer."""
    with ExitStack() as stack:

        def opened(host: Host) -> Monitor:
            # A dead daemon is what is waited for here, not why an answer is late.
            return stack.enter_context(Monitor(host, lambda: None))

        host, monitor = hosts[0], opened(hosts[0])

        def ask_now() -> Standing:
            nonlocal host, monitor
            try:
                return standing(monitor.status(), osds)
            except CommandFailed:
                others = [one for one in hosts if one is not host and one.is_up()]
                if not others:
                    raise
                host, monitor = others[0], opened(others[0])
                return standing(monitor.status(), osds)

        yield ask_now


def standing(status: dict[str, Any], osds: int) -> Standing:
    """What `ceph status` says, as of the reports that OSDs have sent the mgr.

    Raises TargetError for an answer that does not say it.
    """
    try:
        # Release 14 has it one level deeper.
        up = int(status["osdmap"].get("osdmap", status["osdmap"])["num_up_osds"])
        groups = status["pgmap"]
        total = int(groups["num_pgs"])
        clean = sum(
            int(one["count"])
            for one in groups.get("pgs_by_state", ())
            if one["state_name"].startswith("active+clean")
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TargetError(
            f"`ceph status` has no OSDs or groups: {json.dumps(status)[:200]}"
        ) from None
    words = f"{up} of {osds} OSDs up, {clean} of {total} placement groups clean"
    return Standing(whole=up == osds and clean == total, words=words)


_ALLOCATED: Final = ("bluestore_allocated", "allocated")
"""Its names up to release 16, and from 18 on: a release has one of them."""
_DATABASES: Final = ("db_used_bytes", "wal_used_bytes", "slow_used_bytes")


def _counters(value: Any) -> Any:
    kept = value if isinstance(value, dict) else {}
    return {name: one for name, one in kept.items() if type(one) is int}


_DUMP: Final = TypeAdapter(
    dict[str, Annotated[dict[str, NonNegativeInt], BeforeValidator(_counters)]]
)
HOW: Final = (
    "OSDs: bluestore_allocated of all pools; RocksDB and its log (bluefs, which grows in steps)"
)


def kept_bytes(osds: Sequence[Daemon]) -> KeptBytes | None:
    """The sum over BlueStore OSDs, None where one does not say it. Raises TargetError.

    The OSDs count at once, `ceph df` only with the next report to the mgr.
    """
    answers = ask(osds, {"prefix": "perf dump"})
    dumps = [_read(ceph_name(osd), text) for osd, (text,) in zip(osds, answers, strict=True)]
    data = [_sum(one.get("bluestore", {}), _ALLOCATED) for one in dumps]
    beside = [_sum(one.get("bluefs", {}), _DATABASES) for one in dumps]
    known = [one for one in data if one is not None]
    if len(known) < len(osds):
        return None
    rest = [one for one in beside if one is not None]
    return KeptBytes(sum(known), sum(rest) if len(rest) == len(osds) else None, HOW)


def _read(osd: str, text: str) -> Mapping[str, Mapping[str, int]]:
    try:
        return _DUMP.validate_json(text)
    except ValidationError as error:
        raise TargetError(f"{osd}: no counters: {error.errors()[0]['msg']}") from None


def _sum(counters: Mapping[str, int], names: Sequence[str]) -> int | None:
    known = [counters[name] for name in names if name in counters]
    return sum(known) if known else None
