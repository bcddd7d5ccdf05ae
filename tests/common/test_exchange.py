"""Requests of the small programs: a token that is refused, and keys that end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aws_profiles import by_program, given
from weighbridge.common import exchange
from weighbridge.common.exchange import HttpAnswer, WrongAnswer, ask, exchanging


class StubWire:
    """A store that gives a new token at each login, and refuses every third request."""

    logins = 0

    def __init__(self, *_: object) -> None:
        self.used = 0

    def connect(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __call__(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        kind = type(self)
        if "X-Auth-User" in headers:
            kind.logins += 1
            token = {"x-storage-url": "http://a:1/v1/A", "x-auth-token": f"t{kind.logins}"}
            return HttpAnswer(200, token, b"")
        self.used += 1
        is_right = headers["X-Auth-Token"] == f"t{kind.logins}" and self.used % 3
        return HttpAnswer(204 if is_right else 401, {}, b"")


ENDPOINT = {"api": "swift", "url": "http://a:1/auth/v1.0", "user": "u", "key": "k", "token": None}


def test_a_token_that_expires_is_renewed_and_the_request_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fresh(StubWire):
        pass

    monkeypatch.setattr(exchange, "Wire", Fresh)
    with exchanging(ENDPOINT, "b") as send:
        for _ in range(7):
            assert ask(send, "HEAD", "HEAD", "/b", (204,)).status == 204
    assert Fresh.logins > 1


def test_keystone_may_close_a_connection_after_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closing(StubWire):
        def __call__(
            self, method: str, path: str, body: bytes, headers: Mapping[str, str]
        ) -> HttpAnswer:
            self.used += 1
            if self.used > 1:
                raise BrokenPipeError
            return HttpAnswer(401, {}, b"")

    monkeypatch.setattr(exchange, "Wire", Closing)
    endpoint = {**ENDPOINT, "url": "http://k/v3", "keystone": {"username": "u", "project_id": "p"}}
    with pytest.raises(WrongAnswer) as error, exchanging(endpoint, "b"):
        pass
    assert error.value.what.startswith("Keystone refuses the user 'u'")


def test_a_given_token_is_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fresh(StubWire):
        pass

    monkeypatch.setattr(exchange, "Wire", Fresh)
    given_token = {**ENDPOINT, "token": "old"}
    with exchanging(given_token, "b") as send, pytest.raises(WrongAnswer):
        ask(send, "HEAD", "HEAD", "/b", (204,))
    assert Fresh.logins == 0


def test_requests_are_signed_with_new_keys_once_the_first_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed: list[str] = []

    class Recording(StubWire):
        def __call__(
            self, method: str, path: str, body: bytes, headers: Mapping[str, str]
        ) -> HttpAnswer:
            signed.append(headers["Authorization"].partition("Credential=")[2].partition("/")[0])
            return HttpAnswer(204, {}, b"")

    monkeypatch.setattr(exchange, "Wire", Recording)
    files = by_program(tmp_path, 3600)
    source = {
        "provider": "custom-process",
        "profile": "lab",
        "config_file": files["AWS_CONFIG_FILE"],
        "credentials_file": files["AWS_SHARED_CREDENTIALS_FILE"],
    }
    for left_s in (-1, 3600):
        end = datetime.now(UTC) + timedelta(seconds=left_s)
        endpoint = {
            "api": "s3",
            "url": "http://a:1",
            "user": "FIRST",
            "key": "k",
            "token": "t",
            "region": "us-east-1",
            "key_source": source,
            "keys_end_at": end.isoformat(),
        }
        with exchanging(endpoint, "b") as send:
            ask(send, "HEAD", "HEAD", "/b", (204,))
            ask(send, "HEAD", "HEAD", "/b", (204,))
    assert signed == ["A1", "A1", "FIRST", "FIRST"]
    assert given(tmp_path) == 1
