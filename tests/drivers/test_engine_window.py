"""What the engine records of a window's ends: what is in flight when it closes, what failed, and
how a rate was kept.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.drivers.conftest import SEED, Bench, Served, shape, until
from weighbridge.drivers.engine import _native
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally

Make = Callable[..., Any]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _native.content(SEED, 1000, 0, 1000)


class Gate:
    """A target that answers while it is open, and holds back what comes while it is closed; `held`
    counts that.
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
    """Open the window, have all workers wait in vain from then on, and close it; for how long the
    first at least has waited.
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
def test_what_is_in_flight_when_the_window_closes_is_recorded_by_its_age(
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
    # What they get afterwards is not of this window.
    gate.open.set()
    done = engine.progress["done"]
    until(lambda: engine.progress["done"] > done + 20, "workers go on")
    assert read(engine) == closed
    assert closed.max_us is None or closed.max_us < waited_s * 1e6


def test_a_closed_loop_accounts_for_all_of_its_workers_time(scripted: Make, bench: Make) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        fails = len(served.asked) % 10 == 0
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" if fails else OK)
        return True

    served: Served = scripted(answer)
    engine = bench(served, threads=2)
    engine.start(4)
    snapshot = engine.window(lambda since: since["failed"] >= 50)
    tally = Tally.model_validate(snapshot["by"]["read"])
    assert tally.errors == {"http-503": pytest.approx(50, abs=30)}
    assert tally.failed_us is not None
    assert tally.busy_us is not None
    assert tally.failed_us > 10_000 * (tally.failed - 4)  # each is followed by a rest of 10 ms
    # Never more than there is; less by what a worker needs from one request to the next.
    assert 0.7 < tally.busy_us / (4e6 * snapshot["window_s"]) < 1.01


def test_errors_of_all_threads_are_added_up(scripted: Make, bench: Make) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        return True

    engine = bench(scripted(answer), threads=4)
    engine.engine.open_window()
    engine.start(8)
    until(lambda: engine.progress["failed"] >= 100, "failures")
    engine.engine.stop(10.0)
    # All that were counted as they came, on whichever thread, but those that ended after the
    # workers were told to leave.
    counted = read(engine).errors["http-503"]
    assert (
        engine.progress["errors"]["http-503"] - 8
        <= counted
        <= engine.progress["errors"]["http-503"]
    )


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
    # Threads obey in order: what was counted at this close had been told to leave before.
    engine.engine.close_window()
    engine.engine.open_window()
    gate.open.set()
    engine.finish()
    engine.engine.close_window()
    tally = read(engine)
    assert (tally.count, tally.errors, tally.in_flight, tally.outstanding_us) == (0, {}, None, 0)


def test_what_timed_out_is_at_least_as_long_as_its_timeout(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    engine = bench(scripted(gate.answer), request_timeout_s=0.2)
    engine.start(2)
    engine.engine.open_window()
    gate.open.clear()
    until(lambda: engine.progress["failed"] >= 2, "timeouts")
    engine.engine.close_window()
    tally = read(engine)
    assert tally.in_flight is not None
    assert tally.errors["timeout"] >= 2
    assert (tally.in_flight_max_us or 0) >= 200_000
    assert (tally.failed_us or 0) >= 400_000


def test_at_a_rate_what_was_not_sent_in_time_is_in_flight_too(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    # One worker that is meant to ask 100 times a second and is kept waiting: the others queue up
    # behind the one it has in hand.
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


def test_at_a_rate_that_is_kept_all_requests_are_begun_and_nobody_is_behind(
    scripted: Make, bench: Make, gate: Gate
) -> None:
    engine = bench(scripted(gate.answer), shape(rate_per_s=200.0), threads=2)
    engine.start(4)
    snapshot = engine.window(lambda since: since["done"] >= 100)
    assert snapshot["begun"] == pytest.approx(200 * snapshot["window_s"], rel=0.1, abs=3)
    assert snapshot["behind_us"] < 1e6 * snapshot["window_s"]


def test_of_several_operations_those_that_wait_are_the_next_of_the_sequence(
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
