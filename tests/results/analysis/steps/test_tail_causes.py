from __future__ import annotations

from itertools import accumulate

import pytest

from compared_rows import row
from made_rows import altered, changed
from weighbridge.results.analysis.steps.tail_causes import delayed_share, tail_cause
from weighbridge.results.analysis.steps.use import Resource
from weighbridge.results.doubt import Doubt

DISK = Resource(what="disk", host="store-1", tier="storage", share=0.95, limit="200 MB/s written")
IDLE = altered(DISK, share=0.2)


def share(latencies_ms: dict[float, int]) -> float:
    tops = sorted(latencies_ms)
    return delayed_share(
        [round(top * 1000) for top in tops], list(accumulate(latencies_ms[top] for top in tops))
    )


@pytest.mark.parametrize(
    ("latencies_ms", "found"),
    [
        ({2.0: 90, 3.0: 5, 42.5: 5}, 0.05),
        ({2.0: 95, 12.0: 5}, 0.0),  # other pauses
        ({2.0: 90, 12.0: 2, 22.0: 2, 32.0: 2, 42.5: 2, 52.0: 2}, 0.0),  # a long tail
        ({2.0: 995, 42.5: 5}, 0.0),  # too few to be named
        ({2.0: 93, 42.5: 2, 5000.0: 5}, 0.0),  # the tail is elsewhere
        ({2.0: 90, 42.5: 5, 58.0: 3}, 0.0),  # others above it
        ({200.0: 90, 241.0: 10}, 0.1),
        ({}, 0.0),
    ],
)
def test_requests_that_take_40_ms_longer_are_named_only_if_they_stand_apart(
    latencies_ms: dict[float, int], found: float
) -> None:
    assert share(latencies_ms) == pytest.approx(found)


def test_the_cpu_limit_comes_before_delays_and_those_before_full_resources() -> None:
    quota = Doubt(
        what="set by the CPU limit", grade="grave", words="CPU limit of gateway-1", metrics=("p99",)
    )
    full = changed(row("swift"), resources=(DISK,))
    assert tail_cause(changed(full, doubts=(quota,)), 0.05) == "CPU limit of gateway-1"
    assert tail_cause(full, 0.05).startswith("5 % of its requests took 40 ms longer")
    assert tail_cause(full, 0.0) == "limited by the stores’ disks"
    idle = changed(row("swift"), resources=(IDLE,))
    assert tail_cause(idle, 0.0) == "no resource was seen at its limit"
    assert tail_cause(row("swift"), 0.0) == ""
