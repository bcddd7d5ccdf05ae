"""Settings of the `existing` gateway: its endpoints and where credentials are found, no secrets."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from weighbridge.common.record import Record


class ExistingPlacement(Record):
    """Empty: no host of the hardware belongs to it."""


def _url(value: str) -> str:
    refused = "give a URL such as https://store.example:8443"
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(refused) from None  # Python's message repeats the URL
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or " " in value
        or not value.isprintable()
    ):
        raise ValueError(refused)
    if "@" in parts.netloc:
        raise ValueError("a user or key must not be in a URL: every report would show it")
    if parts.query or parts.fragment:
        raise ValueError("give a URL without ? and #")
    return value.rstrip("/")


def _endpoint(value: str) -> str:
    if urlsplit(value).path:
        raise ValueError("give scheme, host and port only: buckets come right after them")
    return value


def _authorities(value: str) -> str:
    path = Path(value).expanduser().absolute()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"{path}: contains no certificate in PEM format") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    return str(path)


Url = Annotated[str, AfterValidator(_url)]
CaFile = Annotated[str, AfterValidator(_authorities)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class S3(Record):
    """The S3 API."""

    url: Annotated[Url, AfterValidator(_endpoint)]
    """Scheme, host and port, such as https://store.example:8443."""
    region: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] = "us-east-1"
    """Region that requests are signed for and buckets are created in; us-east-1 is S3's default."""
    addressing: Literal["path", "virtual"] = "path"
    """Whether the bucket is in the path or before the host name, which then needs wildcard DNS."""
    credentials: Annotated[str, Field(pattern=r"^(aws|environment|profile \S+)$")] = "aws"
    """`environment`: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and, if set, $AWS_SESSION_TOKEN;
    `profile NAME`: a profile of the usual AWS files; `aws`: the environment, else the profile
    $AWS_PROFILE or `default`."""
    ca_file: CaFile | None = None
    """PEM file of the CA that signed its certificate; None: the CAs that this machine trusts."""

    @model_validator(mode="after")
    def _consistent(self) -> S3:
        parts = urlsplit(self.url)
        if self.addressing == "virtual" and _is_address(parts.hostname or ""):
            raise ValueError(
                f"virtual hosts need a name, but {parts.hostname} is an IP address: use "
                "`addressing: path`"
            )
        _refuse_unused_ca(self.ca_file, self.url)
        return self


class SwiftAccess(Record):
    """The Swift API: auth v1, or a token obtained elsewhere."""

    auth_url: Url | None = None
    """The v1 auth URL, such as https://store.example/auth/v1.0; None: $ST_AUTH."""
    user: str | None = None
    """The user's name, such as account:name; None: taken from `user_env`."""
    user_env: Variable = "ST_USER"
    """Environment variable with the user's name."""
    key_env: Variable = "ST_KEY"
    """Environment variable with the user's key."""
    storage_url: Url | None = None
    """Storage URL, in place of the one from auth; with a token, None means $OS_STORAGE_URL."""
    token_env: Variable | None = None
    """Environment variable with a token, such as OS_AUTH_TOKEN, in place of auth.

    The token must outlast the run.
    """
    ca_file: CaFile | None = None
    """PEM file of the CA that signed its certificate; None: the CAs that this machine trusts."""

    @model_validator(mode="after")
    def _consistent(self) -> SwiftAccess:
        if self.token_env is not None and (self.auth_url is not None or self.user is not None):
            raise ValueError(
                "give either a token (token_env) or a user (auth_url, user): a token replaces auth"
            )
        for url in (self.auth_url, self.storage_url):
            if url is not None:
                _refuse_unused_ca(self.ca_file, url)
        return self


class ExistingSettings(Record):
    """A gateway that already runs, and how to reach one or both of its APIs."""

    about: str = "a gateway that already runs"
    """Description for reports: this suite cannot know its releases, replicas and hosts."""
    s3: S3 | None = None
    swift: SwiftAccess | None = None

    @model_validator(mode="after")
    def _any(self) -> ExistingSettings:
        if self.s3 is None and self.swift is None:
            raise ValueError("give an API: `s3: {url: ...}`, `swift: {auth_url: ...}` or both")
        return self


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _refuse_unused_ca(ca_file: str | None, url: str) -> None:
    if ca_file is not None and not url.startswith("https:"):
        raise ValueError(f"ca_file is for https, but {url} is not")
