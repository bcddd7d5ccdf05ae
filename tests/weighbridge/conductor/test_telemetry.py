"""Telemetry of hosts with made-up counters, and of probes that are small programs."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from tests.weighbridge.sent_runs import until
from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters, Host, ModelDiskCounters
from weighbridge.conductor.telemetry import (
    ProbeLine,
    Settling,
    StepTelemetry,
    Watch,
    grown,
    limits_of,
)
from weighbridge.drivers.protocol import Progress
from weighbridge.gateways.gateway import HostNeed
from weighbridge.gateways.probe import Probe
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import DiskLimit, DiskSecond, HostLimits, Telemetry
from weighbridge.topologies.fake import FakeHost
from weighbridge.topologies.hardware import Hardware

KEY = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=7)

COUNTS = """
import json, sys, threading
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
number = 0
while not ended.is_set():
    print(json.dumps({"req": number, "qlen": 3}), flush=True)
    number += 10
    ended.wait(0.05)
"""


@pytest.mark.parametrize(
    ("reads", "operations", "settled_s"),
    [
        ((0, 100, 150, 175, 187), (0, 10, 20, 30, 40), None),  # each second half of the last
        ((0, 100, 150, 195, 300), (0, 10, 20, 30, 40), 3),  # 10, 5 and 4.5 an operation
        ((0, 100, 150, 175, 187), (0, 10, 15, 17, 18), 2),  # 10 an operation, of ever fewer
        ((0, 3, 4, 4, 4), (0, 30, 60, 90, 120), 2),  # hardly any
        ((0, 100, 150, 250, 350), (0, 10, 10, 20, 30), 3),  # a second in which nothing ended
        (None, (0, 10, 20, 30, 40), 0),
    ],
)
def test_a_store_has_settled_when_its_disks_reads_per_operation_no_longer_fall(
    store: RunStore,
    monkeypatch: pytest.MonkeyPatch,
    reads: Sequence[int] | None,
    operations: Sequence[int],
    settled_s: int | None,
) -> None:
    now_s = 0.0
    monkeypatch.setattr("weighbridge.conductor.telemetry.time.monotonic", lambda: now_s)
    host, said = FakeHost("store-1", "127.0.0.1", store.folder), []
    limits = HostLimits(host=host.name, tier="storage", disks=(DiskLimit(),))
    settling = Settling(Watch(store, "swift", {host.name: host}, [limits], lambda: ()))
    for quarter in range(20):
        now_s = quarter / 4
        disks = reads and (replace(KERNEL, reads=reads[int(now_s)]),)
        monkeypatch.setattr(host, "counters", lambda disks=disks: Counters(disks=disks))
        operations_so_far = operations[int(now_s)]
        progress = Progress(phase="warm-up", done=0, total=1, operations=operations_so_far)
        if settling.has_settled(progress):
            said.append(int(now_s))
    assert said == ([] if settled_s is None else [settled_s])


PERIOD = "weighbridge.conductor.telemetry.PERIOD_S"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts are asked ten times a second: only a few tests are about seconds."""
    monkeypatch.setattr(PERIOD, 0.1)


