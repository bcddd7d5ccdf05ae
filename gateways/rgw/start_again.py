"""Starting the daemons of a Ceph cluster again on hosts that lost power."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from weighbridge.common.host import Host
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor, ask
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.together import together

if TYPE_CHECKING:
    from weighbridge.gateways.rgw.ceph_state import CephState

MGR_INTERVALS_S: Final = {"mgr_stats_period": "5", "mgr_tick_period": "2"}
"""How often daemons report to the mgr, and it to the mon, by default: until it has heard from all,
a cluster is not known to be healthy. While it starts they report every second.
"""
_UP_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.1


def start_again(state: CephState, names: Collection[str], say: Say) -> None:
    """Start what ran on hosts of these names, on what their disks have: the mon first, then OSDs
    and the mgr, radosgw once the OSDs are up, the front last.

    Raises ServiceFailed or CommandFailed.
    """

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
        _await_up(monitor, osds, before, others)
    say(f"{len(osds)} OSDs are up again")
    for some in (ours(state.radosgws.values()), ours(state.front)):
        daemon.start(some)
        await_ports(state.client, [one for one in some if one.port is not None], say)
    mgrs = [one for one in state.mgrs if one.host.name in names]
    if mgrs:
        restore_intervals(mgrs, osds, state.cluster.settings)


def revive(state: CephState, daemons: Sequence[Daemon]) -> None:
    """Start daemons that were killed, on hosts that are up.

    Raises ServiceFailed or CommandFailed.
    """
    names = [one.service.name for one in daemons]
    osds = [one for one in state.osds if one.name in names]
    if not osds:
        daemon.start(daemons)
        return
    # Until they are started, they are dead: a slow answer of the mon is no reason to give them up.
    mons = [one for one in state.store if one.service.name == "mon"]
    with Monitor(state.mon_host, partial(daemon.check, mons)) as monitor:
        before = _up_since(monitor)
        daemon.start(daemons)
        _await_up(monitor, osds, before, daemons)
    _restore_poll(osds, state.cluster.settings)


def mend_disk(state: CephState, host: str, disk: str) -> None:
    """Start the OSDs of a disk that failed and answers again: one that saw an error has ended, and
    no other may go on.

    Raises ServiceFailed or CommandFailed.
    """
    planned = [one for one in state.roster.osds if one.host == host and disk in one.disks]
    names = {f"osd.{one.number}" for one in planned}
    osds = [one for one in state.store if one.service.name in names]
    for one in osds:
        one.host.kill(one.service.name)
    script = objectstore.remounts(state.cluster.settings.osd, planned, disk)
    state.hosts[host].run(["sh", "-ec", script], timeout_s=120)
    revive(state, osds)


def restore_intervals(
    mgrs: Sequence[CephDaemon], osds: Sequence[CephDaemon], settings: RgwSettings
) -> None:
    """Give running mgrs and OSDs the default intervals that would have slowed their start."""
    reports = [_set(name, value) for name, value in MGR_INTERVALS_S.items()]
    together([partial(ask, [mgr], *reports) for mgr in mgrs])
    _restore_poll(osds, settings)


def _restore_poll(osds: Sequence[CephDaemon], settings: RgwSettings) -> None:
    """How long OSDs wait for their disks at once: shorter while they start."""
    if settings.osd.objectstore == "bluestore":
        poll = _set("bdev_aio_poll_ms", objectstore.POLL_MS)
        groups = [list(group) for _, group in groupby(osds, key=lambda osd: osd.host.name)]
        together([partial(ask, group, poll) for group in groups])


def _set(name: str, value: str) -> dict[str, object]:
    """The command that gives a running daemon's option a value."""
    return {"prefix": "config set", "var": name, "val": [value]}


def _prepare(state: CephState, host: Host) -> None:
    """Make what a host has outside its disks, and mount its OSDs' file systems."""
    osds = [osd for osd in state.roster.osds if osd.host == host.name]
    host.run(["sh", "-ec", objectstore.mounts(state.cluster.settings.osd, osds)], timeout_s=120)


def _up_since(monitor: Monitor) -> dict[str, int]:
    """By OSD: the epoch of the cluster's map since which it is up; 0: it is down."""
    dump = json.loads(monitor.ask({"prefix": "osd dump", "format": "json"})[0])
    return {f"osd.{one['osd']}": one["up_from"] if one["up"] else 0 for one in dump["osds"]}


def _await_up(
    monitor: Monitor, osds: Sequence[CephDaemon], before: dict[str, int], daemons: Sequence[Daemon]
) -> None:
    """Wait until each OSD has come up anew: the map still has those as up that lost power."""
    deadline = time.monotonic() + _UP_WITHIN_S
    while True:
        now = _up_since(monitor)
        late = [one for one in osds if now[one.name] <= before[one.name]]
        if not late:
            return
        daemon.check(daemons)
        if time.monotonic() > deadline:
            raise late[0].failed(
                f"{len(late)} of {len(osds)} OSDs did not come up again in {_UP_WITHIN_S:g} s"
            )
        time.sleep(_POLL_S)
