"""Complete listings of containers, page by page; no server makes them endless."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from weighbridge.common import plain_xml
from weighbridge.drivers.survival.access import Requests
from weighbridge.drivers.survival.connection import NoAnswer

_S3_PAGE: Final = 1000
_SWIFT_PAGE: Final = 10_000
_PAGE_BYTES: Final = 4 * 2**20
"""Much more than a page of our names takes."""
_OTHERS: Final = 10_000
"""So many names that nobody has written are read; more are a listing without an end."""
_PAUSE_S: Final = 1.0
_WORDS: Final = 120


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
    """Which of `wanted` are listed; a page that fails is asked for again until a moment.

    The moment is of CLOCK_MONOTONIC. What was listed before a failure counts as listed.
    """
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
        said = answer.body[:_WORDS].decode(errors="replace")
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
