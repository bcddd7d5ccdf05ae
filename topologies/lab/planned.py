"""Which hosts of a hardware file a deployment starts, on which roots and disks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.topologies.disk_models import DISK_MODELS
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec

_ROOT: Final = Disk(size=4 * 2**30, model=DISK_MODELS["ideal"])
"""For all that a host has outside its disks: a mon's store, rings, keys. A sparse file."""


@dataclass(frozen=True)
class PlannedHost:
    """A host to start. `image` None: this machine's root."""

    name: str
    index: int
    spec: HostSpec
    image: Path | None
    root: Disk | None = None
    """The disk of what it writes to its root; None: a folder of this machine."""

    @property
    def all_disks(self) -> tuple[Disk, ...]:
        """Its disks, and that of its root last."""
        return self.spec.disks if self.root is None else (*self.spec.disks, self.root)


def planned_hosts(
    hardware: Hardware,
    images: Mapping[str, Path],
    names: Collection[str],
    *,
    cuts: bool,
) -> tuple[PlannedHost, ...]:
    """The hosts to start; see `start_lab`. Raises UsageError."""
    unknown = sorted(set(names) - set(hardware.hosts))
    if unknown:
        raise UsageError(f"{hardware.name} has no hosts {', '.join(unknown)}")
    planned = []
    for index, (name, spec) in enumerate(hardware.hosts.items()):
        if name not in names:
            continue
        image = None if name in hardware.clients else images.get(name)
        if image is None and name not in hardware.clients:
            raise UsageError(f"{name}: no root image was given for it")
        if image is not None and not (image / "usr").is_dir():
            raise UsageError(f"{name}: {image} is not a root image")
        own = PlannedHost(name, index, spec, None if image == Path("/") else image)
        planned.append(_recorded(own) if cuts and own.image is not None else own)
    return tuple(planned)


def _recorded(one: PlannedHost) -> PlannedHost:
    """The host on disks that take no time and remember what is written to them."""
    disks = tuple(Disk(size=disk.size, model=DISK_MODELS["ideal"]) for disk in one.spec.disks)
    spec = one.spec.model_copy(update={"disks": disks})
    return PlannedHost(one.name, one.index, spec, one.image, root=_ROOT)
