"""Several endpoints of one target: who gets which request, and what is said of each."""

from __future__ import annotations

import calendar
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from tests.drivers.conftest import SEED, Bench, Served, always, closed_port, shape, until
from tests.drivers.good_answers import PART, REQUESTS, of_api, well, workload_of
from tests.drivers.test_engine import make_buckets
from weighbridge.drivers.engine import _native
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Tally

Make = Callable[..., Any]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _native.content(SEED, 1000, 0, 1000)
REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 4\r\n\r\nbusy"


good, busy = always(ANSWER), always(REFUSAL)


def place(port: int, host: str = "127.0.0.1", **more: Any) -> dict[str, Any]:
    return {"name": f"{host}:{port}", "host": host, "port": port, "address": None, **more}


def spread(make: Make, ports: list[int], workload: Any = None, **config: Any) -> Bench:
    given = {"endpoints": [place(port) for port in ports], **config}
    engine: Bench = make(Served(1), workload, **given)
    return engine


def header(head: bytes, name: bytes) -> bytes:
    lines = (line.partition(b":") for line in head.split(b"\r\n"))
    return next(value.strip() for found, _, value in lines if found.lower() == name.lower())


def at_endpoints(snapshot: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {int(one["name"].rpartition(":")[2]): one for one in snapshot["endpoints"]}


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_each_worker_keeps_to_one_endpoint_by_default(
    scripted: Make, bench: Make, api: str
) -> None:
    servers = [scripted(good) for _ in range(3)]
    engine = spread(bench, [one.port for one in servers], api=api, base_path="", token="t")
    engine.start(6)
    snapshot = engine.window(lambda since: since["done"] >= 300)
    engine.engine.stop(5.0)
    assert [one.accepted for one in servers] == [2, 2, 2]
    found = at_endpoints(snapshot)
    assert set(found) == {one.port for one in servers}
    for server in servers:
        one = found[server.port]
        assert 0 < one["count"] <= len(server.asked)
        assert (one["errors"], one["left_out"]) == ({}, False)
        assert HdrHistogram.decode(one["latency"]).get_total_count() == one["count"]
    assert sum(one["count"] for one in found.values()) == snapshot["by"]["read"]["count"]


def test_in_turns_a_worker_takes_one_endpoint_after_the_other(scripted: Make, bench: Make) -> None:
    servers = [scripted(good) for _ in range(3)]
    engine = spread(bench, [one.port for one in servers], spread="round-robin")
    engine.start(1)
    until(lambda: engine.progress["done"] >= 90, "reads")
    engine.engine.stop(5.0)
    asked = [len(one.asked) for one in servers]
    assert sum(asked) == engine.progress["done"]
    assert max(asked) - min(asked) <= 1
    assert [one.accepted for one in servers] == [1, 1, 1]


@pytest.mark.parametrize("spreading", ["per-worker", "round-robin"])
def test_s3_requests_are_signed_for_the_endpoint_that_is_asked(
    scripted: Make, bench: Make, spreading: str
) -> None:
    servers = [scripted(good) for _ in range(2)]
    engine = spread(bench, [one.port for one in servers], spread=spreading)
    engine.start(2)
    until(lambda: engine.progress["done"] >= 20, "reads")
    engine.engine.stop(5.0)
    for server in servers:
        assert server.asked
        for head in server.asked:
            host = f"127.0.0.1:{server.port}"
            assert header(head, b"Host") == host.encode()
            when = time.strptime(header(head, b"x-amz-date").decode(), "%Y%m%dT%H%M%SZ")
            path, keys = head.split()[1].decode(), ("AK", "SK", "")
            wanted = _native.signed_headers(
                keys, "us-east-1", host, "GET", path, "", calendar.timegm(when)
            )
            assert f"Authorization: {header(head, b'Authorization').decode()}\r\n" in wanted


def test_failures_are_counted_at_the_endpoint_that_made_them(scripted: Make, bench: Make) -> None:
    fine, bad = scripted(good), scripted(busy)
    engine = spread(bench, [fine.port, bad.port])
    engine.start(2)
    snapshot = engine.window(lambda since: since["done"] >= 50 and since["failed"] >= 3)
    found = at_endpoints(snapshot)
    assert found[fine.port]["errors"] == {}
    assert (found[bad.port]["count"], found[bad.port]["latency"]) == (0, None)
    assert found[bad.port]["errors"] == snapshot["by"]["read"]["errors"]
    assert set(found[bad.port]["errors"]) == {"http-503"}


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize(
    ("operation", "at_once"), [("list-all", 1), ("write-multipart", 1), ("write-multipart", 2)]
)
def test_endpoints_count_every_request_of_an_operation_of_several(
    scripted: Make, bench: Make, operation: str, at_once: int, api: str
) -> None:
    servers = [scripted(well(operation, api)) for _ in range(2)]
    parts = {"multipart": {"part": PART, "at_once": at_once}}
    workload = workload_of(operation, **(parts if operation == "write-multipart" else {}))
    ports = [one.port for one in servers]
    engine = spread(bench, ports, workload, spread="round-robin", **of_api(api))
    counted = at_endpoints(engine.alone("done", 20, leaves=True))
    assert engine.progress["errors"] == {}
    asked = {one.port: len(one.asked) for one in servers}
    # What a worker asks for after it was told to leave is not recorded.
    most = REQUESTS[operation][api]
    assert sum(asked.values()) - most <= sum(one["count"] for one in counted.values())
    for port, one in counted.items():
        assert 0 < one["count"] <= asked[port]
        assert HdrHistogram.decode(one["latency"]).get_total_count() == one["count"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_part_that_fails_is_counted_once_at_the_endpoint_that_refused_it(
    scripted: Make, bench: Make, at_once: int
) -> None:
    good_one = well("write-multipart")

    def refusing(connection: socket.socket, head: bytes) -> bool:
        return (busy if b"partNumber=" in head else good_one)(connection, head)

    fine, bad = scripted(good_one), scripted(refusing)
    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": at_once})
    engine = spread(bench, [fine.port, bad.port], workload, spread="round-robin")
    counted = at_endpoints(snapshot := engine.alone("failed", 5))
    assert counted[fine.port]["errors"] == {}
    assert counted[fine.port]["count"] > 0
    assert counted[bad.port]["errors"] == snapshot["by"]["write-part"]["errors"]
    assert set(counted[bad.port]["errors"]) == {"http-503"}


def test_an_endpoint_that_only_parts_find_dead_is_left_out(scripted: Make, bench: Make) -> None:
    alive, dead = scripted(well("write-multipart")), closed_port()
    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": 2})
    engine = spread(bench, [alive.port, dead], workload, spread="round-robin", drop_dead=True)
    counted = at_endpoints(engine.alone("done", 3))
    assert {port: one["left_out"] for port, one in counted.items()} == {
        alive.port: False, dead: True
    }  # fmt: skip
    assert set(counted[dead]["errors"]) == {"connect"}
    assert counted[dead]["errors"] == engine.progress["errors"]


def test_a_dead_endpoint_is_counted_and_its_workers_stay_with_it(
    scripted: Make, bench: Make
) -> None:
    alive, dead = scripted(good), closed_port()
    engine = spread(bench, [alive.port, dead])
    engine.start(2)
    snapshot = engine.window(lambda since: since["failed"] >= 5)
    found = at_endpoints(snapshot)
    assert set(found[dead]["errors"]) == {"connect"}
    assert found[dead]["errors"]["connect"] >= 5
    assert not found[dead]["left_out"]
    assert found[alive.port]["errors"] == {}
    assert f"127.0.0.1:{dead}" in engine.progress["last_error"]


@pytest.mark.parametrize("spreading", ["per-worker", "round-robin"])
def test_a_dead_endpoint_is_left_out_if_asked_and_its_workers_go_on_with_the_others(
    scripted: Make, bench: Make, spreading: str
) -> None:
    servers, dead = [scripted(good) for _ in range(2)], closed_port()
    ports = [servers[0].port, dead, servers[1].port]
    engine = spread(bench, ports, spread=spreading, drop_dead=True)
    engine.engine.open_window()
    for index in range(6):
        engine.engine.add_worker(index, 6, 0)
    until(lambda: engine.progress["done"] >= 600, "reads")
    engine.engine.close_window()
    engine.engine.stop(5.0)
    errors = engine.progress["errors"]
    assert set(errors) == {"connect"}
    # Each of the six workers may have been on its way there before the third failure.
    assert 3 <= errors["connect"] <= 8
    found = at_endpoints(engine.snapshot())
    assert {port: one["left_out"] for port, one in found.items()} == {
        servers[0].port: False, dead: True, servers[1].port: False
    }  # fmt: skip
    assert found[dead]["errors"] == errors
    shares = [len(one.asked) for one in servers]
    assert min(shares) > 0.2 * sum(shares)


def test_the_last_endpoint_is_never_left_out(bench: Make) -> None:
    ports = [closed_port(), closed_port()]
    engine = spread(bench, ports, drop_dead=True, spread="round-robin")
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["errors"].get("connect", 0) >= 7, "failures")
    left_out = [one["left_out"] for one in engine.snapshot()["endpoints"]]
    assert sorted(left_out) == [False, True]


def test_objects_are_prepared_and_deleted_past_a_dead_endpoint(null: Make, bench: Make) -> None:
    served = null()
    make_buckets(served)
    engine = spread(bench, [closed_port(), served.port])
    progress = engine.prepare()
    assert progress["done"] == 20
    assert set(progress["errors"]) == {"connect"}
    engine.engine.delete("objects", 3)
    assert engine.finish()["done"] == 40


def test_every_address_of_a_name_gets_requests_with_that_name(scripted: Make, bench: Make) -> None:
    first = scripted(good)
    second = scripted(good, None, ("127.0.0.2", first.port))
    places = [
        place(first.port, "localhost", name=address, address=address)
        for address in ("127.0.0.1", "127.0.0.2")
    ]
    engine = bench(first, endpoints=places)
    engine.start(2)
    snapshot = engine.window(lambda since: since["done"] >= 20)
    assert [one["name"] for one in snapshot["endpoints"]] == ["127.0.0.1", "127.0.0.2"]
    assert [one.accepted for one in (first, second)] == [1, 1]
    for server in (first, second):
        assert {header(head, b"Host") for head in server.asked} == {
            f"localhost:{first.port}".encode()
        }


RING = {
    "disks": [{"address": "127.0.0.1", "port": 1, "device": "d"}],
    "table": [[0, 0]],
    "part_power": 1,
    "hash_prefix": "a",
    "hash_suffix": "b",
}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"endpoints": [place(1), place(1)]}, "different names"),
        ({"endpoints": [place(port) for port in range(1, 66)]}, "at most 64"),
        ({"endpoints": [place(1, name="a\r\nb"), place(2)]}, "control characters"),
        ({"endpoints": [place(1, host="a\nb"), place(2)]}, "control characters"),
        ({"endpoints": [place(1, address="nowhere"), place(2)]}, "engine config"),
        ({"endpoints": [place(1, weight=2), place(2)]}, "engine config"),
        ({"endpoints": [place(1), place(2, "no.such.name.invalid")]}, "no.such.name.invalid"),
        ({"spread": "at-random"}, "engine config"),
        ({"addressing": "virtual", "endpoints": [place(1, "a.example"), place(2)]}, "virtual"),
        (
            {"api": "object-server", "ring": RING, "endpoints": [place(1), place(2)]},
            "a ring has its own servers",
        ),
    ],
)
def test_endpoints_that_cannot_be_are_refused(
    bench: Make, config: dict[str, Any], message: str
) -> None:
    host = {"host": "a.example"} if config.get("addressing") == "virtual" else {}
    with pytest.raises(ValueError, match=message):
        bench(Served(1), None, **{**host, **config})


