"""Buckets that keep versions are cleared of all of them, and found with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection

from lying_store import lying_store
from null_process import KEY, null_process, s3_client
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import exchanging
from weighbridge.gateways.existing import clear, leftover_buckets
from weighbridge.gateways.existing.clear import keeps_versions

BUCKET = "wb-01234567-w-0"


@contextmanager
def null() -> Iterator[str]:
    with null_process(user="weigh:er", key=KEY) as (_, url):
        yield url


def endpoint(api: Any, url: str) -> Endpoint:
    url += "/auth/v1.0" if api == "swift" else ""
    return Endpoint(api=api, url=url, user="weigh:er", key=SecretStr(KEY))


def fill(url: str, *names: str) -> Any:
    """Put each name twice and delete it, in a bucket that keeps versions."""
    client = s3_client(url, "weigh:er", KEY)
    client.create_bucket(Bucket=BUCKET)
    on = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=on)
    for name in names:
        client.put_object(Bucket=BUCKET, Key=name, Body=b"1")
        client.put_object(Bucket=BUCKET, Key=name, Body=b"2")
        client.delete_object(Bucket=BUCKET, Key=name)
    return client


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_bucket_of_nothing_but_earlier_versions_is_found_and_deleted(api: str) -> None:
    with null() as url:
        client = fill(url, "object-0000000000", "written-00001-0000-00000-0000000000")
        assert client.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
        where = endpoint("s3", url)
        if api == "swift":
            # Its account is the same, and there the container keeps versions, too.
            where = endpoint("swift", url)
            connection = Connection(where.url, "weigh:er", KEY)
            connection.put_container(BUCKET)
            connection.post_container(BUCKET, {"X-Versions-Enabled": "true"})
            connection.put_object(BUCKET, "object-0000000000", b"3")
            connection.delete_object(BUCKET, "object-0000000000")
            connection.close()
        (found,) = leftover_buckets.left(where)
        assert (found.bucket, found.strange) == (BUCKET, ())
        assert found.objects >= 2
        assert leftover_buckets.delete(where, BUCKET) == found.objects
        assert leftover_buckets.left(where) == ()


def test_more_versions_than_are_deleted_at_once_are_all_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clear, "_VERSIONS", 7)
    with null() as url:
        fill(url, *(f"object-{index:010}" for index in range(12)))
        given = endpoint("s3", url).model_dump(mode="json") | {"key": KEY}
        assert clear.clear(given, BUCKET, 5.0) == 36
        assert clear.clear(given, BUCKET, 5.0) is None


def test_an_earlier_version_of_somebody_elses_object_is_seen() -> None:
    with null() as url:
        fill(url, "object-0000000000", "holiday.jpg")
        (found,) = leftover_buckets.left(endpoint("s3", url))
        assert (found.objects, found.strange) == (6, ("holiday.jpg",) * 3)


def test_a_store_that_answers_anything_to_a_question_about_versions_keeps_none() -> None:
    with lying_store() as url:
        given = endpoint("s3", url).model_dump(mode="json") | {"key": KEY}
        with exchanging(given, "b") as exchange:
            assert not keeps_versions(exchange, "s3", "b")
