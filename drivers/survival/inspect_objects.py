"""Read every object that a load wrote or deleted, list all containers, and print what is wrong.

As a program (`python -m weighbridge.drivers.survival.inspect_objects`, on the client host): reads
an `InspectOrder` from stdin as a line of JSON, an `Expected` as a line for each object, and an
empty line. Prints `Reading` every second, `Found` as a line for each finding, up to MOST_FINDINGS,
and `Inspected` at last. Ends with 1 after `Failed`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import WrongAnswer
from weighbridge.common.record import Record
from weighbridge.drivers.survival.access import Access, Requests, logged_in
from weighbridge.drivers.survival.findings import Judged, counted, listing_finding
from weighbridge.drivers.survival.judge import Expected
from weighbridge.drivers.survival.listing import Listing, list_container
from weighbridge.drivers.survival.orders import Failed, Found, Inspected, InspectOrder, Reading
from weighbridge.drivers.survival.reading import ObjectReads
from weighbridge.results.record.durability import Finding

MOST_FINDINGS: Final = 10_000
_MOST_NOTES: Final = 50
_PAUSE_S: Final = 1.0

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
    """Listings of the containers of objects that have been read."""

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
