"""The connection to one real host: found by its key, kept alive, and given up in words when the
host stops answering.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import asyncssh

from weighbridge.common.errors import CommandFailed, MissingMeans, TargetError, UsageError
from weighbridge.common.host import Completed
from weighbridge.topologies.hardware import HostSpec, SshAccess
from weighbridge.topologies.ssh import frame
from weighbridge.topologies.ssh.event_loop import EventLoop, Pipes

PASSPHRASE: Final = "WEIGHBRIDGE_SSH_PASSPHRASE"  # noqa: S105 - the name of a variable
KEEPALIVE_S: Final = 5
KEEPALIVE_MISSES: Final = 3
"""A host that stops answering is known to have after 15 to 20 s."""
CONNECT_S: Final = 15
SESSIONS: Final = 8
"""At once on one connection: sshd's MaxSessions is 10 where nobody has changed it (sshd_config(5)).
"""
CONNECTIONS: Final = 6
"""At most to one host; what is asked beyond their sessions waits."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_CLOSED: Final = "SSH connection closed"
"""What asyncssh says of a session that was asked for on a connection that ends meanwhile."""
_LOST: Final = (asyncssh.DisconnectError, ConnectionError, BrokenPipeError)


@dataclass(frozen=True)
class EndedCommand:
    """A remote command that has ended.

    `code` is negative when a signal ended it, None when it took too long.
    """

    code: int | None
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """All that it said."""
        return (self.out + self.err).decode(errors="replace")


