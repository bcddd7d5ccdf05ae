"""Credentials from the environment or AWS files, of which the owner alone is a reader."""

from __future__ import annotations

import contextlib
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.credential import (
    PROVIDERS,
    Keys,
    KeySource,
    Keystone,
    KeysUnavailable,
    aws_session,
    credential,
    export_words,
    load,
    profile_of,
)
from weighbridge.common.endpoint import Endpoint, Endpoints, base_of
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.record import Record
from weighbridge.gateways.existing.settings import (
    S3,
    ExistingSettings,
    KeystoneAccess,
    SwiftAccess,
    identity_url,
)

# What an endpoint needs beside its URL on a command line comes from the environment, by the names
# that the tools of each API use.


LARGEST_FILE_BYTES: Final = 2**24
"""AWS's files have some lines for each profile."""
PROFILES: Final = ("AWS_DEFAULT_PROFILE", "AWS_PROFILE")
"""Variables with a profile's name, in the order of botocore."""
LOGINS: Final = ("sso_session", "sso_start_url", "login_session")
"""What a profile has whose keys a login in a browser gives."""
REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
USER: Final = "ST_USER"
KEY: Final = "ST_KEY"
TOKEN: Final = "OS_AUTH_TOKEN"  # noqa: S105 - the name of a variable
KEYSTONE_SECRETS: Final = ("OS_PASSWORD", "OS_APPLICATION_CREDENTIAL_SECRET")
"""Variables with the secret of a user, and of an application credential."""
AUTHORITIES: Final[Mapping[str, str]] = {"s3": "AWS_CA_BUNDLE", "swift": "OS_CACERT"}
"""By API: the variable with a file of CA certificates."""


class LineSettings(Record):
    """Settings of one API in a layout: `given` by the URL, and others with their variables."""

    given: Mapping[str, str | Mapping[str, str]]
    by_variable: Mapping[str, tuple[str, str]]
    """Key: variable and value."""


def settings_of(api: str, name: str, url: str, environment: Mapping[str, str]) -> LineSettings:
    """The settings of an endpoint: `name` is its layout's, which variables of its own end with."""
    given = {"url": url} if api == "s3" else _swift_on_line(name, url, environment)
    found: dict[str, tuple[str, str]] = {}
    if api == "s3":
        region = next((one for one in REGIONS if environment.get(one)), None)
        if region is not None:
            found["region"] = (region, environment[region])
    authority = AUTHORITIES[api]
    if environment.get(authority) and url.lower().startswith("https:"):
        found["ca_file"] = (authority, environment[authority])
    return LineSettings(given=given, by_variable=found)


def _swift_on_line(
    name: str, url: str, environment: Mapping[str, str]
) -> Mapping[str, str | Mapping[str, str]]:
    """Keystone or auth v1 at this URL; with nothing but a token the storage there."""
    own = f"_{name.upper().replace('-', '_')}"
    user, key = (one + own if environment.get(one + own) else one for one in (USER, KEY))
    has_own = any(environment.get(secret + own) for secret in KEYSTONE_SECRETS)
    # Keystone's URL may be without its version; auth v1's has one.
    has_secret = has_own or any(environment.get(secret) for secret in KEYSTONE_SECRETS)
    of_auth_v1 = environment.get(key) or environment.get(TOKEN) or "/v1" in url
    asks_keystone = has_secret and not of_auth_v1
    if identity_url(url) or asks_keystone:
        return {"keystone": {"auth_url": url, "suffix": own if has_own else ""}}
    if environment.get(TOKEN) and not environment.get(key):
        return {"storage_url": url, "token_env": TOKEN}
    return {"auth_url": url, "user_env": user, "key_env": key}


_APPLICATION: Final = ("application_credential_name", "application_credential_id")
_ALIKE: Final = (
    ("username", "user_id"),
    ("user_domain_name", "user_domain_id"),
    ("project_name", "project_id"),
    ("project_domain_name", "project_domain_id"),
    _APPLICATION,
    ("region_name",),
    ("interface",),
)
"""Keys that say the same: one of them in a layout goes before the others in the environment."""
_OLDER: Final[Mapping[str, str]] = {
    "project_name": "OS_TENANT_NAME",
    "project_id": "OS_TENANT_ID",
    "interface": "OS_ENDPOINT_TYPE",
}
"""By key: the older name of its variable, which counts where the newer one is not set."""
_BY_PASSWORD: Final = ("password", "v3password")
_BY_APPLICATION: Final = "v3applicationcredential"
_NOT_KNOWN: Final = " asks for what is not known here"
_OFF: Final = ("", "0", "false")
_UNREAD: Final[Mapping[str, str]] = {
    "OS_CLOUD": "clouds.yaml is not read here: unset it, and source the cloud's openrc file",
    "OS_TRUST_ID OS_SYSTEM_SCOPE OS_DOMAIN_ID OS_DOMAIN_NAME": "unset it: a token is for a project",
    "OS_INSECURE": "certificates are always checked: unset it, and name its CA in $OS_CACERT",
    "OS_CERT OS_KEY": "no client certificate is sent: unset it",
    "OS_STORAGE_URL OS_OBJECT_STORE_ENDPOINT_OVERRIDE": "unset it, and give `storage_url` (layout)",
}
"""Variables by which OpenStack's tools ask others, for something else, or go elsewhere: refused."""


