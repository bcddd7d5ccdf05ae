"""All capabilities by their keys, in the order in which they are asked and shown."""

from __future__ import annotations

from typing import Final

from weighbridge.common.registry import Registry
from weighbridge.gateways.capabilities import (
    access,
    buckets,
    checksums,
    large,
    listing,
    objects,
)
from weighbridge.gateways.capabilities.capability import Capability

MODULES: Final = (objects, large, listing, checksums, access, buckets)
GROUPS: Final = (
    *("objects", "ranges", "conditions", "account", "multipart", "listing", "checksums"),
    *("aws-chunked", "large objects", "bulk", "versions", "access", "buckets", "encryption"),
)


def _declared() -> list[Capability]:
    declared = []
    for module in MODULES:
        for value in vars(module).values():
            members = value if isinstance(value, tuple) else (value,)
            declared += [member for member in members if isinstance(member, Capability)]
    return sorted(declared, key=lambda each: (each.api, GROUPS.index(each.group)))


CAPABILITIES: Registry[Capability] = Registry(
    "weighbridge.capabilities",
    "capability",
    own={each.key: each for each in _declared()},
    kind=Capability,
)
"""Another package adds its own by an entry point whose name is the capability's key."""
