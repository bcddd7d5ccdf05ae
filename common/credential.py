"""Keys, passwords and tokens: checked when they are read, and removed from text people see."""

from __future__ import annotations

import base64
import contextlib
import functools
import html.entities
import json
import math
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.bounded_http import storage_url_of
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record

if TYPE_CHECKING:
    from botocore.credentials import Credentials


HIDDEN: Final = "***"
"""For secrets, where texts are shown."""
SHORT: Final = 8
"""A secret with less characters is short, see `_where`."""
_ESCAPES: Final = r"\\{1,4}"
_AGAIN: Final = "{0,3}"
"""Escapes of escapes; bounded, since a text of nothing else would be searched for hours."""
_ENTITIES: Final = {**html.entities.codepoint2name, ord("'"): "apos"}


def credential(origin: str, value: str) -> str:
    """A key, password or token from `origin`, without the line end that files and pipes add.

    Raises UsageError, without showing the value, if no HTTP header can carry it: a library's own
    message about that would contain the key.
    """
    value = value.removesuffix("\n").removesuffix("\r")
    if not value.isprintable():
        raise UsageError(
            f"{origin}: contains a line break or control character, which HTTP cannot carry",
            advice='Check how it was set: `printf %s "$NAME" | od -c` shows all its characters.',
        )
    return value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, also as Python, C, JSON, XML, HTML, a URL, base64 or a hex dump
    write them, and twice: a proxy may escape what a store has escaped.
    """
    texts = set(filter(None, secrets))
    # A server may take bytes of UTF-8 for letters of Latin-1.
    texts |= {secret.encode(errors="replace").decode("latin-1") for secret in texts}
    for secret in sorted(texts, key=len, reverse=True):
        text = _where(secret).sub(HIDDEN, text)
    return text


@functools.lru_cache(maxsize=64)
def _where(secret: str) -> re.Pattern[str]:
    """A pattern of a secret. A short one may be part of words that say what is wrong, so that it
    counts only as a word, and a single character only where values are: `='x'`.
    """
    spelt = "".join(map(_spellings, secret))
    if len(secret) == 1:
        spelt = rf"""(?<='){spelt}(?=')|(?<="){spelt}(?=")|(?<=[=>]){spelt}(?!\w)"""
    elif len(secret) < SHORT:
        spelt = rf"(?<!\w){spelt}(?!\w)"
    return re.compile("|".join([spelt, *_in_bytes(secret)]))


def _spellings(letter: str) -> str:
    """A pattern of a character however it is escaped. Each begins with a literal one, by which
    Python searches quickly; the longer ones first, as `&amp;` before `&`.
    """
    code, octets = ord(letter), letter.encode(errors="surrogatepass")
    units = letter.encode("utf-16-be", "surrogatepass").hex("-", 2).split("-")
    entities = [f"#0*{code}", f"#x0*{code:x}", *filter(None, [_ENTITIES.get(code)])]
    found = [f"&(?i:(?:amp;){_AGAIN}{one});" for one in entities]
    found += ["".join(f"%(?i:(?:25){_AGAIN}{one:02x})" for one in octets)]
    found += ["".join(rf"{_ESCAPES}u(?i:{unit})" for unit in units)]
    found += [rf"{_ESCAPES}(?:x(?i:{code:02x})|{code:03o})"] if code <= 0xFF else []
    found += [_ESCAPES + re.escape(letter)] if not letter.isalnum() else []
    found += [r"\+"] if letter == " " else []
    return f"(?:{'|'.join([*found, re.escape(letter)])})"


def _in_bytes(secret: str) -> set[str]:
    """Patterns of a hex dump, and of base64 with the secret after 0 to 2 bytes, as after `user:`:
    without the ends, which depend on what is beside it. Of less than 4 bytes too little is left.
    """
    found = set()
    for octets in (secret.encode(errors="replace"), secret.encode("latin-1", "replace")):
        dump = "[ :]?".join(f"{one:02x}" for one in octets)
        found |= {dump, dump.upper()} if len(octets) >= 4 else set()
        for before in range(3) if len(octets) >= 4 else ():
            coded = base64.b64encode(bytes(before) + octets).decode()
            whole = coded[-(-before * 8 // 6) : (before + len(octets)) * 8 // 6]
            found.add(
                re.escape(whole).replace(r"\+", "[+-]").replace("/", "[/_]") + "[-+/_=A-Za-z0-9]*"
            )
    return found


# Folders in options may hold no secret either, see `bounded_http.parts_of`.


_SSH: Final = re.compile(
    r"ssh://(?:(?P<user>[^@/:%;?#\s]+)@)?(?P<host>\[[^]@\s]+]|[^@/:?#\s]+)(?::(?P<port>\d+))?(?P<path>/[^?#]*)"
)


@dataclass(frozen=True)
class SshPlace:
    """A folder on a host reached by ssh; port 0 and an empty user: as ~/.ssh says."""

    user: str
    host: str
    port: int
    path: str


def ssh_place(place: str) -> SshPlace:
    """What ssh://USER@HOST[:PORT]/PATH names. Raises ValueError."""
    found = _SSH.fullmatch(place)
    if found is None or not place.isprintable():
        raise ValueError("not of the form ssh://USER@HOST[:PORT]/PATH (without a password)")
    return SshPlace(
        found["user"] or "",
        found["host"].strip("[]"),
        int(found["port"] or 0),
        found["path"].rstrip("/"),
    )


