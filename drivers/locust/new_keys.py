"""New tokens of Swift's API with the storage URL that they are for, and new keys of S3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from weighbridge.common import keystone, temporary_keys
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.temporary_keys import KeySource
from weighbridge.drivers.locust.account_answer import AccountAnswer, NotServing
from weighbridge.drivers.locust.url_parts import UrlParts

Request = Callable[[UrlParts, str, str, dict[str, str], bytes], AccountAnswer]
"""Place, method, path, headers and body of a request."""


def by_v1(target: Endpoint, request: Request) -> keystone.Granted:
    """A token of auth v1; it does not say how long it lasts. Raises DriverError."""
    place = UrlParts.of(target.url)
    headers = {"X-Auth-User": target.user, "X-Auth-Key": target.key.get_secret_value()}
    answer = request(place, "GET", place.path, headers, b"")
    if answer.status not in (200, 204):
        fault = NotServing if answer.status >= 500 else DriverError
        raise fault(f"{target.url}: no token for user {target.user!r}: {answer}")
    storage_url, token = answer.headers.get("X-Storage-Url"), answer.headers.get("X-Auth-Token")
    if not storage_url or not token:
        raise DriverError(f"{target.url}: the answer has no X-Storage-Url or no X-Auth-Token")
    return keystone.Granted(storage_url, token, math.inf)


def by_keystone(target: Endpoint, request: Request) -> keystone.Granted:
    """A token of Keystone's. Raises DriverError."""
    assert target.keystone is not None  # noqa: S101 - only then is it asked
    place = UrlParts.of(target.url)

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> AccountAnswer:
        length = {"Content-Length": str(len(body))}
        return request(place, method, path, {**headers, **length}, body)

    try:
        return keystone.log_in(target.keystone, target.key.get_secret_value(), place.path, send)
    except keystone.KeystoneRefuses as refusal:
        status = refusal.answer.status
        fault = NotServing if status >= 500 else DriverError
        raise fault(f"{target.url}: {refusal.what} (status {status})") from None


def keys_again(source: KeySource, known: Sequence[str]) -> tuple[tuple[str, str, str], float]:
    """Access key, secret key and session token of a profile, and for how long they are good, in
    seconds. Raises DriverError.
    """
    try:
        keys = temporary_keys.load_again(source, known)
    except temporary_keys.KeysUnavailable as error:
        raise DriverError(f"s3: {error}") from None
    left_s = keys.left_s
    return (keys.access, keys.secret, keys.token), math.inf if left_s is None else left_s
