"""Read every object that a load wrote or deleted, list all containers, and print what is wrong.

As a program (`python -m weighbridge.drivers.survival.inspect_objects`, on the client host): reads
an `InspectOrder` from stdin as a line of JSON, an `Expected` as a line for each object, and an
empty line. Prints `Reading` every second, `Found` as a line for each finding, up to MOST_FINDINGS,
and `Inspected` at last. Ends with 1 after `Failed`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from typing import Final
from urllib.parse import quote

from weighbridge.common import plain_xml
from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import WrongAnswer
from weighbridge.common.record import Record
from weighbridge.drivers.survival.bodies import Bodies
from weighbridge.drivers.survival.connection import Access, Answer, NoAnswer, Requests, logged_in
from weighbridge.drivers.survival.judge import (
    Expected,
    Judged,
    Sight,
    counted,
    is_doubted,
    judged,
    listing_finding,
)
from weighbridge.drivers.survival.orders import Failed, Found, Inspected, InspectOrder, Reading
from weighbridge.results.run.durability import Finding

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


_S3_PAGE: Final = 1000
_SWIFT_PAGE: Final = 10_000
_PAGE_BYTES: Final = 4 * 2**20
"""Much more than a page of our names takes."""
_OTHERS: Final = 10_000
"""So many names that nobody has written are read; more are a listing without an end."""
_PAUSE_S: Final = 1.0
_LISTING_WORDS: Final = 120


@dataclass(frozen=True)
class Listing:
    """Which of some names are listed. `problem`: why the listing is not complete; empty: it is."""

    names: frozenset[str]
    problem: str = ""


class _NoPage(Exception):
    """A page that cannot be had now, or that is none. `final`: asking again will not help."""

    def __init__(self, what: str, *, final: bool = False) -> None:
        super().__init__(what)
        self.final = final


def list_container(
    requests: Requests, container: str, wanted: Collection[str], until_s: float
) -> Listing:
    """Which of `wanted` are listed, asking again until a moment of CLOCK_MONOTONIC."""
    found: set[str] = set()
    after, others, problem = "", 0, ""
    while not problem:
        try:
            names, more = _page(requests, container, after)
        except (_NoPage, NoAnswer) as error:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or (isinstance(error, _NoPage) and error.final):
                problem = str(error)
            else:
                time.sleep(min(_PAUSE_S, left_s))
            continue
        mine = [name for name in names if name in wanted]
        found.update(mine)
        others += len(names) - len(mine)
        if names and (names[0] <= after or names != sorted(set(names))):
            problem = "its names are not in order"
        elif others > _OTHERS:
            problem = f"more than {_OTHERS} names that were never written"
        elif not names or not more:
            return Listing(frozenset(found))
        else:
            after = names[-1]
    return Listing(frozenset(found), f"{container}: no complete listing: {problem}")


def _page(requests: Requests, container: str, after: str) -> tuple[list[str], bool]:
    """The names after one, and whether there may be more. Raises _NoPage and NoAnswer."""
    is_s3 = requests.access.api == "s3"
    marker = quote(after, safe="")
    query = (
        f"list-type=2&max-keys={_S3_PAGE}&start-after={marker}"
        if is_s3
        else f"limit={_SWIFT_PAGE}&marker={marker}"
    )
    answer = requests.ask("GET", f"/{container}", query=query, most_bytes=_PAGE_BYTES)
    if answer.status not in (200, 204) or answer.end != "complete":
        said = answer.body[:_LISTING_WORDS].decode(errors="replace")
        # All objects have been read: a store that still looked for its containers would say 503.
        gone = answer.status == HTTPStatus.NOT_FOUND
        raise _NoPage(f"{answer.status}, {answer.end}: {said}", final=gone)
    if not is_s3:
        try:
            return answer.body.decode().splitlines(), True
        except UnicodeDecodeError:
            raise _NoPage("names that are not UTF-8") from None
    try:
        root = plain_xml.parse(answer.body)
    except plain_xml.NotPlain as error:
        raise _NoPage(str(error)) from None
    if root.tag.rpartition("}")[2] != "ListBucketResult":
        raise _NoPage("an answer that is not a listing")
    names = [key.text or "" for key in root.iterfind("./{*}Contents/{*}Key")]
    return names, (root.findtext("{*}IsTruncated") or "").strip().lower() == "true"


MOST_FINDINGS: Final = 10_000
_MOST_NOTES: Final = 50

_Container = tuple[str, str]
"""API and name."""


def main() -> int:
    """Follow the order on stdin; exit status."""
    order = InspectOrder.model_validate_json(sys.stdin.readline())
    objects = []
    while line := sys.stdin.readline().strip():
        objects.append(Expected.model_validate_json(line))
    try:
        accesses = {str(one.api): _logged_in(one, order) for one in order.endpoints}
    except WrongAnswer as error:
        secrets = [secret for one in order.endpoints for secret in one.secrets]
        _say(Failed(message=redacted(str(error), secrets)))
        return 1
    _inspect(order, objects, accesses)
    return 0


def _logged_in(endpoint: Endpoint, order: InspectOrder) -> tuple[Access, ...]:
    """An endpoint after login, tried for as long as reads are. Raises WrongAnswer."""
    until_s = time.monotonic() + order.within_s
    while True:
        try:
            return tuple(logged_in(endpoint, order.timeout_s))
        except WrongAnswer:
            if time.monotonic() >= until_s:
                raise
            _say(Reading(done=0, total=0))
            time.sleep(_PAUSE_S)


def _inspect(
    order: InspectOrder, objects: Sequence[Expected], accesses: Mapping[str, tuple[Access, ...]]
) -> None:
    begun_s = time.monotonic()
    reads = ObjectReads(
        order,
        objects,
        lambda number: {api: some[number % len(some)] for api, some in accesses.items()},
        tell=lambda done: _say(Reading(done=done, total=len(objects))),
    )
    read = reads.run()
    listed_s = time.monotonic()
    firsts = {api: some[0] for api, some in accesses.items()}
    listings = _Listings(order, read, firsts)
    found = listings.findings()
    printed = 0
    for one, by_listing in found:
        for finding in (one.finding, by_listing):
            if finding is not None and printed < MOST_FINDINGS:
                _say(Found(example=one.example(finding)))
                printed += 1
    _say(
        Inspected(
            objects=counted(found),
            notes=tuple(listings.problems)[:_MOST_NOTES],
            reads_s=listed_s - begun_s,
            lists_s=time.monotonic() - listed_s,
            cpu_s=time.process_time(),
        )
    )


class _Listings:
    def __init__(
        self, order: InspectOrder, read: Sequence[Judged], accesses: Mapping[str, Access]
    ) -> None:
        self._order = order
        self._accesses = accesses
        self._read = read
        self._names: dict[_Container, set[str]] = {}
        for one in read:
            self._names.setdefault(_container(one), set()).add(one.expected.name)
        self.problems: list[str] = []

    def findings(self) -> list[tuple[Judged, Finding | None]]:
        """Each object with the finding of its listing, if it is one twice."""
        found = self._judged(self._all(self._names))
        doubtful = {_container(one) for one, finding in found if finding is not None}
        if not doubtful:
            return found
        time.sleep(self._order.list_again_s)
        again = self._judged(self._all(doubtful))
        return [
            (one, first if first == second else None)
            for (one, first), (_, second) in zip(found, again, strict=True)
        ]

    def _all(self, containers: Iterable[_Container]) -> dict[_Container, Listing]:
        until_s = time.monotonic() + self._order.within_s
        listings = {}
        for api, container in sorted(containers):
            access = self._accesses[api]
            requests = Requests(access, self._order.timeout_s, lambda: until_s + 60)
            _say(Reading(done=len(self._read), total=len(self._read)))
            listing = list_container(requests, container, self._names[api, container], until_s)
            requests.close()
            listings[api, container] = listing
            if problem := redacted(listing.problem, access.secrets):
                self.problems.append(problem)
        return listings

    def _judged(
        self, listings: Mapping[_Container, Listing]
    ) -> list[tuple[Judged, Finding | None]]:
        found: list[tuple[Judged, Finding | None]] = []
        for one in self._read:
            listing = listings.get(_container(one))
            finding = None
            if listing is not None:
                finding = listing_finding(one, listed=one.expected.name in listing.names)
            found.append((one, finding))
        return found


def _container(one: Judged) -> _Container:
    return one.expected.api, one.expected.container


def _say(line: Record) -> None:
    sys.stdout.write(line.model_dump_json() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
