"""Tokens of Keystone, OpenStack's identity service (its API v3), and the storage URL that its
catalogue has for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from weighbridge.common.credential import redacted
from weighbridge.common.plain_url import parts_of
from weighbridge.common.record import Record

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
        """Whether an application credential is used."""
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
    """An HTTP answer with its complete body."""

    @property
    def status(self) -> int:
        """Its status."""

    @property
    def headers(self) -> Any:
        """Its header fields, by names in lower case."""

    @property
    def body(self) -> bytes:
        """Its body."""


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
    url: str
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
    """Ask Keystone for a token; `path` is that of its URL, such as `/v3`.

    Raises KeystoneRefuses, and what `send` raises.
    """
    path = f"{path.rstrip('/')}/auth/tokens"
    answer = _ask(keystone, secret, _scope(keystone), path, send)
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


def _scope(keystone: Keystone) -> object:
    if keystone.by_application:
        return None
    return {"project": _named(keystone, "project", keystone.project_name)}


def _named(keystone: Keystone, kind: str, name: str) -> dict[str, object]:
    """A user or project by its ID, or by its name and domain."""
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
    places = [place for one in catalog if one.type == SERVICE for place in one.endpoints]
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
        what = f"its catalogue has an {SERVICE} in several regions, {known}: set `region_name`"
        raise KeystoneRefuses(what, answer)
    try:
        parts_of(fit[0].url)
    except ValueError as error:
        what = f"the storage URL of its catalogue cannot be used: {redacted(str(error), secrets)}"
        raise KeystoneRefuses(what, answer) from None
    return fit[0].url.rstrip("/")


def _names(names: Iterable[str], secrets: Sequence[str]) -> str:
    """Some names of an answer, each once; empty without any. It may repeat what it was sent."""
    found = list(dict.fromkeys(redacted(one, secrets) for one in names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(f"{one[:64]!r}" for one in found[:_SHOWN]) + more
