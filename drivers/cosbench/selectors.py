"""COSBench's ways to say which sizes, numbers and shares: its selectors and ratios, and what they
cannot say.

A selector is read into Java's int: no number may be above 2^31 - 1, and none may be below 1 but for
a constant. Units are decimal: KB is 1000 bytes; there is no KiB.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from weighbridge.suites import Operation, Workload
from weighbridge.suites.workload import SizeHistogram, Uniform

JAVA_INT_MAX: Final = 2**31 - 1
UNITS: Final = (("B", 1), ("KB", 1000), ("MB", 1000**2), ("GB", 1000**3))
HISTOGRAM_WEIGHT: Final = 1_000_000
"""What weights of h() sum to: it gives its first bar one too many and its last one too few, which
is then nothing.
"""
ENDLESS: Final = 2_000_000_000
"""Objects that writes may number before they begin again: more than any step writes."""


class Inexpressible(Exception):
    """COSBench has no words for it; the message says what, in ours."""


def sizes(size: int | Uniform | SizeHistogram) -> str:
    """The selector of these sizes, in bytes wherever that can be said. Raises Inexpressible."""
    if isinstance(size, int):
        for unit, factor in UNITS:
            if size % factor == 0 and size // factor <= JAVA_INT_MAX:
                return f"c({size // factor}){unit}"
        raise Inexpressible(
            f"an object of {size} bytes is more than COSBench can number; beyond 2 GiB it wants "
            "whole KB"
        )
    bounds = [size.uniform] if isinstance(size, Uniform) else [bar.bounds for bar in size.histogram]
    if any(low < 1 or high >= JAVA_INT_MAX for low, high in bounds):
        raise Inexpressible("a range of sizes reaches from 1 byte to 2 GiB at most in COSBench")
    if isinstance(size, Uniform):
        return "u({},{})B".format(*size.uniform)
    total = sum(bar.weight for bar in size.histogram)
    bars = [
        (*bar.bounds, max(1, round(bar.weight / total * HISTOGRAM_WEIGHT)))
        for bar in size.histogram
    ]
    return f"h({','.join(f'{low}|{high}|{weight}' for low, high, weight in bars)})B"


def ratios(operations: Mapping[Operation, float]) -> dict[Operation, int]:
    """Shares in whole per cent that sum to 100.

    Raises Inexpressible where weights are no such shares.
    """
    total = sum(operations.values())
    shares = {operation: weight * 100 / total for operation, weight in operations.items()}
    whole = {operation: round(share) for operation, share in shares.items()}
    if any(
        abs(share - whole[operation]) > 1e-6 or whole[operation] < 1
        for operation, share in shares.items()
    ):
        said = ", ".join(f"{operation} {share:.4g} %" for operation, share in shares.items())
        raise Inexpressible(f"COSBench mixes operations by whole per cent, and these are {said}")
    return whole


def by_chance(count: int) -> str:
    """One of the numbers from 1 on, each as likely as the others."""
    return f"u(1,{count})"


def in_turn(count: int) -> str:
    """The numbers from 1 on, one after the other, shared by all workers of a COSBench driver."""
    return f"s(1,{count})"


def all_of(count: int) -> str:
    """Each of the numbers from 1 on once: what init, prepare, cleanup and dispose want."""
    return f"r(1,{count})"


def visits_all_in_turn(workload: Workload) -> bool:
    """Whether containers and objects each taken in turn meet in every pair: only when their counts
    share no divisor.
    """
    return math.gcd(workload.objects.containers, workload.objects.per_container) == 1
