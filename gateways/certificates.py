"""The certificates of a deployment whose clients speak TLS: a CA of its own, and its server's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from typing import Final

from weighbridge.common.host import Host
from weighbridge.gateways.gateway import Site
from weighbridge.gateways.together import together

CA_FILE: Final = "/run/weighbridge-ca.pem"
"""The CA's certificate, on every host, in a folder that also a client has of its own."""
SERVER_FILE: Final = "/etc/weighbridge/server.pem"
"""Certificate and private key of the server that speaks TLS, for root: daemons read it as such."""

_VALID = timedelta(days=397)
_CLOCKS_DIFFER = timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """What a deployment keeps of its certificates: the CA's private key is in nobody's hands."""

    ca: str
    """The CA's certificate, PEM."""
    secret: str = field(repr=False)
    """The server's certificate and its private key, PEM."""
    about: str
    """What the certificate is for, in a line."""

    @property
    def server(self) -> str:
        """The text of SERVER_FILE: text outside of PEM's marks is a comment."""
        return f"# {self.about}\n{self.secret}"


def issued(site: Site) -> Certificates:
    """A new CA, and a certificate of it for the address and name of a host; ECDSA keys on P-256."""
    # Costs 0.1 s of CPU, which only deployments with TLS need.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def usage(*, signs: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=not signs,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=signs,
            crl_sign=signs,
            encipher_only=False,
            decipher_only=False,
        )

    def certificate(
        name: str, key: ec.EllipticCurvePrivateKey, *, signs: bool
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(ca_name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCKS_DIFFER)
            .not_valid_after(now + _VALID)
            .add_extension(
                x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True
            )
            .add_extension(usage(signs=signs), critical=True)
            # Strict clients want both, such as Python from 3.13 on.
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
        )

    now, ca_name = datetime.now(UTC), "CA of a Weighbridge deployment"
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = certificate(ca_name, ca_key, signs=True).sign(ca_key, hashes.SHA256())
    names = [x509.IPAddress(ip_address(site.address)), x509.DNSName(site.name)]
    server = (
        certificate(site.name, key, signs=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificates(
        ca=ca.public_bytes(pem).decode(),
        secret=(server.public_bytes(pem) + private).decode(),
        about=f"certificate for {site.address} and {site.name}, signed by the CA of this "
        "deployment, and its private key",
    )


def trust(hosts: Mapping[str, Host], certificates: Certificates | None) -> None:
    """Put the CA's certificate on every host, where there is one. Raises TargetError."""
    if certificates is not None:
        together([partial(one.put, CA_FILE, certificates.ca) for one in hosts.values()])


def ca_file_of(url: str) -> str | None:
    """The CA file for an endpoint of a deployment; None: it does not speak TLS."""
    return CA_FILE if url.startswith("https:") else None
