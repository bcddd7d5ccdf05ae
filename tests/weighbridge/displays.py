"""For tests: displays of a run."""

from __future__ import annotations

from weighbridge.drivers.protocol import Progress
from weighbridge.results.record.step import StepKey, StepResult


class Silent:
    """Shows nothing."""

    def say(self, text: str) -> None: ...

    def begins(self, key: StepKey, number: int) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def ended(self, result: StepResult) -> None: ...


class Seen:
    """Remembers its calls: texts in `said`, results in `results`."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.results: list[StepResult] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begins(self, key: StepKey, number: int) -> None:
        self.said.append(f"begins {number}")

    def progress(self, progress: Progress) -> None:
        self.said.append(progress.phase)

    def ended(self, result: StepResult) -> None:
        self.said.append("ended")
        self.results.append(result)
