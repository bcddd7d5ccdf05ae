"""Finding and removing what deployments have left on real hosts.

Only what has a deployment's label is considered: the claim, folders of deployments, processes with
the label in their environment. A host that cannot be reached is named, and the others are done.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Final, TypeVar

from pydantic import Field, ValidationError

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.common.tool_output import printable
from weighbridge.gateways.together import together
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import LABEL, Daemon, Leftover
from weighbridge.topologies.ssh import claim as claims
from weighbridge.topologies.ssh import ending, suite
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.host import SERVICE_NAME
from weighbridge.topologies.ssh.remote import run_remote

Name = TypeVar("Name")
Result = TypeVar("Result")

MOST_SERVICES: Final = 1000
"""Services of a host at most: a longer list is not accepted."""
LONGEST_LINE: Final = 80
"""Characters of a service's name and state."""
_LINE: Final = re.compile(rf"({SERVICE_NAME.pattern}) (alive|dead)")


@dataclass(frozen=True)
class ClaimedDeployment:
    """A deployment that has claimed hosts."""

    claimed: ClaimedHost
    hosts: tuple[str, ...]

    @property
    def at_work(self) -> bool:
        return self.claimed.conductor_running(socket.gethostname())

    @property
    def elsewhere(self) -> bool:
        """Whether it was made on another machine, whose processes are not known here."""
        return self.claimed.conductor != socket.gethostname()


@dataclass(frozen=True)
class LeftoverReport:
    """What was found, or removed."""

    found: tuple[Leftover, ...] = ()
    deployments: tuple[ClaimedDeployment, ...] = ()
    spared: tuple[ClaimedDeployment, ...] = ()
    """Deployments that were left alone, since a conductor may be running."""
    failed: Mapping[str, WeighbridgeError] = field(default_factory=dict)
    """Hosts that could not be examined, or on which something is left, and why."""
    daemons: tuple[Daemon, ...] = ()
    """Services that were started on claimed hosts and not stopped; only on request."""


class _Traces(Record):
    claim: str | None
    processes: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=100_000)]], Field(max_length=10_000)
    ]
    folders: Annotated[tuple[str, ...], Field(max_length=10_000)]
    suites: Annotated[tuple[str, ...], Field(max_length=10_000)]


@dataclass(frozen=True)
class _Examined:
    shell: SshConnection
    claimed: ClaimedHost | None
    found: tuple[Leftover, ...]
    daemons: tuple[Daemon, ...] = ()


def find(
    hardware: Hardware, *, include_suites: bool = False, daemons: bool = False
) -> LeftoverReport:
    """Everything of all deployments on the hosts of a hardware file, also of running conductors.

    `include_suites` adds suites, `daemons` the services that were started. Hosts that do not
    answer are in `failed`.
    """
    with shells(hardware) as all_shells:
        look = partial(_look, include_suites=include_suites, daemons=daemons)
        seen, failed = attempt_all(
            {name: partial(look, shell, hardware) for name, shell in all_shells.items()}
        )
    return LeftoverReport(
        found=tuple(one for host in seen.values() for one in host.found),
        deployments=_deployments(seen),
        failed=failed,
        daemons=tuple(one for host in seen.values() for one in host.daemons),
    )


def remove(
    hardware: Hardware,
    deployments: Collection[str] | None = None,
    *,
    include_suites: bool = False,
    elsewhere: bool = False,
    silent: Collection[str] = (),
) -> LeftoverReport:
    """Remove what some deployments have left, or (None) what all have and unfinished suites; with
    `include_suites` all suites too.

    Deployments with a running conductor on this machine are spared, and those of other machines
    unless `elsewhere` says that they are left over too. `silent` hosts did not answer just now, and
    are not contacted. A removal that failed can be repeated.
    """
    with shells(hardware) as all_shells:
        looks = {
            name: partial(_look, shell, hardware, include_suites=include_suites)
            for name, shell in all_shells.items()
            if name not in silent
        }
        seen, failed = attempt_all(looks)
        deployed = _deployments(seen)
        chosen = [
            one for one in deployed if deployments is None or one.claimed.deployment in deployments
        ]
        spared = tuple(one for one in chosen if one.at_work or (one.elsewhere and not elsewhere))
        kept = {one.claimed.deployment for one in spared}

        def wanted(one: Leftover) -> bool:
            if not one.deployment:
                return deployments is None and not kept  # a running conductor uses a suite
            return one.deployment not in kept and (
                deployments is None or one.deployment in deployments
            )

        chosen_things = {name: tuple(filter(wanted, host.found)) for name, host in seen.items()}
        work = {
            name: partial(_remove, seen[name], hardware, things, include_suites=include_suites)
            for name, things in chosen_things.items()
            if things or include_suites
        }
        done, not_done = attempt_all(work)
    found = tuple(one for name in done for one in chosen_things[name])
    return LeftoverReport(found, deployed, spared, {**failed, **not_done})


