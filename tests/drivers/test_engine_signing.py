"""How the engine signs requests and frames bodies, as botocore's signers and bodies have it."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import botocore.auth
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpchecksum import AwsChunkedWrapper, BaseChecksum

from tests.drivers.conftest import SEED, Served, always, shape, until
from tests.drivers.good_answers import GOOD, PART, REQUESTS, SIZE, answer, of_api, well, workload_of
from tests.drivers.test_engine import make_buckets
from weighbridge.drivers.engine import _native
from weighbridge.gateways.capabilities import session

Make = Callable[..., Any]
checksum_of = functools.cache(session.checksum)
"""CRC64 of 3 MiB takes seconds in Python."""
KEYS = ("AK+/=", "SK")
TOKEN = "t~o/k=+%"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NOTHING = hashlib.sha256(b"").hexdigest()

CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
VARIANTS: list[dict[str, Any]] = [
    {},
    {"checksum": "crc32"},
    {"checksum": "crc64nvme"},
    {"payload": "signed"},
    {"payload": "signed", "checksum": "crc32"},
    {"payload": "chunks"},
    {"payload": "chunks", "checksum": "crc32"},
    {"payload": "chunks", "checksum": "crc64nvme"},
    {"payload": "trailer", "checksum": "crc32"},
    {"payload": "trailer", "checksum": "crc64nvme"},
]
SIZES = [0, 1000, 65536, 3 * 2**20 + 17]


class Asked:
    """One request as the server got it."""

    def __init__(self, head: bytes, body: bytes, port: int) -> None:
        lines = head.decode().split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        fields = (line.partition(":") for line in lines[1:] if line)
        self.headers = {name.lower(): value.strip() for name, _, value in fields}
        self.url = f"http://127.0.0.1:{port}{self.path}"
        self.body = body

    @property
    def signature(self) -> str:
        return self.headers["authorization"].rpartition("Signature=")[2]

    def signed_by(self, auth: S3SigV4Auth) -> AWSRequest:
        """The request as botocore signs it, at the time at which it was signed."""
        signed = self.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        fields = {name: self.headers[name] for name in signed.split(";")}
        assert {name for name in self.headers if name.startswith("x-amz-")} <= {*fields}
        request = AWSRequest(self.method, self.url, headers=fields)
        request.context["timestamp"] = self.headers["x-amz-date"]
        canonical = auth.canonical_request(request)
        assert auth.signature(auth.string_to_sign(request, canonical), request) == self.signature
        return request


def signer() -> S3SigV4Auth:
    return S3SigV4Auth(Credentials(*KEYS, TOKEN), "s3", "eu-west-1")


def asked(scripted: Make, bench: Make, signing: Any, count: int = 3, **work: Any) -> list[Asked]:
    served: Served = scripted(always(OK))
    engine = bench(
        served,
        shape(signing=signing, **work),
        access_key=KEYS[0],
        secret_key=KEYS[1],
        token=TOKEN,
        region="eu-west-1",
    )
    engine.start(1)
    until(lambda: len(served.asked) >= count, "requests")
    engine.engine.stop(5.0)
    pairs = zip(served.asked, served.bodies, strict=True)
    return [Asked(head, body, served.port) for head, body in pairs][:count]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("signing", VARIANTS, ids=str)
@pytest.mark.long
def test_writes_are_signed_and_framed_as_botocore_does(
    scripted: Make, bench: Make, signing: dict[str, Any], size: int
) -> None:
    content, auth = _native.content(SEED, size, 0, size), signer()
    work = {"operations": {"write": 1.0}, "size": size}
    payload, algorithm = signing.get("payload", "unsigned"), signing.get("checksum")
    name = f"x-amz-checksum-{algorithm}"
    value = checksum_of(algorithm, content) if algorithm else None
    for one in asked(scripted, bench, signing, **work):
        request = one.signed_by(auth)
        said = one.headers["x-amz-content-sha256"]
        assert one.headers.get("x-amz-sdk-checksum-algorithm") == (
            algorithm.upper() if algorithm else None
        )
        if payload in ("unsigned", "signed"):
            assert one.body == content
            sha256 = hashlib.sha256(content).hexdigest()
            assert said == (sha256 if payload == "signed" else "UNSIGNED-PAYLOAD")
            assert one.headers.get(name) == value
            assert "content-encoding" not in one.headers
            continue
        assert one.headers["content-encoding"] == "aws-chunked"
        assert one.headers["x-amz-decoded-content-length"] == str(size)
        assert one.headers.get("x-amz-trailer") == (name if algorithm else None)
        assert name not in one.headers
        if payload == "trailer":
            assert said == "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
            assert one.body == botocore_chunks(content, name, value)
        else:
            assert said == (f"{CHUNKS}-TRAILER" if algorithm else CHUNKS)
            assert one.body == signed_chunks(auth, request, one.signature, content, name, value)


def botocore_chunks(content: bytes, name: str, value: str | None) -> bytes:
    class Known(BaseChecksum):  # type: ignore[misc]
        def update(self, chunk: bytes) -> None:
            """Nothing: the value is known."""

        def b64digest(self) -> str | None:
            return value

    wrapper = AwsChunkedWrapper(io.BytesIO(content), checksum_cls=Known, checksum_name=name)
    return bytes(wrapper.read())


def signed_chunks(
    auth: S3SigV4Auth, request: AWSRequest, seed: str, content: bytes, name: str, value: str | None
) -> bytes:
    """The body in chunks that botocore's signer signs, each after the one before."""
    stamp = request.context["timestamp"]
    before, framed = seed, b""

    def sign(kind: str, *parts: str) -> str:
        scope = f"{stamp[:8]}/eu-west-1/s3/aws4_request"
        text = "\n".join((f"AWS4-HMAC-SHA256-{kind}", stamp, scope, before, *parts))
        return str(auth.signature(text, request))

    ends = [*range(0, len(content), 65536), len(content)]
    for chunk in [*(content[a:b] for a, b in pairwise(ends)), b""]:
        before = sign("PAYLOAD", NOTHING, hashlib.sha256(chunk).hexdigest())
        framed += f"{len(chunk):x};chunk-signature={before}\r\n".encode() + chunk
        framed += b"\r\n" if chunk or value is None else b""
    if value is not None:
        line = f"{name}:{value}"
        before = sign("TRAILER", hashlib.sha256(f"{line}\n".encode()).hexdigest())
        framed += f"{line}\r\nx-amz-trailer-signature:{before}\r\n\r\n".encode()
    return framed


