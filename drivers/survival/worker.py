"""One worker of a load: its objects, and one operation after the other on them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from threading import Event
from typing import Final, Literal

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import ObjectApi
from weighbridge.drivers.survival.access import Access, Requests
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.connection import NoAnswer
from weighbridge.drivers.survival.operation import LONGEST_ERROR, Operation
from weighbridge.drivers.survival.orders import Kind, WriteOrder
from weighbridge.drivers.survival.writing import NotDone, ObjectWriter

_BACK: Final = 1 / 16
"""Share of new writes that take the name of a deleted object, if there is one."""
_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
"""Before the next operation after failures."""


@dataclass
class _Key:
    container: str
    name: str
    version: int = 0


@dataclass
class _Keys:
    """A worker's objects of one kind. One whose last operation failed is in neither list."""

    there: list[_Key] = field(default_factory=list)
    deleted: list[_Key] = field(default_factory=list)


class Worker:
    """Writes and deletes its own objects; nobody else touches them."""

    def __init__(
        self,
        number: int,
        order: WriteOrder,
        accesses: Mapping[ObjectApi, Access],
        bodies: Bodies,
        *,
        stop: Event,
        give_up_s: Callable[[], float],
        report: Callable[[Operation], None],
    ) -> None:
        self._number = number
        self._order = order
        self._kinds = order.kinds_of_workers()[number]
        self._secrets = [secret for one in accesses.values() for secret in one.secrets]
        self._requests = {
            api: Requests(access, order.timeout_s, give_up_s) for api, access in accesses.items()
        }
        self._writers = {
            api: ObjectWriter(requests, bodies) for api, requests in self._requests.items()
        }
        self._random = random.Random(f"worker {number} {order.seed}")  # noqa: S311
        self._keys = {kind: _Keys() for kind in self._kinds}
        self._names = 0
        self._stop = stop
        self._report = report

    def run(self) -> None:
        """Write and delete until the load stops."""
        pause_s = 0.0
        for kind in cycle(self._kinds):
            if self._stop.wait(pause_s) if pause_s else self._stop.is_set():
                break
            if self._operate(kind):
                pause_s = 0.0
            else:
                pause_s = min(_LONGEST_PAUSE_S, max(_SHORTEST_PAUSE_S, 2 * pause_s))
        for requests in self._requests.values():
            requests.close()

    def _operate(self, kind: Kind) -> bool:
        """One operation; whether it was acknowledged."""
        what, key = self._chosen(kind)
        key.version += 1
        writer = self._writers[kind.api]
        answered_s: float | None = None
        error = ""
        sent_s = time.monotonic()
        try:
            if what == "write":
                writer.write(key.container, key.name, key.version, kind.size_bytes, kind.way)
            else:
                writer.delete(key.container, key.name)
            answered_s = time.monotonic()
        except NotDone as refused:
            answered_s = time.monotonic()
            error = str(refused)
        except NoAnswer as missing:
            error = str(missing)
        if not error:
            keys = self._keys[kind]
            (keys.there if what == "write" else keys.deleted).append(key)
        self._report(
            Operation(
                kind=what,
                api=kind.api,
                container=key.container,
                name=key.name,
                size_bytes=kind.size_bytes,
                way=kind.way,
                version=key.version,
                sent_s=sent_s,
                answered_s=answered_s,
                acknowledged=not error,
                error=redacted(error, self._secrets)[:LONGEST_ERROR] if error else "",
            )
        )
        return not error

    def _chosen(self, kind: Kind) -> tuple[Literal["write", "delete"], _Key]:
        keys = self._keys[kind]
        chance = self._random.random()
        if keys.there and chance < self._order.deletes:
            return "delete", self._taken(keys.there)
        if keys.there and chance < self._order.deletes + self._order.overwrites:
            return "write", self._taken(keys.there)
        if keys.deleted and self._random.random() < _BACK:
            return "write", self._taken(keys.deleted)
        self._names += 1
        container = self._random.choice(self._order.containers_of(kind.api))
        return "write", _Key(container, f"w{self._number:03d}-{self._names:07d}")

    def _taken(self, keys: list[_Key]) -> _Key:
        at = self._random.randrange(len(keys))
        keys[at], keys[-1] = keys[-1], keys[at]
        return keys.pop()
