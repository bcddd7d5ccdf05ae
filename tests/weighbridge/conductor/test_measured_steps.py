"""The commands of a step, how its measurement is judged, and what is deleted after it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fake_driver
from made_up import fake_measurement
from stub_run import SUITE, Run, Seen
from tests.gateways.stage import Stage
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.conductor import aging, pass_runner, profiling, quiet
from weighbridge.conductor.plan import make_plan
from weighbridge.conductor.profiling import PerfSupport, Profiler, able
from weighbridge.conductor.quiet import BackgroundLoad, BusyProgram, QuietMachine, background_load
from weighbridge.conductor.step_runner import dropping, kept_objects, memory_of
from weighbridge.conductor.time_estimate import DRIVER_S, PREPARED_PER_S, units
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import (
    Aged,
    AgeRound,
    Cleanup,
    DriverCommand,
    Prepare,
    Prepared,
    Setup,
    Step,
)
from weighbridge.gateways.gateway import DiskSpace, KeptBytes
from weighbridge.results.run.profile import Chosen, read_profiles
from weighbridge.results.run.step import Measurement, Pass, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Every, Suite, Workload
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)

WORKLOAD = {**SUITE["workloads"][0], "workers": [1, 4]}


class Asked:
    """A driver that remembers its commands; `give` returns a step's measurement, or None for the
    fake driver's.
    """

    def __init__(self, give: Callable[[Step], Measurement] | None = None) -> None:
        self.commands: list[DriverCommand] = []
        self._give = give
        self._setup: Setup | None = None

    @contextmanager
    def opened(
        self, _deployment: object, suite: Suite, _one: Pass, **_named: object
    ) -> Iterator[OpenedDriver]:
        target = Endpoint(api="swift", url="http://here", user="u", key="k")
        self._setup = Setup(target=target, bucket_prefix="wb-test", seed=suite.seed)
        yield OpenedDriver(self, {})  # type: ignore[arg-type]  # what the conductor does not ask of a driver that is open

    def _answer(self, command: Prepare | Step | Cleanup) -> Any:
        self.commands.append(command)
        made: Any = fake_driver.answer(self._setup, command, lambda event: None)
        if isinstance(command, Step) and self._give is not None:
            made = made.model_copy(update={"measurement": self._give(command)})
        return made

    def prepare(self, command: Prepare, on_progress: object = None) -> Any:
        return self._answer(command)

    def step(self, command: Step, on_progress: object = None) -> Any:
        return self._answer(command)

    def cleanup(self, command: Cleanup, on_progress: object = None) -> Any:
        return self._answer(command)


def measured(
    folder: Path, patch: pytest.MonkeyPatch, driver: Asked, **suite: Any
) -> tuple[StepResult, ...]:
    """The steps of a run with one workload on the first of two layouts, by this driver."""
    patch.setattr(pass_runner, "opened", driver.opened)
    run = Run(folder, **{"workloads": [WORKLOAD], **suite})
    store = run.conduct()
    return tuple(step for step in store.steps() if step.key.layout == "rgw-a")


def test_each_step_is_ordered_with_its_own_workers_and_the_number_of_its_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    steps = measured(tmp_path, monkeypatch, driver, repeats=3)
    ordered = {(one.workers, one.repeat) for one in driver.commands if isinstance(one, Step)}
    assert ordered == {(step.key.workers, step.key.repeat) for step in steps}
    assert ordered == {(workers, repeat) for workers in (1, 4) for repeat in range(3)}


def test_what_a_step_wrote_is_deleted_after_it_and_all_objects_after_the_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    measured(tmp_path, monkeypatch, driver)
    orders = driver.commands
    did = [one.what if isinstance(one, Cleanup) else one.kind for one in orders]
    assert did[: len(did) // 2] == ["prepare", "step", "written", "step", "written", "all"]


@pytest.mark.parametrize(("bound", "valid"), [(0.001, False), (0.5, True)])
def test_failures_are_judged_by_the_bound_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: float, valid: bool
) -> None:
    failing = Asked(
        lambda command: fake_measurement(
            workload="small", workers=command.workers, window_s=5, errors={"http-503": 50}
        )
    )
    steps = measured(tmp_path, monkeypatch, failing, bounds={"error_share": bound})
    assert [step.valid for step in steps] == [valid, valid]
    assert all(any("http-503: 50" in note for note in step.notes) for step in steps)


@pytest.mark.parametrize(("rate_per_s", "valid"), [(None, False), (200.0, True), (300.0, False)])
def test_idle_workers_are_a_fault_in_a_closed_loop_and_not_at_a_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate_per_s: float | None, valid: bool
) -> None:
    """Four workers of which two are busy: 1000 requests of 10 ms in 5 s."""
    idle = Asked(
        lambda command: fake_measurement(workload="small", workers=2, window_s=5).model_copy(
            update={"workers": command.workers}
        )
    )
    workload = {**WORKLOAD, "workers": [4], "rate_per_s": rate_per_s}
    steps = measured(tmp_path, monkeypatch, idle, workloads=[workload])
    assert [step.valid for step in steps] == [valid], [step.notes for step in steps]


def test_repeated_cache_drops_happen_only_while_a_step_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step lasts until the third drop; if there are fewer, until its deadline."""
    run = Run(tmp_path, workloads=[{**WORKLOAD, "workers": [4]}], cache={"every": "1s"})
    gateway, never = run.gateways["rgw-a"], threading.Event()
    drops: list[int] = []

    def waiting(command: Step) -> Measurement:
        deadline = time.monotonic() + 60
        while gateway.did.count("drop") < 3 and time.monotonic() < deadline:
            never.wait(0.02)
        drops.append(gateway.did.count("drop"))
        return fake_measurement(workload="small", workers=command.workers, window_s=5)

    monkeypatch.setattr(pass_runner, "opened", Asked(waiting).opened)
    run.planned = run.planned[:1]
    run.conduct()
    assert drops[0] >= 3
    assert "drop" not in gateway.did[gateway.did.index("settle") :]


