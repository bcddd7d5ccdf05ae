"""The real driver process against the real null target, on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import boto3
import psutil
import pytest
from botocore.config import Config
from hdrh.histogram import HdrHistogram
from pydantic import SecretStr
from swiftclient.client import Connection

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.order import Cleanup, Prepare, Progress, Setup, Step
from weighbridge.drivers.process import DriverProcess
from weighbridge.results.record.measurement import Measurement, Tally
from weighbridge.suites import Objects, Operation, Workload

ROOT = Path(__file__).parents[3]
KEY = "a-secret-key"
NULL_TARGET = (
    "import sys; from weighbridge.drivers.engine._native import null_target; "
    "null_target(sys.argv[1])"
)
Api = Literal["s3", "swift"]


class Null:
    """A running null target."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url

    def target(self, api: Api, key: str = KEY) -> Endpoint:
        url = self.url + ("/auth/v1.0" if api == "swift" else "")
        return Endpoint(api=api, url=url, user="bench", key=SecretStr(key))

    def names(self, api: Api) -> list[str]:
        """`bucket/object` of all that exists, as an independent client of the API lists it."""
        found: list[str] = []
        if api == "swift":
            swift: Any = Connection(
                authurl=f"{self.url}/auth/v1.0", user="bench", key=KEY, retries=0
            )
            for container in swift.get_account(full_listing=True)[1]:
                objects = swift.get_container(container["name"], full_listing=True)[1]
                found += [f"{container['name']}/{one['name']}" for one in objects] or [
                    f"{container['name']}/"
                ]
            swift.close()
            return found
        no_proxy = Config(proxies={}, s3={"addressing_style": "path"})
        s3: Any = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="bench",
            aws_secret_access_key=KEY,
            region_name="us-east-1",
            config=no_proxy,
        )
        for bucket in s3.list_buckets()["Buckets"]:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"])
            objects = [one for page in pages for one in page.get("Contents", [])]
            found += [f"{bucket['Name']}/{one['Key']}" for one in objects] or [f"{bucket['Name']}/"]
        s3.close()
        return found


@pytest.fixture
def null() -> Iterator[Callable[..., Null]]:
    with ExitStack() as stack:

        def start(**config: float | str | None) -> Null:
            complete = {
                "host": "127.0.0.1",
                "port": 0,
                "threads": 1,
                "delay_ms": 0.0,
                "fail_share": 0.0,
                "fail_status": 503,
                "stall_after_s": None,
                "stall_s": 0.0,
                "seed": 11,
                "user": "bench",
                "key": KEY,
                **config,
            }
            process = subprocess.Popen(
                [sys.executable, "-c", NULL_TARGET, json.dumps(complete)],
                stdout=subprocess.PIPE,
                cwd=ROOT,
            )

            def end() -> None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

            stack.callback(end)
            assert process.stdout is not None
            stack.enter_context(process.stdout)
            return Null(process, json.loads(process.stdout.readline())["listening"])

        yield start


@contextmanager
def driver(tmp_path: Path) -> Iterator[DriverProcess]:
    log = tmp_path / "driver.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "weighbridge.drivers.locust"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    with DriverProcess(process, log, silence_s=40.0) as running:
        yield running


def setup_for(target: Endpoint, **more: Any) -> Setup:
    return Setup(
        target=target,
        bucket_prefix="wb-test",
        seed=11,
        request_timeout_s=more.pop("request_timeout_s", 10.0),
        **more,
    )


def workload(operations: dict[Operation, float], **more: Any) -> Workload:
    objects = more.pop("objects", Objects(size=4096, containers=2, per_container=20))
    return Workload(
        name="tried",
        objects=objects,
        operations=operations,
        workers=(1, 4),
        **{"runtime": 0.6, "warmup": 0.1, **more},
    )


def by_operation(measurement: Measurement) -> dict[str, Tally]:
    return {tally.operation: tally for tally in measurement.tallies}


