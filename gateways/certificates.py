"""The certificates of a deployment whose clients speak TLS: a CA of its own, and its server's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
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
    import trustme  # noqa: PLC0415 - costs 0.1 s of CPU, which only deployments with TLS need

    owner, now = "a deployment of Weighbridge", datetime.now(UTC)
    authority = trustme.CA(path_length=0, organization_name=owner)
    server = authority.issue_cert(
        site.address,
        site.name,
        common_name=site.name,
        organization_name=owner,
        not_before=now - _CLOCKS_DIFFER,
        not_after=now + _VALID,
    )
    return Certificates(
        ca=authority.cert_pem.bytes().decode(),
        secret=(server.cert_chain_pems[0].bytes() + server.private_key_pem.bytes()).decode(),
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
