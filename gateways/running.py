"""A running store: started, checked, started again, mended and changed in one way for all kinds.

A store is a plan: daemons in stages, the files that each reads, the disks that it holds. Its kind
adds what happens between stages, and how running daemons are asked what they run with.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, TypeVar

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import SCOPES, Scope, differing, widest
from weighbridge.gateways import config_text, daemon
from weighbridge.gateways.certificates import Certificates, trust
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Front
from weighbridge.gateways.gateway import Gateway, Rendered, RunningGateway, Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck, verify


@dataclass(frozen=True)
class HostFile:
    """A file of a host. `secrets` are the parts of its text that must not be shown."""

    host: str
    path: str
    text: str
    secrets: tuple[str, ...] = ()
    owner: str = "root"

    @property
    def rendered(self) -> Rendered:
        """The file with `***` for secrets."""
        text = config_text.masked(self.text, self.secrets)
        return Rendered(host=self.host, path=self.path, text=text)


def put_files(files: Collection[HostFile], hosts: Mapping[str, Host]) -> None:
    """Write files to their hosts; those with secrets are for their owner. Raises TargetError."""

    def put(name: str) -> None:
        for file in files:
            if file.host == name:
                mode = 0o600 if file.secrets else 0o644
                hosts[name].put(file.path, file.text, mode=mode, owner=file.owner)

    together([partial(put, name) for name in dict.fromkeys(file.host for file in files)])


def run_scripts(scripts: Mapping[Host, str]) -> None:
    """Run a host's shell script, if any, on all at the same time. Raises CommandFailed."""
    together(
        [
            partial(host.run, ["sh", "-ec", script], timeout_s=120)
            for host, script in scripts.items()
            if script
        ]
    )


def front_daemons(front: Front | None, host: Host, files: Mapping[str, str]) -> tuple[Daemon, ...]:
    """The daemons of a front, each of which reads all of its files."""
    if front is None:
        return ()
    return tuple(replace(one, reads=tuple(files)) for one in front.daemons(host))


Kind = TypeVar("Kind", bound=Gateway)


@dataclass(frozen=True)
class StorePlan(Generic[Kind]):
    """What a gateway is on its hosts."""

    gateway: Kind
    stages: Sequence[Sequence[Daemon]]
    """Daemons that start at the same time, once those of the stage before answer."""
    files: Sequence[HostFile] = ()
    front: Front | None = None
    front_daemons: Sequence[Daemon] = ()
    """They start when all stages answer."""
    background: Sequence[Daemon] = ()
    """They start when the store has been verified."""

    @property
    def all_stages(self) -> tuple[Sequence[Daemon], ...]:
        return (*self.stages, self.front_daemons, self.background)

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        return tuple(one for stage in self.all_stages for one in stage)

    def text(self, host: Host, path: str) -> str:
        """The text of a file of a host."""
        return next(one.text for one in self.files if (one.host, one.path) == (host.name, path))


@dataclass(frozen=True)
class _Change(Generic[Kind]):
    """A change to another plan: which daemons take it while they run, and which are restarted."""

    plan: StorePlan[Kind]
    taking: Sequence[Daemon]
    reload: bool
    """Whether the front takes its files while it serves."""
    restarted: Sequence[Daemon]


_Name = tuple[str, str]
"""The names of a daemon's host and service."""

_STOP_WITHIN_S: Final = 60.0
"""A killed radosgw leaves its watches behind: others then wait for its answer to each change of
metadata until the watches expire.
"""


