"""Starting a Ceph cluster with radosgw, from empty hosts to a verified gateway."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, base_url
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Host, Service
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import ca_file_of, trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Front
from weighbridge.gateways.gateway import Below, CephBelow, RunningGateway, Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.rgw import ceph_state, data_pool, objectstore
from weighbridge.gateways.rgw.ceph_roster import CephRoster, Osd, Radosgw
from weighbridge.gateways.rgw.ceph_state import CephState, Media, conf_of, front_files_of
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import DATA_POOL, pools
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor
from weighbridge.gateways.rgw.running_rgw import (
    MGR_INTERVALS_S,
    RunningRgw,
    await_up,
    restore_intervals,
)
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
        """Create one user with an S3 key and a Swift subuser; no secret is on a command line."""
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
        """Keep the mgr from moving data or making pools; hide what it lacks from the health."""
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