def check_consistent(measurement: Measurement) -> None:
    """What must hold for every measurement: its parts add up."""
    for tally in measurement.tallies:
        seconds = [second for second in measurement.seconds if second.operation == tally.operation]
        assert sum(second.count for second in seconds) == tally.count
        assert sum(second.bytes for second in seconds) == tally.bytes
        assert sum(second.errors for second in seconds) == tally.failed
        assert sum(second.sum_us for second in seconds) == tally.sum_us
        if tally.count:
            assert tally.latency is not None
            assert tally.min_us is not None
            assert tally.max_us is not None
            assert HdrHistogram.decode(tally.latency).get_total_count() == tally.count
            assert tally.min_us * tally.count <= tally.sum_us <= tally.max_us * tally.count
            assert max(second.max_us for second in seconds) == tally.max_us


@pytest.mark.parametrize("users", ["engine", "sdk"])
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_mix_of_all_operations_is_prepared_measured_and_cleaned_up(
    api: Api, users: Literal["engine", "sdk"], null: Callable[..., Null], tmp_path: Path
) -> None:
    mix = workload({"read": 4, "write": 3, "head": 1, "list": 1, "delete": 1}, runtime=1.0)
    target, heard = null(), list[Progress]()
    with driver(tmp_path) as running:
        ready = running.setup(setup_for(target.target(api), users=users))
        assert "locust" in ready.versions
        prepared = running.prepare(Prepare(workload=mix), heard.append)
        assert (prepared.objects, prepared.bytes) == (40, 40 * 4096)
        assert len(target.names(api)) == 40
        measurement = running.step(Step(workload=mix, workers=3), heard.append).measurement
        check_consistent(measurement)
        tallies = by_operation(measurement)
        assert set(tallies) == {"read", "write", "head", "list", "delete"}
        assert all(tally.count > 0 and not tally.errors for tally in tallies.values())
        assert tallies["read"].bytes == tallies["read"].count * 4096
        assert tallies["read"].first_byte is not None
        assert tallies["head"].first_byte is None
        assert measurement.driver == f"locust-{users}"
        assert measurement.workers == 3
        assert 1.0 <= measurement.window_s < 3.0
        assert 0 < measurement.load.cpu_s < 20
        left = len(target.names(api))
        cleaned = running.cleanup(Cleanup(workload=mix), heard.append)
        assert (cleaned.deleted, cleaned.failed) == (left - 40, 0)
        assert len(target.names(api)) == 40
        assert running.cleanup(Cleanup(workload=mix, what="all"), heard.append).deleted == 40
        assert target.names(api) == []
        running.quit()
    assert {progress.phase for progress in heard} >= {"prepare", "warm-up", "measure", "cleanup"}
    assert any(progress.operations_per_s > 0 for progress in heard if progress.phase == "measure")


def test_both_kinds_of_user_make_the_same_objects(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    writes = workload(
        {"write": 1}, runtime=0.4, warmup=0.0, objects=Objects(size=1000, containers=3)
    )
    seen: dict[str, list[str]] = {}
    for users in ("engine", "sdk"):
        target = null(delay_ms=20.0)
        with driver(tmp_path) as running:
            running.setup(setup_for(target.target("s3"), users=users))
            running.prepare(Prepare(workload=writes))
            running.step(Step(workload=writes, workers=2))
        seen[users] = target.names("s3")
    both = min(len(names) for names in seen.values()) // 2
    common = set(seen["engine"]) & set(seen["sdk"])
    # One gets a few requests further than the other in the same time; up to there they agree.
    assert len(common) >= both > 0


@pytest.mark.parametrize("processes", [1, 2])
def test_every_object_is_deleted_once_and_counted_once(
    processes: int, null: Callable[..., Null], tmp_path: Path
) -> None:
    deletes = workload(
        {"delete": 1},
        runtime=20.0,
        warmup=0.0,
        objects=Objects(size=10, containers=3, per_container=111),
    )
    target = null(delay_ms=2.0)
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), processes=processes))
        running.prepare(Prepare(workload=deletes))
        measurement = running.step(Step(workload=deletes, workers=5)).measurement
        check_consistent(measurement)
        tally = by_operation(measurement)["delete"]
        assert (tally.count, tally.errors) == (333, {})
        assert not [name for name in target.names("s3") if not name.endswith("/")]
        assert any("ran out" in note for note in measurement.notes)
        assert measurement.window_s < 20
        # The next repeat finds them again.
        again = running.step(Step(workload=deletes, workers=2, repeat=1)).measurement
        assert by_operation(again)["delete"].count == 333
        assert any("written again" in note for note in again.notes)


