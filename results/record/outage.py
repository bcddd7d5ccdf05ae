"""Outages: lines of `degrade.jsonl`, one for each step in which something died while load ran.

The step itself is a line of `steps.jsonl`, with its series. Times are seconds since the start of
its window.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from weighbridge.common.record import Record
from weighbridge.results.record.reading import read_lines
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.writing import append_line
from weighbridge.suites import FaultWay

FILE: Final = "degrade.jsonl"
MOST_SEEN: Final = 500

Moment = Annotated[float, Field(ge=-1e5, le=1e7)]
Words = Annotated[str, Field(max_length=1000)]


class Change(Record):
    """Something that was done to a deployment: when it began and when it was done."""

    begun_s: Moment
    done_s: Moment

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.done_s < self.begun_s:
            raise ValueError(f"done at {self.done_s:g} s, before it began at {self.begun_s:g} s")
        return self


class Seen(Record):
    """What a store said of itself from this time on."""

    at_s: Moment
    whole: bool
    words: Words


class Outage(Record):
    """What died in a step and came back, when, and what the store said of it."""

    key: StepKey
    way: FaultWay
    host: Annotated[str, Field(min_length=1, max_length=100)]
    services: tuple[Annotated[str, Field(max_length=100)], ...]
    """Those that died; empty where only a link was down, or a disk failed."""
    disk: Annotated[str, Field(max_length=100)] = ""
    """The disk that failed: `wb0`."""
    fault: Change
    back: Change | None = None
    """None: not within the window."""
    seen: Annotated[tuple[Seen, ...], Field(max_length=MOST_SEEN)] = ()
    """Each change of what the store said; empty: it says nothing of itself as a whole."""
    settings: dict[str, Words] = Field(default_factory=dict)
    """What decides how the layout meets it."""

    @property
    def words(self) -> str:
        """`osd.2 on store-3 killed`."""
        if self.way == "fail":
            return f"disk {self.disk} of {self.host} failed"
        if self.way != "kill":
            return f"{self.host} {'silent' if self.way == 'silence' else 'unplugged'}"
        return f"{', '.join(self.services)} on {self.host} killed"

    @property
    def noticed_s(self) -> float | None:
        """Seconds from the fault until the store said something else; None: it did not."""
        until_s = self.back.begun_s if self.back is not None else float("inf")
        before = [one.words for one in self.seen if one.at_s <= self.fault.begun_s]
        for one in self.seen:
            if self.fault.begun_s < one.at_s < until_s and before and one.words != before[-1]:
                return one.at_s - self.fault.begun_s
        return None

    @property
    def clean_s(self) -> float | None:
        """Seconds from the return until it had all parts and copies again; None: not seen."""
        if self.back is None:
            return None
        after = [one for one in self.seen if one.at_s > self.back.begun_s]
        if not after or not after[-1].whole:
            return None
        first = next(
            one for number, one in enumerate(after) if all(later.whole for later in after[number:])
        )
        return first.at_s - self.back.begun_s


def record_outage(folder: Path, outage: Outage) -> None:
    """Append a line to a run folder. Raises StoreError."""
    append_line(folder / FILE, outage.model_dump_json())


def read_outages(folder: Path) -> dict[StepKey, Outage]:
    """The last outage of each step. Raises InvalidMeasurement with file:line."""
    lines = read_lines(folder / FILE, Outage.model_validate_json)
    return {outage.key: outage for outage in lines}
