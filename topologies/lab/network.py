"""The network between the hosts: a bridge in a namespace of its own, a veth pair a host, and the
rate of each NIC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.topologies.lab.command import command

PREFIX = "10.80.0"
"""Every deployment has this network: namespaces keep them apart, and addresses are the same in
every run.
"""
FIRST = 10
"""The first host's address ends in this."""
BRIDGE = "br0"
NIC = "eth0"

SMALLEST_BURST_BYTES = 128 * 1024
BURST_S = 0.004
"""A token bucket holds what the rate passes in one tick of a 250 Hz kernel; 0.1, 1 and 10 Gbit/s
were reached to 96 % and 90 %.
"""
QUEUE_MS = 50
"""What may wait in the bucket's queue, as time at its rate."""


@dataclass(frozen=True)
class Port:
    """A host on the switch. `pid` is the host's first process."""

    index: int
    pid: int
    address: str

    @property
    def device(self) -> str:
        """The bridge's end of the pair; a host's name may be longer than the 15 characters of a
        device's.
        """
        return f"port{self.index}"


def address(index: int) -> str:
    """The address of the host at `index` (from 0) of a hardware file."""
    return f"{PREFIX}.{FIRST + index}"


def switch_batch(ports: Sequence[Port], mtu: int) -> str:
    """What `ip -batch` is told in the switch's namespace: a bridge, and a pair for each port."""
    lines = [
        f"link add {BRIDGE} mtu {mtu} type bridge stp_state 0 forward_delay 0",
        f"link set {BRIDGE} up",
    ]
    for port in ports:
        lines.append(
            f"link add {port.device} mtu {mtu} type veth peer name {NIC} mtu {mtu} netns {port.pid}"
        )
        lines.append(f"link set {port.device} master {BRIDGE} up")
    return "\n".join(lines) + "\n"


def host_batch(port: Port) -> str:
    """What `ip -batch` is told in a host's namespace."""
    return f"link set lo up\naddr add {port.address}/24 dev {NIC}\nlink set {NIC} up\n"


def wire(switch_pid: int, ports: Sequence[Port], mtu: int) -> None:
    """Join hosts by the switch whose first process is `switch_pid`. Raises CommandFailed."""
    command(_inside(switch_pid, "ip", "-batch", "-"), stdin=switch_batch(ports, mtu))
    for port in ports:
        command(_inside(port.pid, "ip", "-batch", "-"), stdin=host_batch(port))


def burst_bytes(rate_bit_per_s: int) -> int:
    """Size of the token bucket for a rate."""
    return max(SMALLEST_BURST_BYTES, int(rate_bit_per_s / 8 * BURST_S))


def limit_argv(device: str, rate_bit_per_s: int) -> tuple[str, ...]:
    """The `tc` command that limits what leaves a device."""
    bucket = (
        "rate",
        f"{rate_bit_per_s}bit",
        "burst",
        f"{burst_bytes(rate_bit_per_s)}b",
        "latency",
        f"{QUEUE_MS}ms",
    )
    return ("tc", "qdisc", "replace", "dev", device, "root", "tbf", *bucket)


def limit(switch_pid: int, port: Port, rate_bit_per_s: int) -> None:
    """Limit a NIC in both directions: what the host sends at its end, what it receives at the
    bridge's. Raises CommandFailed.
    """
    command(_inside(port.pid, *limit_argv(NIC, rate_bit_per_s)))
    command(_inside(switch_pid, *limit_argv(port.device, rate_bit_per_s)))


def unlimit(switch_pid: int, port: Port) -> None:
    """Take the limit of a NIC off again. Raises CommandFailed."""
    for pid, device in ((port.pid, NIC), (switch_pid, port.device)):
        command(_inside(pid, "tc", "qdisc", "delete", "dev", device, "root"))


def read_limit(port: Port) -> str:
    """The queueing of a NIC by the kernel, such as `tbf rate 10Gbit burst 4998750b lat 50ms`.

    Raises CommandFailed.
    """
    told = " ".join(command(_inside(port.pid, "tc", "qdisc", "show", "dev", NIC, "root")).split())
    # The handle and the count of references are the kernel's own business: equal limits must read
    # alike.
    return re.sub(r"qdisc (\w+) \w+: root refcnt \d+", r"\1", told)


def _inside(pid: int, *argv: str) -> list[str]:
    # This machine's own ip and tc in the other's network namespace: images need not have them.
    return ["nsenter", "--target", str(pid), "--net", "--", *argv]
