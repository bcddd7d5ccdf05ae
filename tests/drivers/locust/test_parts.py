"""Parts of the Locust driver: recording, merging, Locust's tables, signing, quotas, errors."""

from __future__ import annotations

import itertools
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from locust import User, task
from locust.dispatch import UsersDispatcher
from locust.runners import WorkerNode
from locust.stats import RequestStats
from pydantic import SecretStr, ValidationError

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.engine._native import content
from weighbridge.drivers.locust.account import Account, UrlParts, signature
from weighbridge.drivers.locust.client import Body, transport_error_class
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.figures import LocustFigures
from weighbridge.drivers.locust.load_runner import AT_ONCE
from weighbridge.drivers.locust.sdk import Recorder
from weighbridge.drivers.locust.step import merged, merged_progress
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import EndpointTally, Tally
from weighbridge.suites import Operation


def window_of(latencies_us: list[int], failures: int, window_s: float = 2.0) -> Window:
    recorder = Recorder()
    for number, latency_us in enumerate(latencies_us):
        recorder.success(
            "read", number * window_s / len(latencies_us), latency_us, 1000, latency_us // 2
        )
    for _ in range(failures):
        recorder.failure("read", 0.5, "http-503", 700_000)
    return Window(
        tallies=recorder.tallies(), seconds=recorder.seconds(), window_s=window_s, cpu_s=0.5
    )


def test_a_recorder_keeps_exact_extremes_and_sums_besides_the_histogram() -> None:
    (tally,) = window_of([1, 123_457, 3], 2).tallies
    figures = (tally.count, tally.min_us, tally.max_us, tally.sum_us, tally.bytes)
    assert figures == (3, 1, 123_457, 123_461, 3000)
    assert tally.errors == {"http-503": 2}
    # 0.2 s of each failure are before the opening; all latencies but the first are shorter than the
    # time since then.
    figures = (tally.failed_us, tally.before_us, tally.outstanding_us, tally.in_flight)
    assert figures == (1_400_000, 400_001, 0, None)


def test_outstanding_waiting_and_timed_out_requests_are_recorded_by_age() -> None:
    recorder = Recorder()
    recorder.outstanding("read", 10.0, 500_000)
    recorder.outstanding("read", 10.0, 12_000_000)
    recorder.waiting("read", 40_000)
    recorder.failure("read", 9.0, "timeout", 3_000_000)
    recorder.failure("read", 9.0, "reset", 20_000)
    recorder.rested("read", 10_000)
    (tally,) = recorder.tallies()
    figures = (tally.outstanding_us, tally.failed_us, tally.before_us)
    assert figures == (12_500_000, 3_030_000, 2_000_000)
    assert tally.busy_us == 12_500_000 + 3_030_000 - 2_000_000
    assert tally.in_flight_max_us == 12_000_000
    assert tally.in_flight is not None
    ages = Histogram.decode(tally.in_flight)
    assert [(round(top_us, -4), count) for top_us, count in ages.buckets()] == [
        (40_000, 1), (500_000, 1), (3_000_000, 1), (12_000_000, 1)
    ]  # fmt: skip


def test_latencies_outside_the_histogram_are_counted_at_its_bounds_and_failures_have_none() -> None:
    (tally,) = window_of([0, 5_000_000_000], 0).tallies
    assert (tally.count, tally.min_us, tally.max_us) == (2, 0, 5_000_000_000)
    assert tally.latency is not None
    assert HdrHistogram.decode(tally.latency).get_total_count() == 2
    (tally,) = window_of([], 3).tallies
    figures = (tally.count, tally.latency, tally.min_us, tally.errors)
    assert figures == (0, None, None, {"http-503": 3})


