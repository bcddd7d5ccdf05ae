"""All capabilities by their keys, in the order in which they are asked and shown."""

from __future__ import annotations

from typing import Final

from weighbridge.common.registry import Registry
from weighbridge.gateways.capabilities import (
    s3_access,
    s3_buckets,
    s3_checksums,
    s3_chunked,
    s3_conditions,
    s3_listing,
    s3_multipart,
    s3_objects,
    swift_access,
    swift_bulk,
    swift_large,
    swift_listing,
    swift_objects,
)
from weighbridge.gateways.capabilities.capability import Capability

MODULES: Final = (
    *(s3_objects, s3_conditions, s3_multipart, s3_listing, s3_checksums, s3_chunked),
    *(s3_access, s3_buckets),
    *(swift_objects, swift_listing, swift_large, swift_bulk, swift_access),
)

CAPABILITIES: Registry[Capability] = Registry(
    "weighbridge.capabilities",
    "capability",
    own={
        one.key: one
        for module in MODULES
        for value in vars(module).values()
        for one in (value if isinstance(value, tuple) else (value,))
        if isinstance(one, Capability)
    },
    kind=Capability,
)
"""Another package adds its own by an entry point whose name is the capability's key."""
