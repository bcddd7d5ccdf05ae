"""Connections to real hosts, with an SSH server on loopback that runs commands with /bin/sh."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO, Any, ClassVar, cast

import asyncssh
import pytest
from pydantic import ValidationError

from ssh_server import Server
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    TargetError,
    UsageError,
)
from weighbridge.topologies.hardware import Hardware, HostSpec, Reach, SshAccess
from weighbridge.topologies.loader import load_hardware
from weighbridge.topologies.on_host import telemetry as telemetry_program
from weighbridge.topologies.ssh import connection, observed
from weighbridge.topologies.ssh import host_telemetry as module
from weighbridge.topologies.ssh.connection import LOST, SESSIONS, RemoteProgram, SshConnection
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry
from weighbridge.topologies.ssh.observed import ObservedHosts
from weighbridge.topologies.ssh.remote import run_remote
from weighbridge.topologies.ssh.services import HostProcess

SOON_S = 60.0


def connect(folder: Path, port: int, **access: Any) -> SshConnection:
    spec = HostSpec(address="10.0.0.4", ssh=Reach(host="127.0.0.1", port=port))
    given = {"key": str(folder / "key"), "known_hosts": str(folder / "known"), **access}
    return SshConnection("store-1", spec, SshAccess(**given))


@pytest.fixture
def host(server: Server, tmp_path: Path) -> Iterator[SshConnection]:
    found = connect(tmp_path, server.port)
    yield found
    found.close()


def test_a_script_gets_its_words_and_input_and_returns_its_output(host: SshConnection) -> None:
    done = host.sh('cat; echo "$1-$2"; echo aside >&2', "a b", "'c'", stdin="given ")
    assert (done.stdout, done.stderr) == ("given a b-'c'\n", "aside\n")
    echo = "import sys; print(sys.argv[1:], sys.stdin.read())"
    assert host.python(echo, "a b", "'c'", stdin=b"d").stdout == """['a b', "'c'"] d\n"""
    data = os.urandom(1_000_000)
    assert host.run(("cat",), stdin=data).out == data


def test_output_of_a_login_shell_is_not_part_of_a_commands_output_nor_of_one_that_took_too_long(
    host: SshConnection, server: Server, tmp_path: Path
) -> None:
    server.profile = "echo Welcome to store-1; printf 'no end of line; '"
    assert host.sh("echo x").stdout == "x\n"
    assert host.run(("cat",), stdin=b"given").out == b"given"
    assert run_remote(host, "means", str(tmp_path))["free_bytes"] > 0
    with pytest.raises(CommandFailed) as caught:
        host.sh("echo begun; sleep 60", timeout_s=5)
    assert (caught.value.code, caught.value.output) == (None, "begun\n")
    assert host.sh("echo on").stdout == "on\n"
    with spawned(host, ("cat",)) as program:
        program.stdin.write(b"one\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"one\n"


def test_a_shell_that_does_not_run_the_command_is_quoted(
    host: SshConnection, server: Server, tmp_path: Path
) -> None:
    server.profile = "echo This account is currently not available.; exit 0"
    why = r"its shell did not run the command, and printed 'This account is currently not "
    with pytest.raises(TargetError, match=why):
        host.sh("echo x")
    with spawned(host, ("cat",), str(tmp_path / "err")) as program:
        assert program.stdout.read() == b""
    assert "printed 'This account is currently not available.'" in (tmp_path / "err").read_text()


def test_a_remote_program_whose_answer_is_not_json_is_an_error_that_quotes_it(
    host: SshConnection, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho 'no such option: -I'\n")
    (tmp_path / "python3").chmod(0o755)
    why = r"store-1 \(10\.0\.0\.4\): machine\.py means: .* is not JSON .*no such option"
    odd = connect(tmp_path, server.port, python=str(tmp_path / "python3"))
    with closing(odd), pytest.raises(TargetError, match=why):
        run_remote(odd, "means", str(tmp_path))


def test_a_command_that_prints_too_much_is_given_up(
    host: SshConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_BYTES", 100_000)
    with pytest.raises(TargetError, match="prints more than 100 kB"):
        host.sh("head -c 150000 /dev/zero")
    assert host.sh("echo on").stdout == "on\n"


def test_a_failing_script_is_reported_with_its_output_and_a_signal_as_one(
    host: SshConnection,
) -> None:
    with pytest.raises(CommandFailed) as caught:
        host.sh("echo why >&2; exit 7")
    assert (caught.value.host, caught.value.code, caught.value.output) == ("store-1", 7, "why\n")
    code = host.run(("/bin/sh", "-c", "kill -TERM $$")).code
    assert code in {-signal.SIGTERM, 128 + signal.SIGTERM}


def test_more_commands_than_sessions_use_more_connections(
    host: SshConnection, server: Server
) -> None:
    from weighbridge.gateways.together import THREADS, together  # noqa: PLC0415

    programs = [spawned(host, ("cat",)) for _ in range(SESSIONS + 2)]
    assert together([lambda: host.sh("sleep 0.1; echo x").stdout] * THREADS) == ["x\n"] * THREADS
    assert len(server.connections) > 1
    for program in programs:
        with program:
            pass
        assert program.returncode == 0


@pytest.mark.parametrize("most", [2, 0])
def test_an_sshd_that_allows_fewer_sessions_gets_more_connections_and_one_without_is_named(
    host: SshConnection, server: Server, most: int
) -> None:
    server.most = most
    with ThreadPoolExecutor(5) as pool:
        waiting = [pool.submit(host.sh, f"sleep 0.2; echo {number}") for number in range(5)]
    if most:
        assert [one.result().stdout for one in waiting] == [f"{number}\n" for number in range(5)]
    else:
        for one in waiting:
            assert "refuses a session" in str(one.exception())


KILLED = """
import sys, time
from pathlib import Path
from weighbridge.topologies.hardware import HostSpec, SshAccess
from weighbridge.topologies.ssh.connection import SshConnection
spec, access = HostSpec.model_validate_json(sys.argv[1]), SshAccess.model_validate_json(sys.argv[2])
host = SshConnection("store-1", spec, access)
host.spawn(("cat",), stderr=Path("/dev/null"), send=lambda _: None)
print(host._masters[0].socket.parent, flush=True)
host.sh("sleep 600", timeout_s=600)
"""


def test_a_conductor_that_is_killed_leaves_no_ssh(server: Server, tmp_path: Path) -> None:
    spec = HostSpec(address="10.0.0.4", ssh=Reach(host="127.0.0.1", port=server.port))
    access = SshAccess(key=str(tmp_path / "key"), known_hosts=str(tmp_path / "known"))
    given = [spec.model_dump_json(), access.model_dump_json()]
    with subprocess.Popen([sys.executable, "-c", KILLED, *given], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        folder = Path(killed.stdout.readline().decode().strip())
        killed.kill()
    (connection,) = server.connections
    server.do(asyncio.wait_for(connection.wait_closed(), SOON_S))
    until_s = time.monotonic() + SOON_S
    while folder.exists() and time.monotonic() < until_s:
        time.sleep(0.01)
    assert not folder.exists()


def spawned(host: SshConnection, argv: tuple[str, ...], stderr: str = "/dev/null") -> RemoteProgram:
    return host.spawn(argv, stderr=Path(stderr), send=lambda _number: None)


def test_a_program_has_pipes_and_ends_with_its_input(host: SshConnection, tmp_path: Path) -> None:
    script = "while read one; do echo got $one; done; echo bye >&2; exit 5"
    with spawned(host, ("/bin/sh", "-c", script), str(tmp_path / "err")) as program:
        for word in (b"one", b"two"):
            program.stdin.write(word + b"\n")
            program.stdin.flush()
            assert program.stdout.readline() == b"got " + word + b"\n"
        assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.05)
        program.stdin.close()
        assert program.wait(SOON_S) == 5
        assert program.poll() == program.returncode == 5
        assert program.stdout.read() == b""
    assert (tmp_path / "err").read_text() == "bye\n"


def test_a_program_whose_output_nobody_reads_ends(host: SshConnection) -> None:
    program = spawned(host, ("head", "-c", "2000000", "/dev/zero"))
    program.stdout.close()
    program.stdin.close()
    program.wait(SOON_S)
    assert host.sh("echo on").stdout == "on\n"


def test_a_program_that_fills_its_pipe_waits_for_its_reader(host: SshConnection) -> None:
    with spawned(host, ("head", "-c", "8000000", "/dev/zero")) as program:
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.5)
        assert len(program.stdout.read()) == 8_000_000
        assert program.wait(SOON_S) == 0


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


REFUSED = (
    ("", "key", 0, MissingPrerequisite, "its host key is not in .*known", "ssh-keyscan -p {} "),
    (None, "key", 0, MissingPrerequisite, "there is no .*known with its key", "by hand (ssh -"),
    ("other", "key", 0, MissingPrerequisite, "has another host key than", "-R '[127.0.0.1]:{}'"),
    ("own", "other", 0, MissingPrerequisite, "refuses the login of root: Perm", "authorized_keys"),
    ("own", "key", 1, TargetError, "cannot be reached: Connection refused", "runs sshd"),
)


@pytest.mark.parametrize("case", REFUSED)
def test_a_host_that_cannot_be_logged_in_to_is_named_with_what_to_do(
    server: Server, tmp_path: Path, case: tuple[Any, ...]
) -> None:
    known, key, port, kind, message, advice = case
    other = asyncssh.generate_private_key("ssh-ed25519")
    other.write_private_key(str(tmp_path / "other"))
    (tmp_path / "other").chmod(0o600)
    if known == "other":
        server.know(tmp_path, other)
    elif known is None:
        (tmp_path / "known").unlink()
    elif not known:
        (tmp_path / "known").write_text("")
    where = unused_port() if port else server.port
    with pytest.raises(kind, match=rf"store-1 \(127.0.0.1 port \d+\): {message}") as caught:
        connect(tmp_path, where, key=str(tmp_path / key)).open()
    assert advice.format(where) in caught.value.advice


def test_a_host_behind_a_jump_host_is_reached_through_it_alone(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "jump"
    folder.mkdir()
    jump = Server(folder, server.allowed)
    known = (tmp_path / "known").read_text()
    (tmp_path / "known").write_text(known + (folder / "known").read_text())
    with (
        closing(jump),
        closing(connect(tmp_path, server.port, jump=f"127.0.0.1:{jump.port}")) as through,
    ):
        through.open()
        assert through.sh("echo $1", "there").stdout == "there\n"
        assert set(jump.passed_on) == {("127.0.0.1", server.port)}
    assert all(one.is_closed() for one in jump.connections)


def test_a_jump_host_that_cannot_be_used_is_named_as_such(server: Server, tmp_path: Path) -> None:
    port = unused_port()
    with pytest.raises(TargetError, match=rf"jump host of store-1 \(127.0.0.1 port {port}\)"):
        connect(tmp_path, server.port, jump=f"me@127.0.0.1:{port}").open()
    assert server.connections == []


@pytest.mark.parametrize("jump", ["", "a b", "-oProxyCommand=x", "host:port", "me@", "fe80::1"])
def test_what_is_no_jump_host_is_refused(jump: str) -> None:
    with pytest.raises(ValidationError):
        SshAccess(jump=jump)


def test_a_missing_or_locked_key_is_reported_first(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 2**33)
    for name, words in (("none", "No such file"), ("pipe", "is a pipe"), ("sparse", "is larger")):
        with pytest.raises(UsageError, match=rf"private key .*{name} cannot be read: {words}"):
            connect(tmp_path, server.port, key=str(tmp_path / name)).open()
    shutil.copy(tmp_path / "key", tmp_path / "locked")
    key = str(tmp_path / "locked")
    lock = ("ssh-keygen", "-q", "-p", "-P", "", "-N", "open it", "-f", key)
    subprocess.run(lock, check=True, capture_output=True)
    with pytest.raises(MissingPrerequisite, match="has a passphrase") as caught:
        connect(tmp_path, server.port, key=key).open()
    assert f"ssh-add {key}" in caught.value.advice
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    socket_, pid = re.findall(r"SSH_A\w+=([^;]+);", agent)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", socket_)
        (tmp_path / "ask").write_text("#!/bin/sh\necho open it\n")
        (tmp_path / "ask").chmod(0o700)
        asked = {"SSH_ASKPASS": str(tmp_path / "ask"), "SSH_ASKPASS_REQUIRE": "force"}
        subprocess.run(
            ["ssh-add", key], env={**os.environ, **asked}, check=True, capture_output=True
        )
        with closing(connect(tmp_path, server.port, key=key)) as host:
            host.open()
    finally:
        os.kill(int(pid), signal.SIGTERM)


def test_a_host_that_accepts_the_connection_and_says_nothing_is_given_up(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(TargetError, match=r"does not answer within 0\.5 s"),
    ):
        connect(tmp_path, silent.getsockname()[1]).open()


def test_after_a_broken_connection_everything_fails_until_it_is_renewed(
    host: SshConnection, server: Server, tmp_path: Path
) -> None:
    stderr = tmp_path / "cat.err"
    program = spawned(host, ("cat",), str(stderr))
    server.cut()
    assert (program.wait(SOON_S), program.poll(), program.returncode) == (255, 255, 255)
    assert re.fullmatch(r"store-1 .*stopped answering \d+ s ago.*\n", stderr.read_text())
    program.kill()
    assert program.stdout.read() == b""
    with pytest.raises(TargetError, match="stopped answering"):
        host.sh("true")
    host.renew()
    assert host.sh("echo again").stdout == "again\n"
    program.stdout.close()
    program.stdin.close()


def test_a_host_that_is_given_up_ends_what_waits_for_it_and_is_not_connected_again(
    host: SshConnection, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:
        begun = tmp_path / "begun"
        waiting = pool.submit(host.sh, 'echo $$ >"$1"; exec sleep 600', str(begun), timeout_s=600)
        while not (begun.exists() and begun.read_text()):
            time.sleep(0.01)
        host.give_up(0)
        with pytest.raises(TargetError, match="another signal asked to end"):
            waiting.result(SOON_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(begun.read_text()), signal.SIGKILL)
    with pytest.raises(TargetError, match="another signal"):
        host.renew()
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as pool:
        new = connect(tmp_path, silent.getsockname()[1])
        waiting = pool.submit(new.open)
        peer, _ = silent.accept()
        new.give_up(0)
        with peer, pytest.raises(TargetError, match="another signal asked to end"):
            waiting.result(connection.CONNECT_S / 2)


def test_a_program_that_runs_when_its_host_is_given_back_ends(
    server: Server, tmp_path: Path
) -> None:
    stderr = tmp_path / "cat.err"
    host = connect(tmp_path, server.port)
    program = spawned(host, ("cat",), str(stderr))
    assert program.poll() is None
    host.close()
    assert (program.wait(SOON_S), program.poll(), program.returncode) == (255, 255, 255)
    # Which comes first: that its connection is closed, or that the loop is.
    assert re.fullmatch(
        r"store-1 .*(the connection broke off.*|its host was released while it ran)\n",
        stderr.read_text(),
    )
    program.stdout.close()
    program.stdin.close()


def test_a_user_other_than_root_needs_sudo_without_a_password(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = tmp_path / "bin" / "sudo"
    sudo.parent.mkdir()
    monkeypatch.setenv("PATH", f"{sudo.parent}:{os.environ['PATH']}")
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n")
    sudo.chmod(0o755)
    host = connect(tmp_path, server.port, user="somebody")
    with pytest.raises(MissingPrerequisite, match="not root, and sudo says: sudo: a password is"):
        host.open()
    host.close()
    sudo.write_text(
        '#!/bin/sh\n[ "$1" = -n ] || exit 1\nshift\n[ "$1" != -- ] || shift\nSUDOED=yes exec "$@"\n'
    )
    with closing(connect(tmp_path, server.port, user="somebody")) as host:
        host.open()
        assert host.sh("echo $SUDOED").stdout == "yes\n"


@pytest.fixture(autouse=True)
def pipes() -> Iterator[None]:
    yield
    while AnsweringProgram.pipes:
        AnsweringProgram.pipes.pop().close()


class AnsweringProgram:
    """A program on a host with these answers, which ends after them unless it is `silent`."""

    pipes: ClassVar[list[IO[bytes]]] = []

    def __init__(self, *lines: bytes, silent: bool = False) -> None:
        read_questions, write_questions = os.pipe()
        read_answers, write_answers = os.pipe()
        self.questions = os.fdopen(read_questions, "rb")
        self.stdin = os.fdopen(write_questions, "wb")
        self.stdout = os.fdopen(read_answers, "rb")
        self._answers = os.fdopen(write_answers, "wb")
        self.pipes += [self.questions, self.stdin, self.stdout]
        self.pipes += [self._answers] if silent else []
        # In a thread: some answers are longer than a pipe.
        writing = threading.Thread(target=self._write, args=(lines, silent), daemon=True)
        writing.start()

    def _write(self, lines: Sequence[bytes], silent: bool) -> None:
        with contextlib.suppress(BrokenPipeError):
            for line in lines:
                self._answers.write(line)
                self._answers.flush()
        with contextlib.suppress(BrokenPipeError):
            if not silent:
                self._answers.close()

    def wait(self, _timeout_s: float | None = None) -> int:
        return 0


def telemetry_by(folder: Path, start: Callable[[], AnsweringProgram]) -> HostTelemetry:
    started = cast("Callable[[], RemoteProgram]", start)
    return HostTelemetry(started, "store-1 (10.0.0.4)", errors=folder / "telemetry.err")


def telemetry_of(folder: Path, *lines: bytes) -> HostTelemetry:
    (folder / "logs").mkdir()
    return telemetry_by(folder, lambda: AnsweringProgram(*lines))


def line(answer: Any) -> bytes:
    return json.dumps({"answer": answer}).encode() + b"\n"


def news(*files: tuple[str, int, bytes], more: bool = False) -> bytes:
    answer = {
        path: {"inode": 7, "offset": offset, "data": base64.b64encode(data).decode()}
        for path, offset, data in files
    }
    return line({"files": answer, "more": more})


def test_logs_are_copied_as_they_grow_and_from_the_start_where_they_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry_program, "MOST_BYTES", 4)
    telemetry = telemetry_of(
        tmp_path,
        news(("a/b.log", 0, b"one\n"), more=True),
        news(("a/b.log", 4, b"two\n")),
        news(("a/b.log", 0, b"new\n")),
    )
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs/a/b.log").read_text() == "one\ntwo\n"
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs/a/b.log").read_text() == "new\n"


ELSEWHERE = ("../victim", "../../victim", "/{}/victim", "a/../../victim")


@pytest.mark.parametrize("name", [*ELSEWHERE, "", ".", "a\x1b[2Jb", "a\0b", "\ud800"])
def test_a_log_with_a_path_that_leads_elsewhere_is_not_written(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    telemetry = telemetry_of(tmp_path, news((name.format(tmp_path), 0, b"theirs\n")))
    why = r"store-1 \(10.0.0.4\): its log .* cannot be copied .* plain path"
    with pytest.raises(TargetError, match=why) as error:
        telemetry.copy_logs("", tmp_path / "logs")
    assert error.value.message.isprintable()
    assert victim.read_text() == "mine\n"
    assert list((tmp_path / "logs").rglob("*")) == []


def test_a_log_is_not_copied_through_a_link_in_the_folder_of_copies(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, news(("stolen", 0, b"theirs\n")))
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "logs" / "stolen").symlink_to(tmp_path / "victim")
    with pytest.raises(TargetError, match=r"'stolen' cannot be copied .* is a link"):
        telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "victim").read_text() == "mine\n"


def test_a_log_that_continues_where_it_never_ended_makes_no_sparse_file(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, news(("a.log", 2**60, b"end\n")))
    why = r"'a\.log' continues at byte 1152921504606846976, not at 0"
    with pytest.raises(TargetError, match=why):
        telemetry.copy_logs("", tmp_path / "logs")
    assert not (tmp_path / "logs" / "a.log").exists()


def test_a_host_that_promises_more_logs_without_data_is_not_asked_for_ever(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, *[news(("a.log", 0, b""), more=True)] * 2)
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs" / "a.log").read_bytes() == b""


def test_a_hole_in_a_log_is_one_in_its_copy(tmp_path: Path) -> None:
    zeros = bytes(2**20)
    telemetry = telemetry_of(tmp_path, news(("a.log", 0, zeros + b"end\n"), ("b.log", 0, zeros)))
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs" / "a.log").read_bytes() == zeros + b"end\n"
    copy = (tmp_path / "logs" / "b.log").stat()
    assert (copy.st_size, copy.st_blocks) == (2**20, 0)


def test_logs_beyond_a_bound_are_not_copied_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1024)
    monkeypatch.setattr(telemetry_program, "MOST_BYTES", 600)
    telemetry = telemetry_of(tmp_path, *[news(("a.log", 0, b"x" * 600), more=True)] * 3)
    with pytest.raises(TargetError, match="its logs are more than 10000 files or 1 KiB"):
        telemetry.copy_logs("", tmp_path / "logs")


@pytest.mark.parametrize(
    "answer",
    [
        b"Welcome to store-1\n",
        b"[]\n",
        b'"error"\n',
        b"{}\n",
        b"[" * 100_000 + b"\n",
        line(None),
        line({"files": [], "more": False}),
        line({"files": {"a": {"inode": 1, "offset": -1, "data": ""}}, "more": False}),
        line({"files": {"a": {"inode": 1, "offset": 0, "data": "a"}}, "more": False}),
    ],
)
def test_an_invalid_answer_is_an_error_of_that_host(tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(TargetError, match=r"^store-1 \(10\.0\.0\.4\): ") as error:
        telemetry_of(tmp_path, answer).copy_logs("", tmp_path / "logs")
    assert len(error.value.message) < 1000


def test_an_invalid_list_of_processes_is_an_error_of_that_host(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, line({}), line([True, True]))
    for _ in range(2):
        with pytest.raises(TargetError, match="does not say which processes"):
            telemetry.running([HostProcess(1, 2)])


DISK = {"reads": 1, "writes": 1, "busy_s": 0.5, "waited_s": 0.5, "read_bytes": 1}


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ([], "invalid counters"),
        ({"cpu_s": "much"}, "cpu_s"),
        ({"cpu_s": -1.0}, "cpu_s"),
        ({"cpu_s": math.nan}, "cpu_s"),
        ({"cpu_s": math.inf}, "cpu_s"),
        ({"memory_bytes": 10**400}, "memory_bytes"),
        ({"disks": {}}, "disks"),
        ({"disks": [DISK]}, "written_bytes"),
        ({"disks": [{**DISK, "read_bytes": -1, "written_bytes": 1}]}, "read_bytes"),
        ({"memory_bytes": 5}, "not those of the first reading"),
        ({"cpu_s": 2.0, "disks": [{**DISK, "written_bytes": 1}]}, "of the first reading"),
    ],
)
def test_invalid_counters_are_an_error_of_that_host(
    tmp_path: Path, answer: object, what: str
) -> None:
    telemetry = telemetry_of(tmp_path, line({"cpu_s": 1.0}), line(answer), line({"cpu_s": 3.0}))
    assert telemetry.counters().cpu_s == 0.0
    with pytest.raises(TargetError, match=rf"^store-1 \(10\.0\.0\.4\): .*{what}") as error:
        telemetry.counters()
    assert len(error.value.message) < 500
    assert telemetry.counters().cpu_s == 2.0


def test_a_host_that_stops_answering_is_given_up_and_asked_again_where_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    lines = [(line({"cpu_s": 1.0}),), (line([True]), line({"cpu_s": 5.0}))]
    programs = [AnsweringProgram(*some, silent=True) for some in lines]
    waiting = iter(programs)
    telemetry = telemetry_by(tmp_path, lambda: next(waiting))
    telemetry.counters()
    for _ in range(3):  # a sampler asks each second: one that does not answer costs it one deadline
        with pytest.raises(TargetError, match="telemetry program was silent for"):
            telemetry.counters()
    assert programs[0].stdin.closed
    assert telemetry.running([HostProcess(1, 2)]) == [True]
    assert telemetry.counters().cpu_s == 4.0


def test_whoever_waits_for_a_host_stops_when_its_telemetry_is_closed(tmp_path: Path) -> None:
    program = AnsweringProgram(line({}), silent=True)
    telemetry = telemetry_by(tmp_path, lambda: program)
    telemetry.counters()
    ends: list[TargetError] = []

    def ask() -> None:
        with pytest.raises(TargetError) as error:
            telemetry.counters()
        ends.append(error.value)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    for _ in range(2):  # that of the first reading, too
        program.questions.readline()
    telemetry.close()
    asking.join(SOON_S)
    assert ends


def test_an_endless_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER_BYTES", 1000)
    with pytest.raises(TargetError, match=r"printed a line of more than 1,000 bytes"):
        telemetry_of(tmp_path, b" " * 2000).counters()


def hardware(server: Server, folder: Path, **more: Any) -> Hardware:
    reach = {"host": "127.0.0.1", "port": server.port}
    access = {"user": "somebody", "key": str(folder / "key"), "known_hosts": str(folder / "known")}
    kind = {"name": "cluster", "kind": "existing", "hosts": {"client-1": {}}}
    observed = {"store-1": {"ssh": reach, **more}}
    return Hardware.model_validate({**kind, "ssh": access, "observed": observed})


@pytest.fixture
def observing(server: Server, tmp_path: Path) -> Iterator[ObservedHosts]:
    found = ObservedHosts(hardware(server, tmp_path, nic="lo"), tmp_path / "logs")
    yield found
    found.close()
    assert server.all_ended()


def test_counters_are_those_since_the_first_reading(observing: ObservedHosts) -> None:
    (host,) = observing.hosts.values()
    assert host.cores == len(os.sched_getaffinity(0))
    first = host.counters()
    until_s = time.process_time() + 0.2
    while time.process_time() < until_s:
        pass
    then = host.counters()
    assert first.cpu_s is not None
    assert then.cpu_s is not None
    assert then.cpu_s - first.cpu_s >= 0.1
    assert first.network_received_bytes is not None
    assert then.network_received_bytes is not None
    # The question and its answer themselves went over lo.
    assert then.network_received_bytes > first.network_received_bytes
    assert then.memory_held_bytes is not None


def test_a_device_that_is_not_there_is_named(server: Server, tmp_path: Path) -> None:
    wrong = hardware(server, tmp_path, disks=["/dev/no-such-disk"])
    with pytest.raises(CommandFailed, match="/dev/no-such-disk: there is no such block device"):
        ObservedHosts(wrong, tmp_path / "logs")


def test_a_host_that_says_something_else_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "_LOOK", "echo 4 many")
    with pytest.raises(TargetError, match="does not say its CPUs and disks: 4 many"):
        ObservedHosts(hardware(server, tmp_path), tmp_path / "logs")


def test_a_host_without_python_is_refused(server: Server, tmp_path: Path) -> None:
    given = hardware(server, tmp_path)
    access = given.access.model_copy(update={"python": "/no/python3"})
    with pytest.raises(TargetError, match=r"its telemetry program ended with 127: .*/no/python3"):
        ObservedHosts(given.model_copy(update={"ssh": access}), tmp_path / "logs")


def test_hardware_that_is_not_for_running_gateways_observes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "name: x\nkind: lab\nhosts: {client-1: {}}\n"
        "observed: {store-1: {ssh: {host: a}}, client-1: {ssh: {host: b}}}\n"
    )
    with pytest.raises(DocumentError) as error:
        load_hardware(path)
    text = str(error.value)
    assert text.count("is only for gateways that already run (kind: existing)") == 2
    assert "'client-1' is one of the hosts: choose another name" in text


def test_observed_hosts_need_a_way_in_and_may_say_how(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\nkind: existing\nhosts: {client-1: {}}\nobserved: {store-1: {}}\n")
    with pytest.raises(DocumentError, match="ssh"):
        load_hardware(path)
    text = json.dumps({"store-1": {"ssh": {"host": "a"}, "tier": "gateway", "nic": "eth0"}})
    path.write_text(
        f"name: x\nkind: existing\nhosts: {{client-1: {{}}}}\nssh: {{user: me}}\nobserved: {text}\n"
    )
    assert load_hardware(path).observed["store-1"].tier == "gateway"


def test_a_login_that_is_refused_later_is_an_error_of_the_host(
    observing: ObservedHosts, server: Server, tmp_path: Path
) -> None:
    server.know(tmp_path, asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(TargetError, match="has another host key"):
        observing.hosts["store-1"].spawn(["true"], stderr=tmp_path / "logs" / "program.err")


def test_a_server_that_opens_no_session_is_given_up_and_asked_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncssh.SSHServerConnection._process_session_open
    over = asyncio.Event()

    async def at_last() -> None:
        await over.wait()
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "too late")

    def silent(self: Any, packet: Any) -> Any:
        channel, _ = opened(self, packet)
        return channel, at_last()

    hosts = ObservedHosts(hardware(server, tmp_path), tmp_path / "logs")
    try:
        host = hosts.hosts["store-1"]
        with monkeypatch.context() as patch:
            patch.setattr(connection, "SESSION_S", 0.5)
            patch.setattr(asyncssh.SSHServerConnection, "_process_session_open", silent)
            with pytest.raises(TargetError, match=r"store-1 .* opens no session within 0\.5 s"):
                host.spawn(["true"], stderr=tmp_path / "logs" / "program.err")
        *_, given_up = server.connections
        server.do(asyncio.wait_for(given_up.wait_closed(), 10))
        with host.spawn(["true"], stderr=tmp_path / "logs" / "program.err") as program:
            assert program.wait(10) == 0
        assert host.counters().cpu_s is not None
    finally:
        hosts.close()
        server.loop.call_soon_threadsafe(over.set)
    assert server.all_ended()


def test_a_program_runs_as_the_login_and_ends_with_its_session_and_counters_go_on(
    observing: ObservedHosts, tmp_path: Path
) -> None:
    host = observing.hosts["store-1"]
    assert (host.name, host.python) == ("store-1", "python3")
    errors = tmp_path / "logs" / "program.err"
    script = 'echo "$SAID"; echo aside >&2; read one; echo "got $one"; cat'
    with host.spawn(["sh", "-c", script], stderr=errors, env={"SAID": "it's"}) as program:
        assert program.stdout.readline() == b"it's\n"
        program.stdin.write(b"a word\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"got a word\n"
        assert program.poll() is None
        program.kill()
        assert program.wait(10) == LOST
    assert errors.read_text().startswith("aside\n")
    assert host.counters().cpu_s is not None
    with host.spawn(["true"], stderr=errors) as again:
        assert again.wait(10) == 0
