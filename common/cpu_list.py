"""Lists of CPUs as the kernel writes them: `2-3,5` (cpuset(7), "List format")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Final

from pydantic import BeforeValidator

LAST_CPU: Final = 8191
"""The kernel's most CPUs (CONFIG_NR_CPUS on x86-64) are 8192."""
_RANGE: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", re.ASCII)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """The CPUs of a list, each once and in order. Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{text[:100]!r} is not a list of CPUs such as 2-3,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > LAST_CPU:
            raise ValueError(f"{part.strip()!r} is not a range of CPUs, from 0 to {LAST_CPU}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def show_cpus(cpus: Iterable[int]) -> str:
    """The shortest list of these CPUs."""
    parts = []
    for _, run in groupby(enumerate(sorted(set(cpus))), key=lambda one: one[1] - one[0]):
        numbers = [number for _, number in run]
        parts.append(f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else str(numbers[0]))
    return ",".join(parts)


def _shortest(value: object) -> object:
    """A list in its shortest form, or one number, as YAML reads `0`. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return show_cpus(cpu_numbers(value)) if isinstance(value, str) else value


CpuList = Annotated[str, BeforeValidator(_shortest)]
"""A list of CPUs in its shortest form."""
