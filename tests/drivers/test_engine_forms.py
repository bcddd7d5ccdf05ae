"""Forms of the engine, as browsers post them: what is in them, and what answers are taken for."""

from __future__ import annotations

import base64
import email.parser
import email.policy
import hmac
import json
import re
import socket
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.drivers.conftest import SEED, Served, shape, until
from tests.drivers.good_answers import MD5, answer, of_api, workload_of
from weighbridge.drivers.engine import _native

Make = Callable[..., Any]
VALID_S = 3600


def parts(head: bytes, body: bytes) -> list[tuple[str, str | None, bytes]]:
    """Field name, name of the file and content of each part, as Python's own parser reads them."""
    kind = re.search(rb"Content-Type: [^\r]+\r\n", head)
    assert kind is not None
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    message = parser.parsebytes(kind[0] + b"\r\n" + body)
    found = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found.append((str(name), part.get_filename(), content))
    return found


def posted(
    scripted: Make, bench: Make, api: str, size: int, **keys: Any
) -> list[tuple[bytes, bytes]]:
    def respond(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("201 Created" if api == "swift" else "204 No Content"))
        return True

    served: Served = scripted(respond)
    work = shape(operations={"write-form": 1.0}, size=size)
    engine = bench(served, work, **{**of_api(api), **keys})
    engine.start(1)
    until(lambda: len(served.asked) >= 3, "requests")
    engine.engine.stop(5.0)
    assert engine.progress["errors"] == {}
    return list(zip(served.asked, served.bodies, strict=True))[:3]


@pytest.mark.parametrize("size", [0, 1000, 300_000])
@pytest.mark.parametrize("token", ["", "tok/en="])
def test_a_policy_is_signed_as_botocore_does_and_lets_in_this_object_alone(
    scripted: Make, bench: Make, token: str, size: int
) -> None:
    keys = {"access_key": "AK+/=", "secret_key": "SK", "region": "eu-west-1", "token": token}
    auth = S3SigV4Auth(Credentials("AK+/=", "SK", token or None), "s3", "eu-west-1")
    for index, (head, body) in enumerate(posted(scripted, bench, "s3", size, **keys)):
        assert head.startswith(b"POST /wb-w-%d HTTP/1.1\r\n" % (index % 2))
        assert b"authorization" not in head.lower()
        *fields, (last, _, content) = parts(head, body)
        assert (last, content) == ("file", _native.content(SEED, size, 0, size))
        sent = {name: value.decode() for name, _, value in fields}
        assert sent["key"] == _native.written_name(1, 0, 0, index)
        policy = json.loads(base64.b64decode(sent["policy"]))
        request = AWSRequest("POST", "http://store/")
        request.context["timestamp"] = sent["x-amz-date"]
        assert auth.signature(sent["policy"], request) == sent["x-amz-signature"]
        day = sent["x-amz-date"][:8]
        assert sent["x-amz-credential"] == f"AK+/=/{day}/eu-west-1/s3/aws4_request"
        assert sent.get("x-amz-security-token", "") == token
        said = {"bucket": f"wb-w-{index % 2}"} | {
            name: value for name, value in sent.items() if name not in ("policy", "x-amz-signature")
        }
        conditions = policy["conditions"]
        assert ["content-length-range", 0, size] in conditions
        assert [one for one in conditions if isinstance(one, dict)] == [
            {name: value} for name, value in said.items()
        ]
        left_s = datetime.fromisoformat(policy["expiration"]).timestamp() - time.time()
        assert VALID_S - 60 < left_s <= VALID_S


