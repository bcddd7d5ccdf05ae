"""The Hosts interface: the hosts of one deployment, of any kind, from their start to their end."""

from __future__ import annotations

import errno
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import Field, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.escaping import escape_controls
from weighbridge.common.host import Counters, Host, ProgramHost
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import CutDisk
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.on_host import telemetry


class PowerCuts(ABC):
    """The hosts of a store whose disks remember all that is written to them, in order.

    `record`, then any number of `mark`s under load, then `cut`; `restore` starts the hosts again as
    they would be after a cut at a mark, which may be repeated for each mark in ascending order.
    """

    @abstractmethod
    def record(self, *, flushes: bool) -> None:
        """Begin. What hosts have written until now is flushed, and stays whatever is cut. Without
        `flushes`, disks ignore what they are asked to flush from now on.

        Raises TargetError.
        """

    @abstractmethod
    def mark(self) -> int:
        """Remember this instant on all disks; returns its number, from 1 on. Raises TargetError."""

    @abstractmethod
    def cut(self) -> None:
        """Cut the power of all hosts but the clients. Raises TargetError."""

    @abstractmethod
    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        """Power on with disks as at a mark: what was flushed, and of the rest each block with
        the chance `keep`. No service runs. Raises TargetError.
        """


Limited = Literal["cpu", "disk", "nic"]
LIMITED: Final[tuple[Limited, ...]] = ("cpu", "disk", "nic")
"""All limits but that of memory."""


class SeenHost(Protocol):
    """A host of which only the counters are read."""

    @property
    def cores(self) -> int | None:
        """Its CPUs; None: not known."""

    def counters(self) -> Counters:
        """What it used since it was first looked at. Raises TargetError."""


class ClusterHost(SeenHost, ProgramHost, Protocol):
    """A host of a cluster that already runs, on which only programs run that a layout names."""


class Hosts(ABC):
    """Running hosts; a context manager that tears all of them down on every path."""

    deployment: str
    """The label of everything that belongs to this deployment."""
    hosts: Mapping[str, Host]
    """By name, in the order of the hardware file."""
    observed: Mapping[str, ClusterHost] = MappingProxyType({})
    """Hosts that are none of the deployment's, by name: their counters are read, and programs run
    there that a layout names.
    """
    helpers: tuple[int, ...] = ()
    """Processes of this suite on this machine that hosts need, beside their services."""

    @abstractmethod
    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Put limits of the hardware on. Memory limits are on from the start.

        The others are off while a gateway starts, which would otherwise take longer. Raises
        TargetError.
        """

    @abstractmethod
    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Remove limits that `limit` put on. Raises TargetError."""

    def power_off(self, names: Collection[str]) -> None:
        """Cut the power of hosts: their links go first, so that others hear nothing of it, then
        all that runs on them. What their disks have stays.

        Raises UsageError where this suite cannot cut hosts' power, TargetError.
        """
        raise UsageError("this suite cannot cut the power of these hosts")

    def power_on(self, names: Collection[str]) -> None:
        """Start hosts again whose power was cut: connected, on their disks, with none of their
        services. `Host` objects are the same as before. Raises as `power_off` does.
        """
        raise UsageError("this suite cannot cut the power of these hosts")

    def plug(self, names: Collection[str], *, on: bool) -> None:
        """Have links of hosts down or up; what runs there goes on. Raises as `power_off` does."""
        raise UsageError("this suite cannot cut the links of these hosts")

    def fail_disk(self, name: str, disk: str, *, on: bool) -> None:
        """Let all I/O to a disk of a host (`/dev/wb0`) fail from now on, or have it answer again
        with all that it had. Raises as `power_off` does.
        """
        raise UsageError("this suite cannot fail the disks of these hosts")

    def power_cuts(self) -> PowerCuts:
        """Cuts of all hosts but clients at one instant, if started for that. Raises UsageError."""
        raise UsageError("this suite cannot cut the power of these hosts")

    def check(self) -> None:  # noqa: B027 - most kinds of hosts need no such program
        """Raise ServiceFailed if a program that the hosts need, beside their services, has died."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Facts about the hosts: kind, kernel, limits as the kernel reports them, known traps."""

    @abstractmethod
    def close(self) -> None:
        """Tear everything down, also repeatedly. Raises TargetError naming what is left."""

    def hurry(self) -> None:  # noqa: B027 - most kinds of hosts let nobody wait
        """A second signal came: `close`, which may be under way, ends within 10 s."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Root on a host can put anything into its log folder, such as a link to any file of this machine.
# Only regular files are copied; links, pipes and the like are named in a file beside the copies.


MOST_FILES: Final = 10_000
MOST_BYTES: Final = 64 * 2**30
"""For one host in one deployment: debug logs of days are smaller."""
NOT_COPIED: Final = "{host}.not-copied.txt"


def keep_all(hosts: Mapping[str, Host], folder: Path, say: Say) -> None:
    """Copy all hosts' logs; a failure is reported: raised, it would hide the deployment's."""
    for name, host in hosts.items():
        source = host.log("")
        if source.is_dir():
            try:
                keep(source, folder, name)
            except TargetError as error:
                say(error.message)


def keep(source: Path, folder: Path, host: str) -> None:
    """Copy a host's logs to `folder`/`host`, and list the rest beside. Raises TargetError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        not_copied = "".join(f"{escape_controls(line)}\n" for line in _copied(source, folder, host))
        if not_copied:
            safe_files.write(
                folder, NOT_COPIED.format(host=host), not_copied.encode(errors="replace")
            )
    except OSError as error:
        raise TargetError(
            f"{folder}: the logs of {host} cannot be kept: {error.strerror}",
            advice="Free some space or choose another folder; the hosts are torn down anyway.",
        ) from error


