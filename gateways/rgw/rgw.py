"""The `rgw` gateway: a Ceph cluster of one mon, one mgr and an OSD a disk, and a radosgw in front of it."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Literal

from pydantic import SecretStr

from gateways import daemon, ini
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Gateway, HostNeed, Image, Rendered, Say, Site, Standing
from gateways.host import Host, Service
from gateways.ports import await_ports
from gateways.rgw.config import CONF, KEYRING, ceph_conf, pools
from gateways.rgw.keyring import keyring
from gateways.rgw.monitor import Ceph, Monitor, ask
from gateways.rgw.settings import RELEASES, Place, Settings
from gateways.rgw.standing import RgwStanding, facts
from gateways.together import together
from gateways.verify import verify
from ground.errors import ServiceFailed, UsageError
from ground.record import Record

_UID = "weigh"
_SUBUSER = f"{_UID}:swift"
_MON_PORT = 3300
_UP_WITHIN_S = 120.0
_CLEAN_WITHIN_S = 180.0
_POLL_S = 0.05

# BlueStore waits up to bdev_aio_poll_ms at every close of a device, and mkfs and start close it a dozen times: three
# seconds at the default. The running OSDs are set back to the default before anything is measured.
_FAST_POLL = "--bdev-aio-poll-ms=10"
_POLL_MS = "250"
# Ceph's log is written by a thread of its own: a process that fails at once may otherwise be gone before it has said why.
_MKFS = "--no-mon-config --bluestore-fsck-on-mkfs=false --log-flush-on-exit=true"


@dataclass(frozen=True)
class Osd:
    """One OSD to be: its number, host, device and identity."""

    number: int
    host: Host
    device: str
    uuid: str


class Rgw(Gateway):
    """Ceph's object gateway."""

    kind: ClassVar[str] = "rgw"
    releases: ClassVar[Mapping[str, Image]] = {name: release.image for name, release in RELEASES.items()}
    Placement: ClassVar[type[Record]] = Place
    Settings: ClassVar[type[Record]] = Settings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises ValueError when placement, settings and release do not fit each other."""
        assert isinstance(place, Place)  # noqa: S101 - the seam's contract
        assert isinstance(settings, Settings)  # noqa: S101
        self.release = release
        self.place = place
        self.settings = settings
        replicas = settings.pools.replicas
        if settings.pools.failure_domain == "host" and len(place.osd) < replicas:
            raise ValueError(f"{replicas} replicas on hosts of their own need {replicas} osd hosts, not {len(place.osd)}")
        if settings.radosgw.frontend not in RELEASES[release].frontends:
            raise ValueError(f"radosgw of {release} has no front end {settings.radosgw.frontend}")

    def apis(self) -> tuple[Literal["swift", "s3"], ...]:
        """Both; radosgw answers them on one port."""
        return ("swift", "s3")

    def needs(self) -> Mapping[str, HostNeed]:
        """Disks for the OSD hosts; nothing but room elsewhere."""
        roles: dict[str, list[str]] = {}
        for role, names in (("mon", [self.place.mon]), ("osd", self.place.osd), ("radosgw", self.place.radosgw)):
            for name in names:
                roles.setdefault(name, []).append(role)
        disks = self.settings.osd.disks or 1
        return {name: HostNeed(roles=tuple(of), disks=disks if "osd" in of else 0) for name, of in roles.items()}

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """See Gateway."""
        raise NotImplementedError

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """See Gateway."""

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> Standing:
        """Stand the cluster up; see the class Rise for the order."""
        return Rise(self, hosts, client, say).run()


class Rise:
    """One bring-up, from empty hosts to a verified gateway on a healthy cluster.

    The order is what makes it short: the keyring is written here, not asked for; all pools are made while OSDs boot, so that
    radosgw finds them; radosgw starts when OSDs are up, since it would wait 5 s for its next look otherwise; the mgr, which
    neither PUT nor GET needs, comes last.
    """

    def __init__(self, gateway: Rgw, hosts: Mapping[str, Host], client: Host, say: Say) -> None:
        self.gateway = gateway
        self.settings = gateway.settings
        self.release = RELEASES[gateway.release]
        self.hosts = {name: hosts[name] for name in gateway.place.hosts}
        self.client = client
        self.say = say
        self.mon_host = hosts[gateway.place.mon]
        self.rgw_host = hosts[gateway.place.radosgw[0]]
        self.rgw_name = f"client.rgw.{self.rgw_host.name}"
        self.fsid = str(uuid.uuid4())
        self.access_key = secrets.token_hex(10).upper()
        self.secret_key = secrets.token_urlsafe(30)
        self.swift_key = secrets.token_urlsafe(30)
        self.started: list[Daemon] = []

    @cached_property
    def osds(self) -> tuple[Osd, ...]:
        """One OSD a disk, numbered host by host."""
        used = self.settings.osd.disks
        places = [(self.hosts[name], device) for name in self.gateway.place.osd for device in self.hosts[name].disks[:used]]
        return tuple(Osd(number, host, device, str(uuid.uuid4())) for number, (host, device) in enumerate(places))

    def run(self) -> Standing:
        """Do it all; returns what stands. Raises UsageError, ServiceFailed, CommandFailed or VerificationFailed."""
        if len(self.osds) < self.settings.pools.replicas:
            raise UsageError(
                f"{self.settings.pools.replicas} replicas need as many OSDs; the disks of the osd hosts make {len(self.osds)}"
            )
        rendered = self._configure()
        self.say(f"making the mon on {self.mon_host.name} and {len(self.osds)} OSDs")
        makers: list[Callable[[], None]] = [partial(self._make_osds, name) for name in self.gateway.place.osd]
        together([self._make_mon, *makers])
        with Monitor(self.mon_host, partial(daemon.check, self.started)) as monitor:
            for osd in self.osds:
                monitor.ask({"prefix": "osd new", "uuid": osd.uuid, "id": osd.number})
            self._start([self._osd_daemon(osd) for osd in self.osds])
            self._make_pools(monitor)
            self._await_osds(monitor)
            self.say(f"OSDs are up; starting radosgw on {self.rgw_host.name}")
            radosgw = Daemon(
                self.rgw_host,
                Service("radosgw", ("radosgw", "-f", "-n", self.rgw_name)),
                self.settings.radosgw.port,
                (f"{self.rgw_name}.log",),
            )
            self._start([radosgw])
            await_ports(self.client, [radosgw], self.say)
            self._make_user()
            endpoints = self._endpoints()
            with daemon.blaming(self.started):
                checks = verify(self.client, endpoints)
            self.say(f"verified: {len(checks)} operations over S3 and Swift; waiting for a healthy cluster")
            self._start([Daemon(self.mon_host, Service("mgr", ("ceph-mgr", "-f", "-i", "a")), logs=("mgr.a.log",))])
            self._quieten(monitor)
            self._await_clean(monitor)
        daemons = [Ceph(osd.host, f"osd.{osd.number}") for osd in self.osds]
        gateways = [Ceph(self.rgw_host, self.rgw_name)]
        self._set_back(daemons)
        found = facts(self.gateway, daemons, gateways, self.mon_host)
        found["verified"] = f"{len(checks)} operations over S3 and Swift, reads byte for byte"
        return RgwStanding(self.started, daemons, gateways, endpoints=endpoints, found=found, rendered=rendered)

    def _configure(self) -> tuple[Rendered, ...]:
        conf = ceph_conf(
            self.settings,
            self.fsid,
            self.mon_host.address,
            {osd.number: (osd.host.name, osd.host.address) for osd in self.osds},
            {self.rgw_name: self.rgw_host.address},
        )
        keys = keyring(self.release.key_type, len(self.osds), [self.rgw_name])

        def write(host: Host) -> None:
            host.put(CONF, conf)
            host.put(KEYRING, keys, mode=0o600)

        together([partial(write, host) for host in self.hosts.values()])
        secret = [line.removeprefix("key = ") for line in keys.splitlines() if line.startswith("key = ")]
        return tuple(
            Rendered(host=name, path=path, text=text)
            for name in self.hosts
            for path, text in ((CONF, conf), (KEYRING, ini.mask(keys, secret)))
        )

    def _make_mon(self) -> None:
        address = self.mon_host.address
        script = f"""
            mkdir -p /run/ceph /var/lib/ceph/mon/a /var/lib/ceph/mgr/a
            monmaptool --create --clobber --fsid {self.fsid} --addv a '[v2:{address}:3300,v1:{address}:6789]' /tmp/monmap
            ceph-mon --mkfs -i a --monmap /tmp/monmap --keyring {KEYRING}
        """
        self.mon_host.run(["sh", "-ec", script])
        mon = Daemon(self.mon_host, Service("mon", ("ceph-mon", "-f", "-i", "a")), _MON_PORT, ("mon.a.log",))
        self._start([mon])
        await_ports(self.client, [mon], self.say)

    def _make_osds(self, name: str) -> None:
        """Make the file systems of all OSDs of one host at once; needs no mon."""
        script = ["mkdir -p /run/ceph", "pids="]
        for osd in (osd for osd in self.osds if osd.host.name == name):
            folder = f"/var/lib/ceph/osd/{osd.number}"
            script += [
                f"mkdir -p {folder}",
                f"ln -s {osd.device} {folder}/block",
                f"ceph-osd --mkfs -i {osd.number} --osd-uuid {osd.uuid} {_MKFS} {_FAST_POLL} &",
                'pids="$pids $!"',
            ]
        script.append("for pid in $pids; do wait $pid; done")
        self.hosts[name].run(["sh", "-ec", "\n".join(script)], timeout_s=120)

    def _osd_daemon(self, osd: Osd) -> Daemon:
        argv = ("ceph-osd", "-f", "-i", str(osd.number), _FAST_POLL)
        return Daemon(osd.host, Service(f"osd.{osd.number}", argv), logs=(f"osd.{osd.number}.log",))

    def _start(self, daemons: Sequence[Daemon]) -> None:
        self.started += daemons
        daemon.start(daemons)

    def _make_pools(self, monitor: Monitor) -> None:
        wanted = pools(self.settings.pools)
        monitor.ask(
            *({"prefix": "osd pool create", "pool": name, "pg_num": count, "pgp_num": count} for name, count in wanted.items())
        )
        monitor.ask(*({"prefix": "osd pool application enable", "pool": name, "app": "rgw"} for name in wanted))

    def _await_osds(self, monitor: Monitor) -> None:
        deadline = time.monotonic() + _UP_WITHIN_S
        while True:
            up = json.loads(monitor.ask({"prefix": "osd stat", "format": "json"})[0])["num_up_osds"]
            if up == len(self.osds):
                return
            daemon.check(self.started)
            if time.monotonic() > deadline:
                late = next(one for one in self.started if one.service.name.startswith("osd."))
                raise late.failed(f"{up} of {len(self.osds)} OSDs were up after {_UP_WITHIN_S:g} s")
            time.sleep(_POLL_S)

    def _make_user(self) -> None:
        """One user with a key for S3 and a subuser for Swift, in one go and with no secret on a command line."""
        data = {
            "user_id": _UID,
            "display_name": "Weighbridge",
            "max_buckets": 0,
            "keys": [{"user": _UID, "access_key": self.access_key, "secret_key": self.secret_key}],
            "subusers": [{"id": _SUBUSER, "permissions": "full-control"}],
            "swift_keys": [{"user": _SUBUSER, "secret_key": self.swift_key}],
            "op_mask": "read, write, delete",
            "type": "rgw",
        }
        self.rgw_host.run(["radosgw-admin", "metadata", "put", f"user:{_UID}"], stdin=json.dumps({"data": data}))

    def _endpoints(self) -> tuple[Endpoint, ...]:
        base = f"http://{self.rgw_host.address}:{self.settings.radosgw.port}"
        return (
            Endpoint(api="swift", url=f"{base}/auth/v1.0", user=_SUBUSER, key=SecretStr(self.swift_key)),
            Endpoint(api="s3", url=base, user=self.access_key, key=SecretStr(self.secret_key)),
        )

    def _quieten(self, monitor: Monitor) -> None:
        """Keep the mgr from moving data or making pools of its own while steps run."""
        off = {"mgr/balancer/active": "false", "mgr/devicehealth/enable_monitoring": "false"}
        # force: options of modules are unknown to the mon until a mgr has told it of them.
        command = {"prefix": "config set", "who": "mgr", "force": True}
        monitor.ask(*({**command, "name": name, "value": value} for name, value in off.items()))
        if self.release.mute:
            monitor.ask(*({"prefix": "health mute", "code": code, "sticky": True} for code in self.release.mute))

    def _await_clean(self, monitor: Monitor) -> None:
        """Until the cluster is HEALTH_OK and all placement groups are active and clean."""
        started = said = time.monotonic()
        while True:
            status = monitor.status()
            health, groups = status["health"], status["pgmap"]
            wanted = sum(pools(self.settings.pools).values())
            clean = sum(one["count"] for one in groups.get("pgs_by_state", ()) if one["state_name"] == "active+clean")
            if health["status"] == "HEALTH_OK" and clean >= wanted and clean == groups["num_pgs"]:
                return
            daemon.check(self.started)
            checks = ", ".join(health["checks"]) or "no health checks"
            if time.monotonic() - started > _CLEAN_WITHIN_S:
                what = f"{health['status']} ({checks}), {clean} of {wanted} placement groups clean after {_CLEAN_WITHIN_S:g} s"
                log = self.mon_host.log("cluster.log")
                raise ServiceFailed(self.mon_host.name, "ceph", what, log=str(log), tail=self.mon_host.tail(log.name))
            if time.monotonic() - said > 5:
                said = time.monotonic()
                self.say(f"{health['status']} ({checks}), {clean} of {wanted} placement groups clean")
            time.sleep(_POLL_S)

    def _set_back(self, osds: Sequence[Ceph]) -> None:
        """Give the running OSDs the poll interval that BlueStore has by default."""
        by_host: dict[str, list[Ceph]] = {}
        for osd in osds:
            by_host.setdefault(osd.host.name, []).append(osd)
        command = {"prefix": "config set", "var": "bdev_aio_poll_ms", "val": [_POLL_MS]}
        together([partial(ask, group, command) for group in by_host.values()])
