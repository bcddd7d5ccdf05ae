"""Several worker processes: their windows merge into one measurement, and Locust gives each as many
users.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from locust import User, task
from locust.dispatch import UsersDispatcher
from locust.runners import WorkerNode

from weighbridge.drivers.locust.load_runner import AT_ONCE
from weighbridge.drivers.locust.sdk import Recorder
from weighbridge.drivers.locust.step import merged
from weighbridge.drivers.locust.worker_group import Window
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally
from weighbridge.suites import Operation

WINDOW_S = 3.0
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