def _copied(source: Path, folder: Path, host: str) -> Iterator[str]:
    left_bytes = MOST_BYTES
    for number, entry in enumerate(safe_files.entries(source)):
        if number == MOST_FILES:
            yield f"all others: no more than {MOST_FILES} files are copied"
            return
        shown = entry.name.replace("\n", "\\n")
        if entry.otherwise:
            yield f"{shown}: is {entry.otherwise}"
            continue
        try:
            left_bytes -= _copy(source, folder, host, entry.name, left_bytes)
        except OSError as error:
            yield f"{shown}: {error.strerror}"


def _copy(source: Path, folder: Path, host: str, name: str, left_bytes: int) -> int:
    with os.fdopen(safe_files.open_descriptor(source, name, os.O_RDONLY), "rb") as original:
        known = os.fstat(original.fileno())
        if known.st_size > left_bytes:
            raise safe_files.Refused(
                0, f"is not copied: a host's logs are limited to {show_bytes(MOST_BYTES)}", name
            )
        descriptor = safe_files.open_descriptor(
            folder, f"{host}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, make_folders=True
        )
        with os.fdopen(descriptor, "wb"):
            os.fchmod(descriptor, stat.S_IMODE(known.st_mode) & 0o666)
            _copy_data(original.fileno(), descriptor, known.st_size)
            os.utime(descriptor, ns=(known.st_atime_ns, known.st_mtime_ns))
        return known.st_size


def _copy_data(source: int, copy: int, end: int) -> None:
    """Copy a file up to `end`. A hole stays one: zeros would fill this machine's disk."""
    at = 0
    while at < end:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole is left
        hole = min(end, os.lseek(source, at, os.SEEK_HOLE))
        os.lseek(copy, at, os.SEEK_SET)
        while at < hole and (sent := os.sendfile(copy, source, at, hole - at)):
            at += sent
        if at < hole:
            break  # it was truncated meanwhile
    os.ftruncate(copy, end)


LABEL: Final = re.compile(r"^[a-z0-9][a-z0-9-]{0,60}$")
"""Names of deployments and of their folders, here and on real hosts: none leads elsewhere."""
Label = Annotated[str, Field(pattern=LABEL.pattern)]

CONDUCTOR: Final = "conductor.json"
"""The file in a deployment's folder that names its owner, written before anything else."""


@dataclass(frozen=True)
class Leftover:
    """Something of a deployment, running or left; `deployment` is empty where it belongs to none,
    `host` on this machine.
    """

    host: str
    deployment: str
    kind: str
    what: str

    def __str__(self) -> str:
        host = f"{self.host}: " if self.host else ""
        of = f" of {self.deployment}" if self.deployment else ""
        return f"{host}{self.kind} {self.what}{of}"


class Daemon(Record):
    """A service that was started on a host and not stopped."""

    host: str
    deployment: str
    service: str
    alive: bool
    """Whether its first process is running."""
    log: str
    """The path of its output, of a real host on that host."""


class DeploymentOwner(Record):
    """The process that made a deployment's folder. `since` is UTC, ISO 8601."""

    deployment: Label
    pid: int
    since: str
    started: int
    """When that process started, in ticks since the boot."""

    @property
    def at_work(self) -> bool:
        """Whether that same process, not a later one with its number, is running."""
        return started_at(self.pid) == self.started


def own_folder(folder: Path) -> None:
    """Make a deployment's folder, owned by this process. Raises OSError."""
    folder.mkdir(parents=True, mode=0o700)
    owner = DeploymentOwner(
        deployment=folder.name,
        pid=os.getpid(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        started=started_at(os.getpid()) or 0,
    )
    safe_files.write(folder, CONDUCTOR, owner.model_dump_json().encode())


def remove_folder(folder: Path) -> None:
    """Remove a deployment's folder, or one in it. Raises TargetError naming what is left."""
    try:
        safe_files.remove_tree(folder)
    except OSError as error:
        raise TargetError(
            f"{folder}: cannot be removed: {error.filename}: {error.strerror}",
            advice=f"Nothing runs there; remove {folder} by hand.",
        ) from error


def owners_below(deployments: Path) -> tuple[DeploymentOwner, ...]:
    """Owners of all folders of deployments, running or not, if they can be read."""
    found = []
    for path in sorted(deployments.glob(f"*/{CONDUCTOR}")):
        # The folder may just be going, or its process was killed while it wrote.
        with suppress(OSError, ValidationError):
            found.append(DeploymentOwner.model_validate_json(path.read_bytes()))
    return tuple(found)


def started_at(pid: int) -> int | None:
    """When a process of this machine started, in ticks since the boot; None: it is not running."""
    fields = telemetry.stat_of(pid)
    return None if fields is None else int(fields[telemetry.START])
