"""S3: listings, and deleting many at once."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from weighbridge.gateways.capabilities.capability import Answer, Unknown, Wrong, capability, works
from weighbridge.gateways.capabilities.s3_session import S3Session, xml
from weighbridge.gateways.capabilities.session import FOLDERS, NAMES, accepted

_MOST_PAGES: Final = 500


@capability("s3", "listing", "List v1, page by page", asks="list_objects until not truncated")
def list_v1(store: S3Session) -> Answer:
    """Every name once; pages may be shorter than asked for."""
    return _complete(_pages(store, "list_objects"), NAMES)


@capability("s3", "listing", "List v2, page by page", asks="list_objects_v2 until not truncated")
def list_v2(store: S3Session) -> Answer:
    """Every name once; pages may be shorter than asked for."""
    return _complete(_pages(store, "list_objects_v2"), NAMES)


@capability("s3", "listing", "List v2 in pages of 100", asks="list_objects_v2, MaxKeys=100")
def list_max_keys(store: S3Session) -> Answer:
    """Every name once, and no page is longer."""
    pages = list(_pages(store, "list_objects_v2", MaxKeys=100))
    longest = max(len(_names(page)) for page in pages)
    if longest > 100:
        raise Wrong(f"a page of {longest} names", status=200)
    return _complete(pages, NAMES)


@capability("s3", "listing", "List v2 with a prefix", asks="list_objects_v2, Prefix=")
def list_prefix(store: S3Session) -> Answer:
    """Names with the prefix, and no other."""
    prefix = f"written-{FOLDERS[2]}-"
    wanted = [name for name in NAMES if name.startswith(prefix)]
    return _complete(_pages(store, "list_objects_v2", Prefix=prefix, MaxKeys=30), wanted)


@capability(
    "s3", "listing", "List v2 with a delimiter", asks="list_objects_v2, Delimiter, MaxKeys=5"
)
def list_delimiter(store: S3Session) -> Answer:
    """Each folder once, over several pages."""
    return _folders(_pages(store, "list_objects_v2", **_BY_FOLDER))


@capability("s3", "listing", "List v1 with a delimiter", asks="list_objects, Delimiter, MaxKeys=5")
def list_v1_delimiter(store: S3Session) -> Answer:
    """Each folder once, over several pages, which NextMarker joins."""
    return _folders(_pages(store, "list_objects", **_BY_FOLDER))


@capability("s3", "listing", "StartAfter", asks="list_objects_v2, StartAfter=")
def list_start_after(store: S3Session) -> Answer:
    """Names behind this one."""
    pages = _pages(store, "list_objects_v2", StartAfter=NAMES[-21])
    return _complete(pages, NAMES[-20:])


@capability("s3", "listing", "Multi-delete by boto3", asks="delete_objects of boto3")
def multi_delete(store: S3Session) -> Answer:
    """Objects are gone; one that was not there is no error. boto3 sends a CRC32."""
    keys = [store.put(b"1"), store.put(b"2")]
    objects = [{"Key": key} for key in (*keys, "object-0")]
    answer = store.ask("delete_objects", Bucket=store.bucket, Delete={"Objects": objects})
    if answer.get("Errors"):
        raise Unknown(f"errors in the answer: {answer['Errors']}", status=200)
    return _gone(store, keys)


@capability("s3", "listing", "Multi-delete with Content-MD5", asks="POST ?delete with Content-MD5")
def multi_delete_md5(store: S3Session) -> Answer:
    """As clients sent it before checksums."""
    keys = [store.put(b"1"), store.put(b"2")]
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    body = f"<Delete>{objects}</Delete>".encode()
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    xml(accepted(store.send("POST", "", "delete", body, {"Content-MD5": digest})))
    return _gone(store, keys)


@capability("s3", "listing", "Multi-delete of 1001 is refused", asks="POST ?delete with 1001 names")
def multi_delete_too_many(store: S3Session) -> Answer:
    """400: 1000 are allowed (S3 API reference, DeleteObjects)."""
    key = store.put(b"1")
    names = [key, *(f"object-{number}" for number in range(10_000, 11_000))]
    objects = "".join(f"<Object><Key>{name}</Key></Object>" for name in names)
    body = f"<Delete>{objects}</Delete>".encode()
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    answer = store.send("POST", "", "delete", body, {"Content-MD5": digest})
    store.refused(answer, key, b"1", "1001 names")
    return works(status=answer.status)


_BY_FOLDER: Final[Mapping[str, Any]] = {"Prefix": "written-", "Delimiter": "-", "MaxKeys": 5}


def _pages(store: S3Session, operation: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    """The pages of a listing of the full bucket, as a client joins them. Raises Wrong."""
    parameters["Bucket"] = store.full_bucket
    for _ in range(_MOST_PAGES):
        page = store.ask(operation, **parameters)
        yield page
        if not page.get("IsTruncated"):
            return
        if operation == "list_objects_v2":
            following = ("ContinuationToken", page.get("NextContinuationToken"))
        else:
            following = ("Marker", page.get("NextMarker") or next(iter(_names(page)[-1:]), ""))
        if not following[1] or parameters.get(following[0]) == following[1]:
            raise Wrong("truncated, but it does not say how to go on", status=200)
        parameters[following[0]] = following[1]
    raise Wrong(f"a listing of more than {_MOST_PAGES} pages", status=200)


def _names(page: Mapping[str, Any]) -> list[str]:
    return [one["Key"] for one in page.get("Contents", ())]


def _complete(pages: Iterator[dict[str, Any]] | Sequence[dict[str, Any]], wanted: Any) -> Answer:
    """Works if the pages have exactly these names, in order. Raises Wrong."""
    found = [_names(page) for page in pages]
    joined = [name for names in found for name in names]
    return complete(joined, wanted, [len(names) for names in found])


def complete(found: Sequence[str], wanted: Sequence[str], sizes: Sequence[int]) -> Answer:
    """Judge the names of a listing; used for both APIs. `sizes`: names of each page."""
    pages = f"pages of {', '.join(map(str, sizes[:6]))}{' ...' if len(sizes) > 6 else ''}"
    if list(found) == list(wanted):
        return works(pages, status=200)
    if len(found) < len(wanted):
        raise Wrong(f"cut short: {len(found)} of {len(wanted)} names; {pages}", status=200)
    raise Wrong(f"not the names that were written: {len(found)}; {pages}", status=200)


def _folders(pages: Iterator[dict[str, Any]]) -> Answer:
    found, sizes = [], []
    for page in pages:
        here = [one["Prefix"] for one in page.get("CommonPrefixes", ())]
        found += [*here, *_names(page)]
        sizes.append(len(here))
    return complete(found, [f"written-{folder}-" for folder in FOLDERS], sizes)


def _gone(store: S3Session, keys: Sequence[str]) -> Answer:
    left = [key for key in keys if store.read(key) is not None]
    if left:
        raise Wrong(f"{len(left)} of {len(keys)} objects can still be read", status=200)
    return works(status=200)
