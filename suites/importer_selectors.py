"""COSBench's selectors of numbers: c(n), u(a,b), r(a,b), s(a,b), h(low|high|weight,...)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from weighbridge.suites.workload import SizeBar, SizeHistogram, Uniform

Size = int | Uniform | SizeHistogram
"""As a workload has it."""

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
"""COSBench's only units, powers of 1000."""

LARGEST = 2**31 - 1
"""COSBench's numbers are Java's int."""

_SPAN = re.compile(r"\s*([cursh])\(([^()]*)\)\s*")
_SIZES = re.compile(r"\s*([cursh]\([^()]*\))\s*([A-Za-z]*)\s*")


@dataclass(frozen=True)
class Span:
    """Numbers from `first` to `last`, and the order in which they are picked.

    At random (`uniform`), in sequence by each worker separately (`range`) or by all together
    (`sequential`), or always the same one (`constant`).
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
    """What a selector of containers or objects picks. Raises ValueError with the reason."""
    letter, numbers = _parsed(text)
    if letter == "h":
        raise ValueError(
            f"{text} picks by a weighted histogram: a suite has only uniform, sequential and zipf"
        )
    if letter == "c":
        return Span("constant", numbers[0], numbers[0])
    if len(numbers) == 1:
        raise ValueError(f"{text} has no end: a suite needs a known number of objects")
    order: dict[str, Literal["uniform", "range", "sequential"]] = {
        "u": "uniform",
        "r": "range",
        "s": "sequential",
    }
    return Span(order[letter], numbers[0], numbers[1])


def sizes(text: str) -> tuple[Size, str]:
    """The sizes of a selector with a unit, and a note on how they are drawn here (or "").

    Raises ValueError with the reason.
    """
    match = _SIZES.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a selector of sizes such as c(64)KB")
    unit = UNITS.get(match[2].upper())
    if unit is None:
        known = ", ".join(UNITS)
        raise ValueError(f"{text!r}: {match[2]!r} is not a unit of COSBench (known: {known})")
    letter, numbers = _parsed(match[1])
    if letter == "h":
        bars = [
            SizeBar(size=(low * unit, high * unit) if low != high else low * unit, weight=weight)
            for low, high, weight in _bars(text)
        ]
        note = "weights are exact here: COSBench gives the first bar one more and the last one less"
        return SizeHistogram(histogram=tuple(bars)), note
    if letter == "c" or numbers[0] == numbers[-1]:
        return numbers[0] * unit, ""
    if len(numbers) == 1:
        raise ValueError(f"{text!r} has no largest size")
    drawn = Uniform(uniform=(numbers[0] * unit, numbers[1] * unit))
    if letter == "u":
        note = f"drawn in bytes here, in multiples of 1 {match[2]} in COSBench"
        return drawn, "" if unit == 1 else note
    return drawn, "sizes come in sequence in COSBench; here they are drawn uniformly"


def _parsed(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a selector such as c(1), u(1,100), r(1,100), s(1,100)")
    if match[1] == "h":
        return "h", ()
    words = [word.strip() for word in match[2].split(",")]
    most = 1 if match[1] == "c" else 2
    if len(words) > most or not all(re.fullmatch(r"[0-9]{1,10}", word) for word in words):
        count = "one number" if most == 1 else "two numbers"
        raise ValueError(f"{text!r}: expected {count} in the parentheses")
    numbers = tuple(int(word) for word in words)
    if max(numbers) > LARGEST:
        raise ValueError(f"{text!r}: beyond {LARGEST}, COSBench's largest number")
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
                f"{text!r}: {bar.strip()!r} is not a bar such as 1|64|10 "
                "(smallest, largest, weight)"
            )
        if not match[2]:
            raise ValueError(f"{text!r}: {bar.strip()!r} has no largest size")
        low, high, weight = int(match[1]), int(match[2]), int(match[3])
        if low < 1 or low > high or weight < 1:
            raise ValueError(
                f"{text!r}: {bar.strip()!r}: needs sizes of at least 1, the smallest first, and a "
                "weight above 0"
            )
        bars.append((low, high, weight))
    return bars
