"""What is read of stores and daemons, and suites whose content compression would misread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.stage import Stage
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.conductor.plan import make_plan
from weighbridge.conductor.step_runner import kept_objects, memory_of
from weighbridge.drivers.protocol import Prepared
from weighbridge.gateways.gateway import KeptBytes
from weighbridge.results.record.step import Pass
from weighbridge.suites import Suite, Workload
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)


def workload(size: str = "4MiB", **objects: Any) -> Workload:
    return Workload.model_validate(
        {
            "name": "w",
            "objects": {"size": size, **objects},
            "operations": {"read": 1},
            "workers": [1],
            "runtime": "1s",
        }
    )


def record(before: KeptBytes | None, after: KeptBytes | None, objects: int = 2) -> Any:
    prepared = Prepared(objects=objects, bytes=objects * 100, seconds=1)
    way = Pass(api="swift", workloads=())
    return kept_objects("rgw", 0, way, workload(), prepared, before=before, after=after)


def test_what_is_unknown_before_or_after_leaves_no_record() -> None:
    known = KeptBytes(500, 7, "how")
    found = record(known, KeptBytes(1100, 9, "how"))
    assert (found.times, found.beside_bytes) == (3.0, 2)
    assert record(None, known) is None
    assert record(known, None) is None
    assert record(known, known, objects=0) is None
    assert record(known, KeptBytes(1100, None, "how")).beside_bytes is None


def test_daemons_of_one_role_are_numbered_and_one_that_is_not_found_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    daemons = stage.rgw().daemons()

    def answer(argv: Any, stdin: str) -> str:
        one = {"processes": 1, "resident_bytes": 10, "peak_bytes": 20}
        return json.dumps([None if "ceph-mgr" in words else one for words in json.loads(stdin)])

    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", answer)
    found = {(one.host, one.daemon): one for one in memory_of(daemons, "rgw", 0, "w")}
    assert found["store-1", "mgr"].resident_bytes is None
    assert found["store-2", "osd.2"].role == "osd"
    assert found["gateway-1", "radosgw"].peak_bytes == 20
    assert len(found) == 9


@pytest.mark.parametrize("text", ["[]", "{}", "no", '[{"processes": -1}]', "[1e999]"])
def test_an_answer_of_a_host_that_is_none_is_an_error(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    daemons = stage.rgw().daemons()
    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", lambda argv, stdin: text)
    with pytest.raises(TargetError, match="memory of"):
        memory_of(daemons, "rgw", 0, "w")


def test_compression_of_content_that_repeats_itself_is_refused() -> None:
    hardware = load_hardware(shipped_hardware()["lab-cpu"])
    reference = parse("rgw-beast:radosgw.compression=zstd")
    planned = [load_layout(shipped_layouts()["rgw-beast"], hardware, reference)]

    def plan(one: Workload) -> None:
        make_plan(Suite(name="s", about="s", workloads=(one,)), hardware, planned)

    with pytest.raises(UsageError, match=r"\(zstd\) compresses objects, and those of w repeat"):
        plan(workload())
    plan(workload(compressible="0%"))
    plan(workload("200KB"))
