"""Write and delete objects of which each has one history, and print what the store acknowledged.

As a program (`python -m weighbridge.drivers.survival.write_objects`, on the client host): reads a
`WriteOrder` from stdin as a line of JSON, makes the containers and prints `Ready`; writes from the
line `go` until the line `stop` or the end of its stdin; prints an `Operation` as a line of JSON
when it ends, and `Ended` at last. Ends with 1 after `Failed`.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from threading import Event, Thread
from typing import Final

from weighbridge.common.credential import redacted
from weighbridge.common.exchange import WrongAnswer
from weighbridge.common.record import Record
from weighbridge.drivers.survival.access import Requests, logged_in
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.connection import NoAnswer
from weighbridge.drivers.survival.operation import Operation
from weighbridge.drivers.survival.orders import Ended, Failed, Ready, WriteOrder
from weighbridge.drivers.survival.worker import Worker
from weighbridge.drivers.survival.writing import NotDone, ObjectWriter

_FLUSH_S: Final = 0.1
_GRACE_S: Final = 5.0
"""How much longer than all requests a worker may take to end."""


class _Load:
    """All workers, and what they report."""

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
        """End the load, from any thread."""
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
