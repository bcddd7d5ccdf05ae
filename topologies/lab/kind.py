"""Lab hosts as a kind of hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from weighbridge.gateways.gateway import Say
from weighbridge.topologies.attestation import IMAGE
from weighbridge.topologies.hardware import HostKind, HostSpec, HostsRequest
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.images import Build, ensure, key, together
from weighbridge.topologies.lab import bundle, network
from weighbridge.topologies.lab.lab import start_lab


class LabKind(HostKind):
    """Containers of this machine."""

    contained: ClassVar[bool] = True
    cuts_power: ClassVar[bool] = True

    def address(self, index: int, spec: HostSpec) -> str:
        return network.address(index)

    def build(self, asked: Sequence[HostsRequest], say: Say) -> None:
        builds: dict[tuple[Path, str], Build] = {}
        for one in asked:
            if one.image.packages:
                builds[one.images, key(one.image)] = partial(ensure, one.image, store=one.images)
            if one.tools:
                builds[one.images, key(IMAGE)] = partial(bundle.toolbox, one.images)
        together(builds.values(), say)

    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        root = ensure(asked.image, say, store=asked.images) if asked.image.packages else Path("/")
        roots = {name: root for name in asked.names if name not in asked.hardware.clients}
        toolbox = bundle.toolbox(asked.images, say) if asked.tools else None
        return lambda label, folder: start_lab(
            label,
            asked.hardware,
            roots,
            say,
            folder=folder,
            names=asked.names,
            state=asked.state,
            tools=toolbox,
            cuts=asked.cuts,
        )


LAB = LabKind()
