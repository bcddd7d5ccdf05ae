"""The null target with independent clients: boto3, python-swiftclient, wrk and plain sockets."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import botocore.exceptions
import pytest
import swiftclient

from null_process import null_command, s3_client
from tests.drivers.conftest import Served
from weighbridge.drivers.engine import _native

Make = Callable[..., Any]


def swift(served: Served, key: str = "testing") -> Any:
    return swiftclient.Connection(
        authurl=f"{served.url}/auth/v1.0", user="test:tester", key=key, retries=0
    )


def code(error: pytest.ExceptionInfo[botocore.exceptions.ClientError]) -> tuple[int, str]:
    response: Any = error.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def test_boto3_gets_what_it_put(null: Make) -> None:
    client = s3_client(null().url)
    client.create_bucket(Bucket="b")
    for size in (0, 1, 65_536):
        body = random.Random(size).randbytes(size)
        put = client.put_object(Bucket="b", Key="a/ü + 100%&<x>", Body=body)
        got = client.get_object(Bucket="b", Key="a/ü + 100%&<x>")
        head = client.head_object(Bucket="b", Key="a/ü + 100%&<x>")
        assert got["Body"].read() == body
        assert got["ETag"] == head["ETag"] == put["ETag"]
        assert head["ContentLength"] == size
    listed = client.list_objects_v2(Bucket="b")["Contents"]
    assert [one["Key"] for one in listed] == ["a/ü + 100%&<x>"]
    client.put_object(Bucket="b", Key="stream", Body=io.BytesIO(b"y" * 100_000))
    assert client.head_object(Bucket="b", Key="stream")["ContentLength"] == 100_000
    assert [one["Name"] for one in client.list_buckets()["Buckets"]] == ["b"]


def test_s3_errors_are_those_of_s3(null: Make) -> None:
    client = s3_client(null().url)
    client.create_bucket(Bucket="b")
    client.put_object(Bucket="b", Key="o", Body=b"x")
    calls: list[tuple[Callable[[], Any], tuple[int, str]]] = [
        (lambda: client.get_object(Bucket="b", Key="none"), (404, "NoSuchKey")),
        (lambda: client.get_object(Bucket="none", Key="o"), (404, "NoSuchBucket")),
        (lambda: client.put_object(Bucket="none", Key="o", Body=b""), (404, "NoSuchBucket")),
        (lambda: client.delete_bucket(Bucket="b"), (409, "BucketNotEmpty")),
        (lambda: client.get_object_tagging(Bucket="b", Key="o"), (501, "NotImplemented")),
    ]
    for call, wanted in calls:
        with pytest.raises(botocore.exceptions.ClientError) as error:
            call()
        assert code(error) == wanted
    client.delete_object(Bucket="b", Key="o")
    client.delete_object(Bucket="b", Key="o")  # S3 allows it
    client.delete_bucket(Bucket="b")
    with pytest.raises(botocore.exceptions.ClientError) as error:
        client.head_bucket(Bucket="b")
    assert code(error)[0] == 404


def test_listings_continue_page_by_page(null: Make) -> None:
    served = null()
    client, connection = s3_client(served.url), swift(served)
    client.create_bucket(Bucket="b")
    connection.put_container("b")
    keys = [f"k{index:03}" for index in range(25)]
    for key in keys:
        client.put_object(Bucket="b", Key=key, Body=b"1")
    paginator = client.get_paginator("list_objects_v2")
    pages = list(paginator.paginate(Bucket="b", PaginationConfig={"PageSize": 10}))
    assert [len(page["Contents"]) for page in pages] == [10, 10, 5]
    assert [one["Key"] for page in pages for one in page["Contents"]] == keys
    prefixed = client.list_objects_v2(Bucket="b", Prefix="k01")["Contents"]
    assert [one["Key"] for one in prefixed] == keys[10:20]
    listed = connection.get_container("b", limit=7, full_listing=True)[1]
    assert [one["name"] for one in listed] == keys
    connection.close()


def test_swiftclient_gets_what_it_put(null: Make) -> None:
    connection = swift(null())
    connection.put_container("c")
    body = random.Random(1).randbytes(65_536)
    etag = connection.put_object("c", "o ü", io.BytesIO(body), content_length=len(body))
    headers, got = connection.get_object("c", "o ü")
    assert (got, headers["etag"].strip('"')) == (body, etag.strip('"'))
    connection.put_object("c", "chunked", iter([b"abc", b"def"]))
    assert connection.get_object("c", "chunked")[1] == b"abcdef"
    assert connection.head_object("c", "chunked")["content-length"] == "6"
    assert connection.head_container("c")["x-container-object-count"] == "2"
    assert [one["name"] for one in connection.get_account()[1]] == ["c"]
    with pytest.raises(swiftclient.ClientException) as error:
        connection.delete_container("c")
    assert error.value.http_status == 409
    for name in ("o ü", "chunked"):
        connection.delete_object("c", name)
    connection.delete_container("c")
    with pytest.raises(swiftclient.ClientException) as error:
        connection.delete_object("c", "o ü")
    assert error.value.http_status == 404
    connection.close()


def test_swift_needs_the_key_and_the_token(null: Make) -> None:
    served = null()
    with pytest.raises(swiftclient.ClientException) as error:
        swift(served, "wrong").get_auth()
    assert error.value.http_status == 401
    url, token = swift(served).get_auth()
    with pytest.raises(swiftclient.ClientException) as error:
        swiftclient.put_container(url, token + "x", "c")
    assert error.value.http_status == 401
    swiftclient.put_container(url, token, "c")


def ask(served: Served, *requests: bytes, until: bytes, cut: int = 1 << 30) -> bytes:
    """Send requests at once, in pieces of `cut` bytes; the answers up to `until`."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b"".join(requests)
        for at in range(0, len(data), cut):
            connection.sendall(data[at : at + cut])
        got = b""
        while until not in got:
            part = connection.recv(65536)
            assert part, got
            got += part
        return got


