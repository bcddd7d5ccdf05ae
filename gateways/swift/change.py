"""One change of a Swift deployment that stands: which servers are started anew, in which order, and
that they have their files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.scope import SCOPES, Scope, differing, widest
from weighbridge.gateways import daemon, program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Front
from weighbridge.gateways.gateway import Gateway, Say
from weighbridge.gateways.ports import DEADLINE_S, await_ports
from weighbridge.gateways.swift import scopes
from weighbridge.gateways.swift.files import Secrets, files, put
from weighbridge.gateways.swift.settings import SERVERS, SwiftCluster
from weighbridge.gateways.swift.swift_roster import SwiftRoster
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck, verify

_SPARE_S = 30.0
# Ages are told in ticks of the kernel, ten milliseconds each, and times of files in jiffies.
_TOLD_WITHIN_S = 0.1


@dataclass
class SwiftDeployment:
    """What a bring-up left, as changes find it and leave it."""

    cluster: SwiftCluster
    hosts: Mapping[str, Host]
    client: Host
    secret: Secrets
    files: dict[str, dict[str, str]]
    """Texts by path, by host, as they are there."""
    daemons: list[Daemon]
    """All that was started, in that order."""
    endpoints: tuple[Endpoint, ...]
    verified: str
    """What of it was verified last, in words."""
    doubtful: set[tuple[str, str]] = field(default_factory=set)
    """Host and service of those that a change which failed may have left dead, or with other
    settings than their files say.
    """

    @property
    def front_host(self) -> Host | None:
        """Where the front is."""
        name = self.cluster.place.front
        return None if name is None else self.hosts[name]


class SwiftChange:
    """One change.

    Servers whose files stay the same are left alone, memcached always, since it holds the clients'
    token. What is started anew is ended first, all of it, and started in the order of a bring-up:
    nothing is asked of a proxy before every storage server answers, by requests and not by its port
    alone; background daemons come last. When this ends, each server's processes are younger than
    the file they read, and that is the file that was wanted.
    """

    def __init__(self, stood: SwiftDeployment, cluster: SwiftCluster, say: Say) -> None:
        self.stood = stood
        self.cluster = cluster
        self.say = say
        self.front: Front | None = cluster.front()
        roster = SwiftRoster(cluster.place, cluster.settings, stood.hosts)
        self.roster = roster
        self.files = files(cluster.release, cluster.settings, roster, stood.secret, self.front)
        self.affected = [one for one in stood.daemons if self._affects(one)]

    def run(self) -> tuple[str, ...]:
        """Do it; returns in words what was done. Raises as `Standing.change` does."""
        if not self.affected:
            self.stood.cluster = self.cluster
            return ("Swift: nothing is to be changed",)
        names = _listed(self.affected)
        self.say(f"restarting {', '.join(names)}")
        self.stood.doubtful |= {_key(one) for one in self.affected}
        self._stop()
        self._write()
        fronts = [one for one in self.affected if self._is_front(one)]
        background = [one for one in self.affected if one.port is None]
        servers = [one for one in self.affected if one not in fronts and one not in background]
        self._start_servers(servers)
        self._start_front(fronts, behind=servers)
        with daemon.blaming([*servers, *fronts]):
            checks = verify(self.stood.client, self.stood.endpoints)
        if background:
            daemon.start(background)
        self._confirm()
        daemon.check(self.stood.daemons)
        self.stood.cluster = self.cluster
        self.stood.verified = told(checks, self.stood.endpoints)
        self.stood.doubtful.clear()
        return tuple(f"restarted {name}" for name in names)

    def _affects(self, one: Daemon) -> bool:
        own = self._reads(one)
        if not own:
            return False
        before, after = self.stood.files[one.host.name], self.files[one.host.name]
        dead = _key(one) in self.stood.doubtful or not one.host.alive(one.service.name)
        return dead or any(before[path] != after[path] for path in own)

    def _reads(self, one: Daemon) -> list[str]:
        """The files of this suite's that a daemon is told to read."""
        return [word for word in one.service.argv if word in self.files[one.host.name]]

    def _is_front(self, one: Daemon) -> bool:
        host = self.stood.front_host
        return self.front is not None and host is not None and one in self.front.daemons(host)

    def _stop(self) -> None:
        """End those that clients come by first, so that no request finds half of what answers
        it.
        """
        fronts = [one for one in self.affected if self._is_front(one)]
        proxies = [one for one in self.affected if _is_proxy(one)]
        others = [one for one in self.affected if one not in fronts and one not in proxies]
        for some in (fronts, proxies, others):
            daemon.stop(some)

    def _write(self) -> None:
        """Give every affected daemon its file, also one that is there already: a change that failed
        may have left any.
        """
        for one in self.affected:
            host, own = one.host, self.files[one.host.name]
            for path in self._reads(one):
                put(host, path, own[path])
                self.stood.files[host.name][path] = own[path]

    def _start_servers(self, servers: Sequence[Daemon]) -> None:
        if not servers:
            return
        daemon.start(servers)
        # A server with a port for each disk is one daemon all the same.
        ports = [
            Daemon(one.host, one.service, port, one.logs)
            for one in servers
            for port in self._ports(one)
        ]
        await_ports(self.stood.client, ports, self.say)
        order = {
            "servers": [[one.host.address, one.port] for one in ports],
            "deadline_s": DEADLINE_S,
        }
        command = self.stood.client.module("weighbridge.gateways.swift.ask_servers")
        done = self.stood.client.run(
            command.argv,
            stdin=json.dumps(order),
            env=command.env,
            timeout_s=DEADLINE_S + len(ports) * _SPARE_S,
        )
        daemon.check(servers)
        for number in json.loads(done.stdout):
            raise ports[number].failed(
                f"port {ports[number].port} is open, and no request was answered within "
                f"{DEADLINE_S:g} s"
            )

    def _ports(self, one: Daemon) -> tuple[int, ...]:
        server = one.service.name.removesuffix("-server")
        own = self.roster.ports(one.host, server) if server in SERVERS else ()
        return own or ((one.port,) if one.port is not None else ())

    def _start_front(self, fronts: Sequence[Daemon], *, behind: Sequence[Daemon]) -> None:
        """Start the front where it is affected; it is waited for also when only proxies behind it
        were started anew.
        """
        host = self.stood.front_host
        if self.front is None or host is None:
            return
        if fronts:
            daemon.start(fronts)
            await_ports(self.stood.client, fronts, self.say)
        if fronts or any(_is_proxy(one) for one in behind):
            self.front.await_backends(host)

    def _confirm(self) -> None:
        """Raise ServiceFailed when a daemon's file is not what was wanted, or a process that reads
        it is older than it.
        """
        groups = daemon.by_host(self.affected)
        answers = together(
            [partial(_processes, group[0].host, self._paths(group)) for group in groups]
        )
        for group, answer in zip(groups, answers, strict=True):
            for one in group:
                for path in self._reads(one):
                    said, wanted = (
                        answer[path],
                        hashlib.sha256(self.files[one.host.name][path].encode()).hexdigest(),
                    )
                    if said["sha256"] != wanted:
                        raise one.failed(f"{path} is not what was written to it")
                    if not said["processes"]:
                        raise one.failed(f"no process runs with {path}")
                    old = [
                        pid
                        for pid, age_s in said["processes"]
                        if age_s > said["age_s"] + _TOLD_WITHIN_S
                    ]
                    if old:
                        raise one.failed(
                            f"process {old[0]} is older than {path}, which it should have read"
                        )

    def _paths(self, daemons: Sequence[Daemon]) -> list[str]:
        return list(dict.fromkeys(path for one in daemons for path in self._reads(one)))


