"""An API of a gateway: where it is and what opens it.

What gateways hand out and drivers are given.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_serializer, model_validator

from weighbridge.common.record import Record

ObjectApi = Literal["swift", "s3"]
"""The APIs by which clients talk to an object store."""


class Endpoint(Record):
    """One API of a gateway that runs.

    S3: `url` is the endpoint, keys sign (SigV4). Swift: `url` is the v1 auth URL, or with `token`
    the storage URL.
    """

    api: ObjectApi
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    """S3: http://host:port; Swift: http://host:port/auth/v1.0 (storage URL and token come from its
    answer), or the storage URL.
    """
    user: str = ""
    """S3 access key, or Swift's X-Auth-User."""
    key: SecretStr = SecretStr("")
    """S3 secret key, or Swift's X-Auth-Key."""
    region: str = "us-east-1"
    addressing: Literal["path", "virtual"] = "path"
    """S3: whether a bucket stands in the path, or before the host's name (`bucket.host`, which must
    have an address).
    """
    token: SecretStr | None = None
    """S3: session token that belongs to the keys.

    Swift: a token got elsewhere, in place of user and key; it cannot be renewed.
    """
    storage_url: str | None = None
    """Swift: where the storage is, whatever auth says of it; None: as auth says."""
    ca_file: str | None = None
    """PEM file of the authority that signed an https endpoint, on the client host; None: the
    machine's own.
    """

    @model_validator(mode="after")
    def _opened(self) -> Endpoint:
        if not (self.user or self.token):
            raise ValueError("a user or a token is wanted")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """What opens it, for who takes that out of texts."""
        return tuple(
            secret.get_secret_value() for secret in (self.key, self.token) if secret is not None
        )

    @field_serializer("key", "token", when_used="json")
    def _open(self, secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()
