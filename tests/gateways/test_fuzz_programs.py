"""Mutated answers of daemons to programs on their hosts: only exceptions main() handles."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Self

import pytest

from tests.mutation import Dice, bounded, cases, wrong_bytes, wrong_json, wrong_text
from weighbridge.gateways.apache import apache_host
from weighbridge.gateways.haproxy import haproxy_counters
from weighbridge.gateways.rgw import ask_daemon
from weighbridge.gateways.swift import swift_host

STAT: Final = """# pxname,svname,qcur,scur,stot,bin,bout,status,check_status,hrsp_2xx,rtime,
http,FRONTEND,,3,17,1234,5678,OPEN,,17,,
gateways,gateway-1,0,2,9,123,567,UP,* L7OK,9,12,
gateways,gateway-2,0,1,8,123,567,DOWN 1/2,L4CON,8,0,
gateways,BACKEND,0,3,17,1234,5678,UP,,17,6,
"""
INFO: Final = "Name: HAProxy\nVersion: 2.6.12\nUptime_sec: 12\nMaxconn: 4000\n"
STATUS: Final = """ServerVersion: Apache/2.4.57
Total Accesses: 12
Total kBytes: 45
Total Duration: 78
BusyWorkers: 2
IdleWorkers: 23
Processes: 1
Stopping: 0
Scoreboard: __W_R...K.C.G
"""
MEMCACHED: Final = (
    "STAT pid 7\r\nSTAT curr_items 12\r\nSTAT bytes 3456\r\nSTAT get_hits "
    "9\r\nSTAT version 1.6.18\r\nEND\r\n"
)
DUMP: Final = {
    "rgw": {"req": 12, "qlen": 1, "get_initial_lat": {"avgcount": 3, "sum": 0.25, "avgtime": 0.08}}
}
WANTED: Final = ask_daemon.parse(
    ["req=rgw.req", "qlen=rgw.qlen", "lat=rgw.get_initial_lat", "hits=rgw.cache_hit,rgw.hits"]
)


class Wire:
    """A connection that returns one answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = io.BytesIO(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...
    def settimeout(self, _: float) -> None: ...
    def connect(self, _: str) -> None: ...
    def sendall(self, _: bytes) -> None: ...

    def recv(self, most: int) -> bytes:
        return self._answer.read(most)

    @contextmanager
    def makefile(self, mode: str) -> Iterator[Any]:
        yield (
            io.TextIOWrapper(self._answer, encoding="utf-8") if mode == "r" else Talk(self._answer)
        )


class Talk:
    """The same answer as a file that can also be written."""

    def __init__(self, answer: io.BytesIO) -> None:
        self._answer = answer
        self.read = answer.read

    def write(self, _: bytes) -> None: ...
    def flush(self) -> None: ...

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)


def check(monkeypatch: pytest.MonkeyPatch, answer: bytes, ask: Callable[[], object]) -> None:
    """The result can be printed as a line of JSON, or the exception is a handled one."""
    with monkeypatch.context() as patch, bounded():
        patch.setattr(socket, "socket", lambda *_: Wire(answer))
        patch.setattr(socket, "create_connection", lambda *_, **__: Wire(answer))
        with suppress(OSError, ValueError):
            json.dumps(ask()).encode()


@cases
def test_any_answer_of_haproxy_gives_numbers_or_no_line(dice: Dice) -> None:
    answer = wrong_text(dice, dice.choice((STAT, STAT, INFO))).encode(errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        check(
            patch, answer, lambda: haproxy_counters.numbers(haproxy_counters.rows("/run/haproxy"))
        )
        check(
            patch, answer, lambda: haproxy_counters.waiting(haproxy_counters.rows("/run/haproxy"))
        )
        check(patch, answer, lambda: haproxy_counters.info("/run/haproxy"))


@cases
def test_any_answer_of_apache_and_its_responder_gives_numbers_or_no_line(dice: Dice) -> None:
    status = dict(
        line.split(": ", 1) for line in wrong_text(dice, STATUS).splitlines() if ": " in line
    )
    counters = wrong_json(dice, {"requests": 3, "open": 1, "bytes": 12})
    with pytest.MonkeyPatch.context() as patch:
        check(patch, b"", lambda: apache_host.counters(status))
        check(patch, counters, lambda: apache_host.responder("10.0.0.1", 9000))


@cases
def test_any_answer_of_memcached_gives_numbers_or_no_line(dice: Dice) -> None:
    with pytest.MonkeyPatch.context() as patch:
        check(
            patch,
            wrong_bytes(dice, MEMCACHED.encode()),
            lambda: swift_host.counters("10.0.0.1", 11211),
        )


@cases
def test_any_answer_of_an_admin_socket_gives_numbers_or_no_line(dice: Dice) -> None:
    data = wrong_json(dice, DUMP)
    length = len(data) if dice.random() < 0.9 else dice.choice((0, 1, 2**31, 2**32 - 1))
    with pytest.MonkeyPatch.context() as patch:
        check(
            patch,
            length.to_bytes(4, "big") + data,
            lambda: ask_daemon.counters("/run/ceph/osd.0.asok", WANTED),
        )


@pytest.mark.parametrize(
    "rows",
    [
        "",
        "Unknown command.\n",
        "# pxname,svname,status,\nhttp,FRONTEND\n",
        "# pxname,svname,status,\na,b,c,,d\n",
    ],
)
def test_servers_missing_from_haproxys_answer_are_not_up(
    rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(haproxy_counters, "ask", lambda *_, **__: rows)
    with pytest.raises(ValueError, match="incomplete rows"):
        haproxy_counters.rows("/run/haproxy")
    assert haproxy_counters.await_up("/run/haproxy", 0)


@pytest.mark.parametrize("answer", [b"STAT\r\n", b"\r\n", b"STAT bytes\r\nEND\r\n", b"ERROR\r\n"])
def test_a_memcached_without_statistics_gives_no_line(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: Wire(answer))
    with pytest.raises(ValueError, match="memcached answered"):
        swift_host.counters("10.0.0.1", 11211)


@pytest.mark.parametrize(
    "answer", [b"[]", b'{"rgw": 7}', b'{"rgw": {"get_initial_lat": {"sum": 1}}}', b"[" * 100_000]
)
def test_a_daemon_without_counters_gives_no_line(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", lambda *_: Wire(len(answer).to_bytes(4, "big") + answer))
    with pytest.raises(ValueError, match=r"perf dump returned|no latency"):
        ask_daemon.counters("/run/ceph/osd.0.asok", WANTED)