class _Line:
    """One SSH connection and how many sessions are open on it."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection
        self.open = 0
        self.most = SESSIONS


class SshConnection:
    """The way to one host: a `Shell`. Commands of any number at once; its connections are made as
    they are wanted.

    Once the host has stopped answering, all that is asked raises TargetError at once, until
    `renew`.
    """

    def __init__(self, name: str, spec: HostSpec, access: SshAccess, loop: EventLoop) -> None:
        reach = spec.ssh
        self.name = name
        self.address = spec.address or ""
        self.target = (reach.host if reach is not None else None) or self.address
        self.port = (reach.port if reach is not None else None) or access.port
        self.user = (reach.user if reach is not None else None) or access.user
        self.loop = loop
        self._access = access
        self._lines: list[_Line] = []
        self._lock = asyncio.Lock()
        self._slots = asyncio.Semaphore(SESSIONS * CONNECTIONS)
        self._root: tuple[str, ...] | None = () if self.user == "root" else None
        self._lost: tuple[float, str] | None = None
        self._reached = False

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port where it is not 22: what errors begin with."""
        port = "" if self.port == 22 else f" port {self.port}"
        return f"{self.name} ({self.target}{port})"

    @property
    def lost(self) -> bool:
        """Whether the host has stopped answering."""
        return self._lost is not None

    # opening and ending
    # ------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, and see that commands run as root.

        Raises MissingMeans, UsageError or TargetError saying what to do.
        """
        self.loop.do(self._ready())
        if self._root is None:
            done = self.loop.do(self._run(("sudo", "-n", "true"), b"", CONNECT_S))
            if done.code:
                raise MissingMeans(
                    f"{self.where}: {self.user} is not root, and sudo says: "
                    f"{done.text.strip() or f'status {done.code}'}",
                    advice=f"let {self.user} use sudo without a password there (NOPASSWD), or log "
                    "in as root (ssh: user)",
                )
            self._root = ("sudo", "-n", "--")

    async def _ready(self) -> None:
        async with self._session():
            pass

    def close(self) -> None:
        """Close all connections. May be called more than once."""
        self.loop.do(self._drop())

    def renew(self, within_s: float = CONNECT_S) -> None:
        """Forget that the host has stopped answering, and connect anew. Raises as `open`."""
        self.loop.do(self._drop())
        before, self._lost = self._lost, None
        try:
            self.loop.do(asyncio.wait_for(self._ready(), within_s))
        except TimeoutError:
            self._lost = before or (
                time.monotonic() - within_s,
                f"no connection within {within_s:g} s",
            )
            self._still_there()

    async def _drop(self) -> None:
        lines, self._lines = self._lines, []
        for line in lines:
            line.connection.abort()
        for line in lines:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(line.connection.wait_closed(), 1)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[_Line]:
        """A connection with room for one more session."""
        self._still_there()
        async with self._slots:
            async with self._lock:
                line = next(
                    (one for one in self._lines if one.open < one.most and not _closed(one)), None
                )
                if line is None:
                    # Asked again: who waited here may have waited for a connection that could not
                    # be made.
                    self._still_there()
                    self._lines = [one for one in self._lines if not _closed(one)]
                    line = await self._another()
                line.open += 1
            try:
                yield line
            finally:
                line.open -= 1

    async def _another(self) -> _Line:
        try:
            line = _Line(await self._connect())
        except TargetError as error:
            if self._reached:
                self._lost = (time.monotonic(), error.message)
            raise
        self._reached = True
        self._lines.append(line)
        return line

    async def _connect(self) -> asyncssh.SSHClientConnection:
        known = Path(self._access.known_hosts).expanduser()  # noqa: ASYNC240 - a look into the environment
        options: dict[str, Any] = {}
        if self._access.key is not None:
            options = {"client_keys": [self._key(self._access.key)], "agent_path": None}
        elif PASSPHRASE in os.environ:
            options = {"passphrase": os.environ[PASSPHRASE]}
        if not known.is_file():
            raise MissingMeans(
                f"{self.where}: there is no {known} to know it by", advice=self._advice_key(known)
            )
        try:
            return await asyncio.wait_for(
                asyncssh.connect(
                    self.target,
                    port=self.port,
                    username=self.user,
                    known_hosts=str(known),
                    preferred_auth="publickey",
                    keepalive_interval=KEEPALIVE_S,
                    keepalive_count_max=KEEPALIVE_MISSES,
                    connect_timeout=CONNECT_S,
                    login_timeout=CONNECT_S,
                    **options,
                ),
                CONNECT_S + 5,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._unknown(known) from error
        except asyncssh.PermissionDenied as error:
            raise MissingMeans(
                f"{self.where}: refuses to let {self.user} in: {error.reason}",
                advice=f"put a public key of yours into {self.user}'s authorized_keys there, or "
                "say which key it is (ssh: key)",
            ) from error
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            raise MissingMeans(
                f"{self.where}: a private key cannot be read: {error}", advice=_passphrase(error)
            ) from error
        except TimeoutError as error:
            raise TargetError(
                f"{self.where}: does not answer within {CONNECT_S} s",
                advice="see that it is up, and that no firewall is between",
            ) from error
        except (OSError, asyncssh.Error) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise TargetError(
                f"{self.where}: cannot be reached: {what}",
                advice="see that it is up and runs sshd, and that its address is right",
            ) from error

    def _key(self, name: str) -> asyncssh.SSHKey:
        path = Path(name).expanduser()
        try:
            return asyncssh.read_private_key(str(path), os.environ.get(PASSPHRASE))
        except OSError as error:
            raise UsageError(f"the private key {path} cannot be read: {error.strerror}") from error
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            raise MissingMeans(
                f"the private key {path} cannot be used: {error}", advice=_passphrase(error)
            ) from error

    def _unknown(self, known: Path) -> MissingMeans:
        """Of a host whose own key is not known, or is another than the known one."""
        found = asyncssh.read_known_hosts(str(known)).match(
            self.target, "", None if self.port == 22 else self.port
        )
        if found[0]:
            return MissingMeans(
                f"{self.where}: has another host key than {known} says: it was installed anew, or "
                "this is not that host",
                advice=f"if you know why, remove the old one (ssh-keygen -f {known} -R "
                f"{self._known_name}) and add its own",
            )
        return MissingMeans(
            f"{self.where}: its host key is not in {known}", advice=self._advice_key(known)
        )

    def _advice_key(self, known: Path) -> str:
        port = "" if self.port == 22 else f"-p {self.port} "
        return (
            f"log in once by hand (ssh {port}{self.user}@{self.target}) and compare its "
            "fingerprint, "
            f"or: ssh-keyscan {port}{self.target} >>{known}"
        )

    @property
    def _known_name(self) -> str:
        return self.target if self.port == 22 else f"'[{self.target}]:{self.port}'"

    # the host going away
    # -----------------------------------------------------------------------------------------------------

    def _still_there(self) -> None:
        if self._lost is not None:
            since, why = self._lost
            raise TargetError(
                f"{self.where}: stopped answering {time.monotonic() - since:.0f} s ago ({why})",
                advice="see whether it is up and its network is; what the deployment has there is "
                "taken away by "
                "`weighbridge down --hardware FILE` when it is back",
            )

    def _gone(self, error: BaseException | str) -> NoReturn:
        """Take note of the loss, which ends all other sessions too, and raise TargetError."""
        if self._lost is None:
            self._lost = (time.monotonic(), str(error) or type(error).__name__)
            lines, self._lines = self._lines, []
            for line in lines:
                line.connection.abort()
        self._still_there()
        raise AssertionError  # the line above raises

    # commands
    # ----------------------------------------------------------------------------------------------------------------

    def run(
        self, argv: Sequence[str], *, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> EndedCommand:
        """Run a command as root to its end, whatever its status. Raises TargetError when the host
        does not answer.

        One that takes too long is left: `EndedCommand.code` is None, and who knows how ends it.
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
                return EndedCommand(None, frame.below(bytes(out)) or b"", bytes(err))
            except frame.TooMuch as error:
                raise TargetError(f"{self.where}: {error}") from None
            if process.returncode is None:
                self._gone("the connection broke off")
            printed = frame.below(bytes(out))
            if printed is None:
                advice = (
                    f"see what its shell makes of `ssh {self.user}@{self.target} true`, and "
                    "ForceCommand in its sshd_config"
                )
                raise TargetError(f"{self.where}: {frame.stray(bytes(out + err))}", advice=advice)
            return EndedCommand(process.returncode, printed, bytes(err))

    @asynccontextmanager
    async def _process(
        self, argv: Sequence[str], **pipes: Any
    ) -> AsyncIterator[asyncssh.SSHClientProcess[bytes]]:
        """A command that has been started.

        Its session is closed at the end; a loss on the way is told as that.
        """
        try:
            while True:
                async with self._session() as line:
                    try:
                        process = await line.connection.create_process(
                            frame.framed(argv), encoding=None, **pipes
                        )
                    except asyncssh.ChannelOpenError as error:
                        if _closed(line) or error.reason == _CLOSED:
                            self._gone(error)
                        # sshd allows fewer sessions than is usual: none is refused for that as long
                        # as one is open.
                        if line.open <= 1:
                            raise
                        line.most = line.open - 1
                        continue
                    try:
                        yield process
                    finally:
                        process.close()
                    return
        except _LOST as error:
            self._gone(error)
        except asyncssh.ChannelOpenError as error:
            raise TargetError(
                f"{self.where}: refuses a session: {error.reason}",
                advice="see MaxSessions and ForceCommand in its sshd_config",
            ) from error

    def start(
        self, argv: Sequence[str], *, stdin: int, stdout: int, stderr: IO[bytes]
    ) -> Future[int]:
        """Start a command as root with descriptors of this process, which are closed at its end.
        Raises TargetError.

        What is returned has its status, or TargetError when the host was lost.
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
                await asyncio.gather(pipes.drain(process), pipes.note(process))
                await process.wait_closed()
                if process.returncode is None:
                    self._gone("the connection broke off")
                return process.returncode
        finally:
            try:
                if feeding is not None:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
            finally:
                pipes.close()  # also where the loop ends while this is waited for

    # the Shell
    # ---------------------------------------------------------------------------------------------------------------

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a shell script as root on the host itself; see `Shell`."""
        argv = ("env", f"PATH={PATH}", "LC_ALL=C.UTF-8", "/bin/sh", "-ec", script, "sh", *words)
        return self._checked(argv, _told(script, words), stdin, timeout_s)

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file by the host's Python; see `Shell`."""
        argv = (
            "env",
            f"PATH={PATH}",
            "LC_ALL=C.UTF-8",
            self._access.python,
            "-I",
            "-c",
            source,
            *words,
        )
        return self._checked(argv, (self._access.python, *words), stdin, timeout_s)

    def _checked(
        self, argv: Sequence[str], told: Sequence[str], stdin: bytes | str, timeout_s: float
    ) -> Completed:
        done = self.run(argv, stdin=stdin, timeout_s=timeout_s)
        if done.code != 0:
            raise CommandFailed(self.name, told, done.code, done.text)
        return Completed(done.out.decode(errors="replace"), done.err.decode(errors="replace"))


def _passphrase(error: Exception) -> str:
    """What to do about a key that is locked.

    OpenSSH's own form of such keys is read with the help of bcrypt alone.
    """
    if "bcrypt" in str(error):
        return (
            "install bcrypt beside weighbridge (pip install bcrypt), or have ssh-agent hold "
            "the key and leave `key` out"
        )
    return (
        f"its passphrase is asked for in ${PASSPHRASE}, or ssh-agent may hold it (then leave "
        "`key` out)"
    )


def _told(script: str, words: Sequence[str]) -> tuple[str, ...]:
    return ("sh", "-ec", " ".join(script.split()), *words)


def _closed(line: _Line) -> bool:
    return line.connection.is_closed()


async def _feed(process: asyncssh.SSHClientProcess[bytes], data: bytes) -> None:
    """Give it all its input; one that ends without reading it is no error."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for begin in range(0, len(data), 65536):
            process.stdin.write(data[begin : begin + 65536])
            await process.stdin.drain()
        process.stdin.write_eof()
