"""The real hosts of one deployment: limited, told of, and given back."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.common.host import Host
from weighbridge.gateways.together import together
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited
from weighbridge.topologies.ssh import ending, kernel
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.event_loop import EventLoop
from weighbridge.topologies.ssh.host import SshHost
from weighbridge.topologies.ssh.kernel import KernelState

AGAIN_S = 8.0
"""How long a host that stopped answering is tried once more before it is left as it is."""


@dataclass
class Taken:
    """One host on its way: what is known of it so far."""

    connection: SshConnection
    systemd: bool = False
    cgroup: int = 2
    """Version of its cgroups."""
    looked: KernelState | None = None
    disks: tuple[RealDisk, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    """More of what it is, for facts."""
    claim: ClaimedHost | None = None
    """What was claimed there; None: nothing, or it was given back."""
    host: SshHost | None = None


class SshHosts(Hosts):
    """Real hosts that are claimed for a deployment; some may be raised yet."""

    def __init__(
        self, deployment: str, hardware: Hardware, loop: EventLoop, taken: Mapping[str, Taken]
    ) -> None:
        self.deployment = deployment
        self.hosts: dict[str, Host] = {}
        self._hardware = hardware
        self._loop = loop
        self._taken = taken

    def stand(self) -> None:
        """All hosts are raised: from now on they can be asked for by name."""
        self.hosts.update(
            {name: one.host for name, one in self._taken.items() if one.host is not None}
        )

    # limits
    # ------------------------------------------------------------------------------------------------------------------

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Put the CPU and disk limits of the hardware on.

        A NIC is what it is. Raises CommandFailed or TargetError.
        """
        together(
            [partial(self._limit, name, one, what, lift=False) for name, one in self._taken.items()]
        )

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Take limits off again that `limit` put on. Raises CommandFailed or TargetError."""
        together(
            [partial(self._limit, name, one, what, lift=True) for name, one in self._taken.items()]
        )

    def _limit(self, name: str, one: Taken, what: Collection[Limited], *, lift: bool) -> None:
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

    # facts
    # -------------------------------------------------------------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        """What the hosts are, kernel settings and limits as they are read back.

        Raises CommandFailed or TargetError.
        """
        facts = {"hosts": "real hosts over SSH", "mtu": str(self._hardware.network.mtu)}
        for name, told in zip(
            self._taken,
            together([partial(_facts_of, one, self._hardware) for one in self._taken.values()]),
            strict=True,
        ):
            facts |= {f"{what} {name}": words for what, words in told.items()}
        one = [
            name
            for name, host in self._taken.items()
            if host.cgroup == 1 and any(map(_limits, self._hardware.hosts[name].disks))
        ]
        if one:
            facts["write-back"] = (
                f"{', '.join(one)}: cgroup version 1 does not charge write-back to who wrote: "
                "what goes through the page cache "
                "is written at the disk's own rate"
            )
        plain = [name for name, one in self._taken.items() if not one.systemd]
        if plain:
            facts["hosts without systemd"] = (
                f"{', '.join(plain)}: their CPU and memory are those of the whole host"
            )
        return facts

    # taking away
    # -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give all hosts back.

        May be called more than once. Raises TargetError naming what stayed and where.
        """
        if self._loop.closed:
            return
        faults = [
            error
            for error in together([partial(self._give_back, one) for one in self._taken.values()])
            if error
        ]
        for one in self._taken.values():
            one.connection.close()
        if not faults:
            self._loop.close()
        else:
            advice = (
                "what stayed is taken away by `weighbridge down --hardware FILE` as soon as "
                "its host answers"
            )
            raise TargetError("\n".join(error.message for error in faults), advice=advice)

    def _give_back(self, one: Taken) -> WeighbridgeError | None:
        if one.claim is None:
            return None
        shell = one.connection
        faults: list[WeighbridgeError] = []
        try:
            if one.host is not None:
                one.host.let_go()
        except WeighbridgeError as error:
            faults.append(error)
        except OSError as error:
            faults.append(TargetError(f"{shell.where}: its logs cannot be kept here: {error}"))
        try:
            if shell.lost:
                shell.renew(AGAIN_S)
            ending.give_back(shell, one.claim)
            one.claim = None
        except WeighbridgeError as error:
            # What kept its logs from being brought is most often what is told now, and is told
            # once.
            faults = [*(fault for fault in faults if not shell.lost), error]
        if not faults:
            return None
        return TargetError("\n".join(fault.message for fault in faults))


def _facts_of(one: Taken, hardware: Hardware) -> dict[str, str]:
    told = dict(one.words)
    if one.looked is not None:
        look = one.looked
        speed = "" if look.speed_mbit_s is None else f", {look.speed_mbit_s} Mbit/s"
        told["kernel"] = look.kernel
        told["machine"] = (
            f"{look.cpu or 'CPU of unknown model'}, {look.cpus} CPUs, "
            f"{look.memory_bytes / 2**30:.1f} GiB"
        )
        told["nic"] = f"{look.nic}{speed}"
    if one.disks:
        told["disks"] = "; ".join(map(str, one.disks))
    former = (
        one.claim.former
        if one.claim is not None and one.claim.former is not None
        else kernel.Former()
    )
    now = kernel.look(one.connection, hardware)
    was = {name: f" (was {value})" for name, value in former.sysctls.items()}
    told["sysctl"] = "; ".join(
        f"{name} {value}{was.get(name, '')}" for name, value in now.recorded.items()
    )
    told["mtu"] = str(now.mtu) if former.mtu is None else f"{now.mtu} (was {former.mtu})"
    if one.host is not None and one.systemd:
        account = f"/sys/fs/cgroup/cpuacct/{one.host.services.group}"
        script = 'test -e /sys/fs/cgroup/cgroup.controllers -o -e "$1" || echo whole'
        if one.connection.sh(script, account).stdout:
            told["cpu"] = (
                "its CPU is that of the whole host: its kernel does not count it for a slice"
            )
        told["limits"] = limits_read(
            one.connection.sh(one.host.services.read_limits()).stdout, one.disks
        )
    return told


def _limits(disk: Disk) -> bool:
    return disk.bandwidth is not None or disk.iops is not None


def limits_read(text: str, disks: Sequence[RealDisk]) -> str:
    """Limits as the kernel tells them, with the names of devices in place of their numbers."""
    for disk in disks:
        text = re.sub(rf"\b{re.escape(disk.device)}\b", disk.path, text)
    return "; ".join(text.splitlines())
