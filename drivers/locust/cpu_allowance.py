"""How many CPUs this process may use: by its cgroup's quota (v1, v2) or its affinity."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CpuAllowance:
    """`cpus` that may be used; `note` says why the quota is unknown, if it is."""

    cpus: float
    note: str = ""


def allowance(proc: Path = Path("/proc/self")) -> CpuAllowance:
    """What this process may use; `proc` is its folder in procfs (another one in tests)."""
    affinity = float(len(os.sched_getaffinity(0)))
    try:
        folders = list(_folders((proc / "cgroup").read_text(), (proc / "mountinfo").read_text()))
        quotas = [quota for folder in folders if (quota := _quota(folder)) is not None]
    except (OSError, ValueError) as error:
        return CpuAllowance(affinity, f"the driver's CPU quota could not be read: {error}")
    if not folders:
        note = "the driver's CPU quota is not known: no cgroup file system is mounted where it runs"
        return CpuAllowance(affinity, note)
    return CpuAllowance(min([affinity, *quotas]))


def _folders(cgroup: str, mountinfo: str) -> Iterator[Path]:
    for line in cgroup.splitlines():
        number, controllers, path = line.split(":", 2)
        unified = number == "0" and not controllers
        if not unified and "cpu" not in controllers.split(","):
            continue
        for mount in mountinfo.splitlines():
            before, _, after = mount.partition(" - ")
            kind, _, options = after.split(" ", 2)
            if kind != ("cgroup2" if unified else "cgroup") or (
                not unified and "cpu" not in options.split(" ")[-1].split(",")
            ):
                continue
            root, point = before.split(" ")[3:5]
            # In a container the mount shows only the part of the tree below `root`.
            inside = (
                Path(path).relative_to(root)
                if Path(path).is_relative_to(root)
                else Path(path.lstrip("/"))
            )
            folder = Path(point) / inside
            while folder.is_relative_to(point):
                if folder.is_dir():
                    yield folder
                folder = folder.parent
            break


def _quota(folder: Path) -> float | None:
    if (folder / "cpu.max").is_file():
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    if (folder / "cpu.cfs_quota_us").is_file():
        quota_us = int((folder / "cpu.cfs_quota_us").read_text())
        return None if quota_us <= 0 else quota_us / int((folder / "cpu.cfs_period_us").read_text())
    return None
