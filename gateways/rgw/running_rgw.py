"""A running Ceph cluster with radosgw, and what is known about it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, NonNegativeInt, TypeAdapter, ValidationError

from weighbridge.common.endpoint import Endpoint, bracketed
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.common.structure import Scope
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    Ask,
    Below,
    DiskSpace,
    Gateway,
    KeptBytes,
    RunningGateway,
    Say,
    Standing,
    Tolerance,
    package_versions,
    words,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.ceph_state import CephState, Media, conf_of
from weighbridge.gateways.rgw.change import CephChange
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import DATA_POOL, INDEX_POOL, pools, unknown_options
from weighbridge.gateways.rgw.data_pool import compression
from weighbridge.gateways.rgw.monitor import (
    CephDaemon,
    Monitor,
    ask_all,
    ask_options,
    option,
    running_values,
)
from weighbridge.gateways.rgw.releases import RELEASES
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck

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
    release, place = state.cluster.release, state.cluster.place
    other = RELEASES[release].settings_of
    if not other:
        return {}
    ignored = unknown_options(state.hosts[place.radosgw[0]], release, conf_of(state.files))
    return {"release settings": words(release, other, [*ignored.values()])}


def _compression(settings: RgwSettings, host: Host) -> str:
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


# How a cluster meets the death of a part: its options, and what its mon says of it meanwhile.


_OSD: Final = (
    "osd_heartbeat_interval",
    "osd_heartbeat_grace",
    "osd_fast_fail_on_connection_refused",
    "osd_max_backfills",
    "osd_recovery_sleep_hdd",
    "osd_recovery_sleep_ssd",
)
_MON: Final = ("mon_osd_min_down_reporters", "mon_osd_down_out_interval")


@contextmanager
def _asking(state: CephState) -> Iterator[Ask]:
    hosts = [state.hosts[name] for name in state.cluster.place.mon]
    with ExitStack() as stack:

        def opened(host: Host) -> Monitor:
            # A dead daemon is what is waited for here, not why an answer is late.
            return stack.enter_context(Monitor(host, lambda: None))

        host, monitor = hosts[0], opened(hosts[0])

        def ask_now() -> Standing:
            nonlocal host, monitor
            try:
                return standing(monitor.status(), len(state.osds))
            except CommandFailed:
                others = [one for one in hosts if one is not host and one.is_up()]
                if not others:
                    raise
                host, monitor = others[0], opened(others[0])
                return standing(monitor.status(), len(state.osds))

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


def kept_bytes(osds: Sequence[CephDaemon]) -> KeptBytes | None:
    """The sum over BlueStore OSDs, None where one does not say it. Raises TargetError.

    The OSDs count at once, `ceph df` only with the next report to the mgr.
    """
    answers = ask_all(osds, {"prefix": "perf dump"})
    dumps = [_read(osd.name, text) for osd, (text,) in answers.items()]
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


MGR_INTERVALS_S: Final = {"mgr_stats_period": "5", "mgr_tick_period": "2"}
"""How often daemons report to the mgr, and it to the mon, by default: until it has heard from all,
a cluster is not known to be healthy. While it starts they report every second.
"""
_UP_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.1


def restore_intervals(
    mgrs: Sequence[CephDaemon], osds: Sequence[CephDaemon], settings: RgwSettings
) -> None:
    """Give running mgrs and OSDs the default intervals that would have slowed their start."""
    ask_all(mgrs, *(_set(name, value) for name, value in MGR_INTERVALS_S.items()))
    _restore_poll(osds, settings)


def _restore_poll(osds: Sequence[CephDaemon], settings: RgwSettings) -> None:
    if settings.osd.objectstore == "bluestore":
        ask_all(osds, _set("bdev_aio_poll_ms", objectstore.POLL_MS))


def _set(name: str, value: str) -> dict[str, object]:
    return {"prefix": "config set", "var": name, "val": [value]}


def _prepare(state: CephState, host: Host) -> None:
    osds = [osd for osd in state.roster.osds if osd.host == host.name]
    host.run(["sh", "-ec", objectstore.mounts(state.cluster.settings.osd, osds)], timeout_s=120)


def _up_since(monitor: Monitor) -> dict[str, int]:
    """By OSD: the epoch of the cluster's map since which it is up; 0: it is down."""
    dump = json.loads(monitor.ask({"prefix": "osd dump", "format": "json"})[0])
    return {f"osd.{one['osd']}": one["up_from"] if one["up"] else 0 for one in dump["osds"]}


