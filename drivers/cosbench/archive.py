"""COSBench's archive: the folder in which its controller leaves what a workload gave, here or on
another host by ssh.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from weighbridge.common import inside
from weighbridge.common.errors import DriverError

WAIT_S: Final = 30.0
"""The end of a workload is told before its archive is written; this long is waited for that."""
PAUSE_S: Final = 0.3
LOG_TAIL_BYTES: Final = 512 * 1024
LARGEST_FILE_BYTES: Final = 64 * 1024 * 1024
"""Of a larger file of an archive the beginning is read: a log may have a line for each request, a
table of figures is small.
"""
MOST_FILES: Final = 100
"""A workload's folder has nine. It is another's: it may have been filled with anything."""
LAST_WRITTEN: Final = "scripts.log"
"""The last file that is written into a workload's folder."""


class Folder(Protocol):
    """An archive folder that can be read.

    Paths are relative to it; a method raises DriverError when it cannot be reached.
    """

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder in it; nothing when there is none."""

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        """A file up to LARGEST_FILE_BYTES of it, or its end; None when there is no regular file of
        the name.
        """

    def close(self) -> None:
        """Have done with it."""


class LocalFolder:
    """One that this host can read. Raises DriverError when it is none."""

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        if not self._path.is_dir():
            raise DriverError(
                f"{self._path}: there is no such folder where the driver runs",
                advice="Give the archive_dir of its controller.conf; a client host of a lab has a "
                "/tmp and a /run of its own.",
            )

    def names(self, path: str) -> tuple[str, ...]:
        """See Folder."""
        try:
            return inside.names(self._path, path)
        except OSError as error:
            raise DriverError(f"{self._path / path}: {error.strerror}") from None

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        """See Folder."""
        try:
            # What is no regular file is left alone: a link may lead to what only this user may
            # read, a pipe never ends.
            with os.fdopen(self._opened(path), "rb") as file:
                if last_bytes is not None:
                    file.seek(max(0, file.seek(0, 2) - last_bytes))
                return file.read(LARGEST_FILE_BYTES)
        except (FileNotFoundError, inside.Refused):
            return None
        except OSError as error:
            raise DriverError(f"{self._path / path}: {error.strerror}") from None

    def _opened(self, path: str) -> int:
        """The descriptor of a file; the controller's logs, beside the archive, are where who set it
        up has them.
        """
        beside = path.startswith("../")
        folder, name = (
            ((self._path / path).parent, Path(path).name) if beside else (self._path, path)
        )
        return inside.opened(folder, name, os.O_RDONLY)

    def close(self) -> None:
        """See Folder."""


def folder_at(place: str) -> Folder:
    """The folder that a path or an ssh://USER@HOST/PATH names. Raises DriverError."""
    if place.startswith("ssh://"):
        from weighbridge.drivers.cosbench.ssh_folder import SshFolder  # noqa: PLC0415 - imports asyncssh, which is slow

        return SshFolder(place, LARGEST_FILE_BYTES)
    return LocalFolder(place)


@dataclass(frozen=True)
class Archived:
    """What one workload left: its files by name, and the part of the controller's log that is about
    it ("" if not readable).
    """

    id: str
    name: str
    state: str
    files: dict[str, bytes]
    system_log: str

    def text(self, name: str) -> str:
        """A file as text; "" when there is none."""
        return self.files.get(name, b"").decode(errors="replace")

    @property
    def summary(self) -> str:
        """The figures by stage and operation, as CSV."""
        return self.text(f"{self.id}-{self.name}.csv")

    @property
    def histogram(self) -> str:
        """Counts of response times, as CSV."""
        return self.text(f"{self.id}-{self.name}-rt-histogram.csv")

    @property
    def log(self) -> str:
        """What COSBench's drivers wrote while it ran."""
        return self.text("workload.log")


def collect(
    folder: Folder,
    number: str,
    name: str,
    submitted: datetime,
    state: str,
    wait: Callable[[float], None],
) -> Archived:
    """What a workload that has ended left, once all of it is written. `wait` passes the seconds it
    is given.

    It is known by id, name and the time of its submission: ids are given again when a controller
    restarts. Raises DriverError when it does not come within WAIT_S.
    """
    deadline_s = time.monotonic() + WAIT_S
    path = f"{number}-{name}"
    while not (_told(folder, number, name, submitted) and LAST_WRITTEN in folder.names(path)):
        if time.monotonic() > deadline_s:
            raise DriverError(
                f"COSBench says {state} of {path}, but its archive has not come within {WAIT_S:g} s",
                advice="See that the archive that was given is the one of this controller, and "
                "that its disk is not full.",
            )
        wait(PAUSE_S)
    names = folder.names(path)
    if len(names) > MOST_FILES:
        raise DriverError(
            f"COSBench's archive has {len(names)} files in {path}: that is no workload's folder"
        )
    files = {one: content for one in names if (content := folder.read(f"{path}/{one}")) is not None}
    return Archived(number, name, state, files, system_log(folder, number))


def _told(folder: Folder, number: str, name: str, submitted: datetime) -> bool:
    history = (folder.read("run-history.csv") or b"").decode(errors="replace")
    wanted = [number, name, f"{submitted:%Y-%m-%d %H:%M:%S}"]
    return any(line.split(",")[:3] == wanted for line in history.splitlines())


def system_log(folder: Folder, number: str) -> str:
    """What the controller's log says from the last time that it began a workload of this id on; ""
    when it cannot be read.
    """
    try:
        data = folder.read("../log/system.log", last_bytes=LOG_TAIL_BYTES)
    except DriverError:
        return ""  # it is told besides: without it there is one reason less
    text = (data or b"").decode(errors="replace")
    _, began, rest = text.rpartition(f"begin to process workload {number}\n")
    if not began:
        return ""
    ended = rest.find("begin to process workload ")
    return rest if ended < 0 else rest[: rest.rfind("\n", 0, ended) + 1]
