"""A probe: a program on a host that prints a daemon's counters every second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.common.counters import DaemonCounters
from weighbridge.common.host import Host


@dataclass(frozen=True)
class Probe:
    """A program to run on a host while a step is measured.

    The program prints one line of JSON at once and then one every second, until its stdin closes: a
    flat object of numbers by name, such as `{"qlen": 3, "req": 12345}`. Growing counters are
    printed as they are; the reader computes rates. A second in which the daemon does not answer has
    no line. Errors go to stderr.
    """

    host: Host
    name: str
    """The daemon, such as radosgw.gateway-1 or osd.0: unique in a deployment."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    counters: DaemonCounters | None = None
    """Which counters are shown for a step, over all daemons of this kind; all of them are kept."""
