"""A real host by OpenSSH's own client: a connection of it is a master, on which each command has a
session.

Keys, agents, jump hosts and ~/.ssh/config are ssh's own business. A master ends when its host is
silent for 15 to 20 s, and all its sessions with it.
"""

from __future__ import annotations

import math
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Final, NoReturn
from urllib.parse import urlsplit

from weighbridge.common import safe_files
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    TargetError,
    UsageError,
    WeighbridgeError,
)
from weighbridge.common.host import Completed
from weighbridge.common.quantities import show_bytes
from weighbridge.topologies.hardware import HostSpec, Reach, SshAccess

LOST: Final = 255
"""The status of a command whose host stopped answering, as ssh(1) reports it."""
CONNECT_S: Final = 15
SESSION_S: Final = 30.0
"""Time for an sshd to open a session and start its command."""
SESSIONS: Final = 8
"""At once on one connection: sshd's default of MaxSessions is 10 (sshd_config(5))."""
ENDED_S: Final = 2.0
"""Within which a master ends after its sessions have."""
LARGEST_KEY_BYTES: Final = 64 * 1024
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAX_BYTES: Final = 256 * 2**20
"""The limit for the output of a command: figures and lists, never data."""
MAX_STRAY_BYTES: Final = 2**20
"""How much a login shell may print before a command begins."""
_SHOWN: Final = 300

_MARK: Final = "weighbridge-begins-here"
_LINE: Final = f"{_MARK}\n".encode()
# A status of 255 is ssh's own: it says that the host was lost. Of a signal ssh says nothing but
# that, a shell says 128 + N.
_STATUS: Final = '"$@"; status=$?; [ $status != 255 ] || status=254; exit $status'
_OPTIONS: Final = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "VerifyHostKeyDNS": "no",
    "UpdateHostKeys": "no",
    "GlobalKnownHostsFile": "/dev/null",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ControlPersist": "no",
    "PermitLocalCommand": "no",
    "ClearAllForwardings": "yes",
    "LogLevel": "ERROR",
}
_SESSION: Final = ("-F", "none", "-T", "-o", "LogLevel=QUIET", "-o", "ProxyCommand=false")
"""Of a session: ~/.ssh/config is for masters alone, and where a master opens no session, ssh must
not log in by itself: that connection would outlive this command.
"""
# It ends with this command, also where that is killed: as soon as this shell's stdin ends, or some
# seconds after a line that says how many. The log of its jump host's ssh is printed last.
_MASTER: Final = """
folder=$1
shift
exec 3<&0
"$@" </dev/null 3<&- &
ssh=$!
{ read -r delay; sleep "${delay:-0}"; kill $ssh; } <&3 3<&- 2>/dev/null &
exec 3<&- </dev/null
wait $ssh
kill $! 2>/dev/null
echo "by its jump host:" >&2
cat "$folder/jump" >&2 2>/dev/null
rm -rf "$folder"
"""


