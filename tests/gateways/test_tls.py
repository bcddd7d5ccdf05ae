"""Layouts with TLS: where it is refused, what is written for it, and what clients are given."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.gateways.apache.test_apache import text as apache_lines
from tests.gateways.rgw.planned_rgw import SITES, conf, rgw
from tests.gateways.stage import STORES, Stage
from tests.gateways.test_haproxy import sections
from weighbridge.gateways.apache.settings import ApacheSettings
from weighbridge.gateways.certificates import CA_FILE, SERVER_FILE
from weighbridge.gateways.front import FRONTS, FrontSettings
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.haproxy.front import Haproxy, HaproxySettings
from weighbridge.gateways.rgw import change as rgw_scopes
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift import change as swift_scopes
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift

FRONTED = {"haproxy": "gateway-1"}
PRIVATE = "PRIVATE KEY"


def swift(settings: Mapping[str, Any], **place: str) -> Swift:
    where = SwiftPlacement.model_validate({"proxy": ["gateway-1"], "storage": STORES, **place})
    return Swift("swift-2.30", where, SwiftSettings.model_validate(settings))


def text_of(gateway: Swift, path: str) -> str:
    return next(one.text for one in gateway.render(SITES) if one.path == path)


@pytest.mark.parametrize("kind", [FRONTS["haproxy"], FRONTS["apache"]])
def test_a_front_with_tls_is_on_the_port_of_https_unless_one_is_given(kind: Any) -> None:
    settings: type[FrontSettings] = kind.Settings
    assert [
        settings.model_validate(given).port
        for given in ({}, {"tls": False}, {"tls": True}, {"tls": True, "port": 8443})
    ] == [80, 80, 443, 8443]


def test_haproxy_speaks_http_1_over_tls_and_says_so_to_the_backends() -> None:
    assert sections(HaproxySettings.model_validate({"tls": True}))["frontend"] == [
        "bind 10.0.0.9:443 ssl crt /etc/weighbridge/server.pem ssl-min-ver TLSv1.2 alpn http/1.1",
        "http-request set-header X-Forwarded-Proto https",
        "default_backend gateways",
    ]


def test_both_virtual_hosts_of_apache_speak_tls_and_no_module_is_loaded_without() -> None:
    lines = apache_lines(ApacheSettings.model_validate({"tls": True}))
    assert lines.count("SSLEngine On") == lines.count("<VirtualHost *:443>") == 2
    assert lines.count(f'SSLCertificateFile "{SERVER_FILE}"') == 2
    assert "SSLProtocol -all +TLSv1.2 +TLSv1.3" in lines
    assert 'RequestHeader set X-Forwarded-Proto "https"' in lines
    modules = [line.split()[1] for line in lines if line.startswith("LoadModule")]
    assert {"ssl_module", "socache_shmcb_module", "headers_module"} <= set(modules)
    assert not [line for line in apache_lines(ApacheSettings()) if "ssl" in line.lower()]


def test_beast_listens_for_tls_alone() -> None:
    words = conf({"radosgw": {"tls": True}})["client.rgw.gateway-1"]["rgw_frontends"].split()
    assert words[:3] == [
        "beast",
        "ssl_endpoint=10.0.0.9:8000",
        f"ssl_certificate={SERVER_FILE}",
    ]
    assert not [word for word in words if word.startswith(("endpoint=", "port="))]


def test_radosgw_behind_a_front_with_tls_is_plain_and_knows_the_fronts_url() -> None:
    found = conf({"haproxy": {"tls": True}}, **FRONTED)
    assert found["client"]["rgw_swift_url"] == "https://10.0.0.9"
    assert found["client"]["rgw_trust_forwarded_https"] == "true"
    assert "ssl" not in found["client.rgw.gateway-1"]["rgw_frontends"]
    assert "rgw_trust_forwarded_https" not in conf({}, **FRONTED)["client"]


def test_swift_gives_clients_an_https_storage_url_behind_a_front_or_by_itself() -> None:
    path = "/etc/swift/proxy-server.conf"
    behind = text_of(swift({"haproxy": {"tls": True}}, **FRONTED), path)
    assert "storage_url_scheme = https\n" in behind
    assert "cert_file" not in behind
    itself = text_of(swift({"proxy": {"tls": True}}), path)
    assert "storage_url_scheme = https\n" in itself
    assert "cert_file = /etc/swift/server.pem\nkey_file = /etc/swift/server.pem\n" in itself
    assert "storage_url_scheme" not in text_of(swift({}), path)


@pytest.mark.parametrize(
    ("settings", "place", "words"),
    [
        ({"radosgw": {"tls": True}}, FRONTED, "tls of radosgw: .*; set `tls` of haproxy instead"),
        ({"haproxy": {"tls": True}}, {}, "settings of haproxy are given, but place names no host"),
        ({"radosgw": {"tls": True, "frontend": "civetweb"}}, {}, "not configure TLS of civetweb"),
        ({"apache": {"options": {"host": {"SSLEngine": True}}}}, {}, "SSLEngine is set by `tls`"),
    ],
)
def test_tls_that_a_layout_cannot_have_is_refused_when_it_is_read(
    settings: dict[str, object], place: dict[str, str], words: str
) -> None:
    with pytest.raises((ValueError, ValidationError), match=words):
        rgw(settings, **place)


def test_tls_of_a_proxy_behind_a_front_or_of_one_that_does_not_follow_the_setting_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="tls of proxies: clients talk to haproxy"):
        swift({"proxy": {"tls": True}}, **FRONTED)
    monkeypatch.setattr(Haproxy, "speaks_tls", False)
    with pytest.raises(ValueError, match="this suite does not configure TLS of haproxy"):
        swift({"haproxy": {"tls": True}}, **FRONTED)


def test_no_running_gateway_can_change_to_tls() -> None:
    for key in ("radosgw.tls", "haproxy.tls", "apache.tls"):
        assert rgw_scopes.scope_of(key) == "cluster"
    for key in ("proxy.tls", "haproxy.tls"):
        assert swift_scopes.scope_of(key) == "cluster"


SECURED = {
    "rgw": lambda stage: stage.rgw(RgwSettings.model_validate({"radosgw": {"tls": True}})),
    "swift": lambda stage: stage.swift(SwiftSettings.model_validate({"proxy": {"tls": True}})),
}


@pytest.fixture(params=SECURED)
def secured(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Stage, RunningGateway]:
    stage = Stage(tmp_path)
    return stage, SECURED[request.param](stage)


def test_only_the_server_has_its_private_key_and_every_host_the_ca(
    secured: tuple[Stage, RunningGateway],
) -> None:
    stage, _ = secured
    keys = {
        (name, path)
        for name, host in stage.hosts.items()
        for path, content in host.files.items()
        if PRIVATE in (content if isinstance(content, str) else "")
    }
    ((host, path),) = keys
    assert host == "gateway-1"
    assert stage.hosts[host].modes[path] in {(0o600, "root"), (0o600, "swift")}
    authorities = {str(host.files[CA_FILE]) for host in stage.hosts.values()}
    assert len(authorities) == 1
    assert PRIVATE not in authorities.pop()


def test_clients_are_given_the_ca_and_facts_say_what_was_negotiated(
    secured: tuple[Stage, RunningGateway],
) -> None:
    stage, running = secured
    assert {one.ca_file for one in running.endpoints} == {CA_FILE}
    assert all(one.url.startswith("https://10.0.0.1:80") for one in running.endpoints)
    assert running.facts["tls"].startswith("TLSv1.3, TLS_X; sessions are resumed (by handshakes")
    # From where clients are, and after the operations were verified.
    (shaken,) = stage.when("client-1 .*tls_handshake")
    assert shaken > max(stage.when("client-1 .*gateways.verify"))


def test_rendered_files_name_the_certificate_and_show_no_key(
    secured: tuple[Stage, RunningGateway],
) -> None:
    _, running = secured
    (server,) = [one for one in running.rendered if one.path.endswith("/server.pem")]
    assert server.host == "gateway-1"
    assert server.text.startswith("# certificate for 10.0.0.1 and gateway-1, signed by the CA")
    assert server.text.rstrip().endswith("***")
    assert PRIVATE not in json.dumps([one.text for one in running.rendered])


def test_render_shows_the_same_without_hosts() -> None:
    planned = rgw({"radosgw": {"tls": True}})
    (server,) = [one for one in planned.render(SITES) if one.path == SERVER_FILE]
    assert (server.host, planned.own_ca) == ("gateway-1", True)
    assert PRIVATE not in server.text
    assert not [one for one in rgw().render(SITES) if one.path == SERVER_FILE]
    assert not rgw().own_ca
    assert swift({"haproxy": {"tls": True}}, **FRONTED).own_ca


def test_without_tls_nothing_is_made_for_it_and_the_facts_say_so(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    running = stage.rgw()
    assert running.facts["tls"] == "none: clients use plain HTTP"
    assert {one.ca_file for one in running.endpoints} == {None}
    assert not [host for host in stage.hosts.values() if CA_FILE in host.files]
    assert not stage.when("tls_handshake")
