"""Buckets that runs of this suite made on a gateway that outlives them: listed, judged, deleted.

A bucket is a run's by two things: its name has the form that runs use (`wb-` and eight hexadecimal
digits, or `wb-check-` and sixteen), and all its objects have names that only drivers of this suite
write. A single other object means that somebody else uses the bucket.

As a program (`python -m weighbridge.gateways.existing.clear`, on the client host), for runs whose
driver could not do it: reads `{"endpoints": [...], "buckets": [...], "patience_s": s}` from stdin,
prints one JSON line, `{"deleted": {bucket: objects}, "left": {bucket: reason}}`. Several endpoints
of an API are of one service.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import Any, Final, TypeVar
from urllib.parse import quote

from weighbridge.common import plain_xml
from weighbridge.common.errors import TargetError
from weighbridge.common.exchange import Exchange, HttpAnswer, WrongAnswer, ask, exchanging
from weighbridge.common.listing import Entry, Listed, listing
from weighbridge.common.tool_output import shortened

BUCKET: Final = re.compile(r"wb-[0-9a-f]{8}[acgo]?-[a-z0-9-]+-[0-9]+|wb-check-[0-9a-f]{16}")
"""Bucket names of `weighbridge.conductor.clearing` and of the verification of an endpoint."""
OBJECT: Final = re.compile(r"object-[0-9]+|written-[A-Za-z0-9-]*[0-9]|check")
PATIENCE_S: Final = 20.0
"""An empty bucket that cannot be deleted for so long is left."""
SAY_S: Final = 10.0
SHOWN: Final = 3
PARALLEL = 8
AT_ONCE = 1000
"""So many are deleted before the bucket is tried again."""
_PAUSE_S = 0.2
_REMEMBERED = 500_000
"""So many deleted names are remembered; beyond them only names in ascending order are new."""
_KEPT = ("Enabled", "Suspended")
_MISSING = 404
_UNKNOWN = range(400, 502)
"""What a store without versions may answer to a question about them."""

Told = Callable[[int], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class LeftoverBucket:
    """A bucket with a name that a run of this suite gave it."""

    bucket: str
    objects: int
    """How many are in it; where it keeps versions, how many of these; of strange ones a part."""
    newest: datetime
    """When it was created, or its latest object was written."""
    strange: tuple[str, ...] = ()
    """Some object names in it that no run gives; empty: runs of this suite made all of it."""


class EndpointSilent(TargetError):
    """An endpoint does not answer: another one of the same service may."""


class Sweep:
    """The buckets of one service, whose endpoints are given as JSON has them: what one does not
    answer the next one is asked.

    `say` is told each that is given up while there are others, and how far long lists have come.
    Methods raise TargetError, and EndpointSilent when the last endpoint does not answer.
    """

    def __init__(
        self, endpoints: Sequence[Mapping[str, Any]], say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._endpoints = list(endpoints)
        self._say = say

    @property
    def there(self) -> str:
        here = self._endpoints[0]
        return f"{here['api']} {here['storage_url'] or here['url']}"

    def named(self) -> tuple[tuple[str, datetime], ...]:
        """All buckets with a run's name and when each was created, sorted. An endpoint that lists
        none is of no use at all.
        """

        def ask_all(here: Mapping[str, Any]) -> list[tuple[str, datetime]]:
            # The account's URL has no bucket before the host name.
            with exchanging({**here, "addressing": "path"}, "") as exchange:
                every = list(_entries(exchange, here["api"], "buckets"))
            return [(one.name, _dated(one)) for one in every if BUCKET.fullmatch(one.name)]

        return tuple(sorted(self._asked(ask_all, useless=TargetError)))

    def content(self, bucket: str, made: datetime) -> LeftoverBucket | None:
        """What a bucket has; None where its run has deleted it meanwhile."""

        def count(here: Mapping[str, Any]) -> LeftoverBucket | None:
            told = self._reporting(f"{bucket}: {{}} objects listed so far")
            try:
                with exchanging(here, bucket) as exchange:
                    return _judged(exchange, here["api"], bucket, made, told)
            except WrongAnswer as wrong:
                if wrong.answer is None or wrong.answer.status != _MISSING:
                    raise
                return None

        return self._asked(count)

    def delete(
        self, bucket: str, patience_s: float = PATIENCE_S, only: re.Pattern[str] | None = OBJECT
    ) -> int | None:
        """Delete a bucket and its objects; returns the number of objects, and of versions if it
        keeps any, or None without such a bucket. An object of another name than `only`, which may
        have come since it was judged, is a fault: then nothing of its page is deleted.
        """
        told = self._reporting(f"{bucket}: {{}} objects deleted so far")
        return self._asked(lambda here: clear(here, bucket, patience_s, only, told))

    def _reporting(self, text: str) -> Told:
        """A function that takes counts and says one every SAY_S, at its place in the text."""
        due = time.monotonic() + SAY_S

        def tell(count: int) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + SAY_S
                self._say(text.format(f"{count:,}"))

        return tell

    def _asked(
        self,
        act: Callable[[Mapping[str, Any]], Result],
        useless: type[TargetError] = EndpointSilent,
    ) -> Result:
        while True:
            here = self._endpoints[0]
            try:
                return act(here)
            except WrongAnswer as wrong:
                fault = _fault(here, wrong)
                if len(self._endpoints) == 1 or not isinstance(fault, useless):
                    raise fault from wrong
            self._endpoints.pop(0)
            self._say(f"{fault.message}; going on with {self.there}")


def _fault(here: Mapping[str, Any], wrong: WrongAnswer) -> TargetError:
    from weighbridge.common.credential import redacted  # noqa: PLC0415 - most programs end without a fault

    # A secret is looked for before words are cut.
    words = redacted(wrong.report(here["api"], here["url"]), (here["key"], here["token"] or ""))
    return (EndpointSilent if wrong.answer is None else TargetError)(shortened(words))


def _entries(exchange: Exchange, api: str, listed: Listed, bucket: str = "") -> Iterator[Entry]:
    """A list over a connection. Raises WrongAnswer, with status 404 without such a bucket."""
    operation = {"buckets": "list buckets", "objects": "LIST", "versions": "LIST versions"}[listed]
    answer: HttpAnswer | None = None

    def get(query: str) -> bytes:
        nonlocal answer
        path = f"/{bucket}" if bucket or api == "s3" else ""
        path += f"?{query}" if query else ""
        answer = ask(exchange, operation, "GET", path, (200, 204))
        return answer.body if answer.status == 200 else b""

    try:
        yield from listing(api, listed, get, prefix="" if bucket else "wb-")
    except ValueError as error:
        raise WrongAnswer(operation, f"the list cannot be read: {error}", answer) from error


def _keeps_versions(exchange: Exchange, api: str, bucket: str) -> bool:
    """Whether a bucket keeps versions, or kept some. Raises WrongAnswer."""
    asked = "versions kept"
    if api == "swift":
        said = ask(exchange, asked, "HEAD", f"/{bucket}", (200, 204, _MISSING))
        return "x-versions-enabled" in said.headers
    answer = ask(exchange, asked, "GET", f"/{bucket}?versioning=", (200, *_UNKNOWN))
    if answer.status in _UNKNOWN:
        return False
    try:
        return (plain_xml.parse(answer.body).findtext("{*}Status") or "").strip() in _KEPT
    except ValueError:
        return False


def _judged(
    exchange: Exchange, api: str, bucket: str, made: datetime, told: Told
) -> LeftoverBucket:
    listed: Listed = "versions" if _keeps_versions(exchange, api, bucket) else "objects"
    count, newest = 0, made
    strange: list[str] = []
    for one in _entries(exchange, api, listed, bucket):
        count += 1
        told(count)
        newest = max(newest, _dated(one))
        if not OBJECT.fullmatch(one.name):
            strange.append(one.name)
        if len(strange) == SHOWN:
            break  # it is kept, and its list may have no end
    return LeftoverBucket(bucket, count, newest, tuple(strange))


def _dated(entry: Entry) -> datetime:
    """Its time; an unreadable one counts as now, so that its age deletes nothing."""
    try:
        when = datetime.fromisoformat(entry.when)
    except ValueError:
        return datetime.now(UTC)
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def clear(
    endpoint: Mapping[str, Any],
    bucket: str,
    patience_s: float,
    only: re.Pattern[str] | None = None,
    told: Told = lambda _: None,
) -> int | None:
    """See Sweep.delete. Raises WrongAnswer, also when the bucket is still not empty `patience_s`
    after the last object that had not been deleted before.
    """
    deleted, there, api = _Deleted(), False, endpoint["api"]
    gone: HttpAnswer | None = None
    with exchanging(endpoint, bucket) as exchange:
        # Asked before anything is deleted: what is deleted by name alone there stays, and a marker
        # is added, which would be deleted and counted as well.
        versioned = _keeps_versions(exchange, api, bucket)
        deadline = time.monotonic() + patience_s
        while True:
            page: list[Entry] = []
            try:
                if versioned:
                    page = list(islice(_entries(exchange, api, "versions", bucket), AT_ONCE))
                # s3api may leave the name of an object whose versions are gone.
                page = page or list(islice(_entries(exchange, api, "objects", bucket), AT_ONCE))
            except WrongAnswer as wrong:
                if wrong.answer is None or wrong.answer.status != _MISSING:
                    raise
                return deleted.count if there else None
            there = True
            _refuse_others(page, only)
            fresh = deleted.add(sorted(_delete(endpoint, bucket, page)))
            told(deleted.count)
            if fresh:
                # A container that hears late of deleted objects lists them a while longer.
                deadline = time.monotonic() + patience_s
            taken = gone is not None and gone.status != 409
            gone = ask(exchange, "delete bucket", "DELETE", f"/{bucket}", (200, 204, 404, 409))
            if time.monotonic() > deadline and (taken or gone.status == 409):
                what = f"{len(page)} {'versions' if versioned else 'objects'} in its list"
                what = (
                    "accepted, and it is still there" if taken else f"it is still not empty: {what}"
                )
                raise WrongAnswer("delete bucket", what, gone)
            # It is gone when its list says so: some stores accept what they do not do.
            time.sleep(0 if fresh or not taken else _PAUSE_S)


def _refuse_others(page: Iterable[Entry], only: re.Pattern[str] | None) -> None:
    for one in page:
        if only is not None and not only.fullmatch(one.name):
            what = f"it has someone else's object: {one.name!r}"
            raise WrongAnswer("delete bucket", what, HttpAnswer(200, {}, b""))


class _Deleted:
    """Objects deleted by one clearing: S3 answers 204 again, so a repeated list is no progress."""

    def __init__(self) -> None:
        self.count = 0
        self._known: set[int] = set()
        self._highest = ""

    def add(self, names: Iterable[str]) -> int:
        """Count deleted names; returns how many of them are new."""
        before = self.count
        for name in names:
            mark = hash(name)
            if mark in self._known:
                continue
            if len(self._known) < _REMEMBERED:
                self._known.add(mark)
            elif name <= self._highest:
                continue
            self._highest = max(self._highest, name)
            self.count += 1
        return self.count - before


def _delete(endpoint: Mapping[str, Any], bucket: str, page: Sequence[Entry]) -> list[str]:
    """Delete objects over a few connections; returns the paths that are not known to be absent."""
    objects = [list(versions) for _, versions in groupby(page, lambda one: one.name)]
    shares = [objects[number::PARALLEL] for number in range(min(PARALLEL, len(objects)))]

    def delete(share: Sequence[Sequence[Entry]]) -> list[str]:
        deleted = []
        with exchanging(endpoint, bucket) as exchange:
            # The oldest version first: as long as a newer one is left, none becomes the latest.
            for versions in share:
                for one in versions[::-1]:
                    path = quote(one.name, safe="~/")
                    if one.id:
                        path += f"?{one.query(endpoint['api'])}"
                    answer = ask(exchange, "DELETE", "DELETE", f"/{bucket}/{path}", (200, 204, 404))
                    if answer.status != _MISSING:
                        deleted.append(path)
        return deleted

    with ThreadPoolExecutor(PARALLEL) as pool:
        return [path for paths in pool.map(delete, shares) for path in paths]


def clear_all(order: Mapping[str, Any]) -> dict[str, Any]:
    """Clear every bucket over each API: what was deleted, and what is left and why."""
    deleted: dict[str, int] = {}
    left: dict[str, str] = {}
    for _, endpoints in groupby(order["endpoints"], lambda one: one["api"]):
        sweep = Sweep(list(endpoints))
        for number, bucket in enumerate(order["buckets"]):
            try:
                objects = sweep.delete(bucket, order["patience_s"], only=None)
            except EndpointSilent as silent:
                # Each of the others would take just as long to fail.
                left.update(dict.fromkeys(order["buckets"][number:], silent.message))
                break
            except TargetError as error:
                left[bucket] = error.message
            else:
                if objects is not None:
                    deleted[bucket] = deleted.get(bucket, 0) + objects
    return {"deleted": deleted, "left": left}


def main() -> int:
    """Read the order from stdin, print one JSON line; exit status."""
    sys.stdout.write(json.dumps(clear_all(json.load(sys.stdin))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
