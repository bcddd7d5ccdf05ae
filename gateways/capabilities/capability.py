"""A capability: one thing that clients ask of an object store today, and what a store answered.

A capability is a function with a decorator in one of the modules that `asking` names:

    @capability("s3", "objects", "DELETE", "DELETE of an object, then GET")
    def delete(store: Session) -> None:
        ...

One with `both` is asked over either API, and those that differ in a word are made of the rows of a
table. A probe returns only after it has read back and compared, and may return a text that is shown
beside; it raises Refused, Wrong or Unknown otherwise. Any other exception of it is `unknown`, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from weighbridge.common.csv_text import csv_lines
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


class NotWorking(Exception):
    """An outcome other than `works`; `text` may hold what a store sent."""

    outcome: Outcome

    def __init__(self, text: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.code = code


class Refused(NotWorking):
    """An error status, and nothing changed."""

    outcome = "refused"


class Wrong(NotWorking):
    """The store said that it did something, and reading back shows otherwise. Without a status of
    its own it has that of the answer that decides (`Session.status`).
    """

    outcome = "wrong"


class Unknown(NotWorking):
    """Whether it works was not found out."""

    outcome = "unknown"


Probe = Callable[[Any], str | None]
"""It is given a `Session` of its API."""


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


def both(
    group: str, title: str, asks: str, *, key: str = ""
) -> Callable[[Probe], tuple[Capability, ...]]:
    """Make a capability of either API of a function that asks both alike."""

    def declared(probe: Probe) -> tuple[Capability, ...]:
        apis: tuple[ObjectApi, ...] = ("s3", "swift")
        return tuple(capability(api, group, title, asks, key=key)(probe) for api in apis)

    return declared


# The answers of several layouts side by side.
MARKS: Final[dict[Outcome, str]] = {"works": "P", "refused": "–", "wrong": "!", "unknown": "?"}
NOT_SERVED: Final = "·"
LEGEND: Final = (
    "P works (read back and compared)   – refused (status)   ! wrong though accepted   ? unknown   "
    "· the API is not served"
)
COLUMNS: Final = (
    *("layout", "release", "capability", "api", "group", "title"),
    *("outcome", "status", "code", "text"),
)


class LayoutAnswers(Record):
    """What one layout answered."""

    layout: str
    release: str
    facts: dict[str, str] = Field(default_factory=dict)
    """Facts about the deployment in words: versions, hosts, settings."""
    answers: dict[str, Answer]
    """By the capabilities' keys; those of an API that is not served are absent."""
    died: str = ""
    """Why not all could be asked: what ended, with its last words; empty: all were asked."""
    left: tuple[str, ...] = ()
    """What could not be deleted."""

    @property
    def summary(self) -> str:
        """How many answers have each outcome."""
        outcomes = [answer.outcome for answer in self.answers.values()]
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in MARKS)


class CapabilityMatrix(Record):
    """`capabilities.json`."""

    asked_at: str
    """UTC, ISO 8601."""
    hardware: str
    weighbridge_version: str
    layouts: tuple[LayoutAnswers, ...]


def cell(answer: Answer | None) -> str:
    """An answer as a cell of the table."""
    if answer is None:
        return NOT_SERVED
    mark = MARKS[answer.outcome]
    return f"{mark} {answer.status}" if answer.outcome == "refused" and answer.status else mark


def footnotes(matrix: CapabilityMatrix, capabilities: Sequence[Capability]) -> tuple[str, ...]:
    """A sentence for each answer that is wrong or unknown; the same of several layouts once."""
    found: dict[tuple[str, str], list[str]] = {}
    for capability in capabilities:
        for one in matrix.layouts:
            answer = one.answers.get(capability.key)
            if answer is not None and answer.outcome in ("wrong", "unknown"):
                said = f"{MARKS[answer.outcome]} {capability.key}"
                found.setdefault((said, answer.why), []).append(one.layout)
    return tuple(f"{said}: {', '.join(names)}: {why}" for (said, why), names in found.items())


def matrix_csv(matrix: CapabilityMatrix, capabilities: Sequence[Capability]) -> str:
    """A line for each layout and capability that was asked."""
    lines: list[tuple[object, ...]] = []
    for one in matrix.layouts:
        for asked in capabilities:
            answer = one.answers.get(asked.key)
            if answer is not None:
                about = (asked.key, asked.api, asked.group, asked.title)
                said = (answer.outcome, answer.status, answer.code, answer.text)
                lines.append((one.layout, one.release, *about, *said))
    return csv_lines(COLUMNS, lines)
