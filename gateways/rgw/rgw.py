"""The `rgw` gateway: a Ceph cluster of a mon, a mgr and OSDs, with radosgw and perhaps a front."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, S3Way, base_url
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Scope, StoreLayer, Structure
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import ca_file_of, trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import FRONTS, Front, front_parts, refuse_shared_ports, refuse_unfit
from weighbridge.gateways.gateway import (
    Below,
    CephBelow,
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
    Unfit,
    tier_of,
    words,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import FileGrammar
from weighbridge.gateways.rgw import ceph_state, change, config, data_pool, objectstore
from weighbridge.gateways.rgw.ceph_roster import MON_PORTS, CephRoster, Osd, Radosgw
from weighbridge.gateways.rgw.ceph_state import CephState, Media, conf_of, front_files_of
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import DATA_POOL, GRAMMAR, pools
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor
from weighbridge.gateways.rgw.releases import RELEASES, SWIFT_LACKS
from weighbridge.gateways.rgw.running_rgw import (
    MGR_INTERVALS_S,
    RunningRgw,
    await_up,
    restore_intervals,
)
from weighbridge.gateways.rgw.settings import (
    RgwPlacement,
    RgwSettings,
    by_size,
    network_faults,
    plugin_faults,
)
from weighbridge.gateways.sizing import Sized, Sizes
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import verify

_UID = "weigh"
_SUBUSER = f"{_UID}:swift"
_CLEAN_WITHIN_S = 180.0
_POLL_S = 0.05


class CephBringUp:
    """Starts one cluster.

    The order makes it short: the keyring is written here, not asked for; all pools are created
    while OSDs boot, so that radosgw finds them; radosgw starts when OSDs are up, since it would
    otherwise wait 5 s for its next attempt; the mgr, which neither PUT nor GET needs, beside it.
    """

    def __init__(
        self, cluster: CephCluster, hosts: Mapping[str, Host], client: Host, say: Say
    ) -> None:
        self.cluster = cluster
        self.settings = cluster.settings
        self.roster = CephRoster(cluster.place, cluster.settings, hosts)
        self.hosts = {name: hosts[name] for name in cluster.place.hosts}
        self.all_hosts = hosts
        self.certificates = cluster.certificates(hosts)
        self.client = client
        self.say = say
        self.mon_host = hosts[cluster.place.mon[0]]
        self.fsid = str(uuid.uuid4())
        self.access_key = secrets.token_hex(10).upper()
        self.secret_key = secrets.token_urlsafe(30)
        self.swift_key = secrets.token_urlsafe(30)
        self.started: list[Daemon] = []
        self.gateways = [self._radosgw_daemon(one) for one in self.roster.radosgws]
        self.front: tuple[Daemon, ...] = ()

    def run(self) -> RunningGateway:
        """Start it all. Raises ServiceFailed, CommandFailed or VerificationFailed."""
        osds = self.roster.osds
        stores = [CephDaemon(self.hosts[osd.host], f"osd.{osd.number}") for osd in osds]
        native = self.cluster.speaks_fastcgi(self.hosts)
        front, front_host = self.cluster.front(native=native), self.cluster.place.front
        files = self.cluster.files(
            self.roster, fsid=self.fsid, native=native, certificates=self.certificates
        )
        files.write(self.hosts)
        trust(self.all_hosts, self.certificates)
        self.say(f"creating the mon on {', '.join(self.cluster.place.mon)} and {len(osds)} OSDs")
        for text in self.cluster.place.advice:
            self.say(text)
        makers: list[Callable[[], None]] = [
            partial(self._make_osds, name) for name in self.cluster.place.osd
        ]
        makers += [
            partial(ceph_state.make_mons, self.hosts[one.host], one, self.roster.mons, self.fsid)
            for one in self.roster.mons
        ]
        together(makers)
        started = ceph_state.mon_daemons(self.roster.mons, self.hosts)
        self._start(started)
        await_ports(self.client, started, self.say)
        with Monitor(self.mon_host, partial(daemon.check, self.started)) as monitor:
            ceph_state.await_quorum(monitor, self.roster.mons, self.hosts)
            for osd in osds:
                monitor.ask({"prefix": "osd new", "uuid": osd.uuid, "id": osd.number})
            self._start([self._osd_daemon(osd) for osd in osds])
            # It needs a second or more to hear from all OSDs: meanwhile these and radosgw start.
            fast = (f"--{name.replace('_', '-')}=1" for name in MGR_INTERVALS_S)
            self._start(ceph_state.mgr_daemons(self.roster.mons, self.hosts, *fast))
            self._make_pools(monitor)
            await_up(monitor, stores, {}, self.started)
            self._start_gateways()
            if front is not None and front_host is not None:
                self._start_front(front, self.hosts[front_host])
            endpoints = self._endpoints()
            with daemon.blaming(self.started):
                checks = verify(self.client, endpoints)
            self.say(
                f"verified: {len(checks)} operations over S3 and Swift; waiting for a healthy "
                "cluster"
            )
            self._quieten(monitor)
            self._await_clean(monitor)
            # What kind of disk each OSD believes it has: options for that kind apply.
            metadata = json.loads(monitor.ask({"prefix": "osd metadata", "format": "json"})[0])
            media: list[Media] = ["hdd" if osd["rotational"] == "1" else "ssd" for osd in metadata]
            primaries = self._primaries(monitor)
            kept = data_pool.read(monitor)
        gateways = [CephDaemon(self.hosts[one.host], one.name) for one in self.roster.radosgws]
        restore_intervals(ceph_state.mgrs(self.roster.mons, self.hosts), stores, self.settings)
        radosgws = dict(zip(gateways, self.gateways, strict=True))
        state = CephState(
            cluster=self.cluster,
            hosts=self.hosts,
            client=self.client,
            fsid=self.fsid,
            native=native,
            files=files,
            certificates=self.certificates,
            store=tuple(one for one in self.started if one not in (*self.gateways, *self.front)),
            osds=tuple(stores),
            media=tuple(media),
            primaries=primaries,
            data_pool=kept,
            radosgws=radosgws,
            front=self.front,
            confs=dict.fromkeys(gateways, conf_of(files)),
            front_files=front_files_of(files),
        )
        return RunningRgw(state, endpoints=endpoints, checks=checks, below=self._below())

    def _make_osds(self, name: str) -> None:
        text = objectstore.script(
            self.settings.osd, [osd for osd in self.roster.osds if osd.host == name]
        )
        self.hosts[name].run(["sh", "-ec", text], timeout_s=120)

    def _osd_daemon(self, osd: Osd) -> Daemon:
        fast = (objectstore.FAST_POLL,) if self.settings.osd.objectstore == "bluestore" else ()
        argv = ("ceph-osd", "-f", "-i", str(osd.number), *fast)
        service = Service(f"osd.{osd.number}", argv)
        return Daemon(self.hosts[osd.host], service, logs=(f"osd.{osd.number}.log",))

    def _start_gateways(self) -> None:
        if self.settings.radosgw.compression != "none":
            # The first radosgw would create the zone, and one that runs does not read it again.
            data_pool.compress(self.hosts[self.cluster.place.radosgw[0]], self.settings.radosgw)
        first, *others = self.gateways
        self.say(f"OSDs are up; starting {len(others) + 1} radosgw")
        for some in ([first], others):
            if some:
                self._start(some)
                await_ports(self.client, some, self.say)
        self._make_user()

    def _start_front(self, front: Front, host: Host) -> None:
        self.front = front.daemons(host)
        self.say(f"starting {self.front[-1].service.name} on {host.name}")
        self._start(self.front)
        await_ports(self.client, self.front, self.say)

    def _radosgw_daemon(self, one: Radosgw) -> Daemon:
        service = Service(one.service, ("radosgw", "-f", "-n", one.name))
        return Daemon(self.hosts[one.host], service, one.port, (f"{one.name}.log",))

    def _start(self, daemons: Sequence[Daemon]) -> None:
        self.started += daemons
        daemon.start(daemons)

    def _make_pools(self, monitor: Monitor) -> None:
        wanted = pools(self.settings.pools)
        # From 17 on, a pool whose name begins with a dot, such as one of RGW's, is silently not
        # created without this flag.
        forced = {"yes_i_really_mean_it": True}
        ec = self.settings.pools.ec
        coded: dict[str, object] = {}
        if ec is not None:
            monitor.ask(data_pool.profile(ec, self.settings.pools.failure_domain))
            coded = {"pool_type": "erasure", "erasure_code_profile": data_pool.PROFILE}
        monitor.ask(
            *(
                {
                    "prefix": "osd pool create",
                    "pool": name,
                    "pg_num": count,
                    "pgp_num": count,
                    **(forced if name.startswith(".") else {}),
                    **(coded if name == DATA_POOL else {}),
                }
                for name, count in wanted.items()
            )
        )
        monitor.ask(
            *(
                {"prefix": "osd pool application enable", "pool": name, "app": "rgw"}
                for name in wanted
            )
        )

    def _make_user(self) -> None:
        # Newer releases can deactivate keys, and take one without this field for inactive.
        key = {"active": True}
        data = {
            "user_id": _UID,
            "display_name": "Weighbridge",
            "max_buckets": 0,
            "keys": [
                {"user": _UID, "access_key": self.access_key, "secret_key": self.secret_key, **key}
            ],
            "subusers": [{"id": _SUBUSER, "permissions": "full-control"}],
            "swift_keys": [{"user": _SUBUSER, "secret_key": self.swift_key, **key}],
            "op_mask": "read, write, delete",
            "type": "rgw",
        }
        self.hosts[self.cluster.place.radosgw[0]].run(
            ["radosgw-admin", "metadata", "put", f"user:{_UID}"], stdin=json.dumps({"data": data})
        )

    def _endpoints(self) -> tuple[Endpoint, ...]:
        if self.roster.front_url is not None:
            return self._both(self.roster.front_url)
        if self.settings.endpoints is None:
            return self._direct()
        _, *others = [self._url_of(one) for one in self.roster.radosgws]
        more = {"others": tuple(others), "spreading": self.settings.endpoints}
        return tuple(one.model_copy(update=more) for one in self._direct())

    def _direct(self) -> tuple[Endpoint, ...]:
        """The first radosgw, past any front: its auth would return the front as storage URL."""
        base = self._url_of(self.roster.radosgws[0])
        fronted = self.roster.front is not None
        return self._both(base, storage_url=f"{base}/swift/v1" if fronted else None)

    def _url_of(self, one: Radosgw) -> str:
        return base_url(one.address, one.port, tls=self.settings.radosgw.tls)

    def _both(self, base: str, *, storage_url: str | None = None) -> tuple[Endpoint, ...]:
        ca_file, url = ca_file_of(base), f"{base}/auth/v1.0"
        s3_key, swift_key = SecretStr(self.secret_key), SecretStr(self.swift_key)
        more = {"storage_url": storage_url, "ca_file": ca_file}
        swift = Endpoint(api="swift", url=url, user=_SUBUSER, key=swift_key, **more)
        s3 = Endpoint(api="s3", url=base, user=self.access_key, key=s3_key, ca_file=ca_file)
        return swift, s3

    def _below(self) -> Below:
        pools = self.settings.pools
        ceph = CephBelow(
            host=self.hosts[self.cluster.place.radosgw[0]],
            mon=self.mon_host,
            osds={osd.number: osd.host for osd in self.roster.osds},
            replicas=pools.replicas,
            failure_domain=pools.failure_domain,
        )
        return Below(gateway=self._direct() if self.roster.front is not None else (), ceph=ceph)

    def _quieten(self, monitor: Monitor) -> None:
        if self.cluster.knows(self.mon_host)("mgr_disabled_modules"):
            monitor.ask({"prefix": "health mute", "code": "MGR_MODULE_ERROR", "sticky": True})
            return
        off = {"mgr/balancer/active": "false", "mgr/devicehealth/enable_monitoring": "false"}
        # force: the mon does not know options of modules before a mgr has announced them.
        command = {"prefix": "config set", "who": "mgr", "force": True}
        monitor.ask(*({**command, "name": name, "value": value} for name, value in off.items()))

    def _await_clean(self, monitor: Monitor) -> None:
        started = reported = time.monotonic()
        while True:
            status = monitor.status()
            health, groups = status["health"], status["pgmap"]
            wanted = sum(pools(self.settings.pools).values())
            clean = sum(
                one["count"]
                for one in groups.get("pgs_by_state", ())
                if one["state_name"] == "active+clean"
            )
            if health["status"] == "HEALTH_OK" and clean >= wanted and clean == groups["num_pgs"]:
                return
            daemon.check(self.started)
            checks = ", ".join(health["checks"]) or "no health checks"
            if time.monotonic() - started > _CLEAN_WITHIN_S:
                what = (
                    f"{health['status']} ({checks}), {clean} of {wanted} placement groups "
                    f"clean after {_CLEAN_WITHIN_S:g} s"
                )
                log = self.mon_host.log("cluster.log")
                raise ServiceFailed(
                    self.mon_host.name,
                    "ceph",
                    what,
                    log=str(log),
                    tail=self.mon_host.log_tail(log.name),
                )
            if time.monotonic() - reported > 5:
                reported = time.monotonic()
                self.say(
                    f"{health['status']} ({checks}), {clean} of {wanted} placement groups clean"
                )
            time.sleep(_POLL_S)

    def _primaries(self, monitor: Monitor) -> dict[int, int]:
        command = {"prefix": "pg ls-by-pool", "poolstr": DATA_POOL, "format": "json", "to": "mgr"}
        found = json.loads(monitor.ask(command)[0])
        # Release 14 returns the bare list.
        groups = found["pg_stats"] if isinstance(found, dict) else found
        primaries = dict.fromkeys((osd.number for osd in self.roster.osds), 0)
        for group in groups:
            primaries[group["acting_primary"]] += 1
        return primaries


_VAULT: Final = "rgw_crypt_sse_s3_vault_addr"
_NO_VAULT: Final = (
    "radosgw takes SSE-S3 keys only from a HashiCorp Vault or OpenBao (else 400 "
    "InvalidRequest), and this suite sets up neither: name yours in the layout's options "
    f"({_VAULT} and others, see docs/keeping.md)"
)
_NO_FSID = "00000000-0000-0000-0000-000000000000"


class Rgw(Gateway):
    """Ceph's object gateway."""

    kind: ClassVar[str] = "rgw"
    releases: ClassVar[Mapping[str, RootImage]] = {
        name: release.image for name, release in RELEASES.items()
    }
    Placement: ClassVar[type[Record]] = RgwPlacement
    Settings: ClassVar[type[Record]] = RgwSettings
    place: RgwPlacement
    settings: RgwSettings
    cluster: CephCluster
    grammars: ClassVar[tuple[FileGrammar, ...]] = (GRAMMAR,)

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises ValueError when placement, settings and release do not fit together."""
        assert isinstance(place, RgwPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, RgwSettings)  # noqa: S101
        self.release = release
        self.place, self.settings = place, settings
        self.cluster = CephCluster(release=release, place=place, settings=settings)
        wanted = settings.radosgw.frontend
        if wanted not in RELEASES[release].frontends:
            have = [name for name, one in RELEASES.items() if wanted in one.frontends]
            raise ValueError(
                f"radosgw of {release} has no front end {wanted}; {', '.join(have)} have it"
            )
        if settings.osd.objectstore == "filestore" and not RELEASES[release].filestore:
            have = [name for name, one in RELEASES.items() if one.filestore]
            raise ValueError(f"the OSDs of {release} have no FileStore; {', '.join(have)} have it")
        pools = settings.pools
        if pools.failure_domain == "host" and len(place.osd) < pools.most_parts:
            needed = f"{pools.part_words} on separate hosts need {pools.most_parts} osd hosts"
            found = f"{needed}, not {len(place.osd)}"
            if pools.wide_ec is None:
                raise Unfit(found)
            less = "lower k or m, or set failure_domain to osd"
            raise Unfit(f"{found}: {less}", ("settings", "pools", "ec"))
        daemons = settings.radosgw.daemons
        refuse_unfit(
            place, settings, len(place.radosgw) * daemons, "radosgw", tls=settings.radosgw.tls
        )
        ports = [(name, port, "the mon") for name in place.mon for port in MON_PORTS]
        ports += [
            (name, settings.radosgw.port + index, "radosgw")
            for name in place.radosgw
            for index in range(daemons)
        ]
        refuse_shared_ports(place, self.cluster.front(), ports)

    @classmethod
    def settings_elsewhere(cls, release: str) -> str | None:
        return RELEASES[release].settings_of or None

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift", "s3")

    def s3_lacks(self) -> Mapping[S3Way, str]:
        lacks = RELEASES[self.release].s3_lacks
        named = any(_VAULT in section for section in self.settings.options.values())
        return lacks if named or "sse-s3" in lacks else {**lacks, "sse-s3": _NO_VAULT}

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        return SWIFT_LACKS if api == "swift" else RELEASES[self.release].s3_lacks_operations

    @property
    def advice(self) -> tuple[str, ...]:
        return self.place.advice

    @property
    def own_ca(self) -> bool:
        return self.cluster.tls_host is not None

    def cannot_restart(self) -> str:
        if self.settings.osd.objectstore == "memstore":
            return "MemStore keeps objects only in memory: none survives a power cut"
        return ""

    def spreads(self) -> bool:
        return self.settings.endpoints is not None

    @classmethod
    def scope(cls, key: str) -> Scope:
        return change.scope_of(key)

    def layers(self) -> tuple[StoreLayer, ...]:
        below: tuple[StoreLayer, ...] = ("osd", "rados", "rbd", "cephfs")
        return below if self.place.front is None else ("gateway", *below)

    def structure(self, disks: Mapping[str, int]) -> Structure:
        place, osd, kept = self.place, self.settings.osd, self.settings.pools.kept
        used = {name: osd.split(disks.get(name, 0)) for name in place.osd}
        apart, kept_in_memory = osd.own_journal, osd.objectstore == "memstore"
        return Structure(
            entrances=place.radosgw if place.front is None else (place.front,),
            gateways=place.radosgw,
            daemons=len(place.radosgw) * self.settings.radosgw.daemons,
            front=None if place.front_name is None else FRONTS[place.front_name].label,
            stores=place.osd,
            fragments=kept.fragments,
            disks={} if kept_in_memory else {name: data for name, (data, _) in used.items()},
            journals={name: mine for name, (_, mine) in used.items()} if apart else {},
            writes=2 if osd.objectstore == "filestore" and not apart else 1,
            replicas=kept.replicas,
            answers="memory" if kept_in_memory else "disk",
            copied_by="store",
            layer="rados",
        )

    def needs(self) -> Mapping[str, HostNeed]:
        place, osd = self.place, self.settings.osd
        roles: dict[str, list[str]] = {}
        for role, names in (("mon", place.mon), ("osd", place.osd), ("radosgw", place.radosgw)):
            for name in names:
                roles.setdefault(name, []).append(role)
        if place.front is not None and place.front_name is not None:
            roles.setdefault(place.front, []).append(place.front_name)
        store = {"disks": osd.least_disks, "memory_bytes": osd.least_memory_bytes}
        return {
            name: HostNeed(
                roles=tuple(of), tier=tier_of(of, ("mon", "osd")), **(store if "osd" in of else {})
            )
            for name, of in roles.items()
        }

    @property
    def compresses(self) -> str:
        algorithm = self.settings.radosgw.compression
        return "" if algorithm == "none" else algorithm

    def by_size(self, sizes: Sizes) -> tuple[Sized, ...]:
        return by_size(self.place, self.settings, sizes)

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """More copies or fragments than OSDs, each of which has at most one of an object."""
        pools, osd = self.settings.pools, self.settings.osd
        count = sum(osd.osds(disks.get(name, 0)) for name in self.place.osd)
        by_layout = osd.objectstore == "memstore"
        source = "the layout gives" if by_layout else "the disks of the osd hosts give"
        if count >= pools.most_parts:
            return ()
        less, key = ("replicas", "replicas") if pools.wide_ec is None else ("k or m", "ec")
        message = f"{pools.part_words} need {pools.most_parts} OSDs; {source} {count}: lower {less}"
        return (Unfit(f"{message}, or give the hosts more disks", ("settings", "pools", key)),)

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        """More than half of the mons must be up."""
        roster, place = CephRoster(self.place, self.settings, sites), self.place
        needed = {1: "the only mon", 2: "one of two mons, of which both are needed"}
        alone = "the only radosgw" if len(roster.radosgws) == 1 else ""
        lone = needed.get(len(place.mon), "")
        found = [
            Part(name, what, lone=lone * (what == "mon"))
            for name in place.mon
            for what in ("mon", "mgr")
        ]
        found += [
            Part(one.host, f"osd.{one.number}", "storage-daemon", disks=one.disks)
            for one in roster.osds
        ]
        found += [Part(one.host, one.service, "gateway-daemon", alone) for one in roster.radosgws]
        return (*found, *front_parts(place))

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return self.cluster.files(
            CephRoster(self.place, self.settings, sites),
            fsid=_NO_FSID,
            native=False,
            certificates=self.cluster.certificates(sites),
        ).shown()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        native = self.cluster.speaks_fastcgi(hosts)
        roster = CephRoster(self.place, self.settings, hosts)
        certificates = self.cluster.certificates(hosts)
        files = self.cluster.files(roster, fsid=_NO_FSID, native=native, certificates=certificates)
        files.write(hosts)
        first, conf = hosts[self.place.radosgw[0]], conf_of(files)
        other = RELEASES[self.release].settings_of
        faults = config.option_faults(
            first,
            self.release,
            conf,
            list(self.settings.options.values()),
            of_another=bool(other),
        )
        if other:
            ignored = config.unknown_options(first, self.release, conf)
            say(f"{self.release}: settings are {words(self.release, other, [*ignored.values()])}")
        faults += network_faults(self.place, self.settings, hosts)
        faults += plugin_faults(first, self.release, self.settings)
        front = self.cluster.front(native=native)
        if front is not None and roster.front is not None:
            try:
                front.check(hosts[roster.front.name])
            except UsageError as error:
                faults.append(str(error))
        if faults:
            raise UsageError("\n".join(faults))

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        return CephBringUp(self.cluster, hosts, client, say).run()
