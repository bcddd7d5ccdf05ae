"""COSBench's selectors and ratios for sizes, numbers and shares, and what it cannot express.

A selector is read into Java's int: no number may be above 2^31 - 1, and none below 1 but for a
constant. Units are decimal: KB is 1000 bytes; there is no KiB.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from weighbridge.suites import PLAIN_OPERATIONS, Api, Operation, Workload
from weighbridge.suites.workload import VERIFIED_SHARE, SizeHistogram, Uniform, Zipf

JAVA_INT_MAX: Final = 2**31 - 1
UNITS: Final = (("B", 1), ("KB", 1000), ("MB", 1000**2), ("GB", 1000**3))
HISTOGRAM_WEIGHT: Final = 1_000_000
"""Sum of the weights of h(): it gives its first bar one too many and its last one too few, which is
negligible then.
"""
ENDLESS: Final = 2_000_000_000
"""Objects that writes may number before they start again: more than any step writes."""


class Inexpressible(Exception):
    """COSBench cannot express it; the message says what."""


def sizes(size: int | Uniform | SizeHistogram) -> str:
    """The selector of these sizes, in bytes if possible. Raises Inexpressible."""
    if isinstance(size, int):
        for unit, factor in UNITS:
            if size % factor == 0 and size // factor <= JAVA_INT_MAX:
                return f"c({size // factor}){unit}"
        raise Inexpressible(
            f"an object of {size} bytes is more than COSBench can express; beyond 2 GiB it "
            "needs whole KB"
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
    """Shares in whole per cent that sum to 100. Raises Inexpressible for other weights."""
    total = sum(operations.values())
    shares = {operation: weight * 100 / total for operation, weight in operations.items()}
    rounded = {operation: round(share) for operation, share in shares.items()}
    if any(
        abs(share - rounded[operation]) > 1e-6 or rounded[operation] < 1
        for operation, share in shares.items()
    ):
        text = ", ".join(f"{operation} {share:.4g} %" for operation, share in shares.items())
        raise Inexpressible(f"COSBench mixes operations by whole per cent, and these are {text}")
    return rounded


def by_chance(count: int) -> str:
    """A random number from 1 on, all equally likely."""
    return f"u(1,{count})"


def in_turn(count: int) -> str:
    """The numbers from 1 on in turn, shared by all workers of a COSBench driver."""
    return f"s(1,{count})"


def all_of(count: int) -> str:
    """Each number from 1 on once: for init, prepare, cleanup and dispose."""
    return f"r(1,{count})"


def visits_all_in_turn(workload: Workload) -> bool:
    """Whether containers and objects each taken in turn give every pair: only if their counts have
    no common divisor.
    """
    return math.gcd(workload.objects.containers, workload.objects.per_container) == 1


def unfit(workload: Workload, api: Api) -> tuple[str, ...]:
    """What of a workload COSBench cannot do over this API, in words."""
    return tuple(_unfit(workload, api))


def _unfit(workload: Workload, api: Api) -> Iterator[str]:
    asked = workload.operations
    if api not in ("swift", "s3"):
        yield f"COSBench loads gateways over swift or s3, not {api}"
    if workload.objects.compressible is not None:
        yield "COSBench chooses the content of objects itself: leave out `compressible`"
    if workload.listed is not None:
        yield "COSBench does not delete a share of the objects first: leave out `listed`"
    if unknown := [one for one in asked if one == "head" or one not in PLAIN_OPERATIONS]:
        yield f"COSBench has no {', '.join(unknown)}"
    if "list" in asked and api == "s3":
        yield "COSBench's list does nothing over s3, and counts that as a success"
    if "delete" in asked and "read" in asked:
        yield (
            "COSBench does not know what it has deleted, so reads beside deletes would request "
            "missing objects"
        )
    try:
        ratios(asked)
    except Inexpressible as error:
        yield str(error)
    try:
        sizes(workload.objects.size)
    except Inexpressible as error:
        yield str(error)
    if isinstance(workload.pick, Zipf):
        yield "COSBench picks objects at random or in turn, not by popularity"
    elif (
        "delete" in asked or (workload.pick == "sequential" and "read" in asked)
    ) and not visits_all_in_turn(workload):
        objects = workload.objects
        yield (
            f"COSBench takes containers and objects in turn separately: of {objects.containers} x "
            f"{objects.per_container} it would visit a part repeatedly; choose counts without a "
            "common divisor"
        )
    if workload.rate_per_s is not None:
        yield "COSBench's workers send as fast as they are answered, not at a rate"
    if workload.connections != "keep-alive":
        yield "COSBench manages its connections itself: leave `connections` out"
    if workload.verify > VERIFIED_SHARE:
        yield "COSBench does not verify what it reads"
    for what, seconds in (("runtime", workload.runtime), ("warmup", workload.warmup)):
        if seconds != int(seconds):
            yield f"COSBench's {what} is in whole seconds, not {seconds:g}"
    if max(workload.objects.containers, workload.objects.per_container) >= JAVA_INT_MAX:
        yield "COSBench numbers no more than 2^31 - 1 containers, and as many objects in each"