def _remove(
    host: _Examined, hardware: Hardware, found: Collection[Leftover], *, include_suites: bool
) -> None:
    folder = hardware.access.folder
    for label in dict.fromkeys(one.deployment for one in found if one.deployment):
        claimed = host.claimed
        if claimed is None or claimed.deployment != label:
            # Without the claim its label is still found, but its disks and settings are not known.
            claimed = ClaimedHost(
                deployment=label, conductor="", pid=0, user="", since="", folder=folder
            )
        ending.give_back(host.shell, claimed)
    if any(not one.deployment for one in found):
        suite.sweep(host.shell, folder, include_suites=include_suites)
    if include_suites:
        script = '[ -e "$1/claim.json" ] || { rm -f "$1/lock"; rmdir "$1" 2>/dev/null || true; }'
        host.shell.sh(script, folder)


def _look(
    shell: SshConnection, hardware: Hardware, *, include_suites: bool, daemons: bool = False
) -> _Examined:
    shell.open()
    folder = hardware.access.folder
    try:
        traces = _Traces.model_validate(run_remote(shell, "leftovers", folder))
    except ValidationError:
        raise TargetError(f"{shell.where}: invalid list of what deployments have there") from None
    leftover = partial(Leftover, shell.name)
    claimed = claims.read(shell, folder) if traces.claim else None
    found = []
    if claimed is not None:
        label = claimed.deployment
        found.append(leftover(label, "claim", f"of {claimed.by}"))
        found += [leftover(label, "disk", disk.id) for disk in claimed.disks]
        if claimed.former is not None:
            found += [leftover(label, "kernel setting", name) for name in claimed.former.sysctls]
            if claimed.former.mtu is not None:
                found.append(leftover(label, "kernel setting", f"MTU of {claimed.former.nic}"))
    # Anybody on the host can name a process or folder: only valid labels count.
    for label, number in sorted(traces.processes.items()):
        if LABEL.fullmatch(label):
            found += [
                leftover(label, "process", f"{index + 1} of {number}") for index in range(number)
            ]
    for label in filter(LABEL.fullmatch, traces.folders):
        found.append(leftover(label, "folder", f"{folder}/{ending.DEPLOYMENTS}/{label}"))
    for name in traces.suites:
        half = name.endswith(".partial")
        if half or include_suites:
            kind = "half-made suite" if half else "suite"
            found.append(leftover("", kind, f"{folder}/{name}"))
    services = daemons_of(shell, claimed) if daemons and claimed is not None else ()
    return _Examined(shell, claimed, tuple(found), services)


def _deployments(seen: Mapping[str, _Examined]) -> tuple[ClaimedDeployment, ...]:
    by_label: dict[str, list[str]] = {}
    first: dict[str, ClaimedHost] = {}
    for name, host in seen.items():
        if host.claimed is not None:
            by_label.setdefault(host.claimed.deployment, []).append(name)
            first.setdefault(host.claimed.deployment, host.claimed)
    return tuple(ClaimedDeployment(first[label], tuple(names)) for label, names in by_label.items())


@contextmanager
def shells(hardware: Hardware) -> Iterator[dict[str, SshConnection]]:
    """Connections to all hosts, not opened yet; closed at the end."""
    found = {
        name: SshConnection(name, spec, hardware.access) for name, spec in hardware.hosts.items()
    }
    try:
        yield found
    finally:
        for shell in found.values():
            shell.close()


def attempt_all(
    work: Mapping[Name, Callable[[], Result]],
) -> tuple[dict[Name, Result], dict[Name, WeighbridgeError]]:
    """Do work for all hosts in parallel; returns results and errors by host."""

    def attempt(call: Callable[[], Result]) -> Result | WeighbridgeError:
        try:
            return call()
        except WeighbridgeError as error:
            return error

    outcomes = together([partial(attempt, call) for call in work.values()])
    results: dict[Name, Result] = {}
    failed: dict[Name, WeighbridgeError] = {}
    for name, outcome in zip(work, outcomes, strict=True):
        if isinstance(outcome, WeighbridgeError):
            failed[name] = outcome
        else:
            results[name] = outcome
    return results, failed


def daemons_of(shell: SshConnection, claimed: ClaimedHost) -> tuple[Daemon, ...]:
    """Services of a host's claim. Raises CommandFailed, or TargetError for an invalid answer."""
    services = ending.services_of(claimed)
    printed = shell.sh(services.status()).stdout
    where = f"{shell.name} ({shell.address})"
    if len(printed) > MOST_SERVICES * LONGEST_LINE:
        raise TargetError(f"{where}: reports more services than a host can have")
    alive: dict[str, bool] = {}
    for line in printed.splitlines():
        one = _LINE.fullmatch(line)
        if one is None or one[1] in alive:
            raise TargetError(f"{where}: does not say which services run: {printable(line)!r}")
        alive[one[1]] = one[2] == "alive"
    label, logs = claimed.deployment, f"{services.on_host.folder}/log"
    return tuple(
        Daemon(host=shell.name, deployment=label, service=name, alive=one, log=f"{logs}/{name}.out")
        for name, one in alive.items()
    )
