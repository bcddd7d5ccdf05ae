"""Clients that join a run, over real sockets of loopback: what each side does when the other is
not as it should be.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.drivers.joining.two_sides import (
    OTHER,
    BareClient,
    ClientSide,
    RunSide,
    free_port,
    run_side,
    within,
)
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.client_programs import ClientPrograms
from weighbridge.drivers.joining.clients import JoinedProgram
from weighbridge.drivers.joining.messages import Greeting, Refusal, Versions, Welcome

pytestmark = pytest.mark.long  # starts programs, and waits for silence

MODULE = "weighbridge.drivers.locust"


def threads() -> list[str]:
    return [one.name for one in threading.enumerate()]


def test_a_client_with_the_token_runs_what_the_driver_starts_and_ends_with_the_run(
    tmp_path: Path,
) -> None:
    log = tmp_path / "guest.log"
    with run_side() as side:
        guest = ClientSide(side)
        (client,) = side.port.gathered()
        with ClientPrograms(3.0) as programs:
            command = client.module(MODULE, "worker", "127.0.0.1", "7421", "3")
            program = programs.add(client, "worker process 4 of 4", command, log, b"a line\n")
            programs.check()
            assert within(5.0, lambda: "write-guest" not in threads())
            assert client.is_up()
            assert program.poll() is None
        assert program.poll() == 0
    assert not guest.ended()
    assert log.read_text() == "127.0.0.1 7421 3 got a line\n"
    assert guest.said[-1] == "the run has ended"
    assert side.said[-1] == "guest has joined: 1 of 1 clients"


def test_a_worker_process_that_ends_by_itself_is_named_with_its_log(tmp_path: Path) -> None:
    with run_side() as side:
        guest = ClientSide(side)
        (client,) = side.port.gathered()
        with ClientPrograms(3.0) as programs:
            command = client.module(MODULE, "worker", "127.0.0.1", "7421", "0")
            program = programs.add(
                client, "worker process 1 of 1", command, tmp_path / "l", b"die\n"
            )
            program.wait(10.0)
            with pytest.raises(
                DriverError,
                match=r"guest: worker process 1 of 1 ended with exit status 7\n.*\n.*got die",
            ):
                programs.check()
    assert not guest.ended()


def test_a_client_without_the_token_is_refused_on_both_sides_and_named_to_neither_as_a_client() -> (
    None
):
    with run_side() as side:
        began_s = time.monotonic()
        guest = ClientSide(side, token=OTHER)
        assert "refuses this token" in guest.ended()
        assert isinstance(guest.error, UsageError)
        assert within(3.0, lambda: side.has_said("without the token of this run"))
        assert time.monotonic() - began_s < 5.0
        assert not side.has_said("has joined")


@pytest.mark.parametrize(
    ("name", "versions", "why"),
    [
        ("guest", Versions(weighbridge="0.0.1", locust="1.0"), "the client has Weighbridge 0.0.1"),
        ("client-1", Versions.here(), "another client has this name"),
    ],
)
def test_a_client_that_does_not_fit_is_refused_with_the_reason_on_both_sides(
    name: str, versions: Versions, why: str
) -> None:
    with run_side() as side:
        guest = ClientSide(side, name, versions=versions)
        assert why in guest.ended()
        assert isinstance(guest.error, UsageError)
        assert within(2.0, lambda: side.has_said(f"{name} may not join: "))
        assert side.has_said(why)


def test_one_client_more_than_expected_is_refused() -> None:
    with run_side() as side:
        first = ClientSide(side)
        side.port.gathered()
        assert "all 1 clients have joined" in ClientSide(side, "other").ended()
    assert not first.ended()


def test_a_client_that_says_nothing_any_more_is_lost_with_its_programs_within_five_seconds(
    tmp_path: Path,
) -> None:
    with run_side() as side:
        bare = BareClient(side)
        bare.send(Greeting.from_here("guest", 1.0).model_dump_json().encode())
        assert isinstance(bare.received(), Welcome)
        (client,) = side.port.gathered()
        with ClientPrograms(0.1) as programs:
            command = client.module(MODULE, "worker", "127.0.0.1", "7421", "1")
            programs.add(client, "worker process 2 of 2", command, tmp_path / "log", b"a line\n")
            began_s = time.monotonic()
            assert within(5.0, lambda: not client.is_up())
            assert time.monotonic() - began_s > 2.0
            with pytest.raises(
                DriverError, match="guest: worker process 2 of 2 has ended: the host"
            ):
                programs.check()
        assert side.has_said("guest, which had joined, was silent for 3 s and counts as lost")
        bare.close()


def test_a_client_may_come_back_under_its_name_after_it_was_lost() -> None:
    with run_side() as side:
        bare = BareClient(side)
        bare.send(Greeting.from_here("guest", 1.0).model_dump_json().encode())
        bare.received()
        (lost,) = side.port.gathered()
        bare.send(b'{"kind": "leaving"}')
        assert within(2.0, lambda: not lost.is_up())
        bare.close()
        guest = ClientSide(side)
        (back,) = side.port.gathered()
        assert back.is_up()
    assert not guest.ended()


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff" * 100, b'{"kind": "greeting"}', b"[" * 9999])
def test_nonsense_of_one_that_has_the_token_is_refused_and_the_run_goes_on(data: bytes) -> None:
    with run_side() as side:
        bare = BareClient(side)
        bare.send(data)
        answer = bare.received()
        assert isinstance(answer, Refusal)
        assert "sends what the run cannot read" in answer.reason
        guest = ClientSide(side)
        side.port.gathered()
        bare.close()
    assert not guest.ended()


def test_a_message_that_is_too_large_ends_its_connection_alone() -> None:
    with run_side() as side:
        bare = BareClient(side)
        bare.send(b"x" * 1_000_000)
        guest = ClientSide(side)
        (client,) = side.port.gathered()
        assert client.is_up()
        assert bare.is_cut()
        bare.close()
    assert not guest.ended()


def test_a_thousand_connections_that_say_nothing_or_garbage_delay_no_client() -> None:
    with run_side() as side, ExitStack() as stack:
        for number in range(1000, 0, -1):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", side.settings.port)))
            if number % 2 == 0:
                one.sendall(b"GET / HTTP/1.0\r\n\r\n" * 10)
        began_s = time.monotonic()
        guest = ClientSide(side)
        (client,) = side.port.gathered()
        assert time.monotonic() - began_s < 3.0
        assert within(10.0, lambda: side.has_said("connections to"))
        assert client.is_up()
        assert len(side.said) < 10, side.said
        one.settimeout(10.0)
        # The last one said nothing, and is not kept.
        while one.recv(4096):
            pass
    assert not guest.ended()


def test_a_run_waits_once_for_clients_that_do_not_come_and_says_what_to_run() -> None:
    with run_side(clients=2, wait_s=0.5) as side:
        guest = ClientSide(side)
        with pytest.raises(DriverError, match=r"1 of 2 clients have not joined at .* within 0.5 s"):
            side.port.gathered()
        with pytest.raises(DriverError, match=r"1 of 2 clients have not joined at .* within 0 s"):
            side.port.gathered()
        assert side.has_said(f"\n  weighbridge join {side.settings.place} --token-file token")
    assert not guest.ended()


@pytest.mark.parametrize(
    ("after", "says"),
    [(0, "clients cannot join at 127.0.0.1:{}: Address"), (1, "cannot connect to port {} of")],
)
def test_a_port_that_is_in_use_is_refused(after: int, says: str) -> None:
    with run_side() as side, socket.create_server(("127.0.0.1", free_port() + after)) as other:
        taken = other.getsockname()[1]
        port = taken - after
        again = type(side)()
        again.settings = again.settings.model_copy(update={"port": port})
        again.port = type(side.port)(again.settings, again.port._token, [], print)
        with pytest.raises(UsageError, match=says.format(taken)):
            again.port.__enter__()


def test_keys_that_a_client_repeats_and_what_terminals_obey_are_not_in_its_log(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    program = JoinedProgram(1, ("127.0.0.1", 1, 0), log, lambda _: None, pytest.fail)
    line = b'{"setup": {"target": {"key": "PLANTEDKEY", "url": "http://store"}}, "key": "CURVE"}\n'
    program.stdin.write(line)
    program.stdin.flush()
    program.ended(1, f"{line.decode()} \x1b[31m")
    assert "PLANTEDKEY" not in log.read_text()
    assert "CURVE" not in log.read_text()
    assert "http://store" in log.read_text()
    assert "\x1b" not in log.read_text()
    assert program.poll() == 1


def full(_: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_output_that_is_full_ends_the_run_by_its_name_and_loses_no_client() -> None:
    side = RunSide()
    side.port._say = full
    with pytest.raises(OSError, match="No space left"), side.port:  # noqa: PT012 - it is raised at the end
        guest = ClientSide(side)
        assert within(5.0, lambda: any("joined the run" in one for one in guest.said))
        assert within(5.0, lambda: side.port._unwritten is not None)
        (member,) = side.port._members.values()
        assert member.client.is_up()
        with pytest.raises(OSError, match="No space left"):
            side.port.gathered()
        assert "the run has ended" not in guest.said
    assert not guest.ended()


def test_a_log_for_which_there_is_no_room_ends_the_run_with_its_name(tmp_path: Path) -> None:
    log = tmp_path / "guest.log"
    side = RunSide()
    with pytest.raises(OSError, match=str(log)), side.port:  # noqa: PT012 - it is raised at the end
        guest = ClientSide(side)
        (client,) = side.port.gathered()
        with ClientPrograms(3.0) as programs:
            command = client.module(MODULE, "worker", "127.0.0.1", "7421", "3")
            programs.add(client, "worker process", command, log, b"a line\n")
            log.unlink()
            log.symlink_to("/dev/full")
            assert within(5.0, lambda: "write-guest" not in threads())
        assert client.is_up()
    assert not guest.ended()
