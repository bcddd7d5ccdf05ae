"""The Host interface: what gateways need of a machine and each kind of host (lab, ssh) provides."""

from __future__ import annotations

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Protocol, Self

from weighbridge.common import safe_files
from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.common.paths import IMPORTED_FROM

if TYPE_CHECKING:
    from weighbridge.common.endpoint import Endpoint

PYTHON: Final = (sys.executable, "-P")
"""How every Python program of this machine starts: the working folder, which may be a run folder
from somebody else, is no place of modules.
"""
_SECRET: Final = re.compile(r"SECRET|TOKEN|PASS|KEY|CREDENTIAL", re.IGNORECASE)
_PLACE: Final = re.compile(r"_(FILE|PATH|DIR|URI|URL)$", re.IGNORECASE)
"""Names of variables that say where secrets are; what is there has an owner and a mode."""


def program_environment() -> dict[str, str]:
    """This command's environment for a program of this machine, without what is a secret by its
    name: a program that needs one gets it by a pipe.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not _SECRET.search(name) or _PLACE.search(name)
    }


class PipedProcess(Protocol):
    """What such a program offers of `subprocess.Popen`. Its pipes have descriptors to poll; closing
    its stdin tells most of our programs to end. `kill` ends also everything that it started.

    `returncode` is negative or 128 + N after signal N, and None until its end is known. 255 can
    also mean, as in ssh(1), that the host stopped answering: the last line of stderr says so.
    """

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


TAIL_BYTES: Final = 65536
_FRAME: Final = re.compile(r" +\d+: ")
"""A stack frame in the dump of a Ceph daemon that crashes, which it may do as it gives up."""
LARGEST_LOG_BYTES: Final = 256 * 2**20
"""At most this much of a log is read into memory."""


@dataclass(frozen=True)
class Service:
    """A program that runs on a host until it is stopped, with its output in `{name}.out`."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A program's command line on a host, and what its environment has beyond the host's."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Completed:
    """A command that ended with status 0."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class ModelDiskCounters:
    """What a disk with a model says it has done since it was made, beside the kernel's counters."""

    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    flushes: int
    destages: int
    """Runs of bytes that went from its volatile cache to the media."""
    destaged_bytes: int
    busy_s: float
    """How long the head, or a flash channel on average, worked."""
    waited_s: float
    """The time of all requests together, as of `DiskCounters`."""
    late_s: float
    """How much later than its model says it answered, in sum: what the machine added."""
    cached_bytes: int
    """In its volatile cache now."""


@dataclass(frozen=True)
class DiskCounters:
    """What one disk of a host has done since it was attached, write-back included."""

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    busy_s: float
    """Time with a request in flight (io_ticks): in kernel ticks, too much for short requests."""
    waited_s: float
    """The time of all requests together: one second per second is a mean queue depth of one."""
    model: ModelDiskCounters | None = None
    """A second witness, where the disk has a model."""


@dataclass(frozen=True)
class Counters:
    """What a host has used since it started. None: this kind of host cannot measure it."""

    cpu_s: float | None = None
    throttled_s: float | None = None
    cpu_periods: int | None = None
    """Periods of the CPU quota in which the host had something to run ..."""
    throttled_periods: int | None = None
    """... and those in which it used up its quota and had to wait."""
    memory_bytes: int | None = None
    """Page cache included."""
    memory_held_bytes: int | None = None
    """Without the page cache of files, which can be dropped."""
    memory_peak_bytes: int | None = None
    oom_kills: int | None = None
    disk_read_bytes: int | None = None
    disk_written_bytes: int | None = None
    disks: tuple[DiskCounters, ...] | None = None
    """In the order of the hardware file."""
    network_received_bytes: int | None = None
    network_sent_bytes: int | None = None
    network_faults: int | None = None
    """Packets that its NIC dropped or found broken, both ways."""
    conductor_cpu_s: float | None = None
    """On the machine that runs the containers: what this process used of `cpu_s`."""
    kernel_cpu_s: float | None = None
    """On the same: what its kernel used for everybody (interrupts, loop disks' threads)."""


class ProgramHost(Protocol):
    """What any machine has on which programs are started with pipes here, a deployment's own or
    another: see Host.
    """

    @property
    def name(self) -> str: ...
    @property
    def python(self) -> str: ...
    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess: ...


