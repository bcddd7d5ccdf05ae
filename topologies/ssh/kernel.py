"""Kernel settings and MTU of real hosts: looked at, set where the hardware file says so, and put
back.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.there import ask
from weighbridge.topologies.sysctls import RECORDED


class KernelState(Record):
    """A host's kernel and machine, and its NIC on the network between the hosts, as they were
    found.
    """

    kernel: str
    boot: str
    """Which boot of the host it is: what is set is forgotten with it."""
    cpu: str
    """Model; empty where the kernel does not say."""
    cpus: int
    memory_bytes: int
    nic: str
    """The device that has the host's address; empty where none has."""
    mtu: int | None = None
    speed_mbit_s: int | None = None
    """What the NIC says of itself; None where it says nothing."""
    sysctls: dict[str, str | None]
    """Those that the hardware names; None where this kernel has no such setting."""
    recorded: dict[str, str] = Field(default_factory=dict)
    """Those that are published with a result, as far as this kernel has them, and those that the
    hardware names.
    """


class Former(Record):
    """What was changed, with the values that it had before."""

    boot: str = ""
    """Which boot of the host it was of."""
    nic: str = ""
    mtu: int | None = None
    """None: it was not changed."""
    sysctls: dict[str, str] = Field(default_factory=dict)


def look(shell: Shell, hardware: Hardware) -> KernelState:
    """Look at a host; changes nothing. Raises TargetError."""
    names = list(dict.fromkeys((*RECORDED, *hardware.settings)))
    found: dict[str, Any] = ask(shell, "kernel", "look", shell.address, given=names)
    values: dict[str, str | None] = found["sysctls"]
    found["sysctls"] = {name: values[name] for name in hardware.settings}
    return KernelState.model_validate(
        {**found, "recorded": {name: value for name, value in values.items() if value is not None}}
    )


def faults(shell: Shell, hardware: Hardware, looked: KernelState) -> tuple[str, ...]:
    """Why a host cannot be used as the hardware says, in sentences; empty when it can."""
    where = f"{shell.name} ({shell.address})"
    found = []
    if not looked.nic:
        found.append(
            f"{where}: no NIC of it has the address {shell.address}: `address` is that on the "
            "network between the hosts"
        )
    elif looked.mtu != hardware.network.mtu and not hardware.network.set:
        found.append(
            f"{where}: {looked.nic} has an MTU of {looked.mtu}, and hardware {hardware.name!r} "
            f"says {hardware.network.mtu}. "
            f"Say `network: {{mtu: {looked.mtu}}}`, or `set: true` beside it to have it changed "
            "while a deployment stands"
        )
    unknown = [name for name, value in looked.sysctls.items() if value is None]
    if unknown:
        of = " (of profile study-2014)" if hardware.profile is not None else ""
        found.append(
            f"{where}: Linux {looked.kernel} has no setting {', '.join(unknown)}{of}. Leave it "
            "out: with a profile, write the rest "
            "of it one by one below `sysctl`"
        )
    return tuple(found)


def former(hardware: Hardware, looked: KernelState) -> Former:
    """What `apply` would change, with its values now: what has the wanted value already is not
    among it.
    """
    wanted = hardware.settings
    sysctls = {
        name: value
        for name, value in looked.sysctls.items()
        if value is not None and value.split() != wanted[name].split()
    }
    changes = hardware.network.set and looked.mtu != hardware.network.mtu
    return Former(
        boot=looked.boot,
        nic=looked.nic if changes else "",
        mtu=looked.mtu if changes else None,
        sysctls=sysctls,
    )


def apply(shell: Shell, hardware: Hardware, before: Former) -> None:
    """Set what `former` says is to be changed, and read it back.

    Raises TargetError where the kernel has not taken it.
    """
    wanted = hardware.settings
    _set(
        shell,
        Former(
            boot=before.boot,
            nic=before.nic,
            mtu=hardware.network.mtu if before.mtu is not None else None,
            sysctls={name: wanted[name] for name in wanted if name in before.sysctls},
        ),
    )


def restore(shell: Shell, before: Former) -> None:
    """Put back what was changed, unless the host was booted since.

    Raises TargetError naming what was not.
    """
    # In the reverse order: a maximum was raised before a default that is above the former one.
    _set(shell, before.model_copy(update={"sysctls": dict(reversed(list(before.sysctls.items())))}))


def _set(shell: Shell, values: Former) -> None:
    if values.mtu is None and not values.sysctls:
        return
    failed: list[str] = ask(shell, "kernel", "set", given=values.model_dump(mode="json"))
    if failed:
        raise TargetError("\n".join(f"{shell.name} ({shell.address}): {what}" for what in failed))
