"""Names in RGW's bucket indexes: entries, shards, and what hosts answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.planned_rgw import rgw
from tests.gateways.stage import Stage
from weighbridge.common.errors import TargetError
from weighbridge.gateways.rgw.put_names import (
    copied,
    put,
    shard_objects,
    shard_of,
    string_hash,
)


class Shard:
    """As much of an index shard as the program uses."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.written: list[str] = []

    def entries(self, names: Sequence[str]) -> dict[str, bytes]:
        return {one: self.rows[one] for one in names if one in self.rows}

    def set(self, entries: dict[str, bytes]) -> None:
        self.written += entries
        self.rows.update(entries)

    def remove(self, names: Sequence[str]) -> None:
        for one in names:
            del self.rows[one]


NAMES = [f"object-{index:010}" for index in range(500)]


def index(shards: int) -> Any:
    made = [Shard() for _ in range(shards)]
    made[shard_of(NAMES[0], shards)].rows[NAMES[0]] = b"\x08" + NAMES[0].encode() + b"\x00etag"
    return made


@pytest.mark.parametrize("shards", [1, 11, 101])
def test_each_name_gets_one_entry_and_those_that_are_gone_lose_it(shards: int) -> None:
    made = index(shards)
    assert put(made, NAMES, []) == 500
    assert sorted(one for shard in made for one in shard.rows) == NAMES
    assert all(
        value == b"\x08" + name.encode() + b"\x00etag"
        for shard in made
        for name, value in shard.rows.items()
    )
    assert min(len(shard.rows) for shard in made) > 0 or shards > 11
    # Again: nothing is written twice, and the first may be gone.
    written = [len(shard.written) for shard in made]
    assert put(made, NAMES, NAMES[:100]) == 400
    assert put(made, NAMES, NAMES[:200]) == 300
    assert [len(shard.written) for shard in made] == written


def test_names_that_are_gone_from_the_first_were_there_before() -> None:
    made = index(11)
    assert put(made, NAMES, NAMES[:100]) == 400
    assert sorted(one for shard in made for one in shard.written) == NAMES[1:]
    assert sorted(one for shard in made for one in shard.rows) == NAMES[100:]


def test_without_an_entry_to_copy_nothing_is_put() -> None:
    with pytest.raises(ValueError, match="no entry of object-0000000000 in shard"):
        put([Shard() for _ in range(11)], NAMES, [])  # type: ignore[misc]  # a stub
    with pytest.raises(ValueError, match="no entry of b can be made"):
        copied(b"entry", "a", "b")
    with pytest.raises(ValueError, match="no entry of ab can be made"):
        copied(b"a", "a", "ab")


def test_names_are_hashed_as_ceph_does() -> None:
    # By hand: ((0 + (97 << 4) + (97 >> 4)) * 11, then the same with 98.
    first = ((97 << 4) + (97 >> 4)) * 11
    assert string_hash(b"a") == first == 17138
    assert string_hash(b"ab") == (first + (98 << 4) + (98 >> 4)) * 11
    assert string_hash(b"x" * 100) < 2**32


def test_shards_are_in_their_order_and_complete() -> None:
    names = [f".dir.b1.{number}" for number in (10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9)]
    assert shard_objects(names, "b1") == [f".dir.b1.{number}" for number in range(11)]
    assert shard_objects([".dir.b1"], "b1") == [".dir.b1"]
    for wrong in ([], [".dir.b1.1"], [".dir.b1.0", ".dir.b1.1.0"]):
        with pytest.raises(ValueError, match="the index of b1 is"):
            shard_objects(wrong, "b1")


def test_a_release_that_does_not_count_anew_gets_objects() -> None:
    assert rgw({}, "ceph-16").takes_names
    assert not rgw({}, "ceph-14").takes_names


@pytest.mark.parametrize(
    ("count", "counted", "fault"),
    [
        ("2", 2, ""),
        ("3", 2, "has 3 entries and counts 2 objects"),
        ("2", 3, "has 2 entries and counts 3 objects"),
        ("two", 2, "no count of names"),
        ("2", -1, "no stats of wb-0"),
    ],
)
def test_an_index_with_another_number_is_an_error(
    count: str, counted: int, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    gateway = stage.rgw()
    usual, asked = Stage.answer, list[Any]()

    def answers(argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "bucket stats" in line:
            usage = {"rgw.main": {"num_objects": counted, "size": 0}}
            return json.dumps({"id": "b1", "usage": usage, "num_shards": 11})
        if "put_names" in line:
            asked.append(json.loads(stdin))
            return count
        return usual(stage, argv, stdin)

    for host in stage.hosts.values():
        monkeypatch.setattr(host, "_answer", answers)
    if fault:
        with pytest.raises(TargetError, match=fault):
            gateway.put_names("wb-0", ["a", "b", "c"], ["b"])
        return
    assert "bucket index" in gateway.put_names("wb-0", ["a", "b", "c"], ["b"])
    pool = "default.rgw.buckets.index"
    assert asked == [{"pool": pool, "id": "b1", "names": ["a", "b", "c"], "gone": ["b"]}]
    assert stage.when("bucket check --fix --bucket=wb-0")
