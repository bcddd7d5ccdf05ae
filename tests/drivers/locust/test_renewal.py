"""When a group of workers gets another token."""

from __future__ import annotations

from http.client import HTTPMessage

import gevent
import pytest

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust import prepared_objects
from weighbridge.drivers.locust.account import Account, AccountAnswer
from weighbridge.drivers.locust.prepared_objects import Renewal
from weighbridge.drivers.locust.worker_group import WorkerProgress


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


def test_a_group_that_began_without_a_new_token_says_so(trial: Trial) -> None:
    begun = Renewal(trial.account, trial.group, "no database")  # type: ignore[arg-type]
    assert begun.note == "once: no database"
    assert trial.renewal.note == ""


def test_what_cannot_be_renewed_is_not_asked_for(trial: Trial) -> None:
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
