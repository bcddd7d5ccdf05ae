"""The dashboard for Grafana, its queries, and what Grafana puts into these before it asks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

BOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "grafana" / "weighbridge.json").read_text()
)
TARGETS: list[dict[str, Any]] = [target for panel in BOARD["panels"] for target in panel["targets"]]


def asked_for(query: str) -> tuple[str, str, bool]:
    """The measurement and the field of a panel's query, and whether of valid steps only."""
    (name,) = re.findall(r'FROM "(\w+)"', query)
    field = re.findall(r'"(\w+)"', query.partition(" FROM ")[0])[-1]
    return name, field, '"valid" = 1' in query


def _regex(values: Sequence[str]) -> str:
    if list(values) == [".*"]:  # what stands for all is put in as it is
        return ".*"
    found = [re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value) for value in values]
    return found[0] if len(found) == 1 else f"({'|'.join(found)})"


def filled(query: str, chosen: Mapping[str, Sequence[str]]) -> str:
    query = query.replace("$timeFilter", "time >= '2014-01-01' and time <= '2100-01-01'")
    query = re.sub(r"\$([a-z]+)", lambda found: _regex(chosen[found[1]]), query)
    assert not re.search(r"\$[\w{]", query), query
    return query


def choices(ask: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """All of each variable, as Grafana chooses it: what stands for all, or all that `ask` lists."""
    found: dict[str, list[str]] = {}
    for one in BOARD["templating"]["list"]:
        if one["type"] == "query":
            listed = ask(filled(one["query"], found))
            pattern = re.compile(one.get("regex", "").strip("/"))
            found[one["name"]] = (
                [one["allValue"]]
                if "allValue" in one
                else [value for value in listed if pattern.search(value)]
            )
            assert listed, one["name"]
    return found
