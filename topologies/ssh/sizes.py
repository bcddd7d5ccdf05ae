"""The size of real hosts, asked of them before anything is started: settings follow it."""

from __future__ import annotations

from functools import partial
from typing import Final

from weighbridge.common.errors import TargetError
from weighbridge.topologies.hardware import Hardware, MachineSize
from weighbridge.topologies.loader import unsized
from weighbridge.topologies.ssh import kernel, leftovers
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.kernel import KernelState

_ROUGH_FROM_BYTES: Final = 4 * 2**30
_STEP_BYTES: Final = 64 * 2**20


def asked(hardware: Hardware) -> Hardware:
    """The hardware with sizes of all hosts but clients, asked if missing. Raises TargetError."""
    unknown = unsized(hardware)
    if not unknown:
        return hardware
    with leftovers.shells(hardware) as shells:
        found, failed = leftovers.attempt_all(
            {name: partial(_ask, shells[name], hardware) for name in unknown}
        )
    if failed:
        raise TargetError("\n".join(str(error) for error in failed.values()))
    hosts = {
        name: spec.model_copy(update={"machine": found[name]}) if name in found else spec
        for name, spec in hardware.hosts.items()
    }
    return hardware.model_copy(update={"hosts": hosts})


def size_of(state: KernelState) -> MachineSize:
    """The size of a host. Memory is rounded down, since each kernel keeps a little less or more to
    itself, which would make another run of it.
    """
    step = 2**30 if state.memory_bytes >= _ROUGH_FROM_BYTES else _STEP_BYTES
    return MachineSize(cpus=state.cpus, memory=state.memory_bytes // step * step)


def _ask(shell: SshConnection, hardware: Hardware) -> MachineSize:
    shell.open()
    return size_of(kernel.look(shell, hardware))
