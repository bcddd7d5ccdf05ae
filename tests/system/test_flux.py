"""The dashboard in Flux, answered by a real InfluxDB with what was sent.

By hand, with an influxd of 1.8, since Debian's 1.6 has no Flux:

    go install -ldflags=-checklinkname=0 github.com/influxdata/influxdb/cmd/influxd@v1.8.3
    WEIGHBRIDGE_FLUX_INFLUXD=~/go/bin/influxd pytest -q tests/system/test_flux.py -m by_hand
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from influxdb_client.client.influxdb_client import InfluxDBClient

from grafana_boards import BOARDS, asked_for, choices, filled, targets
from influx_points import Points, lines_of, read, shown
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record.store import RunStore

sys.path.insert(0, str(Path(__file__).parent))
from influx_servers import TOKEN, Influx, influx, run_of_both

pytestmark = [pytest.mark.system, pytest.mark.by_hand]

PROGRAM = "WEIGHBRIDGE_FLUX_INFLUXD"
BUCKET = "weighbridge/autogen"
"""A database and its retention policy, which version 1.8 takes as a bucket."""
ODD = "small-read at 342/s"
"""The workload of a step of a search has what regular expressions must escape."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return run_of_both(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def database(store: RunStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with influx(tmp_path_factory.mktemp("influx"), os.environ[PROGRAM]) as made:
        url = f"{made.direct}?bucket={BUCKET}"
        server = InfluxServer.parse(url, {"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN})
        with server.connect() as connection:
            connection.write(lines_of(store))
        yield made


@pytest.fixture(scope="module")
def points(store: RunStore) -> Points:
    return read(lines_of(store))


def ask(database: Influx, query: str) -> list[dict[str, Any]]:
    with InfluxDBClient(url=database.direct, token=TOKEN, org="-") as client:
        return [
            record.values for table in client.query_api().query(query) for record in table.records
        ]


def listed(database: Influx, query: str) -> list[str]:
    return [row["_value"] for row in ask(database, query)]


def chosen(database: Influx) -> dict[str, list[str]]:
    return choices("flux", lambda query: listed(database, query), BUCKET)


@pytest.mark.parametrize(
    "target", [one for _, one in targets("flux")], ids=lambda one: one["refId"]
)
def test_a_panel_shows_what_was_sent(
    database: Influx, points: Points, target: dict[str, Any]
) -> None:
    name, field, valid = asked_for(target)
    rows = ask(database, filled(target["query"], chosen(database), BUCKET))
    found = {}
    for row in rows:
        assert (row["_measurement"], row["_field"]) == (name, field)
        tags = {key: one for key, one in row.items() if key[0] != "_"}
        tags = {key: one for key, one in tags.items() if key not in ("result", "table")}
        # Grafana makes labels of all of them, and takes nothing but text for one.
        assert all(isinstance(one, str) for one in tags.values())
        found[frozenset(tags.items()), round(row["_time"].timestamp() * 1000)] = row["_value"]
    assert len(found) == len(rows)
    assert found == shown(points, name, field, valid=valid)
    assert found


def test_what_is_chosen_is_shown_alone(database: Influx) -> None:
    _, target = targets("flux")[0]
    some = {**chosen(database), "layout": ["swift"], "workers": ["4", "16"], "workload": [ODD]}
    query = target["query"]
    assert ask(database, filled(query, some, BUCKET)) == []
    rows = ask(database, filled(query, {**some, "workload": ["small-read", ODD]}, BUCKET))
    assert {(row["layout"], row["workers"], row["workload"]) for row in rows} == {
        ("swift", "4", "small-read")  # the step with 16 workers failed
    }


def test_the_beginning_of_a_run_is_marked_with_its_name(database: Influx, store: RunStore) -> None:
    (annotation,) = BOARDS["flux"]["annotations"]["list"]
    (row,) = ask(database, filled(annotation["target"]["query"], chosen(database), BUCKET))
    assert {"_time", "text", "tags"} <= {*row}
    assert (row["text"], row["tags"]) == (store.manifest.run_id, store.manifest.suite)
