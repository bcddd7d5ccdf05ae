"""Delete buckets with their objects, for runs whose driver could not do it.

As a program (`python -m weighbridge.gateways.existing.clear`, on the client host): reads
`{"endpoints": [...], "buckets": [...], "patience_s": s}` from stdin, prints one JSON line,
`{"deleted": {bucket: objects}, "left": {bucket: reason}}`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from weighbridge.gateways.exchange import WrongAnswer, ask, exchanging
from weighbridge.gateways.verify import listed

PARALLEL = 8
_PAUSE_S = 0.2
_REMEMBERED = 500_000
"""So many deleted names are remembered; beyond them only names in ascending order are new."""
_PAGE = {"s3": "list-type=2&max-keys=1000", "swift": "format=json&limit=1000"}


def clear(endpoint: Mapping[str, Any], bucket: str, patience_s: float) -> int | None:
    """Delete a bucket and its objects; returns the number of objects, or None without such a
    bucket.

    Raises WrongAnswer when it cannot be deleted, or is still not empty `patience_s` after the last
    object that had not been deleted before.
    """
    deleted, there = _Deleted(), False
    with exchanging(endpoint, bucket) as exchange:
        deadline = time.monotonic() + patience_s
        while True:
            page = ask(
                exchange, "LIST", "GET", f"/{bucket}?{_PAGE[endpoint['api']]}", (200, 204, 404)
            )
            if page.status == 404:
                return deleted.count if there else None
            there = True
            names = listed(page, endpoint["api"])
            fresh = deleted.add(_delete(endpoint, bucket, names))
            if fresh:
                # A container that hears late of deleted objects lists them a while longer.
                deadline = time.monotonic() + patience_s
            gone = ask(exchange, "delete bucket", "DELETE", f"/{bucket}", (200, 204, 404, 409))
            if gone.status != 409:
                return deleted.count
            if time.monotonic() > deadline:
                raise WrongAnswer(
                    "delete bucket", f"it stays non-empty: {len(names)} objects in its list", gone
                )
            time.sleep(0 if fresh else _PAUSE_S)


class _Deleted:
    """The objects that one clearing has deleted.

    S3 answers 204 to the deletion of what is not there, too: a list that names the same objects
    again and again is no progress.
    """

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


def _delete(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> list[str]:
    """Delete objects over a few connections; returns those that are not known to be absent."""
    shares = [names[number::PARALLEL] for number in range(PARALLEL) if names[number::PARALLEL]]
    with ThreadPoolExecutor(PARALLEL) as pool:
        done = pool.map(lambda share: _delete_share(endpoint, bucket, share), shares)
        return [name for share in done for name in share]


def _delete_share(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> list[str]:
    deleted = []
    with exchanging(endpoint, bucket) as exchange:
        for name in names:
            answer = ask(
                exchange, "DELETE", "DELETE", f"/{bucket}/{quote(name, safe='~/')}", (200, 204, 404)
            )
            if answer.status != 404:
                deleted.append(name)
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
