"""Listings of versions, as servers give them over both APIs."""

from __future__ import annotations

import json

import pytest

from weighbridge.common.object_versions import ObjectVersion, versions_of

MARKER = "application/x-deleted;swift_versions_deleted=1"


def xml(inside: str, root: str = "ListVersionsResult") -> bytes:
    return f'<?xml version="1.0"?><{root} xmlns="http://s3/">{inside}</{root}>'.encode()


def entry(kind: str, name: str, version: str) -> str:
    when = "<LastModified>2026-01-01T00:00:00Z</LastModified>"
    return f"<{kind}><Key>{name}</Key><VersionId>{version}</VersionId>{when}</{kind}>"


def test_s3_lists_versions_and_markers_page_by_page_as_it_says() -> None:
    pages = {
        "max-keys=1000&versions=": xml(
            entry("DeleteMarker", "a&amp;/b", "3+")
            + entry("Version", "a&amp;/b", "2")
            + "<IsTruncated>true</IsTruncated><NextKeyMarker>a&amp;/b</NextKeyMarker>"
            "<NextVersionIdMarker>null</NextVersionIdMarker>"
        ),
        "key-marker=a%26%2Fb&max-keys=1000&version-id-marker=2&versions=": xml(
            entry("Version", "c", "null") + "<IsTruncated>false</IsTruncated>"
        ),
    }
    found = list(versions_of("s3", pages.__getitem__))
    when = "2026-01-01T00:00:00Z"
    assert found == [
        ObjectVersion("a&/b", "3+", when),
        ObjectVersion("a&/b", "2", when),
        ObjectVersion("c", "null", when),
    ]
    assert found[0].query("s3") == "versionId=3%2B"


def test_swift_lists_versions_until_a_page_is_empty() -> None:
    first = [
        {"name": "a b", "version_id": "2.5", "content_type": MARKER, "last_modified": "then"},
        {"name": "a b", "version_id": "1.5", "content_type": "text/plain"},
    ]
    pages = {
        "format=json&limit=1000&versions=": json.dumps(first).encode(),
        "format=json&limit=1000&marker=a%20b&version_marker=1.5&versions=": b"[]",
    }
    found = list(versions_of("swift", pages.__getitem__))
    assert found == [ObjectVersion("a b", "2.5", "then"), ObjectVersion("a b", "1.5", "")]
    assert found[0].query("swift") == "version-id=2.5"


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_bucket_that_is_not_there_has_none(api: str) -> None:
    assert list(versions_of(api, lambda _: b"")) == []


@pytest.mark.parametrize(
    ("api", "body", "why"),
    [
        ("s3", xml("", "ListBucketResult"), "not a list of versions"),
        ("s3", b"<a", "XML"),
        ("s3", xml(entry("Version", "", "1")), "without a name or an ID"),
        ("s3", xml(entry("Version", "a", "")), "without a name or an ID"),
        ("s3", xml("<DeleteMarker><Key>a</Key></DeleteMarker>"), "without a name or an ID"),
        ("s3", xml("<IsTruncated>true</IsTruncated>"), "without a version"),
        ("s3", xml("<IsTruncated>true</IsTruncated>" + entry("Version", "a", "1")), "leads back"),
        ("s3", b'<!DOCTYPE a [<!ENTITY e "e">]><a/>', "document type"),
        ("swift", b"{", "Expecting"),
        ("swift", b"{}", None),
        ("swift", b"7", "not a list of versions"),
        ("swift", b'["a"]', "not a list of versions"),
        ("swift", b'[{"version_id": "1"}]', "not a list of versions"),
        ("swift", b'[{"name": "a"}]', "without a name or an ID"),
        ("swift", b'[{"name": "a", "version_id": 1}]', "without a name or an ID"),
        ("swift", b'[{"name": "\\ud800", "version_id": "1"}]', "surrogates"),
        ("swift", b'[{"name": "a", "version_id": "1"}]', "leads back"),
    ],
)
def test_what_is_no_listing_and_what_does_not_go_on_is_refused(
    api: str, body: bytes, why: str | None
) -> None:
    if why is None:
        assert list(versions_of(api, lambda _: body)) == []
        return
    with pytest.raises(ValueError, match=why):
        list(versions_of(api, lambda _: body))


@pytest.mark.parametrize("second", [("a", "2"), ("0", "9")])
def test_pages_that_lead_back_end_with_an_error(second: tuple[str, str]) -> None:
    """A server that goes round would be listed for ever."""
    pages = [("a", "1"), second, ("a", "1")]

    def get(_query: str) -> bytes:
        name, version = pages[0]
        pages.append(pages.pop(0))
        return json.dumps([{"name": name, "version_id": version}]).encode()

    found = versions_of("swift", get)
    with pytest.raises(ValueError, match="leads back"):
        for _, _ in zip(found, range(20), strict=False):
            pass
