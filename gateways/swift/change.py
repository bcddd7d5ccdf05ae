"""Changing the settings of a running Swift deployment: restarts the servers whose files change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypedDict

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import SCOPES, Scope, differing, widest
from weighbridge.gateways import daemon, options
from weighbridge.gateways.certificates import CA_FILE
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import FRONTS, Front
from weighbridge.gateways.gateway import Gateway, Say
from weighbridge.gateways.ports import DEADLINE_S, await_ports
from weighbridge.gateways.swift.config import Secrets, SwiftRoster, files, is_proxy, put
from weighbridge.gateways.swift.options import ask
from weighbridge.gateways.swift.settings import SERVERS, SwiftCluster, SwiftSettings
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck, verify

_KEPT = frozenset(
    {
        *("bind_ip", "bind_port", "swift_dir", "devices", "user"),
        *("memcache_servers", "use", "token_life", "reseller_prefix", "auth_prefix"),
    }
)
"""Options that define where servers are, where data is stored, and which tokens are valid."""


def scope_of(key: str) -> Scope:
    """The least restart for a setting to take effect; `cluster` for an unknown one."""
    head, _, rest = key.partition(".")
    if head in SwiftSettings.fronts:
        return FRONTS[head].scope(rest)
    if head != "options":
        return options.scope_of(SwiftSettings, key)
    name = key.rpartition(".")[2].removeprefix("set ").strip()
    if name in _KEPT or name.startswith("user_"):
        return "cluster"
    row = options.by_option(SwiftSettings).get(name)
    return "restart" if row is None else row.option.scope


_SPARE_S = 30.0
# Ages come in kernel ticks of ten milliseconds, file times in jiffies.
_CLOCK_ERROR_S = 0.1


@dataclass
class SwiftState:
    """The state of a running deployment; changes update it."""

    cluster: SwiftCluster
    hosts: Mapping[str, Host]
    client: Host
    secret: Secrets
    files: dict[str, dict[str, str]]
    """File texts by path, by host, as they are on the hosts."""
    daemons: list[Daemon] = field(default_factory=list)
    """All daemons in start order."""
    endpoints: tuple[Endpoint, ...] = ()
    verified: str = ""
    """What was verified last, in words."""
    doubtful: set[tuple[str, str]] = field(default_factory=set)
    """Host and service of daemons that a failed change may have left dead or changed."""

    @property
    def front_host(self) -> Host | None:
        """The front's host; None without one."""
        name = self.cluster.place.front
        return None if name is None else self.hosts[name]


