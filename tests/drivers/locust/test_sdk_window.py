"""What SDK users record of a window and of answers, with a client made up: no target, no SDK."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import gevent.event
import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.engine._native import content
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.sdk import SdkCrew
from weighbridge.drivers.order import Setup
from weighbridge.results.record.histogram import Histogram
from weighbridge.suites import Objects, Workload

SIZE, SEED = 1000, 11
BODY = content(SEED, SIZE, 0, SIZE)
SETUP = Setup(
    target=Endpoint(api="s3", url="http://127.0.0.1:9", user="u", key=SecretStr("k")),
    bucket_prefix="wb-test",
    seed=SEED,
)


class Made:
    """A client that gives what a test says, after `pause_s`, and nothing while it is held."""

    def __init__(self) -> None:
        self.body, self.etag, self.keys, self.size = BODY, hashlib.md5(BODY).hexdigest(), 10, SIZE
        self.fault: Exception | None = None
        self.pause_s = 0.002
        self.free = gevent.event.Event()
        self.free.set()
        self.held = 0

    def _wait(self) -> None:
        gevent.sleep(self.pause_s)
        if not self.free.is_set():
            self.held += 1
            self.free.wait()
        if self.fault is not None:
            raise self.fault

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        self._wait()
        yield self.body

    def write(self, bucket: str, name: str, body: bytes, size: int) -> str:
        self._wait()
        return f'"{self.etag}"'

    def list(self, bucket: str) -> int:
        self._wait()
        return self.keys

    def head(self, bucket: str, name: str) -> int:
        self._wait()
        return self.size

    def classify(self, error: Exception) -> str | None:
        return None


Crew = Callable[..., SdkCrew]


@pytest.fixture
def client() -> Made:
    return Made()


@pytest.fixture
def crew(client: Made, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    made: list[SdkCrew] = []

    def make(operation: str, **keys: Any) -> SdkCrew:
        workload = Workload.model_validate(
            {
                "name": "w",
                "objects": Objects(size=SIZE, per_container=10),
                "operations": {operation: 1},
                "workers": (1,),
                "runtime": 1.0,
            }
            | keys
        )
        made.append(SdkCrew(SETUP, Account(SETUP.target, 1.0), workload, 4))
        monkeypatch.setattr(made[-1], "_client", lambda: client)
        return made[-1]

    yield make
    client.free.set()
    for one in made:
        one.stop(0.0)


def until(true: Callable[[], bool]) -> None:
    with gevent.Timeout(20):
        while not true():
            gevent.sleep(0.001)


def start(crew: SdkCrew, workers: int) -> None:
    for index in range(workers):
        crew.add_worker(index, workers, 0)
    until(lambda: crew.pulse().started == workers)


def test_what_is_in_flight_when_the_window_closes_is_recorded_by_its_age(
    crew: Crew, client: Made
) -> None:
    reads = crew("read")
    start(reads, 3)
    reads.open_window()
    client.free.clear()
    until(lambda: client.held == 3)
    gevent.sleep(0.05)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert tally.in_flight is not None
    assert Histogram.decode(tally.in_flight).count == 3
    assert (tally.in_flight_max_us or 0) >= 50_000
    assert (tally.busy_us or 0) / (3e6 * closed.window_s) == pytest.approx(1, abs=0.1)
    client.free.set()
    done = reads.pulse().done
    until(lambda: reads.pulse().done > done + 5)
    assert reads.snapshot() == closed


def test_failures_and_the_rest_after_them_are_time_of_their_workers(
    crew: Crew, client: Made
) -> None:
    client.fault = OSError("no")
    reads = crew("read")
    start(reads, 2)
    reads.open_window()
    failed = reads.pulse().failed
    until(lambda: reads.pulse().failed > failed + 10)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert (tally.busy_us or 0) / (2e6 * closed.window_s) == pytest.approx(1, abs=0.15)


def test_at_a_rate_what_was_not_sent_in_time_is_in_flight_too(crew: Crew, client: Made) -> None:
    reads = crew("read", rate_per_s=100)
    start(reads, 1)
    reads.open_window()
    client.free.clear()
    until(lambda: client.held == 1)
    gevent.sleep(0.1)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert tally.in_flight is not None
    count = Histogram.decode(tally.in_flight).count
    assert count == pytest.approx(100 * (tally.in_flight_max_us or 0) / 1e6, abs=2)
    assert count >= 10
    assert closed.behind_us == pytest.approx((tally.in_flight_max_us or 0) - 10_000, abs=200)
    assert closed.begun is not None
    assert closed.begun <= tally.count + 1


def test_a_worker_that_leaves_is_not_counted_any_more(crew: Crew, client: Made) -> None:
    reads = crew("read")
    start(reads, 2)
    client.free.clear()
    until(lambda: client.held == 2)
    reads.open_window()
    for index in range(2):
        reads.remove_worker(index)
    client.free.set()
    until(lambda: reads.pulse().running == 0)
    reads.close_window()
    assert reads.snapshot().tallies == ()


@pytest.mark.parametrize(
    ("operation", "wrong", "error"),
    [
        ("write", {"etag": "0" * 32}, "wrong-etag"),
        ("write", {"etag": "0" * 32 + "-2"}, None),
        ("list", {"keys": 9}, "bad-list"),
        ("list", {"keys": 1001}, "bad-list"),
        ("head", {"size": SIZE - 1}, "wrong-length"),
        ("read", {"body": BODY[::-1]}, "wrong-content"),
        ("read", {}, None),
        ("write", {}, None),
        ("list", {}, None),
        ("head", {}, None),
    ],
)
def test_a_success_must_have_what_was_asked_for(
    crew: Crew, client: Made, operation: str, wrong: dict[str, object], error: str | None
) -> None:
    for name, value in wrong.items():
        setattr(client, name, value)
    one = crew(operation, verify=1.0)
    start(one, 1)
    until(lambda: one.pulse().done + one.pulse().failed >= 3)
    assert set(one.pulse().errors) == ({error} if error else set())


def test_a_share_of_reads_is_compared_with_what_was_written(crew: Crew, client: Made) -> None:
    client.body, client.pause_s = BODY[::-1], 0.0
    reads = crew("read", verify=0.2)
    start(reads, 1)
    until(lambda: reads.pulse().done + reads.pulse().failed >= 200)
    assert 0.1 < reads.pulse().failed / (reads.pulse().done + reads.pulse().failed) < 0.3