def folder_or_ssh_place(place: str) -> str:
    """The path of a folder, or a location as of `ssh_place`. Raises ValueError."""
    if "://" in place:
        ssh_place(place)
    return place


# Tokens of Keystone, OpenStack's identity service (its API v3), and the storage URL that its
# catalogue has for them.


SERVICE: Final = "object-store"
"""The type of Swift's API in a catalogue."""
RENEW_AT: Final = 0.8
"""After this share of its life a token is replaced: requests that are under way still have it."""
SHORTEST_S: Final = 5.0
"""A token with a shorter life is refused: it would be renewed all the time."""
_DEFAULT_DOMAIN: Final = "default"
"""The ID of the domain that a new Keystone has; its own tools take it too if none is given."""
_SHOWN: Final = 8
"""At most so many names of an answer are shown."""
_REFUSED: Final = 401
_GRANTED: Final = 201
_FOUND: Final = 200

Interface = Literal["public", "internal", "admin"]


class Keystone(Record):
    """Who asks for a token and of what, and which storage URL of the catalogue is used; no secret.

    The keys are those of clouds.yaml. Where both a name and an ID are given, the ID counts.
    """

    username: str = ""
    """The user's name in its domain."""
    user_id: str = ""
    """The user's ID, which needs no domain."""
    user_domain_name: str = ""
    """The name of the domain of the user's name."""
    user_domain_id: str = ""
    """The ID of that domain; neither: `default`."""
    project_name: str = ""
    """The project's name in its domain."""
    project_id: str = ""
    """The project's ID, which needs no domain."""
    project_domain_name: str = ""
    """The name of the domain of the project's name."""
    project_domain_id: str = ""
    """The ID of that domain; neither: `default`."""
    application_credential_name: str = ""
    """The name of an application credential of the user."""
    application_credential_id: str = ""
    """An application credential in place of a password; its project is its own."""
    region_name: str = ""
    """Region of the storage URL; needed where the catalogue has several."""
    interface: Literal["", Interface] = ""
    """Which of its storage URLs; "": public."""

    @property
    def by_application(self) -> bool:
        return bool(self.application_credential_id or self.application_credential_name)

    @property
    def who(self) -> str:
        """Whom Keystone is asked to let in, in words."""
        if self.by_application:
            name = self.application_credential_id or self.application_credential_name
            return f"the application credential {name!r}"
        return f"the user {self.user_id or self.username!r}"

    @property
    def project(self) -> str:
        """The name or ID of its project, or "" where it is that of an application credential."""
        return "" if self.by_application else self.project_id or self.project_name


