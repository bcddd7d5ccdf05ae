from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.endpoint_use import EndpointUse
from weighbridge.results.figures import UNKNOWN, show_figure

ENDPOINT_HEAD: Final = (
    "Workload",
    "API",
    "Workers",
    "Layout",
    "Endpoint",
    "Requests",
    "Share",
    "p90 ms",
    "Busiest / mean",
    "Failures",
)
ENDPOINT_NUMBERS: Final = (2, 5, 6, 7, 8)


def endpoint_lines(found: Sequence[EndpointUse]) -> tuple[tuple[str, ...], ...]:
    """The cells of each endpoint of each step, over all its repeats."""
    return tuple(
        (
            one.workload,
            one.api,
            str(one.workers),
            one.layout,
            one.name,
            str(one.count),
            f"{one.share:.1%}",
            UNKNOWN if one.p90_ms is None else show_figure(one.p90_ms),
            UNKNOWN if one.imbalance is None else f"{one.imbalance:.2f}",
            one.words or "none",
        )
        for one in found
    )