@contextlib.contextmanager
def _checked(origin: str) -> Iterator[None]:
    """Turn a fault of a record into a UsageError. A URL is not repeated: the fault may be that it
    contains a secret.
    """
    try:
        yield
    except ValidationError as error:
        what = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{origin}: {what}") from None


def keystone_endpoint(
    swift: SwiftAccess, given: KeystoneAccess, environment: Mapping[str, str]
) -> Endpoint:
    """The endpoint with its password. Raises UsageError with all variables that are missing."""
    for names, remedy in _UNREAD.items():
        here = swift.storage_url is not None and "storage_url" in remedy
        for name in () if here else names.split():
            if environment.get(name + given.suffix, "").lower() not in _OFF:
                raise UsageError(f"swift: ${name}{given.suffix}{_NOT_KNOWN}: {remedy}")
    keystone = _resolved(given, environment)
    secret_name = KEYSTONE_SECRETS[keystone.by_application] + given.suffix
    secret = environment.get(secret_name, "").removesuffix("\n").removesuffix("\r")
    url = given.auth_url or environment.get(f"OS_AUTH_URL{given.suffix}", "")
    missing = [] if url else [f"$OS_AUTH_URL{given.suffix}"]
    missing += [f"${' or $'.join(names)}" for names in _missing(keystone, given.suffix)]
    missing += [] if secret else [f"${secret_name}"]
    if missing:
        raise UsageError(f"swift: not set: {', '.join(missing)}")
    with _checked(f"swift: $OS_AUTH_URL{given.suffix}"):
        url = KeystoneAccess(auth_url=url).auth_url or ""
    user = keystone.username or keystone.user_id or keystone.who
    return _swift_endpoint(swift, (url,), user=user, key=secret, keystone=keystone)


def _swift_endpoint(swift: SwiftAccess, urls: tuple[str, ...], **own: Any) -> Endpoint:
    storage = () if swift.token_env else swift.storage_urls
    return Endpoint(
        api="swift",
        url=urls[0],
        storage_url=storage[0] if storage else None,
        ca_file=swift.ca_file,
        others=tuple(base_of(one) for one in (storage or urls)[1:]),
        addresses=swift.addresses,
        **own,
    )


def _resolved(given: KeystoneAccess, environment: Mapping[str, str]) -> Keystone:
    def value(name: str | None) -> str:
        return environment.get(f"{name}{given.suffix}", "")

    own: dict[str, str] = {}
    for names in _ALIKE:
        here = {name: str(getattr(given, name)) for name in names}
        there = {name: value(f"OS_{name.upper()}") or value(_OLDER.get(name)) for name in names}
        own |= here if any(here.values()) else there
    for kind in ("user_domain", "project_domain"):
        if not own[f"{kind}_name"] and not own[f"{kind}_id"]:
            own[f"{kind}_name"] = value("OS_DEFAULT_DOMAIN_NAME")
            own[f"{kind}_id"] = value("OS_DEFAULT_DOMAIN_ID") or value("OS_DEFAULT_DOMAIN")
    # Without a type OpenStack's tools take the password.
    kind = value("OS_AUTH_TYPE") or ("password" if value("OS_PASSWORD") else "")
    if kind not in ("", *_BY_PASSWORD, _BY_APPLICATION):
        remedy = f"set it to {', '.join(_BY_PASSWORD)} or {_BY_APPLICATION}, or unset it"
        raise UsageError(f"swift: $OS_AUTH_TYPE{given.suffix}{_NOT_KNOWN}: {remedy}")
    if kind in _BY_PASSWORD and not given.by_application:
        own |= dict.fromkeys(_APPLICATION, "")
    elif kind == _BY_APPLICATION and not any(own[name] for name in _APPLICATION):
        raise UsageError(f"swift: not set: $OS_APPLICATION_CREDENTIAL_ID{given.suffix}")
    own["interface"] = own["interface"].removesuffix("URL")
    try:
        return Keystone.model_validate(own)
    except ValidationError:
        either = f"$OS_ENDPOINT_TYPE{given.suffix} or $OS_INTERFACE{given.suffix}"
        raise UsageError(f"swift: {either}: set it to public, internal or admin") from None


