"""The pool of object data: how it is erasure coded, and what the cluster says of it."""

from __future__ import annotations

import json
from typing import Any, Final

from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways.rgw.config import DATA_POOL
from weighbridge.gateways.rgw.monitor import Command, Monitor
from weighbridge.gateways.rgw.settings import EcSettings, RadosgwSettings

PROFILE: Final = "weighbridge"
"""Name of the erasure code profile."""


class DataPool(Record):
    """What the mon says of the pool."""

    size: int
    """Copies or fragments."""
    min_size: int
    """How many must be available."""
    profile: dict[str, str] | None = None
    """The erasure code profile; None: it has copies."""

    @property
    def parts(self) -> str:
        return "replicas" if self.profile is None else "fragments"

    @property
    def words(self) -> str:
        """How the pool keeps objects, beside the pools that have copies."""
        if self.profile is None:
            return f"{self.size}"
        own = self.profile
        code = ", ".join(
            f"{name} {own[name]}" for name in ("plugin", "technique", "stripe_unit") if name in own
        )
        return f"erasure coded, {own.get('k')} data and {own.get('m')} parity fragments ({code})"


def profile(settings: EcSettings, failure_domain: str) -> Command:
    """The command that makes the erasure code profile."""
    return {
        "prefix": "osd erasure-code-profile set",
        "name": PROFILE,
        "profile": [
            f"k={settings.k}",
            f"m={settings.m}",
            f"plugin={settings.plugin}",
            "technique=reed_sol_van",
            f"stripe_unit={settings.stripe_unit}",
            f"crush-failure-domain={failure_domain}",
        ],
    }


def read(monitor: Monitor) -> DataPool:
    """What the mon says of the pool. Raises CommandFailed."""
    asked = {"prefix": "osd pool get", "pool": DATA_POOL, "format": "json"}
    found = [
        json.loads(text)
        for text in monitor.ask({**asked, "var": "size"}, {**asked, "var": "min_size"})
    ]
    listed: list[dict[str, Any]] = json.loads(
        monitor.ask({"prefix": "osd pool ls", "detail": "detail", "format": "json"})[0]
    )
    name = next(
        (one.get("erasure_code_profile") for one in listed if one.get("pool_name") == DATA_POOL), ""
    )
    known = None
    if name:
        command = {"prefix": "osd erasure-code-profile get", "name": name, "format": "json"}
        known = {str(key): str(value) for key, value in json.loads(monitor.ask(command)[0]).items()}
    return DataPool(size=found[0]["size"], min_size=found[1]["min_size"], profile=known)


_ZONE: Final = ("--rgw-zone", "default")
_PLACEMENT: Final = "default-placement"
_CLASS: Final = "STANDARD"


def compress(host: Host, settings: RadosgwSettings) -> None:
    """Have the default placement compress; creates the zone if needed. Raises CommandFailed."""
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