@dataclass(frozen=True)
class Granted:
    """A token, what it is for, and how long it is valid from its issue on."""

    storage_url: str
    token: str = field(repr=False)
    life_s: float


class Answered(Protocol):
    """An HTTP answer with its complete body; names of its header fields are in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Any: ...
    @property
    def body(self) -> bytes: ...


Send = Callable[[str, str, bytes, Mapping[str, str]], Answered]
"""Method, path, body and headers of a request to Keystone -> its answer."""


class KeystoneRefuses(Exception):
    """No token or no storage URL: `what` says why, without a secret."""

    def __init__(self, what: str, answer: Answered) -> None:
        super().__init__(what)
        self.what = what
        self.answer = answer


class _Part(BaseModel):
    """What is used of an answer; it says more."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class _Place(_Part):
    url: str = ""
    interface: str
    region: str | None = None
    region_id: str | None = None

    @property
    def name(self) -> str:
        return self.region_id or self.region or ""


class _Service(_Part):
    type: str
    endpoints: tuple[_Place, ...] = ()


class _Token(_Part):
    issued_at: AwareDatetime
    expires_at: AwareDatetime
    catalog: tuple[_Service, ...] = ()


class _Answer(_Part):
    token: _Token


class _Project(_Part):
    name: str


class _Projects(_Part):
    projects: Annotated[tuple[_Project, ...], Field(max_length=100_000)]


def log_in(keystone: Keystone, secret: str, path: str, send: Send) -> Granted:
    """Ask Keystone at `path`, such as `/v3`, for a token. Raises KeystoneRefuses, as `send`."""
    path = f"{path.rstrip('/')}/auth/tokens"
    project = {"project": _named(keystone, "project", keystone.project_name)}
    answer = _ask(keystone, secret, None if keystone.by_application else project, path, send)
    if answer.status == _REFUSED:
        raise KeystoneRefuses(_why(keystone, secret, path, send), answer)
    if answer.status != _GRANTED:
        what = "a token (201) was expected: is this the URL of Keystone's API v3?"
        raise KeystoneRefuses(what, answer)
    token = answer.headers.get("x-subject-token")
    try:
        found = _Answer.model_validate_json(answer.body).token
    except ValidationError:
        token = None
    if not token:
        raise KeystoneRefuses("its answer has no token that can be read", answer)
    if not token.isprintable() or not token.isascii():
        raise KeystoneRefuses("its token has characters that no header can carry", answer)
    life_s = (found.expires_at - found.issued_at).total_seconds()
    if life_s < SHORTEST_S:
        raise KeystoneRefuses(
            f"its token lasts {life_s:g} s, and {SHORTEST_S:g} s are needed to renew it", answer
        )
    url = _storage_url(keystone, found.catalog, answer, (secret, token))
    return Granted(url, token, life_s)


def _ask(keystone: Keystone, secret: str, scope: object, path: str, send: Send) -> Answered:
    auth = {"identity": _identity(keystone, secret), **({} if scope is None else {"scope": scope})}
    body = json.dumps({"auth": auth}).encode()
    return send("POST", path, body, {"Content-Type": "application/json"})


def _identity(keystone: Keystone, secret: str) -> dict[str, object]:
    user = _named(keystone, "user", keystone.username)
    if not keystone.by_application:
        return {"methods": ["password"], "password": {"user": {**user, "password": secret}}}
    own: dict[str, object] = {"id": keystone.application_credential_id}
    if not keystone.application_credential_id:
        # Its name is the user's own.
        own = {"name": keystone.application_credential_name, "user": user}
    method = "application_credential"
    return {"methods": [method], method: {**own, "secret": secret}}


def _named(keystone: Keystone, kind: str, name: str) -> dict[str, object]:
    if known := getattr(keystone, f"{kind}_id"):
        return {"id": known}
    domain_id = getattr(keystone, f"{kind}_domain_id")
    domain_name = getattr(keystone, f"{kind}_domain_name")
    by_name = domain_name and not domain_id
    domain = {"name": domain_name} if by_name else {"id": domain_id or _DEFAULT_DOMAIN}
    return {"name": name, "domain": domain}