@pytest.mark.parametrize("operation", ["read", "list", "delete", "head"])
@pytest.mark.parametrize(
    ("signing", "said"),
    [
        ({}, "UNSIGNED-PAYLOAD"),
        ({"payload": "signed", "checksum": "crc32"}, NOTHING),
        ({"payload": "chunks"}, NOTHING),
        ({"payload": "trailer", "checksum": "crc32"}, "UNSIGNED-PAYLOAD"),
    ],
    ids=str,
)
def test_requests_without_a_body_are_signed_as_such(
    scripted: Make, bench: Make, signing: dict[str, Any], said: str, operation: str
) -> None:
    [one] = asked(scripted, bench, signing, operations={operation: 1.0}, count=1)
    one.signed_by(signer())
    assert one.headers["x-amz-content-sha256"] == said
    assert not {"content-encoding", "x-amz-sdk-checksum-algorithm", "x-amz-trailer"} & {
        *one.headers
    }


@pytest.mark.parametrize("operation", ["read", "write", "list", "delete", "head"])
def test_presigned_urls_are_those_of_botocore(
    scripted: Make, bench: Make, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    [one] = asked(scripted, bench, {"auth": "query"}, operations={operation: 1.0}, count=1)
    assert not [name for name in one.headers if name.startswith(("x-amz-", "authorization"))]
    plain, _, query = one.url.partition("?")
    fields = dict(part.split("=", 1) for part in query.split("&"))
    own = "&".join(f"{key}={fields[key]}" for key in fields if not key.startswith("X-Amz-"))
    at = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: at)
    request = AWSRequest(one.method, plain + (f"?{own}" if own else ""), headers={})
    credentials = Credentials(*KEYS, TOKEN)
    S3SigV4QueryAuth(credentials, "s3", "eu-west-1", expires=3600).add_auth(request)
    wanted = dict(part.split("=", 1) for part in request.url.partition("?")[2].split("&"))
    assert fields == wanted


