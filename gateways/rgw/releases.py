"""Releases of Ceph, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from weighbridge.common.endpoint import S3Way
from weighbridge.gateways.front import store_image
from weighbridge.gateways.gateway import KnownRelease

Frontend = Literal["beast", "civetweb"]


class CephRelease(KnownRelease):
    """A release of Ceph."""

    key_type: Literal[1, 2] = 1
    """Kind of cephx key: 1 is AES-128, 2 (wanted from 20 on) is AES-256."""
    frontends: tuple[Frontend, ...] = ("beast",)
    filestore: bool = False
    """Whether its OSDs can store objects as files: FileStore was removed in 18."""


_NO_TRAILERS: Final[Mapping[S3Way, str]] = {
    "trailers": "radosgw before 18 refuses checksums in trailers (400 XAmzContentSHA256Mismatch)",
}
_BEFORE_17: Final[Mapping[S3Way, str]] = {
    **_NO_TRAILERS,
    "sse-s3": (
        "radosgw before 17 does not support SSE-S3: it answers 200, but HEAD shows no encryption"
    ),
}

_OVERWRITES: Final = "radosgw ignores If-None-Match over the Swift API, and overwrites the object"
SWIFT_LACKS: Final[Mapping[str, str]] = {
    "write-if-none-match": _OVERWRITES,
    "rewrite-if-none-match": _OVERWRITES,
    "read-part": "radosgw ignores part-number over the Swift API, and sends the complete object",
    "versions": "radosgw answers 2xx to X-Versions-Enabled over the Swift API, and keeps none",
}
"""Operations that its Swift API does not do, and what it does instead: see docs/capabilities.md."""

_IGNORES_PARTS: Final[Mapping[str, str]] = {
    "read-part": "this radosgw ignores partNumber, and sends the complete object",
}

MGR_MODULES: Final = (
    *("alerts", "balancer", "crash", "devicehealth", "influx", "insights", "iostat", "localpool"),
    *("mirroring", "nfs", "orchestrator", "osd_perf_query", "osd_support", "pg_autoscaler"),
    *("progress", "prometheus", "rbd_support", "restful", "selftest", "smb", "snap_schedule"),
    *("stats", "status", "telegraf", "telemetry", "test_orchestrator", "volumes", "zabbix"),
)
"""Python modules of the mgr, which loads all, used or not: that took 4 s of CPU and 250 MB. Neither
PUT nor GET uses one, so they are not loaded where a release can be told so."""


def _release(name: str, suite: str, **known: Any) -> CephRelease:
    return CephRelease(image=store_image("rgw", name, suite), **known)


_before_20: Final = partial(_release, s3_lacks_operations=_IGNORES_PARTS)
_of_files: Final = partial(_before_20, filestore=True)
_KNOWN: Final = (
    _of_files(
        "ceph-14",
        "bullseye",
        frontends=("beast", "civetweb"),
        s3_lacks=_BEFORE_17,
        lacks=frozenset(
            {
                "mon_allow_pool_size_one",
                "osd_mclock_skip_benchmark",
                "bluestore_debug_enforce_settings",
                "mgr_disabled_modules",
            }
        ),
    ),
    _of_files("ceph-16", "bookworm", frontends=("beast", "civetweb"), s3_lacks=_BEFORE_17),
    _of_files("ceph-17", "jammy", settings_of="ceph-16", s3_lacks=_NO_TRAILERS),
    _before_20("ceph-18", "trixie"),
    _before_20("ceph-19", "noble", settings_of="ceph-18"),
    _release("ceph-20", "sid", key_type=2),
)
RELEASES: Final = {one.image.name: one for one in _KNOWN}
"""Releases of Ceph by the name that layouts use."""
