from __future__ import annotations

import http.client
import json
import socket
import time
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import pytest
from pydantic import ValidationError

from dripping import dripping
from http_stub import Response, Server
from weighbridge.common.bounded_http import connect, exchanged, without_query
from weighbridge.common.credential import (
    SshPlace,
    credential,
    folder_or_ssh_place,
    redacted,
    ssh_place,
)
from weighbridge.common.endpoint import Endpoint, Endpoints, singles
from weighbridge.common.errors import UsageError
from weighbridge.common.exchange import Wire, WrongAnswer, exchanging


def endpoint(**keys: Any) -> Endpoint:
    return Endpoint.model_validate({"api": "s3", "url": "http://a:8000", "user": "u", **keys})


def swift(**keys: Any) -> Endpoint:
    return endpoint(api="swift", url="http://a:8080/auth/v1.0", **keys)


def test_a_single_endpoint_is_itself() -> None:
    for one in (endpoint(), swift(), swift(storage_url="http://b/v1/AUTH_x")):
        assert one.each() == (one,)
        assert one.spread_words == ""


def test_each_of_several_endpoints_is_by_itself_and_in_order() -> None:
    found = singles([endpoint(others=("http://b",)), swift(others=("http://c",)), swift()])
    urls = [
        "http://a:8000",
        "http://b",
        *(f"http://{host}/auth/v1.0" for host in ("a:8080", "c", "a:8080")),
    ]
    assert [one.url for one in found] == urls
    assert all(one.others == () for one in found)


def test_several_endpoints_are_said_in_words() -> None:
    many = endpoint(others=("http://b",), spreading=Endpoints(spread="round-robin", drop_dead=True))
    assert many.spread_words == (
        "http://a:8000, http://b; round-robin; those that are dead are left out"
    )
    assert endpoint(addresses="all").spread_words == "every address of http://a:8000; per-worker"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"others": ("http://a:8000",)}, "listed twice"),
        ({"url": "http://a", "others": ("http://A:80",)}, "listed twice"),
        ({"others": ("https://b",)}, "use TLS and others do not"),
        ({"others": ("http://b/path",)}, "pattern"),
        ({"others": ("ftp://b",)}, "pattern"),
        ({"others": tuple(f"http://b{n}" for n in range(64))}, "at most 63"),
        ({"others": ("http://b",), "addresses": "all"}, "for one name"),
        ({"addressing": "virtual", "addresses": "all"}, "for one name"),
        ({"spreading": {"spread": "at-random"}}, "per-worker"),
    ],
)
def test_endpoints_that_cannot_be_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        endpoint(**keys)


SECRETIVE_URLS = (
    "http://user:planted@h/controller",
    "http://planted@h/controller",
    "http://:planted@h/controller",
    "http://h/controller?password=planted",
    "http://h/controller?planted",
    "http://h/controller#planted",
    "http://user:planted",
    "http://[planted/controller",
    "http://user\u2100planted@h/controller",
    "http://h/\tplanted",
    "http://h/\x7fplanted",
    "http://h/pl\u00e4nted",
    *(
        "http://[::1%25planted]",
        "http://[::1%planted]",
        "http://127.0.0.1%00",
        "http://%6cocalhost",
    ),
    "ftp://h/planted",
    "planted",
)
SECRETIVE_PLACES = (
    "ssh://root:planted@h/archive",
    "ssh://root:planted@/archive",
    "ssh://root%3Aplanted@h/archive",
    "ssh://root;password=planted@h/archive",
    "ssh://h/archive?password=planted",
    "ssh://h:planted/archive",
    "ssh://root@h/arch\nplanted",
    "sftp://root@h/planted",
    "http://user:planted@h/archive",
)


@pytest.mark.parametrize("url", SECRETIVE_URLS)
def test_a_url_that_may_contain_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"not of the form|contains a user|has a query") as error:
        without_query(url)
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("place", SECRETIVE_PLACES)
def test_an_ssh_url_that_may_contain_a_secret_is_refused_and_not_repeated(place: str) -> None:
    with pytest.raises(ValueError, match="not of the form ssh://") as error:
        folder_or_ssh_place(place)
    assert "planted" not in str(error.value)


PLAIN_URLS = (
    *("http://h", "https://store.example:8443", "http://10.0.0.1:19088/controller"),
    "http://[::1]:80/a",
)


@pytest.mark.parametrize("url", PLAIN_URLS)
def test_a_url_without_query_is_accepted_with_its_scheme_in_lower_case(url: str) -> None:
    assert without_query(url) == without_query(url.replace("http", "HTTP")) == url


def test_an_ssh_url_is_parsed_with_and_without_user_and_port() -> None:
    assert ssh_place("ssh://root@h/opt/archive") == SshPlace("root", "h", 0, "/opt/archive")
    assert ssh_place("ssh://[::1]:2222/a b/") == SshPlace("", "::1", 2222, "/a b")
    assert folder_or_ssh_place("/opt/archive") == "/opt/archive"


