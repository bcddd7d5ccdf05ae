"""A Ceph cluster with radosgw: brought up, started again, and changed while it runs."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, base_url
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.structure import Scope
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import ca_file_of, issued, trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    Below,
    CephBelow,
    DiskSpace,
    Gateway,
    KeptBytes,
    Say,
    Tolerance,
)
from weighbridge.gateways.options import by_option
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw import facts
from weighbridge.gateways.rgw.facts import PLACEMENT, STORAGE_CLASS, ZONE, Seen, daemons_of
from weighbridge.gateways.rgw.monitor import (
    Monitor,
    ask,
    ask_options,
    ceph_name,
    effective,
    parsed_values,
    probe,
    running_values,
    set_options,
)
from weighbridge.gateways.rgw.plan import (
    CONF,
    FAST_POLL,
    KEYRING,
    MON_PORTS,
    POLL_MS,
    CephKeys,
    CephPlan,
    Mon,
    Radosgw,
    mount_script,
    remount_script,
    store_script,
    tls_host_of,
)
from weighbridge.gateways.rgw.pools import data_pool, make_pools, primaries
from weighbridge.gateways.rgw.settings import RadosgwSettings
from weighbridge.gateways.running import RunningStore, StorePlan, front_daemons, put_files
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck

_UID: Final = "weigh"
_SUBUSER: Final = f"{_UID}:swift"
_MGR_INTERVALS_S: Final = {"mgr_stats_period": "5", "mgr_tick_period": "2"}
"""How often daemons report to the mgr, and it to the mon, by default: until it has heard from all,
a cluster is not known to be healthy. While it starts they report every second.
"""
_WITHIN_S: Final = 120.0
_CLEAN_WITHIN_S: Final = 180.0
_POLL_S: Final = 0.05
_NOT_DROPPED: Final = {
    "filestore": "not dropped: RocksDB's block cache in the OSDs; FileStore's data is in the "
    "kernel's caches, which are dropped",
    "memstore": "not dropped: MemStore's objects, which are only in memory",
}


class RunningRgw(RunningStore[Gateway]):
    """A healthy cluster with its gateway verified."""

    def __init__(self, gateway: Gateway, hosts: Mapping[str, Host], client: Host) -> None:
        ceph = CephPlan(gateway, hosts)
        tls_host = tls_host_of(ceph.place, ceph.settings)
        self.certificates = None if tls_host is None else issued(hosts[tls_host])
        self._keys = CephKeys(str(uuid.uuid4()), ceph.keyring(), self.certificates)
        self._mon_host = hosts[ceph.place.mon[0]]
        self._objectstore = ceph.settings.osd.objectstore
        self._host = hosts[ceph.place.radosgw[0]]
        super().__init__(gateway, hosts, client)
        self._osds = daemons_of(self.plan, "ceph-osd")
        self._mons = daemons_of(self.plan, "ceph-mon")
        self.endpoints = self._endpoints(ceph)

    def planned(self, gateway: Gateway) -> StorePlan[Gateway]:
        ceph = CephPlan(gateway, self.hosts)
        place, native = ceph.place, ceph.speaks_fastcgi(self.hosts)
        front = ceph.front(native=native)
        fronts: tuple[Daemon, ...] = ()
        if place.front is not None:
            files = ceph.front_files(native=native)
            fronts = front_daemons(front, self.hosts[place.front], files)
        mons, mgrs = [], []
        # It needs a second or more to hear from all OSDs: meanwhile these and radosgw start.
        fast = [f"--{name.replace('_', '-')}=1" for name in _MGR_INTERVALS_S]
        for one in ceph.mons:
            host = self.hosts[one.host]
            mon = Service("mon", ("ceph-mon", "-f", "-i", one.id))
            mgr = Service("mgr", ("ceph-mgr", "-f", "-i", one.id, *fast))
            mons.append(Daemon(host, mon, MON_PORTS[0], (f"mon.{one.id}.log",)))
            mgrs.append(Daemon(host, mgr, logs=(f"mgr.{one.id}.log",)))
        poll = (FAST_POLL,) if self._objectstore == "bluestore" else ()
        osds = []
        for osd in ceph.osds:
            name = f"osd.{osd.number}"
            service = Service(name, ("ceph-osd", "-f", "-i", str(osd.number), *poll))
            osds.append(
                Daemon(self.hosts[osd.host], service, None, (f"{name}.log",), disks=osd.disks)
            )
        radosgws = []
        for radosgw in ceph.radosgws:
            host, logs = self.hosts[radosgw.host], (f"{radosgw.name}.log",)
            service = Service(radosgw.service, ("radosgw", "-f", "-n", radosgw.name))
            radosgws.append(Daemon(host, service, radosgw.port, logs, reads=(CONF,)))
        stages = (mons, [*osds, *mgrs], radosgws)
        return StorePlan(gateway, stages, ceph.files(self._keys, native=native), front, fronts)

    @property
    def _ceph(self) -> CephPlan:
        return CephPlan(self.plan.gateway, self.hosts)

    def bring_up(self, say: Say) -> None:
        """Start it all. Raises ServiceFailed, CommandFailed or VerificationFailed.

        The order makes it short: the keyring is written here, not asked for; all pools are created
        while OSDs boot, so that radosgw finds them; radosgw starts when OSDs are up, since it would
        otherwise wait 5 s for its next attempt; the mgr, which no request needs, beside OSDs.
        """
        ceph = self._ceph
        place, settings = ceph.place, ceph.settings
        mons, others, radosgws = self.plan.stages
        put_files(self.plan.files, self.hosts)
        trust(self.hosts, self.certificates)
        say(f"creating the mon on {', '.join(place.mon)} and {len(ceph.osds)} OSDs")
        for text in place.advice:
            say(text)
        makers: list[Callable[[], object]] = []
        for name in place.osd:
            script = store_script(settings.osd, ceph.osds_of(name))
            makers.append(partial(self.hosts[name].run, ["sh", "-ec", script], timeout_s=120))
        for mon in ceph.mons:
            script = self._mon_script(ceph, mon)
            makers.append(partial(self.hosts[mon.host].run, ["sh", "-ec", script]))
        together(makers)
        started = [*mons]
        self.start(mons, say)
        with Monitor(self._mon_host, partial(daemon.check, started)) as monitor:
            self._await_quorum(monitor)
            for osd in ceph.osds:
                monitor.ask({"prefix": "osd new", "uuid": osd.uuid, "id": osd.number})
            started += others
            daemon.start(others)
            make_pools(monitor, settings.pools)
            self._await_up(monitor, self._osds, {}, started)
            if settings.radosgw.compression != "none":
                # The first radosgw would create the zone, and one that runs does not read it again.
                self._compress(settings.radosgw.compression)
            say(f"OSDs are up; starting {len(radosgws)} radosgw")
            for some in (radosgws[:1], radosgws[1:]):
                started += some
                self.start(some, say)
            self._make_user()
            for front in self.plan.front_daemons[-1:]:
                say(f"starting {front.service.name} on {front.host.name}")
            started += self.plan.front_daemons
            self.start(self.plan.front_daemons, say)
            checks = self.verify()
            say(
                f"verified: {len(checks)} operations over S3 and Swift; waiting for a healthy "
                "cluster"
            )
            self._quieten(monitor)
            self._await_clean(monitor, sum(settings.pools.groups.values()), say)
            # What kind of disk each OSD believes it has: options for that kind apply.
            metadata = json.loads(monitor.ask({"prefix": "osd metadata", "format": "json"})[0])
            self._seen = Seen(
                tuple("hdd" if osd["rotational"] == "1" else "ssd" for osd in metadata),
                primaries(monitor, len(ceph.osds)),
                data_pool(monitor),
            )
        set_options(daemons_of(self.plan, "ceph-mgr"), _MGR_INTERVALS_S)
        self._restore_poll(self._osds)
        self.uneven = facts.uneven(self._seen.primaries)
        self.describe(checks)

    def _mon_script(self, ceph: CephPlan, mon: Mon) -> str:
        """Creates a mon's store on its host; it knows all mons from the start."""
        places = " ".join(f"--addv {one.id} '{one.places}'" for one in ceph.mons)
        return f"""
            mkdir -p /run/ceph /var/lib/ceph/mon/{mon.id} /var/lib/ceph/mgr/{mon.id}
            monmaptool --create --clobber --fsid {self._keys.fsid} {places} /tmp/monmap
            ceph-mon --mkfs -i {mon.id} --monmap /tmp/monmap --keyring {KEYRING}
        """

    def _await_quorum(self, monitor: Monitor) -> None:
        """Wait for every mon: a quorum may lack some."""

        def late() -> list[Daemon]:
            answer = monitor.ask({"prefix": "quorum_status", "format": "json"})[0]
            names = json.loads(answer)["quorum_names"]
            return [one for one in self._mons if ceph_name(one).partition(".")[2] not in names]

        if len(self._mons) > 1:
            _await_none(late, (), "is not in the quorum after")

    def _compress(self, algorithm: str) -> None:
        """Have the default placement compress; creates the zone if needed."""
        host = self._host
        # Any command that opens the store creates zone and zonegroup; those about zones do not.
        host.run(["radosgw-admin", "bucket", "list"], timeout_s=120)
        where = ("--placement-id", PLACEMENT, "--storage-class", STORAGE_CLASS)
        command = ("radosgw-admin", "zone", "placement", "modify", *ZONE, *where)
        host.run([*command, "--compression", algorithm], timeout_s=120)

    def _make_user(self) -> None:
        # Newer releases can deactivate keys, and take one without this field for inactive.
        key = {"active": True}
        s3 = {"user": _UID, "access_key": self._keys.access_key, **key}
        data = {
            "user_id": _UID,
            "display_name": "Weighbridge",
            "max_buckets": 0,
            "keys": [{**s3, "secret_key": self._keys.secret_key}],
            "subusers": [{"id": _SUBUSER, "permissions": "full-control"}],
            "swift_keys": [{"user": _SUBUSER, "secret_key": self._keys.swift_key, **key}],
            "op_mask": "read, write, delete",
            "type": "rgw",
        }
        self._host.run(
            ["radosgw-admin", "metadata", "put", f"user:{_UID}"], stdin=json.dumps({"data": data})
        )

    def _quieten(self, monitor: Monitor) -> None:
        if self._ceph.knows(self._mon_host)("mgr_disabled_modules"):
            monitor.ask({"prefix": "health mute", "code": "MGR_MODULE_ERROR", "sticky": True})
            return
        off = {"mgr/balancer/active": "false", "mgr/devicehealth/enable_monitoring": "false"}
        # force: the mon does not know options of modules before a mgr has announced them.
        command = {"prefix": "config set", "who": "mgr", "force": True}
        monitor.ask(*({**command, "name": name, "value": value} for name, value in off.items()))

    def _await_clean(self, monitor: Monitor, wanted: int, say: Say) -> None:
        started = reported = time.monotonic()
        while True:
            status = monitor.status()
            health, groups = status["health"], status["pgmap"]
            clean = sum(
                one["count"]
                for one in groups.get("pgs_by_state", ())
                if one["state_name"] == "active+clean"
            )
            if health["status"] == "HEALTH_OK" and clean >= wanted and clean == groups["num_pgs"]:
                return
            self.check()
            checks = ", ".join(health["checks"]) or "no health checks"
            what = f"{health['status']} ({checks}), {clean} of {wanted} placement groups clean"
            if time.monotonic() - started > _CLEAN_WITHIN_S:
                host, log = self._mon_host, self._mon_host.log("cluster.log")
                what = f"{what} after {_CLEAN_WITHIN_S:g} s"
                tail = host.log_tail(log.name)
                raise ServiceFailed(host.name, "ceph", what, log=str(log), tail=tail)
            if time.monotonic() - reported > 5:
                reported = time.monotonic()
                say(what)
            time.sleep(_POLL_S)

    # endpoints

    def _endpoints(self, ceph: CephPlan) -> tuple[Endpoint, ...]:
        if ceph.front_url is not None:
            return self._both(ceph.front_url)
        first, *others = [self._url_of(one) for one in ceph.radosgws]
        direct = self._both(first)
        spreading = ceph.settings.endpoints
        if spreading is None:
            return direct
        more = {"others": tuple(others), "spreading": spreading}
        return tuple(one.model_copy(update=more) for one in direct)

    def _url_of(self, one: Radosgw) -> str:
        return base_url(one.address, one.port, tls=self._ceph.settings.radosgw.tls)

    def _both(self, base: str, *, storage_url: str | None = None) -> tuple[Endpoint, ...]:
        ca_file, keys = ca_file_of(base), self._keys
        swift = Endpoint(
            api="swift",
            url=f"{base}/auth/v1.0",
            user=_SUBUSER,
            key=SecretStr(keys.swift_key),
            storage_url=storage_url,
            ca_file=ca_file,
        )
        key = SecretStr(keys.secret_key)
        return swift, Endpoint(api="s3", url=base, user=keys.access_key, key=key, ca_file=ca_file)

    def below(self) -> Below:
        ceph = self._ceph
        direct: tuple[Endpoint, ...] = ()
        if ceph.front_url is not None:
            # The first radosgw, past the front: its auth would return the front as storage URL.
            base = self._url_of(ceph.radosgws[0])
            direct = self._both(base, storage_url=f"{base}/swift/v1")
        return Below(
            gateway=direct,
            ceph=CephBelow(
                host=self._host,
                mon=self._mon_host,
                osds={osd.number: osd.host for osd in ceph.osds},
                replicas=ceph.settings.pools.replicas,
                failure_domain=ceph.settings.pools.failure_domain,
            ),
        )

    # between steps

    def settle(self) -> tuple[str, ...]:
        host = self._host
        host.run(["radosgw-admin", "gc", "process", "--include-all"], timeout_s=3600)
        listed = host.run(["radosgw-admin", "gc", "list", "--include-all"], timeout_s=600).stdout
        return (f"RGW garbage collection completed, {len(json.loads(listed))} entries left",)

    def drop_caches(self) -> tuple[str, ...]:
        bluestore, gateways = self._objectstore == "bluestore", daemons_of(self.plan, "radosgw")
        dropping = [("cache zap", gateways)]
        if bluestore:
            dropping.insert(0, ("cache drop", self._osds))
        for command, daemons in dropping:
            for one, (answer,) in zip(daemons, ask(daemons, {"prefix": command}), strict=True):
                # Both answer nothing on success; a refusal is a text.
                if answer.strip():
                    raise one.failed(f"caches not dropped: {answer.strip()}")
        count = f" of {len(gateways)} radosgw" if len(gateways) > 1 else ""
        zapped = f"RGW's metadata cache{count} (cache zap)"
        if not bluestore:
            return (zapped, _NOT_DROPPED[self._objectstore])
        return (
            f"BlueStore's onode and buffer caches of {len(self._osds)} OSDs (cache drop)",
            zapped,
            "not dropped: RocksDB's block cache in the OSDs, which has no command for it",
        )

    def check_disk_space(self) -> None:
        health = self._host.run(["ceph", "health", "detail", "--format", "json"])
        full_check = json.loads(health.stdout)["checks"].get("OSD_FULL")
        if full_check is None:
            return
        # Details are sentences such as `osd.0 is full`.
        names = [detail["message"].split()[0] for detail in full_check["detail"]]
        full = next((one for one in self._osds if one.service.name in names), self._osds[0])
        count = len(self._osds)
        of = "" if count == 1 else f" ({len(names)} of {count} OSDs are)"
        raise full.failed(
            f"is full{of}: the cluster accepts no more writes or deletes",
            advice="Give the hosts larger disks in the hardware file, or let the suite write less: "
            "smaller or fewer objects, a shorter runtime, fewer workers.",
        )

    def disk_space(self) -> DiskSpace:
        answer = self._host.run(["ceph", "df", "--format", "json"]).stdout
        stats = json.loads(answer)["stats"]
        return DiskSpace(
            bytes=stats["total_bytes"],
            free_bytes=stats["total_avail_bytes"],
            kept=self._ceph.settings.pools.kept,
        )

    def kept_bytes(self) -> KeptBytes | None:
        return facts.kept_bytes(self._osds) if self._objectstore == "bluestore" else None

    def tolerance(self) -> Tolerance:
        pools, front = self._ceph.settings.pools, self.plan.front
        settings = {
            **facts.fault_options(self._osds[0], self._mons[0]),
            "copies": f"{pools.replicas}, writes need {pools.min_size} (min_size)",
            **({} if front is None else front.tolerance()),
        }
        hosts = [one.host for one in self._mons]
        return Tolerance(settings, partial(facts.asking, hosts, len(self._osds)))

    def describe(self, checks: Sequence[OperationCheck]) -> None:
        plan = self.plan
        verified = f"{len(checks)} operations over S3 and Swift, reads byte for byte"
        tls = negotiated(self.client, self.endpoints)
        known = facts.facts(plan, self._ceph, self._seen)
        self.facts = MappingProxyType({**known, "verified": verified, "tls": tls})
        self.rendered = tuple(file.rendered for file in plan.files)
        probes = [probe(one) for one in (*daemons_of(plan, "radosgw"), *self._osds)]
        if plan.front is not None:
            probes += plan.front.probes(plan.front_daemons[0].host)
        self._probes = tuple(probes)

    def probes(self) -> tuple[Probe, ...]:
        return self._probes

    # starting again

    @contextlib.contextmanager
    def starting(self, daemons: Sequence[Daemon], say: Say) -> Iterator[None]:
        """OSDs are up when the block ends."""
        osds = [one for one in daemons if one in self._osds]
        if not osds:
            yield
            return
        # Until they are started, they are dead: a slow answer of the mon is no reason to give them
        # up.
        with Monitor(self._mon_host, partial(daemon.check, self._mons)) as monitor:
            before = _up_since(monitor)
            yield
            self._await_up(monitor, osds, before, daemons)
        say(f"{len(osds)} OSDs are up again")
        self._restore_poll(osds)

    def start_again(self, names: Collection[str], say: Say) -> None:
        super().start_again(names, say)
        mgrs = [one for one in daemons_of(self.plan, "ceph-mgr") if one.host.name in names]
        set_options(mgrs, _MGR_INTERVALS_S)

    def mounts(self, host: Host) -> str:
        return mount_script(self._ceph.settings.osd, self._ceph.osds_of(host.name))

    def remounts(self, host: Host, disk: str) -> str:
        return remount_script(self._ceph.settings.osd, self._ceph.osds_of(host.name), disk)

    def _restore_poll(self, osds: Sequence[Daemon]) -> None:
        if self._objectstore == "bluestore":
            set_options(osds, {"bdev_aio_poll_ms": POLL_MS})

    def _await_up(
        self,
        monitor: Monitor,
        osds: Sequence[Daemon],
        before: Mapping[str, int],
        watched: Sequence[Daemon],
    ) -> None:
        """Wait until each OSD is up since a later epoch of the map than `before`: it still has
        those as up that lost power. Raises ServiceFailed, also when a watched daemon dies.
        """

        def late() -> list[Daemon]:
            now = _up_since(monitor)
            return [one for one in osds if now[ceph_name(one)] <= before.get(ceph_name(one), 0)]

        _await_none(late, watched, "did not come up in")

    # changing radosgw

    def refuse_taking(
        self, daemons: Sequence[Daemon], plan: StorePlan[Gateway], scope: Scope
    ) -> None:
        if scope != "nothing":
            super().refuse_taking(daemons, plan, scope)
        first = daemons[0]
        names = tuple(self._differences(first, self.written[first.host.name, CONF], plan))
        fixed = [
            name
            for name, answer in ask_options(first, "config help", names).items()
            if not _help(answer).get("can_update_at_runtime")
        ]
        if fixed:
            raise UsageError(
                f"{ceph_name(first)} cannot change {', '.join(fixed)} while it is running",
                advice=_ADVICE,
            )

    def take(self, daemons: Sequence[Daemon], plan: StorePlan[Gateway]) -> str:
        wanted = [self._live_values(one, plan) for one in daemons]
        before: list[dict[str, str]] = []
        try:
            for one, options in zip(daemons, wanted, strict=True):
                before.append(running_values(one, options))
                _set_live(one, options)
        except UsageError:
            for one, options in zip(daemons, before, strict=False):
                set_options([one], options)
            raise
        for one, options in zip(daemons, wanted, strict=True):
            _refuse_other(one, options)
        names = dict.fromkeys(name for options in wanted for name in options)
        return f"{', '.join(names)} applied to {_count(daemons)} while running"

    def confirm(
        self, restarted: Sequence[Daemon], before: StorePlan[Gateway], plan: StorePlan[Gateway]
    ) -> None:
        for one in restarted:
            if one.service.argv[0] != "radosgw":
                continue
            wanted = self._differences(one, before.text(one.host, CONF), plan)
            if not wanted:
                # It was restarted since nobody knew what it ran with.
                ceph = CephPlan(plan.gateway, self.hosts)
                own, known = ceph.settings.options.get("client", {}), ceph.knows(one.host)
                for name, value in effective(plan.text(one.host, CONF), ceph_name(one)).items():
                    if name in own or (name.startswith("rgw_") and known(name)):
                        wanted[name] = value
            left = _beyond_default(one, [name for name, value in wanted.items() if value is None])
            if left:
                raise one.failed(
                    f"still has {', '.join(f'{name} ({source})' for name, source in left.items())}"
                )
            given = {name: value for name, value in wanted.items() if value is not None}
            _refuse_other(one, _as_read(one, given))

    def _differences(
        self, one: Daemon, conf: str, plan: StorePlan[Gateway]
    ) -> dict[str, str | None]:
        """New values of options beside those of `conf`; None: back to the default."""
        now = effective(conf, ceph_name(one))
        then = effective(plan.text(one.host, CONF), ceph_name(one))
        names = dict.fromkeys((*now, *then))
        return {name: then.get(name) for name in names if now.get(name) != then.get(name)}

    def _live_values(self, one: Daemon, plan: StorePlan[Gateway]) -> dict[str, str]:
        """What a running radosgw is to have. Options that are no longer given are set to their
        defaults: if they were merely unset, the value in the file that it read would apply again.
        """
        values = self._differences(one, self.written[one.host.name, CONF], plan)
        given = {name: value for name, value in values.items() if value is not None}
        dropped = [name for name, value in values.items() if value is None]
        diff = _config_diff(one) if dropped else {}
        known = {name: diff[name].get("default") for name in dropped if name in diff}
        defaults = {name: value for name, value in known.items() if value is not None}
        if len(defaults) < len(known):
            unknown = ", ".join(name for name in known if name not in defaults)
            raise UsageError(
                f"{ceph_name(one)} runs with {unknown}, and does not say the default: this needs "
                "at least `restart`, not `nothing`"
            )
        return {**_as_read(one, given), **defaults}


