"""Lists over both APIs: an account's buckets, a bucket's objects, or their versions; what servers
answer is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from weighbridge.common import plain_xml

PAGE = 1000
"""Entries that are asked for at a time."""

Listed = Literal["buckets", "objects", "versions"]


@dataclass(frozen=True)
class Entry:
    """A bucket, an object, a version of one, or a marker that it was deleted."""

    name: str
    id: str = ""
    """Of a version."""
    when: str = ""
    """When it was written, as the server said it; "" if it did not."""

    def query(self, api: str) -> str:
        """What a request for this version ends with."""
        return f"{'versionId' if api == 's3' else 'version-id'}={quote(self.id, safe='')}"


class Page(NamedTuple):
    """Entries, whether there are more, and what S3 calls the next page, if it does."""

    entries: list[Entry]
    more: bool
    token: str = ""


_S3_ROWS: Final = {
    "buckets": (("Bucket",), "Name", "CreationDate"),
    "objects": (("Contents",), "Key", "LastModified"),
    "versions": (("Version", "DeleteMarker"), "Key", "LastModified"),
}
"""Elements that are entries, and where their names and times are."""


def listing(
    api: str, listed: Listed, get: Callable[[str], bytes], prefix: str = ""
) -> Iterator[Entry]:
    """All entries, page by page: by name, and of each name the newest version first.

    `get` asks with a query, whose keys are sorted, and returns the answer's body; b"" ends the
    list. Only Swift chooses buckets by a prefix. Raises ValueError when a page cannot be read, or
    leads back: a list that repeats a page would never end.
    """
    after, token = Entry(""), ""
    ids: set[str] = set()
    """Of the name that the last pages ended with."""
    while body := get(_query(api, listed, after, token, prefix)):
        page, more, token = read_page(api, listed, body)
        yield from page
        if not more:
            return
        last = page[-1]
        ids = ids if last.name == after.name else set()
        if last.name < after.name or last.id in ids:
            raise ValueError(f"its list does not go on after {after.name[:100]!r}")
        ids.add(last.id)
        after = last


def _query(api: str, listed: Listed, after: Entry, token: str, prefix: str) -> str:
    if api == "swift":
        place = {"marker": after.name, "prefix": prefix, "version_marker": after.id}
        fields = {"format": "json", "limit": str(PAGE), **place}
    elif listed == "buckets":
        return ""
    elif listed == "objects":
        place = {"continuation-token": token, "list-type": "2", "max-keys": str(PAGE)}
        fields = {**place, "start-after": "" if token else after.name}
    else:
        fields = {"key-marker": after.name, "max-keys": str(PAGE), "version-id-marker": after.id}
    parts = []
    for key, value in fields.items():
        if value:
            parts.append(f"{key}={quote(value, safe='')}")
    if listed == "versions":
        parts.append("versions=")
    return "&".join(parts)


def read_page(api: str, listed: Listed, body: bytes) -> Page:
    """What an answer has. Raises ValueError."""
    if api == "s3":
        return _read_s3(listed, body)
    try:
        page = [
            _entry(listed, row["name"], row.get("version_id"), row.get("last_modified"))
            for row in json.loads(body or b"[]")
        ]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a list of {listed}: {error!r}") from error
    # Pages may be shorter than asked for: only an empty one is the last.
    return Page(page, more=bool(page))


def _read_s3(listed: Listed, body: bytes) -> Page:
    root = plain_xml.parse(body)
    if listed == "versions" and root.tag.rpartition("}")[2] != "ListVersionsResult":
        raise ValueError("not a list of versions")
    rows, name, when = _S3_ROWS[listed]
    keys = (f"{{*}}{name}", "{*}VersionId", f"{{*}}{when}")
    page = [
        _entry(listed, *map(row.findtext, keys))
        for row in root.iter()
        if row.tag.rpartition("}")[2] in rows
    ]
    more = (root.findtext("{*}IsTruncated") or "").lower() == "true"
    if more and not page:
        raise ValueError(f"a truncated page without {listed}")
    # Versions not as NextVersionIdMarker says: of s3api before 2.38 that is `null`, and the next
    # page would begin with the same name again.
    return Page(page, more, root.findtext("{*}NextContinuationToken") or "")


def _entry(listed: Listed, name: object, number: object, when: object) -> Entry:
    if listed != "versions":
        number = ""
    elif not number:
        raise ValueError("a version without a name or an ID")
    if not (isinstance(name, str) and name and isinstance(number, str)):
        raise ValueError(f"it has {listed} without a name or an ID")
    name.encode()  # fails for lone surrogates, which no request can contain
    number.encode()
    return Entry(name, number, when if isinstance(when, str) else "")
