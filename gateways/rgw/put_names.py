"""Entries in the index of a bucket, as a program on a host of Ceph with an administrator's keys.

stdin is JSON `{"pool": the index's, "id": the bucket's ID, "names": [name, ...], "gone": [name,
...]}`. The first of `names` is an object that exists; the others, of the same length, get
copies of its entry with their names, unless they have one, and those of `gone` are removed. stdout
is JSON, how many names have an entry then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

BATCH = 1000
"""Entries of one write."""
PRIME = 7877
"""RGW's RGW_SHARDS_PRIME_0, for up to as many shards."""


def string_hash(name: bytes) -> int:
    """Ceph's ceph_str_hash_linux."""
    found = 0
    for byte in name:
        found = (found + (byte << 4) + (byte >> 4)) * 11 & 0xFFFFFFFF
    return found


def shard_of(name: str, shards: int) -> int:
    """The shard of a bucket's index with a name's entry: RGW's bucket_shard_index."""
    first = string_hash(name.encode())
    return (first ^ ((first & 0xFF) << 24) & 0xFFFFFFFF) % PRIME % shards


def shard_objects(names: list[str], bucket_id: str) -> list[str]:
    """The objects of a bucket's index, shard by shard. Raises ValueError if some are missing."""
    stem = f".dir.{bucket_id}"
    if names == [stem]:
        return names
    numbers = {one: one.removeprefix(f"{stem}.") for one in names}
    found = sorted(names, key=lambda one: int(numbers[one]) if numbers[one].isdigit() else -1)
    if not found or [numbers[one] for one in found] != [
        str(number) for number in range(len(found))
    ]:
        raise ValueError(f"the index of {bucket_id} is {', '.join(found) or 'nothing'}")
    return found


def copied(entry: bytes, name: str, other: str) -> bytes:
    """The entry of another name of the same length. Raises ValueError if it cannot be made."""
    if len(name) != len(other) or name.encode() not in entry:
        raise ValueError(f"no entry of {other} can be made from that of {name}")
    return entry.replace(name.encode(), other.encode())


def batches(names: list[str]) -> Iterator[list[str]]:
    """The names in parts of one write."""
    return (names[start : start + BATCH] for start in range(0, len(names), BATCH))


class Index:
    """One shard of an index in its pool."""

    def __init__(self, rados: Any, pool: Any, name: str) -> None:
        self._rados, self._pool, self._name = rados, pool, name

    def entries(self, names: list[str]) -> dict[str, bytes]:
        """The entries of those names that have one."""
        found: dict[str, bytes] = {}
        for some in batches(names):
            with self._rados.ReadOpCtx() as read:
                rows, _ = self._pool.get_omap_vals_by_keys(read, tuple(some))
                self._pool.operate_read_op(read, self._name)
                found.update(rows)
        return found

    def set(self, entries: dict[str, bytes]) -> None:
        """Write entries."""
        for some in batches(list(entries)):
            with self._rados.WriteOpCtx() as write:
                self._pool.set_omap(write, tuple(some), tuple(entries[one] for one in some))
                self._pool.operate_write_op(write, self._name)

    def remove(self, names: list[str]) -> None:
        """Remove entries."""
        for some in batches(names):
            with self._rados.WriteOpCtx() as write:
                self._pool.remove_omap_keys(write, tuple(some))
                self._pool.operate_write_op(write, self._name)


def put(shards: list[Index], names: list[str], gone: list[str]) -> int:
    """Have entries of `names` but for `gone`; returns how many there are then. Raises ValueError if
    the first one's is needed and not where RGW would have it.
    """
    count, removed = len(shards), set(gone)
    mine: list[list[str]] = [[] for _ in shards]
    for name in names:
        mine[shard_of(name, count)].append(name)
    first, at = names[0], shard_of(names[0], count)
    template = shards[at].entries([first]).get(first)
    known = [shard.entries(own) for shard, own in zip(shards, mine)]  # noqa: B905 - Python 3.9
    # Those that are to be gone were there before: deletes leave something in a store.
    filled = sum(map(len, known)) > 1
    for shard, own, there in zip(shards, mine, known):  # noqa: B905 - hosts have Python 3.9
        new = [one for one in own if one not in there and not (filled and one in removed)]
        if new and template is None:
            raise ValueError(f"no entry of {first} in shard {at} of {count}")
        shard.set({one: copied(template or b"", first, one) for one in new})
    for shard, own, there in zip(shards, mine, known):  # noqa: B905 - likewise
        shard.remove([one for one in own if one in removed and (one in there or not filled)])
    return sum(len(shard.entries(own)) for shard, own in zip(shards, mine))  # noqa: B905 - likewise


def main() -> None:
    """See the module."""
    import rados  # type: ignore[import-not-found]  # noqa: PLC0415 - installed only on the hosts where this runs

    order = json.load(sys.stdin)
    with (
        rados.Rados(conffile="/etc/ceph/ceph.conf") as cluster,
        cluster.open_ioctx(order["pool"]) as pool,
    ):
        stem = f".dir.{order['id']}"
        all_of_it = [
            one.key
            for one in pool.list_objects()
            if one.key == stem or one.key.startswith(f"{stem}.")
        ]
        shards = [Index(rados, pool, one) for one in shard_objects(all_of_it, order["id"])]
        json.dump(put(shards, order["names"], order["gone"]), sys.stdout)


if __name__ == "__main__":
    main()
