"""Hosts of a cluster that already runs, of which only the counters are read."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from ssh_server import Server
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import load_hardware
from weighbridge.topologies.ssh import connection, observed
from weighbridge.topologies.ssh.observed import ObservedHosts
from weighbridge.topologies.ssh.program import LOST


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
