from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from weighbridge.common.endpoint import Endpoint, Endpoints, singles


def endpoint(**keys: Any) -> Endpoint:
    return Endpoint.model_validate({"api": "s3", "url": "http://a:8000", "user": "u", **keys})


def swift(**keys: Any) -> Endpoint:
    return endpoint(api="swift", url="http://a:8080/auth/v1.0", **keys)


def test_a_single_endpoint_is_itself() -> None:
    for one in (endpoint(), swift(), swift(storage_url="http://b/v1/AUTH_x")):
        assert one.each() == (one,)
        assert one.spread_words == ""


def test_each_of_several_endpoints_has_the_same_keys_and_path_at_its_own_place() -> None:
    one = swift(others=("http://b:8081", "http://c"), key=SecretStr("k"))
    assert [each.url for each in one.each()] == [
        "http://a:8080/auth/v1.0",
        "http://b:8081/auth/v1.0",
        "http://c/auth/v1.0",
    ]
    assert {each.key.get_secret_value() for each in one.each()} == {"k"}
    assert all(each.others == () for each in one.each())


def test_a_given_storage_url_moves_instead_of_auth() -> None:
    one = swift(storage_url="http://s1:1/v1/AUTH_x", others=("http://s2:1",))
    assert one.bases == ("http://s1:1", "http://s2:1")
    assert [(each.url, each.storage_url) for each in one.each()] == [
        ("http://a:8080/auth/v1.0", "http://s1:1/v1/AUTH_x"),
        ("http://a:8080/auth/v1.0", "http://s2:1/v1/AUTH_x"),
    ]


def test_singles_are_in_order() -> None:
    found = singles([endpoint(others=("http://b",)), swift()])
    assert [one.url for one in found] == ["http://a:8000", "http://b", "http://a:8080/auth/v1.0"]


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
