"""Layouts with TLS: where it is refused, what is written for it, and what clients are given."""

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from tests.gateways.apache.test_apache import text as apache_lines
from tests.gateways.rgw.planned_rgw import SITES, Spot, conf, rgw
from tests.gateways.stage import Stage, swift
from tests.gateways.test_haproxy import sections
from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.apache import apache_host
from weighbridge.gateways.apache.front import ApacheSettings
from weighbridge.gateways.certificates import CA_FILE, SERVER_FILE, Certificates, issued
from weighbridge.gateways.front import FRONTS, Front
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.haproxy.front import Haproxy, HaproxySettings
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.gateways.tls_handshake import negotiated, shake
from weighbridge.topologies.fake import ThisHost

FRONTED = {"haproxy": "gateway-1"}
PRIVATE = "PRIVATE KEY"


def text_of(gateway: Swift, path: str) -> str:
    return next(one.text for one in gateway.render(SITES) if one.path == path)


@pytest.mark.parametrize("kind", [FRONTS["haproxy"], FRONTS["apache"]])
def test_a_front_with_tls_is_on_the_port_of_https_unless_one_is_given(kind: type[Front]) -> None:
    cases: list[dict[str, object]] = [
        {},
        {"tls": False},
        {"tls": True},
        {"tls": True, "port": 8443},
    ]
    assert [kind.Settings.model_validate(given).port for given in cases] == [80, 80, 443, 8443]
    assert {kind.scope("tls"), kind.scope("port")} == {"cluster"}


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
    assert words[:3] == ["beast", "ssl_endpoint=10.0.0.9:8000", f"ssl_certificate={SERVER_FILE}"]
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
        assert Rgw.scope(key) == "cluster"
    for key in ("proxy.tls", "haproxy.tls"):
        assert Swift.scope(key) == "cluster"


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


LOCAL = "127.0.0.1"
SERVER = Spot("gateway-1", LOCAL)


@pytest.fixture(scope="module")
def made() -> Certificates:
    return issued(SERVER)


@pytest.fixture(scope="module")
def folder(made: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    (folder / "ca.pem").write_text(made.ca)
    (folder / "server.pem").write_text(made.server)
    (folder / "other.pem").write_text(issued(SERVER).ca)
    return folder


def openssl(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["openssl", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ca", "check", "verdict"),
    [
        ("ca.pem", ("-verify_ip", LOCAL), "server.pem: OK"),
        ("ca.pem", ("-verify_hostname", "gateway-1"), "server.pem: OK"),
        ("ca.pem", ("-verify_ip", "127.0.0.2"), "IP address mismatch"),
        ("other.pem", ("-verify_ip", LOCAL), "verification failed"),
    ],
)
def test_openssl_accepts_it_for_its_host_and_by_its_own_ca_alone(
    folder: Path, ca: str, check: tuple[str, str], verdict: str
) -> None:
    strict = ("-x509_strict", "-purpose", "sslserver")
    trusted = ("-no-CApath", "-no-CAstore", "-CAfile", ca)
    assert verdict in openssl(folder, "verify", *strict, *trusted, *check, "server.pem")


def test_the_servers_certificate_signs_no_others_and_ends(folder: Path) -> None:
    shown = openssl(folder, "x509", "-in", "server.pem", "-noout", "-text")
    for words in ("CA:FALSE", "TLS Web Server Authentication", "prime256v1", "CN = gateway-1"):
        assert words in shown
    assert openssl(folder, "x509", "-in", "server.pem", "-checkend", "33696000").startswith("Cert")
    assert "will not" not in openssl(folder, "x509", "-in", "server.pem", "-checkend", "34300800")


def test_only_the_servers_private_key_is_kept_and_not_shown_by_accident(
    made: Certificates, folder: Path
) -> None:
    assert (made.server.count("PRIVATE KEY"), made.ca.count("PRIVATE KEY")) == (2, 0)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / "server.pem")
    assert "PRIVATE" not in repr(made)
    assert made.server.replace(made.secret, "***") == f"# {made.about}\n***"


@contextmanager
def serving(folder: Path, change: Callable[[ssl.SSLContext], Any]) -> Iterator[int]:
    """The port of a server that answers one request on each connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    change(context)

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):  # of accept: the listening socket was shut down
            while True:
                plain, _ = listening.accept()
                with suppress(OSError), context.wrap_socket(plain, server_side=True) as secured:
                    secured.recv(4096)
                    secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    with suppress(OSError):
                        secured.unwrap()

    with socket.create_server((LOCAL, 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def newest(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3


def without_tickets(context: ssl.SSLContext) -> None:
    newest(context)
    context.num_tickets = 0


def older(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")


@pytest.mark.parametrize(
    ("change", "version", "cipher", "resumed"),
    [
        (newest, "TLSv1.3", "TLS_AES_256_GCM_SHA384", True),
        (without_tickets, "TLSv1.3", "TLS_AES_256_GCM_SHA384", False),
        (older, "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", True),
    ],
)
def test_version_cipher_and_resumption_are_those_of_the_server(
    folder: Path, change: Callable[[ssl.SSLContext], Any], version: str, cipher: str, resumed: bool
) -> None:
    with serving(folder, change) as port:
        seen = shake(LOCAL, port, str(folder / "ca.pem"))
    assert seen == {"version": version, "cipher": cipher, "resumed": resumed}


def test_apaches_status_is_asked_over_tls(folder: Path) -> None:
    with serving(folder, newest) as port:
        assert apache_host.status(LOCAL, port, str(folder / "ca.pem"), "status.invalid") == {}
        with pytest.raises(ssl.SSLCertVerificationError):
            apache_host.status(LOCAL, port, str(folder / "other.pem"), "status.invalid")


def test_the_certificate_is_verified(folder: Path) -> None:
    with serving(folder, newest) as port, pytest.raises(ssl.SSLCertVerificationError):
        shake(LOCAL, port, str(folder / "other.pem"))


def endpoint(url: str, ca_file: str | None) -> Endpoint:
    return Endpoint(api="s3", url=url, user="u", key=SecretStr("k"), ca_file=ca_file)


def test_the_program_reports_in_words_from_a_host(folder: Path, tmp_path: Path) -> None:
    client = ThisHost("client-1", LOCAL, tmp_path)
    with serving(folder, newest) as port:
        ca_file = str(folder / "ca.pem")
        words = negotiated(client, [endpoint(f"https://{LOCAL}:{port}", ca_file)])
    assert words == (
        "TLSv1.3, TLS_AES_256_GCM_SHA384; sessions are resumed (by handshakes from client-1, which "
        "verify its ECDSA P-256 certificate with the CA of this deployment)"
    )
    assert negotiated(client, [endpoint(f"http://{LOCAL}:{port}", None)]) == (
        "none: clients use plain HTTP"
    )


def test_the_program_needs_nothing_but_python(folder: Path) -> None:
    argv = [sys.executable, "-S", "-I", str(sys.modules[shake.__module__].__file__)]
    with serving(folder, newest) as port:
        order = {"address": LOCAL, "port": port, "ca_file": str(folder / "ca.pem")}
        done = subprocess.run(
            argv, input=json.dumps(order), capture_output=True, text=True, check=True
        )
    assert json.loads(done.stdout)["version"] == "TLSv1.3"
