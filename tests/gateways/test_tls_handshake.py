"""What handshakes negotiate, with servers of Python's own on loopback."""

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
from pydantic import SecretStr

from tests.gateways.test_certificates import Spot
from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.certificates import issued
from weighbridge.gateways.tls_handshake import negotiated, shake
from weighbridge.topologies.this_machine import ThisHost

LOCAL = "127.0.0.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    folder: Path, change: Callable[[ssl.SSLContext], Any], version: str, cipher: str, resumed: bool
) -> None:
    with serving(folder, change) as port:
        seen = shake(LOCAL, port, str(folder / "ca.pem"))
    assert seen == {"version": version, "cipher": cipher, "resumed": resumed}


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
    import weighbridge.gateways.tls_handshake as module  # noqa: PLC0415 - for its file

    with serving(folder, newest) as port:
        order = {"address": LOCAL, "port": port, "ca_file": str(folder / "ca.pem")}
        done = subprocess.run(
            [sys.executable, "-S", "-I", str(module.__file__)],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["version"] == "TLSv1.3"
