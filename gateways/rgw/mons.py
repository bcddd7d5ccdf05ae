"""Mons of a cluster, and the mgr beside each: their stores, daemons and quorum."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.host import Host, Service
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.rgw.ceph_roster import MON_PORTS, Mon
from weighbridge.gateways.rgw.config import KEYRING
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor

_QUORUM_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.05


def make(host: Host, mon: Mon, everyone: Sequence[Mon], fsid: str) -> None:
    """Create the store of a mon on its host; it knows all of them from the start.

    Raises CommandFailed.
    """
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
    """Wait until every mon is in the quorum: a majority, which answers, may lack some.

    Raises ServiceFailed, CommandFailed.
    """
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
