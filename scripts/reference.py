"""Write docs/reference.md, every key of every file and every metric, from the records that validate
them, to stdout.

Run by `make reference`. Nothing in it depends on the machine or the day.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES
from weighbridge.results.figures.metrics import METRICS
from weighbridge.suites import Suite
from weighbridge.suites.operations import OPERATIONS, TRAITS
from weighbridge.suites.tuning import Tuning
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, LayoutParameter, parameters

FILES: Mapping[str, tuple[type[BaseModel], str, str]] = {
    "Suite": (Suite, "suite", "What is replayed: `--suite FILE`, or the name of one that ships."),
    "Hardware": (
        Hardware,
        "hardware",
        "The hosts: `--hardware FILE`, or the name of one that ships.",
    ),
    "Layout": (Layout, "layout", "A gateway on hosts: `--layouts FILE,...`, or names that ship."),
    "Tuning": (Tuning, "", "What `weighbridge tune FILE` searches."),
}
"""Kinds of files: their record, the argument of `weighbridge init`, and what they are for."""
HEAD = """# Keys, operations and metrics

Every key of every file, every operation and every metric, written by `make reference` from what
validates and computes them. Times are written `500ms`, `2h`, `9m30s`, `9:30`; sizes `64kB`, `4MiB`;
rates of NICs `10Gbit`. A key with `[]` is of each item of a list, one with `NAME` of each of a map.
The command line is in [Verbs](verbs.md), layouts that ship are in [Layouts](layouts.md).
"""


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join((HEAD, *_files(), *_settings(), *_operations(), *_metrics())))


def _files() -> Iterator[str]:
    for title, (record, init, about) in FILES.items():
        yield f"## {title}\n\n{about}"
        if init:
            yield f"`weighbridge init {init}` writes a commented one to edit."
        yield f"\n{_table(record)}"


def _settings() -> Iterator[str]:
    for name, store in sorted(STORES.items()):
        yield f"## Layouts of `{name}`\n\n### `place`\n\n{_table(store.Placement)}"
        yield f"### `settings`\n\n{_table(store.Settings)}"


def _table(record: type[BaseModel]) -> str:
    lines = [
        f"| `{one.key}` | {_cell(one.kind)} | {_cell(one.default)} | {_about(one)} |"
        for one in parameters(record)
    ]
    return "\n".join(
        ("| key | type | default | meaning |", "| --- | --- | --- | --- |", *lines, "")
    )


def _operations() -> Iterator[str]:
    yield "## Operations\n\nKeys of a workload's `operations`, and what is sent for each.\n"
    yield "| operation | S3 | Swift |\n| --- | --- | --- |"
    for name in OPERATIONS:
        sent = TRAITS[name].sent
        yield f"| `{name}` | {_cell(sent.get('s3', '–'))} | {_cell(sent.get('swift', '–'))} |"
    yield ""


def _metrics() -> Iterator[str]:
    yield "## Metrics\n\nColumns of the exported tables are named after their key and unit.\n"
    yield "| metric | unit | better | meaning |\n| --- | --- | --- | --- |"
    for key, one in METRICS.items():
        about = f"{one.about} {one.over_repeats}".strip()
        yield f"| `{key}` | {_cell(one.unit)} | {one.better or '–'} | {_cell(about)} |"
    yield ""


def _about(one: LayoutParameter) -> str:
    """What a key does; nothing for one whose name says it."""
    if one.key in FRONTS:
        return "The host of this front, before the gateway's daemons; none: there is none."
    plain = one.key.rpartition(".")[2].replace("_", " ")
    words = one.about.replace("None:", "none:")
    return "" if one.about == plain else _cell(words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ") or "–"


if __name__ == "__main__":
    main()
