"""One API of a gateway: its URL and its credentials."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, field_serializer, model_validator

from weighbridge.common.record import Record

ObjectApi = Literal["swift", "s3"]
"""The APIs by which clients talk to an object store."""

USUAL_PORTS: Final[Mapping[str, int]] = MappingProxyType({"http": 80, "https": 443})
"""By scheme."""


def base_url(address: str, port: int, *, tls: bool = False) -> str:
    """The URL of a service.

    The scheme's default port is left out: some clients sign a Host header without it.
    """
    scheme = "https" if tls else "http"
    return f"{scheme}://{address}" + ("" if port == USUAL_PORTS[scheme] else f":{port}")


class Endpoint(Record):
    """One API of a running gateway, as gateways give it to drivers.

    S3: `url` is the endpoint, keys sign (SigV4). Swift: `url` is the v1 auth URL, or with `token`
    the storage URL.
    """

    api: ObjectApi
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    """S3: http://host:port. Swift: http://host:port/auth/v1.0, or the storage URL."""
    user: str = ""
    """S3 access key, or Swift's X-Auth-User."""
    key: SecretStr = SecretStr("")
    """S3 secret key, or Swift's X-Auth-Key."""
    region: str = "us-east-1"
    addressing: Literal["path", "virtual"] = "path"
    """S3: the bucket in the path, or in the host name (`bucket.host` must resolve)."""
    token: SecretStr | None = None
    """S3: the session token of the keys.

    Swift: a token obtained elsewhere, used instead of user and key; it cannot be renewed.
    """
    storage_url: str | None = None
    """Swift: the storage URL to use; None: the one that auth answers."""
    ca_file: str | None = None
    """PEM file on the client of the CA that signed https; None: the system's CAs."""

    @model_validator(mode="after")
    def _opened(self) -> Endpoint:
        if not (self.user or self.token):
            raise ValueError("a user or a token is required")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its credentials, for redaction."""
        return tuple(
            secret.get_secret_value() for secret in (self.key, self.token) if secret is not None
        )

    @field_serializer("key", "token", when_used="json")
    def _open(self, secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()
