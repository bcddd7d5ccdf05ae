"""What SDK users record of windows and answers, with a fake client: no target, no SDK."""

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
from weighbridge.drivers.locust.sdk import SdkWorkerGroup
from weighbridge.drivers.protocol import Setup
from weighbridge.results.record.histogram import Histogram
from weighbridge.suites import Objects, Workload

SIZE, SEED = 1000, 11
BODY = content(SEED, SIZE, 0, SIZE)
SETUP = Setup(
    target=Endpoint(api="s3", url="http://127.0.0.1:9", user="u", key=SecretStr("k")),
    bucket_prefix="wb-test",
    seed=SEED,
)


class FakeClient:
    """Answers as a test says, after `pause_s`, but not while it is held."""

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


MakeGroup = Callable[..., SdkWorkerGroup]


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def group(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeGroup]:
    made: list[SdkWorkerGroup] = []

    def make(operation: str, **keys: Any) -> SdkWorkerGroup:
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
        made.append(SdkWorkerGroup(SETUP, Account(SETUP.target, 1.0), workload, 4))
        monkeypatch.setattr(made[-1], "_client", lambda: client)
        return made[-1]

    yield make
    client.free.set()
    for one in made:
        one.stop(0.0)


def until(condition: Callable[[], bool]) -> None:
    with gevent.Timeout(20):
        while not condition():
            gevent.sleep(0.001)


def work(group: SdkWorkerGroup, index: int) -> None:
    """Make a worker's requests, as its user does."""
    while group.request(index) is not None:
        gevent.sleep(group.wait_s(index))


def start(group: SdkWorkerGroup, workers: int) -> None:
    for index in range(workers):
        group.add_worker(index, workers, 0)
        gevent.spawn(work, group, index)
    until(lambda: group.progress().started == workers)


def test_requests_in_flight_when_the_window_closes_are_recorded_by_age(
    group: MakeGroup, client: FakeClient
) -> None:
    reads = group("read")
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
    done = reads.progress().done
    until(lambda: reads.progress().done > done + 5)
    assert reads.snapshot() == closed


def test_failures_and_the_pauses_after_them_count_as_time_of_their_workers(
    group: MakeGroup, client: FakeClient
) -> None:
    client.fault = OSError("no")
    reads = group("read")
    start(reads, 2)
    reads.open_window()
    failed = reads.progress().failed
    until(lambda: reads.progress().failed > failed + 40)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert (tally.busy_us or 0) / (2e6 * closed.window_s) == pytest.approx(1, abs=0.15)


def test_at_a_rate_requests_not_sent_in_time_are_in_flight_too(
    group: MakeGroup, client: FakeClient
) -> None:
    reads = group("read", rate_per_s=100)
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


def test_a_request_whose_user_is_ended_counts_as_cut_off(
    group: MakeGroup, client: FakeClient
) -> None:
    reads = group("read")
    reads.add_worker(0, 1, 0)
    user = gevent.spawn(work, reads, 0)
    until(lambda: reads.progress().started == 1)
    client.free.clear()
    until(lambda: client.held == 1)
    user.kill()
    reads.remove_worker(0)
    assert reads.progress().running == 0
    assert reads.stop(0.0) == 1


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
def test_a_success_must_have_the_expected_content(
    group: MakeGroup,
    client: FakeClient,
    operation: str,
    wrong: dict[str, object],
    error: str | None,
) -> None:
    for name, value in wrong.items():
        setattr(client, name, value)
    one = group(operation, verify=1.0)
    start(one, 1)
    until(lambda: one.progress().done + one.progress().failed >= 3)
    assert set(one.progress().errors) == ({error} if error else set())


def test_a_share_of_reads_is_verified(group: MakeGroup, client: FakeClient) -> None:
    client.body, client.pause_s = BODY[::-1], 0.0
    reads = group("read", verify=0.2)
    start(reads, 1)
    until(lambda: reads.progress().done + reads.progress().failed >= 200)
    assert 0.1 < reads.progress().failed / (reads.progress().done + reads.progress().failed) < 0.3
