"""Scopes: what must be restarted or created again before a changed setting takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

from weighbridge.common.record import Record

Scope = Literal["nothing", "reload", "restart", "buckets", "cluster"]
"""From the least to the most disruptive.

`nothing`: running daemons apply it. `reload`: a front reloads its configuration while it serves
(Apache's graceful restart). `restart`: daemons whose configuration changed are stopped and started
(radosgw, Apache, HAProxy, Swift's servers). `buckets`: also, buckets and objects are created again,
since only new ones have it. `cluster`: all of the deployment is.
"""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most disruptive."""


def widest(scopes: Iterable[Scope]) -> Scope:
    """The most disruptive of these scopes; `nothing` if there are none."""
    return max(scopes, key=SCOPES.index, default="nothing")


def differing(before: Record, after: Record) -> tuple[str, ...]:
    """Dotted keys of settings that differ, including those that only one of the two has."""
    one, other = dict(_flat(before.model_dump(), "")), dict(_flat(after.model_dump(), ""))
    return tuple(
        key
        for key in {**one, **other}
        if key not in one or key not in other or one[key] != other[key]
    )


def _flat(value: object, key: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value
