"""Names in Swift's container databases: the rows, and what hosts answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.stage import Stage
from weighbridge.common.errors import TargetError
from weighbridge.gateways.swift.put_names import BATCH, put


class Broker:
    """As much of Swift's ContainerBroker as the program uses."""

    storage_policy_index = 1

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.merges: list[int] = []

    def get_info(self) -> dict[str, int]:
        return {"object_count": sum(not row["deleted"] for row in self.rows.values())}

    def merge_items(self, rows: Sequence[dict[str, Any]]) -> None:
        self.merges.append(len(rows))
        for row in rows:
            before = self.rows.get(row["name"])
            if before is None or before["created_at"] < row["created_at"]:
                self.rows[row["name"]] = row


NAMES = [f"object-{index:010}" for index in range(BATCH + 5)]


def test_names_are_merged_in_batches_once_and_what_is_gone_stays_as_deleted() -> None:
    broker = Broker()
    order: dict[str, Any] = {"names": NAMES, "gone": []}
    assert put(broker, order, "1", "2") == len(NAMES)
    assert broker.merges == [BATCH, 5]
    assert put(broker, {**order, "gone": NAMES[:10]}, "3", "4") == len(NAMES) - 10
    assert broker.merges == [BATCH, 5, 10]
    assert put(broker, {**order, "gone": NAMES[:20]}, "5", "6") == len(NAMES) - 20
    assert broker.merges == [BATCH, 5, 10, 20]
    assert put(broker, order, "7", "8") == len(NAMES) - 20
    assert broker.rows[NAMES[0]]["created_at"] == "6"
    assert broker.rows[NAMES[0]]["deleted"] == 1
    assert broker.rows[NAMES[20]] == {
        "name": NAMES[20],
        "created_at": "1",
        "size": 0,
        "content_type": "application/octet-stream",
        "etag": "d41d8cd98f00b204e9800998ecf8427e",
        "deleted": 0,
        "storage_policy_index": 1,
        "ctype_timestamp": None,
        "meta_timestamp": None,
    }


@pytest.mark.parametrize("answer", ["[2]", "[3]", "[]", '["3"', "[-1]"])
def test_databases_that_list_another_number_are_an_error(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    gateway = stage.swift()
    asked: list[Any] = []
    usual = Stage.answer

    def answers(argv: Sequence[str], stdin: str) -> str:
        if "put_names" not in " ".join(argv):
            return usual(stage, argv, stdin)
        asked.append(json.loads(stdin))
        return answer

    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", answers)
    if answer == "[2]":
        words = gateway.put_names("wb-0", ["a", "b", "c"], ["b"])
        assert words == "rows of container databases, without objects"
    else:
        with pytest.raises(TargetError, match=r"the databases of wb-0 list|no counts of rows"):
            gateway.put_names("wb-0", ["a", "b", "c"], ["b"])
    assert {one["address"] for one in asked} == {f"10.0.0.{number}" for number in (2, 3, 4)}
    assert {one["container"] for one in asked} == {"wb-0"}
    assert all((one["names"], one["gone"]) == (["a", "b", "c"], ["b"]) for one in asked)
