"""Tokens and keys that are still good when there are no new ones, and auth servers that hang."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.client import HTTPMessage
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import gevent
import pytest
from pydantic import SecretStr

from aws_profiles import source_of
from dripping import dripping
from tcp_relay import relayed
from tests.drivers.locust.local_driver import (
    Kept,
    Null,
    answered,
    by_operation,
    setup_for,
    stepped,
    workload,
)
from weighbridge.common import credential
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust import account as account_module
from weighbridge.drivers.locust import prepared_objects
from weighbridge.drivers.locust.account import Account, AccountAnswer
from weighbridge.drivers.locust.prepared_objects import Renewal
from weighbridge.drivers.locust.worker_group import WorkerProgress
from weighbridge.drivers.protocol import Cleaned, Cleanup, Measured, Prepare, Step

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
    auth.takes_s = 0.5
    assert (auth.account.renew(), auth.account.token) == ("", "t2")
    assert auth.account.left_s == 99.5  # it may have been issued as soon as it was asked for


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


def test_an_endpoint_that_hangs_leaves_the_others_time_to_answer(null: Callable[..., Null]) -> None:
    with dripping() as port:
        target = {"api": "swift", "url": f"http://127.0.0.1:{port}/auth/v1.0", "user": "bench"}
        given = {**target, "key": "a-secret-key", "others": (null().url,)}
        account = Account(Endpoint.model_validate(given), 2.0)
        account.authenticate()
    assert account.token


LIFE_S = 3600.0


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
@pytest.mark.long
def test_a_step_begins_with_new_keys_and_takes_others_before_they_end(
    null: Callable[..., Null],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    users: Literal["engine", "sdk"],
) -> None:
    # They are due soon, and end late: no machine is too slow for that.
    monkeypatch.setattr(credential, "RENEW_AT", 0.3 / LIFE_S)
    source = source_of(tmp_path, LIFE_S)
    signed: list[str] = []

    def seen(data: bytes) -> None:
        signed.extend(re.findall(r"Credential=(\w+)/", data.decode(errors="replace")))
        tokens = re.findall(r"(?i)x-amz-security-token: (\S+)", data.decode(errors="replace"))
        assert all(one.startswith("token") for one in tokens)

    one = workload({"read": 1, "write": 1}, runtime=2.0, rate_per_s=50.0)
    port = urlsplit(null().url).port
    assert port is not None
    with relayed(port, seen) as relay:
        target = Endpoint(
            api="s3", url=f"http://127.0.0.1:{relay}", user="ENDED", key=SecretStr("old")
        )
        target = target.model_copy(update={"key_source": source})
        status, events = answered(
            setup_for(target, users=users),
            Prepare(workload=one),
            Step(workload=one, workers=2),
            Cleanup(workload=one, what="all"),
        )
    assert status == 0, events
    (measurement,) = (event.measurement for event in events if isinstance(event, Measured))
    (cleaned,) = (event for event in events if isinstance(event, Cleaned))
    assert "ENDED" not in signed
    # Those of the preparation, of the step's begin, and at least once again.
    assert len(set(signed)) >= 3, set(signed)
    assert [one for one in measurement.notes if "renewed in the step before they expired" in one]
    assert not any(tally.errors for tally in by_operation(measurement).values())
    assert cleaned.failed == 0


class StubAccount:
    """Counts requests for a token."""

    def __init__(self) -> None:
        self.renewable, self.expires, self.refuses = True, False, False
        self.asked, self.left_s = 0, 100.0

    def refused(self) -> None:
        self.left_s = 0.0

    def authenticate(self) -> None:
        self.asked += 1
        if self.refuses:
            raise DriverError("none")


class StubGroup:
    """Counts new tokens."""

    def __init__(self) -> None:
        self.renewed = 0

    def renew(self, account: object) -> None:
        self.renewed += 1


class Trial:
    """A renewal between stubs, with a clock that tests move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(prepared_objects.time, "monotonic", lambda: self.now_s)
        self.account, self.group = StubAccount(), StubGroup()
        self.renewal = Renewal(self.account, self.group)  # type: ignore[arg-type]

    def look(self, refused: int = 0, after_s: float = 0.0) -> tuple[int, int]:
        """How often a token was asked for, and given to the group, until then."""
        self.now_s += after_s
        self.renewal.look(WorkerProgress(errors={"http-401": refused} if refused else {}))
        gevent.sleep(0)
        return self.account.asked, self.group.renewed


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    return Trial(monkeypatch)


