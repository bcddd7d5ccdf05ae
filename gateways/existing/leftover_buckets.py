"""Buckets that runs of this suite left on a gateway when they were killed.

Recognised by two things: the bucket's name has the form that runs use (`wb-` and eight hexadecimal
digits, or `wb-check-` and sixteen), and all its objects have names that only drivers of this suite
write. A single other object means that somebody else uses the bucket.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from weighbridge.common import plain_xml
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError
from weighbridge.common.exchange import Exchange, HttpAnswer, WrongAnswer, ask, exchanging
from weighbridge.common.record import Record
from weighbridge.common.tool_output import shortened
from weighbridge.gateways.existing import clear
from weighbridge.gateways.existing.clear import MISSING, keeps_versions, kept_versions

BUCKET: Final = re.compile(r"wb-[0-9a-f]{8}[acgo]?-[a-z0-9-]+-[0-9]+|wb-check-[0-9a-f]{16}")
"""Bucket names of `weighbridge.conductor.clearing` and of the verification of an endpoint."""
OBJECT: Final = re.compile(r"object-[0-9]+|written-[A-Za-z0-9-]*[0-9]|check")
PATIENCE_S: Final = 20.0
"""An empty bucket that cannot be deleted for so long is left."""
SAY_S: Final = 10.0
SHOWN: Final = 3


class LeftoverBucket(Record):
    """A bucket with a name that a run of this suite gave it."""

    api: str
    url: str
    bucket: str
    objects: int
    """How many are in it; where it keeps versions, how many of these; of strange ones a part."""
    newest: datetime
    """When it was created, or its latest object was written."""
    strange: tuple[str, ...] = ()
    """Some object names in it that no run gives; empty: runs of this suite made all of it."""


class EndpointSilent(TargetError):
    """An endpoint does not answer: another one of the same service may."""


def named(endpoint: Endpoint) -> tuple[tuple[str, datetime], ...]:
    """All buckets with such a name and when each was created, sorted. Raises TargetError."""
    # The account's URL has no bucket before the host name.
    given = {**endpoint.model_dump(mode="json"), "addressing": "path"}
    with _reported(endpoint), exchanging(given, "") as exchange:
        return tuple(
            sorted(one for one in _buckets(exchange, endpoint.api) if BUCKET.fullmatch(one[0]))
        )


def content(
    endpoint: Endpoint, bucket: str, made: datetime, say: Callable[[str], None] = lambda _: None
) -> LeftoverBucket | None:
    """What a bucket has; None where its run has deleted it meanwhile. `say` gets how far a long
    list has come. Raises TargetError.
    """
    count, newest = 0, made
    told = reporting(say, f"{bucket}: {{}} objects listed so far")
    strange: list[str] = []
    with _reported(endpoint):
        try:
            with exchanging(endpoint.model_dump(mode="json"), bucket) as exchange:
                of_all = _versions if keeps_versions(exchange, endpoint.api, bucket) else _objects
                for name, written in of_all(exchange, endpoint.api, bucket):
                    count += 1
                    told(count)
                    newest = max(newest, written)
                    strange += [] if OBJECT.fullmatch(name) else [name]
                    if len(strange) == SHOWN:
                        break  # it is kept, and its list may have no end
        except WrongAnswer as wrong:
            if wrong.answer is None or wrong.answer.status != MISSING:
                raise
            return None
    return LeftoverBucket(
        api=endpoint.api,
        url=endpoint.url,
        bucket=bucket,
        objects=count,
        newest=newest,
        strange=tuple(strange),
    )


def delete(endpoint: Endpoint, bucket: str, say: Callable[[str], None] = lambda _: None) -> int:
    """Delete a bucket and its objects; returns how many there were. Raises TargetError, also where
    an object of somebody else has come since it was judged.
    """
    given = endpoint.model_dump(mode="json")
    told = reporting(say, f"{bucket}: {{}} objects deleted so far")
    with _reported(endpoint):
        return clear.clear(given, bucket, PATIENCE_S, OBJECT, told) or 0


def reporting(say: Callable[[str], None], text: str) -> Callable[[int], None]:
    """A function that takes counts and says one every SAY_S, at its place in the text."""
    due = time.monotonic() + SAY_S

    def tell(count: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + SAY_S
            say(text.format(f"{count:,}"))

    return tell


@contextmanager
def _reported(endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except WrongAnswer as wrong:
        fault = EndpointSilent if wrong.answer is None else TargetError
        raise fault(shortened(wrong.report(endpoint.api, endpoint.url))) from wrong


def _buckets(exchange: Exchange, api: str) -> Iterator[tuple[str, datetime]]:
    if api == "s3":
        root = _xml(_get(exchange, "list buckets", "/"))
        for one in root.iterfind("./{*}Buckets/{*}Bucket"):
            yield _dated(one.findtext("{*}Name"), one.findtext("{*}CreationDate"))
        return
    yield from _named_pages(exchange, "list containers", "?format=json&limit=1000&prefix=wb-")


def _versions(exchange: Exchange, api: str, bucket: str) -> Iterator[tuple[str, datetime]]:
    for one in kept_versions(exchange, api, bucket):
        yield _dated(one.name, one.when)


def _objects(exchange: Exchange, api: str, bucket: str) -> Iterator[tuple[str, datetime]]:
    if api == "swift":
        yield from _named_pages(exchange, "LIST", f"/{bucket}?format=json&limit=1000")
        return
    token = last = ""
    while True:
        resume = f"&continuation-token={quote(token, safe='')}" if token else ""
        answer = _get(exchange, "LIST", f"/{bucket}?list-type=2&max-keys=1000{resume}")
        root = _xml(answer)
        page = list(root.iterfind("./{*}Contents"))
        for entry in page:
            yield _dated(entry.findtext("{*}Key"), entry.findtext("{*}LastModified"))
        token = root.findtext("./{*}NextContinuationToken") or ""
        if (root.findtext("./{*}IsTruncated") or "") != "true" or not token:
            return
        last = _onward("LIST", last, [entry.findtext("{*}Key") or "" for entry in page], answer)


def _named_pages(exchange: Exchange, operation: str, path: str) -> Iterator[tuple[str, datetime]]:
    after = ""
    while True:
        answer = _get(exchange, operation, f"{path}&marker={quote(after, safe='')}")
        page = _json(answer)
        if not page:
            return
        for entry in page:
            yield _dated(entry.get("name"), entry.get("last_modified"))
        after = _onward(operation, after, [str(entry["name"]) for entry in page], answer)


def _onward(operation: str, after: str, names: Sequence[str], answer: HttpAnswer) -> str:
    """The last name of a page. Raises WrongAnswer where it does not lead on: a list that repeats a
    page would never end.
    """
    if max(names, default="") <= after:
        raise WrongAnswer(operation, f"its list does not go on after {after[:100]!r}", answer)
    return max(names)


def _get(exchange: Exchange, operation: str, path: str) -> HttpAnswer:
    return ask(exchange, operation, "GET", path, (200, 204))


def _xml(answer: HttpAnswer) -> Any:
    try:
        return plain_xml.parse(answer.body)
    except ValueError as error:
        raise WrongAnswer("LIST", f"the list cannot be read: {error}", answer) from error


def _json(answer: HttpAnswer) -> Sequence[Mapping[str, Any]]:
    import json  # noqa: PLC0415 - Swift's lists alone

    try:
        found = json.loads(answer.body or b"[]")
        if not isinstance(found, list) or not all(
            isinstance(one, dict) and isinstance(one.get("name"), str) for one in found
        ):
            raise ValueError("no list of names")  # noqa: TRY301 - reported like the other faults
    except (ValueError, RecursionError) as error:
        raise WrongAnswer("LIST", f"the list cannot be read: {error}", answer) from error
    return found


def _dated(name: str | None, when: str | None) -> tuple[str, datetime]:
    """A name and its time; an unreadable time counts as now, so that its age deletes nothing."""
    try:
        found = datetime.fromisoformat(when or "")
    except ValueError:
        return name or "", datetime.now(UTC)
    return name or "", found if found.tzinfo is not None else found.replace(tzinfo=UTC)


Found = TypeVar("Found")


class Sweep:
    """Several endpoints are of one service: what one does not answer the next one is asked.

    `say` is told each that is given up while there are others. Methods raise TargetError, and
    EndpointSilent when the last endpoint does not answer.
    """

    def __init__(self, endpoint: Endpoint, say: Callable[[str], None]) -> None:
        self._endpoints = list(endpoint.each())
        self._say = say

    @property
    def there(self) -> str:
        here = self._endpoints[0]
        return f"{here.api} {here.storage_url or here.url}"

    def named(self) -> tuple[tuple[str, datetime], ...]:
        """See leftover_buckets.named. An endpoint that lists no buckets is of no use at all."""
        return self._asked(named, TargetError)

    def content(self, bucket: str, made: datetime) -> LeftoverBucket | None:
        return self._asked(lambda here: content(here, bucket, made, self._say), EndpointSilent)

    def delete(self, bucket: str) -> int:
        return self._asked(lambda here: delete(here, bucket, self._say), EndpointSilent)

    def _asked(self, act: Callable[[Endpoint], Found], useless: type[TargetError]) -> Found:
        while True:
            try:
                return act(self._endpoints[0])
            except useless as error:
                if len(self._endpoints) == 1:
                    raise
                self._endpoints.pop(0)
                self._say(f"{error.message}; going on with {self.there}")
