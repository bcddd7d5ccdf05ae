"""What the engine records at a window's ends: requests in flight, failures, and a rate."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.drivers.conftest import SEED, Bench, Served, always, shape, until
from weighbridge.drivers.engine import _native
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally

Make = Callable[..., Any]
TAKES_S = 0.002
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _native.content(SEED, 1000, 0, 1000)


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
        connection.sendall(OK)
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
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" if fails else OK)
        return True

    served: Served = scripted(answer)
    engine = bench(served, threads=2)
    engine.start(4)
    snapshot = engine.window(lambda since: since["failed"] >= 50)
    tally = Tally.model_validate(snapshot["by"]["read"])
    assert set(tally.errors) == {"http-503"}
    assert 50 <= tally.errors["http-503"] <= engine.progress["errors"]["http-503"]
    assert tally.failed_us is not None
    assert tally.busy_us is not None
    # Of the first of each worker a part may be before the window.
    takes_us = TAKES_S * 1e6
    assert tally.failed_us > (takes_us + 10_000) * (tally.failed - 4)  # a pause of 10 ms after each
    assert tally.busy_us > tally.failed_us + takes_us * (tally.count - 4)
    # Never more than the window; less by the time between a worker's requests.
    assert tally.busy_us / (4e6 * snapshot["window_s"]) < 1.01


def test_errors_of_all_threads_are_added(scripted: Make, bench: Make) -> None:
    busy = always(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
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
