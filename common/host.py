"""The Host seam: all that a gateway asks of a machine, and all that a kind of host (lab, ssh, fake)
has to offer.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weighbridge.common import inside
from weighbridge.common.errors import MissingMeans, TargetError
from weighbridge.common.home import IMPORTED_FROM
from weighbridge.common.piped import Piped

TAIL_BYTES: Final = 65536
LARGEST_LOG_BYTES: Final = 256 * 2**20
"""Of a log as it is read into memory."""


@dataclass(frozen=True)
class Service:
    """A program that runs on a host until it is stopped.

    Its output goes to the log `{name}.out` of the host.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """What starts a program on a host: its words, and what its environment has beside the host's
    own.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Completed:
    """A command that ended with 0."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class DiskCounters:
    """What one disk of a host has done since it was attached, write-back included."""

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    busy_s: float
    """Time with something in hand (io_ticks): counted in ticks of the kernel, and so too much where
    requests are short.
    """
    waited_s: float
    """What all requests took together: a second of it in a second is one request in hand on
    average.
    """


@dataclass(frozen=True)
class Counters:
    """What a host has used since it started. None: this kind of host cannot tell."""

    cpu_s: float | None = None
    throttled_s: float | None = None
    cpu_periods: int | None = None
    """Periods of the CPU quota in which the host had something to run ..."""
    throttled_periods: int | None = None
    """... and those of them in which it used its quota up and had to wait."""
    memory_bytes: int | None = None
    """Page cache included."""
    memory_held_bytes: int | None = None
    """Without what can be dropped: the page cache of files."""
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
    """Of the machine that hosts are containers of: what this very process used of `cpu_s`."""
    kernel_cpu_s: float | None = None
    """Of the same: what its kernel used by itself, for all: interrupts, and threads of its own such
    as those of loop disks.
    """


class Host(ABC):
    """One machine of a deployment. Paths are the host's own, except those of `log`."""

    name: str
    """Its name in the hardware file."""
    address: str
    """Its address on the deployment's network."""
    disks: tuple[str, ...]
    """Device paths of its disks on the host, in the order of the hardware file; empty block devices
    of this deployment.
    """

    @abstractmethod
    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        """Write a file (parents are made). `owner` is a user name of the host."""

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        """Run a command to its end. Raises CommandFailed on another status than 0, or when it takes
        too long.

        What is secret goes by `stdin`: words, and on some kinds of host `env` too, can be read in
        the list of processes.
        """

    @abstractmethod
    def start(self, services: Sequence[Service]) -> None:
        """Start services and return at once.

        Whether one works is asked of its port. Raises CommandFailed.
        """

    @abstractmethod
    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        """End a service: TERM, and KILL when it is still there after `timeout_s`.

        One that has ended is no error.
        """

    @abstractmethod
    def alive(self, service: str) -> bool:
        """Whether the service's process is there."""

    @abstractmethod
    def log(self, name: str) -> Path:
        """Where the file /var/log/host/`name` of the host can be read on this machine (it may not
        exist yet).
        """

    @abstractmethod
    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> Piped:
        """Start a program on the host with its stdin and stdout as pipes here; it lives in the
        host's network and limits.
        """

    @abstractmethod
    def counters(self) -> Counters:
        """What the host has used since it started."""

    @abstractmethod
    def drop_kernel_caches(self) -> str:
        """Write back and drop page cache, dentries and inodes; returns in words what was
        dropped.
        """

    def stands(self) -> bool:
        """Whether the host itself is there still; True where its end cannot be told from that of
        its services.
        """
        return True

    def module(self, name: str, *arguments: str) -> Command:
        """What runs a module of this suite on the host, as `python -m` would: on hosts that make
        load or ask others.

        Here: this very suite by this very Python, which lab hosts without an image see. Raises
        MissingMeans or CommandFailed where the host has no suite and cannot get one.
        """
        env = {
            "PYTHONPATH": str(IMPORTED_FROM),
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return Command((sys.executable, "-m", name, *arguments), env)

    def tool(self, name: str) -> tuple[str, ...]:
        """The command that runs `name`, one of the tools that hosts are attested with, the same on
        every host.

        Raises MissingMeans where hosts of this kind, or as they were raised, have none.
        """
        raise MissingMeans(
            f"{self.name}: it has no {name}",
            advice="only lab hosts that were raised to be attested have such tools",
        )

    def tail(self, name: str, lines: int = 15) -> list[str]:
        """The last lines of the log file `name`; empty when there is none."""
        try:
            return self.logged(name, -TAIL_BYTES).decode(errors="replace").splitlines()[-lines:]
        except TargetError as error:  # what stands there instead is what there is to say
            return [error.message]

    def logged(self, name: str, begin: int = 0) -> bytes:
        """The log file `name` from a byte on, or its last bytes (`begin` < 0), up to
        LARGEST_LOG_BYTES; nothing when there is none.

        Whoever is root on a host may have put a link there, which is not followed. Raises
        TargetError.
        """
        path = self.log(name)
        folder = path.parents[len(inside.parts_of(name)) - 1]
        try:
            with os.fdopen(inside.opened(folder, name, os.O_RDONLY), "rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(begin if begin >= 0 else max(0, end + begin))
                return file.read(LARGEST_LOG_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise TargetError(f"{self.name}: its log {path}: {error.strerror}") from error
