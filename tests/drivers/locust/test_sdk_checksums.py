"""What boto3 adds to writes: nothing by default here, and as it is shipped a checksum."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tls_proxy import authority
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import S3Client
from weighbridge.drivers.protocol import Setup


@pytest.mark.parametrize("checksums", [False, True])
def test_checksums_are_sent_if_the_sdk_may_do_as_it_is_shipped(
    scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, checksums: bool
) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "e"\r\n\r\n')
        return True

    # Whatever the environment says.
    other = "when_required" if checksums else "when_supported"
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", other)
    served = scripted(answer)
    target = Endpoint(api="s3", url=served.url, user="AK", key=SecretStr("SK"))
    setup = Setup(target=target, bucket_prefix="wb-sdk", seed=1)
    client = S3Client(setup, Account(target, 10), 1, checksums=checksums)
    assert client.write("wb-sdk-w-0", "o", b"123456789", 9) == '"e"'
    [head] = served.asked
    assert (b"\r\nx-amz-checksum-crc32: y/Q5Jg==\r\n" in head) == checksums
    assert (b"checksum" in head.lower()) == checksums


def test_over_https_the_checksum_is_a_trailer_of_chunks(
    scripted: Callable[..., Any], tmp_path: Path
) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "e"\r\n\r\n')
        return False

    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(answer, context)
    url = f"https://127.0.0.1:{served.port}"
    target = Endpoint(api="s3", url=url, user="AK", key=SecretStr("SK"), ca_file=str(ca))
    setup = Setup(target=target, bucket_prefix="wb-sdk", seed=1)
    S3Client(setup, Account(target, 10), 1, checksums=True).write("b", "o", b"123456789", 9)
    [head] = served.asked
    assert {
        b"transfer-encoding: chunked",
        b"content-encoding: aws-chunked",
        b"x-amz-trailer: x-amz-checksum-crc32",
        b"x-amz-content-sha256: streaming-unsigned-payload-trailer",
    } <= {*head.lower().split(b"\r\n")}
    # Nor is there a length of what is sent, which radosgw before 18 wants (411).
    assert b"\r\ncontent-length:" not in head.lower()
