"""COSBench's archive, here or by ssh: a workload's results, and what is kept of them."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import re
import stat
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import asyncssh

from weighbridge.common import safe_files
from weighbridge.common.credential import ssh_place
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.script import Script, StorageAccess
from weighbridge.drivers.protocol import KEPT_NAME, KeptFile

WAIT_S: Final = 30.0
"""How long to wait for the archive: a workload is reported as ended before it is written."""
PAUSE_S: Final = 0.3
LOG_TAIL_BYTES: Final = 512 * 1024
LARGEST_FILE_BYTES: Final = 64 * 1024 * 1024
"""Of larger files only the beginning is read: logs may have a line for each request; tables of
figures are small.
"""
MOST_FILES: Final = 100
"""A workload's folder has nine files; since others can write to it, it may have any number."""
MOST_BYTES: Final = 2 * LARGEST_FILE_BYTES
"""When so much of a workload's folder is read, no further file of it is."""
LAST_WRITTEN: Final = "scripts.log"
"""The last file that is written to a workload's folder."""
LONG: Final = 32 * 1024
"""Longer texts are kept packed."""
LONGEST: Final = 4 * 1024 * 1024
"""Of longer texts only the beginning is kept: logs may have a line for each request."""
_LONGEST_SECRET: Final = 16 * 1024
"""Characters that a key may have, however it is escaped."""
_EXPANDED: Final = "workload-config.xml"


class Folder(Protocol):
    """A readable archive folder, for relative paths. Methods raise DriverError without it."""

    def names(self, path: str) -> tuple[str, ...]:
        """The names in one of its folders; none when it does not exist."""

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        """A file's first LARGEST_FILE_BYTES, or its last bytes; None if it is no regular file."""

    def close(self) -> None:
        """Disconnect."""


class LocalFolder:
    """A folder of this host. Raises DriverError when it is not one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        if not self._path.is_dir():
            raise DriverError(
                f"{self._path}: no such folder on the driver's host",
                advice="Give the archive_dir of its controller.conf; note that client hosts of a "
                "lab have their own /tmp and /run.",
            )

    def names(self, path: str) -> tuple[str, ...]:
        try:
            return safe_files.names(self._path, path)
        except OSError as error:
            raise DriverError(f"{self._path / path}: {error.strerror}") from None

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        try:
            # Regular files only: a link may lead to files of this user, a pipe never ends.
            with os.fdopen(self._opened(path), "rb") as file:
                if last_bytes is not None:
                    file.seek(max(0, file.seek(0, 2) - last_bytes))
                return file.read(LARGEST_FILE_BYTES)
        except (FileNotFoundError, safe_files.Refused):
            return None
        except OSError as error:
            raise DriverError(f"{self._path / path}: {error.strerror}") from None

    def _opened(self, path: str) -> int:
        """A file's descriptor. Logs beside the archive are linked: there links are followed."""
        if path.startswith("../"):
            path_beside = self._path / path
            return safe_files.open_descriptor(path_beside.parent, path_beside.name, os.O_RDONLY)
        return safe_files.open_descriptor(self._path, path, os.O_RDONLY)

    def close(self) -> None:
        """See Folder."""


def folder_at(place: str) -> Folder:
    """The folder of a path or an ssh://USER@HOST/PATH. Raises DriverError."""
    if place.startswith("ssh://"):
        return SshFolder(place, LARGEST_FILE_BYTES)
    return LocalFolder(place)


@dataclass(frozen=True)
class Archived:
    """A workload's results: its files by name, and its part of the controller's log or ""."""

    id: str
    name: str
    state: str
    files: dict[str, bytes]
    system_log: str

    def text(self, name: str) -> str:
        """A file as text; "" if it does not exist."""
        return self.files.get(name, b"").decode(errors="replace")

    @property
    def summary(self) -> str:
        return self.text(f"{self.id}-{self.name}.csv")

    @property
    def histogram(self) -> str:
        return self.text(f"{self.id}-{self.name}-rt-histogram.csv")

    @property
    def log(self) -> str:
        return self.text("workload.log")


def collect(
    folder: Folder,
    number: str,
    name: str,
    submitted: datetime,
    state: str,
    wait: Callable[[float], None],
) -> Archived:
    """A workload's results, once they are complete. `wait` sleeps for some seconds.

    The workload is known by id, name and time of submission: ids are reused when a controller
    restarts. Raises DriverError when the results do not come within WAIT_S.
    """
    deadline_s = time.monotonic() + WAIT_S
    path = f"{number}-{name}"
    while not (_listed(folder, number, name, submitted) and LAST_WRITTEN in folder.names(path)):
        if time.monotonic() > deadline_s:
            raise DriverError(
                f"COSBench reports {state} for {path}, but no archive came within {WAIT_S:g} s",
                advice="Check that the given archive is this controller's, and that its disk is "
                "not full.",
            )
        wait(PAUSE_S)
    names = folder.names(path)
    if len(names) > MOST_FILES:
        raise DriverError(
            f"COSBench's archive has {len(names)} files in {path}: that is not a workload's folder"
        )
    files: dict[str, bytes] = {}
    # Figures come first: what is too much is left out.
    for one in sorted(names, key=lambda one: not one.startswith((path, "workload."))):
        full = sum(map(len, files.values())) >= MOST_BYTES
        content = None if full else folder.read(f"{path}/{one}")
        if content is not None:
            files[one] = content
    return Archived(number, name, state, files, system_log(folder, number))


