"""The endpoint of a Swift whose users Keystone lets in, by the variables of OpenStack's tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from weighbridge.common.endpoint import Endpoint, base_of
from weighbridge.common.errors import UsageError
from weighbridge.common.keystone import Keystone
from weighbridge.gateways.existing.on_the_line import KEYSTONE_SECRETS
from weighbridge.gateways.existing.settings import KeystoneAccess, SwiftAccess

_ALIKE: Final = (
    ("username", "user_id"),
    ("user_domain_name", "user_domain_id"),
    ("project_name", "project_id"),
    ("project_domain_name", "project_domain_id"),
    ("application_credential_name", "application_credential_id"),
    ("region_name",),
    ("interface",),
)
"""Keys that say the same: one of them in a layout goes before the others in the environment."""


def keystone_endpoint(
    swift: SwiftAccess, given: KeystoneAccess, environment: Mapping[str, str]
) -> Endpoint:
    """The endpoint with its password. Raises UsageError with all variables that are missing."""
    keystone = _resolved(given, environment)
    secret_name = KEYSTONE_SECRETS[keystone.by_application] + given.suffix
    secret = environment.get(secret_name, "").removesuffix("\n").removesuffix("\r")
    url = given.auth_url or environment.get(f"OS_AUTH_URL{given.suffix}", "")
    missing = [] if url else [f"$OS_AUTH_URL{given.suffix}"]
    missing += [f"${' or $'.join(names)}" for names in _missing(keystone, given.suffix)]
    missing += [] if secret else [f"${secret_name}"]
    if missing:
        raise UsageError(f"swift: not set: {', '.join(missing)}")
    try:
        url = KeystoneAccess(auth_url=url).auth_url or ""
    except ValidationError as error:
        # The URL is not repeated: the fault may be that it contains a secret.
        what = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"swift: $OS_AUTH_URL{given.suffix}: {what}") from None
    storage = swift.storage_urls
    return Endpoint(
        api="swift",
        url=url if urlsplit(url).path.endswith("/v3") else f"{url}/v3",
        user=keystone.username or keystone.user_id or keystone.who,
        key=SecretStr(secret),
        keystone=keystone,
        storage_url=storage[0] if storage else None,
        ca_file=swift.ca_file,
        others=tuple(base_of(one) for one in storage[1:]),
        addresses=swift.addresses,
    )


def _resolved(given: KeystoneAccess, environment: Mapping[str, str]) -> Keystone:
    """What the layout says and, of what it leaves out, the environment. Raises UsageError."""
    own: dict[str, str] = {}
    for names in _ALIKE:
        here = {name: str(getattr(given, name)) for name in names}
        there = {name: environment.get(f"OS_{name.upper()}{given.suffix}", "") for name in names}
        own |= here if any(here.values()) else there
    own["interface"] = own["interface"].removesuffix("URL")
    try:
        return Keystone.model_validate(own)
    except ValidationError:
        raise UsageError(
            f"swift: $OS_INTERFACE{given.suffix}: set it to public, internal or admin"
        ) from None


def _missing(keystone: Keystone, suffix: str) -> Iterator[tuple[str, ...]]:
    """Variables that a user or a project still needs."""
    by_name = keystone.by_application and not keystone.application_credential_id
    if (by_name or not keystone.by_application) and not (keystone.user_id or keystone.username):
        yield f"OS_USERNAME{suffix}", f"OS_USER_ID{suffix}"
    if not keystone.by_application and not keystone.project:
        yield f"OS_PROJECT_NAME{suffix}", f"OS_PROJECT_ID{suffix}"