def test_a_token_is_replaced_before_it_expires_and_that_is_no_refusal(trial: Trial) -> None:
    assert trial.look() == (0, 0)
    trial.account.expires = True
    assert trial.look() == (1, 1)
    trial.account.expires = False
    assert trial.look(after_s=10) == (1, 1)
    assert (trial.renewal.forgotten, trial.renewal.expired) == (0, 1)


def test_each_new_refusal_gets_a_new_token_but_not_more_than_one_a_second(trial: Trial) -> None:
    assert trial.look(refused=3) == (1, 1)
    assert trial.look(refused=3, after_s=5) == (1, 1)
    assert trial.look(refused=4) == (2, 2)
    assert trial.look(refused=9, after_s=0.5) == (2, 2)
    assert trial.look(refused=9, after_s=0.6) == (3, 3)
    assert (trial.renewal.forgotten, trial.renewal.expired) == (3, 0)


def test_without_an_answer_the_group_keeps_its_token_and_asks_again_a_second_later(
    trial: Trial,
) -> None:
    trial.account.expires = trial.account.refuses = True
    assert trial.look() == (1, 0)
    assert trial.look(after_s=0.5) == (1, 0)
    trial.account.refuses = False
    assert trial.look(after_s=0.5) == (2, 1)


def test_a_good_token_is_asked_for_less_and_less_often_until_it_ends(trial: Trial) -> None:
    trial.account.expires = trial.account.refuses = True
    assert trial.look() == (1, 0)
    for number, pause_s in enumerate((1, 2, 4, 8, 16, 30, 30), start=2):
        assert trial.look(after_s=pause_s - 0.5) == (number - 1, 0)
        assert trial.look(after_s=0.5) == (number, 0)
    assert trial.renewal.note == "8 times, at last: none"
    trial.account.left_s = 0.0
    assert trial.look(after_s=1) == (9, 0)
    assert trial.renewal.note == "9 times, at last: none; by then the old ones had ended"
    trial.account.refuses = False
    assert trial.look(after_s=1) == (10, 1)


def test_what_cannot_be_renewed_is_not_asked_for_and_a_group_that_began_so_says_it(
    trial: Trial,
) -> None:
    begun = Renewal(trial.account, trial.group, "no database")  # type: ignore[arg-type]
    assert begun.note == "once: no database"
    assert trial.renewal.note == ""
    trial.account.renewable, trial.account.expires = False, True
    assert trial.look(refused=5) == (0, 0)


@pytest.mark.parametrize(("token", "asked"), [(None, ["GET", "PUT", "GET", "PUT"]), ("t", ["PUT"])])
def test_a_request_outside_of_windows_is_repeated_with_a_new_token_if_there_can_be_one(
    monkeypatch: pytest.MonkeyPatch, token: str | None, asked: list[str]
) -> None:
    seen: list[str] = []

    def answered(_: object, place: object, method: str, *more: object) -> AccountAnswer:
        seen.append(method)
        headers = HTTPMessage()
        headers["X-Storage-Url"], headers["X-Auth-Token"] = "http://a:1/v1/A", f"t{len(seen)}"
        return AccountAnswer(200 if method == "GET" else 401, headers, b"")

    monkeypatch.setattr(Account, "_request", answered)
    target = Endpoint.model_validate(
        {"api": "swift", "url": "http://a:1/auth/v1.0", "user": "u", "key": "k", "token": token}
    )
    account = Account(target, 1.0)
    if token is None:
        account.authenticate()
    assert account.ask("PUT", "/b").status == 401
    assert seen == asked
