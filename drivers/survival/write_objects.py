"""Write and delete objects of which each has one history, and print what the store acknowledged.

As a program (`python -m weighbridge.drivers.survival.write_objects`, on the client host): reads a
`WriteOrder` from stdin as a line of JSON, makes the containers and prints `Ready`; writes from the
line `go` until the line `stop` or the end of its stdin; prints an `Operation` as a line of JSON
when it ends, and `Ended` at last. Ends with 1 after `Failed`.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from threading import Event, Thread
from typing import Final, Literal

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.exchange import WrongAnswer
from weighbridge.common.record import Record
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.connection import Access, NoAnswer, Requests, logged_in
from weighbridge.drivers.survival.operation import LONGEST_ERROR, Operation
from weighbridge.drivers.survival.orders import Ended, Failed, Kind, Ready, WriteOrder
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


_FLUSH_S: Final = 0.1
_GRACE_S: Final = 5.0
"""How much longer than all requests a worker may take to end."""


class _Load:
    def __init__(self, order: WriteOrder) -> None:
        self._order = order
        self._bodies = Bodies(order.seed)
        self._done: deque[Operation] = deque()
        self._stop = Event()
        self._give_up_s = math.inf
        self._accesses = {
            one.api: tuple(logged_in(one, order.timeout_s)) for one in order.endpoints
        }
        self.printed = 0

    @property
    def secrets(self) -> list[str]:
        return [
            secret
            for several in self._accesses.values()
            for access in several
            for secret in access.secrets
        ]

    def make_containers(self) -> tuple[str, ...]:
        """Make all containers. Raises NotDone and NoAnswer."""
        made = []
        for api, (access, *_) in self._accesses.items():
            requests = Requests(access, self._order.timeout_s, lambda: math.inf)
            for container in self._order.all_containers(api):
                ObjectWriter(requests, self._bodies).make_container(container)
                made.append(container)
            requests.close()
        return tuple(made)

    def stop(self) -> None:
        self._give_up_s = time.monotonic() + self._order.drain_s
        self._stop.set()

    def run(self) -> bool:
        """Write until `stop`; whether every worker ended."""
        workers = [
            Worker(
                number,
                self._order,
                {api: several[number % len(several)] for api, several in self._accesses.items()},
                self._bodies,
                stop=self._stop,
                give_up_s=lambda: self._give_up_s,
                report=self._done.append,
            )
            for number in range(self._order.workers)
        ]
        ended: list[int] = []

        def run(number: int, worker: Worker) -> None:
            worker.run()
            ended.append(number)

        threads = [
            Thread(target=run, args=(number, worker), daemon=True)
            for number, worker in enumerate(workers)
        ]
        for thread in threads:
            thread.start()
        while not self._stop.wait(_FLUSH_S):
            self._flush()
            if any(not thread.is_alive() for thread in threads):
                break  # by an error of this program, which its log has
        self.stop()
        deadline_s = self._give_up_s + _GRACE_S
        for thread in threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        self._flush()
        return len(ended) == len(workers)

    def _flush(self) -> None:
        lines = []
        while self._done:
            lines.append(self._done.popleft().model_dump_json(exclude_defaults=True))
        self.printed += len(lines)
        if lines:
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()


def _say(line: Record) -> None:
    sys.stdout.write(line.model_dump_json() + "\n")
    sys.stdout.flush()


def main() -> int:
    """Follow the order on stdin; exit status."""
    order = WriteOrder.model_validate_json(sys.stdin.readline())
    secrets = [secret for one in order.endpoints for secret in one.secrets]
    try:
        load = _Load(order)
        secrets = load.secrets
        _say(Ready(containers=load.make_containers()))
    except (WrongAnswer, NotDone, NoAnswer) as error:
        _say(Failed(message=redacted(str(error), secrets)))
        return 1
    if sys.stdin.readline().strip() != "go":
        return 0

    def stop_when_told() -> None:
        sys.stdin.readline()
        load.stop()

    Thread(target=stop_when_told, daemon=True).start()
    before_s = time.process_time()
    if not load.run():
        _say(Failed(message="a worker did not end: its last operation is not known"))
        return 1
    _say(Ended(operations=load.printed, cpu_s=time.process_time() - before_s))
    return 0


if __name__ == "__main__":
    sys.exit(main())