def test_a_closed_port_is_a_connect_error_and_is_not_hammered(bench: Make) -> None:
    engine = bench(Served(closed_port()))
    since_s = time.monotonic()
    engine.engine.add_worker(0, 1, 0)
    time.sleep(1.0)
    errors = engine.progress["errors"]
    passed_s = time.monotonic() - since_s
    # Pauses of 10, 20, 40 ... ms: the seventh try comes after 0.63 s, the eighth after 1.27 s.
    assert set(errors) == {"connect"}
    assert 3 <= errors["connect"] <= int(math.log2(passed_s / 0.01 + 1)) + 1
    assert engine.engine.stop(0.0) == 0
    assert "refused" in engine.progress["last_error"]


TAKES_S = 0.002


class Gate:
    """A target that answers while it is open, and holds requests while it is closed; `held` counts
    those.
    """

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.held = 0
        self._lock = threading.Lock()

    def answer(self, connection: socket.socket, head: bytes) -> bool:
        if not self.open.is_set():
            with self._lock:
                self.held += 1
            assert self.open.wait(30)
        connection.sendall(ANSWER)
        return True


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


def read(engine: Bench) -> Tally:
    return Tally.model_validate(engine.snapshot()["by"]["read"])


def stalled(gate: Gate, engine: Bench, workers: int) -> float:
    """Open the window, stall all workers, and close it; returns for how long at least the last one
    was stalled.
    """
    engine.start(workers)
    engine.engine.open_window()
    gate.open.clear()
    until(lambda: gate.held == workers, "all workers wait")
    since_s = time.perf_counter()
    until(lambda: time.perf_counter() > since_s + 0.2, "a stall")
    waited_s = time.perf_counter() - since_s
    engine.engine.close_window()
    return waited_s


