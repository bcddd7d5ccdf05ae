"""Temporary URLs of Swift's, as the engine signs them."""

from __future__ import annotations

import hmac
import re
import socket
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
import swiftclient

from tests.drivers.conftest import Bench, Served, shape, until

Make = Callable[..., Any]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SWIFT = {"api": "swift", "base_path": "/v1/AUTH_a%3Ab", "token": "TOKEN"}
PRESIGNED = {"auth": "query"}
QUERY = re.compile(r"temp_url_sig=([0-9a-f]+)&temp_url_expires=([0-9]+)")


def key(digest: str = "sha256") -> dict[str, str]:
    return {"key": "fish", "digest": digest}


@pytest.fixture
def served(scripted: Make) -> Served:
    def respond(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(OK)
        return True

    served: Served = scripted(respond)
    return served


def heads(engine: Bench, served: Served) -> list[str]:
    engine.start(1)
    until(lambda: len(served.asked) >= 2, "requests")
    engine.engine.stop(5.0)
    return [head.decode() for head in served.asked]


@pytest.mark.parametrize("digest", ["sha1", "sha256"])
@pytest.mark.parametrize("operation", ["read", "read-range", "write", "delete", "head"])
def test_a_signature_lets_in_one_method_for_one_object_and_no_token_is_sent(
    served: Served, bench: Make, operation: str, digest: str
) -> None:
    work = shape(signing=PRESIGNED, operations={operation: 1.0}, range={"bytes": 10, "at": "start"})
    for head in heads(bench(served, work, **SWIFT, temp_url=key(digest)), served):
        assert "x-auth-token" not in head.lower()
        method, _, rest = head.partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        assert path.startswith("/v1/AUTH_a%3Ab/wb-w-")
        found = QUERY.fullmatch(query)
        assert found is not None, query
        signature, expires = found.groups()
        text = f"{method}\n{expires}\n{urllib.parse.unquote(path)}"
        assert signature == hmac.new(b"fish", text.encode(), digest).hexdigest()
        assert 3590 < int(expires) - time.time() <= 3600


def test_a_renewed_token_is_not_sent_either(served: Served, bench: Make) -> None:
    work = shape(signing=PRESIGNED, operations={"write": 1.0})
    engine = bench(served, work, **SWIFT, temp_url=key())
    engine.engine.renew_keys(("", "", "another"))
    assert not [head for head in heads(engine, served) if "another" in head]


@pytest.mark.parametrize(
    ("work", "given", "fault"),
    [
        ({}, None, "need a `temp_url`"),
        ({}, key("md5"), "unknown variant"),
        ({"operations": {"list": 1.0}}, key(), "of objects: no list"),
        ({"operations": {"list-all": 1.0}}, key(), "of objects: no list-all"),
        ({"operations": {"copy": 1.0}}, key(), "copy is signed in one way"),
    ],
)
def test_temporary_urls_that_cannot_be_are_refused(
    bench: Make, work: dict[str, Any], given: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        bench(Served(1), shape(signing=PRESIGNED, **work), **SWIFT, temp_url=given)


def test_objects_are_prepared_and_read_by_temporary_urls_alone(null: Make, bench: Make) -> None:
    served = null()
    login = swiftclient.Connection(
        authurl=f"{served.url}/auth/v1.0", user="test:tester", key="testing", retries=0
    )
    for number in range(2):
        login.put_container(f"wb-w-{number}")
    own = {"api": "swift", "base_path": "/v1/AUTH_test", "token": "wrong", "temp_url": key()}
    engine = bench(served, shape(signing=PRESIGNED, verify=True), **own)
    assert engine.prepare()["errors"] == {}
    engine.start(2)
    snapshot = engine.window(lambda since: since["done"] + since["failed"] >= 20)
    assert snapshot["by"]["read"]["errors"] == {}
