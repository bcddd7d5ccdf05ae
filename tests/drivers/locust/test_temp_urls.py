"""The key of temporary URLs: a container's, or where a store knows none, one of the account's."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.signing import PRESIGNED
from weighbridge.drivers.kind import unfit
from weighbridge.drivers.locust import temp_urls
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.locust.temp_urls import TempUrl
from weighbridge.drivers.protocol import Prepare, Setup
from weighbridge.suites import UNSIGNED, Objects, Workload

FIRST, SECOND = "x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2"


class Store:
    """A Swift account: which keys it honours, which digests it knows, and what it was told."""

    def __init__(self, *, containers: bool, digests: tuple[str, ...], keys: dict[str, str]) -> None:
        self.honours_containers, self.digests = containers, digests
        self.account, self.container = keys, ""
        self.asked: list[str] = []
        self.refused = ""
        """A request that is answered with 503."""

    def answer(self, connection: socket.socket, head: bytes) -> bool:
        lines = head.decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        url = urlsplit(target)
        self.asked.append(f"{method} {url.path}")
        more = ""
        if url.path == "/auth":
            place = fields["host"]
            more = f"X-Storage-Url: http://{place}/v1/AUTH_a\r\nX-Auth-Token: token\r\n"
            status = "200 OK"
        elif "temp_url_sig" in url.query:
            assert "x-auth-token" not in fields
            status = "404 Not Found" if self.lets_in(method, url) else "401 Unauthorized"
        elif fields.get("x-auth-token") != "token":
            status = "401 Unauthorized"
        else:
            status = "204 No Content"
            if url.path == "/v1/AUTH_a":
                more = "".join(f"{name}: {value}\r\n" for name, value in self.account.items())
            self.note(method, url.path, fields)
        if f"{method} {url.path}" == self.refused:
            status = "503 Service Unavailable"
        connection.sendall(f"HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\n\r\n".encode())
        return True

    def lets_in(self, method: str, url: Any) -> bool:
        fields = parse_qs(url.query)
        text = f"{method}\n{fields['temp_url_expires'][0]}\n{url.path}".encode()
        keys = [*self.account.values(), *([self.container] if self.honours_containers else [])]
        right = [
            hmac.new(key.encode(), text, one).hexdigest()
            for key in keys
            if key
            for one in self.digests
        ]
        return fields["temp_url_sig"][0] in right

    def note(self, method: str, path: str, fields: dict[str, str]) -> None:
        if method == "POST" and path == "/v1/AUTH_a":
            for name, value in fields.items():
                if name.startswith("x-account-meta-"):
                    self.account[name] = value
                if name.startswith("x-remove-account-meta-"):
                    self.account.pop(name.replace("x-remove-", "x-"), None)
        elif method == "POST":
            self.container = fields["x-container-meta-temp-url-key"]


def setup_at(served: Any) -> Setup:
    target = Endpoint(
        api="swift", url=f"{served.url}/auth", user="a:b", key=SecretStr("very-secret")
    )
    return Setup(target=target, bucket_prefix="wb-url", seed=1)


def workload(**changed: Any) -> Workload:
    return Workload(
        **{
            "name": "w",
            "objects": Objects(size=10),
            "operations": {"write": 1},
            "workers": (1,),
            "runtime": 1.0,
            "signing": PRESIGNED,
            **changed,
        }
    )


@pytest.mark.parametrize(
    ("containers", "digests", "keys", "wanted", "given"),
    [
        (True, ("sha1", "sha256"), {}, "sha256", {}),
        (True, ("sha1",), {FIRST: "theirs"}, "sha1", {FIRST: "theirs"}),
        (False, ("sha1",), {}, "sha1", {SECOND: "ours"}),
        (False, ("sha256",), {SECOND: "theirs"}, "sha256", {SECOND: "theirs", FIRST: "ours"}),
        # radosgw keeps an empty key where one was taken away.
        (False, ("sha256",), {SECOND: "", FIRST: "theirs"}, "sha256", {}),
    ],
)
def test_the_containers_key_is_enough_or_a_free_one_of_the_accounts_is_used_and_freed(
    scripted: Callable[..., Any],
    containers: bool,
    digests: tuple[str, ...],
    keys: dict[str, str],
    wanted: str,
    given: dict[str, str],
) -> None:
    store = Store(containers=containers, digests=digests, keys={**keys})
    setup = setup_at(scripted(store.answer))
    own = temp_urls.key_of(setup)
    assert "very-secret" not in own
    objects = PreparedObjects(setup)
    objects.prepare(Prepare(workload=workload()), lambda _: None)
    assert store.container == own
    account = Account(setup.target, 5)
    account.authenticate()
    assert temp_urls.ready(account, "wb-url-w-0", own) == TempUrl(own, wanted)  # type: ignore[arg-type]
    if given:
        assert store.account == {name: own if key == "ours" else key for name, key in given.items()}
    assert temp_urls.ready(account, "wb-url-w-0", own).digest == wanted
    objects.delete_all(workload(), 1, lambda _: None)
    assert {name: key for name, key in store.account.items() if key} == {
        name: key for name, key in keys.items() if key
    }


def test_an_account_with_two_keys_of_others_is_left_as_it_is(scripted: Callable[..., Any]) -> None:
    keys = {FIRST: "theirs", SECOND: "theirs too"}
    store = Store(containers=False, digests=("sha1",), keys={**keys})
    setup = setup_at(scripted(store.answer))
    account = Account(setup.target, 5)
    account.authenticate()
    with pytest.raises(DriverError, match="the account has two keys already"):
        temp_urls.ready(account, "wb-url-w-0", "own")
    assert store.account == keys


def test_a_store_that_lets_no_temporary_url_in_is_reported_and_keeps_no_key(
    scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temp_urls, "_PAUSES_S", (0.0, 0.0))
    store = Store(containers=True, digests=(), keys={})
    setup = setup_at(scripted(store.answer))
    account = Account(setup.target, 5)
    account.authenticate()
    with pytest.raises(DriverError, match="temporary URLs are refused: HTTP 401"):
        temp_urls.ready(account, "wb-url-w-0", "own")
    assert store.account == {}


def test_objects_are_deleted_by_a_token_as_their_containers_may_be_gone(
    scripted: Callable[..., Any],
) -> None:
    store = Store(containers=False, digests=(), keys={})
    objects = PreparedObjects(setup_at(scripted(store.answer)))
    reading = workload(operations={"read": 1}, objects=Objects(size=10, per_container=3))
    assert objects.delete_all(reading, 1, lambda _: None) == (3, 0)
    deleted = [one for one in store.asked if one.startswith("DELETE")]
    assert len(deleted) == 4
    assert not [one for one in store.asked if one.startswith("POST")]


def test_a_store_that_takes_no_form_loses_the_containers_of_forms(
    scripted: Callable[..., Any],
) -> None:
    store = Store(containers=False, digests=(), keys={})
    objects = PreparedObjects(setup_at(scripted(store.answer)))
    forms = workload(
        operations={"read": 1, "write-form": 1},
        objects=Objects(size=10, per_container=3),
        signing=UNSIGNED,
    )
    assert objects.delete_all(forms, 1, lambda _: None) == (3, 0)
    assert "DELETE /v1/AUTH_a/wb-url-w-0" in store.asked


def test_the_accounts_key_is_freed_where_a_container_cannot_be_deleted(
    scripted: Callable[..., Any],
) -> None:
    store = Store(containers=False, digests=("sha1",), keys={})
    setup = setup_at(scripted(store.answer))
    account = Account(setup.target, 5)
    account.authenticate()
    temp_urls.ready(account, "wb-url-w-0", temp_urls.key_of(setup))
    assert store.account
    store.refused = "DELETE /v1/AUTH_a/wb-url-w-0"
    with pytest.raises(DriverError, match="cannot be deleted: HTTP 503"):
        PreparedObjects(setup).delete_all(workload(), 1, lambda _: None)
    assert store.account == {}


def test_the_key_does_not_depend_on_a_token_of_a_user_with_a_key() -> None:
    target = Endpoint(api="swift", url="http://h/v1/a", user="u", key=SecretStr("k"))
    keys = {
        temp_urls.key_of(
            Setup(
                target=target.model_copy(update={"key": SecretStr(key), "token": token}),
                bucket_prefix="wb-url",
                seed=1,
            )
        )
        for key, token in (("k", None), ("k", SecretStr("a")), ("k", SecretStr("b")))
    }
    assert len(keys) == 1


def test_other_workloads_set_no_key(scripted: Callable[..., Any]) -> None:
    store = Store(containers=True, digests=("sha1",), keys={})
    plain = workload(signing={"auth": "header"})
    PreparedObjects(setup_at(scripted(store.answer))).prepare(
        Prepare(workload=plain), lambda _: None
    )
    assert not [one for one in store.asked if one.startswith("POST")]


def test_listings_and_other_drivers_are_refused_temporary_urls() -> None:
    assert unfit("locust", workload(), "swift") == ()
    listing = workload(operations={"list": 1, "read": 1})
    assert unfit("locust", listing, "s3") == ()
    [why] = unfit("locust", listing, "swift")
    assert why == (
        "temporary URLs are of objects, not of listings: over swift leave list or `signing` out"
    )
    faults = unfit("cosbench", workload(), "swift")
    assert any("COSBench signs in its own way" in one for one in faults)
