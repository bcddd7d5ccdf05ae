"""Hostile answers in place of a bucket's list, for the driver's account and for verification."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.exchange import HttpAnswer, WrongAnswer
from weighbridge.drivers.locust import account
from weighbridge.drivers.locust.account import Account
from weighbridge.gateways.verify import listed

ENTITY = (
    b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    b"<ListBucketResult><Contents><Key>&e;</Key></Contents></ListBucketResult>"
)
DEEP = b"[" * 200_000


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers every GET with its body: complete, without a length, or cut off."""

    body = b""
    way = "complete"

    def do_GET(self) -> None:
        self.send_response(200)
        if self.way != "without length":
            self.send_header("Content-Length", str(len(self.body) + (self.way == "cut off")))
        self.end_headers()
        self.wfile.write(self.body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing."""


@pytest.fixture
def origin() -> Iterator[tuple[str, type[Origin]]]:
    class One(Origin):
        pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), One)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", One
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_list_with_entities_is_refused_by_all_readers_of_lists(
    origin: tuple[str, type[Origin]],
) -> None:
    url, handler = origin
    handler.body = ENTITY
    target = Endpoint(api="s3", url=url, user="u", key=SecretStr("k"))
    with pytest.raises(DriverError, match="a document type or an entity"):
        list(Account(target, 5).objects("b"))
    with pytest.raises(WrongAnswer, match="a document type or an entity"):
        listed(HttpAnswer(200, {}, ENTITY), "s3")


def test_an_endlessly_nested_list_cannot_be_read() -> None:
    with pytest.raises(WrongAnswer, match="cannot be read"):
        listed(HttpAnswer(200, {}, DEEP), "swift")


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("complete", "an answer of 1001 bytes: more than 1000 are not read"),
        ("without length", "an answer of more than 1000 bytes"),
        ("cut off", "1002 bytes"),
    ],
)
def test_an_answer_is_read_to_its_end_but_not_beyond_the_limit(
    origin: tuple[str, type[Origin]], monkeypatch: pytest.MonkeyPatch, way: str, why: str
) -> None:
    url, handler = origin
    handler.body, handler.way = b"x" * 1001, way
    monkeypatch.setattr(account, "LARGEST_ANSWER_BYTES", 1000)
    target = Endpoint(api="s3", url=url, user="u", key=SecretStr("k"))
    with pytest.raises(DriverError, match=why):
        list(Account(target, 5).objects("b"))


def test_an_answer_that_is_cut_off_is_never_taken_for_a_complete_one(
    origin: tuple[str, type[Origin]],
) -> None:
    url, handler = origin
    handler.body, handler.way = b"<ListBucketResult/>", "cut off"
    with pytest.raises(DriverError, match="IncompleteRead"):
        list(Account(Endpoint(api="s3", url=url, user="u", key=SecretStr("k")), 5).objects("b"))
