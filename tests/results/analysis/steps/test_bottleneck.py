"""What limited a step, by the resources that were used."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.results.analysis.steps.bottleneck import NOTHING_SEEN, limited_by
from weighbridge.results.analysis.steps.use import Resource


def of(what: Any, tier: Any, share: float) -> Resource:
    return Resource(what=what, host=f"{tier}-{what}", tier=tier, share=share, limit="1")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([("CPU", "gateway", 0.99), ("disk", "storage", 0.5)], "the gateway’s CPU"),
        ([("disk", "storage", 0.9), ("disk", "storage", 0.95)], "the stores’ disks"),
        (
            [("CPU", "gateway", 0.85), ("disk", "storage", 0.95)],
            "the stores’ disks and the gateway’s CPU",
        ),
        ([("network", "storage", 0.81)], "the network"),
        ([("CPU", "client", 0.9)], "the load generator"),
        ([("network", "client", 0.9)], "the load generator"),
        ([("memory", "storage", 0.94), ("CPU", "gateway", 0.79)], NOTHING_SEEN),
    ],
)
def test_what_limited_a_step_is_named_by_kind_the_most_used_first(
    found: list[tuple[str, str, float]], words: str
) -> None:
    assert limited_by([of(*one) for one in found]) == words


def test_a_ceiling_that_was_reached_limits_even_if_no_resource_looks_full() -> None:
    idle = [of("CPU", "gateway", 0.5)]
    assert limited_by(idle, ("disk",)) == "the stores’ disks"
    assert limited_by([of("disk", "storage", 0.9)], ("disk", "network")) == (
        "the stores’ disks and the network"
    )
