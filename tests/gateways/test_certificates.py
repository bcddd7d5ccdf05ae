"""The certificates of a deployment, judged by openssl, and what handshakes with them negotiate."""

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.certificates import Certificates, issued
from weighbridge.gateways.tls_handshake import negotiated, shake
from weighbridge.topologies.this_machine import ThisHost


@dataclass(frozen=True)
class Spot:
    name: str = "gateway-1"
    address: str = "10.80.0.11"
    disks: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def made() -> Certificates:
    return issued(Spot())


@pytest.fixture
def folder(made: Certificates, tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_text(made.ca)
    (tmp_path / "server.pem").write_text(made.server)
    (tmp_path / "other.pem").write_text(issued(Spot()).ca)
    return tmp_path


def openssl(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["openssl", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("ca", "check", "verdict"),
    [
        ("ca.pem", ("-verify_ip", "10.80.0.11"), "server.pem: OK"),
        ("ca.pem", ("-verify_hostname", "gateway-1"), "server.pem: OK"),
        ("ca.pem", ("-verify_ip", "10.80.0.12"), "IP address mismatch"),
        # As a CA of the same name it does not even get to the server's certificate.
        ("other.pem", ("-verify_ip", "10.80.0.11"), "verification failed"),
    ],
)
def test_openssl_accepts_it_for_its_host_and_by_its_own_ca_alone(
    folder: Path, ca: str, check: tuple[str, str], verdict: str
) -> None:
    strict = ("-x509_strict", "-purpose", "sslserver")
    trusted = ("-no-CApath", "-no-CAstore", "-CAfile", ca)
    assert verdict in openssl(folder, "verify", *strict, *trusted, *check, "server.pem")


def test_the_servers_certificate_signs_no_others(folder: Path) -> None:
    shown = openssl(folder, "x509", "-in", "server.pem", "-noout", "-text")
    assert "CA:FALSE" in shown
    assert "TLS Web Server Authentication" in shown
    assert "prime256v1" in shown


def test_only_the_servers_private_key_is_kept_and_not_shown_by_accident(
    made: Certificates, folder: Path
) -> None:
    assert (made.server.count("PRIVATE KEY"), made.ca.count("PRIVATE KEY")) == (2, 0)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / "server.pem")
    assert "PRIVATE" not in repr(made)
    assert made.server.replace(made.secret, "***") == f"# {made.about}\n***"


def test_each_deployment_has_others(made: Certificates) -> None:
    assert issued(Spot()).ca != made.ca


LOCAL = "127.0.0.1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    made = issued(Spot("here", LOCAL))
    (folder / "ca.pem").write_text(made.ca)
    (folder / "server.pem").write_text(made.server)
    (folder / "other.pem").write_text(issued(Spot("here", LOCAL)).ca)
    return folder


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
    served: Path, change: Callable[[ssl.SSLContext], Any], version: str, cipher: str, resumed: bool
) -> None:
    with serving(served, change) as port:
        seen = shake(LOCAL, port, str(served / "ca.pem"))
    assert seen == {"version": version, "cipher": cipher, "resumed": resumed}


def test_the_certificate_is_verified(served: Path) -> None:
    with serving(served, newest) as port, pytest.raises(ssl.SSLCertVerificationError):
        shake(LOCAL, port, str(served / "other.pem"))


def endpoint(url: str, ca_file: str | None) -> Endpoint:
    return Endpoint(api="s3", url=url, user="u", key=SecretStr("k"), ca_file=ca_file)


def test_the_program_reports_in_words_from_a_host(served: Path, tmp_path: Path) -> None:
    client = ThisHost("client-1", LOCAL, tmp_path)
    with serving(served, newest) as port:
        ca_file = str(served / "ca.pem")
        words = negotiated(client, [endpoint(f"https://{LOCAL}:{port}", ca_file)])
    assert words == (
        "TLSv1.3, TLS_AES_256_GCM_SHA384; sessions are resumed (by handshakes from client-1, which "
        "verify its ECDSA P-256 certificate with the CA of this deployment)"
    )
    assert negotiated(client, [endpoint(f"http://{LOCAL}:{port}", None)]) == (
        "none: clients use plain HTTP"
    )


def test_the_program_needs_nothing_but_python(served: Path) -> None:
    import weighbridge.gateways.tls_handshake as module  # noqa: PLC0415 - for its file

    with serving(served, newest) as port:
        order = {"address": LOCAL, "port": port, "ca_file": str(served / "ca.pem")}
        done = subprocess.run(
            [sys.executable, "-S", "-I", str(module.__file__)],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["version"] == "TLSv1.3"
