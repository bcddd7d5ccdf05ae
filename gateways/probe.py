"""A probe: a program on a host that tells every second what a daemon there counts of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.host import Host


@dataclass(frozen=True)
class Probe:
    """What is to be run on which host while a step is measured.

    The program prints a line of JSON at once and then one every second, until its stdin ends: a
    flat object of numbers by name, such as `{"qlen": 3, "req": 12345}`. Names of counters that only
    grow end with nothing; what they grew by in a second is for the reader to find. A line it cannot
    fill (its daemon is busy) it leaves out; its own errors go to stderr.
    """

    host: Host
    name: str
    """What it tells about, such as radosgw.gateway-1 or osd.0: unique in a deployment."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    counters: DaemonCounters | None = None
    """What of its numbers is shown of a step, of all daemons of its kind; all of them are kept."""
