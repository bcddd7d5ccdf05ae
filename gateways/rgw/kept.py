"""What a cluster takes of its disks, as its OSDs say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, NonNegativeInt, TypeAdapter, ValidationError

from weighbridge.common.errors import TargetError
from weighbridge.gateways.disk_space import KeptBytes
from weighbridge.gateways.rgw.monitor import CephDaemon, ask
from weighbridge.gateways.together import together

_ALLOCATED: Final = ("bluestore_allocated", "allocated")
"""Its names up to release 16, and from 18 on: a release has one of them."""
_DATABASES: Final = ("db_used_bytes", "wal_used_bytes", "slow_used_bytes")


def _counters(value: Any) -> Any:
    """Those of its counters that are whole numbers; others, such as averages, are records."""
    kept = value if isinstance(value, dict) else {}
    return {name: one for name, one in kept.items() if type(one) is int}


_DUMP: Final = TypeAdapter(
    dict[str, Annotated[dict[str, NonNegativeInt], BeforeValidator(_counters)]]
)
HOW: Final = (
    "OSDs: bluestore_allocated of all pools; RocksDB and its log (bluefs, which grows in steps)"
)


def kept_bytes(osds: Sequence[CephDaemon]) -> KeptBytes | None:
    """The sum over BlueStore OSDs, None where one does not say it. Raises TargetError.

    The OSDs count at once, `ceph df` only with the next report to the mgr.
    """
    groups = [list(group) for _, group in groupby(osds, key=lambda osd: osd.host.name)]
    answers = together([partial(ask, group, {"prefix": "perf dump"}) for group in groups])
    dumps = [_read(osd.name, texts[0]) for answer in answers for osd, texts in answer.items()]
    data = [_sum(one.get("bluestore", {}), _ALLOCATED) for one in dumps]
    beside = [_sum(one.get("bluefs", {}), _DATABASES) for one in dumps]
    known = [one for one in data if one is not None]
    if len(known) < len(osds):
        return None
    rest = [one for one in beside if one is not None]
    return KeptBytes(sum(known), sum(rest) if len(rest) == len(osds) else None, HOW)


def _read(osd: str, text: str) -> Mapping[str, Mapping[str, int]]:
    try:
        return _DUMP.validate_json(text)
    except ValidationError as error:
        raise TargetError(f"{osd}: no counters: {error.errors()[0]['msg']}") from None


def _sum(counters: Mapping[str, int], names: Sequence[str]) -> int | None:
    """The sum of these counters; None without any of them."""
    known = [counters[name] for name in names if name in counters]
    return sum(known) if known else None