def _listed(folder: Folder, number: str, name: str, submitted: datetime) -> bool:
    history = (folder.read("run-history.csv") or b"").decode(errors="replace")
    wanted = [number, name, f"{submitted:%Y-%m-%d %H:%M:%S}"]
    return any(line.split(",")[:3] == wanted for line in history.splitlines())


def system_log(folder: Folder, number: str) -> str:
    """The controller's log of the last workload with this id; "" when it cannot be read."""
    try:
        data = folder.read("../log/system.log", last_bytes=LOG_TAIL_BYTES)
    except DriverError:
        return ""  # only reasons for failures are lost
    text = (data or b"").decode(errors="replace")
    _, start, rest = text.rpartition(f"begin to process workload {number}\n")
    if not start:
        return ""
    end = rest.find("begin to process workload ")
    return rest if end < 0 else rest[: rest.rfind("\n", 0, end) + 1]


def kept(access: StorageAccess, script: Script, archived: Archived | None) -> tuple[KeptFile, ...]:
    """Files to keep with the run, without secrets: the script as submitted and the archive, but for
    its expanded copy of the script.
    """
    texts: dict[str, Callable[[], str]] = {}
    if archived is not None:
        texts = {name: partial(archived.text, name) for name in archived.files if name != _EXPANDED}
        texts["system.log"] = lambda: archived.system_log
    texts["workload.xml"] = lambda: script.text
    odd = [name for name in texts if not re.fullmatch(KEPT_NAME, f"{name}.gz")]
    if odd:
        texts["not-kept.txt"] = lambda: "names that are not kept:\n" + "\n".join(map(repr, odd))
    # One after the other: together they may be large.
    files = (kept_file(name, text(), access) for name, text in texts.items() if name not in odd)
    return tuple(one for one in files if one is not None)


def kept_file(name: str, text: str, access: StorageAccess) -> KeptFile | None:
    """A text to be kept, without secrets, packed when it is long; None of an empty one."""
    # The end of what is read may be a part of a secret.
    safe = access.redacted(text[: 2 * LONGEST])
    if len(text) > LONGEST:
        safe = f"{safe[:-_LONGEST_SECRET][:LONGEST]}\n(cut here: {len(text)} characters in all)\n"
    if len(safe) <= LONG:
        return KeptFile(name=name, text=safe) if safe else None
    packed = base64.b64encode(gzip.compress(safe.encode(), mtime=0)).decode()
    return KeptFile(name=f"{name}.gz", packed=packed)


# An archive folder on another host, read by SFTP. The host's key must already be known.


CONNECT_S: Final = 20.0
READ_S: Final = 120.0

Answer = TypeVar("Answer")


class SshFolder:
    """ssh://USER@HOST:PORT/PATH; user, port, keys and known hosts default to those of ~/.ssh and
    its agent. Raises DriverError.

    At most `most_bytes` of a file are read.
    """

    def __init__(self, place: str, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        try:
            parts = ssh_place(place)
        except ValueError as error:
            raise DriverError(f"the archive of COSBench: {error}") from None
        self._host, self._path = parts.host, parts.path
        self._runner = asyncio.Runner()
        options = {"username": parts.user, "port": parts.port}
        try:
            self._connection, self._sftp = self._run(
                self._open({name: value for name, value in options.items() if value}), CONNECT_S
            )
            there = self._run(self._sftp.isdir(self._path), READ_S)
        except BaseException:
            self._runner.close()
            raise
        if not there:
            self.close()
            raise DriverError(f"{place}: there is no such folder on that host")

    def names(self, path: str) -> tuple[str, ...]:
        try:
            found = self._run(self._sftp.listdir(f"{self._path}/{path}"), READ_S)
        except FileNotFoundError:
            return ()
        return tuple(sorted(str(name) for name in found if name not in (".", "..")))

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        try:
            return self._run(self._read(f"{self._path}/{path}", last_bytes), READ_S)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        self._connection.close()
        self._runner.close()

    async def _open(
        self, options: dict[str, Any]
    ) -> tuple[asyncssh.SSHClientConnection, asyncssh.SFTPClient]:
        connection = await asyncssh.connect(self._host, **options)
        return connection, await connection.start_sftp_client()

    async def _read(self, path: str, last_bytes: int | None) -> bytes | None:
        if not stat.S_ISREG((await self._sftp.lstat(path)).permissions or 0):
            return None  # a link or a pipe: see LocalFolder
        async with self._sftp.open(path, "rb") as file:
            if last_bytes is not None:
                size = (await file.stat()).size or 0
                await file.seek(max(0, size - last_bytes))
            found: bytes = await file.read(self._most_bytes)
            return found

    def _run(self, what: Coroutine[Any, Any, Answer], timeout_s: float) -> Answer:
        async def within() -> Answer:
            return await asyncio.wait_for(what, timeout_s)

        try:
            return self._runner.run(within())
        except asyncssh.SFTPNoSuchFile:
            raise FileNotFoundError from None
        except asyncssh.HostKeyNotVerifiable as error:
            raise DriverError(
                f"{self._host}: this user does not know its key: {error}",
                advice=f"Check the key and add it: ssh-keyscan {self._host} >> ~/.ssh/known_hosts",
            ) from None
        except asyncssh.PermissionDenied as error:
            raise DriverError(
                f"{self._host}: {error}",
                advice="Let this user log in with a key, without a password.",
            ) from None
        except TimeoutError:
            raise DriverError(f"{self._host}: no answer over ssh within {timeout_s:g} s") from None
        except (OSError, asyncssh.Error) as error:
            raise DriverError(f"{self._host}: over ssh: {error}") from None
