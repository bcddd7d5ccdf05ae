"""Requests of the small programs: a token that is refused, and keys that end."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aws_profiles import by_program, given
from weighbridge.common import exchange, plain_xml
from weighbridge.common.credential import Granted, Keystone, KeystoneRefuses, log_in
from weighbridge.common.exchange import HttpAnswer, WrongAnswer, ask, exchanging
from weighbridge.common.listing import Entry, listing
from weighbridge.common.plain_xml import NotPlain


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


WRONG_STORAGE_URLS = (
    *("http://[/v1", "http:///v1", "ftp://h/v1", "/v1/AUTH_a", "http://h:99999/v1", "http://h:x"),
    *("http://u:planted@h/v1", "http://h/v1?x=planted", "http://h/v1#planted", "http://h/a b"),
)
WRONG_TOKENS = ("", "planted\t5678", "planted\r\n 5678", "planted\u00e9")


@pytest.mark.parametrize(
    ("url", "token", "words"),
    [
        *((url, "t", "its X-Storage-Url cannot be used: ") for url in WRONG_STORAGE_URLS),
        *(("http://a:1/v1/A", token, "its X-Auth-Token is empty, or ") for token in WRONG_TOKENS),
    ],
)
def test_a_storage_url_or_a_token_that_cannot_be_one_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, url: str, token: str, words: str
) -> None:
    class Odd(StubWire):
        def __call__(self, *_: object) -> HttpAnswer:
            return HttpAnswer(200, {"x-storage-url": url, "x-auth-token": token}, b"")

    monkeypatch.setattr(exchange, "Wire", Odd)
    with pytest.raises(WrongAnswer) as error, exchanging(ENDPOINT, "b"):
        pass
    said = error.value.report("swift", "http://a:1")
    assert said.startswith(f"swift auth at http://a:1: {words}")
    assert "planted" not in said


@pytest.mark.parametrize(
    ("status", "where", "words"),
    [
        (401, {}, "Keystone refuses the user 'u'"),
        (307, {"location": "https://k:5/v3"}, "it redirects to https://k:5: give that URL"),
    ],
)
def test_keystone_may_close_a_connection_after_each_answer(
    monkeypatch: pytest.MonkeyPatch, status: int, where: dict[str, str], words: str
) -> None:
    class Closing(StubWire):
        def __call__(
            self, method: str, path: str, body: bytes, headers: Mapping[str, str]
        ) -> HttpAnswer:
            self.used += 1
            if self.used > 1:
                raise BrokenPipeError
            return HttpAnswer(status, where, b"")

    monkeypatch.setattr(exchange, "Wire", Closing)
    endpoint = {**ENDPOINT, "url": "http://k/v3", "keystone": {"username": "u", "project_id": "p"}}
    with pytest.raises(WrongAnswer) as error, exchanging(endpoint, "b"):
        pass
    assert error.value.what.startswith(words)


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
        "profile": "lab",
        "config_file": files["AWS_CONFIG_FILE"],
        "credentials_file": files["AWS_SHARED_CREDENTIALS_FILE"],
    }
    for left_s in (-1, 3600):
        end = datetime.now(UTC) + timedelta(seconds=left_s)
        server = {"api": "s3", "url": "http://a:1", "region": "us-east-1"}
        keys = {"user": "FIRST", "key": "k", "token": "t", "keys_end_at": end.isoformat()}
        endpoint = {**server, **keys, "key_source": source}
        with exchanging(endpoint, "b") as send:
            ask(send, "HEAD", "HEAD", "/b", (204,))
            ask(send, "HEAD", "HEAD", "/b", (204,))
    assert signed == ["A1", "A1", "FIRST", "FIRST"]
    assert given(tmp_path) == 1


LIST = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated>
<Contents><Key>a&amp;b&#233;</Key></Contents><Contents><Key>c</Key></Contents></ListBucketResult>"""
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
HOSTILE = {
    "a billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l9;</a>'.encode(),
    "one very long entity many times": "<!DOCTYPE a [<!ENTITY e "
    f'"{"x" * 100_000}">]><a>{"&e;" * 10_000}</a>'.encode(),
    "a file of this machine": b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
    "a document type elsewhere": b'<!DOCTYPE a SYSTEM "http://192.0.2.1/a.dtd"><a/>',
    "a parameter entity": b'<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><a/>',
    "a document type with nothing in it": b"<!DOCTYPE a><a/>",
    "an entity that is not declared": b"<a>&e;</a>",
    "nested without end": b"<a>" * 200_000,
    "larger than any list": b"<a>" + b"x" * plain_xml.LARGEST_BYTES + b"</a>",
    "an encoding that is none": b'<?xml version="1.0" encoding="no-such"?><a/>',
    "an encoding of two bytes": b'<?xml version="1.0" encoding="utf-16"?><a/>',
    "an encoding of several bytes": b'<?xml version="1.0" encoding="gb2312"?><a/>',
    "a page of HTML": b"<html><br></html>",
    "nothing": b"",
    "bytes": bytes(range(256)),
}


