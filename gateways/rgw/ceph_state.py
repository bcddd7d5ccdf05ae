"""What the daemons of a running cluster run with, as far as it is known."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from weighbridge.common.host import Host, Service
from weighbridge.gateways.certificates import SERVER_FILE, Certificates
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw.ceph_roster import MON_PORTS, CephRoster, Mon
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import CONF, KEYRING, Files, HostFile
from weighbridge.gateways.rgw.data_pool import DataPool
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor

Media = Literal["hdd", "ssd"]
_QUORUM_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.05


def make_mons(host: Host, mon: Mon, everyone: Sequence[Mon], fsid: str) -> None:
    """Create a mon's store on its host; it knows all from the start. Raises CommandFailed."""
    places = " ".join(f"--addv {one.id} '{one.places}'" for one in everyone)
    script = f"""
        mkdir -p /run/ceph /var/lib/ceph/mon/{mon.id} /var/lib/ceph/mgr/{mon.id}
        monmaptool --create --clobber --fsid {fsid} {places} /tmp/monmap
        ceph-mon --mkfs -i {mon.id} --monmap /tmp/monmap --keyring {KEYRING}
    """
    host.run(["sh", "-ec", script])


def mon_daemons(mons: Sequence[Mon], hosts: Mapping[str, Host]) -> list[Daemon]:
    """Every mon, to be started."""
    return [
        Daemon(
            hosts[one.host],
            Service("mon", ("ceph-mon", "-f", "-i", one.id)),
            MON_PORTS[0],
            (f"mon.{one.id}.log",),
        )
        for one in mons
    ]


def mgr_daemons(mons: Sequence[Mon], hosts: Mapping[str, Host], *options: str) -> list[Daemon]:
    """The mgr beside each mon, to be started: one becomes active, the others stand by."""
    return [
        Daemon(
            hosts[one.host],
            Service("mgr", ("ceph-mgr", "-f", "-i", one.id, *options)),
            logs=(f"mgr.{one.id}.log",),
        )
        for one in mons
    ]


def mgrs(mons: Sequence[Mon], hosts: Mapping[str, Host]) -> list[CephDaemon]:
    """The running mgr beside each mon."""
    return [CephDaemon(hosts[one.host], f"mgr.{one.id}") for one in mons]


def await_quorum(monitor: Monitor, mons: Sequence[Mon], hosts: Mapping[str, Host]) -> None:
    """Wait for every mon: a quorum may lack some. Raises ServiceFailed, CommandFailed."""
    deadline = time.monotonic() + _QUORUM_WITHIN_S
    while len(mons) > 1:
        answer = monitor.ask({"prefix": "quorum_status", "format": "json"})[0]
        names = json.loads(answer)["quorum_names"]
        late = [one for one in mons if one.id not in names]
        if not late:
            return
        if time.monotonic() > deadline:
            raise CephDaemon(hosts[late[0].host], f"mon.{late[0].id}").failed(
                f"is not in the quorum after {_QUORUM_WITHIN_S:g} s"
            )
        time.sleep(_POLL_S)


@dataclass
class CephState:
    """The daemons of a gateway and the files they run with; changes update it."""

    cluster: CephCluster
    """The last one whose settings all daemons were seen to run with."""
    hosts: Mapping[str, Host]
    client: Host
    fsid: str
    native: bool
    """Whether radosgw speaks FastCGI itself."""
    files: Files
    """All files, as of the last success."""
    certificates: Certificates | None
    """None: clients use plain HTTP."""
    store: tuple[Daemon, ...]
    """The mon, the mgr and the OSDs, which changes leave alone."""
    osds: tuple[CephDaemon, ...]
    media: tuple[Media, ...]
    """The kind of disk that each OSD believes it has."""
    primaries: Mapping[int, int]
    """For how many placement groups of the data pool each OSD, by number, answers reads."""
    data_pool: DataPool
    """What the mon says of it."""
    radosgws: Mapping[CephDaemon, Daemon]
    front: tuple[Daemon, ...]
    confs: dict[CephDaemon, str | None]
    """The ceph.conf that each radosgw runs with; None when it is unknown."""
    front_files: Mapping[str, str] | None
    """The front's files by path, empty without a front; None when they are not known."""
    defaults: dict[tuple[str, str], str] = field(default_factory=dict)
    """By radosgw name and option: the real default, which may differ from Ceph's documentation."""

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        return (*self.store, *self.radosgws.values(), *self.front)

    @property
    def keyrings(self) -> tuple[HostFile, ...]:
        """The keyrings, which never change: other keys would be another cluster's."""
        return tuple(file for file in self.files.files if file.path == KEYRING)

    @property
    def roster(self) -> CephRoster:
        return CephRoster(self.cluster.place, self.cluster.settings, self.hosts)

    @property
    def mon_host(self) -> Host:
        """The host of the first mon, from which the mons are asked."""
        return self.hosts[self.cluster.place.mon[0]]

    @property
    def mgrs(self) -> tuple[CephDaemon, ...]:
        return tuple(mgrs(self.roster.mons, self.hosts))

    def probes(self) -> tuple[Probe, ...]:
        """The probes of each radosgw, OSD and the front; their programs are put on the hosts."""
        cluster = self.cluster
        found = tuple(one.probe() for one in (*self.radosgws, *self.osds))
        front = cluster.front(native=self.native)
        if front is None or cluster.place.front is None:
            return found
        return (*found, *front.probes(self.hosts[cluster.place.front]))


def conf_of(files: Files) -> str:
    """The ceph.conf among the files, the same on every host."""
    return next(file.text for file in files.files if file.path == CONF)


def front_files_of(files: Files) -> dict[str, str]:
    """The front's files by path, but for its certificate, which stays the same."""
    others = {CONF, KEYRING, SERVER_FILE}
    return {file.path: file.text for file in files.files if file.path not in others}
