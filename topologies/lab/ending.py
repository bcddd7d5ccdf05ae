"""Tearing down all of a deployment: containers, limits, cgroups, disks, bundles."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.gateways.together import together
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.claim import ClaimedMachine
from weighbridge.topologies.lab.program import LabProcess, send
from weighbridge.topologies.lab.runc import Runc

Found = TypeVar("Found")

BUNDLES = "bundles"
"""A deployment's folder of its containers' bundles, with the overlays' upper folders."""
FREE_S = 30.0
"""The kernel frees cgroups and loop devices a moment after the last process has ended: with a busy
disk below it only when it has written what it held.
"""
RETRY_S = 0.005


def tear_down(claimed: ClaimedMachine, runc: Runc, cgroups: Cgroups) -> None:
    """End all containers of a deployment, lift its limits in the root cgroup, and remove its
    cgroups, disks and bundles.

    Does all of it whatever fails, then raises TargetError naming what is left. Idempotent.
    """
    group = f"/{TREE}/{claimed.deployment}"
    disk_programs = cgroups.pids(model_disks.group_of(claimed.deployment))
    model_disks.end(disk_programs)
    faults = _end_containers(claimed.deployment, runc)
    attached = partial(disks, claimed.folder, claimed.deployment)
    if disk_programs:
        # Hosts' file systems write their last to these disks; what is left then is killed below,
        # and I/O to its disks fails instead of waiting.
        until_none(attached)
    # A runc that was killed while it made a container leaves unlisted processes, and a folder.
    for process in filter(None, map(LabProcess.of, cgroups.pids(group))):
        send(process, signal.SIGKILL)
    for folder in runc.root.glob(f"{claimed.deployment}.*"):
        shutil.rmtree(folder)
    for limit in claimed.root_limits:
        try:
            limit.lift()
        except TargetError as error:
            faults.append(str(error))
    faults += [f"{path} has processes in it" for path in until_none(lambda: cgroups.remove(group))]
    cgroups.remove_tree_if_empty()
    if claimed.handed_on is not None:
        try:
            cgroups.take_back(claimed.handed_on)
        except TargetError as error:
            faults.append(str(error))
    faults += [f"{path} is attached" for path in until_none(attached)]
    bundles = claimed.folder / BUNDLES
    if bundles.exists():
        try:
            shutil.rmtree(bundles)
        except OSError as error:
            faults.append(f"{bundles}: {error.strerror}: {error.filename}")
    if faults:
        raise TargetError(
            f"{claimed.deployment}: could not tear down everything:\n" + "\n".join(faults)
        )


def _end_containers(deployment: str, runc: Runc) -> list[str]:
    """Delete all containers in parallel; returns a message about each that is left."""
    errors: dict[str, str] = {}

    def delete(container: str) -> None:
        try:
            runc.delete(container)
        except CommandFailed as error:
            # Not a fault if it ended meanwhile: the second list decides.
            errors[container] = error.output.strip()

    def ours() -> list[str]:
        return [one.id for one in runc.containers() if one.deployment == deployment]

    try:
        together([partial(delete, one) for one in ours()])
        return [f"container {one} is left: {errors.get(one, '')}" for one in ours()]
    except CommandFailed as error:
        return [str(error)]


def disks(folder: Path, deployment: str, block: Path = Path("/sys/block")) -> tuple[Path, ...]:
    """Loop devices whose files are, or were before they were unlinked, below a folder, or are a
    deployment's in the file system of a program that has ended.
    """
    found = []
    for device in block.glob("loop*"):
        try:
            name = os.fsdecode((device / "loop/backing_file").read_bytes()).strip()
        except OSError:
            continue  # not attached
        backing = Path(name.removesuffix(" (deleted)"))
        if backing.is_relative_to(folder) or backing.name.startswith(f"{deployment}."):
            found.append(Path("/dev") / device.name)
    return tuple(sorted(found))


def until_none(look: Callable[[], Sequence[Found]]) -> Sequence[Found]:
    """Call `look` until it finds nothing or the time is up; returns what it found last."""
    deadline = time.monotonic() + FREE_S
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(RETRY_S)
    return found
