"""How COSBench gets at a target: its storage and auth, with the secrets that are in them."""

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
    """Type and configuration of COSBench's auth and storage; `secrets` are the values that nobody
    may see.
    """

    auth: str
    auth_config: str
    storage: str
    storage_config: str
    secrets: tuple[str, ...]

    def redacted(self, text: str) -> str:
        """A text without the secrets, however they are written in it."""
        for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
            for form in dict.fromkeys((secret, escape(secret, {'"': "&quot;"}), escape(secret))):
                text = text.replace(form, HIDDEN)
        return _SECRET_KEYS.sub(rf"\1={HIDDEN}", text)


def access(target: Endpoint, account: Account, auth: str, timeout_s: float) -> StorageAccess:
    """The access to a target.

    Swift by token: one that is got now. Raises DriverError where COSBench cannot get at it so.
    """
    if target.ca_file is not None:
        raise DriverError(
            f"{target.url}: COSBench trusts the authorities of its Java, and cannot be given "
            f"{target.ca_file}",
            advice="Weigh it over http, or put the authority into that Java's trust store and "
            "leave `ca_file` out.",
        )
    common = {
        "timeout": str(round(timeout_s * 1000)),
        "logging": "false",
    }  # without the latter it logs each request
    key = target.key.get_secret_value()
    if target.api == "s3":
        if target.token is not None:
            raise DriverError(
                "COSBench's S3 client knows no session token: give it keys that need none"
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
        if target.storage_url is not None:
            raise DriverError(
                "COSBench's swauth goes where auth says, not to a storage URL of one's own",
                advice="Leave COSBENCH_AUTH out, so that COSBench is given token and storage URL.",
            )
        own = {
            "username": target.user,
            "password": key,
            "auth_url": target.url,
            "timeout": common["timeout"],
        }
        return StorageAccess("swauth", config(own), "swift", config(common), (key,))
    account.authenticate()
    own = {"token": account.token, "storage_url": account.url}
    return StorageAccess("none", "", "swift", config({**own, **common}), (account.token, key))


def config(values: dict[str, str]) -> str:
    """A configuration as COSBench reads it:

    `key=value;key=value`, which has no way to write a semicolon. Raises DriverError.
    """
    for name, value in values.items():
        if ";" in value or not value.isprintable():
            raise DriverError(
                f"{name}: its value has a semicolon or an unprintable character, which COSBench's "
                "configuration cannot carry",
                advice="Give the user another key.",
            )
    return ";".join(f"{name}={value}" for name, value in values.items())
