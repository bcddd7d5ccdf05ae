"""The dashboards use what is actually written, and are one dashboard in three languages."""

import json
import re
import runpy
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from grafana_boards import BOARDS, FILES, FOLDER, asked_for, query_of, targets
from grafana_schema import UNITS, faults
from weighbridge.conductor.plan import AGAIN
from weighbridge.results.influx.points import FIELDS, TAGS

ROOT = Path(__file__).parents[3]
TARGETS = [
    pytest.param(language, panel, target, id=f"{language}-{panel}-{target['refId']}")
    for language in BOARDS
    for panel, target in targets(language)
]
of_each = pytest.mark.parametrize("language", BOARDS)
REDUCERS = {"min", "max", "mean", "median", "last", "lastNotNull", "first", "count", "sum"}
"""Of Grafana's ReducerID (grafana-data, fieldReducer.ts) those that a legend may well show."""


def variables(language: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in BOARDS[language]["templating"]["list"]}


def grouped(query: str) -> set[str]:
    """The tags that make a series of a query."""
    if "from(bucket" in query:
        return set(re.findall(r'"([a-z]+)"', query.rpartition("keep(columns:")[2]))
    if query.startswith("SELECT") and "GROUP BY" not in query:
        return set(re.findall(r'"([a-z]+)"', query.partition(" FROM ")[0])) - {"time"}
    return set(re.findall(r'"(\w+)"', query.partition(" GROUP BY ")[2]))


@pytest.mark.parametrize("language", FILES)
def test_a_dashboard_is_of_todays_declaration(
    language: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["grafana.py", language])
    monkeypatch.syspath_prepend(ROOT / "scripts")
    runpy.run_path(str(ROOT / "scripts" / "grafana.py"), run_name="__main__")
    made = capsys.readouterr().out
    assert made == (FOLDER / FILES[language]).read_text(), "run `make reference`"


@of_each
def test_a_dashboard_is_one_by_grafanas_own_types(language: str) -> None:
    board = BOARDS[language]
    assert faults(board) == []
    for panel in board["panels"]:
        assert panel["type"] == "timeseries"  # else its options are not checked
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert {*panel["options"]["legend"]["calcs"]} <= REDUCERS
        refs = {target["refId"] for target in panel["targets"]}
        for one in panel["fieldConfig"]["overrides"]:
            assert one["matcher"]["id"] == "byFrameRefID"
            assert one["matcher"]["options"] in refs
            assert [fixed["id"] for fixed in one["properties"]] == ["displayName"]


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("panels", 0, "options", "legend", "displayMode"), "grid", "not one of ['list', "),
        (("panels", 0, "options", "tooltip", "shown"), True, "tooltip/shown is unknown"),
        (("panels", 0, "fieldConfig", "defaults", "custom", "lineWidth"), "2", "not a float"),
        (("panels", 0, "gridPos", "x"), 0.5, "not a int"),
        (("templating", "list", 1, "sort"), 11, "not one of [0, "),
        (("refresh",), 10, "not a str"),
        (("annotations", "list", 0, "textColumn"), "run", "textColumn is unknown"),
    ],
)
def test_grafanas_types_find_what_is_wrong(
    path: tuple[str | int, ...], value: object, fault: str
) -> None:
    board = json.loads(json.dumps(BOARDS["influxql"]))
    place = board
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (found,) = faults(board)
    assert fault in found


@pytest.mark.parametrize(("language", "panel", "target"), TARGETS)
def test_a_query_uses_only_fields_and_tags_that_are_written(
    language: str, panel: str, target: dict[str, Any]
) -> None:
    query = query_of(target)
    name, field, _ = asked_for(target)
    assert field in FIELDS[name]
    known = {*TAGS[name], *FIELDS[name], name, field, "time"}
    assert {*re.findall(r'"([a-z]\w*)"', query), *re.findall(r"\br\.([a-z]\w*)", query)} <= known
    assert any(bound in query for bound in ("$timeFilter", "$__timeFilter", "v.timeRangeStart"))
    # Of gateways only: what is below them is no layout's.
    assert re.search(r"\"layer\" = ''|not exists r\.layer|\$\{\w+_layer:raw\} IS NULL", query)


@pytest.mark.parametrize(("language", "panel", "target"), TARGETS)
def test_a_query_never_draws_two_series_as_one(
    language: str, panel: str, target: dict[str, Any]
) -> None:
    alike = {"suite", "layer"}  # a run has one suite, and a gateway's load no layer
    name, _, _ = asked_for(target)
    assert {*TAGS[name]} - alike <= grouped(query_of(target))


@pytest.mark.parametrize(("language", "panel", "target"), TARGETS)
def test_a_legend_names_only_tags_that_make_its_series(
    language: str, panel: str, target: dict[str, Any]
) -> None:
    (named,) = [
        fixed["properties"][0]["value"]
        for one in BOARDS[language]["panels"]
        if one["title"] == panel
        for fixed in one["fieldConfig"]["overrides"]
        if fixed["matcher"]["options"] == target["refId"]
    ] or [target["alias"]]
    tags = {*re.findall(r"\$(?:tag_|\{__field\.labels\.)([a-z]+)", named)}
    assert {"layout", "workload", "workers", "repeat"} <= tags <= grouped(query_of(target))


@of_each
def test_variables_are_tags_that_are_written_and_all_used_ones_exist(language: str) -> None:
    board = BOARDS[language]
    used = {*re.findall(r"\$\{([a-z0-9_]+):|/\^\$([a-z]+)\$/", json.dumps(board))}
    names = {one or other for one, other in used}
    # Each is declared before it is used: Grafana asks in that order.
    assert names == {*variables(language)} - {"source"}
    before: set[str] = set()
    for name, one in variables(language).items():
        if one["type"] == "query":
            needs = {*re.findall(r"\$\{?([a-z_]+)(?=[:$])", one["query"])}
            assert needs <= before, name
            if one["hide"] == 0:
                (home,) = re.findall(r'"(weighbridge_\w+)"', one["query"])
                assert {name, *needs} <= {*TAGS[home]}
                assert f'"{name}"' in one["query"]
        before.add(name)


@of_each
def test_an_a_a_control_is_not_drawn_among_the_layouts(language: str) -> None:
    layout = variables(language)["layout"]
    shown = re.compile(layout["regex"].strip("/"))
    assert [name for name in ("rgw-beast", f"rgw-beast{AGAIN}", "swift") if shown.search(name)] == [
        "rgw-beast",
        "swift",
    ]
    assert "allValue" not in layout  # all of them are then those that are listed


@of_each
def test_every_panel_has_a_place_and_a_description(language: str) -> None:
    panels = BOARDS[language]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["description"].endswith(".")
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@of_each
def test_throughput_p90_errors_and_cpu_are_shown_in_each_language(language: str) -> None:
    found = [(panel, *asked_for(target)) for panel, target in targets(language)]
    assert found == [(panel, *asked_for(target)) for panel, target in targets("influxql")]
    fields = {field for _, _, field, _ in found}
    assert {"throughput_ops_s", "p90_ms", "errors", "cpu_share"} <= fields


def test_each_dashboard_can_be_imported_beside_the_others() -> None:
    for key in ("uid", "title"):
        assert len({board[key] for board in BOARDS.values()}) == len(BOARDS)
