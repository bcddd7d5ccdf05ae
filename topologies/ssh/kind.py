"""Real hosts as a kind of hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware, HostKind, HostSpec, HostsRequest
from weighbridge.topologies.hosts import Hosts


class SshKind(HostKind):
    """The user's hosts, with the packages that are installed on them."""

    by_ssh: ClassVar[bool] = True

    def address(self, index: int, spec: HostSpec) -> str:
        return spec.address or ""

    def sized(self, hardware: Hardware) -> Hardware:
        from weighbridge.topologies.ssh.requirements import asked  # noqa: PLC0415 - reading a hardware file needs no asyncssh

        return asked(hardware)

    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        from weighbridge.topologies.ssh.startup import start_ssh  # noqa: PLC0415 - reading a hardware file needs no asyncssh

        return lambda label, folder: start_ssh(
            label,
            asked.hardware,
            asked.image,
            say,
            folder=folder,
            names=asked.names,
            tools=asked.tools,
        )


SSH = SshKind()
