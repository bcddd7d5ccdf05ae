"""What is sent to real servers, read back from them."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from fake_run import StepFaults, fake_run
from grafana_boards import BOARD, TARGETS, asked_for, choices, filled
from influx_points import Points, lines_of, read, shown
from influx_servers import LONG, TOKEN, Influx, get, influx, victoria
from suite_command import weighbridge
from weighbridge.common.errors import TargetError
from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.results.influx.export import send_run
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import InfluxServer, WriteRefused
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two layouts by both drivers with a layer below, a step that failed and one with errors.

    Not to be changed.
    """
    spoilt = StepFaults(
        failed=(("swift", "small-read", 16),), erring=(("rgw-beast", "small-write", 16),)
    )
    return fake_run(
        tmp_path_factory.mktemp("runs"),
        workloads=LONG,
        repeats=1,
        driver="locust,cosbench",
        layers=("rados",),
        spoilt=spoilt,
        seed=7,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with influx(tmp_path_factory.mktemp("influx")) as made:
        yield made


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria(tmp_path_factory.mktemp("victoria")) as url:
        yield url


def points_of(store: RunStore) -> Points:
    """The points of a run, read from its lines."""
    made = RunPoints(store)
    return read([*made.run(), *(line for step in store.steps() for line in made.step(step))])


def server(url: str, token: str = TOKEN) -> InfluxServer:
    return InfluxServer.parse(url, {"WEIGHBRIDGE_INFLUX_TOKEN": token})


def test_all_points_are_read_back_from_influxdb_as_they_were_and_sending_twice_changes_nothing(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE whole")
    points = points_of(store)
    for _ in range(2):
        assert send_run(store, server(f"{database.url}?bucket=whole")).points == len(points)
        assert database.points("whole") == points


def test_all_points_are_read_back_from_victoriametrics_as_they_were(
    store: RunStore, metrics: str
) -> None:
    send_run(store, server(metrics, token=""))
    get(f"{metrics}/internal/force_flush")
    run = store.manifest.run_id
    asked = urlencode({"match[]": f'{{run="{run}"}}', "start": "0"})
    back: Points = {}
    for line in get(f"{metrics}/api/v1/export?{asked}").decode().splitlines():
        series = json.loads(line)
        # A measurement's name has one underscore, and what comes after the next is the field.
        measurement, field = re.fullmatch(
            r"(weighbridge_[a-z]+)_(\w+)", series["metric"].pop("__name__")
        ).groups()  # type: ignore[union-attr]
        for at, value in zip(series["timestamps"], series["values"], strict=True):
            back.setdefault((measurement, frozenset(series["metric"].items()), at), {})[field] = (
                value
            )
    points = points_of(store)
    assert set(back) == set(points)
    # It keeps decimals with a common exponent, not the floats themselves.
    assert [
        fields for where, fields in points.items() if back[where] != pytest.approx(fields, rel=1e-9)
    ] == []


def test_the_verb_sends_a_run_and_says_how_much(store: RunStore, database: Influx) -> None:
    database.query("CREATE DATABASE by_verb")
    url = f"{database.url}?bucket=by_verb"
    done = weighbridge(
        f"export {store.folder} --to influx --influx '{url}'",
        env={"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN},
    )
    assert done.returncode == 0, done.stderr
    points = points_of(store)
    assert f"{len(points)} points of" in done.stdout
    assert database.points("by_verb") == points


def test_a_wrong_token_is_refused_with_what_to_do_and_nothing_is_written(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE closed")
    with pytest.raises(WriteRefused, match="answered 401: authorization failed") as at:
        send_run(store, server(f"{database.url}?bucket=closed", token="weigher:wrong"))
    assert "WEIGHBRIDGE_INFLUX_TOKEN" in at.value.advice
    assert "weigher:wrong" not in str(at.value)
    assert not database.points("closed")


def test_a_database_that_is_not_there_is_refused_with_its_name(
    store: RunStore, database: Influx
) -> None:
    with pytest.raises(WriteRefused, match="database not found"):
        send_run(store, server(f"{database.url}?bucket=absent"))


def test_a_partial_write_is_no_success_and_names_the_field(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE odd")
    odd = server(f"{database.url}?bucket=odd")
    connection = odd.connect()
    connection.write(['weighbridge_host cpu_share="text" 1415102400000'])
    connection.close()
    with pytest.raises(
        TargetError, match=r'partial write: field type conflict: input field "cpu_share"'
    ):
        send_run(store, odd)


def test_a_server_that_is_killed_in_mid_run_and_started_again_lacks_nothing(
    tmp_path: Path, database: Influx
) -> None:
    database.query("CREATE DATABASE killed")
    said: list[str] = []
    store = fake_run(tmp_path, workloads=LONG, repeats=1)
    points = points_of(store)
    first, second, *others = store.steps()
    (store.folder / "steps.jsonl").unlink()  # they are yet to be measured
    with InfluxWriter(
        store, server(f"{database.url}?bucket=killed"), said.append, retry_s=0.5, close_s=60
    ) as writer:
        store.append(first)
        writer.step(first)
        database.database.end(signal.SIGKILL)
        try:
            store.append(second)
            writer.step(second)
            end = time.monotonic() + 60
            # It is said once, with what came first: 503, or where it was killed in the middle of a
            # write 502, the end of the connection, or no answer while HAProxy tries again.
            outage = re.compile(
                "(answered 50[23]|Connection aborted|Read timed out).*; it is tried again"
            )
            while not any(map(outage.search, said)):
                assert time.monotonic() < end, said
                time.sleep(0.01)
            for step in others:
                store.append(step)
                writer.step(step)
        finally:
            database.database.start()  # also for the tests that follow
    assert said[-1].startswith(f"influx: {len(points)} points sent")
    assert database.points("killed") == points


def test_every_panel_of_the_dashboard_shows_what_was_sent(
    store: RunStore, database: Influx
) -> None:
    connection = server(database.url).connect()
    connection.write(lines_of(store))
    connection.close()
    points = read(lines_of(store))
    chosen = choices(database.listed)
    for target in TARGETS:
        name, field, valid = asked_for(target["query"])
        found = {
            (frozenset((tag, value) for tag, value in series["tags"].items() if value), at): value
            for series in database.query(filled(target["query"], chosen))
            for at, value in series["values"]
        }
        assert found == shown(points, name, field, valid=valid), target["query"]
        assert found
    (annotation,) = BOARD["annotations"]["list"]
    (runs,) = database.query(filled(annotation["target"]["query"], chosen))
    assert runs["columns"] == ["time", "layouts", "run", "suite"]
    assert [value[2:] for value in runs["values"]] == [
        [store.manifest.run_id, store.manifest.suite]
    ]