def test_two_processes_share_the_workers_and_write_what_one_would(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    writes = workload({"write": 1}, runtime=1.0, warmup=0.2)
    target = null(delay_ms=5.0)
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("swift"), processes=2))
        running.prepare(Prepare(workload=writes))
        measurement = running.step(Step(workload=writes, workers=5)).measurement
        check_consistent(measurement)
        tally = by_operation(measurement)["write"]
        names = [name.split("/")[1] for name in target.names("swift")]
        # What was recorded exists, and so does what was written before and after the window.
        assert 0 < tally.count < len(names) < tally.count * 2
        assert len(set(names)) == len(names)
        cleaned = running.cleanup(Cleanup(workload=writes))
        assert cleaned.deleted == len(names)
        more = running.step(Step(workload=writes, workers=1)).measurement
        assert by_operation(more)["write"].count > 0


def test_a_worker_process_that_dies_fails_the_step_and_is_named(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=30.0)
    target = null(delay_ms=5.0)
    started = time.monotonic()
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()
        assert len(children) == 2

        def kill_one(progress: Progress) -> None:
            if progress.phase == "measure" and children[1].is_running():
                children[1].kill()

        with pytest.raises(DriverError, match="worker process 2 of 2 was ended by SIGKILL"):
            running.step(Step(workload=reads, workers=4), kill_one)
        assert running.process.wait(10) == 3
    assert time.monotonic() - started < 30
    assert not [
        child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    ]


def test_worker_processes_that_are_held_up_for_seconds_are_waited_for(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=8.0)
    held: list[threading.Timer] = []
    with driver(tmp_path) as running:
        running.setup(setup_for(null(delay_ms=5.0).target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()

        def hold_up(progress: Progress) -> None:
            if progress.phase == "measure" and not held:
                for child in children:
                    child.suspend()
                    # Longer than Locust's three heartbeats of a second.
                    held.append(threading.Timer(5.5, child.resume))
                    held[-1].start()

        measurement = running.step(Step(workload=reads, workers=4), hold_up).measurement
        running.quit()
    for timer in held:
        timer.join()
    check_consistent(measurement)
    # They worked on until the end of the window.
    assert max(second.second for second in measurement.seconds if second.count) >= 7


def test_worker_processes_do_not_outlive_a_driver_that_is_killed(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    with driver(tmp_path) as running:
        running.setup(setup_for(null().target("s3"), processes=2))
        children = psutil.Process(running.process.pid).children()
        os.kill(running.process.pid, signal.SIGKILL)
        gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (2, [])


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, "end of stdin"])
def test_a_driver_that_is_ended_during_a_step_ends_with_its_workers(
    ending: signal.Signals | str, null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=60.0)
    target = null()
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        children = psutil.Process(running.process.pid).children()

        def end(progress: Progress) -> None:
            if progress.phase == "measure":
                if isinstance(ending, signal.Signals):
                    running.process.send_signal(ending)
                elif running.process.stdin is not None:
                    running.process.stdin.close()

        with pytest.raises(DriverError, match="ended with exit status"):
            running.step(Step(workload=reads, workers=2), end)
        code = running.process.wait(20)
        assert code == (128 + ending if isinstance(ending, signal.Signals) else 0)
        assert psutil.wait_procs(children, timeout=5)[1] == []


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_failures_are_counted_by_class_and_never_as_successes(
    users: Literal["engine", "sdk"], null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=1.0)
    target = null(fail_share=0.3)
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), users=users))
        prepared = running.prepare(Prepare(workload=reads))
        # Writes failed as often: they were retried until all objects existed.
        assert prepared.objects == len(target.names("s3")) == 40
        measurement = running.step(Step(workload=reads, workers=2)).measurement
    check_consistent(measurement)
    tally = by_operation(measurement)["read"]
    assert set(tally.errors) == {"http-503"}
    assert 0.15 < tally.failed / (tally.failed + tally.count) < 0.45
    assert tally.bytes == tally.count * 4096


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_known_delay_is_seen_in_every_latency(
    users: Literal["engine", "sdk"], null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=1.0)
    with driver(tmp_path) as running:
        running.setup(setup_for(null(delay_ms=30.0).target("swift"), users=users))
        running.prepare(Prepare(workload=reads))
        tally = by_operation(running.step(Step(workload=reads, workers=2)).measurement)["read"]
    assert tally.min_us is not None
    assert tally.latency is not None
    assert tally.min_us >= 29_900
    assert 29_900 <= HdrHistogram.decode(tally.latency).get_value_at_percentile(90) < 150_000


