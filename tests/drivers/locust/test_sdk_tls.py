"""Over TLS, the SDKs and the account talk only to targets that the given authority vouches for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tls_proxy import authority, terminated
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.protocol import Setup


@pytest.fixture(scope="module")
def null() -> Iterator[tuple[str, int]]:
    argv = [sys.executable, "-m", "weighbridge", "null-target", "--port", "0", "--user", "ben:ch"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "WEIGHBRIDGE_NULL_KEY": "k"}
    ) as process:
        assert process.stdout is not None
        try:
            yield (
                "127.0.0.1",
                int(json.loads(process.stdout.readline())["listening"].rsplit(":", 1)[1]),
            )
        finally:
            process.terminate()


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
