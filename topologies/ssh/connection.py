"""The connection to one real host, kept alive, and lost when the host stops answering."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

import asyncssh

from weighbridge.common import safe_files
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError, UsageError
from weighbridge.common.host import Completed
from weighbridge.common.quantities import show_bytes
from weighbridge.topologies.hardware import HostSpec, Reach, SshAccess

PASSPHRASE: Final = "WEIGHBRIDGE_SSH_PASSPHRASE"  # noqa: S105 - the name of a variable
KEEPALIVE_S: Final = 5
KEEPALIVE_MISSES: Final = 3
"""A host that stops answering is noticed after 15 to 20 s."""
CONNECT_S: Final = 15
LARGEST_KEY_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Login:
    """Where and as whom to log in."""

    name: str
    host: str
    """Name or address of the sshd."""
    port: int
    user: str
    key: Path | None
    known_hosts: Path
    jump: Login | None = None
    """The host through which it is reached."""

    @classmethod
    def of(cls, name: str, spec: HostSpec, access: SshAccess) -> Self:
        reach = spec.ssh or Reach()
        host = cls(
            name=name,
            host=reach.host or spec.address or "",
            port=reach.port or access.port,
            user=reach.user or access.user,
            key=Path(access.key).expanduser() if access.key is not None else None,
            known_hosts=Path(access.known_hosts).expanduser(),
        )
        jump = reach.jump or access.jump
        return host if jump is None else replace(host, jump=host._through(jump))

    def _through(self, jump: str) -> Login:
        user, _, place = jump.rpartition("@")
        parts = urlsplit(f"//{place}")
        return replace(
            self,
            name=f"jump host of {self.name}",
            host=parts.hostname or "",
            port=parts.port or 22,
            user=user or self.user,
        )

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port unless it is 22, for errors."""
        port = "" if self.port == 22 else f" port {self.port}"
        return f"{self.name} ({self.host}{port})"

    async def connect(self) -> asyncssh.SSHClientConnection:
        """A new connection; that to the jump host ends with it.

        Raises MissingPrerequisite, UsageError or TargetError saying what to do.
        """
        if self.jump is None:
            return await self._connect()
        tunnel = await self.jump.connect()
        try:
            client = await self._connect(tunnel)
        except BaseException:
            tunnel.close()
            raise
        client.set_tunnel(tunnel)
        return client

    async def _connect(
        self, tunnel: asyncssh.SSHClientConnection | None = None
    ) -> asyncssh.SSHClientConnection:
        options: dict[str, Any] = {}
        if self.key is not None:
            options = {"client_keys": [_private_key(self.key)], "agent_path": None}
        elif PASSPHRASE in os.environ:
            options = {"passphrase": os.environ[PASSPHRASE]}
        if not self.known_hosts.is_file():
            raise MissingPrerequisite(
                f"{self.where}: there is no {self.known_hosts} with its key", advice=self._add_key
            )
        try:
            return await asyncio.wait_for(
                asyncssh.connect(
                    self.host,
                    port=self.port,
                    username=self.user,
                    known_hosts=str(self.known_hosts),
                    preferred_auth="publickey",
                    keepalive_interval=KEEPALIVE_S,
                    keepalive_count_max=KEEPALIVE_MISSES,
                    connect_timeout=CONNECT_S,
                    login_timeout=CONNECT_S,
                    tunnel=tunnel or (),
                    **options,
                ),
                CONNECT_S + 5,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._unknown_key() from error
        except asyncssh.PermissionDenied as error:
            raise MissingPrerequisite(
                f"{self.where}: refuses the login of {self.user}: {error.reason}",
                advice=f"add your public key to {self.user}'s authorized_keys there, or choose "
                "another key (ssh: key)",
            ) from error
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            raise MissingPrerequisite(
                f"{self.where}: a private key cannot be read: {error}", advice=_unlock(error)
            ) from error
        except TimeoutError as error:
            raise TargetError(
                f"{self.where}: does not answer within {CONNECT_S} s",
                advice="check that it is up, and that no firewall is in between",
            ) from error
        except (OSError, asyncssh.Error) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise TargetError(
                f"{self.where}: cannot be reached: {what}",
                advice="check that it is up and runs sshd, and that its address is right",
            ) from error

    def _unknown_key(self) -> MissingPrerequisite:
        port = None if self.port == 22 else self.port
        if asyncssh.read_known_hosts(str(self.known_hosts)).match(self.host, "", port)[0]:
            known_name = self.host if self.port == 22 else f"'[{self.host}]:{self.port}'"
            return MissingPrerequisite(
                f"{self.where}: has another host key than in {self.known_hosts}: it was "
                "reinstalled, or this is not that host",
                advice=f"if you know why, remove the old key (ssh-keygen -f {self.known_hosts} -R "
                f"{known_name}) and add the new one",
            )
        return MissingPrerequisite(
            f"{self.where}: its host key is not in {self.known_hosts}", advice=self._add_key
        )

    @property
    def _add_key(self) -> str:
        port = "" if self.port == 22 else f"-p {self.port} "
        return (
            f"log in once by hand (ssh {port}{self.user}@{self.host}) and compare its fingerprint, "
            f"or: ssh-keyscan {port}{self.host} >>{self.known_hosts}"
        )


def _private_key(path: Path) -> asyncssh.SSHKey:
    try:
        data = safe_files.read_given(path, largest_bytes=LARGEST_KEY_BYTES)
        return asyncssh.import_private_key(data, os.environ.get(PASSPHRASE))
    except OSError as error:
        raise UsageError(f"the private key {path} cannot be read: {error.strerror}") from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise MissingPrerequisite(
            f"the private key {path} cannot be used: {error}", advice=_unlock(error)
        ) from error


def _unlock(error: Exception) -> str:
    if "bcrypt" in str(error):
        return (
            "install bcrypt beside weighbridge (pip install bcrypt), or load the key into "
            "ssh-agent and leave `key` out"
        )
    return f"set its passphrase in ${PASSPHRASE}, or load it into ssh-agent and leave `key` out"


# Separating the output of a command from what a host's login shell prints before it.


_MARK: Final = "weighbridge-begins-here"
_LINE: Final = f"{_MARK}\n".encode()
MOST_STRAY_BYTES: Final = 2**20
"""How much of the login shell's output is kept."""
MOST_BYTES: Final = 256 * 2**20
"""The limit for the output of a command: figures and lists, never data."""
_SHOWN: Final = 300


class TooMuchOutput(Exception):
    """A command prints more than the limit."""


def framed(argv: Sequence[str]) -> str:
    """A command line that marks where its output begins, then becomes the command."""
    return f"echo {_MARK}; exec {shlex.join(argv)}"


def output_of(out: bytes) -> bytes | None:
    """A command's own output, without the login shell's; None: the command never began."""
    _, mark, output = out.partition(_LINE)
    return output if mark else None


async def drain(reader: asyncssh.SSHReader[bytes], into: bytearray) -> None:
    """Read all output of a command. Raises TooMuchOutput."""
    while chunk := await reader.read(65536):
        into += chunk
        if len(into) > MOST_BYTES:
            raise TooMuchOutput(f"prints more than {show_bytes(MOST_BYTES)}")


async def skip_login(reader: asyncssh.SSHReader[bytes]) -> tuple[bytes, bool]:
    """Read up to the mark; returns what came after it and True, or everything and False."""
    before = b""
    while chunk := await reader.read(65536):
        # The mark may have come in two pieces.
        before = before[-MOST_STRAY_BYTES:] + chunk
        output = output_of(before)
        if output is not None:
            return output, True
    return before, False


def no_output(printed: bytes) -> str:
    """A message about what a login shell printed instead of running the command."""
    words = " ".join(printed.decode(errors="replace").split())[:_SHOWN]
    return "its shell did not run the command" + (f", and printed {words!r}" if words else "")


# The event loop of all connections of a deployment, in its own thread, and the pipes between a
# program on a real host and descriptors of this process.


Result = TypeVar("Result")


class EventLoop:
    """A loop in a daemon thread: a connection that hangs cannot keep the command from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="ssh", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop; raises what it raises. An interrupt cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine in the loop without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    @property
    def closed(self) -> bool:
        return self.loop.is_closed()

    def close(self) -> None:
        """End the loop and its thread. May be called more than once."""
        if self.closed:
            return
        self.do(_end_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for _ in range(3):  # the loop closes aborted connections in its next rounds
        await asyncio.sleep(0)


class Pipes:
    """Connects a remote program with descriptors of this process."""

    def __init__(self, stdin: int, stdout: int, stderr: IO[bytes]) -> None:
        self._stdin = os.fdopen(stdin, "rb", buffering=0)
        self._stdout = os.fdopen(stdout, "wb", buffering=0)
        self._stderr = stderr

    async def feed(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Pass on what is written here, and the end of it, to the program's stdin."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._stdin
        )
        try:
            # If it has ended or its host is lost, its status says so.
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                while chunk := await reader.read(65536):
                    process.stdin.write(chunk)
                    await process.stdin.drain()
                process.stdin.write_eof()
        finally:
            transport.close()

    async def drain(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Pass on the program's stdout; without a reader here it is discarded."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, self._stdout
        )
        # Wait until the pipe has taken each piece: a rest in the transport would be lost on close.
        transport.set_write_buffer_limits(0)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            chunk, found = await skip_login(process.stdout)
            if not found:
                if chunk:  # else its host was lost first, as its status says
                    self._stderr.write(f"{no_output(chunk)}\n".encode())
                return
            while chunk or (chunk := await process.stdout.read(65536)):
                if not transport.is_closing():
                    with contextlib.suppress(BrokenPipeError, ConnectionError):
                        writer.write(chunk)
                        await writer.drain()
                chunk = b""
        finally:
            transport.close()

    async def log_stderr(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        while chunk := await process.stderr.read(65536):
            self._stderr.write(chunk)
            self._stderr.flush()

    def close(self) -> None:
        """Close all descriptors, also those that a transport has closed already."""
        for file in (self._stdin, self._stdout, self._stderr):
            file.close()


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
        return (self.out + self.err).decode(errors="replace")


class _Connection:
    def __init__(self, client: asyncssh.SSHClientConnection) -> None:
        self.client = client
        self.open = 0
        self.most = SESSIONS

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self.client.is_closed()


class SshConnection:
    """A real host as its administrator sees it, outside of a deployment's view and slice: it runs
    any number of commands at once, with connections as needed.

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
        self._given_up = False
        self._connecting: asyncio.Task[asyncssh.SSHClientConnection] | None = None
        self._reached = False

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port unless it is 22, for errors."""
        return self._login.where

    @property
    def lost(self) -> bool:
        return self._lost is not None

    def open(self) -> None:
        """Connect, as root. Raises MissingPrerequisite, UsageError, TargetError with what to do."""
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

    def give_up(self, after_s: float) -> None:
        """Count the host as lost after this time, for good. A signal's handler may call it."""

        def give_up() -> None:
            self._given_up = True
            with contextlib.suppress(TargetError):
                self._lose("given up, as another signal asked to end")
            if self._connecting is not None:
                self._connecting.cancel()

        loop = self.loop.loop
        loop.call_soon_threadsafe(loop.call_later, after_s, give_up)

    def renew(self, within_s: float = CONNECT_S) -> None:
        """Forget that the host stopped answering, and connect again. Raises as `open`."""
        if self._given_up:
            self._check_lost()
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
        self._connecting = asyncio.create_task(self._login.connect())
        try:
            connection = _Connection(await self._connecting)
        except asyncio.CancelledError:
            if self._given_up:
                self._check_lost()
            raise
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
                        drain(process.stdout, out),
                        drain(process.stderr, err),
                    )
                    await process.wait_closed()
            except TimeoutError:
                return EndedCommand(None, output_of(bytes(out)) or b"", bytes(err))
            except TooMuchOutput as error:
                raise TargetError(f"{self.where}: {error}") from None
            if process.returncode is None:
                self._lose("the connection broke off")
            printed = output_of(bytes(out))
            if printed is None:
                login = f"{self._login.user}@{self._login.host}"
                raise TargetError(
                    f"{self.where}: {no_output(bytes(out + err))}",
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
                                framed(argv), encoding=None, **pipes
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
        """Run `/bin/sh -ec script sh words...` as root to its end; the script has the words as $1,
        $2 ... Secrets go by `stdin`.

        Raises CommandFailed on a status other than 0 or a timeout, TargetError when the host does
        not answer.
        """
        argv = ("env", f"PATH={PATH}", "LC_ALL=C.UTF-8", "/bin/sh", "-ec", script, "sh", *words)
        shown = ("sh", "-ec", " ".join(script.split()), *words)
        return self._checked(argv, shown, stdin, timeout_s)

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file (Python 3.9, standard library, up to 100 KB) as root to its
        end. It has the words in sys.argv[1:]. Raises as `sh`.
        """
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