SECRET = 'planted/secret+of=a "test" & more'
UNSENDABLE = (
    "a\n\n", "\na", "a\nX-Other: b", "a\rb", "a\0", "a\x1b[2J", "a\x7f", "a\u2028b", "a\udcff",
)  # fmt: skip
QUOTED = quote(SECRET, safe="")
FORMS = (
    *(SECRET, repr(SECRET), json.dumps(SECRET), json.dumps(SECRET).replace("/", r"\/")),
    *(quote(SECRET), QUOTED, QUOTED.lower(), quote_plus(SECRET), escape(SECRET)),
    *(
        "".join(form % ord(one) for one in SECRET)
        for form in (r"\u%04X", "&#%d;", "&#x%X;", "&#x%03x;")
    ),
    SECRET.replace("&", "&amp;").replace("/", "&#47;").replace("+", "%2b").replace('"', "&quot;"),
    *(b64encode(f"{user}{SECRET}".encode()).decode() for user in ("", "u:", "me:", "you:")),
    *(quote(QUOTED), quote(quote(QUOTED)), json.dumps(json.dumps(SECRET)), escape(escape(SECRET))),
    *(SECRET.encode().hex(), SECRET.encode().hex(" "), SECRET.encode().hex(":").upper()),
    "".join(f"\\{ord(one):03o}" for one in SECRET),
)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_line_end_after_a_key_is_removed(end: str) -> None:
    assert credential("$KEY", f"{SECRET}\u20ac{end}") == f"{SECRET}\u20ac"


@pytest.mark.parametrize("value", UNSENDABLE)
def test_a_key_that_no_header_can_carry_is_refused_with_its_origin_and_never_shown(
    value: str,
) -> None:
    with pytest.raises(UsageError) as error:
        credential("swift: $ST_KEY", f"planted{value}")
    assert str(error.value).startswith("swift: $ST_KEY: contains")
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_removed_from_a_text_in_every_encoding(form: str) -> None:
    text = redacted(f"Invalid header value b'{form}' of {form}", (SECRET, ""))
    assert "planted" not in text
    assert form[8:16] not in text
    assert (text.count("***"), text[:23]) == (2, "Invalid header value b'")


@pytest.mark.parametrize(
    "form", [r"\u%04x", r"\x%02x", r"\%03o", "&#%d;", "&#x%X;", "%%%02X", "%c"]
)
def test_bytes_of_utf_8_that_a_server_takes_for_latin_1_are_removed_too(form: str) -> None:
    secret = "pl\u00e4nted-secret"
    text = "".join(form % one for one in secret.encode())
    assert redacted(f"<{text}>", (secret,)) == "<***>"


@pytest.mark.parametrize("piece", ["\\", "&amp;", "%25", "&#0", "70", "70 ", "p"])
def test_a_text_of_nothing_but_the_beginnings_of_escapes_is_searched_in_no_time(piece: str) -> None:
    text = piece * 100_000
    began_s = time.process_time()
    assert redacted(text, (SECRET,)) == text
    assert time.process_time() - began_s < 5


def test_of_secrets_within_each_other_the_longer_one_is_removed_first() -> None:
    assert redacted("abc ab", ("ab", "abc")) == "*** ***"


@pytest.mark.parametrize(
    ("secret", "text", "left"),
    [
        ("a", "no answer at all: it's a wrong key", "no answer at all: it's a wrong key"),
        ("s", "it's refused; key='s', also \"s\"", "it's refused; key='***', also \"***\""),
        ("x", "key=x <key>x</key> b'x' next", "key=*** <key>***</key> b'***' next"),
        ("test", "the latest test, key test.", "the latest ***, key ***."),
        ("testing", "testing 3 retestings", "*** 3 retestings"),
        ("minioadmin", "preminioadminpost", "pre***post"),
    ],
)
def test_a_short_secret_does_not_garble_words(secret: str, text: str, left: str) -> None:
    assert redacted(text, (secret,)) == left


@pytest.fixture
def echo() -> Iterator[int]:
    with Server(lambda request: Response(200, request.body)).serving() as server:
        yield server.port


def test_a_connection_is_kept_for_the_next_request(echo: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", echo)
    ports = set()
    for body in (b"a" * 300_000, b"b"):
        response, found = exchanged(connection, 5.0, "PUT", "/", body, {}, 1_000_000)
        assert (response.status, found) == (200, body)
        ports.add(connection.sock.getsockname())
    connection.close()
    assert len(ports) == 1


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_server_that_drips_its_answer_has_no_more_time_than_a_silent_one(begin: bytes) -> None:
    with dripping(begin) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        # Who waited for each byte alone would wait for all of them: an hour.
        with pytest.raises(TimeoutError, match=r"no complete answer within 0\.3 s"):
            exchanged(connection, 0.3, "GET", "/", None, {}, 1_000_000)
        assert connection.sock is None


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("more", [{}, {"keystone": {"username": "u", "project_name": "p"}}])
def test_programs_on_client_hosts_give_up_an_auth_server_and_say_so(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, object], silent: bool
) -> None:
    monkeypatch.setattr(Wire.__init__, "__defaults__", (0.3,))
    with dripping(silent=silent) as port:
        endpoint = {"api": "swift", "url": f"http://127.0.0.1:{port}/v3", "user": "u", "key": "k"}
        with pytest.raises(WrongAnswer) as wrong, exchanging({**endpoint, **more}, "wb-check"):
            pass
    assert (wrong.value.operation, wrong.value.what) == ("auth", "no complete answer within 0.3 s")


def test_a_name_of_several_addresses_has_no_more_time_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        filling = [socket.socket() for _ in range(4)]
        for one in filling:
            one.settimeout(0.0)
            one.connect_ex(full.getsockname())
        address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 4)
        connection = http.client.HTTPConnection("store.example", 80)
        with pytest.raises(TimeoutError, match=r"no connection within 0\.4 s"):
            connect(connection, 0.4)
        assert connection.timeout == pytest.approx(0.4 / 4)  # each address in turn
        for one in filling:
            one.close()
