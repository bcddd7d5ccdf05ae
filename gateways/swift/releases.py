"""Releases of Swift, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from weighbridge.common.encryption import S3Way
from weighbridge.gateways.front import packages_before
from weighbridge.gateways.gateway import RootImage
from weighbridge.gateways.known_release import KnownRelease

_PACKAGES = (
    *("swift-proxy", "swift-account", "swift-container", "swift-object", "memcached", "rsync"),
    *("xfsprogs", "iproute2", "procps", "tini", "python3"),
    *packages_before("swift"),
)


class SwiftRelease(KnownRelease):
    """A release of Swift as packaged by Debian or Ubuntu."""

    s3_lacks: Mapping[S3Way, str] = Field(default_factory=dict)
    """What of S3 requests its s3api refuses or does not do, and how."""
    s3_lacks_operations: Mapping[str, str] = Field(default_factory=dict)
    """Operations of suites that its s3api does not do, and what it answers."""
    lacks_operations: Mapping[str, str] = Field(default_factory=dict)
    """Operations of suites that its Swift API does not do, and what it does instead."""
    lacks: frozenset[str] = frozenset()
    """Options that this suite uses with other releases and that this one does not know."""


_ALL: Final[Mapping[S3Way, str]] = {
    "anonymous requests": "s3api without ACLs refuses requests without a signature (400)",
    "sse-c": "s3api answers 200 to SSE-C, but stores objects unencrypted, readable without the key",
    "sse-s3": "s3api does not support SSE-S3 (501)",
}
_NO_CHUNKS: Final[Mapping[S3Way, str]] = {
    **_ALL,
    "signed chunks": "this s3api does not support signed chunks (501)",
    "trailers": "this s3api does not support checksums in trailers (501)",
}

_NO_TAGS: Final = {
    "tag": "s3api does not support tags of objects (501)",
}
_NO_CONDITIONS: Final = {
    **_NO_TAGS,
    **dict.fromkeys(
        ("write-if-none-match", "rewrite-if-none-match"),
        "this s3api refuses writes with If-None-Match (501)",
    ),
}

# Both came with 2.34.
_NO_PARTS: Final = {
    **_NO_CONDITIONS,
    "read-part": "this s3api does not support partNumber of a GET (405)",
}
_IGNORES_PARTS: Final = {
    "read-part": "this Swift ignores part-number, and sends the complete object",
}

_VERSION_PACKAGES = ("python3-swift",)


def _of_ubuntu(name: str, suite: str) -> RootImage:
    return RootImage(
        name=name,
        suite=suite,
        distribution="Ubuntu",
        packages=_PACKAGES,
        version_packages=_VERSION_PACKAGES,
    )


RELEASES: dict[str, SwiftRelease] = {
    "swift-2.26": SwiftRelease(
        image=RootImage(
            name="swift-2.26",
            suite="bullseye",
            packages=_PACKAGES,
            version_packages=_VERSION_PACKAGES,
            # Its security and update archives name files that no longer exist.
            options=(
                '--setup-hook=sed -i -e /security/d -e /-updates/d "$1/etc/apt/sources.list"',
            ),
        ),
        lacks=frozenset({"etag_validate_pct"}),
        s3_lacks=_NO_CHUNKS,
        s3_lacks_operations=_NO_PARTS,
        lacks_operations=_IGNORES_PARTS,
    ),
    "swift-2.29": SwiftRelease(
        image=_of_ubuntu("swift-2.29", "jammy"),
        settings_of="swift-2.26",
        lacks=frozenset({"etag_validate_pct"}),
        s3_lacks=_NO_CHUNKS,
        s3_lacks_operations=_NO_PARTS,
        lacks_operations=_IGNORES_PARTS,
    ),
    "swift-2.30": SwiftRelease(
        image=RootImage(
            name="swift-2.30",
            suite="bookworm",
            packages=_PACKAGES,
            version_packages=_VERSION_PACKAGES,
        ),
        lacks=frozenset({"etag_validate_pct"}),
        s3_lacks=_NO_CHUNKS,
        s3_lacks_operations=_NO_PARTS,
        lacks_operations=_IGNORES_PARTS,
    ),
    "swift-2.33": SwiftRelease(
        image=_of_ubuntu("swift-2.33", "noble"),
        settings_of="swift-2.30",
        lacks=frozenset({"etag_validate_pct"}),
        s3_lacks=_NO_CHUNKS,
        s3_lacks_operations=_NO_PARTS,
        lacks_operations=_IGNORES_PARTS,
    ),
    "swift-2.35": SwiftRelease(
        image=RootImage(
            name="swift-2.35",
            suite="trixie",
            packages=_PACKAGES,
            version_packages=_VERSION_PACKAGES,
        ),
        s3_lacks=_ALL,
        s3_lacks_operations=_NO_CONDITIONS,
    ),
    "swift-2.38": SwiftRelease(
        image=RootImage(
            name="swift-2.38",
            suite="sid",
            packages=_PACKAGES,
            version_packages=_VERSION_PACKAGES,
            # sid changes daily; a mirror's copy may be older than its own expiry date.
            options=('--aptopt=Acquire::Check-Valid-Until "false"',),
        ),
        s3_lacks=_ALL,
        s3_lacks_operations=_NO_TAGS,
    ),
}
"""Releases of Swift by the name that layouts use."""