def fitting(stood: SwiftDeployment, gateway: Gateway, scope: Scope) -> SwiftCluster:
    """The gateway as one that this deployment can be changed to within a scope.

    Raises UsageError that says why not.
    """
    now, cluster = stood.cluster, gateway.cluster
    if not isinstance(cluster, SwiftCluster) or (cluster.release, cluster.place) != (
        now.release,
        now.place,
    ):
        raise UsageError(
            "what stands can have other settings, not another kind, release or placement",
            advice=_ANEW,
        )
    wanted = {key: scopes.scope(key) for key in differing(now.settings, cluster.settings)}
    beyond = [key for key, one in wanted.items() if one == "cluster"]
    if beyond:
        raise UsageError(
            f"Swift: {', '.join(beyond)} cannot be changed while it stands", advice=_ANEW
        )
    least = widest(wanted.values())
    if SCOPES.index(scope) < SCOPES.index(least):
        why = "its servers read their files when they start"
        raise UsageError(
            f"Swift: {', '.join(wanted)} cannot be changed by `{scope}`, since {why}: `{least}` "
            "is needed"
        )
    return cluster


_ANEW = "Take the deployment down and stand it up with these settings."


class _Read(TypedDict):
    """What the shipped program tells of a file."""

    sha256: str
    age_s: float
    processes: list[tuple[int, float]]


def told(checks: Sequence[OperationCheck], endpoints: Sequence[Endpoint]) -> str:
    """What was verified, in words."""
    return f"{len(checks)} operations over {' and '.join(one.api for one in endpoints)}"


def _processes(host: Host, paths: Sequence[str]) -> Mapping[str, _Read]:
    done = host.run(
        program.ship(host, "weighbridge.gateways.swift.tell_servers"), stdin=json.dumps(list(paths))
    )
    answer: Mapping[str, _Read] = json.loads(done.stdout)
    return answer


def _key(one: Daemon) -> tuple[str, str]:
    return one.host.name, one.service.name


def _is_proxy(one: Daemon) -> bool:
    return one.service.name.startswith("proxy-server")


def _listed(daemons: Sequence[Daemon]) -> list[str]:
    """`object-server on store-1, store-2`, each service once."""
    hosts: dict[str, list[str]] = {}
    for one in daemons:
        hosts.setdefault(one.service.name, []).append(one.host.name)
    return [f"{name} on {', '.join(on)}" for name, on in hosts.items()]
