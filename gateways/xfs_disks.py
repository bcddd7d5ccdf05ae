"""Disks of hosts with an XFS file system each, for stores that keep objects in its files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host
from weighbridge.common.structure import Redundancy
from weighbridge.gateways.disk_space import DiskSpace, KeptBytes
from weighbridge.gateways.gateway import Site
from weighbridge.gateways.together import together

_BELOW: Final = "/srv/disk"
_OPTIONS: Final = "noatime,nodiratime,logbufs=8"
_DF_LINE: Final = re.compile(r"\s*(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s*")


def folders(site: Site) -> tuple[str, ...]:
    """Where the disks of a host are mounted, in their order."""
    return tuple(f"{_BELOW}{number}" for number in range(len(site.disks)))


def make(hosts: Sequence[Host]) -> None:
    """Make a file system on every disk of these hosts and mount it. Raises CommandFailed."""
    together([partial(_run, host, ("mkfs.xfs -q -f -K",)) for host in hosts])


def mount_again(hosts: Sequence[Host]) -> None:
    """Mount what `make` made on hosts that were without power. Raises CommandFailed."""
    together([partial(_run, host, ()) for host in hosts])


def _run(host: Host, before: Sequence[str]) -> None:
    lines = [
        line
        for disk, folder in zip(host.disks, folders(host), strict=True)
        for line in (
            *(f"{one} {disk}" for one in before),
            f"mkdir -p {folder}",
            f"mount -t xfs -o {_OPTIONS} {disk} {folder}",
        )
    ]
    host.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)


def space(hosts: Sequence[Host], kept: Redundancy) -> DiskSpace:
    """Size and free space of all disks of these hosts. Raises TargetError."""
    rows = file_systems([(one, folders(one)) for one in hosts])
    return DiskSpace(
        bytes=sum(size for size, _, _ in rows),
        free_bytes=sum(free for _, _, free in rows),
        kept=kept,
    )


def kept(hosts: Sequence[Host]) -> KeptBytes:
    """What is used of them, inodes and folders included. Raises TargetError."""
    rows = file_systems([(one, folders(one)) for one in hosts])
    used = sum(used for _, used, _ in rows)
    return KeptBytes(used, None, "XFS: used bytes of all disks, metadata included")


def file_systems(
    mounted: Sequence[tuple[Host, Sequence[str]]],
) -> list[tuple[int, int, int]]:
    """Size, used and free bytes of the file systems in these folders. Raises TargetError."""

    def asked(host: Host, mine: Sequence[str]) -> list[tuple[int, int, int]]:
        lines = host.run(["df", "--block-size=1", "--output=size,used,avail", *mine]).stdout
        rows = [_DF_LINE.fullmatch(line) for line in lines.splitlines()[1:]]
        known = [(int(row[1]), int(row[2]), int(row[3])) for row in rows if row]
        if len(known) != len(mine):
            raise TargetError(f"{host.name}: df does not say what its disks have")
        return known

    return [row for rows in together([partial(asked, *one) for one in mounted]) for row in rows]
