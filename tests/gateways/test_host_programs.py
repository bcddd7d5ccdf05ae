"""Programs that run on hosts with only the image's Python, with stubs of what they talk to."""

from __future__ import annotations

import ast
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import cast

import pytest

from http_stub import Response, Server, served
from tests.gateways.stub_host import run_program
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Host, Service
from weighbridge.gateways import daemon, program
from weighbridge.gateways.await_answers import ask
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.swift import swift_host
from weighbridge.topologies.fake import FakeHost

ROOT = Path(swift_host.__file__).parent.parent
USER = swift_host.stored("AUTH_/user/weigh:bench")
TOKEN = swift_host.stored("AUTH_/token/AUTH_tk1")
ON_HOSTS = [
    *("rgw/ask_mon", "rgw/ask_daemon"),
    *("apache/apache_host", "haproxy/haproxy_counters"),
    *("swift/swift_host", "await_answers", "join_garage_nodes"),
]


class Shelf:
    """A stub host for files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, path: str, content: str | bytes) -> None:
        (self.folder / Path(path).name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )


def shipped(name: str, folder: Path) -> Path:
    *_, path = program.ship(
        cast("Host", Shelf(folder)), f"weighbridge.gateways.{name.replace('/', '.')}"
    )
    return folder / Path(path).name


def texts(path: Path) -> dict[str, str]:
    if path.suffix == ".py":
        return {"__main__.py": path.read_text()}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize("name", ON_HOSTS)
def test_a_program_for_hosts_needs_only_python_3_9_and_what_is_shipped_with_it(
    name: str, tmp_path: Path
) -> None:
    found = texts(shipped(name, tmp_path))
    for text in found.values():
        tree = ast.parse(text, feature_version=(3, 9))
        modules = {
            alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        wanted = {name for name in modules if name.split(".")[0] in {"weighbridge", "pydantic"}}
        assert {f"{name.replace('.', '/')}.py" for name in wanted} <= {*found}


def test_a_program_with_imports_from_this_suite_runs_without_the_suite_installed(
    tmp_path: Path,
) -> None:
    path = shipped("swift/swift_host", tmp_path)
    # The virtual environment's base Python, which does not see the installed suite.
    python = (os.path.realpath(sys.executable), "-I", "-S")
    argv = [*python, str(path), "storage", str(tmp_path), str(tmp_path / "none.recon")]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["async_folders"] == 0, done.stderr


def test_a_daemon_is_asked_by_the_protocol_of_its_admin_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "asok")
    heard = []

    def serve(wire: socket.socket) -> None:
        for _ in range(2):
            connection, _ = wire.accept()
            with connection:
                heard.append(connection.recv(4096))
                answer = b'{"n": %d}' % len(heard)
                connection.sendall(len(answer).to_bytes(4, "big") + answer)

    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(path)
        wire.listen()
        thread = threading.Thread(target=serve, args=(wire,))
        thread.start()
        order = json.dumps([[path, {"prefix": "version"}], [path, {"prefix": "cache drop"}]])
        argv = [sys.executable, "-I", str(ROOT / "rgw/ask_daemon.py")]
        done = subprocess.run(argv, input=order, capture_output=True, text=True, check=True)
        thread.join()
    assert heard == [b'{"prefix": "version"}\0', b'{"prefix": "cache drop"}\0']
    assert json.loads(done.stdout) == ['{"n": 1}', '{"n": 2}']


class Memcached(socketserver.StreamRequestHandler):
    """A stub of memcached."""

    def handle(self) -> None:
        held: dict[str, bytes] = self.server.held  # type: ignore[attr-defined]
        for line in self.rfile:
            words = line.decode().split()
            if words[0] == "mg":
                value = held.get(words[1])
                self.wfile.write(
                    b"EN\r\n" if value is None else b"VA %d f2 t600\r\n%s\r\n" % (len(value), value)
                )
            elif words[0] == "stats":
                self.wfile.write(b"STAT pid 1\r\nSTAT curr_items %d\r\nEND\r\n" % len(held))
            elif words[0] == "flush_all":
                held.clear()
                self.wfile.write(b"OK\r\n")
            else:
                assert words[0] == "set"
                assert words[2:4] == ["2", "600"]
                held[words[1]] = self.rfile.read(int(words[4]) + 2)[:-2]
                self.wfile.write(b"STORED\r\n")


def serving() -> AbstractContextManager[socketserver.TCPServer]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Memcached)
    server.held = {}  # type: ignore[attr-defined]
    return served(server)


SWIFT_HOST = str(ROOT / "swift/swift_host.py")


STORED = {USER: b'"AUTH_tk1"', TOKEN: b"[1, 2]"}
OTHERS = {"a": b"1", "b": b"2", swift_host.stored("AUTH_/token/of somebody else"): b"3"}


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        ([STORED | OTHERS], [STORED]),
        ([{"a": b"1"}], [{}]),
        # Wherever the proxies stored it.
        (
            [{TOKEN: STORED[TOKEN], "a": b"1"}, {USER: STORED[USER], "b": b"2"}],
            [{TOKEN: STORED[TOKEN]}, {USER: STORED[USER]}],
        ),
    ],
)
def test_memcached_is_emptied_except_for_the_users_token(
    held: list[dict[str, bytes]], kept: list[dict[str, bytes]]
) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(serving()) for _ in held]
        for server, one in zip(servers, held, strict=True):
            server.held.update(one)  # type: ignore[attr-defined]
        before, after = sum(map(len, held)), sum(map(len, kept))
        places = [one.server_address[:2] for one in servers]
        order = json.dumps({"servers": places, "prefix": "AUTH_", "user": "weigh:bench"})
        argv = [sys.executable, "-I", SWIFT_HOST, "drop"]
        done = subprocess.run(argv, input=order, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == {"dropped": before - after, "kept": after}
        assert [server.held for server in servers] == kept  # type: ignore[attr-defined]


def test_memcacheds_counters_are_printed_by_its_own_names() -> None:
    with serving() as memcached:
        address, port = memcached.server_address[:2]
        memcached.held.update({"a": b"1"})  # type: ignore[attr-defined]
        done = run_program(SWIFT_HOST, "memcached", str(address), str(port))
    assert json.loads(done.stdout) == {"curr_items": 1}


def test_a_stopped_memcached_gives_no_line(tmp_path: Path) -> None:
    with socket.socket() as wire:
        wire.bind(("127.0.0.1", 0))
        port = str(wire.getsockname()[1])
        done = run_program(SWIFT_HOST, "memcached", "127.0.0.1", port)
    assert done.stdout == ""
    assert "refused" in done.stderr


def test_a_storage_hosts_counters_need_no_request_to_its_servers(tmp_path: Path) -> None:
    for name in ("d0/async_pending/0a1", "d0/async_pending/fff", "d1/async_pending-1/123"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "d1/objects/7").mkdir(parents=True)
    recon = tmp_path / "object.recon"
    kept = {"async_pending": 7, "object_updater_sweep": 0.5}
    recon.write_text(json.dumps({**kept, "object_auditor_stats_ALL": {"passes": 1}}))
    done = run_program(SWIFT_HOST, "storage", str(tmp_path), str(recon))
    values = json.loads(done.stdout)
    assert {**kept, "async_folders": 3}.items() <= values.items()
    assert {name for name in values if name.startswith("tcp_")} == {"tcp_inuse", "tcp_tw"}
    assert all(isinstance(value, (int, float)) for value in values.values())


def test_syslog_messages_become_lines_without_their_priority(tmp_path: Path) -> None:
    device, log = tmp_path / "log", tmp_path / "swift.log"
    program = (
        "from weighbridge.gateways.swift import swift_host; swift_host.DEVICE = "
        f"{str(device)!r}; swift_host.syslog({str(log)!r})"
    )
    with (
        subprocess.Popen([sys.executable, "-c", program]) as process,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire,
    ):
        try:
            while not device.exists():
                assert process.poll() is None
            wire.connect(str(device))
            wire.send(b"<134>proxy-server: one\0")
            wire.send(b"<11>two")
            while not log.exists() or log.read_text().count("\n") < 2:
                assert process.poll() is None
        finally:
            process.kill()
    assert log.read_text() == "proxy-server: one\ntwo\n"
    assert device.stat().st_mode & 0o777 == 0o666


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
    assert time.monotonic() - started >= 0.3


def test_a_daemon_that_dies_is_reported_at_once_with_its_last_lines(
    host: FakeHost, port: int
) -> None:
    dying = python(host, "dying", "print('cannot bind'); raise SystemExit(1)", port)
    daemon.start([dying])
    with pytest.raises(ServiceFailed, match=r"(?s)store-1: dying: died.*\| cannot bind") as failure:
        await_ports(host, [dying], quiet, deadline_s=60)
    assert failure.value.log == str(host.log("dying.out"))


def test_a_daemon_that_died_is_reported_although_another_answers_on_its_port(
    host: FakeHost, port: int
) -> None:
    other = python(host, "other", LISTEN.format(late=0, port=port), port)
    dead = python(host, "dead", "raise SystemExit(1)", port)
    daemon.start([other, dead])
    while host.alive("dead"):
        time.sleep(0.01)
    await_ports(host, [other], quiet, deadline_s=30)
    with pytest.raises(ServiceFailed, match="store-1: dead: died"):
        await_ports(host, [dead], quiet, deadline_s=30)


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


@pytest.mark.parametrize(("status", "answered"), [(200, [0]), (404, [0]), (503, [])])
def test_a_server_that_is_asked_may_answer_anything_but_5xx(
    status: int, answered: list[int]
) -> None:
    with Server(lambda _: Response(status)).serving() as server:
        wanted = {"url": f"http://127.0.0.1:{server.port}/healthcheck", "below": 500}
        assert list(ask([wanted], 0.2, lambda: False)) == answered


def test_asking_ends_when_the_reader_has_gone(port: int) -> None:
    assert list(ask([{"address": "127.0.0.1", "port": port}], 60, lambda: True)) == []
