"""The real hosts of one deployment: limited, described, and given back."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.common.host import Host
from weighbridge.gateways.together import together
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited
from weighbridge.topologies.ssh import ending, kernel
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.connection import EventLoop, SshConnection
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.host import SshHost
from weighbridge.topologies.ssh.kernel import KernelState

RECONNECT_S = 8.0
"""How long to try to reach a lost host again before it is left as it is."""
HURRY_S = 5.0
"""What hosts have to end what they do after a second signal."""


@dataclass
class HostSetup:
    """What is known of one host while it is being set up."""

    connection: SshConnection
    cgroup: int = 2
    """The version of its cgroups."""
    state: KernelState | None = None
    disks: tuple[RealDisk, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    """Further facts about it."""
    claim: ClaimedHost | None = None
    """The claim on it; None: there is none (any more)."""
    host: SshHost | None = None


class SshHosts(Hosts):
    """Real hosts that are claimed for a deployment; `add_started` offers them by name."""

    def __init__(
        self, deployment: str, hardware: Hardware, loop: EventLoop, setups: Mapping[str, HostSetup]
    ) -> None:
        self.deployment = deployment
        self.hosts: dict[str, Host] = {}
        self._hardware = hardware
        self._loop = loop
        self._setups = setups

    def add_started(self) -> None:
        """Offer hosts by name: all are started."""
        self.hosts.update(
            {name: one.host for name, one in self._setups.items() if one.host is not None}
        )

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        together([partial(self._limit, *one, what, lift=False) for one in self._setups.items()])

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        together([partial(self._limit, *one, what, lift=True) for one in self._setups.items()])

    def _limit(self, name: str, one: HostSetup, what: Collection[Limited], *, lift: bool) -> None:
        if one.host is None:
            return
        services, spec = one.host.services, self._hardware.hosts[name]
        disks, period_s = one.host.disks, self._hardware.cpu_period
        script = (
            services.unlimit(spec, disks, what)
            if lift
            else services.limit(spec, disks, what, period_s=period_s)
        )
        if script:
            one.connection.sh(script)

    def facts(self) -> Mapping[str, str]:
        facts = {"hosts": "real hosts over SSH", "mtu": str(self._hardware.network.mtu)}
        setups = self._setups.values()
        found = together([partial(_facts_of, one, self._hardware) for one in setups])
        for name, own in zip(self._setups, found, strict=True):
            facts |= {f"{key} {name}": value for key, value in own.items()}
        unaccounted = [
            name
            for name, one in self._setups.items()
            if one.cgroup == 1
            and any(disk.bandwidth or disk.iops for disk in self._hardware.hosts[name].disks)
        ]
        if unaccounted:
            facts["write-back"] = (
                f"{', '.join(unaccounted)}: cgroup version 1 does not charge write-back to the "
                "writer: what goes through the page cache is written at the disk's own rate"
            )
        return facts

    def close(self) -> None:
        if self._loop.closed:
            return
        setups = self._setups.values()
        errors = filter(None, together([partial(self._give_back, one) for one in setups]))
        message = "\n".join(error.message for error in errors)
        for one in setups:
            one.connection.close()
        if message:
            raise TargetError(
                message,
                advice="`weighbridge down --hardware FILE` removes what is left as soon as its "
                "host answers",
            )
        self._loop.close()

    def hurry(self) -> None:
        if not self._loop.closed:
            for one in self._setups.values():
                one.connection.give_up(HURRY_S)

    def _give_back(self, one: HostSetup) -> WeighbridgeError | None:
        if one.claim is None:
            return None
        shell = one.connection
        faults: list[WeighbridgeError] = []
        try:
            if one.host is not None:
                one.host.disconnect()
        except WeighbridgeError as error:
            faults.append(error)
        except OSError as error:
            faults.append(TargetError(f"{shell.where}: its logs cannot be kept: {error}"))
        try:
            if shell.lost:
                shell.renew(RECONNECT_S)
            ending.give_back(shell, one.claim)
            one.claim = None
        except WeighbridgeError as error:
            # If the host is lost, this error mostly repeats the one about its logs.
            faults = [*(fault for fault in faults if not shell.lost), error]
        if not faults:
            return None
        return TargetError("\n".join(fault.message for fault in faults))


def _facts_of(one: HostSetup, hardware: Hardware) -> dict[str, str]:
    facts = dict(one.facts)
    if one.state is not None:
        state = one.state
        speed = "" if state.speed_mbit_s is None else f", {state.speed_mbit_s} Mbit/s"
        memory = f"{state.memory_bytes / 2**30:.1f} GiB"
        facts["kernel"] = state.kernel
        facts["machine"] = f"{state.cpu or 'CPU of unknown model'}, {state.cpus} CPUs, {memory}"
        facts["nic"] = f"{state.nic}{speed}"
    if one.disks:
        facts["disks"] = "; ".join(map(str, one.disks))
    former = (one.claim.former if one.claim is not None else None) or kernel.FormerSettings()
    now = kernel.look(one.connection, hardware)
    was = {name: f" (was {value})" for name, value in former.sysctls.items()}
    facts["sysctl"] = "; ".join(
        f"{name} {value}{was.get(name, '')}" for name, value in now.recorded.items()
    )
    facts["mtu"] = str(now.mtu) if former.mtu is None else f"{now.mtu} (was {former.mtu})"
    if one.host is not None:
        services, shell = one.host.services, one.connection
        script = 'test -e /sys/fs/cgroup/cgroup.controllers -o -e "$1" || echo missing'
        if shell.sh(script, f"/sys/fs/cgroup/cpuacct/{services.group}").stdout:
            facts["cpu"] = "of the entire host: its kernel does not count it for a slice"
        facts["limits"] = limits_read(shell.sh(services.read_limits()).stdout, one.disks)
    return facts


def limits_read(text: str, disks: Sequence[RealDisk]) -> str:
    """Limits as the kernel reports them, with names of devices instead of numbers."""
    for disk in disks:
        text = re.sub(rf"\b{re.escape(disk.device)}\b", disk.path, text)
    return "; ".join(text.splitlines())
