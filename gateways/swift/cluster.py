"""What a Swift deployment is: release, placement and settings."""

from __future__ import annotations

from weighbridge.common.record import Record
from weighbridge.gateways.front import Front
from weighbridge.gateways.swift.settings import Place, Settings

_HEALTH_PATH = "/healthcheck"
"""Answered by one of the first filters of the pipeline, without asking anybody."""


class Cluster(Record):
    """Proxies, storage hosts and perhaps a front, as a layout plans them."""

    release: str
    place: Place
    settings: Settings

    def front(self) -> Front | None:
        """The front as the layout says it."""
        if self.place.haproxy is None:
            return None
        from weighbridge.gateways.haproxy.haproxy import Haproxy  # noqa: PLC0415 - wanted only where there is one

        return Haproxy(self.settings.haproxy, health_path=_HEALTH_PATH)
