"""Scopes: what must be done anew before a changed setting counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

from weighbridge.common.record import Record

Scope = Literal["nothing", "reload", "restart", "buckets", "cluster"]
"""`nothing`: running daemons take it. `reload`: a front reads its configuration again while it
serves (Apache's graceful restart). `restart`: daemons whose configuration changed are ended and
started (radosgw, Apache's stop and start, HAProxy, Swift's servers). `buckets`: that, and buckets
and objects are made anew, since only new ones have it. `cluster`: all of the deployment is.
"""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most."""


def widest(scopes: Iterable[Scope]) -> Scope:
    """The scope that holds all of these; `nothing` of none."""
    return max(scopes, key=SCOPES.index, default="nothing")


def differing(before: Record, after: Record) -> tuple[str, ...]:
    """Dotted keys of settings that differ, those that one of the two lacks included."""
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
