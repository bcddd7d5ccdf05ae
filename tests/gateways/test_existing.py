"""Gateways that already run, without root: the null target, plain and behind TLS."""

from __future__ import annotations

import itertools
import json
import os
import re
import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection, get_auth

from aws_profiles import source_of
from http_stub import Request, Response, Server, served
from lying_store import leftovers, lying_store
from null_process import KEY, null_process, s3_client
from tcp_relay import relayed
from tests.drivers.conftest import closed_port
from tests.gateways.capabilities.memory_store import MemoryStore, memory_store
from threaded_driver import run_program
from tls_proxy import authority, terminated
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import (
    BucketsLeft,
    CommandFailed,
    TargetError,
    UsageError,
    VerificationFailed,
)
from weighbridge.common.exchange import WrongAnswer, exchanging
from weighbridge.drivers.locust.account import Account
from weighbridge.gateways.existing import clear, credentials, existing, leftover_buckets
from weighbridge.gateways.existing.clear import keeps_versions
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.existing.settings import ExistingPlacement, ExistingSettings
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.program import run_with_endpoints
from weighbridge.gateways.verify import verify
from weighbridge.topologies.fake import FakeHost, ThisHost
from weighbridge.topologies.local_command import command


@contextmanager
def null_target(**options: float) -> Iterator[tuple[str, int]]:
    with null_process(user="weigh:er", key=KEY, **options) as (_, url):
        yield "127.0.0.1", int(url.rsplit(":", 1)[1])


@pytest.fixture(scope="module")
def null() -> Iterator[tuple[str, int]]:
    with null_target() as place:
        yield place


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ThisHost]:
    host = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    yield host
    host.close()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials of the null target in the environment, and no AWS files but the test's."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "OS_STORAGE_URL", "OS_AUTH_TOKEN", "ST_AUTH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "weigh:er",
        "AWS_SECRET_ACCESS_KEY": KEY,
        "ST_USER": "weigh:er",
        "ST_KEY": KEY,
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def settings(place: tuple[str, int], scheme: str = "http", **parts: Any) -> ExistingSettings:
    base = f"{scheme}://{place[0]}:{place[1]}"
    both = {"s3": {"url": base}, "swift": {"auth_url": f"{base}/auth/v1.0"}}
    return ExistingSettings.model_validate(
        {
            api: {**part, **parts.get(api, {})}
            for api, part in both.items()
            if parts.get(api) is not False
        }
    )


def start(client: ThisHost, given: ExistingSettings) -> RunningGateway:
    return Existing("any", ExistingPlacement(), given).bring_up({}, client, print)


@contextmanager
def account(place: tuple[str, int]) -> Iterator[Any]:
    swift: Any = Connection(f"http://{place[0]}:{place[1]}/auth/v1.0", "weigh:er", KEY, retries=0)
    yield swift
    swift.close()


def containers(place: tuple[str, int]) -> list[str]:
    with account(place) as swift:
        return [one["name"] for one in swift.get_account()[1]]


def fill(place: tuple[str, int], container: str, objects: int) -> None:
    with account(place) as swift:
        swift.put_container(container)
        for number in range(objects):
            swift.put_object(container, f"an object/{number} of some", b"x")


