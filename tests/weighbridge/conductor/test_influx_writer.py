import os
import signal
import threading
from pathlib import Path

import pytest

from fake_influx import FakeInflux, InfluxReply
from fake_run import WORKLOADS, fake_run
from tests.weighbridge.displays import Seen
from tests.weighbridge.sent_runs import Sending, acknowledged, measured, until
from weighbridge.conductor import influx_writer
from weighbridge.drivers.protocol import Progress
from weighbridge.results.influx.cursor import CURSOR, REFUSED
from weighbridge.results.influx.export import send_run
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.screen.influx_display import InfluxDisplay, sending

SMALL = (WORKLOADS[0].model_copy(update={"workers": (1, 4, 16), "runtime": 3.0}),)


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


def test_what_is_sent_live_is_what_is_sent_afterwards(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    with FakeInflux() as live, Sending(store, live).writer as writer:
        measured(store, writer, *steps)
    with FakeInflux() as after:
        send_run(store, InfluxServer(url=after.url))
    assert live.taken == after.taken
    assert acknowledged(store, live) == len(live.taken)


def test_the_server_is_tried_before_anything_is_measured(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    with FakeInflux() as influx, Sending(store, influx).writer:
        assert [line.partition(",")[0] for line in influx.taken] == ["weighbridge_run"]


@pytest.mark.parametrize(
    ("trouble", "outages"),
    [
        ([InfluxReply(503), InfluxReply(503)], 1),
        ([InfluxReply(503, fields=(("Retry-After", "0"),))], 1),
        ([InfluxReply(429), InfluxReply(), InfluxReply(500)], 2),
        ([InfluxReply(how="torn"), InfluxReply(), InfluxReply(how="torn"), InfluxReply(503)], 2),
    ],
)
def test_a_server_that_comes_back_gets_everything_once_in_order_and_each_outage_is_reported_once(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    trouble: list[InfluxReply],
    outages: int,
) -> None:
    with FakeInflux(*trouble) as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            until(lambda: influx.taken == lines[:1])
            measured(store, writer, *steps)
            until(lambda: len(influx.taken) == len(lines))
    assert influx.taken == lines
    assert acknowledged(store, influx) == len(lines)
    assert sum("points are kept in" in text for text in sending.said) == outages
    assert sum("answers again" in text for text in sending.said) == outages


def test_a_server_that_is_restarted_during_a_run_lacks_nothing(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    first, *others = steps
    with FakeInflux() as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, first)
            until(
                lambda: (
                    first.measurement is not None
                    and any("weighbridge_step" in line for line in influx.taken)
                    and acknowledged(store, influx) == len(influx.taken)
                )
            )
            influx.down()
            measured(store, writer, *others)
            until(lambda: any("until it answers" in text for text in sending.said))
            assert acknowledged(store, influx) == len(influx.taken)
            influx.up()
            until(lambda: len(influx.taken) == len(lines))
    assert influx.taken == lines
    assert sum("until it answers" in text for text in sending.said) == 1


def test_for_a_server_that_stays_away_the_run_prints_how_to_send_the_rest(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    with FakeInflux() as influx:
        pass
    sending = Sending(store, influx, first_wait_s=60.0)
    with sending.writer as writer:
        measured(store, writer, *steps)
    assert acknowledged(store, influx) == 0
    again = f"weighbridge export {store.folder} --to influx --influx {influx.url}"
    assert sending.said[-1].endswith(f"send the entire run again with {again}")
    assert f"0 points sent to {influx.url}; those of {len(steps)} steps wait (" in sending.said[-1]
    assert [event.text for event in store.events() if event.kind == "influx"][-1] in sending.said[
        -1
    ]


def test_a_wrong_token_is_reported_once_and_not_tried_again_before_the_end(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    with FakeInflux(otherwise=InfluxReply(401, '{"error":"authorization failed"}')) as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, *steps)
            threading.Event().wait(0.1)  # long enough for another try
            assert len(influx.writes) == 1
        assert len(influx.writes) == 2
    assert (
        sum("authorization failed\n" in text and "sent at the end" in text for text in sending.said)
        == 1
    )
    assert acknowledged(store, influx) == 0
    with FakeInflux() as later:
        send_run(store, InfluxServer(url=later.url))
    assert later.taken == lines


def test_a_bucket_made_during_the_run_gets_everything_at_the_end(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    with FakeInflux(InfluxReply(404, '{"error":"database not found"}')) as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, *steps)
    assert influx.taken == lines
    assert sending.said[-1].endswith(f"{len(lines)} points sent to {influx.url}")


def test_refused_lines_are_kept_with_the_reason_and_others_are_sent(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(influx_writer, "BATCH", 5)
    conflict = InfluxReply(
        400, '{"error":"partial write: field type conflict: input field \\"ops\\""}'
    )
    with FakeInflux(InfluxReply(), conflict) as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, *steps)
    head, *refused = (store.folder / REFUSED).read_text().splitlines()
    assert "field type conflict" in head
    assert refused == lines[1:6]
    assert influx.taken == [lines[0], *lines[6:]]
    assert "5 that it refused are in" in sending.said[-1]
    assert "weighbridge export" in sending.said[-1]


def test_a_server_that_hangs_delays_neither_a_step_nor_the_end(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    with FakeInflux(otherwise=InfluxReply(how="hang")) as influx:
        sending = Sending(store, influx, deadline_s=0.2)
        with sending.writer as writer:
            measured(store, writer, *steps)
    assert "timed out" in sending.said[-1]
    assert f"those of {len(steps)} steps wait" in sending.said[-1]


def test_a_server_that_never_ends_its_answer_is_abandoned_and_the_steps_are_reported(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    with FakeInflux(InfluxReply(), otherwise=InfluxReply(how="hang")) as influx:
        sending = Sending(store, influx, deadline_s=60.0)
        with sending.writer as writer:
            first, *others = steps
            measured(store, writer, first)
            assert influx.wait_for(2)
            measured(store, writer, *others)
            found = writer.close(0.05)
            assert (found.waiting, found.missed) == (3, 0)
            assert "those of 3 steps wait" in sending.said[-1]
            influx.down()


@pytest.mark.parametrize(
    "left",
    [
        '{"server": "http://',
        "",
        '{"server": "http://127.0.0.1:1", "run": true, "at_bytes": 999999}',
    ],
)
def test_a_cursor_that_cannot_be_read_or_points_nowhere_has_everything_sent(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str], left: str
) -> None:
    (store.folder / CURSOR).write_text(left)
    for step in steps:
        store.append(step)
    with FakeInflux() as influx, Sending(store, influx).writer:
        pass
    assert influx.taken == lines


def test_another_server_gets_everything(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    with FakeInflux() as first, Sending(store, first).writer as writer:
        measured(store, writer, *steps)
    with FakeInflux() as second, Sending(store, second).writer:
        pass
    assert (first.taken, second.taken) == (lines, lines)


def test_after_a_kill_only_what_the_server_has_not_acknowledged_is_sent(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(influx_writer, "BATCH", 5)
    with FakeInflux(InfluxReply(), InfluxReply(), otherwise=InfluxReply(503)) as influx:
        child = os.fork()
        if not child:
            try:
                sending = Sending(store, influx, first_wait_s=60.0)
                with sending.writer as writer:
                    measured(store, writer, *steps)
                    until(lambda: any("points are kept" in text for text in sending.said))
                    os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert influx.taken == lines[:6]
        assert acknowledged(store, influx) == 6
        influx.otherwise = InfluxReply()
        with Sending(store, influx).writer:
            pass
    assert influx.taken == lines


def test_only_the_last_result_of_a_repeated_step_is_sent(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    first = steps[0]
    assert first.measurement is not None
    later = first.measurement.model_copy(update={"started_at": "2014-11-05T12:00:00Z"})
    again = first.model_copy(update={"measurement": later})
    for step in (first, again):
        store.append(step)
    with FakeInflux() as influx, Sending(store, influx).writer:
        pass
    points = RunPoints(store)
    assert influx.taken == [*points.run(), *points.step(again)]


def test_a_resumed_run_sends_what_the_server_lacks_and_nothing_twice(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    with FakeInflux() as influx:
        with Sending(store, influx).writer as writer:
            measured(store, writer, steps[0])
        store.append(steps[1])
        with Sending(store, influx).writer as writer:
            measured(store, writer, steps[2])
    assert influx.taken == lines


def test_a_cursor_that_cannot_be_written_ends_the_sending_and_not_the_run(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    (store.folder / CURSOR).mkdir()
    with FakeInflux() as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, steps[0])
    assert "sending has ended" in sending.said[0]
    assert "those of 1 steps wait" in sending.said[-1]


def test_a_step_that_gives_no_points_is_reported_and_others_are_sent(
    store: RunStore, steps: tuple[StepResult, ...], lines: list[str]
) -> None:
    own = len(list(RunPoints(store).step(steps[0])))
    (store.folder / "telemetry" / f"{steps[0].key.file_name}.jsonl").write_text("nonsense\n")
    with FakeInflux() as influx:
        sending = Sending(store, influx)
        with sending.writer as writer:
            measured(store, writer, *steps)
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
    monkeypatch.setattr(influx_writer, "LIVE_EVERY_S", 0.0)
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


def test_rates_are_dropped_when_the_server_is_away(
    store: RunStore,
    steps: tuple[StepResult, ...],
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(influx_writer, "LIVE_EVERY_S", 0.0)
    monkeypatch.setattr(influx_writer, "LIVE_STEP_S", 0.0)
    with FakeInflux() as influx:
        pass
    with Sending(store, influx, first_wait_s=60.0).writer as writer:
        writer.live(steps[0].key, progress())
        influx.up()
    influx.down()
    assert influx.taken == lines[:1]


def test_without_a_server_the_display_is_unchanged(
    store: RunStore, steps: tuple[StepResult, ...]
) -> None:
    shown = Seen()
    with sending(None, store, shown.say) as sent_too:
        assert sent_too(shown) is shown
    assert not shown.said
