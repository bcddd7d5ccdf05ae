"""What a Swift deployment is: release, placement and settings."""

from __future__ import annotations

from weighbridge.common.record import Record
from weighbridge.gateways.front import Behind, Front, front_of
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings

_HEALTH_PATH = "/healthcheck"
"""Answered by one of the first filters of the pipeline, without asking anybody."""


class SwiftCluster(Record):
    """Proxies, storage hosts and perhaps a front, as a layout plans them."""

    release: str
    place: SwiftPlacement
    settings: SwiftSettings

    def front(self) -> Front | None:
        """The front as the layout says it."""
        return front_of(self.place, self.settings, Behind(health_path=_HEALTH_PATH))