@pytest.mark.parametrize("size", [0, 1000, 300_000])
def test_over_swift_a_signature_lets_in_one_file_of_this_size_below_the_path(
    scripted: Make, bench: Make, size: int
) -> None:
    for index, (head, body) in enumerate(posted(scripted, bench, "swift", size)):
        assert b"x-auth-token" not in head.lower()
        path = head.split(b" ")[1].decode()
        assert head.startswith(b"POST /v1/AUTH_test/wb-w-")
        *fields, (_, file, content) = parts(head, body)
        assert content == _native.content(SEED, size, 0, size)
        sent = {name: value.decode() for name, _, value in fields}
        assert (sent["max_file_size"], sent["max_file_count"]) == (str(size), "1")
        assert VALID_S - 60 < int(sent["expires"]) - time.time() <= VALID_S
        text = f"{path}\n\n{size}\n1\n{sent['expires']}".encode()
        assert sent["signature"] == hmac.new(b"k", text, "sha1").hexdigest()
        name = _native.written_name(1, 0, 0, index)
        assert f"{path}{file}" == f"/v1/AUTH_test/wb-w-{index % 2}/{name}"


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_form_that_writes_a_name_is_deleted_by_that_name(
    scripted: Make, bench: Make, api: str
) -> None:
    def respond(connection: socket.socket, head: bytes) -> bool:
        status = "201 Created" if api == "swift" and head.startswith(b"POST") else "204 No Content"
        connection.sendall(answer(status))
        return True

    served: Served = scripted(respond)
    engine = bench(served, workload_of("write-form"), **of_api(api))
    engine.start(1)
    until(lambda: engine.progress["done"] >= 3, "forms")
    engine.engine.stop(5.0)
    written = [head for head in served.asked if head.startswith(b"POST")]
    engine.engine.delete("written", 1)
    assert engine.finish()["errors"] == {}
    deleted = {head.split(b" ")[1] for head in served.asked if head.startswith(b"DELETE")}
    base = b"/v1/AUTH_test" if api == "swift" else b""
    names = [_native.written_name(1, 0, 0, at).encode() for at in range(len(written))]
    assert deleted == {base + b"/wb-w-0/" + name for name in names}


def test_forms_of_swift_need_a_key_and_others_are_refused_what_they_cannot_be(bench: Make) -> None:
    work = shape(operations={"write-form": 1.0})
    with pytest.raises(ValueError, match="write-form: forms need a `temp_url`"):
        bench(Served(1), work, api="swift", base_path="/v1/AUTH_test")
    with pytest.raises(ValueError, match="write-form is signed in one way only"):
        bench(Served(1), {**work, "signing": {"payload": "signed"}})
    with pytest.raises(ValueError, match="write-form is sent without it only"):
        bench(Served(1), {**work, "encryption": "sse-c"})


HOSTILE = [
    ("s3", answer("200 OK"), "http-200"),
    ("s3", answer("201 Created", b"<PostResponse/>"), "http-201"),
    ("s3", answer("200 OK", b"<ListBucketResult></ListBucketResult>"), "http-200"),
    ("s3", answer("303 See Other", b"", "Location: http://evil/"), "http-303"),
    ("s3", answer("204 No Content", b"", f'ETag: "{"0" * 32}"'), "wrong-etag"),
    ("s3", answer("204 No Content", b"", f"ETag: {MD5[::-1]}"), "wrong-etag"),
    (
        "s3",
        answer("400 Bad Request", b"<Error><Code>MalformedPOSTRequest</Code></Error>"),
        "http-400",
    ),
    ("s3", answer("405 Method Not Allowed"), "http-405"),
    ("s3", answer("411 Length Required"), "http-411"),
    ("swift", answer("204 No Content"), "http-204"),
    ("swift", answer("202 Accepted"), "http-202"),
    ("swift", answer("206 Partial Content", b"201 Created"), "http-206"),
    ("swift", answer("303 See Other", b"", "Location: /?status=201"), "http-303"),
    ("swift", answer("400 Bad Request", b"FormPost: invalid starting boundary"), "http-400"),
    ("swift", answer("401 Unauthorized", b"FormPost: Invalid Signature"), "http-401"),
    ("swift", answer("413 Request Entity Too Large"), "http-413"),
    (
        "swift",
        answer("201 Created", b"<?xml version='1.0'?><Error><Code>No</Code></Error>"),
        "error-body",
    ),
]
"""Beside what any request may be answered with (`test_engine_results.ANY`)."""


@pytest.mark.parametrize(("api", "sent", "error"), HOSTILE)
def test_another_answer_than_that_to_a_form_is_a_failure(
    scripted: Make, bench: Make, api: str, sent: bytes, error: str
) -> None:
    def respond(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(sent)
        return True

    engine = bench(scripted(respond), workload_of("write-form"), **of_api(api))
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["failed"] >= 2, "failures")
    engine.engine.close_window()
    tally = engine.snapshot()["by"]["write-form"]
    assert set(engine.progress["errors"]) == set(tally["errors"]) == {error}
    assert (tally["count"], tally["bytes"], tally["latency"]) == (0, 0, None)
