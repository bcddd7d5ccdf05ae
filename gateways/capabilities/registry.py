"""All capabilities by their keys, in the order in which they are asked and shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.common.registry import Registry
from weighbridge.gateways.capabilities import (
    access,
    buckets,
    checksums,
    large,
    listing,
    multipart,
    objects,
)
from weighbridge.gateways.capabilities.capability import Capability

MODULES: Final = (objects, multipart, listing, checksums, large, access, buckets)


def _declared() -> Iterator[Capability]:
    for module in MODULES:
        for value in vars(module).values():
            for member in value if isinstance(value, tuple) else (value,):
                if isinstance(member, Capability):
                    yield member


CAPABILITIES: Registry[Capability] = Registry(
    "weighbridge.capabilities",
    "capability",
    own={each.key: each for each in sorted(_declared(), key=lambda each: each.api)},
    kind=Capability,
)
"""Another package adds its own by an entry point whose name is the capability's key."""