def _missing(keystone: Keystone, suffix: str) -> Iterator[tuple[str, ...]]:
    by_name = keystone.by_application and not keystone.application_credential_id
    if (by_name or not keystone.by_application) and not (keystone.user_id or keystone.username):
        yield f"OS_USERNAME{suffix}", f"OS_USER_ID{suffix}"
    if not keystone.by_application and not keystone.project:
        yield f"OS_PROJECT_NAME{suffix}", f"OS_PROJECT_ID{suffix}"


ADVICE = (
    "Credentials are never read from a layout: set these variables, or name others in the layout, "
    "or a profile of the AWS files. Those that a container or host gives: "
    '`eval "$(aws configure export-credentials --format env)"`.'
)


def endpoints(settings: ExistingSettings, environment: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The endpoints with their credentials. Raises UsageError with everything that is missing."""
    found: list[Endpoint] = []
    missing: list[str] = []
    for make in (_swift, _s3):
        try:
            endpoint = make(settings, environment)
        except UsageError as error:
            missing.append(error.message)
            continue
        if endpoint is not None:
            spreading = settings.endpoints or Endpoints()
            found.append(endpoint.model_copy(update={"spreading": spreading}))
    if missing:
        text = "\n".join(missing)
        # A profile's own fault is mended there.
        raise UsageError(text, advice=ADVICE if "not set: " in text else "")
    return tuple(found)


def source(settings: S3 | SwiftAccess) -> str:
    """Where the credentials of an API come from, in words."""
    if isinstance(settings, SwiftAccess):
        if settings.keystone is not None:
            return f"Keystone, by the variables $OS_*{settings.keystone.suffix} and the layout"
        return (
            f"the token of ${settings.token_env}"
            if settings.token_env
            else f"auth v1 with the key of ${settings.key_env}"
        )
    words = {"aws": "the environment or the AWS files", "environment": "the environment"}
    usual = settings.credentials.replace("profile", "the AWS files, profile")
    return words.get(settings.credentials, usual)


def _swift(settings: ExistingSettings, environment: Mapping[str, str]) -> Endpoint | None:
    swift = settings.swift
    if swift is None:
        return None
    if swift.keystone is not None:
        return keystone_endpoint(swift, swift.keystone, environment)
    missing: list[str] = []

    def variable(name: str) -> str:
        value = credential(f"swift: ${name}", environment.get(name, ""))
        if not value:
            missing.append(f"${name}")
        return value

    if swift.token_env is not None:
        token = variable(swift.token_env)
        urls, user, key = swift.storage_urls or (variable("OS_STORAGE_URL"),), "", ""
    else:
        token = None
        urls = swift.auth_urls or (variable("ST_AUTH"),)
        user, key = swift.user or variable(swift.user_env), variable(swift.key_env)
    if missing:
        v3 = "" if swift.token_env else " (of auth v1; Keystone's URL ends with /v3)"
        raise UsageError(f"swift: not set: {', '.join(missing)}{v3}")
    with _checked(f"swift: {'$ST_AUTH' if swift.token_env is None else '$OS_STORAGE_URL'}"):
        # What comes from the environment has not been validated yet.
        urls = SwiftAccess(storage_url=urls, ca_file=swift.ca_file).storage_urls
    return _swift_endpoint(swift, urls, user=user, key=key, token=token)


def _s3(settings: ExistingSettings, environment: Mapping[str, str]) -> Endpoint | None:
    if settings.s3 is None:
        return None
    s3 = with_profile(settings.s3, environment)
    return Endpoint(
        api="s3",
        url=s3.urls[0],
        others=s3.urls[1:],
        addresses=s3.addresses,
        **_fields(*_keys(s3, environment)),
        region=s3.region or "us-east-1",
        addressing=s3.addressing or "path",
        ca_file=s3.ca_file,
    )


def with_profile(s3: S3, environment: Mapping[str, str]) -> S3:
    """The settings with what its profile says, as to the AWS tools, of what they leave out. Raises
    UsageError.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - a quarter of a second of imports

    if s3.credentials == "environment":
        return s3
    source = _source(s3, environment)
    try:
        profile = profile_of(aws_session(source), source.profile)
    except BotoCoreError as error:
        raise UsageError(f"s3: {error}{_unread(error)}") from error
    own = profile.get("s3")
    own = own if isinstance(own, Mapping) else {}
    style, version = own.get("addressing_style"), own.get("signature_version", "s3v4")
    if version != "s3v4":
        what = f"it asks for signature_version = {version}, and requests are signed by s3v4 alone"
        remedy = "if the store takes that, leave it out or give the keys by the environment"
        raise UsageError(f"s3: profile {source.profile!r}: {what}: {remedy}")
    told = {
        "region": profile.get("region"),
        # `auto` is the path, where the endpoint is not Amazon's; so is a name that has no buckets.
        "addressing": style if style == "virtual" and s3.named else None,
        "ca_file": profile.get("ca_bundle") if s3.urls[0].startswith("https:") else None,
    }
    said = {name: value for name, value in told.items() if value and getattr(s3, name) is None}
    try:
        return S3.model_validate({**s3.model_dump(exclude_unset=True), **said})
    except ValidationError as error:
        fault = error.errors(include_input=False)[0]
        what = f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}"
        raise UsageError(f"s3: profile {source.profile!r}: {what}") from None


