import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import VerificationFailed
from weighbridge.gateways.verify import verify
from weighbridge.topologies.fake import FakeHost


class Store(http.server.BaseHTTPRequestHandler):
    """An in-memory store whose answers can be made wrong."""

    protocol_version = "HTTP/1.1"
    objects: ClassVar[dict[str, bytes]] = {}
    lie: ClassVar[str] = ""
    busy: ClassVar[int] = 0
    late: ClassVar[int] = 0
    seen: ClassVar[list[str]] = []

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        pass

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.seen.append(f"{self.command} {status}")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/auth/v1.0":
            right = (self.headers["X-Auth-User"], self.headers["X-Auth-Key"]) == ("u:v", "k")
            host = "store.invalid" if self.lie == "elsewhere" else self.headers["Host"]
            url = f"http://{host}/v1/AUTH_u"
            if right:
                self.answer(200, b"", {"X-Storage-Url": url, "X-Auth-Token": "t"})
            else:
                self.answer(401, b"wrong key")
        elif "/v1/" in self.path and self.headers["X-Auth-Token"] != "t":
            self.answer(401)
        elif "?" in self.path:
            self.list()
        elif self.path not in self.objects:
            self.answer(404, b"no such object")
        else:
            body = self.objects[self.path]
            etag = hashlib.md5(b"other" if self.lie == "etag" else body).hexdigest()
            if self.lie == "content" and self.command == "GET":
                body = body[:-1] + bytes([body[-1] ^ 1])
            if self.lie == "short" and self.command == "GET":
                body = body[:100]
            if self.lie == "unavailable":
                self.answer(503, b"slow down " * 100)
            else:
                self.answer(200, body, {"ETag": f'"{etag}"'})

    def list(self) -> None:
        bucket, _, query = self.path.partition("?")
        names = [
            path.removeprefix(f"{bucket}/")
            for path in self.objects
            if path.startswith(f"{bucket}/")
        ]
        if self.lie == "unlisted" or type(self).late > 0:
            type(self).late -= 1
            names = []
        if "list-type" in query:
            keys = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names)
            space = "http://s3.amazonaws.com/doc/2006-03-01/"
            self.answer(
                200, f"<ListBucketResult xmlns='{space}'>{keys}</ListBucketResult>".encode()
            )
        else:
            self.answer(200, json.dumps([{"name": name} for name in names]).encode())

    do_HEAD = do_GET  # noqa: N815 - the name is the base class's

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.objects[self.path] = body
        self.answer(200, b"", {"ETag": hashlib.md5(body).hexdigest()})

    def do_DELETE(self) -> None:
        if self.path.count("/") == (3 if "/v1/" in self.path else 1) and type(self).busy > 0:
            type(self).busy -= 1
            self.answer(409, b"not empty yet")
            return
        if self.lie != "undead":
            self.objects.pop(self.path, None)
        self.answer(204)


@pytest.fixture
def store() -> Iterator[str]:
    Store.objects, Store.lie, Store.busy, Store.late, Store.seen = {}, "", 0, 0, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FakeHost]:
    host = FakeHost("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def swift(url: str, key: str = "k") -> Endpoint:
    return Endpoint(api="swift", url=f"{url}/auth/v1.0", user="u:v", key=SecretStr(key))


def s3(url: str) -> Endpoint:
    return Endpoint(api="s3", url=url, user="u", key=SecretStr("k"))


def test_every_operation_is_checked_over_every_api_and_nothing_is_left(
    store: str, client: FakeHost
) -> None:
    checks = verify(client, [swift(store), s3(store)])
    made, gone = ("make bucket", "PUT", "HEAD", "GET", "LIST"), ("DELETE", "GET after DELETE")
    operations = (*made, *gone, "delete bucket")
    assert [(check.api, check.operation) for check in checks] == [
        (api, one) for api in ("swift", "s3") for one in operations
    ]
    assert Store.objects == {}


@pytest.mark.parametrize(
    ("lie", "operation", "what"),
    [
        ("content", "GET", "content differs from what was written, first at byte 65535"),
        ("etag", "HEAD", "ETag"),
        ("short", "GET", "100 bytes, but 65536 were written"),
        ("unlisted", "LIST", "the names []"),
        ("undead", "GET after DELETE", "404 was expected (status 200)"),
        ("unavailable", "HEAD", "200 was expected (status 503)"),
    ],
)
@pytest.mark.parametrize("endpoint", [swift, s3])
def test_wrong_answers_are_found(
    store: str,
    client: FakeHost,
    endpoint: Callable[[str], Endpoint],
    lie: str,
    operation: str,
    what: str,
) -> None:
    Store.lie = lie
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [endpoint(store)], listed_within_s=0.2)
    assert f" {operation} at {store}" in failure.value.message
    assert what in failure.value.message