@pytest.mark.parametrize("threads", [1, 3])
def test_requests_in_flight_when_the_window_closes_are_recorded_by_age(
    scripted: Make, bench: Make, gate: Gate, threads: int
) -> None:
    engine = bench(scripted(gate.answer), threads=threads)
    waited_s = stalled(gate, engine, 5)
    closed = read(engine)
    assert closed.in_flight is not None
    assert closed.in_flight_max_us is not None
    assert closed.outstanding_us is not None
    ages = Histogram.decode(closed.in_flight)
    assert ages.count == 5
    assert ages.percentile_us(1) >= waited_s * 1e6
    assert closed.in_flight_max_us <= ages.percentile_us(100) * 1.001
    assert 5 * waited_s * 1e6 <= closed.outstanding_us <= 5 * closed.in_flight_max_us
    # What they get afterwards is not part of this window.
    gate.open.set()
    done = engine.progress["done"]
    until(lambda: engine.progress["done"] > done + 20, "workers continue")
    assert read(engine) == closed
    assert closed.max_us is None or closed.max_us < waited_s * 1e6


def test_a_closed_loop_accounts_for_all_of_its_workers_time(scripted: Make, bench: Make) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        fails = len(served.asked) % 10 == 0
        time.sleep(TAKES_S)
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" if fails else ANSWER)
        return True

    served: Served = scripted(answer)
    engine = bench(served, threads=2)
    engine.start(4)
    snapshot = engine.window(lambda since: since["failed"] >= 50)
    tally = Tally.model_validate(snapshot["by"]["read"])
    assert set(tally.errors) == {"http-503"}
    assert 50 <= tally.errors["http-503"] <= engine.progress["errors"]["http-503"]
    assert snapshot["endpoints"] == []  # a single one is not counted apart
    assert tally.failed_us is not None
    assert tally.busy_us is not None
    # Of the first of each worker a part may be before the window.
    takes_us = TAKES_S * 1e6
    assert tally.failed_us > (takes_us + 10_000) * (tally.failed - 4)  # a pause of 10 ms after each
    assert tally.busy_us > tally.failed_us + takes_us * (tally.count - 4)
    # Never more than the window; less by the time between a worker's requests.
    assert tally.busy_us / (4e6 * snapshot["window_s"]) < 1.01


