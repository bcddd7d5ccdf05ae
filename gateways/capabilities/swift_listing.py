"""Swift: listings of containers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability
from weighbridge.gateways.capabilities.s3_listing import complete
from weighbridge.gateways.capabilities.session import FOLDERS, NAMES, accepted
from weighbridge.gateways.capabilities.swift_session import SwiftSession, entries

_MOST_PAGES: Final = 500


@capability("swift", "listing", "List until a page is empty", asks="GET ?marker=, pages of 1000")
def list_all(store: SwiftSession) -> Answer:
    """Every name once."""
    pages = list(_pages(store, f"limit={_LIMIT}"))
    return _complete(pages, NAMES)


@capability("swift", "listing", "Pages are full", asks="GET ?limit=1000 of 1300 objects")
def full_pages(store: SwiftSession) -> Answer:
    """A page below its limit means the end: the API has no other sign of it."""
    pages = list(_pages(store, f"limit={_LIMIT}"))
    if pages and len(pages[0]) < _LIMIT:
        raise Wrong(
            f"cut short: {len(pages[0])} names of {len(NAMES)} though limit={_LIMIT}; go on until "
            "a page is empty",
            status=200,
        )
    return _complete(pages, NAMES)


@capability("swift", "listing", "Limit of 10,000", asks="GET ?limit=10000 of 1300 objects")
def list_large(store: SwiftSession) -> Answer:
    """All in one page, as Swift allows by default."""
    found = _names(entries(_get(store, "limit=10000")))
    return complete(found, NAMES, [len(found)])


@capability("swift", "listing", "Prefix", asks="GET ?prefix=")
def list_prefix(store: SwiftSession) -> Answer:
    """Names with the prefix, and no other."""
    prefix = f"written-{FOLDERS[2]}-"
    pages = list(_pages(store, f"prefix={prefix}&limit=30"))
    wanted = [name for name in NAMES if name.startswith(prefix)]
    return _complete(pages, wanted)


@capability("swift", "listing", "Delimiter", asks="GET ?prefix=&delimiter=")
def list_delimiter(store: SwiftSession) -> Answer:
    """Each folder once."""
    page = entries(_get(store, "prefix=written-&delimiter=-"))
    found = [str(one.get("subdir")) for one in page]
    return complete(found, [f"written-{folder}-" for folder in FOLDERS], [len(found)])


@capability("swift", "listing", "marker and end_marker", asks="GET ?marker=&end_marker=")
def list_between(store: SwiftSession) -> Answer:
    """Names between the two, without them."""
    query = f"marker={NAMES[100]}&end_marker={NAMES[121]}"
    found = _names(entries(_get(store, query)))
    return complete(found, NAMES[101:121], [len(found)])


@capability("swift", "listing", "reverse", asks="GET ?reverse=true&limit=20")
def list_reverse(store: SwiftSession) -> Answer:
    """The last names first."""
    found = _names(entries(_get(store, "reverse=true&limit=20")))
    if found == list(NAMES[:20]):
        raise Wrong("ignored: the first names came", status=200)
    return complete(found, NAMES[:-21:-1], [len(found)])


_LIMIT: Final = 1000


def _complete(pages: list[list[str]], wanted: Sequence[str]) -> Answer:
    return complete([name for names in pages for name in names], wanted, list(map(len, pages)))


def _get(store: SwiftSession, query: str) -> Any:
    return accepted(store.send("GET", "", f"format=json&{query}", bucket=store.full_bucket))


def _names(page: list[dict[str, Any]]) -> list[str]:
    return [str(one.get("name")) for one in page]


def _pages(store: SwiftSession, query: str) -> Iterator[list[str]]:
    """Pages of names until one is empty. Raises Wrong."""
    marker = ""
    for _ in range(_MOST_PAGES):
        names = _names(entries(_get(store, f"{query}&marker={marker}")))
        if not names:
            return
        yield names
        if names[-1] <= marker:
            raise Wrong("a page does not begin behind its marker", status=200)
        marker = names[-1]
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages", status=200)