def await_up(
    monitor: Monitor,
    osds: Sequence[CephDaemon],
    before: Mapping[str, int],
    daemons: Sequence[Daemon],
) -> None:
    """Wait until each OSD is up since a later epoch of the map than `before`: it still has those as
    up that lost power. Raises ServiceFailed, also when one of the daemons dies.
    """
    deadline = time.monotonic() + _UP_WITHIN_S
    while True:
        now = _up_since(monitor)
        late = [one for one in osds if now[one.name] <= before.get(one.name, 0)]
        if not late:
            return
        daemon.check(daemons)
        if time.monotonic() > deadline:
            raise late[0].failed(
                f"{len(late)} of {len(osds)} OSDs did not come up in {_UP_WITHIN_S:g} s"
            )
        time.sleep(_POLL_S)


_KEPT = {
    "filestore": "not dropped: RocksDB's block cache in the OSDs; FileStore's data is in the "
    "kernel's caches, which are dropped",
    "memstore": "not dropped: MemStore's objects, which are only in memory",
}


class RunningRgw(RunningGateway):
    """A healthy cluster with its gateway verified."""

    def __init__(
        self,
        state: CephState,
        *,
        endpoints: Sequence[Endpoint],
        checks: Sequence[OperationCheck],
        below: Below,
    ) -> None:
        self._state = state
        self._osds = state.osds
        self._gateways = tuple(state.radosgws)
        self._objectstore = state.cluster.settings.osd.objectstore
        self.endpoints = tuple(endpoints)
        self._below = below
        self.uneven = uneven(state.primaries)
        self._describe(checks)

    def settle(self) -> tuple[str, ...]:
        host = self._gateways[0].host
        host.run(["radosgw-admin", "gc", "process", "--include-all"], timeout_s=3600)
        left = len(
            json.loads(
                host.run(["radosgw-admin", "gc", "list", "--include-all"], timeout_s=600).stdout
            )
        )
        return (f"RGW garbage collection completed, {left} entries left",)

    def drop_caches(self) -> tuple[str, ...]:
        bluestore = self._objectstore == "bluestore"
        dropped = ask_all(self._osds, {"prefix": "cache drop"}) if bluestore else {}
        dropped |= ask_all(self._gateways, {"prefix": "cache zap"})
        for ceph, (answer,) in dropped.items():
            # Both answer nothing on success; a refusal is a text.
            if answer.strip():
                raise ceph.failed(f"caches not dropped: {answer.strip()}")
        count = len(self._gateways)
        zapped = (
            "RGW's metadata cache" + (f" of {count} radosgw" if count > 1 else "") + " (cache zap)"
        )
        if bluestore:
            return (
                f"BlueStore's onode and buffer caches of {len(self._osds)} OSDs (cache drop)",
                zapped,
                "not dropped: RocksDB's block cache in the OSDs, which has no command for it",
            )
        return (zapped, _KEPT[self._objectstore])

    def check(self) -> None:
        daemon.check(self._state.daemons)

    def check_disk_space(self) -> None:
        ceph = self._below.ceph
        if ceph is None:
            return
        checks = json.loads(ceph.host.run(["ceph", "health", "detail", "--format", "json"]).stdout)[
            "checks"
        ]
        full_check = checks.get("OSD_FULL")
        if full_check is None:
            return
        # Details are sentences such as `osd.0 is full`.
        names = [detail["message"].split()[0] for detail in full_check["detail"]]
        full = next((osd for osd in self._osds if osd.name in names), self._osds[0])
        words = (
            "is full"
            if len(self._osds) == 1
            else f"is full ({len(names)} of {len(self._osds)} OSDs are)"
        )
        raise full.failed(
            f"{words}: the cluster accepts no more writes or deletes",
            advice="Give the hosts larger disks in the hardware file, or let the suite write less: "
            "smaller or fewer objects, a shorter runtime, fewer workers.",
        )

    def start_again(self, names: Collection[str], say: Say) -> None:
        """The mon first, then OSDs and the mgr, radosgw once the OSDs are up, the front last."""
        state = self._state

        def ours(daemons: Collection[Daemon]) -> list[Daemon]:
            return [one for one in daemons if one.host.name in names]

        hosts = {name: host for name, host in state.hosts.items() if name in names}
        trust(hosts, state.certificates)
        together([partial(_prepare, state, host) for host in hosts.values()])
        mons = [one for one in ours(state.store) if one.service.name == "mon"]
        others = [one for one in ours(state.store) if one not in mons]
        osds = [one for one in state.osds if one.host.name in names]
        daemon.start(mons)
        await_ports(state.client, mons, say)
        with Monitor(state.mon_host, partial(daemon.check, mons)) as monitor:
            before = _up_since(monitor)
            daemon.start(others)
            await_up(monitor, osds, before, others)
        say(f"{len(osds)} OSDs are up again")
        for some in (ours(state.radosgws.values()), ours(state.front)):
            daemon.start(some)
            await_ports(state.client, some, say)
        mgrs = [one for one in state.mgrs if one.host.name in names]
        if mgrs:
            restore_intervals(mgrs, osds, state.cluster.settings)

    def revive(self, daemons: Sequence[Daemon]) -> None:
        """OSDs are up again when it returns."""
        state = self._state
        names = [one.service.name for one in daemons]
        osds = [one for one in state.osds if one.name in names]
        if not osds:
            daemon.start(daemons)
            return
        # Until they are started, they are dead: a slow answer of the mon is no reason to give them
        # up.
        mons = [one for one in state.store if one.service.name == "mon"]
        with Monitor(state.mon_host, partial(daemon.check, mons)) as monitor:
            before = _up_since(monitor)
            daemon.start(daemons)
            await_up(monitor, osds, before, daemons)
        _restore_poll(osds, state.cluster.settings)

    def mend_disk(self, host: str, disk: str) -> None:
        """One of its OSDs that saw an error has ended, and no other may go on."""
        state = self._state
        planned = [one for one in state.roster.osds if one.host == host and disk in one.disks]
        names = {f"osd.{one.number}" for one in planned}
        osds = [one for one in state.store if one.service.name in names]
        for one in osds:
            one.host.kill(one.service.name)
        script = objectstore.remounts(state.cluster.settings.osd, planned, disk)
        state.hosts[host].run(["sh", "-ec", script], timeout_s=120)
        self.revive(osds)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        self._planned(gateway, scope, lambda _: None)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        change = self._planned(gateway, scope, say)
        with change.restoring_on_failure():
            done, checks = change.run(self.endpoints)
            self._describe(checks)
        return done

    def _planned(self, gateway: Gateway, scope: Scope, say: Say) -> CephChange:
        if not isinstance(gateway.cluster, CephCluster):
            raise UsageError(f"an rgw gateway is running, which cannot become a {gateway.kind} one")
        return CephChange(self._state, gateway.cluster, scope, say)

    def _describe(self, checks: Sequence[OperationCheck]) -> None:
        verified = f"{len(checks)} operations over S3 and Swift, reads byte for byte"
        tls = negotiated(self._state.client, self.endpoints)
        self.facts = MappingProxyType({**facts(self._state), "verified": verified, "tls": tls})
        self.rendered = self._state.files.shown()
        self._probes = self._state.probes()

    def below(self) -> Below:
        return self._below

    def disk_space(self) -> DiskSpace | None:
        ceph = self._below.ceph
        if ceph is None:
            return None
        stats = json.loads(ceph.host.run(["ceph", "df", "--format", "json"]).stdout)["stats"]
        return DiskSpace(
            bytes=stats["total_bytes"],
            free_bytes=stats["total_avail_bytes"],
            kept=self._state.cluster.settings.pools.kept,
        )

    def kept_bytes(self) -> KeptBytes | None:
        return kept_bytes(self._osds) if self._objectstore == "bluestore" else None

    def tolerance(self) -> Tolerance:
        state = self._state
        mon = CephDaemon(state.mon_host, "mon.a")
        found: dict[str, str] = {}
        for source, names in ((state.osds[0], _OSD), (mon, _MON)):
            answers = ask_options(source, "config get", names)
            values = {name: option(text, name) for name, text in answers.items()}
            found |= {name: value for name, value in values.items() if value is not None}
        pools = state.cluster.settings.pools
        found["copies"] = f"{pools.replicas}, writes need {pools.min_size} (min_size)"
        front = state.cluster.front(native=state.native)
        return Tolerance(
            found | ({} if front is None else front.tolerance()), partial(_asking, state)
        )

    def daemons(self) -> tuple[Daemon, ...]:
        return self._state.daemons

    def probes(self) -> tuple[Probe, ...]:
        return self._probes
