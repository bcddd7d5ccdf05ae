"""The dashboard asks for what is written, and draws no two series as one."""

import re

import pytest

from grafana_boards import BOARD, TARGETS, asked_for
from weighbridge.conductor.plan import AGAIN
from weighbridge.results.influx.points import FIELDS, TAGS

VARIABLES = {one["name"]: one for one in BOARD["templating"]["list"] if one["type"] == "query"}
QUERIES = [
    *(target["query"] for target in TARGETS),
    *(one["query"] for one in VARIABLES.values()),
    BOARD["annotations"]["list"][0]["target"]["query"],
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_only_measurements_fields_and_tags_that_are_written(query: str) -> None:
    (name,) = re.findall(r'FROM "(\w+)"', query)
    assert {*re.findall(r'"([a-z]\w*)"', query)} <= {name, *TAGS[name], *FIELDS[name]}
    assert {*re.findall(r"\$([a-z]+)\b", query)} <= {*VARIABLES}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target["query"][:60]))
def test_a_panel_draws_a_series_of_gateways_only_for_each_set_of_tags(
    target: dict[str, str],
) -> None:
    query = target["query"]
    name, field, _ = asked_for(query)
    assert field in FIELDS[name]
    grouped = {*re.findall(r'"(\w+)"', query.partition(" GROUP BY ")[2])}
    assert {*TAGS[name]} - {"suite"} <= grouped  # a run has one suite
    assert {*re.findall(r"\$tag_([a-z]+)", target["alias"])} <= grouped
    assert "\"layer\" = ''" in query  # what is below a gateway is no layout's
    assert "$timeFilter" in query


def test_an_a_a_control_is_not_drawn_among_the_layouts() -> None:
    layout = VARIABLES["layout"]
    shown = re.compile(layout["regex"].strip("/"))
    names = ("rgw-beast", f"rgw-beast{AGAIN}", "swift")
    assert [name for name in names if shown.search(name)] == ["rgw-beast", "swift"]
    assert "allValue" not in layout  # all of them are then those that are listed
