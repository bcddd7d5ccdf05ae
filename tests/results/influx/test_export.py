from pathlib import Path

import pytest

from fake_influx import FakeInflux, InfluxReply
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered
from weighbridge.common.errors import TargetError
from weighbridge.results.influx import server as influx_server
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


def server(influx: FakeInflux) -> InfluxServer:
    return InfluxServer(url=influx.url)


def test_every_point_is_sent_once_and_steps_without_a_measurement_are_counted(
    store: RunStore, lines: list[str]
) -> None:
    with FakeInflux() as influx:
        sent = send_run(store, server(influx))
    assert influx.taken == lines
    assert (sent.points, sent.steps, sent.unplaced) == (len(lines), 1, 1)
    assert "1 steps without a measurement" in sent.words


def test_a_run_is_sent_in_batches(
    store: RunStore, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_server, "BATCH", 7)
    with FakeInflux() as influx:
        send_run(store, server(influx))
    assert [line for write in influx.writes for line in write.lines] == lines
    assert {len(write.lines) for write in influx.writes[:-1]} == {7}


def test_a_server_that_is_away_is_tried_again(store: RunStore, lines: list[str]) -> None:
    soon = InfluxReply(503, fields=(("Retry-After", "0"),))
    answers = [InfluxReply(503), soon, InfluxReply(how="torn"), InfluxReply(429)]
    with FakeInflux(*answers) as influx:
        send_run(store, server(influx), retry_s=0.01)
    assert influx.taken == lines


@pytest.mark.parametrize("asked", [(), (("Retry-After", "86400"),)])
def test_a_server_that_stays_away_is_an_error_with_the_number_of_points_sent(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, asked: tuple[tuple[str, str], ...]
) -> None:
    monkeypatch.setattr(influx_server, "BATCH", 7)
    away = InfluxReply(503, '{"message":"busy"}', asked)
    with (
        FakeInflux(InfluxReply(), otherwise=away) as influx,
        pytest.raises(TargetError, match="answered 503: busy\n7 points were sent") as at,
    ):
        send_run(store, server(influx), retry_s=0.01)
    assert isinstance(at.value.__cause__, Away)
    assert {tuple(write.lines) for write in influx.writes} == {
        tuple(write.lines) for write in influx.writes[:2]
    }


def test_a_refusal_is_an_error_at_once(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx_server, "BATCH", 7)
    with (
        FakeInflux(InfluxReply(401, '{"error":"authorization failed"}')) as influx,
        pytest.raises(WriteRefused, match="authorization failed"),
    ):
        send_run(store, server(influx))
    assert len(influx.writes) == 1


def test_refused_lines_do_not_block_others_and_are_an_error(
    store: RunStore, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(influx_server, "BATCH", 7)
    conflict = InfluxReply(400, '{"error":"partial write: field type conflict"}')
    with (
        FakeInflux(InfluxReply(), conflict) as influx,
        pytest.raises(TargetError, match="partial write") as at,
    ):
        send_run(store, server(influx))
    assert influx.taken == [*lines[:7], *lines[14:]]
    assert f"{len(lines) - 7} points were sent; of 7 others" in at.value.message


def test_of_a_step_that_was_measured_again_only_the_last_result_is_sent(store: RunStore) -> None:
    first = store.steps()[0]
    assert first.measurement is not None
    later = altered(first.measurement, started_at="2014-11-05T12:00:00Z")
    store.append(altered(first, measurement=later))
    with FakeInflux() as influx:
        send_run(store, server(influx))
    steps = [line for line in influx.taken if line.startswith("weighbridge_step")]
    assert [line.rsplit(" ", 1)[-1] for line in steps] == [str(1415188800000 + 3000)]