def _why(keystone: Keystone, secret: str, path: str, send: Send) -> str:
    """Why Keystone answered 401: it says the same to a wrong password as to an unknown project."""
    unknown = (
        f"Keystone refuses {keystone.who}: there is none of this name or ID in its domain, "
        f"or its {'secret' if keystone.by_application else 'password'} is wrong, or it is locked"
    )
    if keystone.by_application:
        return unknown
    alone = _ask(keystone, secret, "unscoped", path, send)
    if alone.status != _GRANTED:
        return unknown
    headers = {"X-Auth-Token": alone.headers.get("x-subject-token") or ""}
    listed = send("GET", path.removesuffix("tokens") + "projects", b"", headers)
    try:
        own = _Projects.model_validate_json(listed.body) if listed.status == _FOUND else None
    except ValidationError:
        own = None
    secrets = (secret, headers["X-Auth-Token"])
    known = "not known"
    if own is not None:
        known = _names((one.name for one in own.projects), secrets) or "none"
    return (
        f"the password of {keystone.who} is right, but there is no project {keystone.project!r} in "
        f"its domain, or the user has no role there; projects of this user: {known}"
    )


def _storage_url(
    keystone: Keystone, catalog: Iterable[_Service], answer: Answered, secrets: Sequence[str]
) -> str:
    catalog = tuple(catalog)
    every = [place for one in catalog if one.type == SERVICE for place in one.endpoints]
    places = [place for place in every if place.url]
    if not places:
        known = _names((one.type for one in catalog), secrets) or "nothing"
        raise KeystoneRefuses(f"its catalogue has no {SERVICE}, but {known}", answer)
    interface, region = keystone.interface or "public", keystone.region_name
    here = [one for one in places if not region or one.name == region]
    if not here:
        known = _names((one.name for one in places), secrets)
        what = f"its catalogue has no {SERVICE} in the region {region!r}, but in {known}"
        raise KeystoneRefuses(what, answer)
    fit = [one for one in here if one.interface == interface]
    if not fit:
        known = _names((one.interface for one in here), secrets)
        what = f"its catalogue has no {interface} URL of the {SERVICE}, but {known}"
        raise KeystoneRefuses(what, answer)
    if len({one.name for one in fit}) > 1:
        known = _names((one.name for one in fit), secrets)
        what = f"its catalogue has an {SERVICE} in several regions, {known}: set "
        what += "`region_name`, or $OS_REGION_NAME"
        raise KeystoneRefuses(what, answer)
    try:
        return storage_url_of(fit[0].url)
    except ValueError as error:
        what = f"the storage URL of its catalogue cannot be used: {redacted(str(error), secrets)}"
        raise KeystoneRefuses(what, answer) from None


def _names(names: Iterable[str], secrets: Sequence[str]) -> str:
    """Some names of an answer, each once; empty without any. It may repeat what it was sent."""
    found = list(dict.fromkeys(redacted(one, secrets) for one in names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(f"{one[:64]!r}" for one in found[:_SHOWN]) + more


PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assume-role": "role_arn",
        "assume-role-with-web-identity": "web_identity_token_file",
        "custom-process": "credential_process",
    }
)
"""botocore's names of what gives temporary keys, and what a profile asks for each by, in order."""


GIVEN_WITHIN_S: Final = 30.0
"""How long a `credential_process`, or asking for a role, may take; a driver that is silent for 60 s
is given up.
"""
MOST_MEMORY_BYTES: Final = 2**28
"""What asking for keys may need: botocore reads any answer to its end."""
_MAIN: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from weighbridge.common.credential import main; main()"
)
"""Not `-m` with $PYTHONPATH, which a `credential_process` would inherit."""
ASK_S: Final = 20.0
"""How long a token service may be silent; botocore itself would wait 60 s, five times."""
RETRY_S: Final = 30.0
"""After a renewal that failed, the longest time until the next."""


