"""A step with a fake runner, whose worker groups misbehave."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gevent
import pytest
from locust.env import Environment
from pydantic import SecretStr

import weighbridge.drivers.locust.step
from tcp_relay import relayed
from tests.drivers.conftest import closed_port
from tests.drivers.locust.local_driver import (
    Api,
    Kept,
    Null,
    by_operation,
    check_consistent,
    setup_for,
    workload,
)
from weighbridge.common.endpoint import Endpoint, Endpoints
from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.drivers.locust.account import Account, addresses_of
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.load_runner import LoadRunner
from weighbridge.drivers.locust.sdk import Recorder
from weighbridge.drivers.locust.step import StepRun, endpoint_notes
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress, engine_config
from weighbridge.drivers.locust.worker_process import (
    CLOSE,
    END,
    PROGRESS,
    Begin,
    CutOff,
    Empty,
    Question,
)
from weighbridge.drivers.protocol import Cleanup, Prepare, Progress, Setup, Step
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import EndpointTally, Measurement
from weighbridge.suites import Objects, Workload

SETUP = Setup(
    target=Endpoint(api="s3", url="http://127.0.0.1:1", user="u", key=SecretStr("k")),
    bucket_prefix="wb-1",
    seed=1,
    request_timeout_s=0.1,
)
READS = Workload(
    name="reads",
    objects=Objects(size=100),
    operations={"read": 1, "write": 1},
    workers=(2,),
    runtime=0.1,
    warmup=0.02,
)


class FakeRunner(LoadRunner):
    """Two worker processes whose progress a test gives, and which record one read each."""

    def __init__(
        self, progress: Callable[[int], WorkerProgress], *, cut: int = 0, cpu_s: float = 0.01
    ) -> None:
        self._setup = SETUP
        self.environment = Environment()
        self.asked: list[str] = []
        self.clients = ("", "")
        self._progress, self._cut, self._cpu_s = progress, cut, cpu_s
        self.failing = False

    latency_us = 250

    def begin(self, command: Begin) -> None:
        self.asked.append("begin")

    def ask(self, question: Question[Any, Any], argument: Record, timeout_s: float) -> list[Any]:
        self.asked.append(question.name)
        if question is PROGRESS:
            return [self._progress(self.asked.count("progress"))] * 2
        if question is CLOSE:
            recorder = Recorder()
            recorder.success("read", 0.01, self.latency_us, 100, 200)
            if self.failing:
                recorder.failure("read", 0.02, "http-403", 250)
            window = Window(
                tallies=recorder.tallies(),
                seconds=recorder.seconds(),
                window_s=0.1,
                cpu_s=self._cpu_s,
                cpu_limit=1.0,
            )
            return [window, window.model_copy(update={"window_s": 0.2})]
        return [CutOff(requests=self._cut) if question is END else Empty()] * 2

    def start_users(self, count: int) -> None:
        self.asked.append(f"start {count}")

    def stop_users(self, patience_s: float) -> None:
        self.asked.append("stop")

    def own_cpu_s(self) -> float:
        return 0.0

    def _users(self) -> dict[int, int]:
        return {0: 1, 1: 1}

    def _have(self, count: int, timeout_s: float, what: str) -> None:
        pass

    def _check(self) -> None:
        pass

    def close(self) -> None:
        self.asked.append("close")


class Timed(FakeRunner):
    """A runner by whose clock only waiting takes time; requests take 0.6 s."""

    latency_us = 600_000

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(working)
        self.now_s = 0.0
        self.at_s: dict[str, float] = {}
        monkeypatch.setattr(weighbridge.drivers.locust.step.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(gevent, "sleep", self.sleep)

    def sleep(self, seconds: float = 0) -> None:
        self.now_s += seconds

    def ask(self, question: Any, argument: Record, timeout_s: float) -> list[Any]:
        self.at_s.setdefault(f"{question.name} {self.asked.count(question.name)}", self.now_s)
        return super().ask(question, argument, timeout_s)


def measure(
    runner: LoadRunner,
    workload: Workload = READS,
    heard: list[Progress] | None = None,
    *,
    repeat: int = 0,
    settle_s: float = 0.0,
    told: Callable[[], bool] = lambda: False,
) -> Measurement:
    send = (heard if heard is not None else []).append
    step = Step(workload=workload, workers=2, repeat=repeat, settle_s=settle_s)
    return StepRun(SETUP, runner, CpuAllowance(cpus=1.0), step, send, told).run()[0]


def working(_turn: int) -> WorkerProgress:
    return WorkerProgress(started=1, running=1, done=10)


def test_a_step_is_warm_up_window_and_drain_and_merges_the_windows_of_all_processes() -> None:
    runner = FakeRunner(working)
    heard: list[Progress] = []
    measurement = measure(runner, heard=heard)
    asked = [verb for verb in runner.asked if verb != "progress"]
    assert " ".join(asked) == "start 2 begin open release close open close stop end"
    assert measurement.tallies[0].count == 2
    assert measurement.seconds[0].count == 2
    assert measurement.window_s == pytest.approx(0.15)
    assert measurement.warmup_s >= 0.02
    assert measurement.load.cpu_s == pytest.approx(0.02)
    assert any("0.100 s to 0.200 s" in note for note in measurement.notes)
    assert heard[0].phase == "warm-up"


def test_the_window_opens_only_when_every_worker_has_completed_a_request() -> None:
    runner = FakeRunner(lambda turn: WorkerProgress(started=1 if turn > 4 else 0, running=1))
    measure(runner)
    assert runner.asked[: runner.asked.index("close")].count("progress") == 5


@pytest.mark.parametrize(
    ("settle_s", "told_s", "warmup_s"),
    [(0.0, 0.0, 0.02), (5.0, 0.0, 1.5), (5.0, 3.0, 3.0), (5.0, 9.0, 6.5)],
)
def test_a_warm_up_waits_until_the_store_has_settled_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, settle_s: float, told_s: float, warmup_s: float
) -> None:
    runner = Timed(monkeypatch)
    measurement = measure(runner, settle_s=settle_s, told=lambda: runner.now_s >= told_s)
    assert runner.at_s["close 0"] == pytest.approx(warmup_s, abs=0.06)
    still = [note for note in measurement.notes if "reads per operation still fell" in note]
    assert bool(still) is (told_s == 9)
    assert not [note for note in measurement.notes if "late" in note]


def test_windows_of_repeats_open_at_phases_that_are_spread_over_a_mean_latency(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phases = []
    for repeat in (0, 1, 2, 3, 4, 0):
        runner = Timed(monkeypatch)
        measure(runner, repeat=repeat)
        phases.append((runner.at_s["open 1"] - runner.at_s["close 0"]) / 0.6)
    *phases, again = phases
    assert again == pytest.approx(phases[0])
    ordered = sorted(phases)
    gaps = [after - before for before, after in pairwise(ordered)]
    assert ordered[0] >= 0
    assert ordered[-1] < 1
    assert max(gaps) < 0.4 < sum(gaps)


def test_a_worker_that_never_completes_a_request_fails_the_step_with_the_last_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weighbridge.drivers.locust.step, "GRACE_S", 0.1)
    runner = FakeRunner(
        lambda _: WorkerProgress(started=0, running=1, last_error="read of 127.0.0.1:1: no answer")
    )
    with pytest.raises(DriverError, match=r"2 of 2 workers had not finished a request .*no answer"):
        measure(runner)
    assert runner.asked[-2:] == ["stop", "end"]
    assert runner.asked.count("open") == 1  # for the warm-up


def test_a_first_complete_listing_may_take_as_long_as_all_of_its_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weighbridge.drivers.locust.step, "GRACE_S", 0.1)
    monkeypatch.setattr(weighbridge.drivers.locust.step, "PAGE_S", 0.01)
    objects = READS.objects.model_copy(update={"containers": 1, "per_container": 1_000_000})
    listings = READS.model_copy(update={"operations": {"list-all": 1.0}, "objects": objects})
    patience_s = SETUP.request_timeout_s + 0.1
    begun_s = time.monotonic()

    def told(_: int) -> WorkerProgress:
        late = time.monotonic() - begun_s < 2 * patience_s
        return WorkerProgress(started=0 if late else 1, running=1)

    measure(FakeRunner(told), listings)
    begun_s = time.monotonic()
    with pytest.raises(DriverError, match="had not finished a request"):
        measure(FakeRunner(told))


def test_the_window_ends_when_no_objects_are_left_to_delete() -> None:
    deletes = READS.model_copy(
        update={"operations": {"delete": 1.0}, "runtime": 30.0, "warmup": 0.0}
    )
    runner = FakeRunner(
        lambda turn: (
            WorkerProgress(started=1, running=0, exhausted=1) if turn > 1 else working(turn)
        )
    )
    measurement = measure(runner, deletes)
    assert any("ran out after" in note for note in measurement.notes)
    # Objects are used up from the first request on.
    assert runner.asked.index("open") < runner.asked.index("release")


def test_workers_that_all_end_by_themselves_fail_the_step() -> None:
    runner = FakeRunner(
        lambda turn: WorkerProgress(started=1, running=0 if turn > 2 else 1, last_error="gone")
    )
    with pytest.raises(DriverError, match="all workers ended by themselves; last error: gone"):
        measure(runner, READS.model_copy(update={"runtime": 5.0}))


@pytest.mark.parametrize(
    ("failing", "said", "notes"),
    [(True, "403: Quota", ["the last error: 403: Quota"]), (True, None, []), (False, "early", [])],
)
def test_a_window_with_failures_says_the_last_error_in_the_targets_words(
    failing: bool, said: str | None, notes: list[str]
) -> None:
    runner = FakeRunner(lambda _: WorkerProgress(started=1, running=1, last_error=said))
    runner.failing = failing
    assert [one for one in measure(runner).notes if "last error" in one] == notes


def test_requests_cut_off_are_errors_and_a_note_says_that_their_operation_is_unknown() -> None:
    measurement = measure(FakeRunner(working, cut=3))
    assert measurement.tallies[0].errors == {"unfinished": 6}
    assert any("not known" in note for note in measurement.notes)


def test_load_is_given_by_client_and_the_masters_own_cpu_counts_on_the_first() -> None:
    runner = FakeRunner(working, cpu_s=0.1)
    runner.clients = ("near", "far")
    runner.own_cpu_s = iter((0.5, 1.0, 1.03)).__next__  # type: ignore[method-assign]
    measurement = measure(runner)
    assert measurement.load is not None
    assert [(one.client, one.cpu_limit) for one in measurement.load.clients] == [
        ("near", 1.0),
        ("far", 1.0),
    ]
    assert [one.cpu_s for one in measurement.load.clients] == pytest.approx([0.13, 0.1])
    assert measurement.load.cpu_limit == 2.0
    assert any("the driver on near used 87% of its 1 CPUs" in note for note in measurement.notes)


def test_a_busy_driver_is_noted() -> None:
    assert not any("may be the bottleneck" in note for note in measure(FakeRunner(working)).notes)
    busy = measure(FakeRunner(working, cpu_s=0.1))
    assert any("may be the bottleneck" in note for note in busy.notes)


def test_each_worker_process_begins_after_the_workers_of_those_before_it() -> None:
    class Three(FakeRunner):
        begin = LoadRunner.begin

        def _users(self) -> dict[int, int]:
            return {2: 1, 0: 3, 1: 2}

        def _ask_each(self, question: Any, each: Any, timeout_s: float) -> list[Any]:
            began.update({number: (one.first, one.count) for number, one in each.items()})
            return []

    began: dict[int, tuple[int, int]] = {}
    Three(lambda _: WorkerProgress()).begin(Begin(workload=READS, workers=6, repeat=0, count=6))
    assert began == {0: (0, 3), 1: (3, 2), 2: (5, 1)}


def at(target: Endpoint, *others: str, **more: Any) -> Endpoint:
    return Endpoint.model_validate({**target.model_dump(), "others": others, **more})


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [
        (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80))
        for one in addresses
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_addresses_of_a_name_are_each_given_once_in_an_order_that_is_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "10.0.0.10", "fd00::2", "10.0.0.9", "10.0.0.10")
    assert addresses_of("store.example", 80) == ("10.0.0.9", "10.0.0.10", "fd00::2")
    resolving(monkeypatch, *(f"10.0.0.{n}" for n in range(65)))
    with pytest.raises(DriverError, match="65 addresses; at most 64"):
        addresses_of("store.example", 80)


def test_a_name_without_addresses_is_an_error() -> None:
    with pytest.raises(DriverError, match=r"no\.such\.name\.invalid"):
        addresses_of("no.such.name.invalid", 80)


def test_the_engine_gets_every_address_of_a_name_with_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "10.0.0.2", "fd00::2")
    target = Endpoint(api="s3", url="http://store.example:8000", user="u", addresses="all")
    setup = setup_for(target)
    config = json.loads(
        engine_config(setup, Account(target, 1.0), workload({"read": 1}), threads=1)
    )
    assert config["endpoints"] == [
        {"name": name, "host": "store.example", "port": 8000, "address": address}
        for name, address in (("10.0.0.2:8000", "10.0.0.2"), ("[fd00::2]:8000", "fd00::2"))
    ]
    resolving(monkeypatch, "10.0.0.2")
    assert Account(target, 1.0).places() == ()


def test_a_login_goes_to_the_first_endpoint_that_answers(null: Callable[..., Null]) -> None:
    served = null()
    dead = f"http://127.0.0.1:{closed_port()}"
    for api, path in (("s3", ""), ("swift", "/auth/v1.0")):
        target = at(served.target(api), served.url, url=dead + path)  # type: ignore[arg-type]
        account = Account(target, 5.0)
        account.authenticate()
        assert f"{account.host}:{account.port}" == served.url.removeprefix("http://")
        assert [one.name for one in account.places()] == [
            url.removeprefix("http://") for url in (dead, served.url)
        ]
        assert bool(account.token) == (api == "swift")


def test_a_login_fails_with_the_reason_of_the_first_when_no_endpoint_answers() -> None:
    ports = [closed_port() for _ in range(2)]
    target = Endpoint(
        api="s3",
        url=f"http://127.0.0.1:{ports[0]}",
        user="u",
        others=(f"http://127.0.0.1:{ports[1]}",),
    )
    with pytest.raises(DriverError, match=f"{ports[0]}: cannot be reached"):
        Account(target, 1.0).authenticate()


def test_a_storage_url_elsewhere_is_refused_since_other_endpoints_would_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import http.client  # noqa: PLC0415 - only for this answer

    from weighbridge.drivers.locust.account import AccountAnswer  # noqa: PLC0415

    headers = http.client.HTTPMessage()
    headers["X-Storage-Url"], headers["X-Auth-Token"] = "http://front/v1/AUTH_a", "t"
    target = Endpoint(
        api="swift", url="http://a/auth", user="u", key=SecretStr("k"), others=("http://b",)
    )
    account = Account(target, 1.0)
    monkeypatch.setattr(account, "_request", lambda *_: AccountAnswer(200, headers, b""))
    with pytest.raises(DriverError, match="its storage URL is at front:80"):
        account.authenticate()


def tally(name: str, latencies_us: list[int], errors: dict[str, int], **more: Any) -> EndpointTally:
    return EndpointTally(
        name=name,
        count=len(latencies_us),
        errors=errors,
        latency=Histogram.of(latencies_us).encode() if latencies_us else None,
        **more,
    )


def test_an_endpoint_where_requests_failed_or_that_was_left_out_is_named() -> None:
    fine = tally("a:1", [1000], {})
    bad = tally("b:1", [1000], {"reset": 1, "connect": 2})
    gone = tally("c:1", [], {"connect": 3}, left_out=True)
    silent = tally("d:1", [], {}, left_out=True)
    notes = endpoint_notes((fine, bad, gone, silent))
    assert notes[0] == "endpoint b:1: 3 of 4 requests to it failed (2 connect, 1 reset)"
    assert notes[1].startswith("endpoint c:1 was left out after failed connections in a row")
    assert notes[1].endswith("3 of 3 requests to it failed (3 connect)")
    assert notes[2].endswith("it got no request in the window")
    assert len(notes) == 3


@pytest.mark.long  # starts Locust
@pytest.mark.parametrize(
    ("api", "processes"),
    [
        ("s3", 1),
        ("swift", 2),
        pytest.param("s3", 2, marks=pytest.mark.test_all),
        pytest.param("swift", 1, marks=pytest.mark.test_all),
    ],
)
def test_a_step_over_several_endpoints_says_what_each_served(
    api: Api, processes: int, null: Callable[..., Null], kept: Kept
) -> None:
    served = null()
    first, dead = int(served.url.rpartition(":")[2]), closed_port()
    mix = workload({"read": 4, "write": 1}, runtime=1.0, connections={"reconnect_every": 10})
    with relayed(first) as second, kept() as running:
        target = at(
            served.target(api),
            f"http://127.0.0.1:{second}",
            f"http://127.0.0.1:{dead}",
            spreading=Endpoints(spread="round-robin", drop_dead=True),
        )
        ready = running.setup(setup_for(target, processes=processes))
        assert "TCP_NODELAY 1" in ready.versions["sockets"]
        running.prepare(Prepare(workload=mix))
        measurement = running.step(Step(workload=mix, workers=4)).measurement
        check_consistent(measurement)
        running.cleanup(Cleanup(workload=mix, what="all"))
    assert served.names(api) == []
    ended = sum(one.count for one in by_operation(measurement).values())
    found = {one.name: one for one in measurement.endpoints}
    assert set(found) == {f"127.0.0.1:{port}" for port in (first, second, dead)}
    assert sum(one.count for one in found.values()) == ended
    assert found[f"127.0.0.1:{dead}"].left_out
    assert found[f"127.0.0.1:{dead}"].count == 0
    assert measurement.imbalance is not None
    assert 1.5 <= measurement.imbalance < 1.65
    assert any(f"endpoint 127.0.0.1:{dead} was left out" in note for note in measurement.notes)
    assert measurement.connections is not None
    assert abs(measurement.connections - ended / 10) < 0.3 * ended / 10 + 12