def test_a_bucket_listing_is_parsed_like_the_standard_library_does() -> None:
    root = plain_xml.parse(LIST)
    assert ET.tostring(root) == ET.tostring(ET.fromstring(LIST))
    assert [key.text for key in root.iterfind(".//{*}Contents/{*}Key")] == ["a&bé", "c"]


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_or_malformed_xml_is_refused_at_once(what: str) -> None:
    began = time.process_time()
    with pytest.raises(NotPlain, match=r"XML|document type|nested"):
        plain_xml.parse(HOSTILE[what])
    assert time.process_time() - began < 5


MARKER = "application/x-deleted;swift_versions_deleted=1"


def xml(inside: str, root: str = "ListVersionsResult") -> bytes:
    return f'<?xml version="1.0"?><{root} xmlns="http://s3/">{inside}</{root}>'.encode()


def entry(kind: str, name: str, version: str) -> str:
    when = "<LastModified>2026-01-01T00:00:00Z</LastModified>"
    return f"<{kind}><Key>{name}</Key><VersionId>{version}</VersionId>{when}</{kind}>"


def test_s3_lists_versions_and_markers_page_by_page_as_it_says() -> None:
    pages = {
        "max-keys=1000&versions=": xml(
            entry("DeleteMarker", "a&amp;/b", "3+")
            + entry("Version", "a&amp;/b", "2")
            + "<IsTruncated>true</IsTruncated><NextKeyMarker>a&amp;/b</NextKeyMarker>"
            "<NextVersionIdMarker>null</NextVersionIdMarker>"
        ),
        "key-marker=a%26%2Fb&max-keys=1000&version-id-marker=2&versions=": xml(
            entry("Version", "c", "null") + "<IsTruncated>false</IsTruncated>"
        ),
    }
    found = list(listing("s3", "versions", pages.__getitem__))
    when = "2026-01-01T00:00:00Z"
    assert found == [
        Entry("a&/b", "3+", when),
        Entry("a&/b", "2", when),
        Entry("c", "null", when),
    ]
    assert found[0].query("s3") == "versionId=3%2B"


def test_swift_lists_versions_until_a_page_is_empty() -> None:
    first = [
        {"name": "a b", "version_id": "2.5", "content_type": MARKER, "last_modified": "then"},
        {"name": "a b", "version_id": "1.5", "content_type": "text/plain"},
    ]
    pages = {
        "format=json&limit=1000&versions=": json.dumps(first).encode(),
        "format=json&limit=1000&marker=a%20b&version_marker=1.5&versions=": b"[]",
    }
    found = list(listing("swift", "versions", pages.__getitem__))
    assert found == [Entry("a b", "2.5", "then"), Entry("a b", "1.5", "")]
    assert found[0].query("swift") == "version-id=2.5"


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_bucket_that_is_not_there_has_none(api: str) -> None:
    assert list(listing(api, "versions", lambda _: b"")) == []


