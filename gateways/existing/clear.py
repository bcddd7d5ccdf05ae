"""Delete buckets with their objects, for runs whose driver could not do it.

As a program (`python -m weighbridge.gateways.existing.clear`, on the client host): reads
`{"endpoints": [...], "buckets": [...], "patience_s": s}` from stdin, prints one JSON line,
`{"deleted": {bucket: objects}, "left": {bucket: reason}}`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from weighbridge.gateways.exchange import WrongAnswer, ask, exchanging
from weighbridge.gateways.verify import listed

PARALLEL = 8
_PAUSE_S = 0.2
_PAGE = {"s3": "list-type=2&max-keys=1000", "swift": "format=json&limit=1000"}


def clear(endpoint: Mapping[str, Any], bucket: str, patience_s: float) -> int | None:
    """Delete a bucket and its objects; returns the number of objects, or None without such a
    bucket.

    Raises WrongAnswer when it cannot be deleted, or is still not empty `patience_s` after its last
    object was deleted.
    """
    deleted, there = 0, False
    with exchanging(endpoint, bucket) as exchange:
        deadline = time.monotonic() + patience_s
        while True:
            page = ask(
                exchange, "LIST", "GET", f"/{bucket}?{_PAGE[endpoint['api']]}", (200, 204, 404)
            )
            if page.status == 404:
                return deleted if there else None
            there = True
            names = listed(page, endpoint["api"])
            fresh = _delete(endpoint, bucket, names)
            if fresh:
                # A container that hears late of deleted objects lists them a while longer.
                deadline = time.monotonic() + patience_s
            deleted += fresh
            gone = ask(exchange, "delete bucket", "DELETE", f"/{bucket}", (200, 204, 404, 409))
            if gone.status != 409:
                return deleted
            if time.monotonic() > deadline:
                raise WrongAnswer(
                    "delete bucket", f"it stays non-empty: {len(names)} objects in its list", gone
                )
            time.sleep(0 if fresh else _PAUSE_S)


def _delete(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> int:
    """Delete objects over a few connections; returns how many existed."""
    shares = [names[number::PARALLEL] for number in range(PARALLEL) if names[number::PARALLEL]]
    with ThreadPoolExecutor(PARALLEL) as pool:
        return sum(pool.map(lambda share: _delete_share(endpoint, bucket, share), shares))


def _delete_share(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> int:
    deleted = 0
    with exchanging(endpoint, bucket) as exchange:
        for name in names:
            answer = ask(
                exchange, "DELETE", "DELETE", f"/{bucket}/{quote(name, safe='~/')}", (200, 204, 404)
            )
            deleted += answer.status != 404
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
