"""Several worker processes: their windows merge into one measurement, and they share the workers as
Locust assigns users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from locust import User, task
from locust.dispatch import UsersDispatcher
from locust.env import Environment
from locust.runners import WorkerNode
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.locust.load_runner import AT_ONCE, LoadRunner
from weighbridge.drivers.locust.sdk import Recorder
from weighbridge.drivers.locust.step import merged
from weighbridge.drivers.locust.worker_group import Window
from weighbridge.drivers.locust.worker_process import Begin
from weighbridge.drivers.protocol import Setup
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally
from weighbridge.suites import Objects, Operation, Workload

WINDOW_S = 3.0
READS = Workload(
    name="reads",
    objects=Objects(size=100),
    operations={"read": 1},
    workers=(6,),
    runtime=0.1,
)
OPERATIONS: tuple[Operation, ...] = ("read", "write", "delete")


@dataclass(frozen=True)
class Request:
    """A request: in which process, and how long it took in us, or why it failed."""

    process: int
    operation: Operation
    at_s: float
    outcome: int | str
    moved_bytes: int
    age_us: int

    def record(self, recorder: Recorder) -> None:
        if isinstance(self.outcome, str):
            recorder.failure(self.operation, self.at_s, self.outcome, self.age_us)
            recorder.outstanding(self.operation, self.at_s, self.age_us)
            recorder.waiting(self.operation, self.age_us)
            return
        first_byte_us = self.outcome // 2 if self.operation == "read" else None
        recorder.success(self.operation, self.at_s, self.outcome, self.moved_bytes, first_byte_us)


requests = st.builds(
    Request,
    process=st.integers(0, 3),
    operation=st.sampled_from(OPERATIONS),
    at_s=st.floats(0, WINDOW_S, exclude_max=True),
    outcome=st.one_of(st.integers(0, 4_000_000_000), st.sampled_from(["http-503", "timeout"])),
    moved_bytes=st.integers(0, 10**12),
    age_us=st.integers(1, 4_000_000_000),
)


def inside(histogram: str | None) -> tuple[int, object] | None:
    """Its content: equal histograms may be encoded in different ways."""
    decoded = None if histogram is None else Histogram.decode(histogram)
    return None if decoded is None else (decoded.count, decoded.buckets())


def exact(tally: Tally) -> tuple[object, ...]:
    figures = tally.model_dump(exclude={"latency", "first_byte", "in_flight"})
    return (
        *sorted(figures.items()),
        inside(tally.latency),
        inside(tally.first_byte),
        inside(tally.in_flight),
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(requests, max_size=80))
def test_the_windows_of_several_processes_merge_into_the_window_of_all_their_requests(
    made: list[Request],
) -> None:
    complete, parts = Recorder(), [Recorder() for _ in range(4)]
    for request in made:
        request.record(complete)
        request.record(parts[request.process])
    found = merged(
        [
            Window(tallies=one.tallies(), seconds=one.seconds(), window_s=WINDOW_S, cpu_s=0.25)
            for one in parts
        ]
    )
    assert list(map(exact, found.tallies)) == list(map(exact, complete.tallies()))
    assert {(one.second, one.operation): one for one in found.seconds} == {
        (one.second, one.operation): one for one in complete.seconds()
    }
    assert len(found.seconds) == len(complete.seconds())
    assert (found.window_s, found.cpu_s) == (WINDOW_S, 1.0)


class Shares(LoadRunner):
    """Worker processes with these numbers of users, and the workers that each was given."""

    def __init__(self, users: dict[int, int]) -> None:
        setup = Setup(
            target=Endpoint(api="s3", url="http://127.0.0.1:1", user="u", key=SecretStr("k")),
            bucket_prefix="wb-1",
            seed=1,
            processes=len(users),
        )
        super().__init__(setup, Environment())
        self._users_of = users
        self._nodes = {number: f"node-{number}" for number in users}
        self.workers: list[range] = []

    def _users(self) -> dict[int, int]:
        return self._users_of

    def _send(self, number: int, data: Mapping[str, object]) -> None:
        begin = Begin.model_validate_json(str(data["argument"]))
        self.workers.append(range(begin.first, begin.first + begin.count * begin.apart))
        answer = {"id": data["id"], "error": "", "answer": "{}"}
        self._answered(self.environment, SimpleNamespace(data=answer, node_id=f"node-{number}"))

    def _have(self, count: int, timeout_s: float, what: str) -> None: ...

    def _check(self) -> None: ...

    def close(self) -> None: ...


def test_no_two_processes_are_the_same_worker_so_that_none_writes_anothers_names() -> None:
    runner = Shares({0: 2, 1: 1, 2: 3})
    runner.begin(Begin(workload=READS, workers=6, repeat=0, count=0))
    assert runner.workers == [range(2), range(2, 3), range(3, 6)]


class Worker(User):
    @task
    def nothing(self) -> None:
        pass


hosts = st.sampled_from(["client-1", "client-2", "client-3", "c", "client"])
nodes = st.lists(st.tuples(hosts, st.uuids()), min_size=1, max_size=8, unique=True).map(
    lambda pairs: [f"{host}_{unique.hex}" for host, unique in pairs]
)


@settings(deadline=None, max_examples=200)
@given(nodes, st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_in_each_step_locust_gives_every_process_as_many_users_but_for_one(
    names: list[str], steps: list[int]
) -> None:
    dispatcher = UsersDispatcher([WorkerNode(name) for name in names], [Worker])
    for count in steps:
        for target in (count, 0):
            dispatcher.new_dispatch(target_user_count=target, spawn_rate=AT_ONCE)
            *_, last = dispatcher
            shares = [users["Worker"] for users in last.values()]
            assert sum(shares) == target
            assert max(shares) - min(shares) <= 1
