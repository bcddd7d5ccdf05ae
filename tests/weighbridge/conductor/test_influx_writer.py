import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fake_influx import FakeInflux, InfluxReply
from fake_run import WORKLOADS, fake_run
from stub_run import Seen
from tests.weighbridge.sent_runs import Sending, measured, until
from weighbridge.conductor import influx_writer
from weighbridge.display import InfluxDisplay
from weighbridge.drivers.protocol import Progress
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show import influx as influx_server
from weighbridge.results.show.influx import InfluxServer, RunPoints, send_run

SMALL = (WORKLOADS[0].model_copy(update={"workers": (1, 4, 16), "runtime": 3.0}),)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx_server, "FLUSH_S", 0.1)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return fake_run(tmp_path, layouts=("swift",), workloads=SMALL, repeats=1)


@pytest.fixture
def steps(store: RunStore) -> tuple[StepResult, ...]:
    """The steps of the run, removed from it: they are yet to be measured."""
    found = store.steps()
    (store.folder / "steps.jsonl").unlink()
    return found


@pytest.fixture
def lines(store: RunStore, steps: tuple[StepResult, ...]) -> list[str]:
    points = RunPoints(store)
    return [*points.run(), *(line for step in steps for line in points.step(step))]


def sent(store: RunStore, influx: FakeInflux, *steps: StepResult) -> Sending:
    """A run of these steps, from its beginning to its end."""
    sending = Sending(store, influx)
    with sending.writer as writer:
        measured(store, writer, *steps)
    return sending


def test_what_is_sent_live_is_what_is_sent_afterwards(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    with FakeInflux() as live:
        sending = sent(store, live, *steps)
    with FakeInflux() as after:
        send_run(store, InfluxServer(url=after.url))
    assert live.taken == after.taken
    assert sending.said == [f"influx: {len(live.taken)} points sent to {live.url}"]


@pytest.mark.parametrize(
    "trouble",
    [
        [InfluxReply(503), InfluxReply(503)],
        [InfluxReply(503, fields=(("Retry-After", "0"),)), InfluxReply(429)],
        [InfluxReply(how="torn"), InfluxReply(503)],
    ],
)
def test_a_server_that_comes_back_gets_everything_in_order_and_an_outage_is_reported_once(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str], trouble: list[InfluxReply]
) -> None:
    with FakeInflux(*trouble) as influx:
        sending = sent(store, influx, *steps)
    assert influx.taken == lines
    outage, back, last = sending.said
    assert "it is tried again" in outage
    assert "answers again" in back
    assert last.endswith(f"{len(lines)} points sent to {influx.url}")


def test_a_server_that_is_restarted_during_a_run_lacks_nothing(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(influx_server, "RETRIES", 1000)
    first, *others = steps
    with FakeInflux() as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, first)
            until(lambda: any("weighbridge_step" in line for line in influx.taken))
            influx.down()
            measured(store, writer, *others)
            until(lambda: any("it is tried again" in text for text in sending.said))
            influx.up()
    assert influx.taken == lines


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (InfluxReply(503), "answered 503"),
        (InfluxReply(503, fields=(("Retry-After", "86400"),)), "answered 503"),
        (InfluxReply(401, '{"error":"authorization failed"}'), "authorization failed"),
        (InfluxReply(400, '{"error":"partial write"}'), "partial write"),
        (InfluxReply(200, "<html>welcome</html>"), "answered 200"),
        (InfluxReply(how="hang"), "no complete answer"),
        (None, "refused"),
    ],
)
def test_a_server_that_takes_nothing_delays_no_step_and_the_run_says_how_to_send_all(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    reply: InfluxReply | None,
    why: str,
) -> None:
    with FakeInflux(otherwise=reply) as influx:
        if reply is None:
            influx.down()
        sending = Sending(store, influx, deadline_s=0.1)
        with sending.writer as writer:
            measured(store, writer, *steps)  # whoever waited for an answer would not get here
    last = sending.said[-1]
    assert f"0 points sent to {influx.url}; {len(lines)} were not written (" in last
    assert why in last
    again = f"weighbridge export {store.folder} --to influx --influx {influx.url}"
    assert last.endswith(f"send the entire run again with {again}")
    assert f"influx: {store.events()[-1].text}" == last


