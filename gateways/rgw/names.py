"""Names in the index of a bucket without objects, put there beside RGW."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways import program
from weighbridge.gateways.rgw.config import INDEX_POOL

HOW: Final = "copies of its first object’s entry in the bucket index, without objects"
_COUNT: Final = TypeAdapter(NonNegativeInt)


class _Use(Record, extra="ignore"):
    num_objects: NonNegativeInt = 0


class _Stats(Record, extra="ignore"):
    """What `radosgw-admin bucket stats` says of a bucket."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]{1,200}$")]
    usage: dict[str, _Use] = Field(default_factory=dict)

    @property
    def objects(self) -> int:
        """How many objects its index says that it has."""
        return sum(use.num_objects for use in self.usage.values())


def put_names(host: Host, bucket: str, names: Sequence[str], gone: Sequence[str]) -> str:
    """See RunningGateway. The index's own counts are made anew by `radosgw-admin bucket check`."""
    order = {"pool": INDEX_POOL, "names": list(names), "gone": list(gone)}
    argv = program.ship(host, "weighbridge.gateways.rgw.put_names")
    text = json.dumps({**order, "id": _stats(host, bucket).id})
    done = host.run(argv, stdin=text, timeout_s=1800).stdout
    try:
        count = _COUNT.validate_json(done)
    except ValidationError as error:
        raise TargetError(f"{host.name}: no count of names: {error.errors()[0]['msg']}") from None
    host.run(["radosgw-admin", "bucket", "check", "--fix", f"--bucket={bucket}"], timeout_s=1800)
    wanted, listed = len(names) - len(gone), _stats(host, bucket).objects
    if (count, listed) != (wanted, wanted):
        raise TargetError(
            f"the index of {bucket} has {count} entries and counts {listed} objects, where both "
            f"should be {wanted}"
        )
    return HOW


def _stats(host: Host, bucket: str) -> _Stats:
    argv = ["radosgw-admin", "bucket", "stats", f"--bucket={bucket}"]
    try:
        return _Stats.model_validate_json(host.run(argv, timeout_s=600).stdout)
    except ValidationError as error:
        raise TargetError(
            f"{host.name}: no stats of {bucket}: {error.errors()[0]['msg']}"
        ) from None