class RunningStore(RunningGateway, Generic[Kind]):
    """A store of daemons that this suite started on its hosts.

    A change touches only daemons of which a file or the command line differs, or that have died.
    They are stopped, the last stage first, get their files and start stage by stage; or they take
    the files while they run, if the scope is no restart. After a failure those that were touched
    are restarted by the next change, whatever its scope.
    """

    certificates: Certificates | None = None
    """None: clients use plain HTTP."""

    def __init__(self, gateway: Kind, hosts: Mapping[str, Host], client: Host) -> None:
        """Plans it; starts nothing."""
        self.hosts = hosts
        self.client = client
        self.plan = self.planned(gateway)
        self.written = {(file.host, file.path): file.text for file in self.plan.files}
        """The texts of files as they are on hosts."""
        self._doubtful: set[_Name] = set()

    # what kinds of store add

    @abstractmethod
    def planned(self, gateway: Kind) -> StorePlan[Kind]:
        """The plan of the same gateway with other settings, and with the same secrets."""

    @abstractmethod
    def describe(self, checks: Sequence[OperationCheck]) -> None:
        """Update facts, rendered files and probes. Raises as `change`."""

    @contextlib.contextmanager
    def starting(self, daemons: Sequence[Daemon], say: Say) -> Iterator[None]:
        """Surrounds the start of daemons of one stage, which listen when the block ends."""
        yield

    def mounts(self, host: Host) -> str:
        """A script for `sh -e` that mounts the disks of a host after it lost power."""
        return ""

    def remounts(self, host: Host, disk: str) -> str:
        """A script for `sh -e` that mounts again what is on a disk that failed and is back."""
        return ""

    def verify(self) -> tuple[OperationCheck, ...]:
        """Check the operations of each API. Raises ServiceFailed or VerificationFailed."""
        # Those in the background are not started yet.
        started = [one for one in self.plan.daemons if one not in self.plan.background]
        with daemon.blaming(started):
            return verify(self.client, self.endpoints)

    def refuse_taking(self, daemons: Sequence[Daemon], plan: StorePlan[Kind], scope: Scope) -> None:
        """Raise UsageError unless these running daemons take what differs without a restart."""
        names = ", ".join(_listed(daemons))
        raise UsageError(
            f"what differs is read only at the start of {names}: this needs at least `restart`, "
            f"not `{scope}`"
        )

    def take(self, daemons: Sequence[Daemon], plan: StorePlan[Kind]) -> str:
        """Have running daemons take what differs; returns in words what was done. Raises as
        `change`, and UsageError only after all of it has been undone.
        """
        raise NotImplementedError

    def confirm(
        self, restarted: Sequence[Daemon], before: StorePlan[Kind], plan: StorePlan[Kind]
    ) -> None:
        """Raise ServiceFailed unless restarted daemons run with the plan's files; `before` is the
        last plan that all ran with.
        """

    # what is the same for all

    def daemons(self) -> tuple[Daemon, ...]:
        return self.plan.daemons

    def check(self) -> None:
        daemon.check(self.plan.daemons)

    def start(self, daemons: Collection[Daemon], say: Say) -> None:
        """Start daemons of the plan, stage by stage. Raises ServiceFailed or CommandFailed."""
        for stage in self.plan.all_stages:
            mine = [one for one in stage if one in daemons]
            if mine:
                listening = [one for one in mine if one.port is not None]
                with self.starting(mine, say):
                    daemon.start(mine)
                    if listening:  # else a program of the client would wait for nothing
                        await_ports(self.client, listening, say)

    def start_again(self, names: Collection[str], say: Say) -> None:
        daemons = [one for one in self.plan.daemons if one.host.name in names]
        hosts = {one.host.name: one.host for one in daemons}
        trust(hosts, self.certificates)
        run_scripts({host: self.mounts(host) for host in hosts.values()})
        self.start(daemons, say)

    def revive(self, daemons: Sequence[Daemon]) -> None:
        self.start(daemons, lambda _: None)

    def mend_disk(self, host: str, disk: str) -> None:
        """A daemon that saw an error has ended, and no other may go on."""
        daemons = [one for one in self.plan.daemons if one.host.name == host and disk in one.disks]
        if not daemons:
            super().mend_disk(host, disk)
        for one in daemons:
            one.host.kill(one.service.name)
        site = self.hosts[host]
        run_scripts({site: self.remounts(site, disk)})
        self.revive(daemons)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        self._planned_change(gateway, scope)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        change = self._planned_change(gateway, scope)
        plan, front = change.plan, change.plan.front
        daemon.check([one for one in self.plan.daemons if one.reads is None])
        reloaded = plan.front_daemons if change.reload else ()
        touched = [*change.taking, *reloaded, *change.restarted]
        if not touched:
            self.plan = plan
            return ("nothing: it already runs with these settings",)
        done = []
        doubtful = self._doubtful
        self._doubtful = doubtful | {_name(one) for one in touched}
        if change.taking:
            try:
                done.append(self.take(change.taking, plan))
            except UsageError:
                self._doubtful = doubtful
                raise
        restarted = list(change.restarted)
        if restarted:
            say(f"restarting {', '.join(_listed(restarted))}")
            self._stop(restarted, plan)
        self._write(plan, touched)
        if reloaded and front is not None:
            report = front.reload(reloaded[0].host)
            done.append(report or "a reload left the front with less than it starts with")
            if not report:
                self._stop(reloaded, plan)
                restarted += reloaded
        before, self.plan = self.plan, plan
        try:
            self.start([one for one in restarted if one not in plan.background], say)
            if front is not None and (reloaded or restarted):
                front.await_backends(plan.front_daemons[0].host)
            checks = self.verify()
            self.start([one for one in restarted if one in plan.background], say)
            self.confirm(restarted, before, plan)
            daemon.check(plan.daemons)
            self.describe(checks)
        except BaseException:
            self.plan = before
            raise
        self._doubtful = set()
        return (*done, *(f"restarted {name}" for name in _listed(restarted)))

    def _planned_change(self, gateway: Gateway, scope: Scope) -> _Change[Kind]:
        plan = self.planned(self._within(gateway, scope))
        stale, fronts = self._stale(plan), plan.front_daemons
        known = [one for one in plan.daemons if stale.get(_name(one))]
        if scope not in {"nothing", "reload"}:
            known = []
        taking = [one for one in known if one not in fronts]
        if taking:
            self.refuse_taking(taking, plan, scope)
        stale_fronts = [one for one in fronts if _name(one) in stale]
        reload = False
        if stale_fronts and all(one in known for one in stale_fronts):
            reload = scope == "reload" and self._reloads(plan)
            if not reload:
                raise UsageError(
                    "the front's files differ in what it reads only when it starts: this needs at "
                    f"least `restart`, not `{scope}`"
                )
        restarted = [
            one
            for one in plan.daemons
            if _name(one) in stale and one not in taking and one not in fronts
        ]
        if stale_fronts and not reload:
            restarted += fronts
        return _Change(plan, taking, reload, restarted)

    def _within(self, gateway: Gateway, scope: Scope) -> Kind:
        """The gateway. Raises UsageError when settings that differ need more than the scope."""
        now = self.plan.gateway
        if not isinstance(gateway, type(now)) or (gateway.release, gateway.place) != (
            now.release,
            now.place,
        ):
            raise UsageError(
                "a running deployment can get other settings, but no other kind, release or "
                "placement",
                advice=_ADVICE,
            )
        least = {key: gateway.scope(key) for key in differing(now.settings, gateway.settings)}
        fixed = [key for key, needed in least.items() if needed == "cluster"]
        if fixed:
            raise UsageError(
                f"{', '.join(fixed)} cannot be changed while it is running: the scope is `cluster`",
                advice=_ADVICE,
            )
        if scope == "cluster":
            raise UsageError(
                "the scope `cluster` means a new deployment: the running one does not change"
            )
        short = {
            key: needed
            for key, needed in least.items()
            if SCOPES.index(scope) < SCOPES.index(needed)
            and not (scope == "nothing" and gateway.asks_daemons(key))
        }
        if short:
            needed = widest(short.values())
            raise UsageError(f"{', '.join(short)}: this needs at least `{needed}`, not `{scope}`")
        return gateway

    def _stale(self, plan: StorePlan[Kind]) -> dict[_Name, bool]:
        """Daemons that differ from the plan, each with whether it is known what it runs with."""
        services = {_name(one): one.service for one in self.plan.daemons}
        texts = {(file.host, file.path): file.text for file in plan.files}
        daemons = [one for one in plan.daemons if one.reads is not None]
        alive = together([partial(one.host.alive, one.service.name) for one in daemons])
        stale = {}
        for one, lives in zip(daemons, alive, strict=True):
            name, host = _name(one), one.host.name
            known = lives and name not in self._doubtful and services.get(name) == one.service
            paths = one.reads or ()
            if not known or any(
                texts[host, path] != self.written.get((host, path)) for path in paths
            ):
                stale[name] = known
        return stale

    def _reloads(self, plan: StorePlan[Kind]) -> bool:
        if plan.front is None:
            return False
        host, paths = plan.front_daemons[0].host.name, plan.front_daemons[0].reads or ()
        before = {path: self.written.get((host, path), "") for path in paths}
        after = {file.path: file.text for file in plan.files if file.host == host}
        return plan.front.reloads(before, {path: after[path] for path in paths})

    def _stop(self, daemons: Sequence[Daemon], plan: StorePlan[Kind]) -> None:
        """Stop daemons that will be started, and those that the plan no longer has."""
        planned = {_name(one) for one in plan.daemons}
        ending = {_name(one) for one in daemons}
        ending |= {*self._doubtful, *(_name(one) for one in self.plan.daemons)} - planned
        for stage in reversed(self.plan.all_stages):
            mine = [one for one in stage if _name(one) in ending]
            daemon.stop(mine, timeout_s=_STOP_WITHIN_S)
            ending -= {_name(one) for one in mine}
        for host, service in ending:  # of a change that failed
            self.hosts[host].stop(service, timeout_s=_STOP_WITHIN_S)

    def _write(self, plan: StorePlan[Kind], touched: Sequence[Daemon]) -> None:
        """Write what differs from the files on hosts, and all that touched daemons read."""
        reads = {(one.host.name, path) for one in touched for path in one.reads or ()}
        files = [
            file
            for file in plan.files
            if (file.host, file.path) in reads
            or self.written.get((file.host, file.path)) != file.text
        ]
        for file in files:
            self.written[file.host, file.path] = file.text
        put_files(files, self.hosts)


_ADVICE: Final = "Tear the deployment down and start it with these settings."


def _name(one: Daemon) -> _Name:
    return one.host.name, one.service.name


def _listed(daemons: Sequence[Daemon]) -> list[str]:
    """For example `object-server on store-1, store-2`; each service once."""
    hosts: dict[str, list[str]] = {}
    for one in daemons:
        hosts.setdefault(one.service.name, []).append(one.host.name)
    return [f"{name} on {', '.join(names)}" for name, names in hosts.items()]
