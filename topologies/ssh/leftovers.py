"""What deployments have left on real hosts, found by their claims and labels, and its removal.

Only what carries a label of ours is looked at: the claim, the folders below that of deployments,
the environment of processes. A host that cannot be reached is named, and the others are done.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, ValidationError

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.common.printed import printable
from weighbridge.common.record import Record
from weighbridge.gateways.together import together
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.ssh import claim as claims
from weighbridge.topologies.ssh import ending, suite
from weighbridge.topologies.ssh.claim import LABEL, ClaimedHost
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.event_loop import EventLoop
from weighbridge.topologies.ssh.host import SERVICE_NAME
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.there import ask

Kind = Literal["claim", "process", "disk", "kernel setting", "folder", "half-made suite", "suite"]
Result = TypeVar("Result")

MOST_SERVICES: Final = 1000
"""Services of one host: a host that tells of more is not believed."""
LONGEST_LINE: Final = 80
"""Characters of a name and what is said of it."""
_LINE: Final = re.compile(rf"({SERVICE_NAME.pattern}) (alive|dead)")


@dataclass(frozen=True)
class HostLeftover:
    """One thing on one host. `deployment` is empty where it belongs to none (suites)."""

    host: str
    deployment: str
    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.host}: {self.kind} {self.what}" + (
            f" of {self.deployment}" if self.deployment else ""
        )


class HostDaemon(Record):
    """A service that was started on a host and not stopped."""

    host: str
    deployment: str
    service: str
    alive: bool
    """Whether the very process that it began with is there."""
    log: str
    """Path on that host of what it printed."""


@dataclass(frozen=True)
class ClaimedDeployment:
    """A deployment that has claimed hosts."""

    claimed: ClaimedHost
    hosts: tuple[str, ...]

    @property
    def at_work(self) -> bool:
        """Whether its conductor is alive on this machine."""
        return self.claimed.conducted_by(socket.gethostname())

    @property
    def elsewhere(self) -> bool:
        """Whether it was made on another machine, of whose processes nothing is known here."""
        return self.claimed.conductor != socket.gethostname()


@dataclass(frozen=True)
class Swept:
    """What was found, or found and removed."""

    found: tuple[HostLeftover, ...] = ()
    stood: tuple[ClaimedDeployment, ...] = ()
    spared: tuple[ClaimedDeployment, ...] = ()
    """Deployments that were not touched, since somebody may be at work with them."""
    failed: Mapping[str, WeighbridgeError] = field(default_factory=dict)
    """Hosts that could not be asked, or on which something stayed, and why."""
    daemons: tuple[HostDaemon, ...] = ()
    """What was started on the hosts that have a claim and not stopped; only where that was asked
    for.
    """


class _Told(Record):
    """What a host says there is; see `leftovers_there`."""

    claim: str | None
    processes: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=100_000)]], Field(max_length=10_000)
    ]
    folders: Annotated[tuple[str, ...], Field(max_length=10_000)]
    suites: Annotated[tuple[str, ...], Field(max_length=10_000)]


@dataclass(frozen=True)
class _Seen:
    """One host that was looked at."""

    shell: Shell
    claimed: ClaimedHost | None
    found: tuple[HostLeftover, ...]
    daemons: tuple[HostDaemon, ...] = ()


def find(hardware: Hardware, *, whole: bool = False, daemons: bool = False) -> Swept:
    """Everything of ours on the hosts of a hardware file, also what a conductor at work has there.

    `whole`: suites too; `daemons`: which services were started there and are alive. A host that
    does not tell it is among `failed`.
    """
    with shells(hardware) as ways:
        look = partial(_look, whole=whole, daemons=daemons)
        seen, failed = at_once(
            {name: partial(look, shell, hardware) for name, shell in ways.items()}
        )
    found = tuple(one for host in seen.values() for one in host.found)
    return Swept(
        found,
        _stood(seen),
        failed=failed,
        daemons=tuple(one for host in seen.values() for one in host.daemons),
    )


def remove(
    hardware: Hardware,
    deployments: Collection[str] | None = None,
    *,
    whole: bool = False,
    elsewhere: bool = False,
    silent: Collection[str] = (),
) -> Swept:
    """Remove what some deployments have left, or (None) what all have and half-made suites; with
    `whole` all suites too.

    A deployment whose conductor is alive on this machine is spared, and one that was made on
    another machine, unless `elsewhere` says that it is left too. `silent` are hosts that are not
    asked, since they did not answer just now. What has failed can be tried again.
    """
    with shells(hardware) as ways:
        looks = {
            name: partial(_look, shell, hardware, whole=whole)
            for name, shell in ways.items()
            if name not in silent
        }
        seen, failed = at_once(looks)
        stood = _stood(seen)
        asked_for = [
            one for one in stood if deployments is None or one.claimed.deployment in deployments
        ]
        spared = tuple(one for one in asked_for if one.at_work or (one.elsewhere and not elsewhere))
        kept = {one.claimed.deployment for one in spared}

        def wanted(one: HostLeftover) -> bool:
            if not one.deployment:
                return deployments is None and not kept  # who is at work uses a suite
            return one.deployment not in kept and (
                deployments is None or one.deployment in deployments
            )

        sweeps = {name: tuple(filter(wanted, host.found)) for name, host in seen.items()}
        work = {
            name: partial(_sweep, seen[name], hardware, some, whole=whole)
            for name, some in sweeps.items()
            if some or whole
        }
        done, stayed = at_once(work)
    found = tuple(one for name in done for one in sweeps[name])
    return Swept(found, stood, spared, {**failed, **stayed})


def _sweep(
    host: _Seen, hardware: Hardware, found: Collection[HostLeftover], *, whole: bool
) -> None:
    folder = hardware.access.folder
    for label in dict.fromkeys(one.deployment for one in found if one.deployment):
        mine = host.claimed is not None and host.claimed.deployment == label
        # Where the claim is gone, what carries its label is found all the same; its disks and
        # settings are not known any more.
        claimed = (
            host.claimed
            if mine
            else ClaimedHost(
                deployment=label, conductor="", pid=0, user="", since="", folder=folder
            )
        )
        if claimed is not None:
            ending.give_back(host.shell, claimed)
    if any(not one.deployment for one in found):
        suite.sweep(host.shell, folder, whole=whole)
    if whole:
        host.shell.sh(
            'if [ -e "$1/claim.json" ]; then exit; fi; rm -f "$1/lock"; rmdir "$1" 2>/dev/null || '
            "true",
            folder,
        )


def _look(shell: SshConnection, hardware: Hardware, *, whole: bool, daemons: bool = False) -> _Seen:
    shell.open()
    folder = hardware.access.folder
    try:
        told = _Told.model_validate(ask(shell, "leftovers", folder))
    except ValidationError:
        raise TargetError(f"{shell.where}: does not tell what deployments have there") from None
    claimed = claims.read(shell, folder) if told.claim else None
    found = []
    if claimed is not None:
        label = claimed.deployment
        found.append(HostLeftover(shell.name, label, "claim", f"of {claimed.by}"))
        found += [HostLeftover(shell.name, label, "disk", disk.id) for disk in claimed.disks]
        if claimed.former is not None:
            found += [
                HostLeftover(shell.name, label, "kernel setting", name)
                for name in claimed.former.sysctls
            ]
            if claimed.former.mtu is not None:
                found.append(
                    HostLeftover(
                        shell.name, label, "kernel setting", f"MTU of {claimed.former.nic}"
                    )
                )
    # Anybody there can call a process or a folder anything: what is no label is none of ours.
    for label, number in sorted(told.processes.items()):
        if LABEL.fullmatch(label):
            found += [
                HostLeftover(shell.name, label, "process", f"{index + 1} of {number}")
                for index in range(number)
            ]
    labels = filter(LABEL.fullmatch, told.folders)
    found += [
        HostLeftover(shell.name, label, "folder", f"{folder}/{ending.DEPLOYMENTS}/{label}")
        for label in labels
    ]
    for name in told.suites:
        half = name.endswith(".partial")
        if half or whole:
            found.append(
                HostLeftover(
                    shell.name, "", "half-made suite" if half else "suite", f"{folder}/{name}"
                )
            )
    return _Seen(
        shell,
        claimed,
        tuple(found),
        daemons_of(shell, claimed) if daemons and claimed is not None else (),
    )


def _stood(seen: Mapping[str, _Seen]) -> tuple[ClaimedDeployment, ...]:
    by_label: dict[str, list[str]] = {}
    first: dict[str, ClaimedHost] = {}
    for name, host in seen.items():
        if host.claimed is not None:
            by_label.setdefault(host.claimed.deployment, []).append(name)
            first.setdefault(host.claimed.deployment, host.claimed)
    return tuple(ClaimedDeployment(first[label], tuple(names)) for label, names in by_label.items())


@contextmanager
def shells(hardware: Hardware) -> Iterator[dict[str, SshConnection]]:
    """The ways to all hosts, not opened yet; closed at the end."""
    loop = EventLoop()
    ways = {
        name: SshConnection(name, spec, hardware.access, loop)
        for name, spec in hardware.hosts.items()
    }
    try:
        yield ways
    finally:
        try:
            for shell in ways.values():
                shell.close()
        finally:
            loop.close()


def at_once(
    work: Mapping[str, Callable[[], Result]],
) -> tuple[dict[str, Result], dict[str, WeighbridgeError]]:
    """What each host came to, and what went wrong on the others."""

    def tried(call: Callable[[], Result]) -> Result | WeighbridgeError:
        try:
            return call()
        except WeighbridgeError as error:
            return error

    came = dict(zip(work, together([partial(tried, call) for call in work.values()]), strict=True))
    failed = {name: one for name, one in came.items() if isinstance(one, WeighbridgeError)}
    return {
        name: one for name, one in came.items() if not isinstance(one, WeighbridgeError)
    }, failed


def daemons_of(shell: Shell, claimed: ClaimedHost) -> tuple[HostDaemon, ...]:
    """What the deployment that has claimed a host runs there.

    Raises CommandFailed, or TargetError where the answer is none.
    """
    services = ending.services_of(claimed, systemd=ending.has_systemd(shell))
    told = shell.sh(services.ask()).stdout
    if len(told) > MOST_SERVICES * LONGEST_LINE:
        raise TargetError(
            f"{shell.name} ({shell.address}): tells of more services than a host can have"
        )
    alive: dict[str, bool] = {}
    for line in told.splitlines():
        one = _LINE.fullmatch(line)
        if one is None or one[1] in alive:
            raise TargetError(
                f"{shell.name} ({shell.address}): does not tell which services are alive: "
                f"{printable(line)!r}"
            )
        alive[one[1]] = one[2] == "alive"
    label, logs = claimed.deployment, f"{services.stand.folder}/log"
    return tuple(
        HostDaemon(
            host=shell.name, deployment=label, service=name, alive=there, log=f"{logs}/{name}.out"
        )
        for name, there in alive.items()
    )