class Meter(FakeHost):
    """A host that has used half a CPU and 1 MB/s of network since it was made."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, "127.0.0.1", folder / name)
        self.began = time.monotonic()
        self.asked = threading.Semaphore(0)
        self.fails = False
        self.more = Counters()

    def counters(self) -> Counters:
        self.asked.release()
        if self.fails:
            raise TargetError(f"{self.name} is gone")
        passed_s = time.monotonic() - self.began
        times = {"busy_s": passed_s / 4, "waited_s": passed_s / 2}
        written = round(passed_s * 2e6)
        disk = DiskCounters(read_bytes=0, written_bytes=written, reads=0, writes=3, **times)
        more = {name: value for name, value in vars(self.more).items() if value is not None}
        own = Counters(
            cpu_s=passed_s / 2,
            network_sent_bytes=round(passed_s * 1e6),
            network_received_bytes=0,
            memory_held_bytes=1000,
            disks=(disk,),
        )
        return replace(own, **more)


@pytest.fixture
def store(runs: Path) -> RunStore:
    small = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    return fake_run(runs, layouts=("swift",), workloads=[small], repeats=1)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def meter(tmp_path: Path) -> Iterator[Meter]:
    host = Meter("gateway-1", tmp_path)
    yield host
    host.close()


def watching(store: RunStore, host: Host, *probes: str, name: str = "radosgw") -> Watch:
    limits = HostLimits(host=host.name, tier="gateway", cpus=0.6)
    made = [
        Probe(host, f"{name}.{number}", (sys.executable, "-c", text))
        for number, text in enumerate(probes)
    ]
    return Watch(store, "swift", {host.name: host}, [limits], lambda: made)


def read(store: RunStore) -> Telemetry:
    telemetry = store.telemetry(KEY)
    assert telemetry is not None
    return telemetry


def path_of(store: RunStore) -> Path:
    return store.folder / "telemetry" / f"{KEY.file_name}.jsonl"


def written(store: RunStore) -> list[bytes]:
    return path_of(store).read_bytes().splitlines(keepends=True)


def heard(recording: StepTelemetry, done_s: float, total_s: float) -> None:
    recording.on_progress(Progress(phase="measure", done=done_s, total=total_s))


@contextmanager
def measuring(store: RunStore, host: Host, *probes: str) -> Iterator[Watch]:
    with watching(store, host, *probes) as watch, watch.step(KEY, 30.0) as recording:
        heard(recording, 0.0, 30.0)
        yield watch


def sampled(meter: Meter, times: int) -> None:
    for _ in range(times):
        assert meter.asked.acquire(timeout=20)


def wait_for_a_line(watch: Watch) -> None:
    """Wait until the first probe has said something new: its Python must start first."""
    reader = watch.readers[0]
    seen = reader.last_at
    until(lambda: reader.last_at > seen)


def notes(store: RunStore) -> list[str]:
    return [event.text for event in store.events() if event.kind == "telemetry"]


def test_telemetry_is_by_second_of_the_window_and_negative_before_it(
    store: RunStore, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PERIOD, 1.0)
    # A busy machine may take a sample half a second late.
    for where in ("conductor.telemetry", "results.run.telemetry"):
        monkeypatch.setattr(f"weighbridge.{where}.EDGE_S", 0.5)
    with watching(store, meter) as watch, watch.step(KEY, 2.0) as recording:
        recording.on_progress(Progress(phase="warm-up", done=0, total=1))
        sampled(meter, 2)
        heard(recording, 0.1, 2.0)
        sampled(meter, 4)  # at once, after one second, after two, and one later
    telemetry = read(store)
    assert {one.phase for one in telemetry.hosts} == {"warm-up", "measure", "drain"}
    assert all((one.second < 0) == (one.phase == "warm-up") for one in telemetry.hosts)
    assert {one.second for one in telemetry.hosts if one.phase == "measure"} == {0, 1}
    for one in telemetry.hosts:
        assert one.cpu_s == pytest.approx(one.span_s / 2, rel=0.05, abs=0.1)
        assert one.disks is not None
        assert one.disks[0].written_bytes == pytest.approx(one.span_s * 2e6, rel=0.05, abs=400_000)
        assert one.disks[0].writes == 0  # counted before: nothing was added
        assert one.memory_held_bytes == 1000
        assert (one.memory_bytes, one.throttled_periods) == (None, None)
    within = telemetry.within(2.0)
    assert 1.7 < sum(one.span_s for one in within) < 2.5
    assert telemetry.head.key == KEY


def test_the_earliest_message_of_the_driver_sets_the_start_of_the_window(
    store: RunStore, meter: Meter
) -> None:
    with watching(store, meter) as watch, watch.step(KEY, 60.0) as recording:
        sampled(meter, 1)
        before_s = time.monotonic()
        heard(recording, 1.0, 60.0)  # half a second late
        heard(recording, 1.5, 60.0)
        sampled(meter, 1)
    end_s = time.monotonic() - before_s
    assert 1.49 <= read(store).hosts[-1].at_s <= 1.51 + end_s


def test_a_window_that_never_opened_leaves_its_seconds_unplaced(
    store: RunStore, meter: Meter
) -> None:
    with watching(store, meter) as watch, watch.step(KEY, 2.0):
        sampled(meter, 2)
    telemetry = read(store)
    assert {one.phase for one in telemetry.hosts} == {"unplaced"}
    assert telemetry.within(2.0) == ()


def test_lines_of_probes_are_recorded_unchanged(store: RunStore, meter: Meter) -> None:
    with measuring(store, meter, COUNTS) as watch:
        for _ in range(2):
            wait_for_a_line(watch)
        sampled(meter, 3)
    lines = read(store).probes
    assert lines
    assert {(one.probe, one.host, one.values["qlen"]) for one in lines} == {
        ("radosgw.0", "gateway-1", 3.0)
    }
    counts = [one.values["req"] for one in lines]
    assert counts == sorted(set(counts))
    assert not [text for text in notes(store) if "probe" in text]


def test_lines_of_probes_between_steps_are_dropped(store: RunStore, meter: Meter) -> None:
    with watching(store, meter, COUNTS) as watch:
        reader = watch.readers[0]
        began = reader.last_at
        until(lambda: reader.last_at > began + 0.1)
        assert watch.inbox.taken() == []
        with watch.step(KEY, 5.0) as recording:
            heard(recording, 0.0, 5.0)
            for _ in range(2):
                wait_for_a_line(watch)
            sampled(meter, 3)
        until(lambda: reader.last_at > began + 0.2)
        assert len(watch.inbox.taken()) <= 1, "one may have been on its way"
    assert read(store).probes


GO = "import sys; sys.stdin.read(1); "


@pytest.mark.parametrize(
    ("text", "note", "gap"),
    [
        (
            GO + "sys.stderr.write('no socket\\n'); sys.exit(4)",
            "radosgw.0 ended by itself with status 4: no socket",
            "radosgw.0 has ended",
        ),
        (
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
            "has sent nothing for",
            "sent nothing",
        ),
        (
            GO + "sys.stdout.write('x' * 2**20 + chr(10)); sys.stdout.flush()",
            "printed a line of more than 262,144 bytes",
            "radosgw.0 has ended",
        ),
        (
            GO + "sys.stdout.writelines(['{\"a\": 1}' + chr(10)] * 5000)",
            "",
            "more than 10 lines between two samples",
        ),
    ],
)
def test_a_probe_that_misbehaves_is_a_gap_takes_no_memory_and_hosts_are_still_sampled(
    store: RunStore,
    meter: Meter,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    note: str,
    gap: str,
) -> None:
    stalls = gap == "sent nothing"
    for name, value in (
        ("SILENCE_S", 0.2 if stalls else 60),
        ("QUIT_S", 0.2),
        ("MOST_WAITING", 10),
    ):
        monkeypatch.setattr(f"weighbridge.conductor.telemetry.{name}", value)
    with measuring(store, meter, text) as watch:
        process = watch.readers[0]._process
        watch.readers[0]._lines.send("go", 5.0)
        until(lambda: watch.readers[0].ended or (stalls and bool(notes(store))))
        sampled(meter, 3)
    process.wait(20)
    telemetry = read(store)
    assert telemetry.tail is not None
    assert note in " ".join(notes(store))
    assert gap in " ".join(telemetry.tail.gaps)
    assert telemetry.hosts
    assert len(telemetry.probes) < 5000


def test_a_probe_that_sent_too_much_in_one_step_is_no_gap_of_the_next(
    store: RunStore, meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weighbridge.conductor.telemetry.MOST_WAITING", 10)
    following = KEY.model_copy(update={"repeat": 1})
    with watching(store, meter, "import sys; sys.stdin.read()") as watch:
        with watch.step(KEY, 30.0) as recording:
            heard(recording, 0.0, 30.0)
            # A pipe may still hold lines in the next step; these have all arrived.
            for _ in range(5000):
                watch.inbox.put(ProbeLine(watch.readers[0].probe, 0.0, {"a": 1}))
            assert watch.inbox.overflown
            while meter.asked.acquire(blocking=False):
                pass
            sampled(meter, 2)
        with watch.step(following, 30.0) as recording:
            heard(recording, 0.0, 30.0)
            sampled(meter, 2)
    first, second = (store.telemetry(key) for key in (KEY, following))
    said = "probes sent more than 10 lines between two samples"
    assert said in first.tail.gaps  # type: ignore[union-attr]
    assert said not in second.tail.gaps  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line", ["no json", "[1]", '{"a": "b"}', '{"a": NaN}', '{"a": true}', '{"a": 1e999}']
)
def test_a_line_other_than_a_flat_object_of_numbers_is_an_event(
    store: RunStore, meter: Meter, line: str
) -> None:
    text = (
        f"import sys; print({line!r}, flush=True); print('{{\"fine\": 1}}', flush=True); "
        "sys.stdin.read()"
    )
    with measuring(store, meter, text):
        until(lambda: notes(store))
        sampled(meter, 3)
    assert "something other than a line of numbers" in notes(store)[0]
    assert all(one.values == {"fine": 1} for one in read(store).probes)


@pytest.mark.parametrize(
    ("fails", "says"),
    [(TargetError("gateway-1: no room for the program"), "no room for"), (None, "radosgw")],
)
def test_a_step_is_measured_even_if_a_probe_cannot_be_made_or_started(
    store: RunStore, meter: Meter, fails: TargetError | None, says: str
) -> None:
    def probes() -> list[Probe]:
        if fails is not None:
            raise fails
        return [Probe(meter, "radosgw", ("/no/such/program",))]

    limits = HostLimits(host="gateway-1", tier="gateway")
    with (
        Watch(store, "swift", {"gateway-1": meter}, [limits], probes) as watch,
        watch.step(KEY, 1.0) as recording,
    ):
        heard(recording, 0.0, 1.0)
        sampled(meter, 2)
    assert read(store).hosts
    assert says in " ".join(notes(store))


@pytest.mark.parametrize(
    ("wrong", "gap"),
    [
        (None, "gateway-1: its counters could not be read"),
        (Counters(cpu_s=2.0**58), "gateway-1: of cpu_s"),
        (Counters(cpu_s=0.0, network_sent_bytes=0), "gateway-1: of cpu_s, sent_bytes"),
        (Counters(network_received_bytes=2**62), "gateway-1: of received_bytes"),
        (Counters(disks=(DiskCounters(2**62, 0, 0, 0, 0.0, 0.0),)), "gateway-1: of disks"),
    ],
)
def test_a_host_that_is_gone_or_whose_counters_are_impossible_is_one_gap_of_the_step(
    store: RunStore, meter: Meter, wrong: Counters | None, gap: str
) -> None:
    with measuring(store, meter):
        sampled(meter, 3)
        meter.fails, meter.more = wrong is None, wrong or Counters()
        sampled(meter, 3)
    telemetry = read(store)
    assert telemetry.tail is not None
    assert [one.partition(" its counters fell")[0] for one in telemetry.tail.gaps] == [gap]
    assert {one.partition(" its counters fell")[0] for one in notes(store)} == {
        f"{gap}: gateway-1 is gone" if wrong is None else gap
    }
    assert all((one.cpu_s or 0) < 60 for one in telemetry.hosts)


def test_a_host_without_counters_has_lines_without_numbers(store: RunStore, tmp_path: Path) -> None:
    host = FakeHost("gateway-1", "127.0.0.1", tmp_path / "blank")
    with measuring(store, host):
        until(lambda: len(written(store)) > 2)
    for one in read(store).hosts:
        counted = {one.cpu_s, one.disks, one.sent_bytes, one.memory_bytes, one.throttled_s}
        assert counted == {None}


def test_what_was_recorded_before_a_kill_can_be_read(store: RunStore, meter: Meter) -> None:
    with measuring(store, meter):
        until(lambda: len(written(store)) >= 3)
        kept = b"".join(written(store))
    path_of(store).write_bytes(kept[:-10])
    telemetry = read(store)
    assert telemetry.tail is None
    assert len(telemetry.hosts) == len(kept.splitlines()) - 2
    assert json.loads(kept.splitlines()[0])["kind"] == "head"


def test_a_repeated_step_has_only_its_last_telemetry(store: RunStore, meter: Meter) -> None:
    for _ in range(2):
        with measuring(store, meter):
            sampled(meter, 2)
    assert sum(b'"head"' in line for line in written(store)) == 1


def test_an_error_in_the_step_ends_sampling_and_is_raised(store: RunStore, meter: Meter) -> None:
    before = set(threading.enumerate())
    seen = []

    def step() -> None:
        with watching(store, meter, COUNTS) as watch, watch.step(KEY, 30.0):
            sampled(meter, 1)
            seen.append(watch.readers[0]._process)
            raise RuntimeError("of the step")

    with pytest.raises(RuntimeError, match="of the step"):
        step()
    assert seen[0].poll() is not None
    assert set(threading.enumerate()) <= before


def test_hosts_have_their_tier_and_the_limits_of_the_hardware() -> None:
    hosts = {
        "client-1": {"cpus": 0.5},
        "client-2": {},
        "gateway-1": {"nic": "1Gbit"},
        "store-1": {"memory": "1GiB", "disks": [{"size": "1GiB", "iops": 50}]},
        "store-2": {"cpuset": "2-3"},
        "spare": {},
    }
    clients = ["client-1", "client-2"]
    hardware = Hardware.model_validate(
        {"name": "h", "kind": "lab", "clients": clients, "hosts": hosts}
    )
    needs = {
        "gateway-1": HostNeed(roles=("proxy",)),
        "store-1": HostNeed(roles=("object",), disks=1, tier="storage"),
        "store-2": HostNeed(roles=("object",), tier="storage"),
    }
    names = [*clients, "gateway-1", "store-1", "store-2"]
    limits = {
        one.host: one for one in limits_of(hardware, needs, {**dict.fromkeys(names), "store-1": 40})
    }
    assert list(limits) == names
    tiers = [one.tier for one in limits.values()]
    assert tiers == ["client", "client", "gateway", "storage", "storage"]
    assert (limits["store-2"].cpus, limits["store-2"].cpu_period_ms) == (2, None)
    assert (limits["client-1"].cpus, limits["gateway-1"].nic_bits_s) == (0.5, 1e9)
    assert limits["store-1"].disks[0].iops == 50
    assert (limits["gateway-1"].cpus, limits["gateway-1"].cores) == (None, None)
    assert (limits["store-1"].cpus, limits["store-1"].cores) == (None, 40)
    assert (limits["client-1"].cpu_period_ms, limits["gateway-1"].cpu_period_ms) == (10.0, None)


MODEL = ModelDiskCounters(
    reads=5,
    writes=3,
    read_bytes=20480,
    written_bytes=12288,
    flushes=1,
    destages=2,
    destaged_bytes=12288,
    busy_s=0.5,
    waited_s=0.7,
    late_s=0.01,
    cached_bytes=8192,
)
KERNEL = DiskCounters(
    read_bytes=0, written_bytes=0, reads=0, writes=0, busy_s=0.0, waited_s=0.0, model=MODEL
)


def between(first: DiskCounters, last: DiskCounters) -> DiskSecond:
    disks = grown(Counters(disks=(first,)), Counters(disks=(last,)))["disks"]
    assert isinstance(disks, tuple)
    (disk,) = disks
    assert isinstance(disk, DiskSecond)
    return disk


def test_counters_grow_the_cache_is_as_it_was_last_and_a_counter_that_fell_is_unknown() -> None:
    later = replace(KERNEL, model=replace(MODEL, reads=9, busy_s=1.25, cached_bytes=4096))
    model = between(KERNEL, later).model
    assert model is not None
    assert (model.reads, model.busy_s, model.cached_bytes) == (4, 0.75, 4096)
    fell, plain = replace(KERNEL, model=replace(MODEL, reads=1)), replace(KERNEL, model=None)
    assert between(KERNEL, fell).model is None
    assert between(plain, plain).model is None
    kept = '{"read_bytes":0,"written_bytes":0,"reads":0,"writes":0,"busy_s":0,"waited_s":0}'
    assert DiskSecond.model_validate_json(kept).model is None
