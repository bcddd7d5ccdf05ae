from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import Final, TypeVar

UNKNOWN = "–"
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?")


def show_figure(value: float | None, digits: int = 3) -> str:
    """`0.412`, `20.1`, `1,450`: significant digits, never an exponent; UNKNOWN for None."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    # 99.96 rounds to 100.0, which would have one digit too many.
    decimals -= abs(round(value, decimals)) >= 10 ** (digits - decimals)
    return f"{value:,.{max(0, decimals)}f}"


def show_value(value: object) -> str:
    """A cell of any kind as people read it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return show_figure(value) if isinstance(value, float) else str(value)


def show_ms(value: float | None) -> str:
    """Milliseconds, without the unit."""
    return show_figure(value)


def show_ratio(value: float) -> str:
    """A factor: two significant digits and the sign (1.8, 2.0, 12), three near 1 (1.04)."""
    if value < 1.095:
        return f"{value:.2f}×"
    return f"{value:.1f}×" if value < 9.95 else f"{value:,.0f}×"


def show_p(value: float | None) -> str:
    """A p-value to two significant digits, never 0."""
    if value is None:
        return UNKNOWN
    return "< 0.0001" if value < 0.0001 else show_figure(value, 2)


def show_share(share: float) -> str:
    """`97 %`."""
    return f"{share * 100:.0f} %"


def counted(number: int, noun: str) -> str:
    """`1 worker`, `4 workers`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def all_of(number: int, noun: str) -> str:
    """`both layouts`, `all 3 layouts`; of several."""
    return f"both {noun}" if number == 2 else f"all {number} {noun}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def upper(text: str) -> str:
    """The text with its first letter capitalized."""
    return f"{text[:1].upper()}{text[1:]}"


def without_numbers(text: str) -> str:
    """The text with a mark for each number: equal for texts that differ in their numbers alone."""
    return _NUMBER.sub("\0", text)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by what `key` says of each, in the order in which that first occurs."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def alike_as_one(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts, each once; those that differ in their numbers alone are one."""
    return tuple(map(ranged, grouped(texts, without_numbers).values()))


def ranged(texts: Sequence[str]) -> str:
    """One text for texts that differ in numbers alone, with each range, or the largest limit."""
    found = [
        sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
        for numbers in zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    ]
    words = without_numbers(texts[0]).split("\0")
    numbers = [
        each[-1] if len(each) == 1 or before.endswith("up to ") else f"{each[0]} to {each[-1]}"
        for before, each in zip(words, found, strict=False)
    ]
    parts = zip_longest(words, numbers, fillvalue="")
    return "".join(part for pair in parts for part in pair)


# Ratios as changes in per cent.


TIMES: Final = 3.0
"""From this ratio on a change is given as a factor, since `+870 %` is easily misread."""


def percent(ratio: float) -> float:
    """A ratio as a change in per cent: 1.34 is 34, 0.5 is -50."""
    return (ratio - 1) * 100


def show_percent(ratio: float, *, signed: bool = True) -> str:
    """`+34 %`, `+0.4 %` below one per cent, and a factor (3.2 and the sign) from TIMES on."""
    if ratio >= TIMES:
        return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:,.0f}×"
    change = percent(ratio)
    if abs(change) < 0.05:
        return "0 %"
    # Almost nothing is not nothing: a change that would round to -100 % gets more digits.
    digits = 0 if abs(change) >= 0.95 and change > -99.5 else 1 if change > -99.95 else 3
    words = f"{change:+.{digits}f} %" if signed else f"{change:.{digits}f} %"
    return words.replace("-", "\N{MINUS SIGN}")
