"""The settings of endpoints that a command line names by their URLs alone.

What else they need comes from the environment, by the names that the tools of each API use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.common.record import Record

REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
USER: Final = "ST_USER"
KEY: Final = "ST_KEY"
TOKEN: Final = "OS_AUTH_TOKEN"  # noqa: S105 - the name of a variable
KEYSTONE_SECRETS: Final = ("OS_PASSWORD", "OS_APPLICATION_CREDENTIAL_SECRET")
"""Variables with the secret of a user, and of an application credential."""
AUTHORITIES: Final[Mapping[str, str]] = {"s3": "AWS_CA_BUNDLE", "swift": "OS_CACERT"}
"""By API: the variable with a file of CA certificates."""


class LineSettings(Record):
    """Settings of one API, below its name in a layout: `given` by the URL, and others with the
    variables that they come from.
    """

    given: Mapping[str, str | Mapping[str, str]]
    by_variable: Mapping[str, tuple[str, str]]
    """Key: variable and value."""


def settings_of(api: str, name: str, url: str, environment: Mapping[str, str]) -> LineSettings:
    """The settings of an endpoint: `name` is its layout's, which variables of its own end with."""
    given = {"url": url} if api == "s3" else _swift(name, url, environment)
    found: dict[str, tuple[str, str]] = {}
    if api == "s3":
        region = next((one for one in REGIONS if environment.get(one)), None)
        if region is not None:
            found["region"] = (region, environment[region])
    authority = AUTHORITIES[api]
    if environment.get(authority) and url.startswith("https:"):
        found["ca_file"] = (authority, environment[authority])
    return LineSettings(given=given, by_variable=found)


def _swift(
    name: str, url: str, environment: Mapping[str, str]
) -> Mapping[str, str | Mapping[str, str]]:
    """Keystone or auth v1 at this URL, or with nothing but a token in the environment the storage
    there.
    """
    own = f"_{name.upper().replace('-', '_')}"
    if url.rstrip("/").endswith("/v3"):
        has_own = any(environment.get(one + own) for one in KEYSTONE_SECRETS)
        return {"keystone": {"auth_url": url, "suffix": own if has_own else ""}}
    user, key = (one + own if environment.get(one + own) else one for one in (USER, KEY))
    if environment.get(TOKEN) and not environment.get(key):
        return {"storage_url": url, "token_env": TOKEN}
    return {"auth_url": url, "user_env": user, "key_env": key}
