"""Releases of Swift, and how they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pydantic import Field

from weighbridge.common.document import did_you_mean
from weighbridge.common.endpoint import S3Way
from weighbridge.common.host import Host
from weighbridge.gateways.front import store_image
from weighbridge.gateways.gateway import KnownRelease
from weighbridge.gateways.swift.settings import SwiftSettings


class SwiftRelease(KnownRelease):
    """A release of Swift as packaged by Debian or Ubuntu."""

    lacks_operations: Mapping[str, str] = Field(default_factory=dict)
    """Operations of suites that its Swift API does not do, and what it does instead."""


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


def _release(name: str, suite: str, **known: Any) -> SwiftRelease:
    return SwiftRelease(image=store_image("swift", name, suite), **known)


_before_34: Final = partial(
    _release,
    lacks=frozenset({"etag_validate_pct"}),
    s3_lacks=_NO_CHUNKS,
    s3_lacks_operations=_NO_PARTS,
    lacks_operations=_IGNORES_PARTS,
)
_KNOWN: Final = (
    _before_34("swift-2.26", "bullseye"),
    _before_34("swift-2.29", "jammy", settings_of="swift-2.26"),
    _before_34("swift-2.30", "bookworm"),
    _before_34("swift-2.33", "noble", settings_of="swift-2.30"),
    _release("swift-2.35", "trixie", s3_lacks=_ALL, s3_lacks_operations=_NO_CONDITIONS),
    _release("swift-2.38", "sid", s3_lacks=_ALL, s3_lacks_operations=_NO_TAGS),
)
RELEASES: Final = {one.image.name: one for one in _KNOWN}
"""Releases of Swift by the name that layouts use."""


_TRY: Final = """
import json, sys
from pyeclib import ec_iface
order, why = json.load(sys.stdin), ""
known = sorted(ec_iface.VALID_EC_TYPES)
if order["type"] in known:
    try:
        ec_iface.ECDriver(k=order["k"], m=order["m"], ec_type=order["type"])
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
print(json.dumps({"known": known, "why": why}))
"""
_POLICY: Final = """
import json
from swift.common.storage_policy import POLICIES
one = POLICIES.default
print(json.dumps({name: getattr(one, name) for name in (
    "name", "ec_type", "ec_ndata", "ec_nparity", "ec_segment_size", "quorum")}))
"""


def code_faults(host: Host, settings: SwiftSettings) -> list[str]:
    """Why the host's PyECLib cannot code as the settings say, by line. Raises CommandFailed."""
    ec = settings.ec
    if ec is None:
        return []
    order = json.dumps({"type": ec.type, "k": ec.k, "m": ec.m})
    found = json.loads(host.run(["python3", "-c", _TRY], stdin=order).stdout)
    known = [str(name) for name in found["known"]]
    if ec.type not in known:
        return [f"settings.ec.type: no {ec.type!r}{did_you_mean(ec.type, known)}"]
    if found["why"]:
        return [f"settings.ec: {ec.type} cannot do k {ec.k}, m {ec.m}: {found['why']}"]
    return []


def policy_facts(host: Host, settings: SwiftSettings) -> dict[str, str]:
    """What Swift itself on this host reads of the policy of new containers; nothing without
    erasure coding. Raises CommandFailed.
    """
    if settings.ec is None:
        return {}
    one = json.loads(host.run(["python3", "-c", _POLICY]).stdout)
    count = one["ec_ndata"] + one["ec_nparity"]
    apart = "a zone" if settings.ec.failure_domain == "host" else "a disk"
    return {
        "replicas": f"erasure coded, {one['ec_ndata']} data and {one['ec_nparity']} parity "
        f"fragments ({one['ec_type']}, segments of {one['ec_segment_size']} bytes), each in "
        f"{apart} of its own; accounts and containers {settings.replicas} replicas; rings of "
        f"2^{settings.part_power} partitions",
        "acknowledgement": f"a write is acknowledged when {one['quorum']} of {count} fragments "
        "have been synced to disk (quorum of the policy); the others are waited for "
        f"{settings.proxy.post_quorum_timeout:g} s",
    }
