"""For tests: an SSH server on loopback that runs commands with /bin/sh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import asyncssh


class Server:
    """An SSH server with one host key that accepts one user key, in a thread of its own."""

    def __init__(self, folder: Path, allowed: asyncssh.SSHKey | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.allowed = allowed or asyncssh.generate_private_key("ssh-ed25519")
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.passed_on: list[tuple[str, int]] = []
        """Where it was asked to connect as a jump host."""
        self.running: set[asyncio.subprocess.Process] = set()
        self.profile = ""
        """What its shell runs before the command, like ~/.bashrc."""
        self.most = 1000
        """Sessions of a connection at most, like MaxSessions."""
        self.allowed.write_private_key(str(folder / "key"))
        (folder / "key").chmod(0o600)
        self.allowed.write_public_key(str(folder / "authorized"))
        self.listener = self.do(self._listen(folder))
        self.port = self.listener.get_port()
        self.know(folder, self.key)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the server's thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def cut(self) -> None:
        """Break all connections off."""
        for connection in self.connections:
            self.loop.call_soon_threadsafe(connection.abort)

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
            sessions = 0

            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                server.connections.append(conn)

            def connection_requested(
                self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
            ) -> bool:
                server.passed_on.append((dest_host, dest_port))
                return True

            def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
                if self.sessions >= server.most:
                    raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
                self.sessions += 1
                return asyncssh.SSHServerProcess(self._process, None, 3, allow_scp=False)

            async def _process(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
                try:
                    await server.process(process)
                finally:
                    self.sessions -= 1

        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Door,
            server_host_keys=[self.key],
            authorized_client_keys=str(folder / "authorized"),
            encoding=None,
        )

    async def process(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
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

    def close(self) -> None:
        self.do(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _close(self) -> None:
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
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except (OSError, asyncssh.Error):
        if isinstance(reader, asyncio.StreamReader):
            reader._transport.close()  # type: ignore[attr-defined]  # as sshd: nobody reads it
    if isinstance(writer, asyncio.StreamWriter):
        with contextlib.suppress(OSError):
            writer.close()
