"""For tests: an SSH server on loopback that runs commands with /bin/sh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import asyncssh

from weighbridge.topologies.ssh.connection import EventLoop


class Server:
    """An SSH server with one host key that accepts one user key."""

    def __init__(
        self, folder: Path, loop: EventLoop, allowed: asyncssh.SSHKey | None = None
    ) -> None:
        self.loop = loop
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.allowed = allowed or asyncssh.generate_private_key("ssh-ed25519")
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.passed_on: list[tuple[str, int]] = []
        """Where it was asked to connect as a jump host."""
        self.running: set[asyncio.subprocess.Process] = set()
        self.profile = ""
        """What its shell runs before the command, like ~/.bashrc."""
        self.allowed.write_private_key(str(folder / "key"))
        (folder / "key").chmod(0o600)
        self.allowed.write_public_key(str(folder / "authorized"))
        self.listener = loop.do(self._listen(folder))
        self.port = self.listener.get_port()
        self.know(folder, self.key)

    def all_ended(self, within_s: float = 10) -> bool:
        """Whether all that it runs ends soon: it sees the end of a connection later than its
        client.
        """
        until_s = time.monotonic() + within_s
        while self.running and time.monotonic() < until_s:
            time.sleep(0.01)
        return not self.running

    def know(self, folder: Path, key: asyncssh.SSHKey) -> None:
        public = key.export_public_key().decode()
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}")

    async def _listen(self, folder: Path) -> asyncssh.SSHAcceptor:
        server = self

        class Door(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                server.connections.append(conn)

            def connection_requested(
                self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
            ) -> bool:
                server.passed_on.append((dest_host, dest_port))
                return True

        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Door,
            server_host_keys=[self.key],
            authorized_client_keys=str(folder / "authorized"),
            process_factory=self._process,
            encoding=None,
        )

    async def _process(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        child = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            f"{self.profile}\n{process.command or ''}",
            stdin=-1,
            stdout=-1,
            stderr=-1,
            start_new_session=True,
        )
        self.running.add(child)
        assert child.stdin is not None
        feeding = asyncio.create_task(pump(process.stdin, child.stdin))
        await asyncio.gather(pump(child.stdout, process.stdout), pump(child.stderr, process.stderr))
        code = await child.wait()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        child.stdin.close()
        self.running.discard(child)
        if code < 0:
            process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        else:
            process.exit(code)

    async def close(self) -> None:
        self.listener.close()
        for connection in self.connections:
            connection.abort()
        for child in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in tuple(self.running):
            await child.wait()
        # The tasks that follow a child see its end.
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - of tasks that asyncssh made
            await asyncio.sleep(0.01)


async def pump(reader: Any, writer: Any) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    if isinstance(writer, asyncio.StreamWriter):
        writer.close()
