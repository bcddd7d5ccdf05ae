"""Settings of the `existing` gateway: its endpoints and where credentials are found, no secrets."""

from __future__ import annotations

import codecs
import ipaddress
import re
import shlex
import ssl
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from weighbridge.common import safe_files
from weighbridge.common.bounded_http import parts_of
from weighbridge.common.credential import Keystone
from weighbridge.common.endpoint import MOST_ENDPOINTS, Endpoints, refuse_unlike
from weighbridge.common.record import Record
from weighbridge.common.structure import CephPool

LARGEST_CA_FILE_BYTES: Final = 2**24
"""All CAs of a distribution are 0.2 MB."""
_CERTIFICATE: Final = re.compile(rb"^-----BEGIN CERTIFICATE-----", re.MULTILINE)


class ExistingPlacement(Record):
    """Empty: no host of the hardware belongs to it."""


def _url(value: str) -> str:
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("a user or key must not be in a URL: every report would show it")
    try:
        parts = parts_of(value)
    except ValueError:
        raise ValueError("give a URL such as https://store.example:8443") from None
    if parts.query or parts.fragment:
        raise ValueError("give a URL without ? and #")
    return parts.geturl().rstrip("/")


_IDENTITY = re.compile(r"(.*?)/(?:v3(?:/auth/tokens)?|v2\.0(?:/tokens)?)/*")


def identity_url(url: str) -> str | None:
    """The URL of Keystone's API v3 for one of its URLs, as people have it; None: it may be another.

    Where it serves v2.0, it serves v3 beside it.
    """
    match = _IDENTITY.fullmatch(url)
    return f"{match[1]}/v3" if match else None


def _authorities(value: str) -> str:
    path = Path(value).expanduser().absolute()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # OpenSSL would wait for whoever writes to a pipe.
        data = safe_files.read_given(path, largest_bytes=LARGEST_CA_FILE_BYTES)
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise ValueError(f"{path}: contains no certificate in PEM format") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    # OpenSSL reads more than the engine: after a byte order mark, and TRUSTED CERTIFICATE.
    if data.startswith(codecs.BOM_UTF8) or not _CERTIFICATE.search(data):
        raise ValueError(
            f"{path}: no line of it is -----BEGIN CERTIFICATE-----, without anything before it: "
            f"write it again with `openssl x509 -in {shlex.quote(str(path))} -out NEW.pem`"
        )
    return str(path)


