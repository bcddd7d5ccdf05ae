"""The program that prints counters of Ceph's daemons, with a stub of an admin socket."""

import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateways.stub_host import run_program
from weighbridge.gateways.rgw import ceph_counters
from weighbridge.gateways.rgw.monitor import OSD, RADOSGW

PROGRAM = ceph_counters.__file__
GROUPS = {
    "rgw": {"req": 7, "qlen": 0, "put_initial_lat": {"avgcount": 2, "sum": 0.5, "avgtime": 0.25}},
    "rgw_op": {"get_obj_ops": 4},
}


class Admin(socketserver.StreamRequestHandler):
    """A stub of an admin socket."""

    def handle(self) -> None:
        asked = b""
        while not asked.endswith(b"\0"):
            asked += self.rfile.read(1)
        command = json.loads(asked[:-1])
        assert command["prefix"] == "perf dump"
        group = command["logger"]
        text = json.dumps({group: GROUPS[group]} if group in GROUPS else {}).encode()
        self.wfile.write(len(text).to_bytes(4, "big") + text)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "asok")
    with socketserver.ThreadingUnixStreamServer(path, Admin) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def test_a_latency_is_printed_as_sum_and_count_and_missing_counters_are_left_out(
    daemon: str,
) -> None:
    wanted = ceph_counters.parse(
        ["req=rgw.req", "lat=rgw.put_initial_lat", "none=rgw.nothing", "gone=other.req"]
    )
    assert ceph_counters.counters(daemon, wanted) == {"req": 7, "lat_sum_s": 0.5, "lat_count": 2.0}


def test_a_counter_is_found_where_the_release_has_it(daemon: str) -> None:
    wanted = ceph_counters.parse(
        ["get=rgw.get,rgw_op.get_obj_ops", "qlen=rgw.qlen,rgw_op.get_obj_ops"]
    )
    assert ceph_counters.counters(daemon, wanted) == {"get": 4, "qlen": 0}


def test_lines_come_at_once_and_every_second_until_stdin_closes(daemon: str) -> None:
    argv = [sys.executable, "-I", PROGRAM, daemon, *RADOSGW]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(10) == 0
    latency = {"put_initial_lat_sum_s": 0.5, "put_initial_lat_count": 2.0}
    assert lines == [{"req": 7, "qlen": 0, "get": 4, **latency}] * 2


def test_a_second_without_an_answer_has_no_line_but_a_reason_on_stderr(tmp_path: Path) -> None:
    done = run_program(PROGRAM, str(tmp_path / "missing"), "req=rgw.req")
    assert done.stdout == ""
    assert "missing: [Errno 2]" in done.stderr


@pytest.mark.parametrize("counters", [RADOSGW, OSD])
def test_no_two_counters_have_the_same_name(counters: tuple[str, ...]) -> None:
    names = [one.partition("=")[0] for one in counters]
    assert names
    assert len(set(names)) == len(names)
