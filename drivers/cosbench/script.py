"""COSBench's workload XML, one document for each command."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

from weighbridge.drivers.cosbench.access import StorageAccess, config
from weighbridge.drivers.cosbench.selectors import (
    ENDLESS,
    all_of,
    by_chance,
    in_turn,
    ratios,
    sizes,
)
from weighbridge.suites import Operation, Workload

INTERVAL_S: Final = 1
"""How often COSBench's controller polls its drivers: stages last longer by about this and 2.5 s."""
PREPARED: Final = "object-"
"""Prefix of the names of prepared objects; COSBench appends a number from 1 on."""
MAIN: Final = "main"
"""The stage, and its work, that a step measures."""
ANY_FAILURES: Final = 1_000_000
"""Failures in a million that a completed stage may have: the suite's bounds judge a step."""


@dataclass(frozen=True)
class Script:
    """An XML document for COSBench. `name` is unique: ids are reused when a controller restarts."""

    name: str
    text: str
    stages: tuple[str, ...]


def prepare_script(
    name: str, workload: Workload, containers: str, access: StorageAccess, parallel: int
) -> Script:
    """Make containers (`containers` and a number from 1 on) and the objects the workload needs."""
    objects = workload.objects
    where = {"cprefix": containers, "containers": all_of(objects.containers)}
    root, flow = _workload(name, workload, access)
    _work(flow, "init", {"type": "init", "workers": "1", "config": config(where)})
    if workload.needs_objects:
        what = {
            "oprefix": PREPARED,
            "objects": all_of(objects.per_container),
            "sizes": sizes(objects.size),
        }
        workers = str(min(parallel, objects.count))
        _work(
            flow,
            "prepare",
            {"type": "prepare", "workers": workers, "config": config({**where, **what})},
        )
    return _script(name, root)


def step_script(
    name: str,
    workload: Workload,
    containers: str,
    access: StorageAccess,
    workers: int,
    written: str,
) -> Script:
    """Replay a prepared workload; the names of what it writes begin with `written`, so that no
    object to be read is overwritten.
    """
    root, flow = _workload(name, workload, access)
    work = _work(
        flow,
        MAIN,
        {
            "type": "normal",
            "workers": str(workers),
            "runtime": str(int(workload.runtime)),
            "rampup": str(int(workload.warmup)),
            "afr": str(ANY_FAILURES),
        },
    )
    for operation, ratio in ratios(workload.operations).items():
        what = {"cprefix": containers, **_picked(operation, workload, written)}
        ET.SubElement(
            work, "operation", {"type": operation, "ratio": str(ratio), "config": config(what)}
        )
    return _script(name, root)


def _picked(operation: Operation, workload: Workload, written: str) -> dict[str, str]:
    """The containers and objects that an operation picks."""
    objects = workload.objects
    if operation == "list":
        # By chance, workers would divide the containers, and fail where there are fewer; with
        # `objects` it would be a HEAD.
        return {"containers": in_turn(objects.containers)}
    if operation == "write":
        into = {"containers": by_chance(objects.containers), "oprefix": written}
        return {**into, "objects": in_turn(ENDLESS), "sizes": sizes(objects.size)}
    pick = in_turn if operation == "delete" or workload.pick == "sequential" else by_chance
    return {
        "containers": pick(objects.containers),
        "oprefix": PREPARED,
        "objects": pick(objects.per_container),
    }


def _workload(
    name: str, workload: Workload, access: StorageAccess
) -> tuple[ET.Element, ET.Element]:
    root = ET.Element("workload", {"name": name, "description": f"Weighbridge: {workload.name}"})
    ET.SubElement(root, "auth", {"type": access.auth, "config": access.auth_config})
    ET.SubElement(root, "storage", {"type": access.storage, "config": access.storage_config})
    return root, ET.SubElement(root, "workflow")


def _work(flow: ET.Element, name: str, attributes: dict[str, str]) -> ET.Element:
    stage = ET.SubElement(flow, "workstage", {"name": name})
    return ET.SubElement(stage, "work", {"name": name, "interval": str(INTERVAL_S), **attributes})


def _script(name: str, root: ET.Element) -> Script:
    stages = tuple(
        f"s{number}-{stage.get('name')}"
        for number, stage in enumerate(root.iterfind(".//workstage"), 1)
    )
    ET.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
    return Script(name, text, stages)