def test_an_unreachable_target_fails_fast_and_is_named(tmp_path: Path) -> None:
    for api, path in (("s3", ""), ("swift", "/auth/v1.0")):
        started = time.monotonic()
        target = Endpoint.model_validate(
            {"api": api, "url": f"http://127.0.0.1:9{path}", "user": "bench", "key": KEY}
        )
        with (
            driver(tmp_path) as running,
            pytest.raises(DriverError, match=r"127\.0\.0\.1:9.*Connection refused"),
        ):
            running.setup(setup_for(target))
        assert running.process.returncode == 3
        assert time.monotonic() - started < 20


def test_a_wrong_key_fails_and_is_not_shown(null: Callable[..., Null], tmp_path: Path) -> None:
    target = null().target("swift", "not-the-right-key")
    with (
        driver(tmp_path) as running,
        pytest.raises(DriverError, match=r"no token for user .bench.: HTTP 40") as caught,
    ):
        running.setup(setup_for(target))
    assert "not-the-right-key" not in str(caught.value)
    assert "not-the-right-key" not in (tmp_path / "driver.log").read_text()


def test_a_given_swift_token_is_used_and_an_invalid_one_fails_with_advice(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    served = null()
    url, token = Connection(
        authurl=f"{served.url}/auth/v1.0", user="bench", key=KEY, retries=0
    ).get_auth()
    given = Endpoint(api="swift", url=url, user="", key=SecretStr(""), token=SecretStr(token))
    tried = workload({"read": 1, "write": 1})
    with driver(tmp_path) as running:
        running.setup(setup_for(given))
        running.prepare(Prepare(workload=tried))
        measurement = running.step(Step(workload=tried, workers=2)).measurement
        running.cleanup(Cleanup(workload=tried, what="all"))
        running.quit()
    check_consistent(measurement)
    assert not any(tally.errors for tally in measurement.tallies)
    assert served.names("swift") == []
    old = given.model_copy(update={"token": SecretStr("old")})
    with (
        driver(tmp_path) as running,
        pytest.raises(DriverError, match=r"HTTP 401(.|\n)*cannot be renewed: give a new one"),
    ):
        running.setup(setup_for(old))


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_target_that_dies_in_a_step_leaves_a_measurement_with_errors(
    users: Literal["engine", "sdk"], null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=2.0)
    target = null()
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), users=users, request_timeout_s=3.0))
        running.prepare(Prepare(workload=reads))

        def kill(progress: Progress) -> None:
            if progress.phase == "measure":
                target.process.kill()

        measurement = running.step(Step(workload=reads, workers=4), kill).measurement
    check_consistent(measurement)
    tally = by_operation(measurement)["read"]
    assert tally.count > 0
    assert set(tally.errors) <= {"connect", "reset", "short-body"}
    assert tally.errors["connect"] > 0


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_requests_that_never_end_are_counted_as_errors(
    users: Literal["engine", "sdk"], null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=1.0, objects=Objects(size=100, per_container=5))
    # All answers stop during the step, and do not come within its time: every worker is left with
    # one outstanding request.
    target = null(delay_ms=1.0)
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3"), users=users, request_timeout_s=1.5))
        running.prepare(Prepare(workload=reads))

        def freeze(progress: Progress) -> None:
            if progress.phase == "measure":
                target.process.send_signal(signal.SIGSTOP)

        try:
            measurement = running.step(Step(workload=reads, workers=3), freeze).measurement
        finally:
            target.process.send_signal(signal.SIGCONT)
    tally = by_operation(measurement)["read"]
    assert tally.count > 0
    assert tally.errors == {"unfinished": 3}
    assert any("outstanding at the end of the window" in note for note in measurement.notes)


