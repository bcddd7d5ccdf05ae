"""Delete buckets with all versions of their objects, for runs whose driver could not do it.

As a program (`python -m weighbridge.gateways.existing.clear`, on the client host): reads
`{"endpoints": [...], "buckets": [...], "patience_s": s}` from stdin, prints one JSON line,
`{"deleted": {bucket: objects}, "left": {bucket: reason}}`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby, islice
from typing import Any
from urllib.parse import quote

from weighbridge.common import plain_xml
from weighbridge.common.exchange import Exchange, HttpAnswer, WrongAnswer, ask, exchanging
from weighbridge.common.object_versions import ObjectVersion, versions_of
from weighbridge.gateways.verify import listed

_KEPT = ("Enabled", "Suspended")
MISSING = 404
_UNKNOWN = range(400, 502)
"""What a store without versions may answer to a question about them."""


def keeps_versions(exchange: Exchange, api: str, bucket: str) -> bool:
    """Whether a bucket keeps versions, or kept some. Raises WrongAnswer."""
    asked = "versions kept"
    if api == "swift":
        said = ask(exchange, asked, "HEAD", f"/{bucket}", (200, 204, MISSING))
        return "x-versions-enabled" in said.headers
    answer = ask(exchange, asked, "GET", f"/{bucket}?versioning=", (200, *_UNKNOWN))
    if answer.status in _UNKNOWN:
        return False
    try:
        return (plain_xml.parse(answer.body).findtext("{*}Status") or "").strip() in _KEPT
    except ValueError:
        return False


def kept_versions(exchange: Exchange, api: str, bucket: str) -> Iterator[ObjectVersion]:
    """All versions of a bucket's objects; none without such a bucket. Raises WrongAnswer."""
    asked = "LIST versions"
    last: HttpAnswer | None = None

    def get(query: str) -> bytes:
        nonlocal last
        last = ask(exchange, asked, "GET", f"/{bucket}?{query}", (200, 204, MISSING))
        return last.body if last.status == 200 else b""

    try:
        yield from versions_of(api, get)
    except ValueError as error:
        raise WrongAnswer(asked, f"the list cannot be read: {error}", last) from error


PARALLEL = 8
_PAUSE_S = 0.2
_REMEMBERED = 500_000
"""So many deleted names are remembered; beyond them only names in ascending order are new."""
_VERSIONS = 1000
"""So many are deleted before the bucket is tried again."""
_PAGE = {"s3": "list-type=2&max-keys=1000", "swift": "format=json&limit=1000"}


def clear(
    endpoint: Mapping[str, Any],
    bucket: str,
    patience_s: float,
    only: re.Pattern[str] | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> int | None:
    """Delete a bucket and its objects; returns the number of objects, and of versions if it keeps
    any, or None without such a bucket. `told` gets the number so far.

    Raises WrongAnswer when it cannot be deleted, is still not empty `patience_s` after the last
    object that had not been deleted before, or has an object of another name than `only`: then
    nothing of that page is deleted.
    """
    deleted, there, api = _Deleted(), False, endpoint["api"]
    versioned: bool | None = None
    gone: HttpAnswer | None = None
    with exchanging(endpoint, bucket) as exchange:
        deadline = time.monotonic() + patience_s
        while True:
            page = ask(exchange, "LIST", "GET", f"/{bucket}?{_PAGE[api]}", (200, 204, 404))
            if page.status == 404:
                return deleted.count if there else None
            there = True
            if versioned is None:
                # Asked before anything is deleted: what is deleted by name alone there stays, and
                # a marker is added, which would be deleted and counted as well.
                versioned = keeps_versions(exchange, api, bucket)
            paths: list[str] = []
            if versioned:
                found = tuple(islice(kept_versions(exchange, api, bucket), _VERSIONS))
                _refuse_others([one.name for one in found], only, page)
                # The oldest of them first: as long as a newer one is left, none becomes the latest.
                paths = [f"{_path(one.name)}?{one.query(api)}" for one in found][::-1]
            _refuse_others(listed(page, api), only, page)
            # s3api may leave the name of an object whose versions are gone.
            paths = paths or [_path(name) for name in listed(page, api)]
            fresh = deleted.add(sorted(_delete(endpoint, bucket, paths)))
            told(deleted.count)
            if fresh:
                # A container that hears late of deleted objects lists them a while longer.
                deadline = time.monotonic() + patience_s
            taken = gone is not None and gone.status != 409
            gone = ask(exchange, "delete bucket", "DELETE", f"/{bucket}", (200, 204, 404, 409))
            if time.monotonic() > deadline and (taken or gone.status == 409):
                what = f"{len(paths)} {'versions' if versioned else 'objects'} in its list"
                what = (
                    "accepted, and it is still there" if taken else f"it is still not empty: {what}"
                )
                raise WrongAnswer("delete bucket", what, gone)
            # It is gone when its list says so: some stores accept what they do not do.
            time.sleep(0 if fresh or not taken else _PAUSE_S)


def _refuse_others(names: Iterable[str], only: re.Pattern[str] | None, page: HttpAnswer) -> None:
    other = None if only is None else next((one for one in names if not only.fullmatch(one)), None)
    if other is not None:
        raise WrongAnswer("delete bucket", f"it has someone else's object: {other!r}", page)


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


def _path(name: str) -> str:
    return quote(name, safe="~/")


def _delete(endpoint: Mapping[str, Any], bucket: str, paths: Sequence[str]) -> list[str]:
    """Delete objects over a few connections, the versions of one one after the other; returns those
    that are not known to be absent.
    """
    objects = [list(some) for _, some in groupby(paths, lambda path: path.partition("?")[0])]
    count = min(PARALLEL, len(objects))
    shares = [list(chain.from_iterable(objects[number::PARALLEL])) for number in range(count)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        done = pool.map(lambda share: _delete_share(endpoint, bucket, share), shares)
        return [path for share in done for path in share]


def _delete_share(endpoint: Mapping[str, Any], bucket: str, paths: Sequence[str]) -> list[str]:
    deleted = []
    with exchanging(endpoint, bucket) as exchange:
        for path in paths:
            answer = ask(exchange, "DELETE", "DELETE", f"/{bucket}/{path}", (200, 204, 404))
            if answer.status != 404:
                deleted.append(path)
    return deleted


def clear_all(order: Mapping[str, Any]) -> dict[str, Any]:
    """Clear every bucket over every endpoint: what was deleted, and what is left and why."""
    deleted: dict[str, int] = {}
    left: dict[str, str] = {}
    for endpoint in order["endpoints"]:
        for number, bucket in enumerate(order["buckets"]):
            try:
                objects = clear(endpoint, bucket, order["patience_s"])
            except WrongAnswer as wrong:
                left[bucket] = why = wrong.report(endpoint["api"], endpoint["url"])
                if wrong.answer is None:
                    # No answer: each of the others would take just as long to fail.
                    left.update(dict.fromkeys(order["buckets"][number:], why))
                    break
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