LISTED = {
    "name": "list-all",
    "objects": {"size": "0B", "containers": 2, "per_container": 8},
    "operations": {"list-all": 1},
    "workers": [1, 4],
    "runtime": "5s",
    "listed": {"deleted": ["0%", "25%"]},
}
PLAIN = {**LISTED, "name": "plain", "operations": {"head": 1}, "listed": None}


def test_what_deletes_anothers_objects_is_prepared_after_the_others_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    run = Run(tmp_path, cleanup="with-deployment", workloads=[LISTED, PLAIN])
    del run.planned[1:]
    monkeypatch.setattr(pass_runner, "opened", driver.opened)
    run.conduct()
    asked = [
        (one.kind, one.workload.name) for one in driver.commands if isinstance(one, Prepare | Step)
    ]
    assert asked == [
        ("prepare", "list-all"),
        ("prepare", "plain"),
        *[("step", "list-all")] * 2,
        ("prepare", "list-all-25-deleted"),
        *[("step", "list-all-25-deleted")] * 2,
        *[("step", "plain")] * 2,
    ]
    planned = [
        (one.kind, one.work.split()[0])
        for one in units(run.plan())
        if one.kind in ("prepare", "step")
    ]
    assert planned == asked


def test_the_time_of_writing_and_of_deleting_a_share_is_expected(tmp_path: Path) -> None:
    many = {**LISTED, "objects": {"size": "0B", "containers": 1, "per_container": 100_000}}
    run = Run(tmp_path, cleanup="with-deployment", workloads=[many])
    del run.planned[1:]
    expected_s = [one.guess_s - DRIVER_S for one in units(run.plan()) if one.kind == "prepare"]
    assert expected_s == [100_000 / PREPARED_PER_S, 25_000 / PREPARED_PER_S]


LATE_S = 10.0
"""A drop that has not come by then does not come."""


class Hours:
    """A clock that advances while the dropper waits, and caches of which a drop takes `takes_s`."""

    def __init__(self, *, takes_s: float = 0.0, fails_at: int = -1) -> None:
        self.now_s = 100.0
        self.at: list[float] = []
        self.dropped = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self._takes_s = takes_s
        self._fails_at = fails_at

    def drop(self) -> None:
        if len(self.at) == self._fails_at:
            self.dropped.release()
            raise TargetError("the store has gone")
        self.at.append(self.now_s - 100.0)
        self.now_s += self._takes_s
        self.dropped.release()

    def rest(self, done: threading.Event, seconds: float) -> None:
        while not done.is_set():
            if self.allowed.acquire(timeout=0.05):
                self.now_s += seconds
                return

    def run(self, cache: str | Every, times: int) -> list[float]:
        """Seconds from the start of so many drops, or of all if there are fewer."""
        with dropping(cache, self.drop, clock=lambda: self.now_s, rest=self.rest):
            for _ in range(times):
                if not self.dropped.acquire(timeout=LATE_S):
                    break
                self.allowed.release()
        return self.at[:times]