class KeySource(Record):
    """An AWS profile that gives temporary keys; no secret."""

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
            frozen.access_key,
            frozen.secret_key,
            frozen.token or "",
            None if end_at is None else end_at.astimezone(UTC),
        )

    @property
    def left_s(self) -> float | None:
        """Seconds until they end; None: that is not known, or never."""
        return None if self.end_at is None else (self.end_at - datetime.now(UTC)).total_seconds()


class KeysUnavailable(Exception):
    """A profile gave no keys, in words without a secret."""


def aws_session(source: KeySource) -> Any:
    """A profile's files, as the AWS tools read them."""
    from botocore.session import Session  # noqa: PLC0415 - a quarter of a second of imports

    session: Any = Session(profile=source.profile)
    session.set_config_variable("config_file", str(Path(source.config_file).expanduser()))
    session.set_config_variable("credentials_file", str(Path(source.credentials_file).expanduser()))
    return session


def plain_session() -> Any:
    """A session of botocore that reads no variable and no file: what is asked is what was given."""
    from botocore import configprovider, session  # noqa: PLC0415 - as above

    plain: Any = session.Session()
    known: Any = configprovider.BOTOCORE_DEFAUT_SESSION_VARIABLES
    usual = {name: None if name.endswith("_file") else one[2] for name, one in known.items()}
    store = {name: configprovider.ConstantProvider(value) for name, value in usual.items()}
    plain.register_component("config_store", configprovider.ConfigValueStore(store))
    return plain


def profile_of(session: Any, name: str) -> Mapping[str, Any]:
    """What both of its files say of a profile. Raises BotoCoreError."""
    profile: Mapping[str, Any] = session.full_config.get("profiles", {}).get(name, {})
    return profile


def export_words(profile: str) -> str:
    """What to do where this suite cannot get a profile's keys by itself."""
    name = shlex.quote(profile)
    return f"export its keys, `aws configure export-credentials --format env --profile {name}`"


def load(source: KeySource, known: Sequence[str] = ()) -> Keys:
    """Temporary keys of a profile, new ones each time. `known` are secrets that it gave before.

    `main` asks for them, in a process group of its own that is killed afterwards: what a profile
    names may be silent, have no end, or leave programs behind. Raises KeysUnavailable.
    """
    # Its environment is this one's: a `credential_process` may need anything.
    argv = [sys.executable, "-I", "-B", "-c", _MAIN, *filter(None, sys.path)]
    pipe, log = subprocess.PIPE, subprocess.DEVNULL
    order = json.dumps({"source": source.model_dump(), "within_s": GIVEN_WITHIN_S})
    answer: dict[str, Any] = {"fault": "the program that asks for them ended without an answer"}
    with (
        contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired),
        subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=log, start_new_session=True) as run,
    ):
        try:
            answer = json.loads(run.communicate(order.encode(), GIVEN_WITHIN_S + 10)[0])
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(run.pid, signal.SIGKILL)
    if fault := answer.get("fault"):
        # What a program writes to stderr helps whoever wrote it; it may have the keys before.
        words = redacted(fault, known)[:500].strip()
        raise KeysUnavailable(f"profile {source.profile!r} gives no keys: {words}")
    access, secret, token, end_at = answer["keys"]
    return Keys(access, secret, token, datetime.fromisoformat(end_at) if end_at else None)