def _urls(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return _url(value)
    if not 1 <= len(value) <= MOST_ENDPOINTS:
        raise ValueError(f"give 1 to {MOST_ENDPOINTS} URLs")
    return tuple(_url(one) for one in value)


def _endpoints(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if any(urlsplit(url).path for url in _listed(value)):
        raise ValueError("give scheme, host and port only: buckets come right after them")
    return value


Url = Annotated[str, AfterValidator(_url)]
Urls = Annotated[str | tuple[str, ...], AfterValidator(_urls)]
"""A URL, or those of several endpoints of one service, which know the same keys."""
IdentityUrl = Annotated[Url, AfterValidator(lambda url: identity_url(url) or f"{url}/v3")]
CaFile = Annotated[str, AfterValidator(_authorities)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class S3(Record):
    """The S3 API."""

    url: Annotated[Urls, AfterValidator(_endpoints)]
    """Scheme, host and port, such as https://store.example:8443, or a list of several endpoints."""
    addresses: Literal["first", "all"] = "first"
    """`all`: requests go to every address of the URL's name, as to several endpoints."""
    region: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    """Region that requests are signed for and buckets are created in; None: that of the profile,
    else us-east-1, S3's default."""
    addressing: Literal["path", "virtual"] | None = None
    """Whether the bucket is in the `path`, or before the host name, which then needs wildcard DNS
    (`virtual`); None: as the profile says (`s3: addressing_style`), else in the path."""
    credentials: Annotated[str, Field(pattern=r"^(aws|environment|profile \S[ \S]*)$")] = "aws"
    """`environment`: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and, if set, $AWS_SESSION_TOKEN;
    `profile NAME`: a profile of the usual AWS files; `aws`: the environment, else the profile
    $AWS_DEFAULT_PROFILE, $AWS_PROFILE or `default`."""
    ca_file: CaFile | None = None
    """PEM file of the CA that signed its certificate, or of itself; None: that of the profile
    (`ca_bundle`), else the CAs that this machine trusts."""

    @model_validator(mode="after")
    def _consistent(self) -> S3:
        for url in self.urls:
            host = urlsplit(url).hostname or ""
            if self.addressing == "virtual" and _is_address(host):
                raise ValueError(
                    f"virtual hosts need a name, but {host} is an IP address: use "
                    "`addressing: path`"
                )
            _refuse_unused_ca(self.ca_file, url)
        _refuse_unclear(self.urls, self.addresses)
        if self.addressing == "virtual" and self.addresses == "all":
            raise ValueError("`addresses: all` needs `addressing: path`")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        return _listed(self.url)

    @property
    def named(self) -> bool:
        """Whether buckets can be before its host name."""
        hosts = (urlsplit(url).hostname or "" for url in self.urls)
        return self.addresses == "first" and not any(map(_is_address, hosts))


class KeystoneAccess(Keystone):
    """Keystone v3. What is left out comes from the environment, by the names of OpenStack's tools:
    $OS_USERNAME, $OS_PROJECT_NAME, $OS_REGION_NAME ...

    Secrets come from nowhere else: $OS_PASSWORD, or $OS_APPLICATION_CREDENTIAL_SECRET.
    """

    auth_url: IdentityUrl | None = None
    """Keystone's URL, such as https://keystone.example:5000/v3; None: $OS_AUTH_URL."""
    suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]*$")] = ""
    """The end of these variables' names, if there are several clouds: `_B` means $OS_PASSWORD_B."""


class SwiftAccess(Record):
    """The Swift API: auth v1, Keystone, or a token obtained elsewhere."""

    auth_url: Urls | None = None
    """The v1 auth URL, such as https://store.example/auth/v1.0; None: $ST_AUTH. A list: several
    endpoints, each with its own auth and storage.
    """
    user: str | None = None
    """The user's name, such as account:name; None: taken from `user_env`."""
    user_env: Variable = "ST_USER"
    """Environment variable with the user's name."""
    key_env: Variable = "ST_KEY"
    """Environment variable with the user's key."""
    storage_url: Urls | None = None
    """Storage URL, in place of the one from auth; with a token, None means $OS_STORAGE_URL. A list:
    several endpoints.
    """
    addresses: Literal["first", "all"] = "first"
    """`all`: requests go to every address of the storage URL's name, as to several endpoints."""
    token_env: Variable | None = None
    """Environment variable with a token, such as OS_AUTH_TOKEN, in place of auth.

    The token must outlast the run.
    """
    keystone: KeystoneAccess | None = None
    """Keystone in place of auth v1; `{}`: all that it needs is in the environment."""
    ca_file: CaFile | None = None
    """PEM file of the CA that signed its certificate; None: the CAs that this machine trusts."""

    @model_validator(mode="after")
    def _consistent(self) -> SwiftAccess:
        others = (self.token_env, self.auth_url, self.user)
        if self.keystone is not None and others != (None, None, None):
            raise ValueError(
                "give either `keystone`, or auth v1 (auth_url, user), or a token (token_env)"
            )
        if self.token_env is not None and (self.auth_url is not None or self.user is not None):
            raise ValueError(
                "give either a token (token_env) or a user (auth_url, user): a token replaces auth"
            )
        keystone = (self.keystone.auth_url,) if self.keystone and self.keystone.auth_url else ()
        for url in (*self.auth_urls, *self.storage_urls, *keystone):
            _refuse_unused_ca(self.ca_file, url)
        if self.storage_urls and len(self.auth_urls) > 1:
            raise ValueError("several auth_url and a storage_url: list the storage URLs instead")
        for urls in (self.auth_urls, self.storage_urls):
            _refuse_unclear(urls, self.addresses)
            if len({urlsplit(url).path for url in urls}) > 1:
                raise ValueError("URLs of several endpoints must have the same path")
        return self

    @property
    def auth_urls(self) -> tuple[str, ...]:
        """Every auth URL; empty: $ST_AUTH."""
        return _listed(self.auth_url)

    @property
    def storage_urls(self) -> tuple[str, ...]:
        """Every storage URL; empty: those from auth, or $OS_STORAGE_URL."""
        return _listed(self.storage_url)


class ExistingSettings(Record):
    """A gateway that already runs, and how to reach one or both of its APIs."""

    about: str = "a gateway that already runs"
    """Description for reports: this suite cannot know its releases, replicas and hosts."""
    s3: S3 | None = None
    swift: SwiftAccess | None = None
    endpoints: Endpoints | None = None
    """How clients spread over several endpoints of an API; None: as its defaults say."""
    ceph: CephPool | None = None
    """Where `rados bench` may run for layer `rados`; None: that layer is not measured."""

    @model_validator(mode="after")
    def _any(self) -> ExistingSettings:
        if self.s3 is None and self.swift is None:
            raise ValueError("give an API: `s3: {url: ...}`, `swift: {auth_url: ...}` or both")
        if self.endpoints is not None and not self.spreads:
            raise ValueError(
                "endpoints: given, but there is only one: list several URLs, or set `addresses: "
                "all` of an API"
            )
        return self

    @property
    def spreads(self) -> bool:
        several = [self.s3.urls] if self.s3 is not None else []
        several += [self.swift.auth_urls, self.swift.storage_urls] if self.swift is not None else []
        parts = [one for one in (self.s3, self.swift) if one is not None]
        return any(len(urls) > 1 for urls in several) or any(
            one.addresses == "all" for one in parts
        )


def _listed(urls: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if urls is None else (urls,) if isinstance(urls, str) else urls


def _refuse_unclear(urls: tuple[str, ...], addresses: str) -> None:
    if len(urls) > 1 and addresses == "all":
        raise ValueError("give several URLs, or `addresses: all` of one name, not both")
    refuse_unlike(urls)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _refuse_unused_ca(ca_file: str | None, url: str) -> None:
    if ca_file is not None and not url.startswith("https:"):
        raise ValueError(f"ca_file is for https, but {url} is not")
