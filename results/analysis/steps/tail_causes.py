"""What lengthened the slowest requests, by name: a CPU quota, delayed acknowledgements, a resource
at its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from weighbridge.results.analysis.steps.bottleneck import NOTHING_SEEN
from weighbridge.results.analysis.steps.summary import Row

DELAY_US: Final = (38_000, 48_000)
"""How much longer requests take that wait for a delayed acknowledgement: at least 40 ms on Linux
(TCP_DELACK_MIN in include/net/tcp.h), by which Nagle’s algorithm holds a last small segment back.
"""
DELAYED_SHARE: Final = 0.01
"""Share of requests from which such a group is named."""
_AROUND_US: Final = ((24_000, 34_000), (52_000, 62_000))
"""Nearly empty if the group stands alone."""
_ALONE: Final = 4
"""How many times as many requests the group has."""


def delayed_share(tops_us: Sequence[int], reached: Sequence[int]) -> float:
    """The share of requests that took the time of a delayed acknowledgement longer than the fastest
    tenth, if they stand apart from all others; else 0.

    `tops_us` are the tops of a histogram's buckets, `reached` the samples up to each.
    """
    if not reached:
        return 0.0
    fast_us = next(top for top, n in zip(tops_us, reached, strict=True) if 10 * n >= reached[-1])
    counts = [after - before for before, after in pairwise((0, *reached))]

    def between(low_us: int, high_us: int) -> int:
        return sum(
            count
            for top, count in zip(tops_us, counts, strict=True)
            if fast_us + low_us <= top < fast_us + high_us
        )

    delayed = between(*DELAY_US)
    share = delayed / reached[-1]
    alone = all(delayed >= _ALONE * between(*span) for span in _AROUND_US)
    # What takes still longer has another cause, and then the group does not make the tail.
    beyond = sum(
        count for top, count in zip(tops_us, counts, strict=True) if top >= fast_us + DELAY_US[1]
    )
    return share if share >= DELAYED_SHARE and alone and beyond < delayed else 0.0


def tail_cause(row: Row, delayed: float) -> str:
    """What lengthened a row's slowest requests; empty: unknown. `delayed`: of `delayed_share`."""
    quota = next((one for one in row.doubts if one.what == "set by the CPU limit"), None)
    if quota is not None:
        return quota.words
    if delayed:
        return (
            f"{delayed * 100:.0f} % of its requests took 40 ms longer, as with a delayed "
            "acknowledgement (Nagle’s algorithm)"
        )
    if row.limited_by is None:
        return ""
    if row.limited_by == NOTHING_SEEN:
        return "no resource was seen at its limit"
    return f"limited by {row.limited_by}"