def test_caches_are_dropped_at_once_and_then_every_minute_of_a_step_however_slow_a_drop_is() -> (
    None
):
    assert Hours().run(Every(every=60.0), 5) == [0.0, 60.0, 120.0, 180.0, 240.0]
    assert Hours(takes_s=7.0).run(Every(every=60.0), 4) == [0.0, 60.0, 120.0, 180.0]
    assert Hours(takes_s=90.0).run(Every(every=60.0), 3) == [0.0, 90.0, 180.0]


def test_a_drop_that_fails_fails_the_step_when_it_ends() -> None:
    hours = Hours(fails_at=1)
    with pytest.raises(TargetError, match="the store has gone"):
        hours.run(Every(every=60.0), 2)
    assert hours.at == [0.0]


ALLOWED = PerfSupport(event="cpu-clock", blocks=True, remarks=())


def test_hosts_whose_processes_cannot_be_seen_are_not_profiled_and_their_steps_are_valid(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=2)
    store = run.store()
    profiler = Profiler(Chosen(workload="small", workers=4), store, ALLOWED)
    run.into(store, profiler=profiler)
    assert all(step.valid for step in store.steps())
    profile_events = [event for event in store.events() if event.kind == "profile"]
    assert sorted(event.layout or "" for event in profile_events) == ["rgw-a", "swift-b"]
    assert all("not profiled" in event.text for event in profile_events)
    assert read_profiles(store.folder) == ()


def test_without_perf_the_reason_and_the_package_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiling.shutil, "which", lambda _: None)
    (why,) = able().remarks
    assert "there is no program perf (Debian: apt install linux-perf)" in why
    assert able().event is None
    assert not able().blocks


def test_the_message_of_a_perf_that_may_not_record_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "perf"
    said = "Error: Access to performance monitoring is limited"
    refusing.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 255\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = able()
    assert found.event is None
    assert not found.blocks
    assert any("Access to performance monitoring is limited" in remark for remark in found.remarks)
    assert any(remark.startswith("no disk was traced") for remark in found.remarks)


def workload(size: str = "4MiB", **objects: Any) -> Workload:
    known = {"name": "w", "operations": {"read": 1}, "workers": [1], "runtime": "1s"}
    return Workload.model_validate({**known, "objects": {"size": size, **objects}})


def record(before: KeptBytes | None, after: KeptBytes | None, objects: int = 2) -> Any:
    prepared = Prepared(objects=objects, bytes=objects * 100, seconds=1)
    way = Pass(api="swift", workloads=())
    return kept_objects("rgw", 0, way, workload(), prepared, before=before, after=after)


def test_what_is_unknown_before_or_after_leaves_no_record() -> None:
    known = KeptBytes(500, 7, "how")
    found = record(known, KeptBytes(1100, 9, "how"))
    assert (found.times, found.beside_bytes) == (3.0, 2)
    assert record(None, known) is None
    assert record(known, None) is None
    assert record(known, known, objects=0) is None
    assert record(known, KeptBytes(1100, None, "how")).beside_bytes is None


def test_daemons_of_one_role_are_numbered_and_one_that_is_not_found_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    daemons = stage.rgw().daemons()

    def answer(argv: Any, stdin: str) -> str:
        one = {"processes": 1, "resident_bytes": 10, "peak_bytes": 20}
        return json.dumps([None if "ceph-mgr" in words else one for words in json.loads(stdin)])

    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", answer)
    found = {(one.host, one.daemon): one for one in memory_of(daemons, "rgw", 0, "w")}
    assert found["store-1", "mgr"].resident_bytes is None
    assert found["store-2", "osd.2"].role == "osd"
    assert found["gateway-1", "radosgw"].peak_bytes == 20
    assert len(found) == 9


@pytest.mark.parametrize("text", ["[]", "{}", "no", '[{"processes": -1}]', "[1e999]"])
def test_an_answer_of_a_host_that_is_none_is_an_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    daemons = stage.rgw().daemons()
    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", lambda argv, stdin: text)
    with pytest.raises(TargetError, match="memory of"):
        memory_of(daemons, "rgw", 0, "w")


def test_compression_of_content_that_repeats_itself_is_refused() -> None:
    hardware = load_hardware(shipped_hardware()["lab-cpu"])
    reference = parse("rgw-beast:radosgw.compression=zstd")
    planned = [load_layout(shipped_layouts()["rgw-beast"], hardware, reference)]

    def plan(one: Workload) -> None:
        make_plan(Suite(name="s", about="s", workloads=(one,)), hardware, planned)

    with pytest.raises(UsageError, match=r"\(zstd\) compresses objects, and those of w repeat"):
        plan(workload())
    plan(workload(compressible="0%"))
    plan(workload("200KB"))


