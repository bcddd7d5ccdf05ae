"""Programs that run on hosts with nothing but the image's Python: here against stand-ins for what they talk to."""

import ast
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateways.swift import drop_memcached, write_syslog

ROOT = Path(write_syslog.__file__).parent.parent
ON_HOSTS = ["rgw/ask_mon", "rgw/ask_daemon", "swift/make_rings", "swift/write_syslog", "swift/drop_memcached"]


@pytest.mark.parametrize("name", ON_HOSTS)
def test_a_program_for_hosts_needs_no_newer_python_and_nothing_of_this_suite(name: str) -> None:
    tree = ast.parse((ROOT / f"{name}.py").read_text(), feature_version=(3, 9))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in modules if name.split(".")[0] in {"gateways", "ground", "pydantic"}}


def test_a_daemon_is_asked_in_the_words_of_its_admin_socket(tmp_path: Path) -> None:
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
    """As much of memcached as is asked of it."""

    def handle(self) -> None:
        held: dict[str, bytes] = self.server.held  # type: ignore[attr-defined]
        for line in self.rfile:
            words = line.decode().split()
            if words[0] == "mg":
                value = held.get(words[1])
                self.wfile.write(b"EN\r\n" if value is None else b"VA %d f2 t600\r\n%s\r\n" % (len(value), value))
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


@pytest.fixture
def memcached() -> Iterator[socketserver.TCPServer]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Memcached) as server:
        server.held = {}  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def drop(server: socketserver.TCPServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    address, port = server.server_address[:2]
    order = json.dumps({"address": address, "port": port, "prefix": "AUTH_", "user": "weigh:bench"})
    read, write = os.pipe()
    os.write(write, order.encode())
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        drop_memcached.main()
    answer: dict[str, int] = json.loads(capsys.readouterr().out)
    return answer


def test_memcached_is_emptied_but_for_the_users_token(
    memcached: socketserver.TCPServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user, token = drop_memcached.stored("AUTH_/user/weigh:bench"), drop_memcached.stored("AUTH_/token/AUTH_tk1")
    other = {"a": b"1", "b": b"2", drop_memcached.stored("AUTH_/token/of somebody else"): b"3"}
    memcached.held.update({user: b'"AUTH_tk1"', token: b"[1, 2]", **other})  # type: ignore[attr-defined]
    assert drop(memcached, monkeypatch, capsys) == {"dropped": 3, "kept": 2}
    assert memcached.held == {user: b'"AUTH_tk1"', token: b"[1, 2]"}  # type: ignore[attr-defined]


def test_memcached_without_a_token_is_emptied_altogether(
    memcached: socketserver.TCPServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memcached.held.update({"a": b"1"})  # type: ignore[attr-defined]
    assert drop(memcached, monkeypatch, capsys) == {"dropped": 1, "kept": 0}
    assert memcached.held == {}  # type: ignore[attr-defined]


def test_syslog_messages_become_lines_without_their_priority(tmp_path: Path) -> None:
    device, log = tmp_path / "log", tmp_path / "swift.log"
    program = f"import sys; sys.argv[1:] = [{str(log)!r}]; sys.path.insert(0, {str(ROOT.parent)!r})\n"
    program += f"from gateways.swift import write_syslog; write_syslog.DEVICE = {str(device)!r}; write_syslog.main()"
    with subprocess.Popen([sys.executable, "-c", program]) as process, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
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
