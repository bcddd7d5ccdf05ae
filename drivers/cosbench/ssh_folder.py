"""An archive folder on another host, read by SFTP. The host's key must already be known."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import asyncssh

from weighbridge.common.errors import DriverError
from weighbridge.common.plain_url import ssh_place

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
        """See drivers.cosbench.archive.Folder."""
        try:
            found = self._run(self._sftp.listdir(f"{self._path}/{path}"), READ_S)
        except FileNotFoundError:
            return ()
        return tuple(sorted(str(name) for name in found if name not in (".", "..")))

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        """See drivers.cosbench.archive.Folder."""
        try:
            return self._run(self._read(f"{self._path}/{path}", last_bytes), READ_S)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """End the connection."""
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
