import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Service
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import ask, await_ports
from weighbridge.topologies.fake import FakeHost

LISTEN = (
    "import socket, sys, time; time.sleep({late}); s = socket.create_server(('127.0.0.1', "
    "{port})); time.sleep(60)"
)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeHost]:
    host = FakeHost("store-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


@pytest.fixture
def port() -> Iterator[int]:
    # Held and not listening: a test may listen on it, and nobody else gets it.
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def python(host: FakeHost, name: str, program: str, port: int | None) -> Daemon:
    return Daemon(host, Service(name, (sys.executable, "-c", program)), port)


def quiet(line: str) -> None:
    del line


def test_waiting_ends_when_a_late_port_answers(host: FakeHost, port: int) -> None:
    late = python(host, "late", LISTEN.format(late=0.3, port=port), port)
    started = time.monotonic()
    daemon.start([late])
    await_ports(host, [late], quiet, deadline_s=30)
    assert 0.3 <= time.monotonic() - started < 20


def test_a_daemon_that_dies_is_reported_at_once_with_its_last_lines(
    host: FakeHost, port: int
) -> None:
    dying = python(host, "dying", "print('cannot bind'); raise SystemExit(1)", port)
    started = time.monotonic()
    daemon.start([dying])
    with pytest.raises(ServiceFailed, match=r"(?s)store-1: dying: died.*\| cannot bind") as failure:
        await_ports(host, [dying], quiet, deadline_s=60)
    assert time.monotonic() - started < 20
    assert failure.value.log == str(host.log("dying.out"))


def test_a_port_that_never_answers_is_an_error_although_the_process_runs(
    host: FakeHost, port: int
) -> None:
    deaf = python(
        host, "deaf", "import time; print('front end unknown', flush=True); time.sleep(60)", port
    )
    daemon.start([deaf])
    while not host.log_tail("deaf.out"):
        assert host.alive("deaf")
        time.sleep(0.01)
    with pytest.raises(
        ServiceFailed, match=rf"(?s)port {port} did not answer within 1 s.*front end unknown"
    ):
        await_ports(host, [deaf], quiet, deadline_s=1)


def test_the_daemons_log_is_shown_when_it_printed_nothing(host: FakeHost) -> None:
    silent = Daemon(host, Service("silent", ("true",)), 1, ("silent.log",))
    host.log("silent.log").write_text("what went wrong\n")
    assert silent.failed("died").tail == ("what went wrong",)


def test_check_names_the_daemon_that_died(host: FakeHost) -> None:
    well = python(host, "well", "import time; time.sleep(60)", None)
    ill = python(host, "ill", "raise SystemExit(3)", None)
    daemon.start([well, ill])
    host.stop("ill")
    with pytest.raises(ServiceFailed, match="store-1: ill: died"):
        daemon.check([well, ill])


def test_each_port_is_reported_once_in_the_order_of_answers(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as open_already:
        late: list[socket.socket] = []

        def pause() -> bool:
            late.append(socket.create_server(("127.0.0.1", port)))
            return False

        answered = list(ask([("127.0.0.1", port), open_already.getsockname()], 10, pause))
        late[0].close()
    assert answered == [1, 0]


def test_asking_ends_when_the_reader_has_gone(port: int) -> None:
    assert list(ask([("127.0.0.1", port)], 60, lambda: True)) == []
