"""Reads all objects after a cut; what fails is read again for as long as is allowed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count
from typing import Final

from weighbridge.common.credential import redacted
from weighbridge.drivers.survival.access import Access, Requests
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.connection import Answer, NoAnswer
from weighbridge.drivers.survival.findings import Judged, Sight, is_doubted, judged
from weighbridge.drivers.survival.judge import Expected
from weighbridge.drivers.survival.orders import InspectOrder

_PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0)
"""Before what failed is read again: the first times, and the last of them from then on."""
_BODIES_BYTES: Final = 384 * 2**20
"""Bodies that are held at once, each up to three times, on a client host with a GiB."""
_LOOK_S: Final = 1.0
_WORDS: Final = 200


class _Failed(Exception):
    """A read that may succeed later; `sight` is what to say if it never does."""

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight.words)
        self.sight = sight


class ObjectReader:
    """Reads objects over connections of its own, for one thread."""

    def __init__(
        self, order: InspectOrder, accesses: Mapping[str, Access], bodies: Bodies, end_s: float
    ) -> None:
        self._bodies = bodies
        self._requests = {
            api: Requests(access, order.timeout_s, lambda: end_s)
            for api, access in accesses.items()
        }
        self._secrets = [secret for one in accesses.values() for secret in one.secrets]

    def read(self, expected: Expected) -> Judged:
        """What an object is, and whether it may be. Raises _Failed."""
        sight = self._sight(expected)
        if not is_doubted(expected, sight):
            return judged(expected, sight)
        try:
            newest = self._sight(expected, "X-Newest: true\r\n")
        except _Failed as failed:
            newest = failed.sight
        return judged(expected, sight, newest)

    def close(self) -> None:
        """Close all connections."""
        for requests in self._requests.values():
            requests.close()

    def _sight(self, expected: Expected, more: str = "") -> Sight:
        path = f"/{expected.container}/{expected.name}"
        try:
            answer = self._requests[expected.api].ask(
                "GET", path, more=more, most_bytes=expected.size_bytes
            )
        except NoAnswer as error:
            raise _Failed(Sight("unreadable", None, self._plain(str(error)))) from error
        if answer.status == 404:
            return Sight("absent", None, "nothing")
        if answer.status != 200:
            raise _Failed(self._refused(expected, answer))
        if answer.end == "longer":
            words = f"more than the {expected.size_bytes} bytes that were written"
            return Sight("wrong", None, words)
        versions = (*expected.allowed, *expected.older)
        look = self._bodies.look(expected.object_name, expected.size_bytes, versions, answer.body)
        if answer.end == "complete":
            return Sight(look.what, look.version, look.words)
        words = f"every read is cut off, the last after {len(answer.body)} bytes"
        if not answer.body:
            raise _Failed(Sight("unreadable", None, words))
        raise _Failed(
            Sight("wrong" if look.what == "wrong" else "torn", None, f"{words}: {look.words}")
        )

    def _refused(self, expected: Expected, answer: Answer) -> Sight:
        if answer.status == 409 and expected.api == "swift" and expected.way == "multipart":
            return Sight("torn", None, "409: a segment is missing")
        text = answer.body[:_WORDS].decode(errors="replace")
        return Sight("unreadable", None, self._plain(f"{answer.status} {text}".strip()))

    def _plain(self, text: str) -> str:
        return redacted(text, self._secrets)[:_WORDS]


class ObjectReads:
    """Reads many objects by several threads. `tell` is called about once a second."""

    def __init__(
        self,
        order: InspectOrder,
        objects: Sequence[Expected],
        accesses: Callable[[int], Mapping[str, Access]],
        *,
        tell: Callable[[int], None],
    ) -> None:
        begun_s = time.monotonic()
        self._retry_until_s = begun_s + order.within_s
        self._end_s = begun_s + order.most_s
        self._objects = objects
        self._tell = tell
        largest = max((one.size_bytes for one in objects), default=1)
        bodies = Bodies(order.seed)
        self._readers = [
            ObjectReader(order, accesses(number), bodies, self._end_s)
            for number in range(max(1, min(order.threads, _BODIES_BYTES // (3 * largest))))
        ]
        missing = f"not read: the store did not answer for {order.within_s:g} s or longer"
        self._never = Sight("unreadable", None, missing)
        self._found: list[Judged | None] = [None] * len(objects)
        self._last: dict[int, Sight] = {}
        self._lock = threading.Lock()
        self._failures = 0
        """In a row, since reads may no longer be tried again."""

    def run(self) -> list[Judged]:
        """All objects, in their order."""
        waiting = list(range(len(self._objects)))
        for attempt in count():
            self._read_each(waiting, is_first=attempt == 0)
            waiting = [at for at in waiting if self._found[at] is None]
            if not waiting or time.monotonic() >= self._retry_until_s:
                break
            time.sleep(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
        for reader in self._readers:
            reader.close()
        for at in waiting:
            self._found[at] = judged(self._objects[at], self._last.get(at, self._never))
        return [one for one in self._found if one is not None]

    def _read_each(self, waiting: Sequence[int], *, is_first: bool) -> None:
        left = iter(waiting)

        def read(reader: ObjectReader) -> None:
            while not self._is_over(is_first=is_first):
                with self._lock:
                    at = next(left, None)
                if at is None:
                    return
                try:
                    self._found[at] = reader.read(self._objects[at])
                    self._failures = 0
                except _Failed as failed:
                    self._last[at] = failed.sight
                    self._failures += time.monotonic() >= self._retry_until_s

        with ThreadPoolExecutor(len(self._readers)) as pool:
            running = [pool.submit(read, reader) for reader in self._readers]
            while wait(running, _LOOK_S).not_done:
                self._tell(sum(one is not None for one in self._found))
            for one in running:
                one.result()  # raises what went wrong in it

    def _is_over(self, *, is_first: bool) -> bool:
        """Each object is read once however long it takes, unless nothing answers any more."""
        now_s = time.monotonic()
        if now_s < self._retry_until_s:
            return False
        given_up = self._failures >= 4 * len(self._readers)
        return not is_first or given_up or now_s >= self._end_s
