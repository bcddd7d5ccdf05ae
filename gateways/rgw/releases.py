"""Releases of Ceph, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

from weighbridge.common.endpoint import S3Way
from weighbridge.gateways.front import packages_before
from weighbridge.gateways.gateway import BULLSEYE, SID, KnownRelease, RootImage

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

_PACKAGES = (
    *("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph-common", "python3-rados"),
    # CephFS is no gateway, but a layer that Ceph studies measured beside RADOS.
    *("ceph-mds", "ceph-fuse"),
    *("iproute2", "procps", "tini", "python3", "btrfs-progs", "e2fsprogs"),
    *packages_before("rgw"),
)

MGR_MODULES: Final = (
    *("alerts", "balancer", "crash", "devicehealth", "influx", "insights", "iostat", "localpool"),
    *("mirroring", "nfs", "orchestrator", "osd_perf_query", "osd_support", "pg_autoscaler"),
    *("progress", "prometheus", "rbd_support", "restful", "selftest", "smb", "snap_schedule"),
    *("stats", "status", "telegraf", "telemetry", "test_orchestrator", "volumes", "zabbix"),
)
"""Python modules of the mgr, which loads all, used or not: that took 4 s of CPU and 250 MB. Neither
PUT nor GET uses one, so they are not loaded where a release can be told so."""

_image: Final = partial(RootImage, packages=_PACKAGES, version_packages=("ceph-common",))

RELEASES: dict[str, CephRelease] = {
    "ceph-14": CephRelease(
        image=_image(name="ceph-14", suite="bullseye", options=BULLSEYE),
        frontends=("beast", "civetweb"),
        filestore=True,
        s3_lacks=_BEFORE_17,
        s3_lacks_operations=_IGNORES_PARTS,
        lacks=frozenset(
            {
                "mon_allow_pool_size_one",
                "osd_mclock_skip_benchmark",
                "bluestore_debug_enforce_settings",
                "mgr_disabled_modules",
            }
        ),
    ),
    "ceph-16": CephRelease(
        image=_image(name="ceph-16", suite="bookworm"),
        frontends=("beast", "civetweb"),
        filestore=True,
        s3_lacks=_BEFORE_17,
        s3_lacks_operations=_IGNORES_PARTS,
    ),
    "ceph-17": CephRelease(
        image=_image(name="ceph-17", suite="jammy", distribution="Ubuntu"),
        settings_of="ceph-16",
        filestore=True,
        s3_lacks=_NO_TRAILERS,
        s3_lacks_operations=_IGNORES_PARTS,
    ),
    "ceph-18": CephRelease(
        image=_image(name="ceph-18", suite="trixie"),
        s3_lacks_operations=_IGNORES_PARTS,
    ),
    "ceph-19": CephRelease(
        image=_image(name="ceph-19", suite="noble", distribution="Ubuntu"),
        settings_of="ceph-18",
        s3_lacks_operations=_IGNORES_PARTS,
    ),
    "ceph-20": CephRelease(
        image=_image(name="ceph-20", suite="sid", options=SID),
        key_type=2,
    ),
}
"""Releases of Ceph by the name that layouts use."""