@pytest.mark.parametrize("cut", [1, 7, 1 << 30])
def test_requests_are_understood_in_any_pieces(null: Make, cut: int) -> None:
    put = b"PUT /b/o HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    chunked = (
        b"PUT /b/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    aws = (
        b"PUT /b/q HTTP/1.1\r\nHost: x\r\n"
        b"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\nContent-Length: 47\r\n\r\n"
        + b"5;chunk-signature=0123\r\nworld\r\n0;chunk-signature=\r\n\r\n"[:47]
    )
    assert len(aws.split(b"\r\n\r\n", 1)[1]) == 47
    gets = b"".join(b"GET /b/%c HTTP/1.1\r\nHost: x\r\n\r\n" % name for name in b"opq")
    last = b"GET /last HTTP/1.1\r\nHost: x\r\n\r\n"
    bucket = b"PUT /b HTTP/1.1\r\nHost: x\r\n\r\n"
    end = b"NoSuchBucket</Message></Error>"
    got = ask(null(), bucket, put, chunked, aws, gets, last, until=end, cut=cut)
    assert re.findall(rb"HTTP/1.1 (\d+)", got) == [b"200"] * 7 + [b"404"]
    for body in (b"\r\n\r\nhello", b"\r\n\r\nabcde", b"\r\n\r\nworld"):
        assert body in got


@pytest.mark.parametrize(
    "line",
    [
        "POST /b?delete=",
        "POST /v1/AUTH_test?bulk-delete=",
        "POST /b/o?uploads=",
        "PUT /b/o?partNumber=1&uploadId=u",
        "PUT /v1/AUTH_test/b/o?multipart-manifest=put",
        "GET /b/o?partNumber=1",
        "GET /v1/AUTH_test/b/o?part-number=1",
        "PUT /b/o?tagging=",
        "PUT /b?versioning=",
        "GET /b?versions=",
        "DELETE /b/o?versionId=1",
        "DELETE /v1/AUTH_test/b/o?version-id=1",
    ],
)
def test_what_is_more_than_a_complete_object_is_refused(null: Make, line: str) -> None:
    served = null()
    ask(served, b"PUT /b HTTP/1.1\r\n\r\n", until=b"\r\n\r\n")
    head = f"{line} HTTP/1.1\r\nX-Auth-Token: {swift(served).get_auth()[1]}\r\n\r\n".encode()
    assert ask(served, head, until=b"NotImplemented").startswith(b"HTTP/1.1 501 ")


