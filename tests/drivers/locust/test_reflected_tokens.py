"""A target whose answers repeat the token of the request: no text for people has it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from tests.drivers.conftest import Bench, always, shape, until
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account, NotServing

Make = Callable[..., Any]
TOKEN = "AUTH_tk0123456789abcdef"


def repeating(connection: socket.socket, head: bytes) -> bool:
    """Answer with what was sent; a request for a token gets one."""
    place = connection.getsockname()[1]
    if b"X-Auth-User" in head:
        answer = f"200 OK\r\nX-Auth-Token: {TOKEN}\r\nX-Storage-Url: http://127.0.0.1:{place}/v1/a"
        connection.sendall(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
        return True
    sent = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"x-auth-token"))
    body = b"you sent " + sent
    length = f"HTTP/1.1 500 X\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection.sendall(length + body)
    return True


def test_the_engine_keeps_tokens_out_of_its_last_error(scripted: Make, bench: Make) -> None:
    engine: Bench = bench(scripted(repeating), shape(), api="swift", base_path="/v1/a", token=TOKEN)
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["failed"] >= 2, "failures")
    assert engine.progress["last_error"].endswith("you sent X-Auth-Token: ***")
    engine.engine.renew_keys(("", "", TOKEN[::-1]))
    failed = engine.progress["failed"]
    until(lambda: engine.progress["failed"] >= failed + 2, "failures with another token")
    assert engine.progress["last_error"].endswith("you sent X-Auth-Token: ***")


def test_what_an_account_cannot_do_is_said_without_its_token(scripted: Make) -> None:
    port = scripted(repeating).port
    target = Endpoint(
        api="swift", url=f"http://127.0.0.1:{port}/auth/v1.0", user="u", key=SecretStr("k" * 20)
    )
    account = Account(target, 10.0)
    account.authenticate()
    assert account.token == TOKEN
    with pytest.raises(DriverError, match=r"cannot be created: HTTP 500: you sent .*: \*\*\*$"):
        account.make_bucket("b")


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_target_whose_answers_are_503_does_not_serve(scripted: Make, api: str) -> None:
    busy = always(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
    given = {"token": SecretStr("given")} if api == "swift" else {}
    target = Endpoint.model_validate(
        {"api": api, "url": scripted(busy).url, "user": "u", "key": SecretStr("k"), **given}
    )
    with pytest.raises(NotServing, match="HTTP 503"):
        Account(target, 10.0).check_serves()
