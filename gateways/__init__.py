"""WHO is weighed: kinds of gateway, each with its services, configuration, users and checks.

`KINDS` names them. A kind's module is imported when it is first asked for, so that the small programs of this room
(`python -m weighbridge.gateways.ports`, `python -m weighbridge.gateways.verify`) start without the records they do not need.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.gateways.gateway import Gateway


class _Kinds(Mapping[str, "type[Gateway]"]):
    """Kinds of gateway by name; each value is imported from `module:class` on first use."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)

    def __getitem__(self, kind: str) -> type[Gateway]:
        module, name = self._places[kind].split(":")
        found: type[Gateway] = getattr(importlib.import_module(module), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


KINDS: Mapping[str, type[Gateway]] = _Kinds(
    {
        "rgw": "weighbridge.gateways.rgw.rgw:Rgw",
        "swift": "weighbridge.gateways.swift.swift:Swift",
        "existing": "weighbridge.gateways.existing.existing:Existing",
        "null": "weighbridge.gateways.null.null:Null",
    }
)
"""Every kind of gateway by the name layouts use."""

__all__ = ["KINDS"]