def test_a_running_gateway_is_verified_over_both_apis_and_nothing_is_left_in_it(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    environment.setattr(FakeHost, "run", run_program)  # which starts what asks
    before = containers(null)
    running = start(client, settings(null))
    assert running.facts["verified"] == "16 operations over swift and s3, reads byte for byte"
    assert running.facts["s3: tls"] == "none: plain HTTP"
    assert running.facts["caches"].startswith("not dropped")
    assert KEY not in json.dumps(dict(running.facts))
    assert running.drop_caches()[0].startswith("not dropped")
    running.check()
    assert containers(null) == before


def test_clearing_deletes_the_named_buckets_and_no_other(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    environment.setattr(FakeHost, "run", run_program)  # which starts what asks
    fill(null, "wb-1-small-0", 1100)
    fill(null, "wb-1-small-01", 1)
    running = start(client, settings(null))
    cleared = running.clear(["wb-1-small-0", "wb-1-small-1"])
    assert cleared == ("deleted the bucket wb-1-small-0; objects left in it: 1100",)
    assert containers(null) == ["wb-1-small-01"]
    assert running.clear(["wb-1-small-01"])
    assert running.clear(["wb-1-small-01"]) == ()


@pytest.mark.usefixtures("environment")
def test_clearing_uses_the_next_endpoint_where_one_is_dead(
    null: tuple[str, int], client: ThisHost
) -> None:
    fill(null, "wb-1-small-0", 1)
    (known,) = credentials.endpoints(settings(null, swift=False), os.environ)
    two = known.model_copy(update={"url": "http://127.0.0.1:9", "others": (known.url,)})
    assert existing.clear(client, (two,), ["wb-1-small-0"])
    assert "wb-1-small-0" not in containers(null)


@pytest.mark.usefixtures("environment")
def test_buckets_that_cannot_be_deleted_are_named(client: ThisHost) -> None:
    with null_target() as place:
        running = start(client, settings(place))
    with pytest.raises(TargetError) as error:
        running.clear(["wb-1-small-0", "wb-1-small-1"])
    assert "  wb-1-small-0, wb-1-small-1: " in error.value.message
    assert "connection refused" in error.value.message
    with pytest.raises(TargetError, match=f"at http://127.0.0.1:{place[1]}.*connection refused"):
        running.check()


@pytest.mark.usefixtures("environment")
def test_a_failed_verification_leaves_no_bucket(client: ThisHost) -> None:
    with null_target(fail_share=1.0) as place:
        with pytest.raises(VerificationFailed, match=r"swift PUT at .* \(status 503\)"):
            start(client, settings(place))
        assert containers(place) == []


def test_a_wrong_key_is_reported_with_its_source(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("ST_KEY", "wrong")
    with pytest.raises(VerificationFailed, match=r"swift auth at .*status 401") as error:
        start(client, settings(null))
    assert "$ST_KEY" in error.value.advice


CATALOGUE = "Keystone's catalogue ($OS_INTERFACE public) has the storage URL "


@pytest.mark.parametrize(
    ("of_catalogue", "status", "said"),
    [
        ("http://swift.invalid", 404, f"{CATALOGUE}http://swift.invalid/v1/AUTH_p: no ans"),
        ("https://{there}", 404, f"{CATALOGUE}https://{{there}}/v1/AUTH_p: no answer: this"),
        ("http://{there}", 404, f"{CATALOGUE}http://{{there}}/v1/AUTH_p: 200 or 201"),
        ("http://{there}", 401, "The login is right: that store asks another"),
        ("http://{here}", 401, "The login is right: that store asks another"),
        ("http://{here}", 404, "swift make bucket at http://{here}/v3: 200 or 201"),
    ],
)
def test_what_fails_at_the_storage_url_of_a_catalogue_is_not_laid_to_keystone(
    client: ThisHost, environment: pytest.MonkeyPatch, of_catalogue: str, status: int, said: str
) -> None:
    for name, value in {"USERNAME": "u", "PASSWORD": KEY, "PROJECT_NAME": "p"}.items():
        environment.setenv(f"OS_{name}", value)
    places: dict[str, str] = {}

    def keystone(request: Request) -> Response:
        if not request.path.endswith("/auth/tokens"):
            return store(request)
        url = f"{of_catalogue.format(**places)}/v1/AUTH_p"
        place = {"url": url, "interface": "public", "region": "one", "region_id": "one", "id": "x"}
        service = {"type": "object-store", "name": "swift", "endpoints": [place]}
        times = {"issued_at": "2026-11-27T10:00:00Z", "expires_at": "2036-11-27T10:00:00Z"}
        token = {"token": {**times, "catalog": [service], "user": {"name": "u"}}}
        return Response(201, json.dumps(token).encode(), {"X-Subject-Token": "gAAA"})

    def store(_: Request) -> Response:
        return Response(status, b"")

    with Server(keystone).serving() as here, Server(store).serving() as there:
        places = {"here": f"127.0.0.1:{here.port}", "there": f"127.0.0.1:{there.port}"}
        url = f"{here.url}/v3"
        given = ExistingSettings.model_validate({"swift": {"keystone": {"auth_url": url}}})
        with pytest.raises(VerificationFailed) as error:
            start(client, given)
    assert said.format(**places) in f"{error.value.message}\n{error.value.advice}"


@contextmanager
def saying(answer: bytes) -> Iterator[tuple[str, int]]:
    """A server that says the same to every request, and closes."""

    class Says(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(answer)

    with served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Says)) as server:
        yield "127.0.0.1", server.server_address[1]


@pytest.mark.usefixtures("environment")
def test_words_that_are_cut_do_not_begin_a_key(client: ThisHost) -> None:
    body = f"<Error><Code>Denied</Code><Message>{'x' * 180} {KEY}</Message></Error>".encode()
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body)
    with saying(head + body) as place, pytest.raises(VerificationFailed) as refused:
        start(client, settings(place))
    assert "Denied: x" in refused.value.message
    assert f" {KEY[:4]}" not in refused.value.message


def refusal(status: str, code: str, said: str = "", *, hours: float = 0) -> Callable[[], bytes]:
    """What makes an answer of S3, by a clock that is ahead of this one."""

    def answer() -> bytes:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{said}</Message></Error>"
        date = format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)
        head = f"HTTP/1.1 {status}\r\nDate: {date}\r\nConnection: close\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    return answer


