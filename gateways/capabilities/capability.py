"""A capability: one thing that clients ask of an object store today, and what a store answered.

A capability is a function with a decorator in one of the modules of `registry.MODULES`:

    @capability("s3", "objects", "DELETE", "DELETE of an object, then GET")
    def delete(store: S3Session) -> Answer:
        ...

One with `both` is asked over either API, and those that differ in a word are made of the rows of a
table. A probe returns `works(...)` only after it has read back and compared; it raises Refused,
Wrong or Unknown otherwise. Any other exception of it is `unknown`, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.escaping import escape_controls
from weighbridge.common.record import Record

Outcome = Literal["works", "refused", "wrong", "unknown"]
"""`works`: read back and compared. `refused`: an error status, and nothing changed. `wrong`: it
was accepted, or denied for a reason, and reading back shows otherwise. `unknown`: no answer, a
failure of the server (5xx but 501 and 505), or an answer that cannot be read.
"""

LONGEST_TEXT: Final = 200
LONGEST_CODE: Final = 60
_READ: Final = 2000
"""Characters of a store's text that are looked at."""


def _one_line(longest: int) -> BeforeValidator:
    def shown(value: object) -> object:
        if not isinstance(value, str):
            return value
        text = " ".join(escape_controls(value[:_READ]).split())
        return text if len(text) <= longest else f"{text[: longest - 1]}…"

    return BeforeValidator(shown)


class Answer(Record):
    """What a store answered to one capability; its text is one harmless line."""

    outcome: Outcome
    status: Annotated[int, Field(ge=100, le=999)] | None = None
    """HTTP status of the answer that decided; None: there was none."""
    code: Annotated[str, _one_line(LONGEST_CODE)] = ""
    """The error code, such as NotImplemented."""
    text: Annotated[str, _one_line(LONGEST_TEXT)] = ""

    @property
    def why(self) -> str:
        """Status, code and text in one line."""
        status = "" if self.status is None else str(self.status)
        return ": ".join(filter(None, (" ".join(filter(None, (status, self.code))), self.text)))


def works(text: str = "", *, status: int | None = None) -> Answer:
    """It was read back and compared."""
    return Answer(outcome="works", status=status, text=text)


class _Outcome(Exception):
    """An outcome other than `works`; `text` may hold what a store sent."""

    outcome: Outcome

    def __init__(self, text: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.code = code


class Refused(_Outcome):
    """An error status, and nothing changed."""

    outcome = "refused"


class Wrong(_Outcome):
    """The store said that it did something, and reading back shows otherwise."""

    outcome = "wrong"


class Unknown(_Outcome):
    """Whether it works was not found out."""

    outcome = "unknown"


Probe = Callable[[Any], Answer]
"""It is given a session of its API (`S3Session`, `SwiftSession`)."""
BOTH: Final[tuple[ObjectApi, ...]] = ("s3", "swift")


@dataclass(frozen=True)
class Capability:
    """One thing to ask."""

    key: str
    api: ObjectApi
    group: str
    title: str
    asks: str
    """The requests, in words."""
    probe: Probe
    dangerous: bool = False
    """Known to end some gateways: asked last, and not of a gateway that already ran."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9-]+", self.key):
            raise ValueError(f"{self.key!r} is not a valid key of a capability")


def capability(
    api: ObjectApi, group: str, title: str, asks: str, *, key: str = "", dangerous: bool = False
) -> Callable[[Probe], Capability]:
    """Make a capability of a function; its key is the API and `key` or the function's name."""

    def declared(probe: Probe) -> Capability:
        name = key or probe.__name__.strip("_").replace("_", "-").removeprefix(f"{api}-")
        return Capability(f"{api}-{name}", api, group, title, asks, probe, dangerous)

    return declared


def both(group: str, title: str, asks: str) -> Callable[[Probe], tuple[Capability, ...]]:
    """Make a capability of either API of a function that asks both alike."""

    def declared(probe: Probe) -> tuple[Capability, ...]:
        return tuple(capability(api, group, title, asks)(probe) for api in BOTH)

    return declared
