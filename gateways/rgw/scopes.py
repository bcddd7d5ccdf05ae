"""The least restart for a setting of the `rgw` gateway to take effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.scope import SCOPES, Scope, widest
from weighbridge.gateways.front import FRONTS

_RADOSGW: Final[Mapping[str, Scope]] = {
    "daemons": "cluster",
    "port": "cluster",
    "tls": "cluster",
    # The zone's, which radosgw reads when it starts.
    "compression": "cluster",
    # They apply only to buckets created later, and objects keep the layout that they were written
    # with.
    "index_shards": "buckets",
    "max_chunk_size": "buckets",
    "stripe_size": "buckets",
}
"""Settings of `radosgw` that need more than a restart of radosgw."""

_OPTIONS: Final[Mapping[str, Scope]] = {
    **dict.fromkeys(
        ("rgw_override_bucket_index_max_shards", "rgw_max_chunk_size", "rgw_obj_stripe_size"),
        "buckets",
    ),
    **dict.fromkeys(
        ("rgw_zone", "rgw_zonegroup", "rgw_realm", "rgw_default_realm_root_pool"), "cluster"
    ),
    **dict.fromkeys(
        ("fsid", "mon_host", "keyring", "key", "keyfile", "admin_socket", "run_dir", "public_addr"),
        "cluster",
    ),
}
"""Options of `options: {client: ...}` that need more; those that define a radosgw's cluster and
identity cannot change.
"""


def scope(key: str) -> Scope:
    """The least restart for a setting, by its dotted key below `settings`; `cluster` if unknown."""
    first, _, rest = key.partition(".")
    if first in FRONTS:
        return FRONTS[first].scope(rest)
    if first == "radosgw":
        return _RADOSGW.get(rest, "restart")
    if first == "options" and rest.startswith("client."):
        return _OPTIONS.get(rest.removeprefix("client."), "restart")
    return "cluster"


def refuse(keys: Sequence[str], asked: Scope) -> None:
    """Raise UsageError when settings that differ need more than the scope `asked`, or a new
    cluster.

    With `nothing`, running radosgw are asked about options of theirs, which this table does not
    know.
    """
    fixed = [key for key in keys if scope(key) == "cluster"]
    if fixed:
        raise UsageError(
            f"{', '.join(fixed)} cannot change while the cluster is running: the scope is `cluster`"
        )
    if asked == "cluster":
        raise UsageError(
            "the scope `cluster` means a new deployment: the running one does not change"
        )
    asks = asked == "nothing"
    short = [
        key for key in keys if _lies_below(asked, scope(key)) and not (asks and _of_radosgw(key))
    ]
    if short:
        least = widest(scope(key) for key in short)
        raise UsageError(f"{', '.join(short)}: this needs at least `{least}`, not `{asked}`")


def _lies_below(one: Scope, other: Scope) -> bool:
    return SCOPES.index(one) < SCOPES.index(other)


def _of_radosgw(key: str) -> bool:
    return key.startswith(("radosgw.", "options.client.")) and scope(key) != "buckets"