def elsewhere(status: str, header: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\n{header}\r\n\r\n".encode()


PAGE = b"HTTP/1.1 400 No\r\nConnection: close\r\n\r\n<title>400 plain HTTP to an HTTPS port</title>"
PORTAL = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<!DOCTYPE html><title>Hotel</title>"
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ALERT = b"\x15\x03\x03\x00\x02\x02"


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("answer", "scheme", "words", "advice"),
    [
        (
            refusal("403 F", "RequestTimeTooSkewed", hours=-2),
            "http",
            r"refused since .* clock is 2:0\d:\d\d ahead of the store.*timedatectl.*\nRequestTime",
            "",
        ),
        (refusal("403 F", "AccessDenied", hours=3), "http", r"refused, and .* 2:\d\d:\d\d be", ""),
        (refusal("403 F", "RequestTimeTooSkewed"), "http", "this machine's clock is off from", ""),
        (
            refusal("403 F", "InvalidAccessKeyId", "no such key"),
            "http",
            r"200 or .* expected \(status 403\)\nInvalidAccessKeyId: no such key$",
            "the credentials of the environment or the AWS files, signed for the region us-east-1",
        ),
        (
            refusal("400 B", "AuthorizationHeaderMalformed", "expecting 'eu-lab-7'"),
            "http",
            "expecting 'eu-lab-7'$",
            "signed for the region us-east-1: check them.",
        ),
        (
            elsewhere("301 M", "X-Amz-Bucket-Region: eu-9"),
            "http",
            r"this belongs to the region eu-9: give that one, .* it \(status 301\)$",
            "",
        ),
        (
            elsewhere("307 T", "Location: https://b.example/wb-check?secret=x"),
            "http",
            r"it redirects to https://b\.example: give that URL \(status 307\)$",
            "",
        ),
        (elsewhere("307 T", "Location: https://u:s@h/"), "http", r"expected \(status 307\)$", ""),
        (refusal("503 S", "SlowDown", "Less"), "http", "limits requests now: SlowDown: Less", ""),
        (elsewhere("503 S", "Retry-After: 9"), "http", "it limits requests now: try again", ""),
        (elsewhere("503 S", "A: b"), "http", "status 503: it fails by itself; see its log$", ""),
        (refusal("400 B", "TooManyBuckets"), "http", "TooManyBuckets; delete some .* limit$", ""),
        (refusal("403 F", "QuotaExceeded", "full"), "http", "full; delete some, or .*quota$", ""),
        (refusal("400", "InvalidLocationConstraint"), "http", r"Constraint; .* \$AWS_REGION$", ""),
        (PAGE, "http", "this port speaks TLS; use https://$", ""),
        (PORTAL, "http", r"is no answer of a store: check the URL \(status 200\)\nHotel$", ""),
        (elsewhere("511 N", "A: b"), "http", "status 511: a network in between wants a login$", ""),
        (CHUNKS + b"-5\r\nabc", "http", "what it sends is not HTTP; check the port", ""),
        (b"\x15\x03\x03\x00\x02\x02\x46", "http", "this port speaks TLS; use https://", ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "http", "what it sends is not HTTP; check the port", ""),
        (b"", "http", "it closed the connection; if this port speaks TLS, use https://", ""),
        (b"HTTP/1.1 400 B\r\n\r\n", "https", "this port speaks no TLS; use http://", ""),
        (ALERT + b"\x28", "https", "answer: it takes no cipher .*, or wants a client cert", ""),
        (ALERT + b"\x46", "https", "answer: it speaks no TLS 1.2 or 1.3; allow one there$", ""),
        (ALERT + b"\x70", "https", "answer: it serves nothing by this name", ""),
        (ALERT + b"\x74", "https", "answer: it wants a client certificate", ""),
    ],
)
def test_an_endpoint_that_cannot_be_used_says_why_in_the_users_terms(
    client: ThisHost, answer: bytes | Callable[[], bytes], scheme: str, words: str, advice: str
) -> None:
    said = answer if isinstance(answer, bytes) else answer()
    with saying(said) as place, pytest.raises(TargetError) as refused:
        start(client, settings(place, scheme, swift=False))
    assert re.search(words, refused.value.message), refused.value.message
    assert advice in refused.value.advice
    assert "credentials" not in refused.value.advice or advice
    assert not re.search(r"<Error|<html|Error\(", str(refused.value))