def test_errors_of_all_threads_are_added(scripted: Make, bench: Make) -> None:
    engine = bench(scripted(busy), threads=4)
    engine.engine.open_window()
    engine.start(8)
    until(lambda: engine.progress["failed"] >= 100, "failures")
    engine.engine.stop(10.0)
    # All that were counted, on any thread, but those that ended after workers were asked to leave.
    total = engine.progress["errors"]["http-503"]
    assert total - 8 <= read(engine).errors["http-503"] <= total


def test_a_worker_that_leaves_is_not_counted_any_more(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    engine = bench(scripted(gate.answer), threads=2)
    engine.start(4)
    gate.open.clear()
    until(lambda: gate.held == 4, "all workers wait")
    engine.engine.open_window()
    for index in range(4):
        engine.engine.remove_worker(index)
    # Threads handle commands in order: before this close they have handled the removals.
    engine.engine.close_window()
    engine.engine.open_window()
    gate.open.set()
    engine.finish()
    engine.engine.close_window()
    tally = read(engine)
    assert (tally.count, tally.errors, tally.in_flight, tally.outstanding_us) == (0, {}, None, 0)


def test_a_timed_out_request_is_at_least_as_long_as_its_timeout(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    engine = bench(scripted(gate.answer), request_timeout_s=0.2)
    engine.start(2)
    engine.engine.open_window()
    gate.open.clear()
    before = engine.progress["failed"]
    until(lambda: engine.progress["failed"] >= before + 2, "timeouts")
    engine.engine.close_window()
    tally = read(engine)
    assert tally.in_flight is not None
    assert tally.errors["timeout"] >= 2
    assert (tally.in_flight_max_us or 0) >= 200_000
    assert (tally.failed_us or 0) >= 400_000


def test_at_a_rate_requests_not_sent_in_time_are_in_flight_too(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    # One worker with 100 requests a second that is stalled: the others queue behind its outstanding
    # one.
    engine = bench(scripted(gate.answer), shape(rate_per_s=100.0))
    waited_s = stalled(gate, engine, 1)
    snapshot = engine.snapshot()
    tally = read(engine)
    assert tally.in_flight is not None
    ages = Histogram.decode(tally.in_flight)
    assert ages.count == pytest.approx(100 * (tally.in_flight_max_us or 0) / 1e6, abs=2)
    assert ages.count >= 100 * waited_s
    # Ages are 10 ms apart: their median is half of the oldest.
    assert ages.percentile_us(50) == pytest.approx((tally.in_flight_max_us or 0) / 2, rel=0.15)
    assert snapshot["behind_us"] == pytest.approx((tally.in_flight_max_us or 0) - 10_000, abs=100)
    assert snapshot["begun"] <= tally.count + 1


def test_at_a_rate_that_is_kept_all_requests_start_and_no_worker_is_behind(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    engine = bench(scripted(gate.answer), shape(rate_per_s=200.0), threads=2)
    engine.engine.open_window()
    for index in range(4):
        engine.engine.add_worker(index, 4, 0)
    until(lambda: engine.progress["done"] >= 100, "requests")
    engine.engine.close_window()
    snapshot = engine.snapshot()
    due, read = 200 * snapshot["window_s"], snapshot["by"]["read"]
    # On a busy machine some that were due are sent after the window.
    late = Histogram.decode(read["in_flight"]).count if read["in_flight"] else 0
    assert snapshot["begun"] <= due + 4
    assert snapshot["begun"] + late >= 0.9 * due - 3
    assert snapshot["behind_us"] < 1e6 * snapshot["window_s"]


def test_with_several_operations_the_waiting_ones_are_the_next_of_the_sequence(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    mix = shape(rate_per_s=100.0, operations={"read": 1.0, "head": 3.0})

    def answer(connection: socket.socket, head: bytes) -> bool:
        if head.startswith(b"GET") or not gate.open.is_set():
            return gate.answer(connection, head)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        return True

    served = scripted(answer)
    engine = bench(served, mix)
    stalled(gate, engine, 1)
    asked = len(served.asked)
    tallies = engine.snapshot()["by"]
    ages = {
        name: Histogram.decode(one["in_flight"]).count
        for name, one in tallies.items()
        if one["in_flight"]
    }
    picker = _native.Picker(json.dumps(mix), SEED, 1, 0, 0)
    sequence = [picker.next()[0] for _ in range(asked - 1 + sum(ages.values()))][asked - 1 :]
    assert ages == {name: sequence.count(name) for name in set(sequence)}
