"""Listings over both APIs, and deleting many at once over S3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weighbridge.common import plain_xml
from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Answer, Unknown, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.session import (
    FOLDERS,
    NAMES,
    S3Session,
    SwiftSession,
    accepted,
)

_MOST_PAGES: Final = 500
_PREFIX: Final = f"written-{FOLDERS[2]}-"
_WITH_PREFIX: Final = tuple(name for name in NAMES if name.startswith(_PREFIX))
_ALL_FOLDERS: Final = tuple(f"written-{folder}-" for folder in FOLDERS)

_s3 = partial(capability, "s3", "listing")
_swift = partial(capability, "swift", "listing")


def _complete(pages: Sequence[Sequence[str]], wanted: Sequence[str]) -> Answer:
    names = [name for page in pages for name in page]
    sizes = f"{', '.join(str(len(page)) for page in pages[:6])}{' ...' if len(pages) > 6 else ''}"
    if names == list(wanted):
        return works(f"pages of {sizes}", status=200)
    if len(names) < len(wanted):
        what = f"cut short: {len(names)} of {len(wanted)} names"
    else:
        what = f"not the names that were written: {len(names)}"
    raise Wrong(f"{what}; pages of {sizes}", status=200)


def _s3_pages(store: S3Session, operation: str, **parameters: Any) -> Iterator[list[str]]:
    parameters["Bucket"] = store.full_bucket
    for _ in range(_MOST_PAGES):
        page = store.ask(operation, **parameters)
        names = [row["Key"] for row in page.get("Contents", ())]
        yield [*(row["Prefix"] for row in page.get("CommonPrefixes", ())), *names]
        if not page.get("IsTruncated"):
            return
        if operation == "list_objects_v2":
            marker, following = "ContinuationToken", page.get("NextContinuationToken")
        else:
            marker, following = "Marker", page.get("NextMarker") or "".join(names[-1:])
        if not following or parameters.get(marker) == following:
            raise Wrong("truncated, but it does not say how to go on", status=200)
        parameters[marker] = following
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages", status=200)


def _s3_listed(
    operation: str,
    parameters: Mapping[str, Any],
    wanted: Sequence[str],
    longest: int | None,
    store: S3Session,
) -> Answer:
    """Each name or folder once; pages may be shorter than asked for, and not longer."""
    pages = list(_s3_pages(store, operation, **parameters))
    if longest is not None and max(map(len, pages)) > longest:
        raise Wrong(f"a page of {max(map(len, pages))} names", status=200)
    return _complete(pages, wanted)


_V1, _V2 = "list_objects", "list_objects_v2"
_FIVE_FOLDERS: Final = {"Prefix": "written-", "Delimiter": "-", "MaxKeys": 5}
S3_LISTINGS: Final = tuple(
    _s3(title, asks, key=f"list-{key}")(
        partial(_s3_listed, operation, parameters, wanted, longest)
    )
    for key, title, asks, operation, parameters, wanted, longest in (
        ("v1", "List v1, page by page", "list_objects until not truncated", _V1, {}, NAMES, None),
        ("v2", "List v2, page by page", "list_objects_v2 until not truncated",
         _V2, {}, NAMES, None),
        ("max-keys", "List v2 in pages of 100", "list_objects_v2, MaxKeys=100",
         _V2, {"MaxKeys": 100}, NAMES, 100),
        ("prefix", "List v2 with a prefix", "list_objects_v2, Prefix=",
         _V2, {"Prefix": _PREFIX, "MaxKeys": 30}, _WITH_PREFIX, None),
        ("delimiter", "List v2 with a delimiter", "list_objects_v2, Delimiter, MaxKeys=5",
         _V2, _FIVE_FOLDERS, _ALL_FOLDERS, None),
        ("v1-delimiter", "List v1 with a delimiter", "list_objects, Delimiter, MaxKeys=5",
         _V1, _FIVE_FOLDERS, _ALL_FOLDERS, None),
        ("start-after", "StartAfter", "list_objects_v2, StartAfter=",
         _V2, {"StartAfter": NAMES[-21]}, NAMES[-20:], None),
    )
)  # fmt: skip


@_s3("Multi-delete by boto3", "delete_objects of boto3")
def _multi_delete(store: S3Session) -> Answer:
    """Objects are gone; one that was not there is no error. boto3 sends a CRC32."""
    keys = [store.put(b"1"), store.put(b"2")]
    objects = [{"Key": key} for key in (*keys, "object-0")]
    answer = store.ask("delete_objects", Bucket=store.bucket, Delete={"Objects": objects})
    if answer.get("Errors"):
        raise Unknown(f"errors in the answer: {answer['Errors']}", status=200)
    return store.gone(keys, 200)


@_s3("Multi-delete with Content-MD5", "POST ?delete with Content-MD5")
def _multi_delete_md5(store: S3Session) -> Answer:
    keys = [store.put(b"1"), store.put(b"2")]
    answer = accepted(_deleted(store, keys))
    try:
        plain_xml.parse(answer.body)
    except ValueError as error:
        raise Unknown(f"its answer is not XML: {error}", status=answer.status) from None
    return store.gone(keys, 200)


@_s3("Multi-delete of 1001 is refused", "POST ?delete with 1001 names")
def _multi_delete_too_many(store: S3Session) -> Answer:
    """400: 1000 are allowed (S3 API reference, DeleteObjects)."""
    key = store.put(b"1")
    answer = _deleted(store, [key, *(f"object-{number}" for number in range(10_000, 11_000))])
    return store.refused(answer, key, b"1", "1001 names")


def _deleted(store: S3Session, keys: Sequence[str]) -> HttpAnswer:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    body = f"<Delete>{objects}</Delete>".encode()
    return store.send("POST", "", "delete", body, {"Content-MD5": checksum("md5", body)})


def _swift_page(store: SwiftSession, query: str) -> list[str]:
    answer = accepted(store.send("GET", "", f"format=json&{query}", bucket=store.full_bucket))
    try:
        page = json.loads(answer.body or b"[]")
        if not isinstance(page, list) or not all(isinstance(row, dict) for row in page):
            raise ValueError("no list of objects")  # noqa: TRY301 - as what cannot be read at all
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its listing cannot be read: {error}", status=answer.status) from None
    return [str(row.get("subdir", row.get("name"))) for row in page]


def _swift_pages(store: SwiftSession, query: str) -> Iterator[list[str]]:
    marker = ""
    for _ in range(_MOST_PAGES):
        names = _swift_page(store, f"{query}&marker={marker}")
        if not names:
            return
        yield names
        if names[-1] <= marker:
            raise Wrong("a page does not begin behind its marker", status=200)
        marker = names[-1]
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages", status=200)


def _swift_joined(query: str, wanted: Sequence[str], store: SwiftSession) -> Answer:
    return _complete(list(_swift_pages(store, query)), wanted)


def _swift_once(query: str, wanted: Sequence[str], store: SwiftSession) -> Answer:
    return _complete([_swift_page(store, query)], wanted)


def _swift_full_pages(store: SwiftSession) -> Answer:
    """A page below its limit means the end: the API has no other sign of it."""
    pages = list(_swift_pages(store, "limit=1000"))
    if pages and len(pages[0]) < 1000:
        raise Wrong(
            f"cut short: {len(pages[0])} names of {len(NAMES)} though limit=1000; go on until "
            "a page is empty",
            status=200,
        )
    return _complete(pages, NAMES)


def _swift_reverse(store: SwiftSession) -> Answer:
    names = _swift_page(store, "reverse=true&limit=20")
    if names == list(NAMES[:20]):
        raise Wrong("ignored: the first names came", status=200)
    return _complete([names], NAMES[:-21:-1])


_BETWEEN: Final = f"marker={NAMES[100]}&end_marker={NAMES[121]}"
SWIFT_LISTINGS: Final = tuple(
    _swift(title, f"GET ?{asks}", key=key)(probe)
    for key, title, asks, probe in (
        ("list-all", "List until a page is empty", "marker=, pages of 1000",
         partial(_swift_joined, "limit=1000", NAMES)),
        ("full-pages", "Pages are full", "limit=1000 of 1300 objects", _swift_full_pages),
        ("list-large", "Limit of 10,000", "limit=10000 of 1300 objects",
         partial(_swift_once, "limit=10000", NAMES)),
        ("list-prefix", "Prefix", "prefix=",
         partial(_swift_joined, f"prefix={_PREFIX}&limit=30", _WITH_PREFIX)),
        ("list-delimiter", "Delimiter", "prefix=&delimiter=",
         partial(_swift_once, "prefix=written-&delimiter=-", _ALL_FOLDERS)),
        ("list-between", "marker and end_marker", "marker=&end_marker=",
         partial(_swift_once, _BETWEEN, NAMES[101:121])),
        ("list-reverse", "reverse", "reverse=true&limit=20", _swift_reverse),
    )
)  # fmt: skip
