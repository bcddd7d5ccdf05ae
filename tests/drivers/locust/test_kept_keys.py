"""Tokens and keys that are still good when there are no new ones, and auth servers that hang."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import HTTPMessage
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from aws_profiles import source_of
from dripping import dripping
from tests.drivers.locust.local_driver import Kept, Null, by_operation, setup_for, stepped, workload
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust import account as account_module
from weighbridge.drivers.locust.account import Account, AccountAnswer

KEYSTONE = {"username": "u", "project_name": "p"}


class Auth:
    """An account whose auth server and clock tests move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **more: object) -> None:
        self.now_s, self.fails, self.head = 1000.0, False, 200
        self.tokens, self.takes_s = 0, 0.0
        monkeypatch.setattr(account_module.time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(Account, "_request", lambda _, *asked: self.answer(*asked))
        path = "/v3" if "keystone" in more else "/auth/v1.0"
        target = {"api": "swift", "url": f"http://a:1{path}", "user": "u", "key": "k", **more}
        self.account = Account(Endpoint.model_validate(target), 1.0)

    def answer(self, _: object, method: str, path: str, *__: object) -> AccountAnswer:
        headers = HTTPMessage()
        if method == "HEAD":
            return AccountAnswer(self.head, headers, b"")
        if self.fails:
            return AccountAnswer(503, headers, b"no database")
        self.tokens += 1
        self.now_s += self.takes_s
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        place = {"url": "http://a:1/v1/A", "interface": "public"}
        token = {
            "issued_at": begin.isoformat(),
            "expires_at": (begin + timedelta(seconds=100)).isoformat(),
            "catalog": [{"type": "object-store", "endpoints": [place]}],
        }
        for name in ("X-Subject-Token", "X-Auth-Token"):
            headers[name] = f"t{self.tokens}"
        headers["X-Storage-Url"] = "http://a:1/v1/A"
        status = 201 if path.startswith("/v3") else 200
        return AccountAnswer(status, headers, json.dumps({"token": token}).encode())


def test_a_token_whose_end_is_known_is_kept_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = Auth(monkeypatch, keystone=KEYSTONE)
    assert auth.account.renew() == ""
    auth.fails = True
    auth.now_s += 90
    assert "503" in auth.account.renew()
    assert auth.account.token == "t1"
    assert auth.account.left_s == 10
    auth.now_s += 10
    with pytest.raises(DriverError, match="503"):
        auth.account.renew()
    auth.fails = False
    assert (auth.account.renew(), auth.account.token) == ("", "t2")


def test_a_token_ages_while_its_answer_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may have issued it as soon as it was asked."""
    auth = Auth(monkeypatch, keystone=KEYSTONE)
    auth.takes_s = 0.5
    auth.account.renew()
    assert auth.account.left_s == 99.5


def test_a_token_that_was_refused_is_not_kept_and_a_first_one_not_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth = Auth(monkeypatch, keystone=KEYSTONE)
    auth.fails = True
    with pytest.raises(DriverError, match="503"):
        auth.account.renew()
    auth.fails = False
    auth.account.renew()
    auth.account.refused()
    auth.fails = True
    with pytest.raises(DriverError, match="503"):
        auth.account.renew()


def test_a_token_whose_end_nobody_says_is_kept_if_the_store_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auth = Auth(monkeypatch)
    auth.account.renew()
    auth.fails = True
    assert "503" in auth.account.renew()
    auth.head = 401
    with pytest.raises(DriverError, match="503"):
        auth.account.renew()


def s3_target(url: str, folder: Path, left_s: float) -> Endpoint:
    """A target whose keys end, by a program that gives no others."""
    source = source_of(folder, left_s)
    (folder / "keys.py").write_text("raise SystemExit('log in first')")
    return Endpoint(
        api="s3",
        url=url,
        user="bench",
        key=SecretStr("a-secret-key"),
        keys_end_at=datetime.now(UTC) + timedelta(seconds=left_s),
        key_source=source,
    )


def test_a_step_without_new_keys_uses_the_old_ones_and_says_so(
    null: Callable[..., Null], kept: Kept, tmp_path: Path
) -> None:
    one = workload({"read": 1, "write": 1}, runtime=1.0, rate_per_s=50.0)
    with kept() as running:
        setup = setup_for(s3_target(null().url, tmp_path, 3600.0))
        measurement = stepped(running, setup, one, 2)
    assert not any(tally.errors for tally in by_operation(measurement).values())
    (note,) = (one for one in measurement.notes if "no new keys" in one)
    assert note.startswith("no new keys in the step, the old ones were used: once: ")
    assert "log in first" in note


def test_keys_that_have_ended_are_used_no_longer(null: Callable[..., Null], tmp_path: Path) -> None:
    account = Account(s3_target(null().url, tmp_path, -1.0), 5.0)
    with pytest.raises(DriverError, match="log in first"):
        account.renew()


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    ("more", "asked"),
    [
        ({}, "GET /v3"),
        ({"keystone": KEYSTONE}, "POST /v3/auth/tokens"),
        ({"token": "t"}, "HEAD /v3"),
    ],
)
def test_an_auth_server_that_hangs_is_named_with_what_it_was_asked(
    more: dict[str, Any], asked: str, silent: bool
) -> None:
    with dripping(silent=silent) as port:
        target = {"api": "swift", "url": f"http://127.0.0.1:{port}/v3", "user": "u", "key": "k"}
        account = Account(Endpoint.model_validate({**target, **more}), 0.3)
        with pytest.raises(
            DriverError, match=rf"127\.0\.0\.1:{port}: {asked}: no complete answer within 0\.\d+ s"
        ):
            account.authenticate()


def test_an_endpoint_that_hangs_leaves_the_others_time_to_answer(
    null: Callable[..., Null],
) -> None:
    with dripping() as port:
        target = Endpoint(
            api="swift",
            url=f"http://127.0.0.1:{port}/auth/v1.0",
            user="bench",
            key=SecretStr("a-secret-key"),
            others=(null().url,),
        )
        account = Account(target, 2.0)
        account.authenticate()
    assert account.token
