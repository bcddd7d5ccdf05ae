"""The real driver process with faults of the target, and special workloads."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
import zmq
from hdrh.histogram import HdrHistogram
from locust import __version__
from locust.rpc import Message
from pydantic import SecretStr
from swiftclient.client import Connection

from tests.drivers.locust.local_driver import (
    KEY,
    ROOT,
    Api,
    Kept,
    Null,
    by_operation,
    check_consistent,
    driver,
    fault_of,
    setup_for,
    stepped,
    workload,
)
from weighbridge import suites
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.engine._native import object_sizes
from weighbridge.drivers.locust.aging import churned, fingerprint
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import AgeBuckets, Aged, Cleanup, Prepare, Progress, Step
from weighbridge.suites import Objects

pytestmark = pytest.mark.long  # starts Locust


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_failures_are_counted_by_class_and_never_as_successes(
    users: Literal["engine", "sdk"], null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=2.0)
    target = null(fail_share=0.3)
    with kept() as running:
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


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_a_known_delay_is_seen_in_every_latency(
    users: Literal["engine", "sdk"], null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=1.0)
    setup = setup_for(null(delay_ms=30.0).target("swift"), users=users)
    with kept() as running:
        tally = by_operation(stepped(running, setup, reads, 2))["read"]
    assert tally.min_us is not None
    assert tally.latency is not None
    assert tally.min_us >= 29_900
    assert 29_900 <= HdrHistogram.decode(tally.latency).get_value_at_percentile(90) < 150_000


@pytest.mark.parametrize(("api", "path"), [("s3", ""), ("swift", "/auth/v1.0")])
def test_an_unreachable_target_fails_fast_and_is_named(api: Api, path: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{held.getsockname()[1]}"
        target = Endpoint(api=api, url=f"http://{place}{path}", user="bench", key=SecretStr(KEY))
        fault = fault_of(setup_for(target))
    assert place in fault
    assert "connection refused" in fault


def test_a_wrong_key_fails_and_is_not_shown(null: Callable[..., Null], tmp_path: Path) -> None:
    target = null().target("swift", "not-the-right-key")
    with (
        driver(tmp_path) as running,
        pytest.raises(DriverError, match=r"no token for user .bench.: HTTP 40") as caught,
    ):
        running.setup(setup_for(target))
    assert running.process.returncode == 3
    assert "not-the-right-key" not in str(caught.value)
    assert "not-the-right-key" not in (tmp_path / "driver.log").read_text()


def test_a_given_swift_token_is_used_and_an_invalid_one_fails_with_advice(
    null: Callable[..., Null], kept: Kept
) -> None:
    served = null()
    url, token = Connection(
        authurl=f"{served.url}/auth/v1.0", user="bench", key=KEY, retries=0
    ).get_auth()
    given = Endpoint(api="swift", url=url, user="", key=SecretStr(""), token=SecretStr(token))
    tried = workload({"read": 1, "write": 1})
    with kept() as running:
        measurement = stepped(running, setup_for(given), tried, 2)
        running.cleanup(Cleanup(workload=tried, what="all"))
    check_consistent(measurement)
    assert not any(tally.errors for tally in measurement.tallies)
    assert served.names("swift") == []
    old = given.model_copy(update={"token": SecretStr("old")})
    fault = fault_of(setup_for(old))
    assert "HTTP 401" in fault
    assert "cannot be renewed: give a new one" in fault


def test_a_step_after_overload_begins_when_the_target_answers_again(
    null: Callable[..., Null], kept: Kept
) -> None:
    target = null()
    plain = workload({"read": 1})
    more = workload({"read": 1}, rate_per_s=50.0, overload={"within": 1.0}, workers=(4,))
    with kept() as running:
        running.setup(setup_for(target.target("swift"), request_timeout_s=2.0))
        running.prepare(Prepare(workload=more))
        running.step(Step(workload=more, workers=4))
        target.process.send_signal(signal.SIGSTOP)
        # Its threads stop one by one: until then one of them could let the step begin.
        os.waitid(os.P_PID, target.process.pid, os.WSTOPPED | os.WNOWAIT)
        waits: list[Progress] = []

        def go_on(progress: Progress) -> None:
            if progress.phase == "prepare":
                waits.append(progress)
                target.process.send_signal(signal.SIGCONT)

        measurement = running.step(Step(workload=plain, workers=1), go_on).measurement
    assert waits
    assert by_operation(measurement)["read"].failed == 0


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_a_target_that_dies_in_a_step_leaves_a_measurement_with_errors(
    users: Literal["engine", "sdk"], null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=2.0)
    target = null()

    def kill(progress: Progress) -> None:
        if progress.phase == "measure":
            target.process.kill()

    setup = setup_for(target.target("s3"), users=users, request_timeout_s=3.0)
    with kept() as running:
        measurement = stepped(running, setup, reads, 4, kill)
    check_consistent(measurement)
    tally = by_operation(measurement)["read"]
    assert tally.count > 0
    assert set(tally.errors) <= {"connect", "reset", "short-body"}
    assert tally.errors["connect"] > 0


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_requests_that_never_end_are_counted_as_errors(
    users: Literal["engine", "sdk"], null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=2.0, objects=Objects(size=100, per_container=5))
    # All answers stop during the step, and do not come within its time: every worker is left with
    # one outstanding request.
    target = null(delay_ms=1.0)

    def freeze(progress: Progress) -> None:
        if progress.phase == "measure":
            target.process.send_signal(signal.SIGSTOP)

    setup = setup_for(target.target("s3"), users=users, request_timeout_s=5.0)
    with kept() as running:
        try:
            measurement = stepped(running, setup, reads, 3, freeze)
        finally:
            target.process.send_signal(signal.SIGCONT)
    tally = by_operation(measurement)["read"]
    assert tally.count > 0
    assert tally.errors == {"unfinished": 3}
    assert any("outstanding at the end of the window" in note for note in measurement.notes)


def test_a_step_of_a_workload_that_was_not_prepared_fails(null: Callable[..., Null]) -> None:
    step = Step(workload=workload({"read": 1}), workers=1)
    assert "'tried' was not prepared" in fault_of(setup_for(null().target("s3")), step)


@pytest.mark.parametrize("api", ["s3", pytest.param("swift", marks=pytest.mark.test_all)])
def test_objects_too_large_for_memory_are_written_as_files_by_the_sdks(
    api: Api, null: Callable[..., Null], kept: Kept
) -> None:
    both = workload(
        {"write": 1, "read": 1},
        objects=Objects(size=9_000_000, per_container=2),
        verify=True,
        runtime=2.0,
    )
    setup = setup_for(null(delay_ms=50.0).target(api), users="sdk")
    with kept() as running:
        tallies = by_operation(stepped(running, setup, both, 2))
    assert all(tally.count > 0 and not tally.errors for tally in tallies.values())
    assert tallies["write"].bytes == tallies["write"].count * 9_000_000


def test_objects_that_cannot_be_written_fail_the_preparation_with_their_classes(
    null: Callable[..., Null],
) -> None:
    full = setup_for(null(fail_share=1.0, fail_status=507).target("swift"))
    fault = fault_of(full, Prepare(workload=workload({"read": 1})))
    assert "only 0 of 40 objects of tried" in fault
    assert "http-507 x" in fault
    busy = setup_for(null(fail_share=1.0, fail_status=503).target("s3"))
    fault = fault_of(busy, Prepare(workload=workload({"read": 1})))
    assert fault.endswith(": 503: InjectedFailure: InjectedFailure")  # and no XML


def test_objects_that_exist_are_not_written_again(null: Callable[..., Null], kept: Kept) -> None:
    reads = workload({"read": 1}, objects=Objects(size=10, per_container=100))
    target = null(delay_ms=20.0)
    with kept() as running:
        running.setup(setup_for(target.target("s3")))
        first = running.prepare(Prepare(workload=reads, parallel=2))
        second = running.prepare(Prepare(workload=reads, parallel=2))
    assert (first.objects, first.bytes) == (second.objects, second.bytes) == (100, 1000)
    # A hundred writes of 20 ms by two workers take a second at least.
    assert first.seconds > 0.8
    assert second.seconds < first.seconds / 2


def test_a_constant_rate_is_kept_by_both_kinds_of_user(
    null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=2.0, warmup=0.5, rate_per_s=50.0)
    for users in ("engine", "sdk"):
        with kept() as running:
            setup = setup_for(null().target("s3"), users=users)
            measurement = stepped(running, setup, reads, 4)
        due, read = 50 * measurement.window_s, by_operation(measurement)["read"]
        # On a busy machine some that were due are sent after the window.
        late = HdrHistogram.decode(read.in_flight).get_total_count() if read.in_flight else 0
        assert 0.8 * due <= read.count + late
        assert 0.5 * due <= read.count <= 1.2 * due


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
    setup = setup_for(null().target("s3"), processes=2)
    with driver(tmp_path) as running:
        count = by_operation(stepped(running, setup, reads, 2))["read"].count
        running.quit()
    log = (tmp_path / "driver.log").read_text()
    assert f" {count} " in log
    assert "Aggregated" in log
    assert KEY not in log


AGE = suites.Age.model_validate(
    {"fill": "1MB", "size": {"uniform": [100, 9000]}, "containers": 3, "churn": 2, "share": "25%"}
)


def aged(
    target: Null, kept: Kept, age: suites.Age = AGE, objects: int = 40
) -> tuple[Aged, list[Progress]]:
    heard: list[Progress] = []
    with kept() as running:
        running.setup(setup_for(target.target("s3")))
        answer = running.age(AgeBuckets(age=age, objects=objects), heard.append)
    return answer, heard


def test_a_store_is_filled_and_churned_and_holds_what_is_reported(
    null: Callable[..., Null], kept: Kept
) -> None:
    target = null()
    answer, heard = aged(target, kept)
    names = target.names("s3")
    assert answer.objects == len(names) == 40
    assert [(one.deleted, one.written) for one in answer.rounds] == [(10, 10), (10, 10)]
    assert {name.split("/")[0] for name in names} == {f"wb-test-age-{index}" for index in range(3)}
    # Numbers are never reused: of 60 objects ever written, the last ten all exist, and of the first
    # 40 some do not.
    numbers = sorted(
        int(name.rsplit("-", 1)[1]) * 3 + int(name.split("/")[0].rsplit("-", 1)[1])
        for name in names
    )
    assert numbers[-10:] == list(range(50, 60))
    assert 20 <= len([number for number in numbers if number < 40]) <= 30
    sizes = object_sizes(AGE.workload(40).model_dump_json(), 11, 0, 60)
    assert answer.bytes == sum(sizes[number] for number in numbers)
    assert answer.filled_bytes == sum(sizes[:40])
    assert answer.fingerprint == fingerprint(numbers, 3, sizes.__getitem__)
    assert {progress.phase for progress in heard} == {"prepare", "cleanup"}


def test_the_same_seed_gives_the_same_names_and_sizes_and_another_does_not(
    null: Callable[..., Null], kept: Kept
) -> None:
    one, two, three = null(), null(), null()
    first, second = aged(one, kept)[0], aged(two, kept)[0]
    assert first.model_copy(update={"seconds": 0.0}) == second.model_copy(update={"seconds": 0.0})
    assert one.names("s3") == two.names("s3")
    other = aged(three, kept, AGE.model_copy(update={"seed": 12}))[0]
    assert other.fingerprint != first.fingerprint
    assert three.names("s3") != one.names("s3")


def test_a_store_without_churn_is_only_filled(null: Callable[..., Null], kept: Kept) -> None:
    target = null()
    answer, _ = aged(target, kept, AGE.model_copy(update={"churn": 0}), objects=7)
    assert (answer.objects, answer.rounds) == (7, ())
    assert answer.bytes == answer.filled_bytes
    assert len(target.names("s3")) == 7


def test_what_cannot_be_written_fails_the_aging(null: Callable[..., Null]) -> None:
    refusing = setup_for(null(fail_share=1.0).target("s3"))
    fault = fault_of(refusing, AgeBuckets(age=AGE, objects=40))
    assert "of 40 objects of age could be written; errors: http-503" in fault


def test_objects_deleted_in_a_round_existed_before_it_and_not_after_it() -> None:
    alive = set(range(40))
    for gone, new, after in churned(AgeBuckets(age=AGE, objects=40), 11):
        assert set(gone) <= alive
        assert not alive & set(new)
        alive = (alive - set(gone)) | set(new)
        assert alive == set(after)
        assert len(after) == 40


# Strangers that talk to the port of Locust's master, whose steps depend on its own worker
# processes alone.

READY = Message("client_ready", __version__, "stranger_1").serialize()
PING = Message("weighbridge-here", {"number": 1}, "stranger_1").serialize()
ANSWER = Message(
    "weighbridge-answer", {"id": 1, "answer": "{}", "error": "it was me"}, "stranger_1"
).serialize()
TORN = (READY[:-3], b"\xc1", b"", b"\x00" * 1000, Message("client_ready", {"a": 1}, 7).serialize())
SKEW = "windows of the worker processes are "


def port_of(running: DriverProcess) -> int:
    connections = psutil.Process(running.process.pid).net_connections("tcp")
    (port,) = {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}
    return int(port)


@contextmanager
def stranger(port: int, messages: tuple[bytes, ...], *, guesses: bool) -> Iterator[None]:
    """One that connects as Locust's workers do, or with a guessed key, and sends `messages`."""
    context = zmq.Context()
    connection: Any = context.socket(zmq.DEALER)
    connection.setsockopt(zmq.IDENTITY, b"stranger_1")
    if guesses:
        connection.curve_publickey, connection.curve_secretkey = zmq.curve_keypair()
        connection.curve_serverkey = zmq.curve_keypair()[0]
    connection.connect(f"tcp://127.0.0.1:{port}")
    try:
        for message in messages:
            connection.send(message)
        yield
    finally:
        connection.close(linger=0)
        context.term()


