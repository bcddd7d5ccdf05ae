"""Disks of real hosts: checked before anything is written to them, and cleared for the next
deployment.

Only the disk itself, as it is now, decides whether it can be used; the hardware file only says
`wipe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import Disk
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.remote import run_remote

LEAST_BYTES: Final = 300 * 2**20
"""The least that mkfs.xfs accepts."""
FREED_S: Final = 15.0
"""How long a disk may stay in use after its user was ended: a kernel unmounts file systems that no
process sees a little later.
"""
LOOK_TIMEOUT_S: Final = 120.0
CLEAR_TIMEOUT_S: Final = 600.0
"""For a host's disks: a large one takes minutes to discard everything."""


class RealDisk(Record):
    """A disk of a real host as it was found."""

    id: str
    """Its name in the hardware file."""
    path: str
    """The device's present name, such as /dev/nvme0n1."""
    device: str
    """The device's number, such as 259:0."""
    size_bytes: int
    model: str = ""
    """Empty: the kernel does not know."""
    rotational: bool | None = None
    holds: str = ""
    """What is on a disk that may be wiped, and so must be cleared before use; empty: nothing."""

    def __str__(self) -> str:
        kind = (
            "" if self.rotational is None else ", rotating" if self.rotational else ", not rotating"
        )
        model = f", {self.model}" if self.model else ""
        return f"{self.id} ({self.path}, {show_bytes(self.size_bytes)}{model}{kind})"


def look(
    shell: SshConnection, specs: Sequence[Disk]
) -> tuple[tuple[RealDisk, ...], tuple[str, ...]]:
    """Look at disks of `specs`: those without fault, and sentences on all. Raises TargetError."""
    if not specs:
        return (), ()
    found: list[dict[str, Any]] = run_remote(
        shell, "disks", "look", given=[spec.id for spec in specs], timeout_s=LOOK_TIMEOUT_S
    )
    disks: list[RealDisk] = []
    faults: list[str] = []
    first: dict[str, str] = {}
    for spec, one in zip(specs, found, strict=True):
        wrong = [one["fault"]] if one["fault"] else []
        if not wrong:
            if one["device"] in first:
                wrong.append(f"it is the same disk as {first[one['device']]}: name every disk once")
            first.setdefault(one["device"], str(spec.id))
            wrong += _unfit(one, wipe=spec.wipe)
        faults += [f"{shell.name} ({shell.address}): disk {spec.id}: {what}" for what in wrong]
        if not wrong:
            disks.append(
                RealDisk(
                    id=str(spec.id),
                    path=one["path"],
                    device=one["device"],
                    size_bytes=one["size_bytes"],
                    model=one["model"],
                    rotational=one["rotational"],
                    holds=", ".join(one["holds"]),
                )
            )
    return tuple(disks), tuple(faults)


def clear(shell: SshConnection, disks: Sequence[RealDisk]) -> None:
    """Clear disks: their signatures, their first and last MiB, and everything where they can
    discard.

    A disk that is in use or of another size, so another disk by now, is not touched. Raises
    TargetError naming what was not cleared.
    """
    if not disks:
        return
    failed: list[str] = run_remote(
        shell,
        "disks",
        "clear",
        str(FREED_S),
        given=[[one.id, one.size_bytes] for one in disks],
        timeout_s=CLEAR_TIMEOUT_S,
    )
    if failed:
        where = f"{shell.name} ({shell.address})"
        raise TargetError(
            "\n".join(f"{where}: disk {what}" for what in failed),
            advice="Clear it by hand (`wipefs -a DISK`) once nothing uses it, or name it with "
            "`wipe: true`.",
        )


def _unfit(one: dict[str, Any], *, wipe: bool) -> list[str]:
    path = one["path"]
    if one["partition"]:
        return [f"{path} is a partition: deployments use complete disks, so name the disk"]
    wrong = []
    if one["read_only"]:
        wrong.append(f"{path} is read only")
    if one["size_bytes"] < LEAST_BYTES:
        size, least = show_bytes(one["size_bytes"]), show_bytes(LEAST_BYTES)
        wrong.append(f"{path} has {size}, and at least {least} are needed")
    if one["used"]:
        used = "; ".join(one["used"])
        wrong.append(
            f"{path} is in use: {used}. End that, or name another disk: a disk in use is not "
            "touched, `wipe: true` or not"
        )
    elif one["holds"] and not wipe:
        holds = ", ".join(one["holds"])
        wrong.append(
            f"{path} holds {holds}. If all of it may be lost, set `wipe: true` for the disk, or "
            f"clear it: wipefs -a {path}"
        )
    return wrong
