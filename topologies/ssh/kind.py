"""Real hosts as a kind of hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import ClassVar

from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.topologies.hardware import Hardware, HostKind, HostSite
from weighbridge.topologies.hosts import Hosts


class SshKind(HostKind):
    """Hosts of the user's own, with the packages that are installed on them."""

    by_ssh: ClassVar[bool] = True

    def sites(self, hardware: Hardware) -> Mapping[str, HostSite]:
        """See HostKind: as the hardware file says."""
        return {
            name: HostSite(name, spec.address or "", tuple(disk.id or "" for disk in spec.disks))
            for name, spec in hardware.hosts.items()
        }

    def prepared(
        self,
        hardware: Hardware,
        image: RootImage,
        names: Collection[str],
        say: Say,
        *,
        images: Path,
        state: Path,
        tools: bool,
    ) -> Callable[[str, Path], Hosts]:
        """See HostKind, and `raising.raise_ssh`."""
        from weighbridge.topologies.ssh.raising import raise_ssh  # noqa: PLC0415 - reading a hardware file wants no asyncssh

        return lambda label, folder: raise_ssh(label, hardware, image, say, folder=folder, names=names, tools=tools)


SSH = SshKind()
