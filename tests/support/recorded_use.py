"""Telemetry with known figures: what hosts used in each second of a step."""

from typing import Any

from weighbridge.gateways.apache.front import Apache
from weighbridge.gateways.haproxy.front import Haproxy
from weighbridge.gateways.rgw.monitor import SHOWN_OF_OSD, SHOWN_OF_RADOSGW
from weighbridge.gateways.swift.running_swift import MEMCACHED, STORAGE
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.telemetry import (
    DiskLimit,
    Head,
    HostLimits,
    HostSecond,
    Tail,
    Telemetry,
)

DAEMONS = (Haproxy.counters, Apache.counters, SHOWN_OF_RADOSGW, SHOWN_OF_OSD, MEMCACHED, STORAGE)
KEY = StepKey(layout="swift", api="swift", workload="w", workers=4, repeat=0)
GATEWAY = HostLimits(host="gateway-1", tier="gateway", cpus=0.6, memory_bytes=2**30, nic_bits_s=1e9)
STORE = HostLimits(
    host="store-1",
    tier="storage",
    cpus=0.3,
    disks=(DiskLimit(bandwidth_bytes_s=200_000_000, iops=1000),),
)
CLIENT = HostLimits(host="client-1", tier="client", cpus=0.5)
IDLE = {
    "read_bytes": 0,
    "written_bytes": 0,
    "reads": 0,
    "writes": 0,
    "busy_s": 0.0,
    "waited_s": 0.0,
}


def used(limits: HostLimits, seconds: int = 10, **each: Any) -> list[HostSecond]:
    """The same use in each second; of the machine, none by its conductor or kernel if not given."""
    if limits.tier == "machine":
        each = {"conductor_cpu_s": 0.0, "kernel_cpu_s": 0.0, **each}
    return [
        HostSecond(
            second=at,
            at_s=at + 1.0,
            span_s=1.0,
            phase="measure",
            host=limits.host,
            tier=limits.tier,
            **each,
        )
        for at in range(seconds)
    ]


def recorded(
    *seconds: list[HostSecond], hosts: tuple[HostLimits, ...] = (GATEWAY,), probes: Any = ()
) -> Telemetry:
    lines = tuple(line for one in seconds for line in one)
    head = Head(key=KEY, hosts=hosts, daemons=DAEMONS)
    return Telemetry(head=head, hosts=lines, probes=tuple(probes), tail=Tail())
