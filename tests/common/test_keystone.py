"""What is asked of Keystone, and what of its answers is used."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from weighbridge.common.credential import Granted, Keystone, KeystoneRefuses, log_in
from weighbridge.common.exchange import HttpAnswer

USER = Keystone(username="demo", project_name="lab")


def place(url: str, interface: str = "public", region: str = "one") -> dict[str, str]:
    return {"url": url, "interface": interface, "region": region, "region_id": region, "id": "x"}


def token(*services: dict[str, Any], life_s: int = 30) -> HttpAnswer:
    body = {
        "token": {
            "issued_at": "2026-11-27T10:00:00.000000Z",
            "expires_at": f"2026-11-27T10:00:{life_s}.000000Z",
            "catalog": services,
            "user": {"name": "demo"},
        }
    }
    return HttpAnswer(201, {"x-subject-token": "gAAA"}, json.dumps(body).encode())


def store(*places: dict[str, str]) -> dict[str, Any]:
    return {"type": "object-store", "name": "swift", "endpoints": places}


class Answers:
    """Answers the requests of a login in turn, and keeps them."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def __call__(self, method: str, path: str, body: bytes, _: Mapping[str, str]) -> HttpAnswer:
        self.asked.append((method, path, json.loads(body or b"null")))
        return self.answers.pop(0)


def refused(keystone: Keystone, *answers: HttpAnswer) -> str:
    with pytest.raises(KeystoneRefuses) as error:
        log_in(keystone, "planted", "/v3", Answers(*answers))
    assert "planted" not in error.value.what
    return error.value.what


def test_a_user_gets_the_public_storage_url_and_how_long_the_token_lasts() -> None:
    places = (place("http://10.0.0.1/int", "internal"), place("https://store.example/v1/AUTH_1/"))
    answers = Answers(token({"type": "identity", "endpoints": ()}, store(*places)))
    assert log_in(USER, "s", "/identity/v3", answers) == Granted(
        "https://store.example/v1/AUTH_1", "gAAA", 30.0
    )
    ((method, path, body),) = answers.asked
    assert (method, path) == ("POST", "/identity/v3/auth/tokens")
    default = {"id": "default"}
    user = {"name": "demo", "domain": default, "password": "s"}
    assert body["auth"] == {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"name": "lab", "domain": default}},
    }


@pytest.mark.parametrize(
    ("given", "identity", "scope"),
    [
        (
            {
                "username": "demo",
                "user_domain_name": "Users",
                "project_name": "lab",
                "project_domain_id": "d2",
            },
            {"password": {"user": {"name": "demo", "domain": {"name": "Users"}, "password": "s"}}},
            {"project": {"name": "lab", "domain": {"id": "d2"}}},
        ),
        (
            {"username": "demo", "user_id": "u1", "project_name": "lab", "project_id": "p1"},
            {"password": {"user": {"id": "u1", "password": "s"}}},
            {"project": {"id": "p1"}},
        ),
        (
            {"application_credential_id": "a1", "username": "demo", "project_name": "lab"},
            {"application_credential": {"id": "a1", "secret": "s"}},
            None,
        ),
        (
            {"application_credential_name": "weigh", "user_id": "u1"},
            {"application_credential": {"name": "weigh", "user": {"id": "u1"}, "secret": "s"}},
            None,
        ),
    ],
)
def test_names_ids_and_application_credentials_are_sent_as_keystone_wants_them(
    given: dict[str, str], identity: dict[str, Any], scope: dict[str, Any] | None
) -> None:
    answers = Answers(token(store(place("http://a/v1"))))
    log_in(Keystone.model_validate(given), "s", "/v3", answers)
    auth = answers.asked[0][2]["auth"]
    (method,) = identity
    assert auth["identity"] == {"methods": [method], **identity}
    assert auth.get("scope") == scope