@pytest.mark.parametrize(
    ("api", "body", "why"),
    [
        ("s3", xml("", "ListBucketResult"), "not a list of versions"),
        ("s3", b"<a", "XML"),
        ("s3", xml(entry("Version", "", "1")), "without a name or an ID"),
        ("s3", xml(entry("Version", "a", "")), "without a name or an ID"),
        ("s3", xml("<DeleteMarker><Key>a</Key></DeleteMarker>"), "without a name or an ID"),
        ("s3", xml("<IsTruncated>true</IsTruncated>"), "a truncated page without versions"),
        (
            "s3",
            xml("<IsTruncated>true</IsTruncated>" + entry("Version", "a", "1")),
            "does not go on after",
        ),
        ("s3", b'<!DOCTYPE a [<!ENTITY e "e">]><a/>', "document type"),
        ("swift", b"{", "Expecting"),
        ("swift", b"{}", None),
        ("swift", b"7", "not a list of versions"),
        ("swift", b'["a"]', "not a list of versions"),
        ("swift", b'[{"version_id": "1"}]', "not a list of versions"),
        ("swift", b'[{"name": "a"}]', "without a name or an ID"),
        ("swift", b'[{"name": "a", "version_id": 1}]', "without a name or an ID"),
        ("swift", b'[{"name": "\\ud800", "version_id": "1"}]', "surrogates"),
        ("swift", b'[{"name": "a", "version_id": "1"}]', "does not go on"),
    ],
)
def test_what_is_no_listing_and_what_does_not_go_on_is_refused(
    api: str, body: bytes, why: str | None
) -> None:
    if why is None:
        assert list(listing(api, "versions", lambda _: body)) == []
        return
    with pytest.raises(ValueError, match=why):
        list(listing(api, "versions", lambda _: body))


@pytest.mark.parametrize("second", [("a", "2"), ("0", "9")])
def test_pages_that_lead_back_end_with_an_error(second: tuple[str, str]) -> None:
    pages = [("a", "1"), second, ("a", "1")]

    def get(_query: str) -> bytes:
        name, version = pages[0]
        pages.append(pages.pop(0))
        return json.dumps([{"name": name, "version_id": version}]).encode()

    found = listing("swift", "versions", get)
    with pytest.raises(ValueError, match="does not go on"):
        for _, _ in zip(found, range(20), strict=False):
            pass


USER = Keystone(username="demo", project_name="lab")
BY_NAMES = {"username": "demo", "user_domain_name": "Users", "project_name": "lab"}


def place(url: str, interface: str = "public", region: str = "one") -> dict[str, str]:
    return {"url": url, "interface": interface, "region": region, "region_id": region, "id": "x"}


def token(*services: dict[str, Any], life_s: str = "30") -> HttpAnswer:
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
            {**BY_NAMES, "project_domain_id": "d2"},
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
        {"interface": "internal", "region": "two"},  # its URL is lacking
    )
    named = USER.model_copy(update={"region_name": "two", "interface": "internal"})
    granted = log_in(named, "s", "/v3", Answers(token(store(*places))))
    assert granted.storage_url == "http://a/inner"
    several = refused(USER, token(store(*places)))
    assert "in several regions, 'one', 'two': set `region_name`, or $OS" in several


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
    ("life_s", "why"),
    [("00", "its token lasts"), ("04", "its token lasts 4 s, and 5 s are needed")],
)
def test_a_token_that_ends_at_once_is_refused(life_s: str, why: str) -> None:
    assert why in refused(USER, token(store(place("http://10.0.0.1/")), life_s=life_s))


def test_a_token_with_control_characters_is_refused() -> None:
    answer = token(store(place("http://10.0.0.1/", "public")))
    answer = replace(answer, headers={"x-subject-token": "tok\r\n X-Evil: yes"})
    assert "no header can carry" in refused(USER, answer)
