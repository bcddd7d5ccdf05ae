"""Starting Swift's servers on a host, at first or after it lost power."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from weighbridge.common.host import Host
from weighbridge.gateways import daemon
from weighbridge.gateways.certificates import trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.swift.swift_roster import SwiftRoster, is_proxy
from weighbridge.gateways.together import together

if TYPE_CHECKING:
    from weighbridge.gateways.swift.change import SwiftState

SYSLOG: Final = "syslog"
MEMCACHED: Final = "memcached"


def start_again(state: SwiftState, names: Collection[str], say: Say) -> None:
    """Start what ran on hosts of these names, on what their disks have.

    Tokens are gone with their memcached: clients log in again. Raises ServiceFailed or
    CommandFailed.
    """
    hosts = {name: host for name, host in state.hosts.items() if name in names}
    trust(hosts, state.secret.certificates)
    roster = SwiftRoster(state.cluster.place, state.cluster.settings, state.hosts)
    scripts = {name: mounts(roster, state.hosts[name]) for name in state.cluster.place.storage}
    _start(state, [one for one in state.daemons if one.host.name in names], scripts, say)


def revive(state: SwiftState, daemons: Sequence[Daemon]) -> None:
    """Start daemons that were killed, on hosts that are up. Raises ServiceFailed or CommandFailed.

    A host's syslog leaves its socket, which refuses servers that start before the next one listens.
    """
    for one in daemons:
        if one.service.name == SYSLOG:
            one.host.run(["rm", "-f", "/dev/log"])
    _start(state, daemons, {}, lambda _: None)


def mend_disk(state: SwiftState, host: str, disk: str) -> None:
    """Mount a disk again that failed and answers again, and start what keeps data on its host: its
    file system shuts down at an error of its log, until it is mounted again.

    Raises ServiceFailed or CommandFailed.
    """
    mine = [one for one in state.daemons if one.host.name == host]
    daemons = [
        one
        for one in mine
        if one.service.name not in {SYSLOG, MEMCACHED}
        and not is_proxy(one.service.name)
        and one not in _fronts(state)
    ]
    for one in daemons:
        one.host.kill(one.service.name)
    site = state.hosts[host]
    roster = SwiftRoster(state.cluster.place, state.cluster.settings, state.hosts)
    folders = dict(zip(site.disks, roster.folders(site), strict=False))[disk]
    lines = [*(f"umount {one}" for one in reversed(folders)), *_mounted(disk, folders)]
    site.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)
    revive(state, daemons)


def _start(
    state: SwiftState,
    daemons: Sequence[Daemon],
    scripts: Mapping[str, Sequence[str]],
    say: Say,
) -> None:
    """Start daemons in the order of a bring-up: syslog and memcached, servers and proxies, the
    front once these answer, background daemons last. `scripts` are run before servers, by host.
    """
    first = [one for one in daemons if one.service.name in {SYSLOG, MEMCACHED}]
    fronts = [one for one in daemons if one in _fronts(state)]
    servers = [
        one for one in daemons if one.service.name.endswith("-server") or is_proxy(one.service.name)
    ]
    rest = [one for one in daemons if one not in (*first, *servers, *fronts)]
    daemon.start(first)
    logging = {one.host.name: one.host for one in first if one.service.name == SYSLOG}
    together([partial(run_prepared, host, scripts.get(name, ())) for name, host in logging.items()])
    for some in (servers, fronts, rest):
        daemon.start(some)
        await_ports(state.client, [one for one in some if one.port is not None], say)


def _fronts(state: SwiftState) -> Sequence[Daemon]:
    """The programs of its front."""
    front, place = state.cluster.front(), state.front_host
    return () if front is None or place is None else front.daemons(place)


def mounts(roster: SwiftRoster, host: Host) -> list[str]:
    """Shell lines that mount the disks of a storage host."""
    script = []
    for disk, folders in zip(host.disks, roster.folders(host), strict=False):
        script += _mounted(disk, folders)
    return script


def _mounted(disk: str, folders: Sequence[str]) -> list[str]:
    options = "noatime,nodiratime,logbufs=8"
    return [
        f"mkdir -p {folders[0]} && mount -t xfs -o {options} {disk} {folders[0]}",
        # The only disk of a host also has the databases: the same file system, mounted in both
        # places.
        *(f"mkdir -p {other} && mount --bind {folders[0]} {other}" for other in folders[1:]),
        f"chown swift:swift {' '.join(folders)}",
    ]


def run_prepared(host: Host, script: Sequence[str]) -> None:
    """Run `script` and make the folders that do not outlive a host's power.

    Its syslog, which is started, listens when this returns. Raises CommandFailed.
    """
    lines = [
        *script,
        "mkdir -p /run/swift /run/lock /var/cache/swift",
        "chown swift:swift /run/swift /run/lock /var/cache/swift",
        # A server that finds no /dev/log never logs: wait for it before any server starts.
        "tries=0",
        "until [ -S /dev/log ]; do",
        "tries=$((tries + 1)); [ $tries -lt 3000 ]; sleep 0.01",
        "done",
    ]
    host.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)