@dataclass(frozen=True)
class Login:
    """Where and as whom to log in."""

    name: str
    host: str
    """Name or address of the sshd."""
    port: int
    user: str

    def through(self, jump: str) -> Login:
        """The jump host before this host: `[USER@]HOST[:PORT]`."""
        user, _, place = jump.rpartition("@")
        parts = urlsplit(f"//{place}")
        name, host = f"jump host of {self.name}", parts.hostname or ""
        return replace(self, name=name, host=host, port=parts.port or 22, user=user or self.user)

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port unless it is 22, for errors."""
        port = "" if self.port == 22 else f" port {self.port}"
        return f"{self.name} ({self.host}{port})"

    @property
    def words(self) -> tuple[str, ...]:
        return ("-l", self.user, "-p", str(self.port), self.host)

    def refusal(self, said: str, known: Path, key: Path | None) -> WeighbridgeError:
        """What ssh said, as an error with what to do."""
        port = "" if self.port == 22 else f"-p {self.port} "
        place = self.host if self.port == 22 else f"'[{self.host}]:{self.port}'"
        why = (said.splitlines() or ["no reason given"])[-1].rpartition(": ")[2]
        kind: type[WeighbridgeError] = MissingPrerequisite
        if "IDENTIFICATION HAS CHANGED" in said:
            what = f"has another host key than in {known}: it was reinstalled, or this is not that "
            what += "host"
            advice = f"if you know why, remove the old key (ssh-keygen -f {known} -R {place}) and "
            advice += "add the new one"
        elif "host key is known" in said or not known.is_file():
            there = known.is_file()
            what = (
                f"its host key is not in {known}" if there else f"there is no {known} with its key"
            )
            advice = f"log in once by hand (ssh {port}{self.user}@{self.host}) and compare its "
            advice += f"fingerprint, or: ssh-keyscan {port}{self.host} >>{known}"
        elif "Permission denied" in said and key is not None and _is_locked(key):
            what = f"the private key {key} has a passphrase, and ssh-agent does not have that key"
            advice = f"load it into ssh-agent: ssh-add {key}"
        elif "Permission denied" in said:
            what = f"refuses the login of {self.user}: {why}"
            advice = (
                f"add your public key to {self.user}'s authorized_keys there, or choose another "
            )
            advice += "key (ssh: key)"
        else:
            kind = TargetError
            what = f"cannot be reached: {why}"
            advice = "check that it is up and runs sshd, and that its address is right"
            if re.search(r"timed out|timeout", said, re.IGNORECASE):
                what = f"does not answer within {CONNECT_S} s"
                advice = "check that it is up, and that no firewall is in between"
        return kind(f"{self.where}: {what}", advice=advice)


def _quoted(path: Path) -> str:
    """A path as the value of an option of ssh."""
    return '"' + str(path).replace("%", "%%") + '"'


def _is_locked(key: Path) -> bool:
    words = ("ssh-keygen", "-y", "-P", "", "-f", str(key))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "passphrase" in done.stderr


def _check_key(key: Path) -> None:
    try:
        safe_files.read_given(key, largest_bytes=LARGEST_KEY_BYTES)
    except OSError as error:
        raise UsageError(f"the private key {key} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class EndedCommand:
    """A remote command that has ended. `code` is 128 + N for a signal, None for a timeout."""

    code: int | None
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return (self.out + self.err).decode(errors="replace")


class RemoteProgram(subprocess.Popen[bytes]):
    """A `PipedProcess` on a real host; when the host is lost, its pipes end with status LOST, and
    the last line of its log says why.
    """

    stdout: IO[bytes]
    begun = False
    _noted = False

    def __init__(
        self,
        ssh: Sequence[str],
        *,
        stdin: IO[bytes] | int | None,
        stderr: IO[bytes] | None,
        why_lost: Callable[[], str],
        send: Callable[[int], None],
        log: Path | None,
    ) -> None:
        self._why_lost, self._send, self._log = why_lost, send, log
        pipe = subprocess.PIPE
        super().__init__(ssh, stdin=stdin, stdout=pipe, stderr=stderr, start_new_session=True)

    def skip_login(self, within_s: float) -> str:
        """Read up to where the command begins; returns what the login shell printed instead of it.

        Nothing beyond is read: others poll the descriptor. Raises TimeoutExpired.
        """
        seen, until_s = bytearray(), time.monotonic() + within_s
        while not seen.endswith(_LINE):
            if not _readable(self.stdout, until_s - time.monotonic()):
                raise subprocess.TimeoutExpired(self.args, within_s)
            byte = os.read(self.stdout.fileno(), 1)
            if not byte or len(seen) > MAX_STRAY_BYTES:
                return " ".join(seen.decode(errors="replace").split())[:_SHOWN]
            seen += byte
        self.begun = True
        return ""

    def poll(self) -> int | None:
        return self._ended(super().poll())

    def wait(self, timeout: float | None = None) -> int:
        return self._ended(super().wait(timeout)) or 0

    def _ended(self, code: int | None) -> int | None:
        if code == LOST and self.begun and not self._noted:
            self._noted = True
            self.note(self._why_lost())
        return code

    def note(self, line: str) -> None:
        """Add a line to its log."""
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"{line}\n")

    def send_signal(self, sig: int) -> None:
        """Signal it; one that has ended or whose host is lost is no error. Raises TargetError."""
        if self.poll() is not None:
            return
        try:
            self._send(sig)
        except TargetError:
            if self.poll() is None:
                raise

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def abandon(self) -> int:
        """End its session, which may leave it running there; returns the status of ssh."""
        if super().poll() is None:
            super().send_signal(signal.SIGKILL)
        self.stdout.close()
        if self.stdin is not None:
            self.stdin.close()
        return super().wait()

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        with suppress(BrokenPipeError):  # it ended before it read everything
            if self.stdin is not None:
                self.stdin.close()
        self.wait()


def _readable(file: IO[bytes], within_s: float) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _memory_file(data: bytes = b"") -> IO[bytes]:
    """A file that is on no disk: what commands are given may be secret."""
    file = os.fdopen(os.memfd_create("ssh"), "w+b")
    file.write(data)
    file.seek(0)
    return file


class _Master:
    """A connection: an ssh whose socket others use. It may have `most` sessions."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.socket = folder / "ssh"
        self.most = SESSIONS
        self.sessions: list[RemoteProgram] = []
        self.closed = False
        self._folder = folder
        self._log = _memory_file()
        self._process = subprocess.Popen(
            ("/bin/sh", "-c", _MASTER, "sh", str(folder), *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,
        )

    def ended(self, within_s: float = 0) -> bool:
        """Whether it ends within some seconds."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self._process.returncode is not None

    def said(self) -> tuple[str, str]:
        """What it has said, and its jump host's ssh."""
        self._log.seek(0)
        text = self._log.read().decode(errors="replace")
        own, _, by_jump = text.partition("by its jump host:")
        return own.strip(), by_jump.strip()

    def end_in(self, seconds: float) -> None:
        """A signal's handler may call it."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        with suppress(OSError, ValueError):  # it has ended
            os.write(self._process.stdin.fileno(), f"{max(0.0, seconds):.3f}\n".encode())

    def end(self) -> None:
        """End it, and its sessions with it."""
        if not self.ended():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def close(self) -> None:
        self.closed = True
        self.end()
        with self._process, self._log:
            pass
        shutil.rmtree(self._folder, ignore_errors=True)


class SshConnection:
    """A real host as its administrator sees it, outside of a deployment's view and slice: it runs
    any number of commands at once, with connections as needed.

    After the host has stopped answering, everything raises TargetError at once, until `renew`.
    """

    def __init__(self, name: str, spec: HostSpec, access: SshAccess) -> None:
        reach = spec.ssh or Reach()
        self.name = name
        self.address = spec.address or ""
        host, user = reach.host or self.address, reach.user or access.user
        self._login = Login(name, host, reach.port or access.port, user)
        jump = reach.jump or access.jump
        self._jump = self._login.through(jump) if jump is not None else None
        self._key = Path(access.key).expanduser() if access.key is not None else None
        self._known = Path(access.known_hosts).expanduser()
        self._python = access.python
        self._masters: list[_Master] = []
        self._lock = threading.Lock()
        self._root: tuple[str, ...] = ()
        self._lost: tuple[float, str] | None = None
        self._gives_up_at = math.inf
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
        self.reach()
        user = self._login.user
        if user == "root" or self._root:
            return
        done = self.run(("sudo", "-n", "true"), timeout_s=CONNECT_S)
        if done.code:
            said = done.text.strip() or f"status {done.code}"
            raise MissingPrerequisite(
                f"{self.where}: {user} is not root, and sudo says: {said}",
                advice=f"let {user} use sudo without a password there (NOPASSWD), or log in as "
                "root (ssh: user)",
            )
        self._root = ("sudo", "-n", "--")

    def reach(self, within_s: float | None = None) -> None:
        """Connect, as whom ever the login is: commands run as that user. Raises as `open`."""
        with self._lock:
            self._free_master(within_s)

    def close(self) -> None:
        """Close all connections. May be called more than once."""
        masters, self._masters = self._masters, []
        for master in masters:
            master.close()

    def give_up(self, after_s: float) -> None:
        """Count the host as lost after this time, for good. A signal's handler may call it."""
        self._gives_up_at = time.monotonic() + after_s
        for master in tuple(self._masters):
            master.end_in(after_s)

    def renew(self, within_s: float = CONNECT_S) -> None:
        """Forget that the host stopped answering, and connect again. Raises as `open`."""
        if self._given_up:
            self._lose()
        self.close()
        before, self._lost = self._lost, None
        try:
            self.reach(within_s)
        except TargetError:
            self._lost = before or self._lost
            raise

    @property
    def _given_up(self) -> bool:
        return time.monotonic() >= self._gives_up_at

    def _prune(self) -> None:
        for master in tuple(self._masters):
            master.sessions = [program for program in master.sessions if program.poll() is None]
            if master.ended() or master.most == len(master.sessions) == 0:
                self._masters.remove(master)
                master.close()

    def _free_master(self, within_s: float | None = None) -> _Master:
        """A connection with room for one more session, a new one if need be."""
        self._prune()
        self._check_lost()
        for master in self._masters:
            if len(master.sessions) < master.most:
                return master
        try:
            master = self._connect(CONNECT_S + 5 if within_s is None else within_s)
        except TargetError as error:
            if self._given_up:
                self._lose()
            if self._reached:
                self._lost = (time.monotonic(), error.message)
            raise
        self._reached = True
        self._masters.append(master)
        if self._gives_up_at < math.inf:
            master.end_in(self._gives_up_at - time.monotonic())
        return master

    def _connect(self, within_s: float) -> _Master:
        if shutil.which("ssh") is None:
            raise MissingPrerequisite(
                "ssh is not installed here, and real hosts are reached with it",
                advice="install OpenSSH's client (Debian and Ubuntu: openssh-client)",
            )
        if self._key is not None:
            _check_key(self._key)
        if not self._known.is_file():
            raise self._refusal(self._jump or self._login, "")
        # A socket's path has at most 108 bytes, and ssh adds 17 for a while: not $TMPDIR.
        folder = Path(tempfile.mkdtemp(prefix="weighbridge-", dir="/tmp"))
        master = _Master(folder, self._words(folder))
        until_s = time.monotonic() + within_s
        while not master.socket.exists():
            fault = self._fault(master, until_s)
            if fault is not None:
                master.close()
                raise fault
            time.sleep(0.01)
        return master

    def _fault(self, master: _Master, until_s: float) -> WeighbridgeError | None:
        if self._given_up or time.monotonic() > until_s:
            return self._refusal(self._login, "timed out")
        if not master.ended():
            return None
        own, by_jump = master.said()
        if not by_jump or self._jump is None:
            return self._refusal(self._login, own)
        # The jump host is fine where only it cannot reach the host behind it.
        behind = "forwarding failed" in by_jump
        return self._refusal(self._login if behind else self._jump, by_jump)

    def _words(self, folder: Path) -> tuple[str, ...]:
        options = {**_OPTIONS, "UserKnownHostsFile": _quoted(self._known)}
        options["ConnectTimeout"] = f"{max(1, CONNECT_S):.0f}"
        ssh = ["ssh"]
        for name, value in options.items():
            ssh += ["-o", f"{name}={value}"]
        home = Path.home()
        if self._key is not None:
            ssh += ["-o", "IdentitiesOnly=yes", "-o", f"IdentityFile={_quoted(self._key)}"]
        elif home != Path(pwd.getpwuid(os.getuid()).pw_dir):
            # ssh itself looks in the home of /etc/passwd alone, also where $HOME says another.
            for name in ("id_ed25519", "id_ecdsa", "id_rsa"):
                if (key := home / ".ssh" / name).is_file():
                    ssh += ["-o", f"IdentityFile={_quoted(key)}"]
        through: tuple[str, ...] = ()
        if self._jump is not None:
            words = shlex.join((*ssh, "-E", str(folder / "jump"), *self._jump.words[:-1]))
            words = words.replace("%", "%%")
            through = ("-o", f"ProxyCommand={words} -W '[%h]:%p' {self._jump.host}")
        return (*ssh, *through, "-M", "-N", "-T", "-S", str(folder / "ssh"), *self._login.words)

    def _refusal(self, login: Login, said: str) -> WeighbridgeError:
        return login.refusal(said, self._known, self._key)

    def _check_lost(self) -> None:
        if self._lost is not None:
            since, why = self._lost
            raise TargetError(
                f"{self.where}: stopped answering {time.monotonic() - since:.0f} s ago ({why})",
                advice="check it and its network; when it is back, `weighbridge down --hardware "
                "FILE` tears down what the deployment has there",
            )

    def _lose(self, master: _Master | None = None) -> NoReturn:
        """Record the loss, which ends all other sessions too, and raise TargetError."""
        if self._lost is None:
            said = "" if master is None else master.said()[0]
            why = said.splitlines()[-1].strip() if said else "the connection broke off"
            if self._given_up:
                why = "given up, as another signal asked to end"
            self._lost = (time.monotonic(), why)
            for other in tuple(self._masters):
                other.end()
        self._check_lost()
        raise AssertionError  # the line above raises

    def _why_broken(self, master: _Master) -> str:
        if master.closed:
            return f"{self.where}: its host was released while it ran"
        if not master.ended(ENDED_S):
            return f"{self.where}: its session ended without a status"
        try:
            self._lose(master)
        except TargetError as error:
            return error.message

    def _start(
        self,
        argv: Sequence[str],
        *,
        stdin: IO[bytes] | int | None,
        stderr: IO[bytes] | None = None,
        log: Path | None = None,
        send: Callable[[int], None] = lambda _: None,
    ) -> tuple[RemoteProgram, str]:
        """Start a command as root and wait until it begins; if its login shell does not run it, it
        has ended, and this is why.
        """
        words = ("/bin/sh", "-c", _STATUS, "sh", *self._root, *argv)
        line = f"echo {_MARK}; exec {shlex.join(words)}"
        while True:
            with self._lock:
                master = self._free_master()
                others = len(master.sessions)
                program = RemoteProgram(
                    ("ssh", *_SESSION, "-S", str(master.socket), self._login.host, "--", line),
                    stdin=stdin,
                    stderr=stderr,
                    why_lost=partial(self._why_broken, master),
                    send=send,
                    log=log,
                )
                master.sessions.append(program)
            try:
                printed = program.skip_login(SESSION_S)
            except BaseException as error:
                program.abandon()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                # What may still begin there ends with its connection, after its other sessions.
                master.most = 0
                with self._lock:
                    self._prune()
                raise TargetError(
                    f"{self.where}: opens no session within {SESSION_S:g} s",
                    advice="check its load, and its sshd's log",
                ) from None
            if program.begun:
                return program, ""
            if program.wait() != LOST:
                return program, f"its shell did not run the command, and printed {printed!r}"
            program.abandon()
            # This sshd allows fewer sessions than usual; it must allow one.
            others = max(others, len(master.sessions) - 1)
            if master.ended(ENDED_S):
                self._lose(master)
            if not others:
                raise TargetError(
                    f"{self.where}: refuses a session",
                    advice="see MaxSessions and ForceCommand in its sshd_config",
                )
            master.most = min(master.most, others)

    def run(
        self, argv: Sequence[str], *, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> EndedCommand:
        """Run a command as root to its end, whatever its status.

        After a timeout it is left running, with `EndedCommand.code` None: the caller ends it.
        Raises TargetError when the host does not answer.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with _memory_file(data) as given, _memory_file() as errors:
            program, fault = self._start(argv, stdin=given, stderr=errors)
            try:
                code, out = self._collected(program, timeout_s, errors)
            finally:
                program.abandon()
            errors.seek(0)
            err = errors.read()
        if fault:
            said = " ".join(err.decode(errors="replace").split())[:_SHOWN]
            login = f"{self._login.user}@{self._login.host}"
            raise TargetError(
                f"{self.where}: {fault} {said}".strip(),
                advice=f"check what `ssh {login} true` prints, and ForceCommand in its sshd_config",
            )
        if code == LOST:
            self._check_lost()
            raise TargetError(f"{self.where}: a command ended without a status")
        return EndedCommand(code, out, err)

    def _collected(
        self, program: RemoteProgram, timeout_s: float, errors: IO[bytes]
    ) -> tuple[int | None, bytes]:
        out, until_s = bytearray(), time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            if _readable(program.stdout, min(left_s, 1)):
                chunk = os.read(program.stdout.fileno(), 65536)
                out += chunk
                if not chunk:
                    with suppress(subprocess.TimeoutExpired):
                        return program.wait(left_s), bytes(out)
            if len(out) + os.fstat(errors.fileno()).st_size > MAX_BYTES:
                raise TargetError(f"{self.where}: prints more than {show_bytes(MAX_BYTES)}")
        return None, bytes(out)

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, send: Callable[[int], None]
    ) -> RemoteProgram:
        """Start a command as root with pipes here; `send` signals it, KILL with all it started.
        Raises TargetError.
        """
        with stderr.open("ab") as log:
            program, fault = self._start(
                argv, stdin=subprocess.PIPE, stderr=log, log=stderr, send=send
            )
        if fault:
            program.note(fault)
        return program

    def pass_through(self, argv: Sequence[str]) -> int:
        """Run a command as root with this command's own stdin, stdout and stderr; returns its
        status. Raises TargetError.
        """
        program, fault = self._start(argv, stdin=None)
        try:
            while chunk := os.read(program.stdout.fileno(), 65536):
                sys.stdout.buffer.write(chunk)
                sys.stdout.flush()
            code = program.wait()
        finally:
            program.abandon()
        self._check_lost()
        if fault:
            raise TargetError(f"{self.where}: {fault}")
        return code

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run `/bin/sh -ec script sh words...` as root to its end; the script has the words as $1,
        $2 ... Secrets go by `stdin`.

        Raises CommandFailed on a status other than 0 or a timeout, TargetError when the host does
        not answer.
        """
        shown = ("sh", "-ec", " ".join(script.split()), *words)
        return self._checked(("/bin/sh", "-ec", script, "sh", *words), shown, stdin, timeout_s)

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file (Python 3.9, standard library, up to 100 KB) as root to its
        end. It has the words in sys.argv[1:]. Raises as `sh`.
        """
        argv = (self._python, "-I", "-c", source, *words)
        return self._checked(argv, (self._python, *words), stdin, timeout_s)

    def _checked(
        self, argv: Sequence[str], shown: Sequence[str], stdin: bytes | str, timeout_s: float
    ) -> Completed:
        clean = ("env", f"PATH={PATH}", "LC_ALL=C.UTF-8", *argv)
        done = self.run(clean, stdin=stdin, timeout_s=timeout_s)
        if done.code != 0:
            raise CommandFailed(self.name, shown, done.code, done.text)
        out, err = done.out.decode(errors="replace"), done.err.decode(errors="replace")
        return Completed(out, err)
