"""The dashboard uses what is actually written."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from weighbridge.conductor.plan import AGAIN
from weighbridge.results.influx.points import FIELDS, TAGS

PATH = Path(__file__).parents[3] / "docs" / "grafana" / "weighbridge.json"
BOARD: dict[str, Any] = json.loads(PATH.read_text())
VARIABLES = {one["name"]: one for one in BOARD["templating"]["list"]}
TARGETS = [(panel["title"], target) for panel in BOARD["panels"] for target in panel["targets"]]
QUERIES = [query for _, target in TARGETS for query in [target["query"]]]
QUERIES += [one["target"]["query"] for one in BOARD["annotations"]["list"]]


def measurement_of(query: str) -> str:
    (name,) = re.findall(r'FROM "(\w+)"', query)
    return str(name)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_only_fields_that_are_written(query: str) -> None:
    name = measurement_of(query)
    selected, _, rest = query.partition(" FROM ")
    where, _, by = rest.partition(" GROUP BY ")
    fields, asked, grouped = (set(re.findall(r'"(\w+)"', part)) for part in (selected, where, by))
    assert fields
    assert fields <= set(FIELDS[name])
    assert asked - {name} <= {*TAGS[name], *FIELDS[name]}
    assert grouped <= set(TAGS[name])
    assert "$timeFilter" in where


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_never_draws_two_series_as_one(query: str) -> None:
    grouped = set(re.findall(r'"(\w+)"', query.partition(" GROUP BY ")[2]))
    alike = {"suite"}  # a run has one
    assert set(TAGS[measurement_of(query)]) - grouped <= alike


@pytest.mark.parametrize(("title", "target"), TARGETS)
def test_a_legend_names_only_tags_that_its_query_groups_by(
    title: str, target: dict[str, Any]
) -> None:
    grouped = set(re.findall(r'"(\w+)"', target["query"].partition(" GROUP BY ")[2]))
    named = set(re.findall(r"\$tag_([a-z]+)", target["alias"]))
    assert {"layout", "workload", "workers", "repeat"} <= named <= grouped


def test_variables_are_tags_that_are_written_and_all_used_ones_exist() -> None:
    used = set(re.findall(r"/\^\$(\w+)\$/", json.dumps(BOARD)))
    assert used == set(VARIABLES) - {"source"}
    for name, one in VARIABLES.items():
        if name != "source":
            assert f'WITH KEY = "{name}"' in one["query"]
            assert name in TAGS[measurement_of(one["query"])]


def test_an_a_a_control_is_not_drawn_among_the_layouts() -> None:
    layout = VARIABLES["layout"]
    shown = re.compile(layout["regex"].strip("/"))
    assert [name for name in ("rgw-beast", f"rgw-beast{AGAIN}", "swift") if shown.search(name)] == [
        "rgw-beast",
        "swift",
    ]
    assert "allValue" not in layout  # all of them are then those that are listed


def test_every_panel_has_a_place_a_unit_and_a_description() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["description"].endswith(".")
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


def test_throughput_p90_errors_and_cpu_are_shown() -> None:
    shown = {field for query in QUERIES for field in re.findall(r'SELECT "(\w+)"', query)}
    assert {"throughput_ops_s", "p90_ms", "errors", "cpu_share"} <= shown