def test_messages_from_strangers_do_not_affect_a_step(
    null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=1.0, warmup=0.2)
    with kept() as running:
        running.setup(setup_for(null(delay_ms=5.0).target("s3"), processes=2))
        port = port_of(running)
        running.prepare(Prepare(workload=reads))
        sent = (READY, PING, ANSWER, *TORN)
        with stranger(port, sent, guesses=False), stranger(port, sent, guesses=True):
            with socket.create_connection(("127.0.0.1", port), timeout=5.0) as raw:
                raw.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(range(256)) * 100)
            for workers in (5, 1):
                measurement = running.step(Step(workload=reads, workers=workers)).measurement
                check_consistent(measurement)
                assert by_operation(measurement)["read"].count > 0
                # A busy machine closes one process's window later than another's, and says so.
                assert not [note for note in measurement.notes if not note.startswith(SKEW)]


def test_the_masters_key_is_on_no_command_line_and_in_no_environment(
    null: Callable[..., Null], kept: Kept
) -> None:
    with kept() as running:
        running.setup(setup_for(null().target("s3"), processes=2))
        children = psutil.Process(running.process.pid).children()
        words = [word for one in children for word in (*one.cmdline(), *one.environ().values())]
    assert len(children) == 2
    # A CurveZMQ key is forty characters of Z85; no other word here is, except for paths.
    assert not [
        word for word in words if len(word) == 40 and "/" not in word and not word.isalnum()
    ]
