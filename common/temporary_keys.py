"""Keys of S3 that end, and where they are got again: AWS profiles, read by botocore."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from weighbridge.common.credential import redacted
from weighbridge.common.keystone import RENEW_AT
from weighbridge.common.record import Record

if TYPE_CHECKING:
    from botocore.credentials import Credentials

PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assume-role": "role_arn",
        "assume-role-with-web-identity": "web_identity_token_file",
        "custom-process": "credential_process",
    }
)
"""botocore's names of what gives temporary keys, each with what a profile asks for it by."""


GIVEN_WITHIN_S: Final = 30.0
"""How long a `credential_process`, or asking for a role, may take; a driver that is silent for 60 s
is given up.
"""
ASK_S: Final = 20.0
"""How long a token service may be silent; botocore itself would wait 60 s, five times."""
RETRY_S: Final = 30.0
"""After a renewal that failed, the longest time until the next."""


class KeySource(Record):
    """An AWS profile that gives temporary keys; no secret."""

    provider: str
    """One of PROVIDERS."""
    profile: str
    config_file: str
    credentials_file: str


@dataclass(frozen=True)
class Keys:
    """The keys of a user, and when they end (UTC), if that is known."""

    access: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    """The session token; "" if there is none."""
    end_at: datetime | None = None

    @classmethod
    def of(cls, found: Credentials) -> Keys:
        """What botocore found. Raises RuntimeError when that has ended."""
        frozen = found.get_frozen_credentials()
        end_at: datetime | None = getattr(found, "_expiry_time", None)
        return cls(
            str(frozen.access_key),
            str(frozen.secret_key),
            str(frozen.token or ""),
            None if end_at is None else end_at.astimezone(UTC),
        )

    @property
    def left_s(self) -> float | None:
        """Seconds until they end; None: that is not known, or never."""
        return None if self.end_at is None else (self.end_at - datetime.now(UTC)).total_seconds()


class KeysUnavailable(Exception):
    """A profile gave no keys, in words without a secret."""


class _LimitedProgram:
    """A `credential_process` in a process group of its own, killed if it takes too long."""

    def __init__(self, argv: Sequence[str], **options: Any) -> None:
        # Not a subclass: gevent puts its own Popen in place of the one that was imported.
        self._program = subprocess.Popen(argv, start_new_session=True, **options)

    @property
    def returncode(self) -> int | None:
        """As of Popen."""
        return self._program.returncode

    def communicate(self) -> tuple[Any, Any]:
        """As of Popen. Raises RuntimeError after GIVEN_WITHIN_S."""
        try:
            return self._program.communicate(timeout=GIVEN_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._program.pid, signal.SIGKILL)
            self._program.communicate()
            raise RuntimeError(f"its program took longer than {GIVEN_WITHIN_S:g} s") from None


def load(source: KeySource, known: Sequence[str] = ()) -> Keys | None:
    """Keys of a profile, new ones each time; None if it does not name this provider. `known` are
    secrets that it gave before.

    Raises KeysUnavailable.
    """
    from botocore.config import Config  # noqa: PLC0415 - a quarter of a second of imports
    from botocore.credentials import (  # noqa: PLC0415
        ProcessProvider,
        create_credential_resolver,
    )
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    asked: list[str] = []

    def asks(request: Any, **_: object) -> None:
        asked.append(str(request.url).partition("?")[0])

    session: Any = Session(profile=source.profile)
    session.register("before-send", asks)
    session.set_default_client_config(
        Config(connect_timeout=ASK_S, read_timeout=ASK_S, retries={"total_max_attempts": 1})
    )
    session.set_config_variable("config_file", str(Path(source.config_file).expanduser()))
    session.set_config_variable("credentials_file", str(Path(source.credentials_file).expanduser()))
    try:
        profile = session.full_config.get("profiles", {}).get(source.profile, {})
        if PROVIDERS[source.provider] not in profile:
            return None
        if source.provider == ProcessProvider.METHOD:
            provider = ProcessProvider(source.profile, lambda: session.full_config, _LimitedProgram)
            return _keys_of(provider)
        provider = create_credential_resolver(session).get_provider(source.provider)
        return _in_time(lambda: _keys_of(provider), source.provider, asked)
    except (BotoCoreError, ClientError, OSError, RuntimeError, ValueError) as error:
        # Of a program's output, and of what it could not be read as, nothing is repeated.
        told = isinstance(error, BotoCoreError | ClientError | RuntimeError)
        # What a program writes to stderr helps whoever wrote it; it may have the keys before.
        words = redacted(str(error), known)[:500].strip() if told else type(error).__name__
        raise KeysUnavailable(
            f"profile {source.profile!r} gives no keys ({source.provider}): {words}"
        ) from None


def _keys_of(provider: Any) -> Keys | None:
    found = provider.load()
    return None if found is None else Keys.of(found)


def _in_time(get: Callable[[], Keys | None], what: str, asked: Sequence[str]) -> Keys | None:
    """What `get` returns or raises. Raises RuntimeError after GIVEN_WITHIN_S, naming what was
    `asked` last: a server that drips is silent for no timeout of botocore's.
    """
    found: list[Keys | None] = []
    faults: list[Exception] = []

    def run() -> None:
        try:
            found.append(get())
        except Exception as error:  # noqa: BLE001 - raised again below
            faults.append(error)

    asking = threading.Thread(target=run, daemon=True)
    asking.start()
    asking.join(GIVEN_WITHIN_S)
    if faults:
        raise faults[0]
    if not found:
        where = f"{asked[-1]} was asked for keys" if asked else f"{what} asked for keys"
        raise RuntimeError(f"{where}: no complete answer within {GIVEN_WITHIN_S:g} s")
    return found[0]


def load_again(source: KeySource, known: Sequence[str]) -> Keys:
    """New keys of a profile that gave some before. Raises KeysUnavailable."""
    keys = load(source, known)
    if keys is None:
        raise KeysUnavailable(
            f"profile {source.profile!r} of {source.config_file} no longer gives temporary keys"
        )
    return keys


class RenewedKeys:
    """The keys of a source, got again when most of their life is over."""

    def __init__(self, source: KeySource, keys: Keys) -> None:
        self._source = source
        self._take(keys)

    def _take(self, keys: Keys) -> None:
        left_s = math.inf if keys.left_s is None else keys.left_s
        self._keys, self._renew_s = keys, time.monotonic() + RENEW_AT * left_s

    def now(self) -> Keys:
        """Keys that have not ended: where there are no new ones, the old ones until their end.

        Raises KeysUnavailable.
        """
        if time.monotonic() >= self._renew_s:
            try:
                self._take(load_again(self._source, (self._keys.secret, self._keys.token)))
            except KeysUnavailable:
                left_s = self._keys.left_s or 0.0
                if left_s <= 0:
                    raise
                self._renew_s = time.monotonic() + min(RETRY_S, left_s / 2)
        return self._keys