@pytest.mark.usefixtures("environment")
def test_keystones_root_that_is_taken_for_auth_v1_says_so(client: ThisHost) -> None:
    body = b'{"versions": {"values": [{"id": "v3.14"}]}}'
    answer = b"HTTP/1.1 300 M\r\nConnection: close\r\nContent-Length: 43\r\n\r\n" + body
    with saying(answer) as place, pytest.raises(TargetError, match="this is Keystone, which lists"):
        start(client, settings(place, s3=False, swift={"auth_url": f"http://127.0.0.1:{place[1]}"}))


@pytest.mark.usefixtures("environment")
def test_a_host_name_that_does_not_resolve_is_reported_first(client: ThisHost) -> None:
    with pytest.raises(TargetError, match=r"store\.invalid: no answer: its name does not resolve"):
        start(client, settings(("store.invalid", 80), swift=False))


def test_a_given_token_is_used_without_auth(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    with account(null) as swift:
        url, token = swift.get_auth()
    environment.setenv("OS_AUTH_TOKEN", token)
    environment.setenv("OS_STORAGE_URL", url)
    environment.delenv("ST_KEY")
    given = ExistingSettings.model_validate({"swift": {"token_env": "OS_AUTH_TOKEN"}})
    assert start(client, given).facts["swift: credentials"] == "from the token of $OS_AUTH_TOKEN"
    environment.setenv("OS_AUTH_TOKEN", "old")
    with pytest.raises(VerificationFailed, match="status 401"):
        start(client, given)


@pytest.mark.usefixtures("environment")
def test_tls_is_verified_with_the_given_ca(
    null: tuple[str, int], client: ThisHost, tmp_path: Path
) -> None:
    ca, certificate = authority(tmp_path / "tls", ["127.0.0.1"])
    other, _ = authority(tmp_path / "tls", ["127.0.0.1"], name="other")
    with terminated(certificate, null) as port:
        base = f"https://127.0.0.1:{port}"
        storage = {"ca_file": str(ca), "storage_url": f"{base}/v1/AUTH_test"}
        both = {"s3": {"ca_file": str(ca)}, "swift": storage}
        running = start(client, settings(("127.0.0.1", port), "https", **both))
        assert "signed by Test authority" in running.facts["s3: tls"]
        assert running.facts["s3: tls"].startswith("TLSv1.")
        for trusted in ({}, {"ca_file": str(other)}):
            with pytest.raises(TargetError, match="its certificate is not accepted: ") as error:
                start(client, settings(("127.0.0.1", port), "https", s3=trusted, swift=False))
            assert "ca_file" in error.value.advice or str(other) in error.value.advice
        plain = r"storage URL is http://.* unencrypted; set `storage_url`"
        alone = settings(("127.0.0.1", port), "https", s3=False, swift={"ca_file": str(ca)})
        with pytest.raises(VerificationFailed, match=plain):
            start(client, alone)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("name", "given", "what"),
    [
        ("store.example", {}, "IP address mismatch"),
        ("127.0.0.1", {"expired": True}, "has expired"),
        ("127.0.0.1", {"use": "clientAuth"}, "purpose; use one for servers"),
        ("localhost", {"alternatives": False}, "Hostname mismatch"),
        ("127.0.0.1", {"curve": "secp521r1"}, "has a key of P-521"),
    ],
)
def test_a_certificate_that_the_engine_would_refuse_is_not_accepted(
    null: tuple[str, int], client: ThisHost, tmp_path: Path, name: str, given: Any, what: str
) -> None:
    host = name if name == "localhost" else "127.0.0.1"
    ca, certificate = authority(tmp_path / "tls", [name], **given)
    with (
        terminated(certificate, null) as port,
        pytest.raises(TargetError, match=f"its certificate .*{what}"),
    ):
        start(client, settings((host, port), "https", s3={"ca_file": str(ca)}, swift=False))