_NOT_OBSERVED: Final = "may require restart"
"""A daemon's answer to `config set` when nothing observes the option: it may never read the new
value.
"""
_ADVICE: Final = "give the parameter the scope `restart`"


def _set_live(one: Daemon, options: Mapping[str, str]) -> None:
    """Set options of a running daemon. Raises UsageError when one may need a restart, ServiceFailed
    when the daemon refuses one.
    """
    (answers,) = set_options([one], options)
    for name, answer in answers.items():
        if "success" not in answer:
            raise one.failed(f"refuses an option at runtime: {name}: {answer.strip()}")
    not_observed = [
        name
        for name, answer in answers.items()
        if _NOT_OBSERVED in answer and not _takes_each_time(name)
    ]
    uncertain = []
    for name, answer in ask_options(one, "config help", not_observed).items():
        flags = _help(answer).get("flags")
        if not isinstance(flags, list) or "runtime" not in flags:
            uncertain.append(name)
    if uncertain:
        raise UsageError(
            f"{ceph_name(one)} reports that a change of {', '.join(uncertain)} may require a "
            "restart, but not whether it does",
            advice=_ADVICE,
        )


def _takes_each_time(name: str) -> bool:
    row = by_option(RadosgwSettings).get(name)
    return row is not None and row.option.each_time


