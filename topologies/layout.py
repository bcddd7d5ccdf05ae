"""Layouts: which service of which gateway sits on which host of the hardware."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from weighbridge.common.record import Record


class Layout(Record):
    """A layout as in its file; its gateway checks `place` and `settings`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    """What tables, charts and reports call it."""
    about: str
    """One sentence, shown in reports."""
    gateway: str
    """Kind of gateway, such as rgw or swift."""
    release: str
    """Release of the gateway, such as ceph-16 or swift-2.30."""
    tuned: str = ""
    """What its settings were tuned for, and the evidence; empty: they are as shipped."""
    place: dict[str, Any]
    """Which service runs on which hosts: see the layouts of each gateway."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What affects results: see the layouts of each gateway."""
