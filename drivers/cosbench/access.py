"""COSBench's configuration of storage and auth for a target, with the secrets in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account

HIDDEN: Final = "REDACTED"
_SECRET_KEYS: Final = re.compile(r"\b(token|password|secretkey|accesskey)=[^;\"'\s]*")


@dataclass(frozen=True)
class StorageAccess:
    """Type and configuration of COSBench's auth and storage; `secrets` are to be redacted."""

    auth: str
    auth_config: str
    storage: str
    storage_config: str
    secrets: tuple[str, ...]

    def redacted(self, text: str) -> str:
        """A text without the secrets, in any of their notations."""
        for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
            for form in dict.fromkeys((secret, escape(secret, {'"': "&quot;"}), escape(secret))):
                text = text.replace(form, HIDDEN)
        return _SECRET_KEYS.sub(rf"\1={HIDDEN}", text)


def access(target: Endpoint, account: Account, auth: str, timeout_s: float) -> StorageAccess:
    """The access to a target; to Swift by a new token, unless by swauth.

    Raises DriverError for what COSBench cannot do.
    """
    if target.ca_file is not None:
        raise DriverError(
            f"{target.url}: COSBench trusts only its Java's authorities, and cannot use "
            f"{target.ca_file}",
            advice="Benchmark it over http, or put the authority into that Java's trust store and "
            "leave `ca_file` out.",
        )
    # Without "logging" it logs each request.
    common = {"timeout": str(round(timeout_s * 1000)), "logging": "false"}
    key = target.key.get_secret_value()
    if target.api == "s3":
        if target.token is not None:
            raise DriverError(
                "COSBench's S3 client does not support session tokens: use keys without one"
            )
        style = "true" if target.addressing == "path" else "false"
        own = {
            "accesskey": target.user,
            "secretkey": key,
            "endpoint": target.url,
            "path_style_access": style,
        }
        return StorageAccess("none", "", "s3", config({**own, **common}), (key,))
    if auth == "swauth" and target.token is None:
        if target.keystone is not None:
            raise DriverError(
                "COSBench's swauth is auth v1, which Keystone does not speak",
                advice="Leave COSBENCH_AUTH out: COSBench then gets the token and storage URL.",
            )
        if target.storage_url is not None:
            raise DriverError(
                "COSBench's swauth uses the storage URL that auth returns, not a given one",
                advice="Leave COSBENCH_AUTH out: COSBench then gets the token and storage URL.",
            )
        own = {
            "username": target.user,
            "password": key,
            "auth_url": target.url,
            "timeout": common["timeout"],
        }
        return StorageAccess("swauth", config(own), "swift", config(common), (key,))
    account.renew()
    own = {"token": account.token, "storage_url": account.url}
    return StorageAccess("none", "", "swift", config({**own, **common}), (account.token, key))


def config(values: dict[str, str]) -> str:
    """A configuration in COSBench's format `key=value;key=value`, which cannot contain a semicolon.

    Raises DriverError.
    """
    for name, value in values.items():
        if ";" in value or not value.isprintable():
            raise DriverError(
                f"{name}: its value has a semicolon or an unprintable character, which COSBench's "
                "configuration cannot contain",
                advice="Give the user another key.",
            )
    return ";".join(f"{name}={value}" for name, value in values.items())
