"""The connection to one real host, kept alive, and lost when the host stops answering."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, Final, NoReturn

import asyncssh

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.common.host import Completed
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.real_host import SshAccess
from weighbridge.topologies.ssh import frame
from weighbridge.topologies.ssh.event_loop import EventLoop, Pipes
from weighbridge.topologies.ssh.login import CONNECT_S, Login

SESSIONS: Final = 8
"""At once on one connection: sshd's default of MaxSessions is 10 (sshd_config(5))."""
CONNECTIONS: Final = 6
"""Connections to one host at most; further commands wait for a free session."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SESSION_S: Final = 30.0
"""Time for an sshd to open a session and start its command."""

_CLOSED: Final = "SSH connection closed"
"""asyncssh's message about a session on a connection that is closing."""
_LOST: Final = (asyncssh.DisconnectError, ConnectionError, BrokenPipeError)


@dataclass(frozen=True)
class EndedCommand:
    """A remote command that has ended. `code` is negative for a signal, None for a timeout."""

    code: int | None
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Its stdout and stderr."""
        return (self.out + self.err).decode(errors="replace")


class _Connection:
    """One SSH connection and the number of its open sessions."""

    def __init__(self, client: asyncssh.SSHClientConnection) -> None:
        self.client = client
        self.open = 0
        self.most = SESSIONS

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self.client.is_closed()


class SshConnection:
    """A `Shell` on one host that runs any number of commands at once, with connections as needed.

    After the host has stopped answering, everything raises TargetError at once, until `renew`.
    """

    def __init__(self, name: str, spec: HostSpec, access: SshAccess, loop: EventLoop) -> None:
        self.name = name
        self.address = spec.address or ""
        self.loop = loop
        self._login = Login.of(name, spec, access)
        self._python = access.python
        self._connections: list[_Connection] = []
        self._lock = asyncio.Lock()
        self._slots = asyncio.Semaphore(SESSIONS * CONNECTIONS)
        self._root: tuple[str, ...] | None = () if self._login.user == "root" else None
        self._lost: tuple[float, str] | None = None
        self._reached = False

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port unless it is 22, for errors."""
        return self._login.where

    @property
    def lost(self) -> bool:
        """Whether the host has stopped answering."""
        return self._lost is not None

    def open(self) -> None:
        """Connect, and check that commands run as root.

        Raises MissingPrerequisite, UsageError or TargetError saying what to do.
        """
        self.loop.do(self._ready())
        if self._root is None:
            done = self.loop.do(self._run(("sudo", "-n", "true"), b"", CONNECT_S))
            if done.code:
                user, said = self._login.user, done.text.strip() or f"status {done.code}"
                raise MissingPrerequisite(
                    f"{self.where}: {user} is not root, and sudo says: {said}",
                    advice=f"let {user} use sudo without a password there (NOPASSWD), or log in as "
                    "root (ssh: user)",
                )
            self._root = ("sudo", "-n", "--")

    def reach(self) -> None:
        """Connect, as whom ever the login is: commands run as that user. Raises as `open`."""
        self.loop.do(self._ready())

    async def _ready(self) -> None:
        async with self._session():
            pass

    def close(self) -> None:
        """Close all connections. May be called more than once."""
        self.loop.do(self._drop())

    def renew(self, within_s: float = CONNECT_S) -> None:
        """Forget that the host stopped answering, and connect again. Raises as `open`."""
        self.loop.do(self._drop())
        before, self._lost = self._lost, None
        try:
            self.loop.do(asyncio.wait_for(self._ready(), within_s))
        except TimeoutError:
            why = f"no connection within {within_s:g} s"
            self._lost = before or (time.monotonic() - within_s, why)
            self._check_lost()

    async def _drop(self) -> None:
        dropped, self._connections = self._connections, []
        for one in dropped:
            one.client.abort()
        for one in dropped:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(one.client.wait_closed(), 1)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[_Connection]:
        """A connection with room for one more session."""
        self._check_lost()
        async with self._slots:
            async with self._lock:
                free = (one for one in self._connections if one.open < one.most and not one.closed)
                connection = next(free, None)
                if connection is None:
                    # Check again: while this waited, another connection may have failed.
                    self._check_lost()
                    self._connections = [one for one in self._connections if not one.closed]
                    connection = await self._connect()
                connection.open += 1
            try:
                yield connection
            finally:
                connection.open -= 1
                if connection.most == connection.open == 0:
                    connection.client.abort()

    async def _connect(self) -> _Connection:
        try:
            connection = _Connection(await self._login.connect())
        except TargetError as error:
            if self._reached:
                self._lost = (time.monotonic(), error.message)
            raise
        self._reached = True
        self._connections.append(connection)
        return connection

    def _check_lost(self) -> None:
        if self._lost is not None:
            since, why = self._lost
            raise TargetError(
                f"{self.where}: stopped answering {time.monotonic() - since:.0f} s ago ({why})",
                advice="check it and its network; when it is back, `weighbridge down --hardware "
                "FILE` tears down what the deployment has there",
            )

    def _lose(self, error: BaseException | str) -> NoReturn:
        """Record the loss, which ends all other sessions too, and raise TargetError."""
        if self._lost is None:
            self._lost = (time.monotonic(), str(error) or type(error).__name__)
            dropped, self._connections = self._connections, []
            for one in dropped:
                one.client.abort()
        self._check_lost()
        raise AssertionError  # the line above raises

    def run(
        self, argv: Sequence[str], *, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> EndedCommand:
        """Run a command as root to its end, whatever its status.

        After a timeout it is left running, with `EndedCommand.code` None: the caller ends it.
        Raises TargetError when the host does not answer.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self.loop.do(self._run((*(self._root or ()), *argv), data, timeout_s))

    async def _run(self, argv: Sequence[str], data: bytes, timeout_s: float) -> EndedCommand:
        out, err = bytearray(), bytearray()
        async with self._process(argv) as process:
            try:
                async with asyncio.timeout(timeout_s):
                    await asyncio.gather(
                        _feed(process, data),
                        frame.drain(process.stdout, out),
                        frame.drain(process.stderr, err),
                    )
                    await process.wait_closed()
            except TimeoutError:
                return EndedCommand(None, frame.output_of(bytes(out)) or b"", bytes(err))
            except frame.TooMuchOutput as error:
                raise TargetError(f"{self.where}: {error}") from None
            if process.returncode is None:
                self._lose("the connection broke off")
            printed = frame.output_of(bytes(out))
            if printed is None:
                login = f"{self._login.user}@{self._login.host}"
                raise TargetError(
                    f"{self.where}: {frame.no_output(bytes(out + err))}",
                    advice=f"check what `ssh {login} true` prints, and ForceCommand in its "
                    "sshd_config",
                )
            return EndedCommand(process.returncode, printed, bytes(err))

    @asynccontextmanager
    async def _process(
        self, argv: Sequence[str], **pipes: Any
    ) -> AsyncIterator[asyncssh.SSHClientProcess[bytes]]:
        """A started command, whose session is closed at the end. Raises TargetError on a loss."""
        try:
            while True:
                async with self._session() as connection:
                    try:
                        async with asyncio.timeout(SESSION_S):
                            process = await connection.client.create_process(
                                frame.framed(argv), encoding=None, **pipes
                            )
                    except TimeoutError:
                        # What may still begin there ends with it, after its other sessions.
                        connection.most = 0
                        raise TargetError(
                            f"{self.where}: opens no session within {SESSION_S:g} s",
                            advice="check its load, and its sshd's log",
                        ) from None
                    except asyncssh.ChannelOpenError as error:
                        if connection.closed or error.reason == _CLOSED:
                            self._lose(error)
                        # This sshd allows fewer sessions than usual; it must allow one.
                        if connection.open <= 1:
                            raise
                        connection.most = min(connection.most, connection.open - 1)
                        continue
                    try:
                        yield process
                    finally:
                        process.close()
                    return
        except _LOST as error:
            self._lose(error)
        except asyncssh.ChannelOpenError as error:
            raise TargetError(
                f"{self.where}: refuses a session: {error.reason}",
                advice="see MaxSessions and ForceCommand in its sshd_config",
            ) from error

    def start(
        self, argv: Sequence[str], *, stdin: int, stdout: int, stderr: IO[bytes]
    ) -> Future[int]:
        """Start a command as root with descriptors of this process, which are closed at its end.

        The result has its status, or TargetError when the host was lost. Raises TargetError.
        """
        started: Future[None] = Future()
        pipes = Pipes(stdin, stdout, stderr)
        ended = self.loop.submit(self._follow((*(self._root or ()), *argv), started, pipes))
        either: list[Future[Any]] = [ended, started]
        wait(either, return_when=FIRST_COMPLETED)
        if not started.done():
            ended.result()
        return ended

    async def _follow(self, argv: Sequence[str], started: Future[None], pipes: Pipes) -> int:
        feeding: asyncio.Task[None] | None = None
        try:
            async with self._process(argv) as process:
                started.set_result(None)
                feeding = asyncio.create_task(pipes.feed(process))
                await asyncio.gather(pipes.drain(process), pipes.log_stderr(process))
                await process.wait_closed()
                if process.returncode is None:
                    self._lose("the connection broke off")
                return process.returncode
        finally:
            try:
                if feeding is not None:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
            finally:
                pipes.close()  # also where the loop ends before

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a shell script as root on the host itself; see `Shell`."""
        argv = ("env", f"PATH={PATH}", "LC_ALL=C.UTF-8", "/bin/sh", "-ec", script, "sh", *words)
        shown = ("sh", "-ec", " ".join(script.split()), *words)
        return self._checked(argv, shown, stdin, timeout_s)

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file with the host's Python; see `Shell`."""
        argv = ("env", f"PATH={PATH}", "LC_ALL=C.UTF-8", self._python, "-I", "-c", source, *words)
        return self._checked(argv, (self._python, *words), stdin, timeout_s)

    def _checked(
        self, argv: Sequence[str], shown: Sequence[str], stdin: bytes | str, timeout_s: float
    ) -> Completed:
        done = self.run(argv, stdin=stdin, timeout_s=timeout_s)
        if done.code != 0:
            raise CommandFailed(self.name, shown, done.code, done.text)
        return Completed(done.out.decode(errors="replace"), done.err.decode(errors="replace"))


async def _feed(process: asyncssh.SSHClientProcess[bytes], data: bytes) -> None:
    """Write all input; a process that ends without reading it is no error."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for begin in range(0, len(data), 65536):
            process.stdin.write(data[begin : begin + 65536])
            await process.stdin.drain()
        process.stdin.write_eof()