def test_a_step_of_a_workload_that_was_not_prepared_fails(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    with driver(tmp_path) as running:
        running.setup(setup_for(null().target("s3")))
        with pytest.raises(DriverError, match="'tried' was not prepared"):
            running.step(Step(workload=workload({"read": 1}), workers=1))


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_objects_too_large_for_memory_are_written_as_files_by_the_sdks(
    api: Api, null: Callable[..., Null], tmp_path: Path
) -> None:
    both = workload(
        {"write": 1, "read": 1},
        objects=Objects(size=9_000_000, per_container=2),
        verify=True,
        runtime=1.5,
    )
    target = null()
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target(api), users="sdk"))
        running.prepare(Prepare(workload=both))
        tallies = by_operation(running.step(Step(workload=both, workers=2)).measurement)
    assert all(tally.count > 0 and not tally.errors for tally in tallies.values())
    assert tallies["write"].bytes == tallies["write"].count * 9_000_000


def test_objects_that_cannot_be_written_fail_the_preparation_with_their_classes(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1})
    with driver(tmp_path) as running:
        running.setup(setup_for(null(fail_share=1.0, fail_status=507).target("swift")))
        with pytest.raises(DriverError, match=r"only 0 of 40 objects of tried .*http-507 x"):
            running.prepare(Prepare(workload=reads))
    assert running.process.returncode == 3


def test_what_was_read_is_verified_on_request(null: Callable[..., Null], tmp_path: Path) -> None:
    reads = workload({"read": 1}, verify=True, objects=Objects(size=200_000, per_container=5))
    for users in ("engine", "sdk"):
        target = null()
        with driver(tmp_path) as running:
            running.setup(setup_for(target.target("swift"), users=users))
            running.prepare(Prepare(workload=reads))
            good = by_operation(running.step(Step(workload=reads, workers=2)).measurement)["read"]
            assert good.count > 0
            assert good.errors == {}
            swift: Any = Connection(
                authurl=f"{target.url}/auth/v1.0", user="bench", key=KEY, retries=0
            )
            name = target.names("swift")[0]
            swift.put_object(*name.split("/", 1), b"x" * 200_000)
            swift.close()
            step = Step(workload=reads, workers=2, repeat=1)
            bad = by_operation(running.step(step).measurement)["read"]
            assert bad.errors.get("wrong-content", 0) > 0
            assert set(bad.errors) == {"wrong-content"}


def test_objects_that_exist_are_not_written_again(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, objects=Objects(size=10, per_container=100))
    target = null(delay_ms=5.0)
    with driver(tmp_path) as running:
        running.setup(setup_for(target.target("s3")))
        first = running.prepare(Prepare(workload=reads, parallel=2))
        second = running.prepare(Prepare(workload=reads, parallel=2))
    assert (first.objects, first.bytes) == (second.objects, second.bytes) == (100, 1000)
    # A hundred writes of 5 ms by two workers take a quarter of a second at least.
    assert first.seconds > 0.2
    assert second.seconds < first.seconds / 2


def test_a_constant_rate_is_kept_by_both_kinds_of_user(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1}, runtime=2.0, warmup=0.5, rate_per_s=50.0)
    for users in ("engine", "sdk"):
        with driver(tmp_path) as running:
            running.setup(setup_for(null().target("s3"), users=users))
            running.prepare(Prepare(workload=reads))
            measurement = running.step(Step(workload=reads, workers=4)).measurement
        assert 80 <= by_operation(measurement)["read"].count <= 120


def test_an_invalid_command_is_answered_and_ends_the_driver(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "weighbridge.drivers.locust"],
            input=b'{"kind": "setup", "target": {"key": "a-secret-key"}}\n',
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            check=False,
            timeout=600,
        )
    # It may see the end of stdin first, which means Quit; otherwise there is an answer.
    assert done.returncode in (0, 3)
    assert KEY.encode() not in done.stdout


def test_stdout_has_only_events_and_locust_writes_its_table_to_the_log(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    reads = workload({"read": 1})
    with driver(tmp_path) as running:
        running.setup(setup_for(null().target("s3"), processes=2))
        running.prepare(Prepare(workload=reads))
        tallies = by_operation(running.step(Step(workload=reads, workers=2)).measurement)
        count = tallies["read"].count
        running.quit()
    log = (tmp_path / "driver.log").read_text()
    assert f" {count} " in log
    assert "Aggregated" in log
    assert KEY not in log