def test_the_region_and_interface_that_are_named_are_used() -> None:
    places = (
        place("http://a/one", "public", "one"),
        place("http://a/two", "public", "two"),
        place("http://a/inner", "internal", "two"),
    )
    named = USER.model_copy(update={"region_name": "two", "interface": "internal"})
    granted = log_in(named, "s", "/v3", Answers(token(store(*places))))
    assert granted.storage_url == "http://a/inner"
    several = refused(USER, token(store(*places)))
    assert "in several regions, 'one', 'two': set `region_name`" in several


@pytest.mark.parametrize(
    ("change", "services", "words"),
    [
        ({}, [{"type": "identity"}, {"type": "image"}], "no object-store, but 'identity', 'image'"),
        ({}, [], "no object-store, but nothing"),
        ({"region_name": "two"}, [store(place("http://a"))], "in the region 'two', but in 'one'"),
        ({"interface": "admin"}, [store(place("http://a"))], "no admin URL of the object-store"),
        ({}, [store(place("ftp://a"))], "storage URL of its catalogue cannot be used: not of"),
        ({}, [store(place("http://u:secret@a"))], "contains a user or a password"),
    ],
)
def test_a_catalogue_without_a_fitting_storage_url_is_refused_with_what_it_has(
    change: dict[str, str], services: list[dict[str, Any]], words: str
) -> None:
    assert words in refused(USER.model_copy(update=change), token(*services))


def test_a_wrong_password_and_an_unknown_project_are_told_apart() -> None:
    no = HttpAnswer(401, {}, b'{"error": {"code": 401}}')
    assert "refuses the user 'demo'" in refused(USER, no, no)
    projects = HttpAnswer(200, {}, b'{"projects": [{"name": "other"}, {"name": "third"}]}')
    told = refused(USER, no, token(), projects)
    assert "the password of the user 'demo' is right" in told
    assert "no project 'lab'" in told
    assert told.endswith("projects of this user: 'other', 'third'")
    broken = HttpAnswer(200, {}, b"[" * 100_000)
    assert refused(USER, no, token(), broken).endswith("projects of this user: not known")
    by_application = Keystone(application_credential_id="a1")
    assert "its secret is wrong" in refused(by_application, no)


@pytest.mark.parametrize(
    "answer",
    [
        HttpAnswer(201, {}, token(store(place("http://a"))).body),
        HttpAnswer(201, {"x-subject-token": "t"}, b"[" * 100_000),
        HttpAnswer(201, {"x-subject-token": "t"}, b'{"token": {"issued_at": "now"}}'),
        HttpAnswer(201, {"x-subject-token": "t"}, b"\xff"),
    ],
)
def test_an_answer_that_is_no_token_is_refused(answer: HttpAnswer) -> None:
    assert "no token that can be read" in refused(USER, answer)


def test_what_is_not_keystone_is_refused() -> None:
    assert "is this the URL of Keystone" in refused(USER, HttpAnswer(404, {}, b""))


def test_what_keystone_repeats_of_secrets_is_in_no_refusal() -> None:
    long = "planted" * 20
    services = [{"type": name, "endpoints": ()} for name in (long, "gAAA", f"{long}-more")]
    with pytest.raises(KeystoneRefuses) as error:
        log_in(USER, long, "/v3", Answers(token(*services)))
    assert "planted" not in error.value.what
    assert "gAAA" not in error.value.what


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"expires_at": "2026-01-01T00:00:00Z"}, "its token lasts"),
        ({"expires_at": "2026-01-01T00:00:04Z"}, "its token lasts 4 s, and 5 s are needed"),
    ],
)
def test_a_token_that_ends_at_once_is_refused(change: dict[str, str], why: str) -> None:
    answer = token(store(place("http://10.0.0.1/", "public")))
    body = json.loads(answer.body)
    body["token"] |= {"issued_at": "2026-01-01T00:00:00Z", **change}
    assert why in refused(USER, replace(answer, body=json.dumps(body).encode()))


def test_a_token_with_control_characters_is_refused() -> None:
    answer = token(store(place("http://10.0.0.1/", "public")))
    answer = replace(answer, headers={"x-subject-token": "tok\r\n X-Evil: yes"})
    assert "no header can carry" in refused(USER, answer)