COPIES = Redundancy(replicas=3)
ROOM = DiskSpace(bytes=3_000_000, free_bytes=2_900_000, kept=COPIES)


def suite(**age: Any) -> Suite:
    return Suite.model_validate(
        {**SUITE, "age": {"fill": "10%", "size": 1000, "churn": 2, "share": "50%", **age}}
    )


@pytest.mark.parametrize(
    ("free", "lab_free", "whose"),
    [(500_000, None, "on its disks"), (2_900_000, 500_000, "on this machine")],
)
def test_aging_that_does_not_fit_is_refused_with_the_free_space(
    free: int, lab_free: int | None, whose: str
) -> None:
    # 100 objects of 1 kB and twice 50 more, three times each: 600 kB.
    room = DiskSpace(bytes=ROOM.bytes, free_bytes=free, kept=COPIES)
    with pytest.raises(TargetError, match=f"600 kB in 3 replicas; 500 kB {whose}"):
        aging.order_of(suite(), room, lab_free)
    assert aging.order_of(suite(churn=1), room, lab_free).objects == 100


def test_fragments_are_not_called_replicas_whatever_they_add_up_to() -> None:
    kept = Redundancy(replicas=1, fragments=Fragments(data=2, parity=2))
    room = DiskSpace(bytes=ROOM.bytes, free_bytes=300_000, kept=kept)
    with pytest.raises(TargetError, match=r"600 kB in 2\+2 fragments; 300 kB on its disks"):
        aging.order_of(suite(), room)


def test_too_many_objects_are_refused_with_the_limit() -> None:
    room = DiskSpace(bytes=3 * 10**15, free_bytes=3 * 10**15, kept=COPIES)
    why = "aging: these are 200,000,000,000 objects; at most 100,000,000 are written"
    with pytest.raises(TargetError, match=why):
        aging.order_of(suite(), room)


def test_what_was_done_is_described_with_the_fill() -> None:
    order = aging.order_of(suite(), ROOM)
    once = AgeRound(number=0, deleted=50, deleted_bytes=50_000, written=50, written_bytes=50_000)
    sizes = {"objects": 100, "bytes": 100_000, "filled_bytes": 100_000}
    aged = Aged.model_validate({**sizes, "rounds": (once,), "seconds": 1.5, "fingerprint": "f00"})
    assert aging.describe(order, aged, ROOM) == [
        "filled with 100 objects, 100 kB, 10.00% of 3 MB with 3 replicas",
        "round 1 of churn: 50 objects deleted (50 kB), 50 written (50 kB)",
        "100 objects, 100 kB, after 1.5 s; checksum f00",
    ]
    assert "1.5" not in str(aging.facts(order, aged, ROOM))


def test_a_layout_that_cannot_be_filled_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = Run(tmp_path, age={"fill": "5%"})
    with pytest.raises(UsageError, match="the disk space of rgw-a is not known"):
        run.plan()
    run = Run(tmp_path, age={"fill": "1MB"}, api=["rados"])
    for gateway in run.gateways.values():
        gateway.answers = ()
        gateway.layers = lambda: ("rados",)  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="rgw-a has neither a Swift nor an S3 API"):
        run.plan()


def test_each_deployment_is_aged_before_its_first_step_and_records_that(tmp_path: Path) -> None:
    store = Run(tmp_path, age={"fill": "1MB", "size": 1000}).conduct()
    for layout in ("rgw-a", "swift-b"):
        kinds = [event.kind for event in store.events() if event.layout == layout]
        assert kinds.index("aged") < kinds.index("prepared")
    sheets = RunStore.open(store.folder).manifest.sheets
    facts = [one.facts["age"] for one in sheets if one.layout is not None and "age" in one.facts]
    assert facts == ["filled with 1000 objects, 1 MB"] * 2
    assert all(step.valid for step in store.steps())


def test_a_store_that_could_not_be_aged_is_not_measured_and_every_step_says_why(
    tmp_path: Path,
) -> None:
    steps = Run(tmp_path, age={"fill": "1MB"}).conduct("--fail", "age").steps()
    assert len({step.key for step in steps}) == 6
    assert not any(step.valid or step.measurement for step in steps)
    assert all("'age' fails as asked" in step.notes[0] for step in steps)


