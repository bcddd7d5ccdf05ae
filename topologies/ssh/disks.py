"""Disks of real hosts: looked at before anything is written on them, and left as empty as the next
deployment wants them.

What is on a disk is judged by the disk itself, as it is now, never by what a file says of it but
for `wipe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import Disk
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.there import ask

LEAST_BYTES: Final = 300 * 2**20
"""mkfs.xfs makes nothing smaller."""
FREED_S: Final = 15.0
"""How long a disk may stay in use after what used it was ended: a kernel unmounts what no process
sees any more a little later.
"""
LOOKED_S: Final = 120.0
CLEARED_S: Final = 600.0
"""How long clearing a host's disks may take: a large one that discards everything is busy for
minutes.
"""


class RealDisk(Record):
    """A disk of a real host as it was found."""

    id: str
    """As the hardware file names it."""
    path: str
    """The device it is now, such as /dev/nvme0n1."""
    device: str
    """Its number, such as 259:0."""
    size_bytes: int
    model: str = ""
    """Empty where the kernel does not know."""
    rotational: bool | None = None
    holds: str = ""
    """What is on it, in words, where it may be wiped: it is to be cleared before it is used.

    Empty: nothing.
    """

    def __str__(self) -> str:
        kind = (
            "" if self.rotational is None else ", rotating" if self.rotational else ", not rotating"
        )
        model = f", {self.model}" if self.model else ""
        return f"{self.id} ({self.path}, {show_bytes(self.size_bytes)}{model}{kind})"


def look(shell: Shell, specs: Sequence[Disk]) -> tuple[tuple[RealDisk, ...], tuple[str, ...]]:
    """Look at the disks of a host, in the order of `specs`; nothing is written. A disk with a fault
    is not among the disks.

    The faults are sentences, everything that is wrong with any of them. Raises TargetError.
    """
    if not specs:
        return (), ()
    told: list[dict[str, Any]] = ask(
        shell, "disks", "look", given=[spec.id for spec in specs], timeout_s=LOOKED_S
    )
    disks: list[RealDisk] = []
    faults: list[str] = []
    first: dict[str, str] = {}
    for spec, one in zip(specs, told, strict=True):
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


def clear(shell: Shell, disks: Sequence[RealDisk]) -> None:
    """Make disks empty: their signatures, their first and last MiB, and all of them where they can
    discard.

    One that is another disk by now (its size tells), or is in use, is not touched. Raises
    TargetError naming what was not cleared.
    """
    if not disks:
        return
    given = [[one.id, one.size_bytes] for one in disks]
    failed: list[str] = ask(shell, "disks", "clear", str(FREED_S), given=given, timeout_s=CLEARED_S)
    if failed:
        where = f"{shell.name} ({shell.address})"
        raise TargetError(
            "\n".join(f"{where}: disk {what}" for what in failed),
            advice="Clear it by hand (`wipefs -a DISK`) once nothing uses it, or name it with "
            "`wipe: true`.",
        )


def _unfit(one: dict[str, Any], *, wipe: bool) -> list[str]:
    """What is wrong with a disk that is there."""
    path = one["path"]
    if one["partition"]:
        return [f"{path} is a partition: deployments take whole disks, so name that"]
    wrong = []
    if one["read_only"]:
        wrong.append(f"{path} can only be read")
    if one["size_bytes"] < LEAST_BYTES:
        wrong.append(
            f"{path} has {show_bytes(one['size_bytes'])}, and at least {show_bytes(LEAST_BYTES)} "
            "are needed"
        )
    if one["used"]:
        used = "; ".join(one["used"])
        wrong.append(
            f"{path} is in use: {used}. End that, or name another disk: what is in use is not "
            "taken, `wipe: true` or not"
        )
    elif one["holds"] and not wipe:
        holds = ", ".join(one["holds"])
        wrong.append(
            f"{path} holds {holds}. Where all of it may be lost, say `wipe: true` of the disk, or "
            f"clear it: wipefs -a {path}"
        )
    return wrong
