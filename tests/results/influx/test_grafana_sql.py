"""What the dashboard in SQL asks, answered by DuckDB of tables as InfluxDB 3 makes them of points:
a table per measurement, with a column for each tag and field that was ever sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any

import duckdb
import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from grafana_boards import BOARDS, asked_for, choices, filled, query_of, targets
from influx_points import Points, lines_of, read, shown
from made_rows import altered
from weighbridge.results.influx.points import FIELDS


class Database:
    """The tables of points."""

    def __init__(self, points: Points) -> None:
        self.points = points
        self.columns: dict[str, list[str]] = {}
        self._connection = duckdb.connect()
        for name in {name for name, _, _ in points}:
            self._fill(name)

    def _fill(self, name: str) -> None:
        rows = [
            {**dict(tags), **fields, "time": datetime.fromtimestamp(at / 1000, UTC)}
            for (measurement, tags, at), fields in self.points.items()
            if measurement == name
        ]
        columns = self.columns[name] = [*dict.fromkeys(chain.from_iterable(rows))]
        kinds = {"time": "TIMESTAMP", **dict.fromkeys(FIELDS[name], "DOUBLE")}
        declared = ", ".join(f'"{one}" {kinds.get(one, "VARCHAR")}' for one in columns)
        self._connection.execute(f'CREATE TABLE "{name}" ({declared})')
        self._connection.executemany(
            f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(columns))})',
            [[_plain(row.get(column)) for column in columns] for row in rows],
        )

    def ask(self, query: str) -> list[dict[str, object]]:
        self._connection.execute(query)
        names = [one[0] for one in self._connection.description or ()]
        return [dict(zip(names, row, strict=True)) for row in self._connection.fetchall()]

    def listed(self, query: str) -> list[str]:
        return [str(value) for row in self.ask(query) for value in row.values()]

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        return choices("sql", self.listed)

    def shows(self, target: dict[str, Any]) -> bool:
        """Whether a panel shows anything; if so, it is what was sent."""
        name, field, valid = asked_for(target)
        rows = self.ask(filled(query_of(target), self.choices))
        found, times = {}, []
        for row in rows:
            at = row.pop("time")
            assert isinstance(at, datetime)
            times.append(at)
            value = row.pop(field)
            tags = frozenset((key, str(one)) for key, one in row.items())
            found[tags, round(at.replace(tzinfo=UTC).timestamp() * 1000)] = value
        assert times == sorted(times)  # else Grafana makes no series of them
        assert len(found) == len(rows)
        assert found == shown(self.points, name, field, valid=valid)
        return bool(found)

    def close(self) -> None:
        self._connection.close()


def _plain(value: object) -> object:
    """A time as DuckDB takes one without a zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """All that a run can send: both drivers, a layer, steps that failed and such with errors."""
    store = fake_run(
        tmp_path_factory.mktemp("runs"),
        workloads=[altered(one, workers=(4, 16), runtime=12.0) for one in WORKLOADS[:2]],
        repeats=1,
        driver="both",
        layers=("rados",),
        spoilt=StepFaults(
            failed=(("swift", "small-read", 16),), erring=(("rgw-beast", "small-write", 16),)
        ),
        seed=7,
    )
    made = Database(read(lines_of(store)))
    yield made
    made.close()


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A run without layers and bins, too short to be steady: their columns are not there."""
    workload = altered(WORKLOADS[0], workers=(4,), runtime=3.0)
    store = fake_run(tmp_path_factory.mktemp("runs"), workloads=[workload], repeats=1, seed=7)
    made = Database(read(lines_of(store)))
    assert not {"layer", "steady", "p90_low_ms"} & {*made.columns["weighbridge_step"]}
    yield made
    made.close()


def what(target: dict[str, Any]) -> str:
    return f"{asked_for(target)[1]}-{target['refId']}"


of_each = pytest.mark.parametrize("target", [one for _, one in targets("sql")], ids=what)


@of_each
def test_a_panel_shows_what_was_sent(rich: Database, target: dict[str, Any]) -> None:
    assert rich.shows(target)


@of_each
def test_a_panel_of_what_was_never_sent_is_empty_and_no_error(
    poor: Database, target: dict[str, Any]
) -> None:
    assert poor.shows(target) == (
        asked_for(target)[1] not in ("steady", "p90_low_ms", "p90_high_ms")
    )


def test_what_is_chosen_is_shown_alone(rich: Database) -> None:
    _, target = targets("sql")[0]
    chosen = {**rich.choices, "layout": ["swift"], "workers": ["4"]}
    rows = rich.ask(filled(query_of(target), chosen))
    assert {(row["layout"], row["workers"]) for row in rows} == {("swift", "4")}


def test_the_beginning_of_a_run_is_marked_with_its_name(rich: Database) -> None:
    (annotation,) = BOARDS["sql"]["annotations"]["list"]
    query = query_of(annotation["target"])
    assert annotation["target"]["query"] == query  # else Grafana asks in InfluxQL
    (row,) = rich.ask(filled(query, rich.choices))
    assert ([row["text"]], [row["tags"]]) == (rich.choices["run"], rich.choices["suite"])
