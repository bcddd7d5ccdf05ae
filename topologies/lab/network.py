"""The network between hosts: a bridge in its own namespace, a veth pair a host, and NIC rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.common.errors import CommandFailed
from weighbridge.topologies.local_command import command

PREFIX = "10.80.0"
"""The network of every deployment: namespaces separate them, and addresses never change."""
FIRST = 10
"""The last number of the first host's address."""
BRIDGE = "br0"
NIC = "eth0"

SMALLEST_BURST_BYTES = 128 * 1024
BURST_S = 0.004
"""A token bucket holds what the rate passes in one tick of a 250 Hz kernel: 90 to 96 % of 0.1, 1
and 10 Gbit/s were reached.
"""
QUEUED_PACKETS = 1000
"""The least that a delay holds, as netem's own default."""
SMALLEST_PACKET_BYTES = 1000
"""A delay must hold all packets that its rate sends meanwhile, twice over: smaller ones are rare at
a full rate.
"""
QUEUE_MS = 50
"""The length of the bucket's queue, as time at its rate."""


@dataclass(frozen=True)
class Port:
    """The port of the switch of the host at `index`. `pid` is the host's first process."""

    index: int
    pid: int

    @property
    def device(self) -> str:
        """The bridge's end of the pair: a host's name may be too long for a device's (15)."""
        return f"port{self.index}"

    @property
    def mac(self) -> str:
        """The NIC's own address, the same after a power cut: others remember it."""
        return f"02:00:00:00:{self.index >> 8:02x}:{self.index & 255:02x}"


def address(index: int) -> str:
    """The address of the host at `index` (from 0) of a hardware file."""
    return f"{PREFIX}.{FIRST + index}"


def switch_batch(ports: Sequence[Port], mtu: int) -> str:
    """Input of `ip -batch` in the switch's namespace: a pair for each port."""
    lines = []
    for port in ports:
        peer = f"peer name {NIC} mtu {mtu} address {port.mac} netns {port.pid}"
        lines.append(f"link add {port.device} mtu {mtu} type veth {peer}")
        lines.append(f"link set {port.device} master {BRIDGE} up")
    return "\n".join(lines) + "\n"


def host_batch(port: Port) -> str:
    """Input of `ip -batch` in a host's namespace."""
    return f"link set lo up\naddr add {address(port.index)}/24 dev {NIC}\nlink set {NIC} up\n"


def bridge(switch_pid: int, mtu: int) -> None:
    """Make the bridge of the switch whose first process is `switch_pid`. Raises CommandFailed."""
    batch = f"link add {BRIDGE} mtu {mtu} type bridge stp_state 0 forward_delay 0\n"
    command(_inside(switch_pid, "ip", "-batch", "-"), stdin=f"{batch}link set {BRIDGE} up\n")


def wire(switch_pid: int, ports: Sequence[Port], mtu: int) -> None:
    """Connect hosts to the switch. Raises CommandFailed."""
    command(_inside(switch_pid, "ip", "-batch", "-"), stdin=switch_batch(ports, mtu))
    for port in ports:
        command(_inside(port.pid, "ip", "-batch", "-"), stdin=host_batch(port))


def unplug(switch_pid: int, port: Port) -> None:
    """Remove a host's pair at once: what it still sends reaches nobody. Raises CommandFailed."""
    command(_inside(switch_pid, "ip", "link", "delete", port.device))


def plug(switch_pid: int, port: Port, *, on: bool) -> None:
    """Have a host's link up or down; addresses and connections stay. Raises CommandFailed."""
    command(_inside(switch_pid, "ip", "link", "set", port.device, "up" if on else "down"))


def burst_bytes(rate_bit_per_s: int) -> int:
    """Size of the token bucket for a rate."""
    return max(SMALLEST_BURST_BYTES, int(rate_bit_per_s / 8 * BURST_S))


def limit_argv(
    device: str, rate_bit_per_s: int, parent: Sequence[str] = ("root",)
) -> tuple[str, ...]:
    """The `tc` command that limits what a device sends."""
    rate = ("rate", f"{rate_bit_per_s}bit", "burst", f"{burst_bytes(rate_bit_per_s)}b")
    return (
        *("tc", "qdisc", "replace", "dev", device, *parent, "tbf"),
        *(*rate, "latency", f"{QUEUE_MS}ms"),
    )


def delay_argv(device: str, delay_s: float, rate_bit_per_s: int | None) -> tuple[str, ...]:
    """The `tc` command that delays what a device sends, and holds what is on its way meanwhile."""
    packets = QUEUED_PACKETS
    if rate_bit_per_s is not None:
        packets = max(packets, int(2 * delay_s * rate_bit_per_s / 8 / SMALLEST_PACKET_BYTES))
    return (
        *("tc", "qdisc", "replace", "dev", device, "root", "handle", "1:", "netem"),
        *("limit", str(packets), "delay", f"{delay_s * 1e6:.0f}us"),
    )


def limit(switch_pid: int, port: Port, rate_bit_per_s: int | None, delay_s: float = 0) -> None:
    """Limit and delay what a NIC's host sends; the bridge limits the rest. Raises CommandFailed."""
    if delay_s:
        command(_inside(port.pid, *delay_argv(NIC, delay_s, rate_bit_per_s)))
    if rate_bit_per_s is not None:
        parent = ("parent", "1:1") if delay_s else ("root",)
        command(_inside(port.pid, *limit_argv(NIC, rate_bit_per_s, parent)))
        command(_inside(switch_pid, *limit_argv(port.device, rate_bit_per_s)))


def unlimit(switch_pid: int, port: Port, rate_bit_per_s: int | None) -> None:
    """Remove what `limit` set. Raises CommandFailed."""
    command(_inside(port.pid, "tc", "qdisc", "delete", "dev", NIC, "root"))
    if rate_bit_per_s is not None:
        command(_inside(switch_pid, "tc", "qdisc", "delete", "dev", port.device, "root"))


def read_limit(port: Port) -> str:
    """A NIC's queue, such as `tbf rate 10Gbit burst 4998750b lat 50ms`. Raises CommandFailed."""
    shown = " ".join(command(_inside(port.pid, "tc", "qdisc", "show", "dev", NIC)).split())
    # Without handles and reference count: equal limits must read alike.
    return re.sub(r"qdisc (\w+) \w+: (root refcnt \d+|parent 1:1)", r"\1", shown)


def can_delay() -> bool:
    """Whether this kernel has netem: tried in a network namespace that ends with the trial."""
    trial = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    try:
        command(["unshare", "--net", "--", *trial])
    except CommandFailed:
        return False
    return True


def _inside(pid: int, *argv: str) -> list[str]:
    # This machine's ip and tc in the other network namespace: images need not have them.
    return ["nsenter", "--target", str(pid), "--net", "--", *argv]
