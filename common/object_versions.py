"""Versions of a bucket's objects over both APIs; what servers answer is checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from weighbridge.common import plain_xml

PAGE = 1000
"""Versions that are asked for at a time."""


@dataclass(frozen=True)
class ObjectVersion:
    """A version of an object, or a marker that it was deleted."""

    name: str
    id: str
    when: str
    """When it was written, as the server said it; "" if it did not."""

    def query(self, api: str) -> str:
        return f"{'versionId' if api == 's3' else 'version-id'}={quote(self.id, safe='')}"


Marker = tuple[str, str]
"""Name and ID after which a page begins; both "": the first one."""


def versions_of(api: str, get: Callable[[str], bytes]) -> Iterator[ObjectVersion]:
    """All versions of a bucket, page by page: by name, and of each name the newest first.

    `get` asks for the bucket with a query, whose keys are sorted, and returns the answer's body;
    b"" ends the listing. Raises ValueError when a page cannot be read or leads back.
    """
    after: Marker = ("", "")
    ids: set[str] = set()
    """Of the name that the last pages ended with."""
    while body := get(_query(api, after)):
        found, further = _read_s3(body) if api == "s3" else _read_swift(body)
        yield from found
        if further is None:
            return
        ids = ids if further[0] == after[0] else set()
        if further[0] < after[0] or further[1] in ids:
            raise ValueError("a page of versions that leads back")
        ids.add(further[1])
        after = further


def _query(api: str, after: Marker) -> str:
    name, version = (quote(part, safe="") for part in after)
    if api == "s3":
        fields = {"key-marker": name, "max-keys": str(PAGE), "version-id-marker": version}
    else:
        fields = {"format": "json", "limit": str(PAGE), "marker": name, "version_marker": version}
    return "&".join(f"{key}={value}" for key, value in fields.items() if value) + "&versions="


def _read_s3(body: bytes) -> tuple[list[ObjectVersion], Marker | None]:
    root = plain_xml.parse(body)
    if root.tag.rpartition("}")[2] != "ListVersionsResult":
        raise ValueError("not a list of versions")
    found = [
        _version(*(one.findtext(f"{{*}}{key}") for key in ("Key", "VersionId", "LastModified")))
        for one in root
        if one.tag.rpartition("}")[2] in ("Version", "DeleteMarker")
    ]
    if (root.findtext("{*}IsTruncated") or "").lower() != "true":
        return found, None
    if not found:
        raise ValueError("a truncated page without a version")
    # Not as NextVersionIdMarker says: of s3api before 2.38 that is `null`, and the next page would
    # begin with the same name again.
    return found, (found[-1].name, found[-1].id)


def _read_swift(body: bytes) -> tuple[list[ObjectVersion], Marker | None]:
    try:
        found = [
            _version(one["name"], one.get("version_id"), one.get("last_modified"))
            for one in json.loads(body)
        ]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a list of versions: {error!r}") from error
    # Pages may be shorter than asked for: only an empty one is the last.
    return found, (found[-1].name, found[-1].id) if found else None


def _version(name: object, number: object, when: object) -> ObjectVersion:
    if not (isinstance(name, str) and name and isinstance(number, str) and number):
        raise ValueError("a version without a name or an ID")
    name.encode()  # fails for lone surrogates, which no request can contain
    number.encode()
    return ObjectVersion(name, number, when if isinstance(when, str) else "")