def test_only_the_start_of_a_wrong_body_is_shown(store: str, client: FakeHost) -> None:
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [swift(store, key="another")])
    assert (
        failure.value.message
        == f"swift auth at {store}/auth/v1.0: 200 or 204 was expected (status 401)\nwrong key"
    )
    Store.lie = "undead"
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [s3(store)])
    assert len(failure.value.message.split("\n", 1)[1]) <= 300


def test_a_null_target_is_checked_only_by_length(store: str, client: FakeHost) -> None:
    Store.lie = "content"
    verify(client, [s3(store)], stores_bodies=False)
    Store.lie = "short"
    with pytest.raises(VerificationFailed, match="100 bytes"):
        verify(client, [s3(store)], stores_bodies=False)


def test_deleting_a_bucket_is_retried_while_it_still_lists_a_deleted_object(
    store: str, client: FakeHost
) -> None:
    Store.busy = 3
    verify(client, [swift(store)])
    assert Store.seen.count("DELETE 409") == 3


@pytest.mark.parametrize("endpoint", [swift, s3])
def test_listing_is_retried_until_a_new_object_appears(
    store: str, client: FakeHost, endpoint: Callable[[str], Endpoint]
) -> None:
    Store.late = 2
    checks = verify(client, [endpoint(store)])
    assert [check.operation for check in checks].count("LIST") == 1
    assert Store.late == 0


def test_a_given_token_is_used_at_its_storage_url_without_auth(
    store: str, client: FakeHost
) -> None:
    given = Endpoint(
        api="swift", url=f"{store}/v1/AUTH_u", user="", key=SecretStr(""), token=SecretStr("t")
    )
    assert len(verify(client, [given], bucket="mine")) == 8
    made, gone = ["PUT 200"] * 2 + ["HEAD 200"] + ["GET 200"] * 2, ["DELETE 204"]
    assert Store.seen == [*made, *gone, "GET 404", *gone]
    with pytest.raises(VerificationFailed, match=r"swift HEAD at .* \(status 401\)"):
        verify(client, [given.model_copy(update={"token": SecretStr("old")})])


def test_a_configured_storage_url_replaces_the_one_from_auth(store: str, client: FakeHost) -> None:
    Store.lie = "elsewhere"
    with pytest.raises(VerificationFailed, match="its name does not resolve"):
        verify(client, [swift(store)])
    assert verify(client, [swift(store).model_copy(update={"storage_url": f"{store}/v1/AUTH_u"})])


def test_a_bucket_is_created_in_the_region_of_its_endpoint(store: str, client: FakeHost) -> None:
    Store.lie = "unlisted"
    with pytest.raises(VerificationFailed, match="LIST"):
        verify(
            client,
            [s3(store).model_copy(update={"region": "eu-west-1"})],
            bucket="mine",
            listed_within_s=0,
        )
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in Store.objects["/mine"]


def test_a_refused_connection_is_a_wrong_answer(client: FakeHost) -> None:
    with pytest.raises(
        VerificationFailed, match=r"swift connect at .*: no answer: ConnectionRefusedError"
    ):
        verify(client, [swift("http://127.0.0.1:9")])