def test_copies_are_refused_and_no_empty_object_is_left(null: Make) -> None:
    served = null()
    client, connection = s3_client(served.url), swift(served)
    client.create_bucket(Bucket="b")
    client.put_object(Bucket="b", Key="o", Body=b"x")
    with pytest.raises(botocore.exceptions.ClientError, match="NotImplemented"):
        client.copy_object(Bucket="b", Key="c", CopySource="b/o")
    with pytest.raises(swiftclient.ClientException, match="501"):
        connection.put_object("b", "c", b"", headers={"X-Copy-From": "/b/o"})
    assert client.list_objects_v2(Bucket="b")["KeyCount"] == 1
    connection.close()


def test_a_client_that_expects_100_continue_gets_it(null: Make) -> None:
    served = null()
    ask(served, b"PUT /b HTTP/1.1\r\n\r\n", until=b"\r\n\r\n")
    head = b"PUT /b/o HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert ask(served, head, until=b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_anything_but_http_only_ends_the_connection(null: Make) -> None:
    served = null()
    for nonsense in (
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 200_000,
        b"PUT /b HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            try:
                connection.sendall(nonsense)
                assert connection.recv(100) == b""
            except ConnectionError:
                pass
    assert ask(served, b"GET / HTTP/1.1\r\n\r\n", until=b"</ListAllMyBucketsResult>")


def test_answers_are_delayed_and_a_random_delay_is_drawn_by_its_seed(null: Make) -> None:
    # The first draw of this seed is 0.988 of the way from 0 to 200 ms.
    drawn = {"delay_ms": 100.0, "delay_spread": 1.0, "seed": 73}
    for given, least_s in (({"delay_ms": 30.0}, 0.030), (drawn, 0.197)):
        served = null(**given)
        started_s = time.monotonic()
        ask(served, b"GET / HTTP/1.1\r\n\r\n", until=b"</ListAllMyBucketsResult>")
        assert time.monotonic() - started_s >= least_s


def test_it_stalls_once(null: Make) -> None:
    for _ in range(5):  # a busy machine may stall, too
        served = null(stall_after_s=0.3, stall_s=0.5)
        times_s = [time.monotonic()]
        while times_s[-1] - times_s[0] < 1.2:
            ask(served, b"GET / HTTP/1.1\r\n\r\n", until=b"</ListAllMyBucketsResult>")
            times_s.append(time.monotonic())
        long = [later - earlier for earlier, later in pairwise(times_s) if later - earlier > 0.25]
        if len(long) == 1 and 0.4 <= long[0] < 1.0:
            return
    pytest.fail(f"stalls of {long} s")


def test_a_share_of_object_requests_fails_the_same_way_every_time(null: Make) -> None:
    def statuses() -> list[bytes]:
        served = null(fail_share=0.3, fail_status=507)
        ask(served, b"PUT /b HTTP/1.1\r\n\r\n", until=b"\r\n\r\n")
        requests = [b"PUT /b/o HTTP/1.1\r\nContent-Length: 0\r\n\r\n"] * 300
        last = b"GET /none HTTP/1.1\r\n\r\n"
        answers = ask(served, *requests, last, until=b"NoSuchBucket</Mess")
        return re.findall(rb"HTTP/1.1 (\d+)", answers)[:300]

    first = statuses()
    assert set(first) == {b"200", b"507"}
    assert 60 <= first.count(b"507") <= 120
    assert statuses() == first


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_wrk_finds_nothing_wrong(null: Make) -> None:
    served = null()
    client = s3_client(served.url)
    client.create_bucket(Bucket="b")
    client.put_object(Bucket="b", Key="o", Body=b"z" * 10_000)
    argv = ["wrk", "-t1", "-c4", "-d1s", f"{served.url}/b/o"]
    out = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in out
    assert "Socket errors" not in out
    done = re.search(r"(\d+) requests in", out)
    assert done is not None
    assert int(done[1]) > 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_status_0_while_connections_are_open(number: signal.Signals) -> None:
    argv = null_command(delay_ms=60_000.0)
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(json.loads(process.stdout.readline())["listening"].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            process.send_signal(number)
            out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    "config",
    [
        {"fail_share": 2.0},
        {"delay_ms": -1.0},
        {"delay_spread": 1.5},
        {"threads": 0},
        {"colour": "red"},
        {"fail_status": 200},
    ],
)
def test_an_unusable_null_target_config_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(config))):
        _native.null_target(json.dumps(config))


def test_a_port_in_use_is_an_os_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(OSError, match="in use"):
        _native.null_target(json.dumps({"port": listener.getsockname()[1]}))
