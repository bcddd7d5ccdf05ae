"""What is made of several stations: one measurement of all their samples, and workers shared out as
Locust shares out users.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from locust import User, task
from locust.dispatch import UsersDispatcher
from locust.runners import WorkerNode

from weighbridge.drivers.locust.floor import dealing_order
from weighbridge.drivers.locust.merge import merged
from weighbridge.drivers.locust.recorder import Recorder
from weighbridge.drivers.locust.station import Begin
from weighbridge.drivers.locust.worker_group import Window
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally
from weighbridge.suites import Objects, Operation, Workload

WINDOW_S = 3.0
OPERATIONS: tuple[Operation, ...] = ("read", "write", "delete")
READS = Workload(
    name="reads", objects=Objects(size=100), operations={"read": 1}, workers=(1,), runtime=1.0
)


@dataclass(frozen=True)
class Request:
    """One that a station made: how long it took in us, or why it failed."""

    station: int
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
    station=st.integers(0, 3),
    operation=st.sampled_from(OPERATIONS),
    at_s=st.floats(0, WINDOW_S, exclude_max=True),
    outcome=st.one_of(st.integers(0, 4_000_000_000), st.sampled_from(["http-503", "timeout"])),
    moved_bytes=st.integers(0, 10**12),
    age_us=st.integers(1, 4_000_000_000),
)


def inside(histogram: str | None) -> tuple[int, object] | None:
    """What is in it: the same may be written down in two ways."""
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
def test_the_windows_of_stations_merge_into_the_window_of_one_that_made_all_their_requests(
    made: list[Request],
) -> None:
    whole, stations = Recorder(), [Recorder() for _ in range(4)]
    for request in made:
        request.record(whole)
        request.record(stations[request.station])
    found = merged(
        [
            Window(tallies=one.tallies(), seconds=one.seconds(), window_s=WINDOW_S, cpu_s=0.25)
            for one in stations
        ]
    )
    assert list(map(exact, found.tallies)) == list(map(exact, whole.tallies()))
    assert {(one.second, one.operation): one for one in found.seconds} == {
        (one.second, one.operation): one for one in whole.seconds()
    }
    assert len(found.seconds) == len(whole.seconds())
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
@given(nodes, st.integers(1, 40))
def test_ranks_follow_the_order_in_which_locust_deals_users_out(
    names: list[str], count: int
) -> None:
    dispatcher = UsersDispatcher([WorkerNode(name) for name in names], [Worker])
    dispatcher.new_dispatch(target_user_count=count, spawn_rate=count)
    *_, last = dispatcher
    dealt = {name: users["Worker"] for name, users in last.items()}
    ranked = dealing_order(names)
    shares = {
        name: Begin(workload=READS, workers=count, repeat=0, rank=rank, stations=len(names)).share
        for rank, name in enumerate(ranked)
    }
    assert dealt == shares
    assert max(shares.values()) - min(shares.values()) <= 1


def test_one_station_of_each_client_has_its_user_before_a_second_of_any() -> None:
    names = [f"client-{client}_{number}" for number in range(3) for client in (2, 1)]
    hosts = [name.split("_")[0] for name in dealing_order(names)]
    assert all(one != other for one, other in pairwise(hosts))