def test_what_processes_recorded_is_added_and_what_one_does_not_know_is_unknown_for_all() -> None:
    one, two = (
        window_of([latency_us] * count, 1).model_copy(
            update={
                "begun": begun,
                "behind_us": late_us,
                "connections": count,
                "endpoints": (
                    EndpointTally(name="a:1", count=0, errors={"reset": count}, left_out=left_out),
                ),
            }
        )
        for latency_us, count, begun, late_us, left_out in (
            (700_000, 1, 3, 40, False),
            (900_000, 2, 5, 20, True),
        )
    )
    both = merged([one, two])
    assert (both.begun, both.behind_us, both.connections, both.cpu_s) == (8, 40, 3, 1.0)
    (tally,) = both.tallies
    figures = (tally.count, tally.bytes, tally.min_us, tally.max_us, tally.sum_us)
    assert figures == (3, 3000, 700_000, 900_000, 2_500_000)
    assert (tally.failed_us, tally.busy_us) == (1_400_000, 1_900_000)
    assert Histogram.decode(tally.latency or "").count == 3
    assert [(one.errors, one.left_out) for one in both.endpoints] == [({"reset": 3}, True)]
    update = {"begun": None, "connections": None, "behind_us": None}
    known = merged([one, two.model_copy(update=update)])
    assert (known.begun, known.connections, known.behind_us) == (None, None, 40)
    tallies = tuple(tally.model_copy(update={"failed_us": None}) for tally in two.tallies)
    (tally,) = merged([one, two.model_copy(update={"tallies": tallies})]).tallies
    assert (tally.sum_us, tally.failed_us, tally.busy_us) == (2_500_000, None, None)
    parts = [
        WorkerProgress(running=2, done=3, errors={"reset": 1}, last_error="it broke"),
        WorkerProgress(running=1, done=1, errors={"reset": 1, "connect": 1}),
    ]
    progress = merged_progress(parts)
    assert (progress.running, progress.done, progress.last_error) == (3, 4, "it broke")
    assert progress.errors == {"reset": 2, "connect": 1}


def test_a_window_that_grows_is_added_to_locusts_statistics_once() -> None:
    stats = RequestStats()
    figures = LocustFigures(stats, "small")
    at_first = window_of([10_000, 20_000, 30_000], 1)
    grown = window_of([10_000, 20_000, 30_000, 4_740, 40_000], 3)
    for window in (at_first, grown, grown):
        figures.add(window)
    figures.forget()
    figures.add(window_of([50_000], 0))
    entry = stats.get("small", "read")
    assert (entry.num_requests, entry.num_failures, entry.total_content_length) == (9, 3, 6000)
    assert entry.avg_response_time == pytest.approx((10 + 20 + 30 + 4.74 + 40 + 50) / 6)
    # The histogram's own value: 3 digits.
    assert entry.min_response_time == pytest.approx(4.74, abs=0.005)
    assert entry.max_response_time == 50
    assert min(entry.response_times) == pytest.approx(4.74)
    assert sum(entry.response_times.values()) == 6
    assert [error.occurrences for error in stats.errors.values()] == [3]


