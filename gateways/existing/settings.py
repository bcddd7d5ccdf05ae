"""Settings of the `existing` gateway: where it answers, and where its credentials are found.

No secret is one of them.
"""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from weighbridge.common.record import Record


class ExistingPlacement(Record):
    """Nothing: no host of the hardware has any part of it."""


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(
            "a URL such as https://store.example:8443 is wanted"
        ) from None  # Python's words repeat it
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or " " in value
        or not value.isprintable()
    ):
        raise ValueError("a URL such as https://store.example:8443 is wanted")
    if "@" in parts.netloc:
        raise ValueError("no user or key belongs into a URL: it would stand in every report")
    if parts.query or parts.fragment:
        raise ValueError("a URL without ? and # is wanted")
    return value.rstrip("/")


def _endpoint(value: str) -> str:
    if urlsplit(value).path:
        raise ValueError("scheme, host and port alone are wanted: buckets come right after them")
    return value


def _authorities(value: str) -> str:
    path = Path(value).expanduser().absolute()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"{path}: holds no certificate in PEM form") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    return str(path)


Url = Annotated[str, AfterValidator(_url)]
CaFile = Annotated[str, AfterValidator(_authorities)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class S3(Record):
    """Its S3 API."""

    url: Annotated[Url, AfterValidator(_endpoint)]
    """Scheme, host and port, such as https://store.example:8443."""
    region: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] = "us-east-1"
    """What requests are signed for; buckets are made in it, unless it is us-east-1, which is where
    they are made anyway.
    """
    addressing: Literal["path", "virtual"] = "path"
    """Whether a bucket stands in the path, or before the host's name, which then has to have an
    address for any bucket.
    """
    credentials: Annotated[str, Field(pattern=r"^(aws|environment|profile \S+)$")] = "aws"
    """`environment`: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and, if set, $AWS_SESSION_TOKEN;
    `profile NAME`: of the usual AWS files; `aws`: the environment, else the profile $AWS_PROFILE or
    `default`."""
    ca_file: CaFile | None = None
    """PEM file of the authority that signed its certificate; none: those that this machine trusts.
    """

    @model_validator(mode="after")
    def _consistent(self) -> S3:
        parts = urlsplit(self.url)
        if self.addressing == "virtual" and _is_address(parts.hostname or ""):
            raise ValueError(
                f"virtual hosts need a name, and {parts.hostname} is an address: say `addressing: "
                "path`"
            )
        _see_that_ca_is_used(self.ca_file, self.url)
        return self


class SwiftAccess(Record):
    """Its Swift API: auth v1, or a token that was got elsewhere."""

    auth_url: Url | None = None
    """The v1 auth URL, such as https://store.example/auth/v1.0; none: $ST_AUTH."""
    user: str | None = None
    """As auth knows it, such as account:name; none: that of `user_env`."""
    user_env: Variable = "ST_USER"
    """Environment variable that holds the user."""
    key_env: Variable = "ST_KEY"
    """Environment variable that holds the user's key."""
    storage_url: Url | None = None
    """Where the storage is, whatever auth says of it; with a token none is $OS_STORAGE_URL."""
    token_env: Variable | None = None
    """Environment variable that holds a token, such as OS_AUTH_TOKEN: auth is then not asked.

    It must outlast the run.
    """
    ca_file: CaFile | None = None
    """PEM file of the authority that signed its certificate; none: those that this machine trusts.
    """

    @model_validator(mode="after")
    def _consistent(self) -> SwiftAccess:
        if self.token_env is not None and (self.auth_url is not None or self.user is not None):
            raise ValueError(
                "either a token (token_env) or a user (auth_url, user) is wanted: with a token, "
                "auth is not asked"
            )
        for url in (self.auth_url, self.storage_url):
            if url is not None:
                _see_that_ca_is_used(self.ca_file, url)
        return self


class ExistingSettings(Record):
    """What runs already, and how it is reached: one API of it or both."""

    about: str = "a gateway that already runs"
    """What it is, for reports: nobody but its keeper knows its releases, replicas and hosts."""
    s3: S3 | None = None
    swift: SwiftAccess | None = None

    @model_validator(mode="after")
    def _any(self) -> ExistingSettings:
        if self.s3 is None and self.swift is None:
            raise ValueError("an API is wanted: `s3: {url: ...}`, `swift: {auth_url: ...}` or both")
        return self


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _see_that_ca_is_used(ca_file: str | None, url: str) -> None:
    if ca_file is not None and not url.startswith("https:"):
        raise ValueError(f"ca_file is for https, and {url} is not")
