"""The certificates of a deployment, judged by openssl."""

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from weighbridge.gateways.certificates import Certificates, issued


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
