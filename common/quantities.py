"""Quantities as people write them (`1MB`, `64MiB`, `20s`, `10Gbit`); in code, numbers in base
units.

Sizes: B, kB/KB/k, MB/M, GB/G, TB/T are powers of 1000; KiB, MiB, GiB, TiB are powers of 1024 (IEC
80000-13). Times: us, ms, s, m, h, as `1h5m`, and as they are printed, `9:23` and `1:07:05`. Network
rates: bit, kbit, Mbit, Gbit (powers of 1000) per second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, ValidationInfo

from weighbridge.common.errors import InvalidMeasurement

_BYTES = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SECONDS = {"us": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BITS_PER_S = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")
_CLOCK = re.compile(r"(?:([0-9]{1,6}):(?=[0-5][0-9]:))?([0-9]{1,6}):([0-5][0-9])")
_HOURS_MINUTES_SECONDS = re.compile(
    r"(?:([0-9]{1,6})\s*h)?\s*(?:([0-9]{1,6})\s*m)?\s*(?:([0-9]{1,6}(?:\.[0-9]+)?)\s*s)?",
    re.IGNORECASE,
)


def _scale(text: str, units: dict[str, int] | dict[str, float], example: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2].lower() not in units:
        known = ", ".join(unit for unit in units if unit)
        raise ValueError(f"{text[:100]!r} is not a quantity such as {example} (units: {known})")
    scaled = float(match[1]) * units[match[2].lower()]
    if scaled == math.inf:
        raise ValueError(f"{text[:40]!r} is larger than any quantity")
    return scaled


def parse_bytes(value: object) -> object:
    """Bytes of `4KiB`, `1MB` or a whole number. Raises ValueError on any other text."""
    if not isinstance(value, str):
        return value
    scaled = _scale(value, _BYTES, "4KiB or 1MB")
    if scaled != int(scaled):
        raise ValueError(f"{value[:100]!r} is not a whole number of bytes")
    return int(scaled)


def parse_seconds(value: object) -> object:
    """Seconds of `20s`, `15m`, `500ms`, `200us`, `9m30s` or `9:30`; a bare number, of unknown unit,
    is refused.
    """
    if isinstance(value, str):
        text = value.strip()
        match = _CLOCK.fullmatch(text) or _HOURS_MINUTES_SECONDS.fullmatch(text)
        if not text or match is None:
            return _scale(value, _SECONDS, "20s or 15m")
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + seconds
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        raise ValueError(f"{value!r} has no unit: write {value}s, {value}m or {value}h")
    return value


def parse_bits_per_s(value: object, info: ValidationInfo) -> object:
    """Bits per second of `10Gbit`, `100Mbit`; a bare number is refused in a file: its unit would be
    a guess.

    In JSON, which only programs write, it is bits per second.
    """
    if isinstance(value, str):
        return int(_scale(value, _BITS_PER_S, "10Gbit or 100Mbit"))
    if isinstance(value, int) and not isinstance(value, bool) and info.mode != "json":
        raise ValueError(f"{value!r} has no unit: write it as 10Gbit or 100Mbit")
    return value


def parse_share(value: object) -> object:
    """The share that `20%` is, 0.2; anything else unchanged. Raises ValueError on no number."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return value
    try:
        return float(value.strip().removesuffix("%")) / 100
    except ValueError:
        raise ValueError(f"{value[:100]!r} is not a share such as 20%") from None


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(ge=0, le=5 * 2**40)]
"""A size in bytes, written `1MB` (10^6) or `1MiB` (2^20); at most 5 TiB, S3's largest object."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A number of things, as programs and kernels count in 64 bits.

Larger integers could not be divided by a time.
"""

Seconds = Annotated[float, BeforeValidator(parse_seconds), Field(ge=0, le=30 * 86400)]
"""A duration in seconds, written `20s`, `15m`, `2h`, `500ms`, `200us`, `9m30s` or `9:30`."""

BitsPerS = Annotated[int, BeforeValidator(parse_bits_per_s), Field(gt=0, le=10**13)]
"""A network rate in bits per second, written `10Gbit`; at most 10 Tbit, beyond any NIC."""


def show_bytes(count: float) -> str:
    """`1 MB`, `4 KiB`: the shorter of decimal and binary if one is exact, else three digits."""
    units = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB")
    scales = {unit: _BYTES[unit.lower()] for unit in units}
    exact = [
        f"{count // scale:.0f} {unit}"
        for unit, scale in scales.items()
        if count >= scale and count % scale == 0
    ]
    if exact:
        return min(exact, key=len)
    for unit in ("TB", "GB", "MB", "kB"):
        if count >= _BYTES[unit.lower()]:
            return f"{count / _BYTES[unit.lower()]:.3g} {unit}"
    return f"{count:g} B"


# Lists of CPUs as the kernel writes them: `2-3,5` (cpuset(7), "List format").


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
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return show_cpus(cpu_numbers(value)) if isinstance(value, str) else value


CpuList = Annotated[str, BeforeValidator(_shortest)]
"""A list of CPUs in its shortest form."""


def utc(text: str) -> datetime:
    """A time in ISO 8601 as UTC, without a time zone. Raises InvalidMeasurement on no time."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise InvalidMeasurement(f"{text!r} is not a time in ISO 8601") from error
