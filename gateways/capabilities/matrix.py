"""The answers of several layouts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.gateways.capabilities.capability import Answer, Capability, Outcome

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