def _help(answer: str) -> Mapping[str, object]:
    try:
        said = json.loads(answer)
    except json.JSONDecodeError:  # a message that it does not know the option
        return {}
    about: Mapping[str, object] = said.get("option", said)
    return about


def _config_diff(one: Daemon) -> Mapping[str, Mapping[str, str]]:
    """Values by option and source, such as `default`, `file`, `override` and `final`."""
    ((answer,),) = ask([one], {"prefix": "config diff"})
    diff: Mapping[str, Mapping[str, str]] = json.loads(answer)["diff"]
    return diff


def _beyond_default(one: Daemon, names: Sequence[str]) -> dict[str, str]:
    """Options that are not at their defaults, with sources and values: `file 5, override 7`."""
    diff = _config_diff(one) if names else {}
    beyond = {}
    for name in names:
        sources = [
            f"{source} {value}"
            for source, value in diff.get(name, {}).items()
            if source not in {"default", "final"}
        ]
        if sources:
            beyond[name] = ", ".join(sources)
    return beyond


def _as_read(one: Daemon, options: Mapping[str, str]) -> dict[str, str]:
    """Values as the release's parser writes them. Raises UsageError with those that it refuses."""
    values, refused = parsed_values(one.host, ceph_name(one), options)
    if refused:
        raise UsageError("\n".join(refused))
    return values


