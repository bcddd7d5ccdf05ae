from pathlib import Path

import pytest

from fake_influx import FakeInflux, InfluxReply
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered
from weighbridge.common.errors import TargetError
from weighbridge.results.influx import export as influx_export
from weighbridge.results.influx.cursor import CURSOR, REFUSED, Cursor
from weighbridge.results.influx.export import send_run
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import Away, InfluxServer, WriteRefused
from weighbridge.results.record.store import RunStore

SMALL = (altered(WORKLOADS[0], workers=(1, 4), runtime=3.0),)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    failed = StepFaults(failed=(("swift", "small-read", 4),))
    return fake_run(tmp_path, layouts=("swift",), workloads=SMALL, repeats=1, spoilt=failed)


@pytest.fixture
def lines(store: RunStore) -> list[str]:
    points = RunPoints(store)
    return [*points.run(), *(line for step in store.steps() for line in points.step(step))]


class Waits(list[float]):
    """Does not wait, and records the requested times."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def server(influx: FakeInflux) -> InfluxServer:
    return InfluxServer(url=influx.url)


def test_every_point_is_sent_once_and_steps_without_a_measurement_are_counted(
    store: RunStore, lines: list[str]
) -> None:
    with FakeInflux() as influx:
        sent = send_run(store, server(influx))
    assert influx.taken == lines
    assert (sent.points, sent.steps, sent.unplaced) == (len(lines), 1, 1)
    assert (
        sent.words
        == f"{len(lines)} points of 1 steps sent; 1 steps without a measurement have no point"
    )


def test_a_run_is_sent_in_batches(
    store: RunStore, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_export, "BATCH", 7)
    with FakeInflux() as influx:
        send_run(store, server(influx))
    assert [line for write in influx.writes for line in write.lines] == lines
    assert {len(write.lines) for write in influx.writes[:-1]} == {7}


def test_a_server_that_is_away_is_tried_again_with_growing_waits_or_when_it_asks(
    store: RunStore, lines: list[str]
) -> None:
    waits = Waits()
    answers = [
        InfluxReply(503),
        InfluxReply(503, fields=(("Retry-After", "9"),)),
        InfluxReply(how="torn"),
        InfluxReply(429, fields=(("Retry-After", "900"),)),
    ]
    with FakeInflux(*answers) as influx:
        send_run(store, server(influx), wait=waits)
    assert waits == [1.0, 9.0, 4.0, 30.0]
    assert influx.taken == lines


def test_a_server_that_stays_away_is_an_error_with_the_number_of_points_sent(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_export, "BATCH", 7)
    Cursor(server="http://other").keep(store.folder)
    waits = Waits()
    with (
        FakeInflux(InfluxReply(), otherwise=InfluxReply(503)) as influx,
        pytest.raises(TargetError, match="\n7 points were sent") as at,
    ):
        send_run(store, server(influx), wait=waits)
    assert isinstance(at.value.__cause__, Away)
    assert waits == [1.0, 2.0, 4.0, 8.0]
    assert Cursor.of(store.folder, "http://other") == Cursor(server="http://other")


def test_a_refusal_is_an_error_at_once(store: RunStore) -> None:
    waits = Waits()
    with (
        FakeInflux(InfluxReply(401, '{"error":"authorization failed"}')) as influx,
        pytest.raises(WriteRefused, match="authorization failed"),
    ):
        send_run(store, server(influx), wait=waits)
    assert len(influx.writes) == 1
    assert not waits


def test_refused_lines_do_not_block_others_and_are_an_error(
    store: RunStore, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_export, "BATCH", 7)
    conflict = InfluxReply(400, '{"error":"partial write: field type conflict"}')
    with (
        FakeInflux(InfluxReply(), conflict) as influx,
        pytest.raises(TargetError, match="partial write") as at,
    ):
        send_run(store, server(influx))
    assert influx.taken == [*lines[:7], *lines[14:]]
    assert f"{len(lines) - 7} points were sent; of 7 others" in at.value.message


def test_after_an_export_a_live_run_has_nothing_left_to_send(store: RunStore) -> None:
    (store.folder / REFUSED).write_text("# no\nkept 1\n")
    with FakeInflux() as influx:
        Cursor(server=server(influx).option, run=True).keep(store.folder)
        send_run(store, server(influx))
    found = Cursor.of(store.folder, server(influx).option)
    assert (found.waiting(store.folder), found.lines) == (0, 0)
    assert not (store.folder / REFUSED).exists()


def test_an_export_to_another_server_keeps_the_cursor_of_the_first(store: RunStore) -> None:
    kept = Cursor(server="http://first", run=True)
    kept.keep(store.folder)
    with FakeInflux() as influx:
        send_run(store, server(influx))
    assert Cursor.of(store.folder, "http://first") == kept


def test_an_export_of_a_run_that_was_not_sent_live_writes_no_cursor(store: RunStore) -> None:
    with FakeInflux() as influx:
        send_run(store, server(influx))
    assert not (store.folder / CURSOR).exists()


def test_of_a_step_that_was_measured_again_only_the_last_result_is_sent(store: RunStore) -> None:
    first = store.steps()[0]
    assert first.measurement is not None
    later = altered(first.measurement, started_at="2014-11-05T12:00:00Z")
    store.append(altered(first, measurement=later))
    with FakeInflux() as influx:
        send_run(store, server(influx))
    steps = [line for line in influx.taken if line.startswith("weighbridge_step")]
    assert [line.rsplit(" ", 1)[-1] for line in steps] == [str(1415188800000 + 3000)]