@pytest.mark.parametrize("token", [None, "FwoGZXIvYXdzEJr//token+=="])
@pytest.mark.parametrize("query", ["", "list-type=2&max-keys=1000&start-after=a%2Fb"])
def test_s3_requests_are_signed_as_botocore_signs_them(query: str, token: str | None) -> None:
    keys = ("AKIDEXAMPLE", "wJalrXUtnFEMI", token or "")
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    host, path = "10.1.2.3:7480", "/wb-1-x-0"
    ours = signature(keys, "eu-west-1", host, "GET", path, query, int(now.timestamp()))
    request = AWSRequest("GET", "http://10.1.2.3:7480/wb-1-x-0" + (f"?{query}" if query else ""))
    request.context["timestamp"] = "20260304T050607Z"
    request.headers["X-Amz-Date"] = "20260304T050607Z"
    request.headers["X-Amz-Content-SHA256"] = ours["x-amz-content-sha256"]
    if token:
        request.headers["X-Amz-Security-Token"] = token
    signer = S3SigV4Auth(Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI", token), "s3", "eu-west-1")
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert ours["Authorization"].endswith(f"Signature={signer.signature(text, request)}")
    assert "wJalrXUtnFEMI" not in str(ours)


def test_urls_are_split_into_their_parts_and_invalid_ones_refused() -> None:
    auth = UrlParts("10.0.0.1", 8080, tls=False, path="/auth/v1.0")
    assert UrlParts.of("http://10.0.0.1:8080/auth/v1.0") == auth
    secure = UrlParts("store.example", 443, tls=True, path="")
    assert UrlParts.of("https://store.example/") == secure
    assert UrlParts.of("http://[::1]:80") == UrlParts("::1", 80, tls=False, path="")
    for url in ("http://host:99999", "ftp://host", "http://"):
        with pytest.raises(DriverError):
            UrlParts.of(url)


V2 = "30 20 0:26 / {0}/fs rw shared:4 - cgroup2 cgroup2 rw\n"
V1 = (
    "31 20 0:27 /host-1 {0}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "30 20 0:26 / {0}/memory rw - cgroup cgroup rw,memory\n"
)
HERE = "4:memory:/host-1\n3:cpu,cpuacct:/host-1/service\n"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files", "cpus"),
    [
        # At any level, and even in a container's part of the tree.
        ("0::/a/b\n", V2, {"fs/a/b/cpu.max": "max 1000", "fs/a/cpu.max": "500 1000"}, 0.5),
        (HERE, V1, {"cpu/service/cpu.cfs_quota_us": "250", "cpu/cpu.cfs_quota_us": "-1"}, 0.25),
        ("3:cpu,cpuacct:/somewhere\n", "30 20 0:26 / / rw - ext4 /dev/sda rw\n", {}, None),
    ],
)
def test_a_quota_is_found_and_one_that_cannot_be_seen_is_unknown(
    tmp_path: Path, cgroup: str, mounts: str, files: dict[str, str], cpus: float | None
) -> None:
    proc = {"proc/cgroup": cgroup, "proc/mountinfo": mounts.format(tmp_path)}
    for name, text in {**files, "cpu/service/cpu.cfs_period_us": "1000", **proc}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = allowance(tmp_path / "proc")
    assert found.cpus == cpus if cpus else "not known" in found.note
    assert found.cpus >= 1 or not found.note


def chained(*errors: BaseException) -> BaseException:
    for outer, inner in itertools.pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (chained(ValueError("wrapped"), ConnectionRefusedError(111, "refused")), "connect"),
        (chained(ValueError("wrapped"), socket.gaierror(-2, "unknown")), "connect"),
        (ValueError("wrapped in its arguments", ConnectionResetError(104, "reset")), "reset"),
        (chained(ValueError("wrapped"), TimeoutError("timed out")), "timeout"),
        (ValueError("without a known cause"), "protocol"),
    ],
)
def test_transport_errors_are_classed_by_the_cause_they_wrap(
    error: BaseException, error_class: str
) -> None:
    assert transport_error_class(error) == error_class


def test_a_body_read_as_a_file_is_the_content_of_its_object() -> None:
    body = Body(seed=3, size=700_001)
    assert body.seek(0, 2) == 700_001
    assert body.seek(0) == 0
    pieces = iter(lambda: body.read(65536), b"")
    assert b"".join(pieces) == content(3, 700_001, 0, 700_001)
    body.seek(-1, 2)
    assert body.read(10) == content(3, 700_001, 700_000, 1)


@pytest.mark.parametrize("api", ["swift", "s3"])
def test_a_key_that_http_cannot_carry_is_not_shown_in_the_error(
    api: Literal["swift", "s3"],
) -> None:
    hostile = SecretStr("planted-one\nplanted-two")
    account = Account(
        Endpoint(api=api, url="http://127.0.0.1:9", user="u", key=hostile, token=hostile), 1.0
    )
    with pytest.raises(DriverError, match=r"127\.0\.0\.1:9: PUT was not sent: ") as error:
        account.make_bucket("b")
    assert "planted" not in str(error.value)
    assert error.value.__cause__ is None


def test_an_invalid_endpoint_shows_no_key_in_its_error() -> None:
    with pytest.raises(ValidationError) as error:
        Endpoint.model_validate(
            {"api": "swift", "url": "http://h", "user": "u", "key": {"planted": "planted"}}
        )
    assert "planted" not in str(error.value)


# Several worker processes: their windows merge into one measurement, and Locust gives each as many
# users.

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
