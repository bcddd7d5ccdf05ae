"""What a cluster takes of its disks, as its OSDs say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from weighbridge.gateways.gateway import KeptBytes
from weighbridge.gateways.rgw.monitor import CephDaemon, ask
from weighbridge.gateways.together import together

_ALLOCATED: Final = ("bluestore_allocated", "allocated")
"""Its names up to release 16, and from 18 on: a release has one of them."""
_DATABASES: Final = ("db_used_bytes", "wal_used_bytes", "slow_used_bytes")
HOW: Final = (
    "OSDs: bluestore_allocated of all pools; RocksDB and its log (bluefs, which grows in steps)"
)


def kept_bytes(osds: Sequence[CephDaemon]) -> KeptBytes | None:
    """The sum over BlueStore OSDs, None where one does not say it. Raises CommandFailed.

    The OSDs count at once, `ceph df` only with the next report to the mgr.
    """
    groups = [list(group) for _, group in groupby(osds, key=lambda osd: osd.host.name)]
    answers = together([partial(ask, group, {"prefix": "perf dump"}) for group in groups])
    dumps = [json.loads(texts[0]) for answer in answers for texts in answer.values()]
    data = [_sum(one.get("bluestore"), _ALLOCATED) for one in dumps]
    beside = [_sum(one.get("bluefs"), _DATABASES) for one in dumps]
    known = [one for one in data if one is not None]
    if len(known) < len(osds):
        return None
    rest = [one for one in beside if one is not None]
    return KeptBytes(sum(known), sum(rest) if len(rest) == len(osds) else None, HOW)


def _sum(counters: Mapping[str, Any] | None, names: Sequence[str]) -> int | None:
    """The sum of counters that are numbers; None without any of them."""
    values = [(counters or {}).get(name) for name in names]
    known = [value for value in values if isinstance(value, int)]
    return sum(known) if known else None
