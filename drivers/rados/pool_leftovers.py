"""What killed runs left in a pool: namespaces with names that only runs of this suite give.

One with another object than those of `rados bench` and of runs is not theirs alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.common.tool_output import printable
from weighbridge.drivers.rados.bench import BenchPlace
from weighbridge.drivers.rados.given_pool import SWEEP_S, GivenPool, is_ours
from weighbridge.drivers.rados.host_commands import CommandOutput
from weighbridge.drivers.rados.pool_state import said

NAMESPACE: Final = re.compile(r"wb-[0-9a-f]{8}|wb-check-[0-9a-f]{16}")
_MTIME: Final = re.compile(r"mtime (\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+0000)?,")
_NUMBERED: Final = re.compile(r"(benchmark_data_.+)_object([0-9]{1,18})", re.DOTALL)
_SHOWN: Final = 3
_LOOKED_AT: Final = 100
"""So many objects of a namespace are asked for their time, at most."""


class PoolLeftover(Record):
    """A namespace of a run."""

    namespace: str
    objects: int
    newest: datetime
    """When the newest of those was written that were written last."""
    strange: tuple[str, ...] = ()
    """Some names in it that no run gives."""


def leftovers(given: GivenPool) -> tuple[PoolLeftover, ...]:
    """All such namespaces of a pool, by name. Raises DriverError, TargetError."""
    everywhere = BenchPlace(pool=given.pool.pool, client=given.pool.client)
    listed = given.ask(*everywhere.rados, "ls", "--all", within_s=SWEEP_S)
    if listed.code != 0:
        raise DriverError(f"{given.machine.name}: rados ls --all: {said(listed)}")
    found: dict[str, list[str]] = {}
    for _, line in listed.lines:
        namespace, tab, name = line.partition("\t")
        if tab and NAMESPACE.fullmatch(namespace):
            found.setdefault(namespace, []).append(name)
    return tuple(
        PoolLeftover(
            namespace=namespace,
            objects=len(names),
            newest=_newest(given.within(namespace), names),
            strange=tuple(printable(name) for name in names if not is_ours(name))[:_SHOWN],
        )
        for namespace, names in sorted(found.items())
    )


def _newest(given: GivenPool, names: Sequence[str]) -> datetime:
    """When the newest of these objects was written. One whose time cannot be read counts as new, so
    that its age deletes nothing.
    """
    last = last_written(names)
    every = -(-len(last) // _LOOKED_AT) or 1
    return max((_time(given, name) for name in last[::every]), default=datetime.now(UTC))


def last_written(names: Sequence[str]) -> list[str]:
    """Those of a namespace's objects of runs that may have been written last: the last of each
    `rados bench`, which numbers them, and all others.
    """
    last: dict[str, tuple[int, str]] = {}
    for name in names:
        if is_ours(name):
            found = _NUMBERED.fullmatch(name)
            whose, number = (found[1], int(found[2])) if found else (name, 0)
            last[whose] = max(last.get(whose, (-1, "")), (number, name))
    return [name for _, name in last.values()]


def _time(given: GivenPool, name: str) -> datetime:
    # 14.2 prints local time without a zone.
    return mtime_of(given.ask("env", "TZ=UTC", *given.place.rados, "stat", name))


def mtime_of(answer: CommandOutput) -> datetime:
    """The time that `rados stat` printed in UTC; now if there is none that can be read."""
    found = _MTIME.search(answer.text) if answer.code == 0 else None
    try:
        return datetime.fromisoformat(found[1] if found else "").replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