def test_the_buckets_that_aging_makes_are_among_those_that_are_cleared() -> None:
    assert aging.buckets(suite(containers=2), "wb-1f") == ["wb-1fa-age-0", "wb-1fa-age-1"]
    assert aging.buckets(Suite.model_validate(SUITE), "wb-1f") == []


IDLE = BackgroundLoad(share=0.02)
BUSY = BackgroundLoad(
    share=0.53,
    programs=(
        BusyProgram(pid=4711, name="burner", cpus=0.99),
        BusyProgram(pid=12, name="other", cpus=0.07),
    ),
)


class Clock:
    """Advances by a second with each look."""

    def __init__(self, looks: Callable[[int], BackgroundLoad]) -> None:
        self.now_s = 0.0
        self._looks = looks

    def look(self) -> BackgroundLoad:
        self.now_s += 1.0
        return self._looks(int(self.now_s))

    def quiet(self, patience_s: float = 60.0) -> QuietMachine:
        return QuietMachine(look=self.look, clock=lambda: self.now_s, patience_s=patience_s)


WAITED = [f"{BUSY.words}; waiting up to 60 s for a quiet machine", "the machine is quiet"]


VAIN = f"{BUSY.words}; no result is comparable unless they end"


@pytest.mark.parametrize(("quiet_at", "words"), [(1, []), (10, WAITED), (99, [WAITED[0], VAIN])])
def test_a_machine_is_checked_until_it_is_quiet_or_a_minute_is_over(
    quiet_at: int, words: list[str]
) -> None:
    said: list[str] = []
    clock = Clock(lambda at: BUSY if at < quiet_at else IDLE)
    assert clock.quiet().wait(said.append) == (BUSY if quiet_at > 60 else None)
    assert said == words
    assert clock.now_s == pytest.approx(min(quiet_at, 61), abs=1)


def test_after_a_wait_in_vain_there_is_no_other_until_the_machine_was_quiet() -> None:
    clock = Clock(lambda at: IDLE if at in (63, 64) else BUSY)
    waiting = clock.quiet()
    assert waiting.wait(lambda _: None) == BUSY
    before_s = clock.now_s
    assert waiting.wait(lambda _: None) == BUSY
    assert clock.now_s == before_s + 1.0
    assert waiting.wait(lambda _: None) is None
    assert clock.now_s == before_s + 2.0
    clock.now_s = 64.0
    assert waiting.wait(lambda _: None) == BUSY
    assert clock.now_s >= 64.0 + 60.0


def test_a_tenth_of_the_machine_is_busy_and_less_is_not() -> None:
    assert BackgroundLoad(share=0.1).busy
    assert not BackgroundLoad(share=0.099).busy


def test_a_deployment_on_a_busy_machine_is_recorded_with_share_and_names(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store, seen = run.store(), Seen()
    looks = iter([BUSY, BUSY, IDLE])
    waiting = QuietMachine(look=lambda: next(looks), clock=iter([0.0, 0.0, 61.0]).__next__)
    run.into(store, display=seen, quiet=waiting)
    (event,) = [one for one in store.events() if one.kind == "busy"]
    assert (event.share, event.repeat, event.layout) == (0.53, 0, store.events()[0].layout)
    assert "burner 4711" in event.text
    assert "waiting up to 60 s" in seen.said[1]


@pytest.fixture
def stat(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text("cpu  100 0 100 1000 0 0 0 50 0 0\n")
    return tmp_path


def test_stolen_time_is_read_from_the_kernels_count_and_counts_as_used(
    stat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_time(seconds: float) -> None:
        (stat / "stat").write_text("cpu  100 0 100 1000 0 0 0 100 0 0\n")

    monkeypatch.setattr(quiet.time, "sleep", pass_time)
    monkeypatch.setattr(quiet.time, "monotonic", iter([0.0, 1.0]).__next__)
    monkeypatch.setattr(quiet.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(quiet.os, "sysconf", lambda _: 100)
    found = background_load(proc=stat)
    assert found.stolen == pytest.approx(0.5)
    assert found.share == pytest.approx(0.5, abs=0.1)
    assert "taken by the hypervisor: 50 %" in found.words


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        yield program
        program.kill()


def test_a_program_that_uses_a_core_is_found_by_number_and_name(
    burner: subprocess.Popen[bytes],
) -> None:
    # A busy machine has many programs: ask for all.
    found = background_load(1.0, most=10_000)
    assert burner.pid in {one.pid for one in found.programs}
