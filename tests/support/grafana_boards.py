"""The dashboards for Grafana, their queries, and what Grafana puts into these before it asks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "grafana"
FILES = {
    "influxql": "weighbridge.json",
    "flux": "weighbridge-flux.json",
    "sql": "weighbridge-sql.json",
}
BOARDS: dict[str, dict[str, Any]] = {
    language: json.loads((FOLDER / name).read_text()) for language, name in FILES.items()
}
SPAN = (datetime(2014, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
"""The time range that is chosen, with all runs."""


def query_of(target: Mapping[str, Any]) -> str:
    """The text that a data source sends for a target."""
    return str(target.get("rawSql") or target["query"])


def asked_for(target: Mapping[str, Any]) -> tuple[str, str, bool]:
    """The measurement and the field of a panel's target, and whether of valid steps only."""
    query = query_of(target)
    if "from(bucket" in query:
        (name,) = re.findall(r'r\._measurement == "(\w+)"', query)
        field, *others = re.findall(r'r\._field == "(\w+)"', query)
        return name, field, others == ["valid"]
    (name,) = re.findall(r'FROM "(\w+)"', query)
    field = re.findall(r'"(\w+)"', query.partition(" FROM ")[0])[-1]
    return name, field, '"valid" = 1' in query


def targets(language: str) -> list[tuple[str, dict[str, Any]]]:
    """Every target with its panel's title."""
    return [
        (panel["title"], target)
        for panel in BOARDS[language]["panels"]
        for target in panel["targets"]
    ]


def _escaped(value: str) -> str:
    return re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value)


def _regex(values: Sequence[str]) -> str:
    if list(values) == [".*"]:  # what stands for all is put in as it is
        return ".*"
    found = [_escaped(value) for value in values]
    return found[0] if len(found) == 1 else f"({'|'.join(found)})"


_FORMATS: dict[str, Callable[[Sequence[str]], str]] = {
    "regex": _regex,
    "sqlstring": lambda values: ",".join("'" + one.replace("'", "''") + "'" for one in values),
    "raw": ",".join,
}


def filled(query: str, chosen: Mapping[str, Sequence[str]], bucket: str = "weighbridge") -> str:
    """A query as Grafana sends it.

    Of its formats and macros those that are used, as Grafana documents them.
    """
    start, stop = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in SPAN)
    first, last = (round(at.timestamp() * 1000) for at in SPAN)
    query = re.sub(r"\$\{(\w+):(\w+)\}", lambda found: _FORMATS[found[2]](chosen[found[1]]), query)
    for macro, value in (
        ("$timeFilter", f"time >= {first}ms and time <= {last}ms"),
        ("$__timeFilter(time)", f"time >= '{start}' AND time <= '{stop}'"),
        ("v.timeRangeStart", start),
        ("v.timeRangeStop", stop),
        ("v.defaultBucket", f'"{bucket}"'),
    ):
        query = query.replace(macro, value)
    query = re.sub(r"\$([a-z]+)", lambda found: _regex(chosen[found[1]]), query)
    assert not re.search(r"\$[\w{]|\bv\.", query), query
    return query


def choices(
    language: str, ask: Callable[[str], list[str]], bucket: str = "weighbridge"
) -> dict[str, list[str]]:
    """All of each variable, as Grafana chooses it: what stands for all, or all that `ask` lists."""
    found: dict[str, list[str]] = {}
    for one in BOARDS[language]["templating"]["list"]:
        if one["type"] == "query":
            listed = ask(filled(one["query"], found, bucket))
            pattern = re.compile(one.get("regex", "").strip("/"))
            found[one["name"]] = (
                [one["allValue"]]
                if "allValue" in one
                else [value for value in listed if pattern.search(value)]
            )
            assert listed, one["name"]
    return found
