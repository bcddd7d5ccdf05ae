"""Scopes: what must be done anew before a changed setting counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

Scope = Literal["nothing", "reload", "restart", "buckets", "cluster"]
"""`nothing`: running daemons take it. `reload`: a front reads its configuration again while it serves (Apache's graceful restart).
`restart`: daemons whose configuration changed are ended and started (radosgw, Apache's stop and start, HAProxy, Swift's servers).
`buckets`: that, and buckets and objects are made anew, since only new ones have it. `cluster`: all of the deployment is.
"""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most."""


def widest(scopes: Iterable[Scope]) -> Scope:
    """The scope that holds all of these; `nothing` of none."""
    return max(scopes, key=SCOPES.index, default="nothing")
