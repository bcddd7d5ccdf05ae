"""The zone's placement: how radosgw compresses objects before it writes them."""

from __future__ import annotations

import json
from typing import Final

from weighbridge.common.host import Host
from weighbridge.gateways.rgw.settings import RadosgwSettings

_ZONE: Final = ("--rgw-zone", "default")
_PLACEMENT: Final = "default-placement"
_CLASS: Final = "STANDARD"


def compress(host: Host, settings: RadosgwSettings) -> None:
    """Have the default placement compress; this creates the zone as the first radosgw would.

    Raises CommandFailed.
    """
    # Any command that opens the store creates zone and zonegroup; those about zones do not.
    host.run(["radosgw-admin", "bucket", "list"], timeout_s=120)
    where = ("--placement-id", _PLACEMENT, "--storage-class", _CLASS)
    algorithm = ("--compression", settings.compression)
    host.run(
        ["radosgw-admin", "zone", "placement", "modify", *_ZONE, *where, *algorithm], timeout_s=120
    )


def compression(host: Host) -> str:
    """The algorithm by which the zone's default placement compresses, as the cluster has it; `none`
    without. Raises CommandFailed.
    """
    zone = json.loads(host.run(["radosgw-admin", "zone", "get", *_ZONE]).stdout)
    for pool in zone.get("placement_pools", ()):
        if pool.get("key") == _PLACEMENT:
            own = pool.get("val", {}).get("storage_classes", {}).get(_CLASS, {})
            return str(own.get("compression_type") or "none")
    return "none"
