"""Kernel settings and MTU of real hosts: read, changed as the hardware file says, and restored."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import RECORDED, Hardware
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.remote import run_remote


class KernelState(Record):
    """A host's kernel, machine and NIC on the network between hosts, as they were found."""

    kernel: str
    boot: str
    """The host's boot, with which its settings end."""
    cpu: str
    """The model; empty: the kernel does not say."""
    cpus: int
    memory_bytes: int
    nic: str
    """The device with the host's address; empty: there is none."""
    mtu: int | None = None
    speed_mbit_s: int | None = None
    """As the NIC reports it; None: it does not."""
    sysctls: dict[str, str | None]
    """Those that the hardware names; None: this kernel has no such setting."""
    recorded: dict[str, str] = Field(default_factory=dict)
    """Those that are published with a result or named by the hardware, if they exist."""


class FormerSettings(Record):
    """Changed settings with their values before."""

    boot: str = ""
    """The host's boot at that time."""
    nic: str = ""
    mtu: int | None = None
    """None: not changed."""
    sysctls: dict[str, str] = Field(default_factory=dict)


def look(shell: SshConnection, hardware: Hardware) -> KernelState:
    """Examine a host; changes nothing. Raises TargetError."""
    names = list(dict.fromkeys((*RECORDED, *hardware.settings)))
    found: dict[str, Any] = run_remote(shell, "kernel", "look", shell.address, given=names)
    values: dict[str, str | None] = found["sysctls"]
    found["sysctls"] = {name: values[name] for name in hardware.settings}
    recorded = {name: value for name, value in values.items() if value is not None}
    return KernelState.model_validate({**found, "recorded": recorded})


def faults(shell: SshConnection, hardware: Hardware, state: KernelState) -> tuple[str, ...]:
    """Why a host cannot be used as the hardware says, in sentences; empty: it can."""
    where = f"{shell.name} ({shell.address})"
    found = []
    if not state.nic:
        found.append(
            f"{where}: none of its NICs has the address {shell.address}: `address` is the one on "
            "the network between the hosts"
        )
    elif state.mtu != hardware.network.mtu and not hardware.network.set:
        found.append(
            f"{where}: {state.nic} has an MTU of {state.mtu}, and hardware {hardware.name!r} says "
            f"{hardware.network.mtu}. Write `network: {{mtu: {state.mtu}}}`, or add `set: true` to "
            "change it while a deployment is running"
        )
    machine = hardware.hosts[shell.name].machine
    if machine is not None and (machine.cpus > state.cpus or machine.memory > state.memory_bytes):
        found.append(
            f"{where}: it has {state.cpus} CPUs and {show_bytes(state.memory_bytes)} of memory, "
            f"not {machine.cpus} and {show_bytes(machine.memory)} as hardware {hardware.name!r} "
            "says: leave `machine` out, and it is asked"
        )
    unknown = [name for name, value in state.sysctls.items() if value is None]
    if unknown:
        of = " (of profile study-2014)" if hardware.profile is not None else ""
        found.append(
            f"{where}: Linux {state.kernel} has no setting {', '.join(unknown)}{of}. Leave it out: "
            "instead of a profile, write its other settings one by one below `sysctl`"
        )
    return tuple(found)


def former(hardware: Hardware, state: KernelState) -> FormerSettings:
    """The present values of settings that `apply` would change."""
    wanted = hardware.settings
    sysctls = {
        name: value
        for name, value in state.sysctls.items()
        if value is not None and value.split() != wanted[name].split()
    }
    set_mtu = hardware.network.set and state.mtu != hardware.network.mtu
    return FormerSettings(
        boot=state.boot,
        nic=state.nic if set_mtu else "",
        mtu=state.mtu if set_mtu else None,
        sysctls=sysctls,
    )


def apply(shell: SshConnection, hardware: Hardware, before: FormerSettings) -> None:
    """Set what `former` found different. Raises TargetError if the kernel reads otherwise."""
    wanted = hardware.settings
    mtu = hardware.network.mtu if before.mtu is not None else None
    sysctls = {name: wanted[name] for name in wanted if name in before.sysctls}
    _set(shell, before.model_copy(update={"mtu": mtu, "sysctls": sysctls}))


def restore(shell: SshConnection, before: FormerSettings) -> None:
    """Restore changed settings unless booted since. Raises TargetError for those that are not."""
    # In reverse order: a maximum was raised before a default above its former value.
    sysctls = dict(reversed(list(before.sysctls.items())))
    _set(shell, before.model_copy(update={"sysctls": sysctls}))


def _set(shell: SshConnection, values: FormerSettings) -> None:
    if values.mtu is None and not values.sysctls:
        return
    given = values.model_dump(mode="json")
    failed: list[str] = run_remote(shell, "kernel", "set", given=given)
    if failed:
        raise TargetError("\n".join(f"{shell.name} ({shell.address}): {what}" for what in failed))
