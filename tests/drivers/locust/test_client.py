"""The SDKs: over TLS they talk only to targets that the given authority vouches for, and boto3 adds
checksums to writes only as it is shipped.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from null_process import null_process
from tests.drivers.conftest import always
from tls_proxy import authority, terminated
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.protocol import Setup


@pytest.fixture(scope="module")
def null() -> Iterator[tuple[str, int]]:
    with null_process(user="ben:ch", key="k") as (_, url):
        yield "127.0.0.1", int(url.rsplit(":", 1)[1])


@pytest.fixture(scope="module")
def served(
    null: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, Path]]:
    """A port with TLS, whose certificate is for 127.0.0.1, and the authority that signed it."""
    ca, certificate = authority(tmp_path_factory.mktemp("tls"), ["127.0.0.1"])
    with terminated(certificate, null) as port:
        yield port, ca


def opened(api: str, url: str, ca: Path | None) -> tuple[Account, Setup]:
    """An account at the null target over TLS that trusts `ca`, or this machine's authorities."""
    path = "/auth/v1.0" if api == "swift" else ""
    storage = f"{url}/v1/AUTH_test" if api == "swift" else None
    target = Endpoint.model_validate(
        {
            "api": api,
            "url": f"{url}{path}",
            "user": "ben:ch",
            "key": SecretStr("k"),
            "storage_url": storage,
            "ca_file": None if ca is None else str(ca),
        }
    )
    return Account(target, 10), Setup(
        target=target, bucket_prefix="wb-tls", seed=1, request_timeout_s=10
    )


def client(api: str, setup: Setup, account: Account) -> Client:
    return SwiftClient(setup, account) if api == "swift" else S3Client(setup, account, 1)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_target_with_a_certificate_of_the_authority_is_used(
    served: tuple[int, Path], api: str
) -> None:
    account, setup = opened(api, f"https://127.0.0.1:{served[0]}", served[1])
    account.authenticate()
    account.make_bucket("b")
    client(api, setup, account).write("b", "o", b"x", 1)
    assert client(api, setup, account).head("b", "o") == 1


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize("why", ["unknown authority", "other name"])
def test_a_target_with_an_untrusted_certificate_or_another_name_gets_no_request(
    served: tuple[int, Path], api: str, why: str
) -> None:
    port, ca = served
    url, given = (
        (f"https://127.0.0.1:{port}", None)
        if why == "unknown authority"
        else (f"https://localhost:{port}", ca)
    )
    account, setup = opened(api, url, given)
    with pytest.raises(DriverError, match="certificate"):
        account.make_bucket("b")
    account.keys = (*account.keys[:2], "t")
    with pytest.raises(Exception, match=r"(?i)certificate|hostname 'localhost' doesn't match"):
        client(api, setup, account).head("b", "o")


TAGGED = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "e"\r\n\r\n'


@pytest.mark.parametrize("checksums", [False, True])
def test_checksums_are_sent_if_the_sdk_may_do_as_it_is_shipped(
    scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, checksums: bool
) -> None:
    # Whatever the environment says.
    other = "when_required" if checksums else "when_supported"
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", other)
    served = scripted(always(TAGGED))
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
    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(always(TAGGED, keep=False), context)
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