def test_a_server_that_never_ends_its_answer_keeps_no_process_alive(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from weighbridge.conductor.influx_writer import InfluxWriter\n"
        "from weighbridge.results.show.influx import InfluxServer\n"
        "from weighbridge.results.run.store import RunStore\n"
        "store, server = RunStore.open(Path(sys.argv[1])), InfluxServer(url=sys.argv[2])\n"
        "with InfluxWriter(store, server, print, deadline_s=600, close_s=0.5): pass\n"
    )
    with FakeInflux(otherwise=InfluxReply(how="hang")) as influx:
        done = subprocess.run(
            [sys.executable, "-c", program, store.folder, influx.url],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**os.environ},
        )
        assert influx.writes
    assert "1 were not written (no answer in time)" in done.stdout
    assert done.stderr == ""


def test_a_batch_that_ends_after_the_run_is_not_tried_again_and_says_nothing(
    store: RunStore, steps: tuple[StepResult, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    before = set(threading.enumerate())
    with FakeInflux(otherwise=InfluxReply(how="hang")) as influx:
        sending = Sending(store, influx, deadline_s=600, close_s=0.5)
        with sending.writer:
            assert influx.wait_for(1)
        said = [*sending.said]
        influx.down()
        until(lambda: set(threading.enumerate()) <= before)
    assert len(influx.writes) == 1
    assert sending.said == said
    assert failed == []


def test_lines_that_are_refused_do_not_block_others(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(influx_server, "BATCH", 5)
    with FakeInflux(InfluxReply(), InfluxReply(400, '{"error":"field type conflict"}')) as influx:
        sending = sent(store, influx, *steps)
    (refused,) = [write.lines for write in influx.writes if write.lines[0] not in influx.taken]
    assert influx.taken == [line for line in lines if line not in refused]
    assert f"{len(refused)} were not written" in sending.said[-1]
    assert "field type conflict" in sending.said[-1]


def test_a_resumed_run_sends_the_last_result_of_each_of_its_steps_first(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    first = steps[0]
    assert first.measurement is not None
    later = first.measurement.model_copy(update={"started_at": "2014-11-05T12:00:00Z"})
    again = first.model_copy(update={"measurement": later})
    for step in (first, again):
        store.append(step)
    with FakeInflux() as influx, Sending(store, influx).writer as writer:
        measured(store, writer, steps[1])
    points = RunPoints(store)
    assert influx.taken == [*points.run(), *points.step(again), *points.step(steps[1])]


def test_a_step_that_gives_no_points_is_reported_and_others_are_sent(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    own = len(list(RunPoints(store).step(steps[0])))
    (store.folder / "telemetry" / f"{steps[0].key.file_name}.jsonl").write_text("nonsense\n")
    with FakeInflux() as influx:
        sending = sent(store, influx, *steps)
    assert influx.taken == [lines[0], *lines[1 + own :]]
    assert any(f"{steps[0].key} could not be prepared for sending" in text for text in sending.said)
    assert "those of 1 steps could not be made" in sending.said[-1]


def progress(phase: str = "measure") -> Progress:
    return Progress.model_validate(
        {"phase": phase, "done": 1.0, "total": 3.0, "operations_per_s": 120.0, "bytes_per_s": 1e6}
    )


def test_rates_are_sent_during_steps_and_not_while_preparing(
    store: RunStore, steps: tuple[StepResult, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_writer, "LIVE_STEP_S", 0.0)
    step, shown = steps[0], Seen()
    with FakeInflux() as influx:
        with Sending(store, influx).writer as writer:
            display = InfluxDisplay(shown, writer)
            display.say("preparing")
            display.progress(progress("prepare"))
            display.begins(step.key, 1)
            display.progress(progress("warm-up"))
            until(lambda: any("weighbridge_live" in line for line in influx.taken))
            store.append(step)
            display.ended(step)
            until(lambda: any("weighbridge_step" in line for line in influx.taken))
            display.progress(progress("cleanup"))
        live = [line for line in influx.taken if line.startswith("weighbridge_live")]
    assert shown.said == ["preparing", "prepare", "begins 1", "warm-up", "ended", "cleanup"]
    assert len(live) == 1
    assert "phase=warm-up" in live[0]
    assert " ops_s=120.0,bytes_s=1000000.0,errors=0i " in live[0]


def test_rates_are_dropped_and_not_counted_when_the_server_is_away(
    store: RunStore, steps: tuple[StepResult, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_writer, "LIVE_STEP_S", 0.0)
    monkeypatch.setattr(influx_server, "RETRIES", 1000)
    with FakeInflux() as influx:
        influx.down()
        sending = Sending(store, influx)
        with sending.writer as writer:
            until(lambda: bool(sending.said))
            writer.live(steps[0].key, progress())
            influx.up()
        assert [line.partition(",")[0] for line in influx.taken] == ["weighbridge_run"]
    assert sending.said[-1].startswith("influx: 1 points sent")