def main() -> None:
    """As a program: read `{"source": ..., "within_s": n}` from stdin, print `{"keys": [...]}` or
    `{"fault": why}`.
    """
    order = json.load(sys.stdin)
    source, within_s = KeySource.model_validate(order["source"]), float(order["within_s"])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, limits[1]))
    # Before botocore takes it for a default: a `credential_process` may reserve much more memory.
    unlimited = functools.partial(resource.setrlimit, resource.RLIMIT_AS, limits)
    subprocess.Popen = functools.partial(subprocess.Popen, preexec_fn=unlimited)  # type: ignore[misc,assignment]
    # At the deadline a KeyboardInterrupt, which no library's `except Exception` keeps.
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, within_s)
    asked = ["it"]
    answer: dict[str, object] = {}
    try:
        answer["keys"] = _given(source, asked)
    except KeyboardInterrupt:
        answer["fault"] = f"{asked[-1]} gave no complete answer within {within_s:g} s"
    except Exception as error:  # noqa: BLE001 - what is given may break any parser
        unlimited()  # its frames hold what has been read
        answer["fault"] = _fault_of(error, asked[-1])[: 2**16]
    sys.stdout.write(json.dumps(answer))


def _given(source: KeySource, asked: list[str]) -> tuple[str, str, str, str]:
    """Access key, secret key, token and end of a profile's keys; `asked` gets whom it asks."""
    from botocore.config import Config  # noqa: PLC0415 - as above
    from botocore.credentials import create_credential_resolver  # noqa: PLC0415

    def asks(request: Any, **_: object) -> None:
        asked.append(str(request.url).partition("?")[0])

    def refuses(*_: object) -> str:
        raise RuntimeError(
            f"it has mfa_serial, and nobody is asked for a code: {export_words(source.profile)}"
        )

    session = aws_session(source)
    session.register("before-send", asks)
    session.set_default_client_config(
        Config(connect_timeout=ASK_S, read_timeout=ASK_S, retries={"total_max_attempts": 1})
    )
    profile, found = profile_of(session, source.profile), None
    for method, key in PROVIDERS.items():
        if found is None and key in profile:
            asked.append(f"its {key}")
            if key == "web_identity_token_file":
                safe_files.read_given(Path(profile[key]), largest_bytes=2**20)
            provider = create_credential_resolver(session).get_provider(method)
            provider._prompter = refuses  # noqa: SLF001 - that of a role would ask a terminal
            found = provider.load()
    if found is None:
        raise RuntimeError(f"{source.config_file} has none that gives temporary keys")
    keys = Keys.of(found)
    texts = (keys.access, keys.secret, keys.token)
    if not all(isinstance(one, str) for one in texts) or not (keys.access and keys.secret):
        raise RuntimeError(f"{asked[-1]} gave no AccessKeyId, or no SecretAccessKey")
    return *texts, "" if keys.end_at is None else keys.end_at.isoformat()


def _fault_of(error: Exception, asked: str) -> str:
    """Why there are no keys: of what was given, and of what it could not be read as, nothing is
    repeated, but what a program or a token service says of an error.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - as above

    if isinstance(error, MemoryError) or isinstance(error.__context__, MemoryError):
        return (
            f"{asked} gave an answer without an end, or of more than {MOST_MEMORY_BYTES >> 20} MiB"
        )
    if isinstance(error, OSError):
        return f"{error.filename or asked}: {error.strerror or error}"
    words = isinstance(error, (BotoCoreError, ClientError, RuntimeError))
    if words and not isinstance(error, RecursionError):
        return str(error)
    return (
        f"{asked} gave what cannot be read as keys (a program: JSON with Version 1, AccessKeyId, "
        "SecretAccessKey and, if they end, Expiration)"
    )


class RenewedKeys:
    """The keys of a source, got again when most of their life is over."""

    def __init__(self, source: KeySource, keys: Keys) -> None:
        self._source = source
        self._take(keys)

    def _take(self, keys: Keys) -> None:
        left_s = math.inf if keys.left_s is None else keys.left_s
        self._keys, self._renew_s = keys, time.monotonic() + RENEW_AT * left_s

    def now(self) -> Keys:
        """New keys, or the old ones until their end if there are none. Raises KeysUnavailable."""
        if time.monotonic() >= self._renew_s:
            try:
                self._take(load(self._source, (self._keys.secret, self._keys.token)))
            except KeysUnavailable:
                left_s = self._keys.left_s or 0.0
                if left_s <= 0:
                    raise
                self._renew_s = time.monotonic() + min(RETRY_S, left_s / 2)
        return self._keys
