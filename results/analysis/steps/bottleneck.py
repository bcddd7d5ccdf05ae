"""What limited a step, in words: the most used resources by name, and by their kind.

`results.analysis.steps.use` says how each resource is judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.results.analysis.steps.use import UTILIZED, Resource, What, saturated
from weighbridge.results.figures import listed, show_share
from weighbridge.results.record import Tier

_LIMITS: Final[Mapping[tuple[What, Tier], str]] = {
    ("CPU", "gateway"): "the gateway’s CPU",
    ("CPU", "storage"): "the stores’ CPU",
    ("CPU", "shared"): "the CPU of gateway and stores",
    ("disk", "storage"): "the stores’ disks",
    ("disk", "shared"): "the stores’ disks",
    ("disk", "gateway"): "the gateway’s disks",
    ("network", "gateway"): "the network",
    ("network", "storage"): "the network",
    ("network", "shared"): "the network",
    ("memory", "gateway"): "the gateway’s memory",
    ("memory", "storage"): "the stores’ memory",
    ("memory", "shared"): "the memory of gateway and stores",
}
LOAD_GENERATOR: Final = "the load generator"
NOTHING_SEEN: Final = "nothing seen"


def limited_by(resources: Sequence[Resource], reached: Sequence[What] = ()) -> str | None:
    """What limited a step, by kind, the most used first; None if unknown. `reached`: resources
    whose ceiling, measured without a gateway, it came close to.
    """
    if not resources:
        return None
    kinds = [_LIMITS.get((one.what, one.tier), LOAD_GENERATOR) for one in saturated(resources)]
    kinds += [_LIMITS[what, "storage"] for what in reached]
    return listed(list(dict.fromkeys(kinds))) if kinds else NOTHING_SEEN


def limit_words(resources: Sequence[Resource]) -> str | None:
    """The bottleneck: `CPU of store-1 (99 % of 0.3), also CPU of store-2`; None if unknown."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none above {show_share(UTILIZED)}: {_highest(resources)}"
    others = f", also {', '.join(one.name for one in full[1:])}" if len(full) > 1 else ""
    return f"{full[0].words}{others}"


def limit_brief(resources: Sequence[Resource]) -> str | None:
    """The bottleneck in brief: `store-1 CPU 99 % +1`, `none (gateway-1 CPU 64 %)`, or None."""
    if not resources:
        return None
    full = saturated(resources)
    if not full:
        return f"none ({_highest(resources)})"
    return f"{_short(full[0])}{f' +{len(full) - 1}' if len(full) > 1 else ''}"


def _highest(resources: Sequence[Resource]) -> str:
    # Memory in use means nothing as long as some is left.
    # Rounded down: what is just below the bound must not look as if it reached it.
    top = max(
        (one for one in resources if one.what != "memory"),
        key=lambda one: one.share,
        default=resources[0],
    )
    return f"{top.host} {top.what} {math.floor(top.share * 100 + 1e-9)} %"


def _short(one: Resource) -> str:
    return f"{one.host} {one.what} {show_share(one.share)}"
