"""Answers of a real host, which may be anybody's, are validated."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import asyncssh
import pytest

from ssh_server import Server
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import load_hardware
from weighbridge.topologies.ssh import connection, observed
from weighbridge.topologies.ssh import host_telemetry as module
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry
from weighbridge.topologies.ssh.observed import ObservedHosts
from weighbridge.topologies.ssh.program import LOST, RemoteProgram
from weighbridge.topologies.ssh.services import HostProcess


class AnsweringProgram:
    """A program on a host with these answers."""

    def __init__(self, *lines: bytes) -> None:
        self.stdin = io.BytesIO()
        self.stdout = io.BytesIO(b"".join(lines))

    def wait(self, _timeout_s: float | None = None) -> int:
        return 0


def telemetry_of(folder: Path, *lines: bytes) -> HostTelemetry:
    """The telemetry of such a program. Copies of logs go to `folder`/logs."""
    (folder / "logs").mkdir()
    return HostTelemetry(
        cast("RemoteProgram", AnsweringProgram(*lines)),
        "store-1 (10.0.0.4)",
        errors=folder / "telemetry.err",
    )


def line(answer: Any) -> bytes:
    return json.dumps({"answer": answer}).encode() + b"\n"


def news(*files: tuple[str, int, bytes], more: bool = False) -> bytes:
    answer = {
        path: {"inode": 7, "offset": offset, "data": base64.b64encode(data).decode()}
        for path, offset, data in files
    }
    return line({"files": answer, "more": more})


def test_logs_are_copied_as_they_grow_and_from_the_start_where_they_are_new(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "name",
    [
        "../victim",
        "../../victim",
        "/{}/victim",
        "a/../../victim",
        "",
        ".",
        "a\x1b[2Jb",
        "a\0b",
        "\ud800",
    ],
)
def test_a_log_with_a_path_that_leads_elsewhere_is_not_written(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    telemetry = telemetry_of(tmp_path, news((name.format(tmp_path), 0, b"theirs\n")))
    with pytest.raises(
        TargetError,
        match=r"store-1 \(10.0.0.4\): its log .* cannot be copied .* plain path",
    ) as error:
        telemetry.copy_logs("", tmp_path / "logs")
    assert error.value.message.isprintable()
    assert victim.read_text() == "mine\n"
    assert list((tmp_path / "logs").rglob("*")) == []


def test_a_log_is_not_copied_through_a_link_in_the_folder_of_copies(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, news(("stolen", 0, b"theirs\n")))
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "logs" / "stolen").symlink_to(tmp_path / "victim")
    with pytest.raises(TargetError, match=r"'stolen' cannot be copied .* is a link"):
        telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "victim").read_text() == "mine\n"


def test_a_log_that_continues_where_it_never_ended_makes_no_sparse_file(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, news(("a.log", 2**60, b"end\n")))
    with pytest.raises(
        TargetError, match=r"'a\.log' continues at byte 1152921504606846976, not at 0"
    ):
        telemetry.copy_logs("", tmp_path / "logs")
    assert not (tmp_path / "logs" / "a.log").exists()


def test_a_host_that_promises_more_logs_without_data_is_not_asked_for_ever(
    tmp_path: Path,
) -> None:
    telemetry = telemetry_of(tmp_path, *[news(("a.log", 0, b""), more=True)] * 2)
    telemetry.copy_logs("", tmp_path / "logs")
    assert (tmp_path / "logs" / "a.log").read_bytes() == b""


def test_logs_beyond_a_bound_are_not_copied_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1024)
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


def test_invalid_counters_and_processes_are_an_error_of_that_host(tmp_path: Path) -> None:
    telemetry = telemetry_of(tmp_path, line([]), line({}), line([True, True]))
    with pytest.raises(TargetError, match="counters are not an object"):
        telemetry.counters()
    for _ in range(2):
        with pytest.raises(TargetError, match="does not say which processes"):
            telemetry.running([HostProcess(1, 2)])


def test_an_endless_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_ANSWER_BYTES", 1000)
    with pytest.raises(TargetError, match="prints too much"):
        telemetry_of(tmp_path, b" " * 2000).counters()


def hardware(server: Server, folder: Path, **more: Any) -> Hardware:
    """Hardware with one observed host, whose user is not root."""
    reach = {"host": "127.0.0.1", "port": server.port}
    access = {
        "user": "somebody",
        "key": str(folder / "key"),
        "known_hosts": str(folder / "known"),
    }
    return Hardware.model_validate(
        {
            "name": "cluster",
            "kind": "existing",
            "hosts": {"client-1": {}},
            "ssh": access,
            "observed": {"store-1": {"ssh": reach, **more}},
        }
    )


@pytest.fixture
def observing(server: Server, tmp_path: Path) -> Iterator[ObservedHosts]:
    """What it runs on the host ends with it."""
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
    loop, over = server.loop, asyncio.Event()

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
        loop.do(asyncio.wait_for(given_up.wait_closed(), 10))
        with host.spawn(["true"], stderr=tmp_path / "logs" / "program.err") as program:
            assert program.wait(10) == 0
        assert host.counters().cpu_s is not None
    finally:
        hosts.close()
        loop.loop.call_soon_threadsafe(over.set)
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