def test_anonymous_requests_have_nothing_of_a_signature(scripted: Make, bench: Make) -> None:
    for operation in ("read", "write"):
        [one] = asked(scripted, bench, {"auth": "none"}, operations={operation: 1.0}, count=1)
        assert "?" not in one.url
        assert not [name for name in one.headers if name.startswith(("x-amz-", "authorization"))]
    assert one.body == _native.content(SEED, 1000, 0, 1000)


@pytest.mark.parametrize("signing", [{}, {"payload": "chunks", "checksum": "crc32"}], ids=str)
@pytest.mark.parametrize("operation", ["write", "read", "read-range", "head", "list", "delete"])
@pytest.mark.parametrize("encryption", ["none", "sse-c", "sse-s3"])
def test_what_asks_for_encryption_is_signed_and_goes_with_content(
    scripted: Make, bench: Make, encryption: str, operation: str, signing: dict[str, Any]
) -> None:
    key = hashlib.sha256(f"weighbridge sse-c {SEED}".encode()).digest()
    customer = {
        "x-amz-server-side-encryption-customer-algorithm": "AES256",
        "x-amz-server-side-encryption-customer-key": base64.b64encode(key).decode(),
        "x-amz-server-side-encryption-customer-key-md5": base64.b64encode(
            hashlib.md5(key, usedforsecurity=False).digest()
        ).decode(),
    }
    wanted = {
        "none": {},
        "sse-c": {} if operation in ("list", "delete") else customer,
        "sse-s3": {"x-amz-server-side-encryption": "AES256"} if operation == "write" else {},
    }[encryption]
    work = {"encryption": encryption, "range": {"bytes": 10, "at": "start"}}
    [one] = asked(scripted, bench, signing, operations={operation: 1.0}, count=1, **work)
    one.signed_by(signer())
    asks = {name: one.headers[name] for name in one.headers if "encryption" in name}
    assert asks == wanted


@pytest.mark.parametrize(
    ("work", "fault"),
    [
        ({"encryption": "sse-kms"}, "unknown variant"),
        *(
            ({"encryption": "sse-c", "operations": {one: 1.0}}, f"{one} is sent without it only")
            for one in ("copy", "read-if-match", "update-metadata", "write-if-none-match")
        ),
        ({"encryption": "sse-c", "signing": {"auth": "query"}}, "needs `auth: header`"),
    ],
)
def test_encryption_that_cannot_be_asked_for_is_refused(
    bench: Make, work: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        bench(Served(1), shape(**work))


@pytest.mark.parametrize(
    "signing",
    [
        {"payload": "trailer"},
        {"payload": "chunks", "auth": "query"},
        {"checksum": "crc32", "auth": "none"},
        {"checksum": "md5"},
        {"payload": "unsigned", "more": 1},
        "sometimes",
        None,
    ],
)
def test_signatures_that_do_not_exist_are_refused(bench: Make, signing: Any) -> None:
    with pytest.raises(ValueError, match=r"signing|engine config"):
        bench(Served(1), shape(signing=signing))


def test_other_apis_are_refused_signatures(bench: Make) -> None:
    with pytest.raises(ValueError, match="only S3 requests are signed"):
        bench(Served(1), shape(signing={"payload": "signed"}), api="swift")
    with pytest.raises(ValueError, match="only S3 requests ask for it"):
        bench(Served(1), shape(encryption="sse-c"), api="swift")


def verifying(spoil: bool) -> Callable[[bytes], bytes]:
    """What a store answers that verifies a trailer of CRC32; `spoil`: a byte of the body changed on
    its way.
    """

    def answer(body: bytes) -> bytes:
        length, _, rest = body.partition(b"\r\n")
        data = bytearray(rest[: int(length, 16)])
        data[7] ^= spoil
        end = rest[len(data) :].decode()
        value = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
        if end == f"\r\n0\r\nx-amz-checksum-crc32:{value}\r\n\r\n":
            return OK
        text = b"<?xml version='1.0'?><Error><Code>BadDigest</Code></Error>"
        return b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)

    return answer


