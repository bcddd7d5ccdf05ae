"""Credentials of gateways that already run: from the environment or the usual AWS files.

Never from a layout. Only files that their owner alone may read are used.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from weighbridge.common.credential import credential
from weighbridge.common.endpoint import Endpoint, Endpoints, base_of
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.temporary_keys import (
    PROVIDERS,
    Keys,
    KeySource,
    KeysUnavailable,
    load,
    load_again,
)
from weighbridge.gateways.existing.openstack import keystone_endpoint
from weighbridge.gateways.existing.settings import S3, ExistingSettings, SwiftAccess

ADVICE = (
    "Credentials are never read from a layout: set these variables, or name others in the layout, "
    "or a profile of the AWS files."
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
        else:
            found += [endpoint] if endpoint is not None else []
    if missing:
        raise UsageError("\n".join(missing), advice=ADVICE)
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
    if settings.credentials == "aws":
        return "the environment or the AWS files"
    if settings.credentials == "environment":
        return "the environment"
    return settings.credentials.replace("profile", "the AWS files, profile")


def _swift(settings: ExistingSettings, environment: Mapping[str, str]) -> Endpoint | None:
    swift = settings.swift
    if swift is None:
        return None
    if swift.keystone is not None:
        return keystone_endpoint(swift, swift.keystone, environment).model_copy(
            update={"spreading": settings.endpoints or Endpoints()}
        )
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
        urls, user, key = (
            swift.auth_urls or (variable("ST_AUTH"),),
            swift.user or variable(swift.user_env),
            variable(swift.key_env),
        )
    if missing:
        raise UsageError(f"swift: not set: {', '.join(missing)}")
    try:
        # What comes from the environment has not been validated yet.
        SwiftAccess(storage_url=urls[0], ca_file=swift.ca_file)
    except ValidationError as error:
        # The URL is not repeated: the fault may be that it contains a secret.
        origin = "$ST_AUTH" if swift.token_env is None else "$OS_STORAGE_URL"
        raise UsageError(
            f"swift: {origin}: {error.errors()[0]['msg'].removeprefix('Value error, ')}"
        ) from None
    storage = () if token is not None else swift.storage_urls
    return Endpoint(
        api="swift",
        url=urls[0],
        user=user,
        key=SecretStr(key),
        token=None if token is None else SecretStr(token),
        storage_url=storage[0] if storage else None,
        ca_file=swift.ca_file,
        others=tuple(base_of(url) for url in (storage or urls)[1:]),
        addresses=swift.addresses,
        spreading=settings.endpoints or Endpoints(),
    )


def _s3(settings: ExistingSettings, environment: Mapping[str, str]) -> Endpoint | None:
    s3 = settings.s3
    if s3 is None:
        return None
    return Endpoint(
        api="s3",
        url=s3.urls[0],
        others=s3.urls[1:],
        addresses=s3.addresses,
        spreading=settings.endpoints or Endpoints(),
        **_fields(*_keys(s3, environment)),
        region=s3.region,
        addressing=s3.addressing,
        ca_file=s3.ca_file,
    )


def with_new_keys(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with new keys if its own are temporary; where there are none, with the old ones
    until they end. Raises TargetError.
    """
    if endpoint.key_source is None:
        return endpoint
    try:
        keys = load_again(endpoint.key_source, endpoint.secrets)
    except KeysUnavailable as error:
        if endpoint.keys_end_at is not None and endpoint.keys_end_at > datetime.now(UTC):
            return endpoint
        raise TargetError(f"s3 at {endpoint.url}: {error}") from None
    return endpoint.model_copy(update=_fields(keys, endpoint.key_source))


def _fields(keys: Keys, source: KeySource | None) -> dict[str, Any]:
    """The fields of an endpoint that its keys are in."""
    return {
        "user": credential("s3: the access key", keys.access),
        "key": SecretStr(credential("s3: the secret key", keys.secret)),
        "token": SecretStr(credential("s3: the session token", keys.token)) if keys.token else None,
        "key_source": source,
        "keys_end_at": keys.end_at,
    }


def _refuse_shared_file(path: Path) -> None:
    """Raise UsageError when others than the owner may read a file with keys."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"s3: {path} has keys, and others may read it (mode {mode:04o}): run chmod 600 "
            f"{shlex.quote(str(path))}"
        )


def _temporary(source: KeySource) -> Keys | None:
    """The keys of a profile that names such a source. Raises UsageError, KeysUnavailable."""
    keys = load(source)
    path = Path(source.credentials_file).expanduser()
    if keys is not None and path.exists():
        _refuse_shared_file(path)  # it may have the keys of the profile that assumes the role
    return keys


def _keys(s3: S3, environment: Mapping[str, str]) -> tuple[Keys, KeySource | None]:
    """The keys by botocore's own readers of the environment and the AWS files, and where they are
    got again if they are temporary.

    The rest of botocore's chain is not used: parts of it ask the network, which these do only for
    a profile that says so.
    """
    from botocore import credentials  # noqa: PLC0415 - a quarter of a second of imports
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    profile = (
        s3.credentials.removeprefix("profile ") if s3.credentials.startswith("profile ") else ""
    )
    named = profile or environment.get("AWS_PROFILE") or "default"
    shared = environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    config = environment.get("AWS_CONFIG_FILE") or "~/.aws/config"
    by_role, by_web_identity, by_program = (
        KeySource(provider=one, profile=named, config_file=config, credentials_file=shared)
        for one in PROVIDERS
    )
    in_files: list[tuple[Any, str] | KeySource] = [
        # In the order of the AWS tools.
        by_role,
        by_web_identity,
        (credentials.SharedCredentialProvider(creds_filename=shared, profile_name=named), shared),
        by_program,
        (credentials.ConfigProvider(config_filename=config, profile_name=named), config),
    ]
    readers: list[tuple[Any, str] | KeySource] = (
        [] if profile else [(credentials.EnvProvider(environ=environment), "")]
    )
    if s3.credentials != "environment":
        readers += in_files
    try:
        for one in readers:
            if isinstance(one, KeySource):
                if keys := _temporary(one):
                    return keys, None if keys.end_at is None else one
            elif found := one[0].load():
                if one[1]:
                    _refuse_shared_file(Path(one[1]).expanduser())
                return Keys.of(found), None
    except (BotoCoreError, KeysUnavailable) as error:
        raise UsageError(f"s3: {error}") from error
    except RuntimeError:
        raise UsageError(
            "s3: the keys in the environment have expired ($AWS_CREDENTIAL_EXPIRATION)"
        ) from None
    lacking = [] if profile else ["not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY"]
    if s3.credentials != "environment":
        lacking.append(f"no profile {named!r} with keys in {shared} or {config}")
    raise UsageError(f"s3: {'; and '.join(lacking)}")