class Host(ABC):
    """One machine of a deployment. Paths are on the host, except those that `log` returns."""

    name: str
    """Its name in the hardware file."""
    address: str
    """Its address on the deployment's network."""
    disks: tuple[str, ...]
    """Device paths of its empty disks on the host, in the order of the hardware file."""
    cores: int | None = None
    """The CPUs of a machine that is this host's alone; None: it shares them, or they are unknown.
    """
    python: str = "python3"
    """Its Python, 3.9 or later."""

    @abstractmethod
    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        """Write a file, atomically, for a user of the host; makes parents. Raises TargetError."""

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        """Run a command to its end, or kill it with all it started after `timeout_s`.

        Pass secrets by `stdin`: arguments, and on some kinds of host `env` too, show in the process
        list. Raises CommandFailed on a status other than 0 and on a timeout, TargetError.
        """

    @abstractmethod
    def start(self, services: Sequence[Service]) -> None:
        """Start services, all by one command, and return at once: ports show when they work.

        Raises CommandFailed, TargetError for an invalid name.
        """

    @abstractmethod
    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        """End a service: TERM to its first process, and KILL to all that is left after `timeout_s`.

        One that has ended is no error. Raises TargetError if it does not end.
        """

    def kill(self, service: str) -> None:
        """End a service with all its processes by KILL, at once. One that has ended is no error."""
        self.stop(service, timeout_s=0)

    @abstractmethod
    def alive(self, service: str) -> bool:
        """Whether the service's process is running."""

    @abstractmethod
    def log(self, name: str) -> Path:
        """Where this machine can read /var/log/host/`name`; the file may not exist yet."""

    @abstractmethod
    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess:
        """Start a program in the host's network and limits; its stdin and stdout are pipes here.
        Raises TargetError.
        """

    @abstractmethod
    def counters(self) -> Counters:
        """What the host has used since it started. Raises TargetError when it is gone."""

    @abstractmethod
    def drop_kernel_caches(self) -> str:
        """Write back and drop page cache, dentries and inodes; returns in words what it did."""

    def is_up(self) -> bool:
        """Whether the host itself is up; True where that cannot be told apart from its services."""
        return True

    def module(self, name: str, *arguments: str) -> Command:
        """The command that runs a module of this suite on the host, as `python -m` would.

        By default this suite and this Python, which lab hosts without an image see. Raises
        MissingPrerequisite or CommandFailed where the host has no suite and cannot get one.
        """
        env = {"PYTHONPATH": str(IMPORTED_FROM), "PYTHONDONTWRITEBYTECODE": "1"}
        return Command((*PYTHON, "-m", name, *arguments), env)

    def variables(self, endpoints: Collection[Endpoint]) -> Mapping[str, str]:
        """What differs of this command's environment for a program that gets these endpoints.

        On this machine: all of it where a profile gets their keys again, by a program which may
        need anything; else no variable with a secret of theirs, whatever its name.
        """
        return {}

    def tool(self, name: str) -> tuple[str, ...]:
        """The command that runs `name`, one of the tools of the attestation, the same on every
        host.

        Raises MissingPrerequisite where this kind of host has none, or these were started without.
        """
        raise MissingPrerequisite(
            f"{self.name}: it has no {name}",
            advice="only lab hosts that were started for attestation have these tools",
        )

    def log_tail(self, name: str, lines: int = 15) -> list[str]:
        """The last lines of the log file `name`; empty if there is none. Without stack frames of a
        crash: why a daemon ended is said before them.
        """
        try:
            found = self.read_log(name, -TAIL_BYTES).decode(errors="replace").splitlines()
            return [line for line in found if not _FRAME.match(line)][-lines:]
        except TargetError as error:  # what is in the log's place is worth showing
            return [error.message]

    def read_log(self, name: str, begin: int = 0) -> bytes:
        """The log file `name` from a byte on, or its last bytes (`begin` < 0), up to
        LARGEST_LOG_BYTES.

        Empty if there is none. A link is not followed: root on the host may have put it there.
        Raises TargetError.
        """
        path = self.log(name)
        folder = path.parents[len(safe_files.parts_of(name)) - 1]
        try:
            with os.fdopen(safe_files.open_descriptor(folder, name, os.O_RDONLY), "rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(begin if begin >= 0 else max(0, end + begin))
                return file.read(LARGEST_LOG_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise TargetError(f"{self.name}: its log {path}: {error.strerror}") from error