@pytest.mark.parametrize("key", ["Schlüssel", "hasło"])
def test_a_key_is_sent_as_swifts_own_client_sends_it(
    client: ThisHost, environment: pytest.MonkeyPatch, key: str
) -> None:
    environment.setenv("ST_KEY", key)
    with null_process(user="weigh:er", key=key) as (_, url):
        assert get_auth(f"{url}/auth/v1.0", "weigh:er", key)
        given = settings(("127.0.0.1", int(url.rsplit(":", 1)[1])), s3=False)
        assert "swift" in start(client, given).facts["verified"]
        (endpoint,) = credentials.endpoints(given, os.environ)
        Account(endpoint, 10.0).authenticate()


@pytest.mark.parametrize("variable", ["ST_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_trailing_line_break_of_a_key_is_dropped(
    variable: str, end: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(variable, f"planted-one{end}")
    found = credentials.endpoints(settings(("127.0.0.1", 9)), os.environ)
    keys = [key for one in found for key in (one.key, one.token) if key is not None]
    assert "planted-one" in [key.get_secret_value() for key in keys]
    assert not [key for key in keys if key.get_secret_value() != key.get_secret_value().strip()]


@pytest.mark.parametrize(
    "variable", ["ST_KEY", "ST_USER", "OS_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
)
def test_a_key_that_http_cannot_carry_is_refused_first_and_not_shown(
    variable: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(variable, "planted-one\nplanted-two")
    token = {"token_env": variable, "storage_url": "http://127.0.0.1:9"}
    swift = token if variable == "OS_AUTH_TOKEN" else {"auth_url": "http://127.0.0.1:9"}
    given = ExistingSettings.model_validate({"swift": swift, "s3": {"url": "http://127.0.0.1:9"}})
    with pytest.raises(UsageError, match=f"{variable}: contains|s3: the se.*contains") as error:
        credentials.endpoints(given, dict(os.environ))
    assert "planted" not in str(error.value)


def test_no_library_message_shows_a_key_that_it_cannot_send(
    null: tuple[str, int], client: ThisHost
) -> None:
    auth, key = "http://{}:{}/auth/v1.0".format(*null), SecretStr("planted-one\nplanted-two")
    endpoint = Endpoint(api="swift", url=auth, user="weigh:er", key=key)
    with pytest.raises(VerificationFailed, match=r"swift auth at .*: not sent: ") as error:
        verify(client, [endpoint])
    assert "planted" not in str(error.value)


def test_a_key_in_a_failed_programs_output_is_not_shown(
    tmp_path: Path, client: ThisHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fails.py").write_text("raise ValueError('Invalid header value ' + input())")
    monkeypatch.setattr("weighbridge.common.host.IMPORTED_FROM", tmp_path)
    endpoint = Endpoint(api="s3", url="http://127.0.0.1:9", user="u", key=SecretStr("planted-key"))
    with pytest.raises(CommandFailed) as error:
        run_with_endpoints(client, "fails", [endpoint], {}, timeout_s=20.0)
    assert "Invalid header value" in str(error.value)
    assert "planted" not in str(error.value)


@contextmanager
def two_ports() -> Iterator[tuple[int, list[str]]]:
    """One null target at two ports: two endpoints of one store."""
    with null_target() as (_, port), relayed(port) as other:
        yield port, [f"http://127.0.0.1:{port}", f"http://127.0.0.1:{other}"]


def spread(urls: list[str], **endpoints: Any) -> ExistingSettings:
    return ExistingSettings.model_validate(
        {
            "s3": {"url": urls},
            "swift": {"auth_url": [f"{url}/auth/v1.0" for url in urls]},
            "endpoints": endpoints,
        }
    )


@pytest.mark.usefixtures("environment")
def test_each_of_several_endpoints_is_verified_by_itself(client: ThisHost) -> None:
    dead = f"http://127.0.0.1:{closed_port()}"
    with two_ports() as (_, urls):
        running = start(client, spread(urls))
        running.check()
        with pytest.raises(TargetError, match=dead):
            start(client, spread([*urls, dead]))
    assert running.facts["verified"].startswith("32 operations over")
    assert running.facts["s3: endpoint"] == ", ".join(urls)
    assert [one.others for one in running.endpoints] == [(urls[1],)] * 2


@pytest.mark.usefixtures("environment")
def test_a_dead_endpoint_is_left_out_if_the_layout_says_so_while_another_answers(
    client: ThisHost,
) -> None:
    dead = f"http://127.0.0.1:{closed_port()}"
    with two_ports() as (port, urls):
        running = start(client, spread([dead, *urls], drop_dead=True))
        assert dead in running.facts["s3: dead"]
        assert dead in running.facts["swift: dead"]
        running.check()
        fill(("127.0.0.1", port), "wb-1-small-0", 2)
        assert running.clear(["wb-1-small-0"])
    with pytest.raises(TargetError):
        running.check()


@pytest.mark.usefixtures("environment")
def test_the_addresses_of_a_name_are_facts(null: tuple[str, int], client: ThisHost) -> None:
    given = settings(("localhost", null[1]), s3={"addresses": "all"}, swift=False)
    assert "127.0.0.1" in start(client, given).facts["s3: addresses"]


class Ended(BaseException):
    """What a signal raises."""


def endpoint(url: str, api: Any = "s3") -> Endpoint:
    url += "/auth/v1.0" if api == "swift" else ""
    return Endpoint(api=api, url=url, user="weigh:er", key=SecretStr(KEY))


@pytest.mark.parametrize(
    ("status", "words"),
    [(409, "still not empty: 5 objects in its list"), (204, "accepted, and it is still there")],
)
def test_a_bucket_that_is_there_whatever_was_deleted_is_given_up(status: int, words: str) -> None:
    with lying_store(status) as url, pytest.raises(WrongAnswer, match=words):
        clear.clear(endpoint(url).model_dump(mode="json"), "wb-1-small-0", 0.5)


def test_an_object_that_somebody_else_put_there_since_is_not_deleted() -> None:
    only = re.compile("another-name")
    with lying_store() as url, pytest.raises(WrongAnswer, match="someone else's object"):
        clear.clear(endpoint(url).model_dump(mode="json"), "wb-1-small-0", 0.5, only)


def test_only_what_was_not_deleted_before_counts_as_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clear, "_REMEMBERED", 3)
    deleted = clear._Deleted()
    assert deleted.add(["b", "c"]) == 2
    assert deleted.add(["c", "a"]) == 1
    # From here on no more is remembered: names must ascend.
    assert deleted.add(["e", "f"]) == 2
    assert deleted.add(["e", "f", "a", "b"]) == 0
    assert deleted.count == 5


@pytest.mark.parametrize("count", [2, 100])
def test_buckets_are_named_if_the_program_that_deletes_them_is_ended(
    tmp_path: Path, count: int
) -> None:
    buckets = [f"wb-1-small-{number}" for number in range(count)]
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    with lying_store() as url, pytest.raises(BucketsLeft) as error:
        existing.clear(client, [endpoint(url)], buckets, within_s=1)
    assert isinstance(error.value.__cause__, CommandFailed)
    assert error.value.buckets == tuple(buckets)
    named = "wb-1-small-0, wb-1-small-1" if count == 2 else "100 whose names begin with wb-1-small-"
    assert f"\n  {named}: client-1: " in error.value.message
    assert error.value.words == f"buckets that may be left: {named}"


def test_the_bucket_of_a_verification_that_a_signal_ends_is_noted_if_it_may_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise Ended

    monkeypatch.setattr(existing, "verify", ended)
    monkeypatch.setattr(existing, "_CLEARED_S", 1.0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "planted")
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    said: list[str] = []
    with lying_store() as url:
        given = ExistingSettings.model_validate({"s3": {"url": url, "credentials": "environment"}})
        gateway = Existing("any", ExistingPlacement(), given)
        with pytest.raises(Ended) as error:
            gateway.bring_up({}, client, said.append)
    (note,) = error.value.__notes__
    assert note.startswith("buckets that may be left: wb-check-")
    assert note.rpartition(": ")[2] in said[-1]


BUCKET = "wb-01234567-w-0"


def fill_versions(store: MemoryStore, *names: str) -> Any:
    """Put each name twice and delete it, in a bucket that keeps versions."""
    client = s3_client(store.server.url, "weigh:er", KEY)
    client.create_bucket(Bucket=BUCKET)
    on = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=on)
    for name in names:
        client.put_object(Bucket=BUCKET, Key=name, Body=b"1")
        client.put_object(Bucket=BUCKET, Key=name, Body=b"2")
        client.delete_object(Bucket=BUCKET, Key=name)
    return client


def test_a_bucket_of_nothing_but_earlier_versions_is_found_and_deleted() -> None:
    with memory_store() as store:
        client = fill_versions(store, "object-0000000000", "written-00001-0000-00000-0000000000")
        assert "Contents" not in client.list_objects_v2(Bucket=BUCKET)
        where = store.endpoints[0]
        (found,) = leftovers(where)
        assert (found.bucket, found.strange, found.objects) == (BUCKET, (), 6)
        assert leftover_buckets.delete(where, BUCKET) == 6
        assert leftovers(where) == ()


def test_more_versions_than_are_deleted_at_once_are_all_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clear, "_VERSIONS", 7)
    with memory_store() as store:
        fill_versions(store, *(f"object-{index:010}" for index in range(12)))
        given = store.endpoints[0].model_dump(mode="json") | {"key": KEY}
        assert clear.clear(given, BUCKET, 5.0) == 36
        assert clear.clear(given, BUCKET, 5.0) is None


def test_what_is_counted_as_deleted_was_there_before() -> None:
    """Four objects, of which three have several versions: no marker that clearing adds counts."""
    with memory_store() as store:
        client = fill_versions(store)
        for number in (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3):
            client.put_object(Bucket=BUCKET, Key=f"object-{number:010}", Body=b"1")
        assert leftover_buckets.delete(store.endpoints[0], BUCKET) == 11


SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "planted-aws",
    "AWS_SESSION_TOKEN": "planted-session",
    "ST_KEY_B": "planted-other",
    "OS_PASSWORD": "planted-password",
    "OS_APPLICATION_CREDENTIAL_SECRET": "planted-application",
    "WEIGHBRIDGE_INFLUX_TOKEN": "planted-influx",
    "WEIGHBRIDGE_SSH_PASSPHRASE": "planted-passphrase",
    "COSBENCH_PASSWORD": "planted-cosbench",
    "MINE": "planted-mine",
}


@pytest.mark.parametrize("renewed", [False, True], ids=["keys", "keys that are renewed"])
def test_programs_on_this_machine_get_no_secret_but_those_that_renew_keys(
    tmp_path: Path, client: ThisHost, monkeypatch: pytest.MonkeyPatch, renewed: bool
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "the file")
    source = source_of(tmp_path, 60) if renewed else None
    keys = {"key": SecretStr("planted-mine"), "key_source": source}
    target = endpoint("http://127.0.0.1:1").model_copy(update=keys)
    (tmp_path / "shows.py").write_text("import os; print(dict(os.environ))")
    monkeypatch.setattr("weighbridge.common.host.IMPORTED_FROM", tmp_path)
    shown = run_with_endpoints(client, "shows", [target], {}, timeout_s=30)
    assert {name for name, value in SECRETS.items() if value in shown} == (
        set(SECRETS) if renewed else set()
    )
    assert "the file" in shown
    # Of the variables that a layout names by itself only its own programs know.
    for others in (command(["env"]), client.run(["env"], env={"A": "1"}).stdout):
        assert {name for name, value in SECRETS.items() if value in others} == {"MINE"}
        assert "the file" in others


def test_an_earlier_version_of_somebody_elses_object_is_seen_and_kept() -> None:
    with memory_store() as store:
        fill_versions(store, "object-0000000000", "holiday.jpg")
        where = store.endpoints[0]
        (found,) = leftovers(where)
        assert found.strange == ("holiday.jpg",) * 3
        with pytest.raises(TargetError, match=r"someone else's object: 'holiday\.jpg'"):
            leftover_buckets.delete(where, BUCKET)
        assert [one.objects for one in leftovers(where)] == [3]


@pytest.mark.parametrize(
    ("made", "written", "newest"),
    [(3, "12", 3), (1, "32", 3), (1, "23", 3), (3, "", 3), (1, "2?", None), (1, "?2", None)],
)
def test_a_bucket_is_as_young_as_the_youngest_in_it(
    made: int, written: str, newest: int | None
) -> None:
    """By days; a time that cannot be read counts as now, so that nothing is deleted by it."""
    times = "".join(
        f"<Contents><Key>object-{at}</Key><LastModified>2026-01-0{day}</LastModified></Contents>"
        for at, day in enumerate(written)
    )
    page = f"<ListBucketResult>{times}</ListBucketResult>".encode()
    with Server(lambda _: Response(200, page)).serving() as server:
        made_at = datetime(2026, 1, made, tzinfo=UTC)
        found = leftover_buckets.content(endpoint(server.url), BUCKET, made_at)
    assert found is not None
    expected = datetime(2026, 1, newest, tzinfo=UTC) if newest else datetime.now(UTC)
    assert abs(found.newest - expected) < timedelta(hours=1)


def test_an_endless_list_of_somebody_elses_objects_is_left_at_once() -> None:
    numbers = itertools.count()

    def answer(_: Request) -> Response:
        page = f"<Key>z{next(numbers):09}</Key><LastModified>2026-11-29T00:00:00Z</LastModified>"
        more = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        text = f"<ListBucketResult>{more}<Contents>{page}</Contents></ListBucketResult>"
        return Response(200, text.encode())

    with Server(answer).serving() as server:
        found = leftover_buckets.content(endpoint(server.url), BUCKET, datetime.now(UTC))
    assert found is not None
    assert len(found.strange) == leftover_buckets.SHOWN


def test_a_store_that_answers_anything_to_a_question_about_versions_keeps_none() -> None:
    with lying_store() as url:
        given = endpoint(url).model_dump(mode="json") | {"key": KEY}
        with exchanging(given, "b") as exchange:
            assert not keeps_versions(exchange, "s3", "b")