@pytest.mark.parametrize("spoil", [False, True])
def test_a_store_that_finds_another_checksum_is_an_error(
    scripted: Make, bench: Make, spoil: bool
) -> None:
    verify = verifying(spoil)

    def respond(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(verify(served.bodies[-1]))
        return True

    served: Served = scripted(respond)
    signing = {"payload": "trailer", "checksum": "crc32"}
    engine = bench(served, shape(signing=signing, operations={"write": 1.0}))
    engine.start(1)
    until(lambda: engine.progress["done"] + engine.progress["failed"] >= 3, "writes")
    engine.engine.stop(5.0)
    progress = engine.progress
    assert (progress["done"] == 0, progress["failed"] == 0) == (spoil, not spoil)
    if spoil:
        assert set(progress["errors"]) == {"http-400"}
        assert "BadDigest" in json.dumps(progress["last_error"])


@pytest.mark.parametrize(
    "signing", [{}, *VARIANTS[5:], {"auth": "query"}, {"auth": "none"}], ids=str
)
def test_prepared_objects_are_what_was_meant_however_they_are_sent(
    null: Make, bench: Make, signing: dict[str, Any]
) -> None:
    served = null()
    make_buckets(served)
    engine = bench(served, shape(signing=signing, size=200_000, verify=True))
    assert engine.prepare()["errors"] == {}
    engine.start(2)
    snapshot = engine.window(lambda since: since["done"] + since["failed"] >= 20)
    assert snapshot["by"]["read"]["errors"] == {}


# Uploads whose parts are sent at once: what is outstanding together, and what is counted of the
# parts and of the object.


class Gathered:
    """Answers to uploads: parts only when as many as can be are there."""

    def __init__(self, api: str, at_once: int) -> None:
        self.api = api
        self.together = threading.Barrier(at_once, timeout=10)

    def answer(self, head: str) -> bytes:
        if "PUT" in head and "multipart-manifest" not in head:
            with suppress(threading.BrokenBarrierError):
                self.together.wait()
        return GOOD["write-multipart"](self.api, head)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_parts_are_sent_at_once_and_the_object_takes_as_long_as_all_of_them(
    scripted: Make, bench: Make, api: str, at_once: int
) -> None:
    gathered = Gathered(api, at_once)

    def slow(connection: socket.socket, head: bytes) -> bool:
        time.sleep(0.005)
        connection.sendall(gathered.answer(head.decode()))
        return True

    multipart = {"part": PART, "at_once": at_once}
    workload = workload_of("write-multipart", verify=True, multipart=multipart)
    served = scripted(slow)
    engine = bench(served, workload, **of_api(api))
    engine.start(1)
    by = engine.window(lambda since: since["done"] >= 4)["by"]
    assert engine.progress["errors"] == {}
    requests = REQUESTS["write-multipart"][api]
    count, parts = by["write-multipart"]["count"], by["write-part"]["count"]
    # Those of the uploads that began before the window and that did not end in it.
    assert 3 * (count - 1) <= parts <= 3 * (count + 2)
    assert by["write-multipart"]["bytes"] == SIZE * count
    assert by["write-multipart"]["min_us"] >= (requests - at_once + 1) * 5000
    assert 5000 <= by["write-part"]["min_us"] < requests * 5000
    # Whatever was outstanding when the window closed is counted of the object, once.
    one = by["write-multipart"]
    assert one["outstanding_us"] == (one["in_flight_max_us"] or 0)
    gathered.together.abort()  # the last upload may be sent by fewer
    assert engine.engine.stop(5.0) == 0
    finishing = [head for head in served.asked if b"uploadId=" in head and b"POST" in head]
    assert api == "swift" or len(finishing) >= count


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_upload_whose_part_fails_ends_when_its_other_parts_have(
    scripted: Make, bench: Make, api: str
) -> None:
    second = "partNumber=2" if api == "s3" else "/00000002 "

    def refusing(connection: socket.socket, head: bytes) -> bool:
        text = head.decode()
        refused = answer("503 Slow Down", b"busy")
        connection.sendall(refused if second in text else GOOD["write-multipart"](api, text))
        return True

    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": 2})
    engine = bench(scripted(refusing), workload, **of_api(api))
    by = engine.alone("failed", 5, leaves=True)["by"]
    assert set(engine.progress["errors"]) == {"http-503"}
    assert by["write-multipart"]["count"] == 0
    assert by["write-multipart"]["latency"] is None
    objects, parts = (by[name]["errors"]["http-503"] for name in ("write-multipart", "write-part"))
    assert 4 <= objects <= parts <= objects + 1
    assert by["write-part"]["count"] >= objects


def test_a_worker_that_is_taken_away_in_an_upload_ends_with_its_helpers(
    scripted: Make, bench: Make
) -> None:
    release = threading.Event()

    def held(connection: socket.socket, head: bytes) -> bool:
        if b"partNumber" in head:
            release.wait(10)
        connection.sendall(GOOD["write-multipart"]("s3", head.decode()))
        return True

    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": 3})
    served = scripted(held)
    engine = bench(served, workload)
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: sum(b"partNumber" in head for head in served.asked) == 3, "three parts")
    engine.engine.close_window()
    by = engine.snapshot()["by"]
    assert by["write-part"]["outstanding_us"] > 0 < by["write-multipart"]["outstanding_us"]
    engine.engine.remove_worker(0)
    release.set()
    assert engine.finish()["done"] == 1
    assert engine.engine.stop(5.0) == 0


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_objects_that_are_read_by_part_are_prepared_in_parts_and_begun_again_after_a_failure(
    scripted: Make, bench: Make, api: str
) -> None:
    second = "partNumber=2" if api == "s3" else "/00000002 "
    refused: set[str] = set()

    def flaky(connection: socket.socket, head: bytes) -> bool:
        text = head.decode()
        path = text.split("?")[0].split("/0000")[0]
        if second in text and path not in refused:
            refused.add(path)
            connection.sendall(answer("503 Slow Down", b"busy"))
        else:
            connection.sendall(GOOD["write-multipart"](api, text))
        return True

    served = scripted(flaky)
    engine = bench(served, workload_of("read-part"), **of_api(api))
    progress = engine.prepare(2)
    assert (progress["done"], progress["failed"], progress["errors"]) == (2, 2, {"http-503": 2})
    lines = [head.split(b"\r\n")[0] for head in served.asked]
    for name in (b"object-0000000000", b"object-0000000001"):
        puts = [line for line in lines if name in line and line.startswith(b"PUT")]
        begins = [line for line in lines if name in line and b"?uploads" in line]
        manifests = [line for line in puts if b"multipart-manifest=put" in line]
        # Two parts, of which the second failed, and all three again.
        assert len(puts) - len(manifests) == 5
        assert (len(begins), len(manifests)) == ((2, 0) if api == "s3" else (0, 1))


@pytest.mark.parametrize("encryption", ["none", "sse-c"])
@pytest.mark.parametrize("size", [3_000_000, 1000])
def test_every_part_is_compared_with_its_etag_unless_a_customers_key_encrypts_it(
    scripted: Make, bench: Make, size: int, encryption: str
) -> None:
    def wrong(connection: socket.socket, head: bytes) -> bool:
        other = always(answer("200 OK", b"", f'ETag: "{"b" * 32}"'))
        return (other if head.startswith(b"PUT") else well("write-multipart"))(connection, head)

    parts = {"part": size // 2 + 1}
    workload = workload_of("write-multipart", encryption=encryption, multipart=parts, size=size)
    engine = bench(scripted(wrong), workload)
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] + engine.progress["failed"] >= 2, "uploads")
    engine.engine.close_window()
    assert set(engine.progress["errors"]) <= {"bad-result", "wrong-etag"}
    assert ("wrong-etag" in engine.progress["errors"]) == (encryption == "none")