class SwiftChange:
    """One change.

    Servers whose files stay the same are left alone, and always memcached, which holds the clients'
    token. Affected daemons are all stopped first, then started in the order of a bring-up: proxies
    get no requests before every storage server answers requests, not only connections; background
    daemons start last. At the end each server's processes are younger than the file they read, and
    that file has the wanted content.
    """

    def __init__(self, state: SwiftState, cluster: SwiftCluster, say: Say) -> None:
        self.state = state
        self.cluster = cluster
        self.say = say
        self.front: Front | None = cluster.front()
        roster = SwiftRoster(cluster.place, cluster.settings, state.hosts)
        self.roster = roster
        self.files = files(cluster.release, cluster.settings, roster, state.secret, self.front)
        self.affected = [one for one in state.daemons if self._affects(one)]

    def run(self) -> tuple[str, ...]:
        """Apply the change; returns in words what was done. Raises as `RunningGateway.change`."""
        if not self.affected:
            self.state.cluster = self.cluster
            return ("Swift: no change needed",)
        names = _listed(self.affected)
        self.say(f"restarting {', '.join(names)}")
        self.state.doubtful |= {_key(one) for one in self.affected}
        self._stop()
        self._write()
        fronts = [one for one in self.affected if self._is_front(one)]
        background = [one for one in self.affected if one.port is None]
        servers = [one for one in self.affected if one not in fronts and one not in background]
        self._start_servers(servers)
        self._start_front(fronts, behind=servers)
        with daemon.blaming([*servers, *fronts]):
            checks = verify(self.state.client, self.state.endpoints)
        if background:
            daemon.start(background)
        self._confirm()
        daemon.check(self.state.daemons)
        self.state.cluster = self.cluster
        self.state.verified = verified_text(checks, self.state.endpoints)
        self.state.doubtful.clear()
        return tuple(f"restarted {name}" for name in names)

    def _affects(self, one: Daemon) -> bool:
        own = self._reads(one)
        if not own:
            return False
        before, after = self.state.files[one.host.name], self.files[one.host.name]
        dead = _key(one) in self.state.doubtful or not one.host.alive(one.service.name)
        return dead or any(before[path] != after[path] for path in own)

    def _reads(self, one: Daemon) -> list[str]:
        return [word for word in one.service.argv if word in self.files[one.host.name]]

    def _is_front(self, one: Daemon) -> bool:
        host = self.state.front_host
        return self.front is not None and host is not None and one in self.front.daemons(host)

    def _stop(self) -> None:
        fronts = [one for one in self.affected if self._is_front(one)]
        proxies = [one for one in self.affected if is_proxy(one.service.name)]
        others = [one for one in self.affected if one not in fronts and one not in proxies]
        for some in (fronts, proxies, others):
            daemon.stop(some)

    def _write(self) -> None:
        for one in self.affected:
            host, own = one.host, self.files[one.host.name]
            for path in self._reads(one):
                put(host, path, own[path])
                self.state.files[host.name][path] = own[path]

    def _start_servers(self, servers: Sequence[Daemon]) -> None:
        if not servers:
            return
        daemon.start(servers)
        # A server with a port for each disk is still one daemon.
        ports = [
            Daemon(one.host, one.service, port, one.logs)
            for one in servers
            for port in self._ports(one)
        ]
        await_ports(self.state.client, ports, self.say)
        tls = self.cluster.settings.proxy.tls
        asked = [
            (one.host.address, one.port, CA_FILE if tls and is_proxy(one.service.name) else "")
            for one in ports
        ]
        order = {"servers": asked, "deadline_s": DEADLINE_S}
        within_s = DEADLINE_S + len(ports) * _SPARE_S
        silent = ask(
            self.state.hosts[self.cluster.place.proxy[0]], "silent", order, timeout_s=within_s
        )
        daemon.check(servers)
        for number in silent:
            raise ports[number].failed(
                f"port {ports[number].port} is open, but no request was answered within "
                f"{DEADLINE_S:g} s"
            )

    def _ports(self, one: Daemon) -> tuple[int, ...]:
        server = one.service.name.removesuffix("-server")
        own = self.roster.ports(one.host, server) if server in SERVERS else ()
        return own or ((one.port,) if one.port is not None else ())

    def _start_front(self, fronts: Sequence[Daemon], *, behind: Sequence[Daemon]) -> None:
        host = self.state.front_host
        if self.front is None or host is None:
            return
        if fronts:
            daemon.start(fronts)
            await_ports(self.state.client, fronts, self.say)
        if fronts or any(is_proxy(one.service.name) for one in behind):
            self.front.await_backends(host)

    def _confirm(self) -> None:
        groups = daemon.by_host(self.affected)
        answers = together([partial(self._files_read, group) for group in groups])
        for group, answer in zip(groups, answers, strict=True):
            for one in group:
                for path in self._reads(one):
                    found, text = answer[path], self.files[one.host.name][path]
                    if found["sha256"] != hashlib.sha256(text.encode()).hexdigest():
                        raise one.failed(f"{path} is not what was written to it")
                    if not found["processes"]:
                        raise one.failed(f"no process runs with {path}")
                    old = [
                        pid
                        for pid, age_s in found["processes"]
                        if age_s > found["age_s"] + _CLOCK_ERROR_S
                    ]
                    if old:
                        raise one.failed(
                            f"process {old[0]} is older than {path}, which it should have read"
                        )

    def _files_read(self, daemons: Sequence[Daemon]) -> Mapping[str, _Read]:
        host = daemons[0].host
        paths = list(dict.fromkeys(path for one in daemons for path in self._reads(one)))
        answer: Mapping[str, _Read] = ask(host, "running", paths)
        return answer


def fitting(state: SwiftState, gateway: Gateway, scope: Scope) -> SwiftCluster:
    """The cluster of `gateway`, if it can be had within `scope`. Raises UsageError if not."""
    now, cluster = state.cluster, gateway.cluster
    if not isinstance(cluster, SwiftCluster) or (cluster.release, cluster.place) != (
        now.release,
        now.place,
    ):
        raise UsageError(
            "a running deployment can get other settings, but no other kind, release or placement",
            advice=_ADVICE,
        )
    wanted = {key: scope_of(key) for key in differing(now.settings, cluster.settings)}
    beyond = [key for key, one in wanted.items() if one == "cluster"]
    if beyond:
        raise UsageError(
            f"Swift: {', '.join(beyond)} cannot be changed while it is running", advice=_ADVICE
        )
    least = widest(wanted.values())
    if SCOPES.index(scope) < SCOPES.index(least):
        why = "its servers read their files when they start"
        raise UsageError(
            f"Swift: {', '.join(wanted)} cannot be changed by `{scope}`, since {why}: this needs "
            f"at least `{least}`"
        )
    return cluster


_ADVICE = "Tear the deployment down and start it with these settings."


class _Read(TypedDict):
    sha256: str
    age_s: float
    processes: list[tuple[int, float]]


def verified_text(checks: Sequence[OperationCheck], endpoints: Sequence[Endpoint]) -> str:
    """What was verified, in words."""
    return f"{len(checks)} operations over {' and '.join(one.api for one in endpoints)}"


def _key(one: Daemon) -> tuple[str, str]:
    return one.host.name, one.service.name


def _listed(daemons: Sequence[Daemon]) -> list[str]:
    hosts: dict[str, list[str]] = {}
    for one in daemons:
        hosts.setdefault(one.service.name, []).append(one.host.name)
    return [f"{name} on {', '.join(on)}" for name, on in hosts.items()]
