"""COSBench's selectors: which numbers are picked, and in what order: c(n), u(a,b), r(a,b), s(a,b),
h(low|high|weight,...).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from weighbridge.suites.workload import SizeBar, SizeHistogram, Uniform

Size = int | Uniform | SizeHistogram
"""As a workload has it."""

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
"""COSBench's units are powers of 1000; it has no others."""

LARGEST = 2**31 - 1
"""Its numbers are Java's int."""

_SPAN = re.compile(r"\s*([cursh])\(([^()]*)\)\s*")
_SIZES = re.compile(r"\s*([cursh]\([^()]*\))\s*([A-Za-z]*)\s*")


@dataclass(frozen=True)
class Span:
    """Numbers from `first` to `last`, picked at random (`uniform`), one after the other by each
    worker by itself (`range`) or by all together (`sequential`), or always the same one
    (`constant`).
    """

    order: Literal["constant", "uniform", "range", "sequential"]
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.last - self.first + 1

    def covers(self, other: Span) -> bool:
        """Whether every number of the other is one of these."""
        return self.first <= other.first and other.last <= self.last


def span(text: str) -> Span:
    """What a selector of containers or objects picks.

    Raises ValueError with words about what is wrong.
    """
    letter, numbers = _taken_apart(text)
    if letter == "h":
        raise ValueError(
            f"{text} picks some more often than others by steps: a suite has only uniform, "
            "sequential and zipf"
        )
    if letter == "c":
        return Span("constant", numbers[0], numbers[0])
    if len(numbers) == 1:
        raise ValueError(f"{text} has no end: a suite has a known number of objects")
    order: dict[str, Literal["uniform", "range", "sequential"]] = {
        "u": "uniform",
        "r": "range",
        "s": "sequential",
    }
    return Span(order[letter], numbers[0], numbers[1])


def sizes(text: str) -> tuple[Size, str]:
    """The sizes that a selector with a unit gives, and what is to be said of how they are drawn
    here (or nothing).

    Raises ValueError with words about what is wrong.
    """
    match = _SIZES.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no selector of sizes such as c(64)KB")
    unit = UNITS.get(match[2].upper())
    if unit is None:
        raise ValueError(
            f"{text!r}: {match[2]!r} is no unit of COSBench (known: {', '.join(UNITS)})"
        )
    letter, numbers = _taken_apart(match[1])
    if letter == "h":
        bars = [
            SizeBar(size=(low * unit, high * unit) if low != high else low * unit, weight=weight)
            for low, high, weight in _bars(text)
        ]
        return (
            SizeHistogram(histogram=tuple(bars)),
            (
                "weights are taken as they are written: COSBench gives the first bar one more and the "
                "last one less"
            ),
        )
    if letter == "c" or numbers[0] == numbers[-1]:
        return numbers[0] * unit, ""
    if len(numbers) == 1:
        raise ValueError(f"{text!r} has no largest size")
    drawn = Uniform(uniform=(numbers[0] * unit, numbers[1] * unit))
    if letter == "u":
        return (
            drawn,
            ""
            if unit == 1
            else f"any number of bytes between the two here, whole {match[2]} in COSBench",
        )
    return drawn, "sizes follow one another in COSBench; here they are drawn, each as often"


def _taken_apart(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no selector such as c(1), u(1,100), r(1,100) or s(1,100)")
    if match[1] == "h":
        return "h", ()
    words = [word.strip() for word in match[2].split(",")]
    if not 1 <= len(words) <= (1 if match[1] == "c" else 2) or not all(
        re.fullmatch(r"[0-9]{1,10}", word) for word in words
    ):
        raise ValueError(
            f"{text!r}: {'one number is' if match[1] == 'c' else 'two numbers are'} wanted in the "
            "parentheses"
        )
    numbers = tuple(int(word) for word in words)
    if max(numbers) > LARGEST:
        raise ValueError(f"{text!r}: beyond {LARGEST}, the largest number that COSBench has")
    if match[1] != "c" and min(numbers) < 1:
        raise ValueError(f"{text!r}: COSBench counts from 1")
    if numbers[0] > numbers[-1]:
        raise ValueError(f"{text!r}: begins after its end")
    return match[1], numbers


def _bars(text: str) -> list[tuple[int, int, int]]:
    bars = []
    for bar in text[text.index("(") + 1 : text.index(")")].split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})\|([0-9]{0,10})\|([0-9]{1,10})\s*", bar)
        if match is None:
            raise ValueError(
                f"{text!r}: {bar.strip()!r} is no bar such as 1|64|10 (smallest, largest, weight)"
            )
        if not match[2]:
            raise ValueError(f"{text!r}: {bar.strip()!r} has no largest size")
        low, high, weight = int(match[1]), int(match[2]), int(match[3])
        if low < 1 or low > high or weight < 1:
            raise ValueError(
                f"{text!r}: {bar.strip()!r}: sizes from 1 up, the smallest first, and a weight "
                "above 0 are wanted"
            )
        bars.append((low, high, weight))
    return bars
