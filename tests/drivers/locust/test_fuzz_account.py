"""Malformed listings of S3 and Swift."""

from __future__ import annotations

import http.client
from typing import Final, cast

import pytest
from pydantic import SecretStr

from tests.mutation import Dice, cases, tried, wrong_bytes, wrong_json, wrong_text
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account, AccountAnswer

S3: Final = Endpoint(api="s3", url="http://10.0.0.1:8080", user="me", key=SecretStr("planted"))
SWIFT: Final = Endpoint(
    api="swift", url="http://10.0.0.1:8080/v1/AUTH_a", token=SecretStr("planted")
)
XML: Final = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<Name>wb-a-0</Name>
<KeyCount>2</KeyCount>
<IsTruncated>false</IsTruncated>
<Contents><Key>o-1</Key><Size>4096</Size></Contents>
<Contents><Key>o-2&amp;x</Key><Size>4096</Size></Contents>
</ListBucketResult>
"""
JSON: Final = [
    {"name": "o-1", "bytes": 4096, "hash": "x", "content_type": "a/b"},
    {"name": "o-2", "bytes": 4096},
]


@pytest.mark.parametrize(
    ("target", "body", "why"),
    [
        (SWIFT, b'[{"name": "\\ud800"}]', ""),
        # Deleting it would delete the bucket.
        (SWIFT, b'[{"name": ""}]', ": it has objects without a name"),
        (S3, XML.replace("o-1", "").encode(), ": it has objects without a name"),
    ],
)
def test_a_listing_with_a_name_that_cannot_be_sent_is_an_error(
    monkeypatch: pytest.MonkeyPatch, target: Endpoint, body: bytes, why: str
) -> None:
    account = Account(target, 1.0)
    page = AccountAnswer(200, http.client.HTTPMessage(), body)
    monkeypatch.setattr(account, "_request", lambda *_, **__: page)
    with pytest.raises(DriverError, match=f"the list of objects of wb-a-0 cannot be read{why}"):
        list(account.objects("wb-a-0"))


@cases
def test_any_listing_gives_names_or_a_driver_error(dice: Dice) -> None:
    target = dice.choice((S3, SWIFT))
    if target is SWIFT:
        body = wrong_json(dice, JSON)
    else:
        body = (
            wrong_bytes(dice, XML.encode())
            if dice.random() < 0.5
            else wrong_text(dice, XML).encode(errors="replace")
        )
    account = Account(target, 1.0)
    pages = [
        AccountAnswer(200, http.client.HTTPMessage(), body),
        AccountAnswer(404, http.client.HTTPMessage(), b""),
    ]
    with pytest.MonkeyPatch.context() as patch:
        # After a page with more to come, the next is requested by its last name, which must be
        # sendable.
        patch.setattr(account, "_request", lambda *_, **__: pages.pop(0))
        found = tried(
            lambda: list(account.objects("wb-a-0")),
            DriverError,
            saying="objects of wb-a-0 cannot be",
        )
    assert all(isinstance(cast("object", name), str) and name.encode() for name in found or ())