def _source(s3: S3, environment: Mapping[str, str]) -> KeySource:
    profile = s3.credentials.partition(" ")[2]
    named = profile or next(filter(None, map(environment.get, PROFILES)), "default")
    shared = environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    config = environment.get("AWS_CONFIG_FILE") or "~/.aws/config"
    return KeySource(profile=named, config_file=config, credentials_file=shared)


def with_new_keys(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with new keys if its own are temporary; where there are none, with the old ones
    until they end. Raises TargetError.
    """
    if endpoint.key_source is None:
        return endpoint
    try:
        keys = load(endpoint.key_source, endpoint.secrets)
    except KeysUnavailable as error:
        if endpoint.keys_end_at is not None and endpoint.keys_end_at > datetime.now(UTC):
            return endpoint
        raise TargetError(f"s3 at {endpoint.url}: {error}") from None
    return endpoint.model_copy(update=_fields(keys, endpoint.key_source))


def _fields(keys: Keys, source: KeySource | None) -> dict[str, Any]:
    return {
        "user": credential("s3: the access key", keys.access),
        "key": SecretStr(credential("s3: the secret key", keys.secret)),
        "token": SecretStr(credential("s3: the session token", keys.token)) if keys.token else None,
        "key_source": source,
        "keys_end_at": keys.end_at,
    }


def _refuse_shared_file(name: str) -> None:
    path = Path(name).expanduser()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"s3: {path} has keys, and others may read it (mode {mode:04o}): run chmod 600 "
            f"{shlex.quote(str(path))}"
        )


def _unread(error: BaseException) -> str:
    """What botocore could not read of a file, by the parser's own name for it: lines have keys."""
    cause: Any = error.__cause__ or error.__context__
    name = re.sub(r"(?=[A-Z])", " ", type(cause).__name__.removesuffix("Error")).lower()
    return f" (line {cause.lineno}:{name})" if hasattr(cause, "lineno") else ""


def _refuse_unreadable(*files: str) -> None:
    for file in files:
        try:
            safe_files.read_given(Path(file).expanduser(), largest_bytes=LARGEST_FILE_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"s3: {file}: {error.strerror}") from None


def _keys(s3: S3, environment: Mapping[str, str]) -> tuple[Keys, KeySource | None]:
    """The keys by botocore's own readers of the environment and the AWS files, and where they are
    got again if they are temporary.

    The rest of botocore's chain is not used: parts of it ask the network, which these do only for
    a profile that says so.
    """
    from botocore import credentials  # noqa: PLC0415 - a quarter of a second of imports
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    source = _source(s3, environment)
    named, config, shared = source.profile, source.config_file, source.credentials_file
    of_profile = s3.credentials.startswith("profile ")
    said: Mapping[str, Any] = {}
    try:
        if not of_profile and (found := credentials.EnvProvider(environ=environment).load()):
            return Keys.of(found), None
        if s3.credentials != "environment":
            _refuse_unreadable(shared, config)
            said = profile_of(aws_session(source), named)
            found = credentials.SharedCredentialProvider(shared, named).load()
            # In the order of the AWS tools.
            *roles, program = PROVIDERS.values()
            if any(one in said for one in roles) or (program in said and not found):
                keys = load(source)
                _refuse_shared_file(shared)  # it may have the keys of the profile with the role
                return keys, None if keys.end_at is None else source
            file = shared if found else config
            if found := found or credentials.ConfigProvider(config, named).load():
                _refuse_shared_file(file)
                return Keys.of(found), None
    except (BotoCoreError, KeysUnavailable) as error:
        raise UsageError(f"s3: {error}{_unread(error)}") from error
    except RuntimeError:
        raise UsageError(
            "s3: the keys in the environment have expired ($AWS_CREDENTIAL_EXPIRATION)"
        ) from None
    lacking = [] if of_profile else ["not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY"]
    if s3.credentials != "environment":
        if login := next((one for one in LOGINS if one in said), None):
            why = f"profile {named!r} gives no keys by itself, but a login ({login})"
            lacking = [f"{why}: {export_words(named)}"]
        else:
            lacking.append(f"no profile {named!r} with keys in {shared} or {config}")
    raise UsageError(f"s3: {'; and '.join(lacking)}")
