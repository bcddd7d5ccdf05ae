"""Endpoints that a command line names become the layouts that files would make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tls_proxy import authority
from weighbridge import selection
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.conductor.plan import make_plan
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.selection import EndpointLine, endpoint_layouts
from weighbridge.topologies.loader import Planned, load_layout

HARDWARE = selection.hardware_named("this-machine")
FILE = """
name: a
about: S3 at https://store.example:8443 and Swift at http://store.example/auth/v1.0
gateway: existing
release: any
place: {}
settings:
  about: S3 at https://store.example:8443 and Swift at http://store.example/auth/v1.0
  s3: {url: "https://store.example:8443", credentials: profile theirs}
  swift: {auth_url: "http://store.example/auth/v1.0", user_env: ST_USER, key_env: ST_KEY}
"""


def settings(planned: Planned) -> ExistingSettings:
    assert isinstance(planned.gateway, Existing)
    return planned.gateway.settings


def of_line(environment: dict[str, str], **line: tuple[str, ...]) -> list[ExistingSettings]:
    return [settings(one) for one in endpoint_layouts(EndpointLine(**line), HARDWARE, environment)]


def refused(environment: dict[str, str], **line: tuple[str, ...]) -> list[str]:
    with pytest.raises(DocumentError) as error:
        endpoint_layouts(EndpointLine(**line), HARDWARE, environment)
    return [str(one) for one in error.value.faults]


def test_a_layout_of_a_line_is_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILE)
    line = EndpointLine(
        s3=("a=https://store.example:8443",),
        swift=("a=http://store.example/auth/v1.0",),
        profiles=("theirs",),
    )
    (planned,) = endpoint_layouts(line, HARDWARE, {})
    by_file = load_layout(tmp_path / "a.yaml", HARDWARE)
    assert settings(planned) == settings(by_file)
    assert planned.layout == by_file.layout
    (tmp_path / "again.yaml").write_text(planned.text)
    assert load_layout(tmp_path / "again.yaml", HARDWARE).layout == planned.layout


def test_a_profile_is_of_all_s3_endpoints_or_of_the_one_that_it_names() -> None:
    urls = ("a=http://a.example", "b=http://b.example", "c=http://c.example")
    for profiles in (("usual", "b=theirs"), ("b=theirs", "usual")):
        found = of_line({}, s3=urls, profiles=profiles)
        keys = [one.s3.credentials for one in found if one.s3 is not None]
        assert keys == ["profile usual", "profile theirs", "profile usual"]
    alone = of_line({}, s3=urls, profiles=("b=theirs",))
    assert [one.s3.credentials for one in alone if one.s3] == ["aws", "profile theirs", "aws"]


def test_keys_of_swift_are_of_all_endpoints_or_of_the_one_that_their_names_end_with() -> None:
    own = {"ST_USER": "u", "ST_KEY": "k", "ST_USER_OLD_STORE": "u2", "ST_KEY_OLD_STORE": "k2"}
    urls = ("old-store=http://a.example/auth/v1.0", "new=http://b.example/auth/v1.0")
    found = [one.swift for one in of_line(own, swift=urls) if one.swift is not None]
    assert [(one.user_env, one.key_env) for one in found] == [
        ("ST_USER_OLD_STORE", "ST_KEY_OLD_STORE"),
        ("ST_USER", "ST_KEY"),
    ]


def test_with_nothing_but_a_token_the_url_of_swift_is_its_storage() -> None:
    url = ("a=http://a.example/v1/AUTH_me",)
    (token,) = of_line({"OS_AUTH_TOKEN": "t"}, swift=url)
    assert token.swift is not None
    assert (token.swift.storage_urls, token.swift.token_env) == (
        ("http://a.example/v1/AUTH_me",),
        "OS_AUTH_TOKEN",
    )
    (keyed,) = of_line({"OS_AUTH_TOKEN": "t", "ST_KEY": "k"}, swift=url)
    assert keyed.swift is not None
    assert keyed.swift.token_env is None


def test_region_and_authorities_come_from_the_variables_of_the_usual_tools(tmp_path: Path) -> None:
    ca, _ = authority(tmp_path, ["localhost"])
    here = {"AWS_REGION": "eu-west-1", "AWS_CA_BUNDLE": str(ca)}
    secure, plain = of_line(here, s3=("a=https://a.example", "b=http://b.example"))
    assert secure.s3 is not None
    assert plain.s3 is not None
    assert (secure.s3.region, secure.s3.ca_file) == ("eu-west-1", str(ca))
    assert (plain.s3.region, plain.s3.ca_file) == ("eu-west-1", None)
    (fault,) = refused({"AWS_CA_BUNDLE": "/none"}, s3=("a=https://a.example",))
    assert fault.startswith("$AWS_CA_BUNDLE:1:1: s3.ca_file: /none: No such file")


def test_all_that_is_wrong_is_reported_at_once_where_it_was_given() -> None:
    faults = refused(
        {},
        s3=("a=htp://x", "a=http://y", "http://z", "B=http://x", "c="),
        swift=("a=http://x/auth?b",),
        profiles=("d=x", "a=x y"),
    )
    heads = [one.splitlines()[0] for one in faults]
    for head in (
        "--s3:1:1: expected NAME=URL, such as a=https://store.example:8443",
        "--s3:1:3: the URL is missing",
        "--profile:1:1: there is no --s3 d=URL (known: a, B)",
        "--s3:1:3: s3.url: give a URL such as https://store.example:8443",
        "--swift:1:3: swift.auth_url: give a URL without ? and #",
        "--s3:1:1: name: String should match pattern '^[a-z0-9][a-z0-9-]{0,39}$'",
    ):
        assert head in heads
    assert any(head.startswith("--s3:1:1: 'a' has a URL already: ") for head in heads)
    assert any(head.startswith("--profile:1:3: s3.credentials: ") for head in heads)


def test_a_key_in_a_url_is_refused_and_not_repeated() -> None:
    (fault,) = refused({}, s3=("a=https://me:planted@store.example",))
    assert "a user or key must not be in a URL" in fault
    assert "planted" not in fault


def test_endpoints_have_their_own_suite_hardware_and_apis() -> None:
    line = EndpointLine(s3=("a=http://a.example", "b=http://b.example"))
    chosen = selection.select(None, (), None, line=line)
    assert (chosen.suite.name, chosen.suite.api, chosen.hardware.name) == (
        "endpoints",
        ("s3",),
        "this-machine",
    )
    assert [one.layout.name for one in chosen.layouts] == ["a", "b"]
    other = selection.select("quick", (), None, line=line)
    assert (other.suite.name, other.suite.api) == ("quick", ("s3",))


def test_an_s3_endpoint_and_a_swift_endpoint_are_not_compared() -> None:
    line = EndpointLine(s3=("a=http://a.example",), swift=("c=http://c.example/auth/v1.0",))
    chosen = selection.select(None, (), None, line=line)
    with pytest.raises(UsageError, match="a does not have the swift API; c does not have the s3"):
        make_plan(chosen.suite, chosen.hardware, chosen.layouts)