def _refuse_other(one: Daemon, wanted: Mapping[str, str]) -> None:
    """Raise ServiceFailed when the daemon reports other values."""
    values = running_values(one, wanted)
    wrong = [
        f"{name} {values[name]!r}, not {value!r}"
        for name, value in wanted.items()
        if values[name] != value
    ]
    if wrong:
        raise one.failed(f"runs with {', '.join(wrong)}")


def _await_none(
    late: Callable[[], Sequence[Daemon]], watched: Sequence[Daemon], fault: str
) -> None:
    """Wait until no daemon is late. Raises ServiceFailed, also when a watched one dies."""
    deadline = time.monotonic() + _WITHIN_S
    while some := late():
        daemon.check(watched)
        if time.monotonic() > deadline:
            more = f" (and {len(some) - 1} more)" if len(some) > 1 else ""
            raise some[0].failed(f"{fault} {_WITHIN_S:g} s{more}")
        time.sleep(_POLL_S)


def _up_since(monitor: Monitor) -> dict[str, int]:
    """By OSD: the epoch of the cluster's map since which it is up; 0: it is down."""
    dump = json.loads(monitor.ask({"prefix": "osd dump", "format": "json"})[0])
    return {f"osd.{one['osd']}": one["up_from"] if one["up"] else 0 for one in dump["osds"]}


def _count(radosgws: Sequence[Daemon]) -> str:
    first = ceph_name(radosgws[0]).replace("client.rgw", "radosgw", 1)
    return first if len(radosgws) == 1 else f"{len(radosgws)} radosgw"
