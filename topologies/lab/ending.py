"""Tearing down all of a deployment: containers, limits, cgroups, disks, its folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.safe_files import remove_tree
from weighbridge.gateways.together import together
from weighbridge.topologies.hosts import (
    LABEL,
    DeploymentOwner,
    Leftover,
    owners_below,
    remove_folder,
)
from weighbridge.topologies.images import half_built
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.claim import (
    STATE,
    ClaimedMachine,
    claims,
    deployments,
    exclude_conductors,
    path_of,
)
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
    cgroups and disks: all that keeps another deployment away. Its folder stays.

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
        remove_tree(folder)

    def attempt(do: Callable[[], None]) -> None:
        try:
            do()
        except TargetError as error:
            faults.append(str(error))

    for limit in claimed.root_limits:
        attempt(limit.lift)
    faults += [f"{path} has processes in it" for path in until_none(lambda: cgroups.remove(group))]
    if claimed.handed_on is not None:
        attempt(partial(cgroups.take_back, claimed.handed_on))
    faults += [f"{path} is attached" for path in until_none(attached)]
    if faults:
        raise TargetError(
            f"{claimed.deployment}: could not tear down everything:\n" + "\n".join(faults)
        )


def _end_containers(deployment: str, runc: Runc) -> list[str]:
    errors: dict[str, str] = {}

    def delete(container: str) -> None:
        try:
            runc.delete(container)
        except CommandFailed as error:
            errors[container] = error.output.strip()  # no fault if the next list lacks it

    def ours() -> list[str]:
        return [one.id for one in runc.containers() if one.deployment == deployment]

    def left() -> list[str]:
        together([partial(delete, one) for one in ours()])
        return [f"container {one} is left: {errors.get(one, '')}" for one in ours()]

    try:
        return list(until_none(left))  # a runc that outlived its conductor may add one meanwhile
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


# Only what has a deployment's label is a leftover: claims below the state folder, annotated
# containers, cgroups below /weighbridge, loop devices with a file in a deployment's folder,
# folders of deployments, and images whose build was killed.
DEPLOYMENTS = "deployments"
IMAGES = "images"


def find_leftovers(*, home: Path | None = None, state: Path = STATE) -> tuple[Leftover, ...]:
    """Everything of all deployments on this machine, including those whose conductor is running.

    `home` holds `deployments/` and `images/`; without it only what the state folder knows is found.
    Raises TargetError or CommandFailed where this machine cannot be examined.
    """
    runc, cgroups = Runc(state / "runc"), Cgroups()
    found = [Leftover("", one.deployment, "container", one.host) for one in runc.containers()]
    for claimed in _claimed(state, home, runc):
        label, folder = claimed.deployment, claimed.folder
        leftover = partial(Leftover, "", label)
        claim = path_of(state, label)
        found += [leftover("cgroup", str(path)) for path in cgroups.folders(f"/{TREE}/{label}")]
        found += [leftover("root cgroup limit", limit.text) for limit in claimed.root_limits]
        found += [leftover("disk", str(path)) for path in disks(folder, label)]
        found += [leftover("claim", str(claim))] if claim.exists() else []
        found += [leftover("folder", str(folder))] if folder.exists() else []
    partial_images = half_built(home / IMAGES) if home is not None else ()
    found += [Leftover("", "", "half-built image", str(path)) for path in partial_images]
    return tuple(found)


def remove_leftovers(
    deployment: str | None = None, *, home: Path | None = None, state: Path = STATE
) -> tuple[Leftover, ...]:
    """Remove what one deployment has left, or (None) what all have and half-built images; returns
    what was removed.

    A deployment of a running conductor is not removed (see `at_work`). Idempotent. Raises
    UsageError while a conductor of lab hosts is running, TargetError naming what could not be
    removed.
    """
    with exclude_conductors(state):
        found = [
            one
            for one in find_leftovers(home=home, state=state)
            if deployment in (None, one.deployment)
        ]
        runc = Runc(state / "runc")
        faults: list[str] = []
        for claimed in _claimed(state, home, runc):
            if deployment in (None, claimed.deployment):
                try:
                    tear_down(claimed, runc, Cgroups())
                    # Whatever the folder holds: without the claim it keeps no run from starting.
                    claimed.forget(state)
                    remove_folder(claimed.folder)
                except TargetError as error:
                    faults.append(str(error))
        if deployment is None and home is not None:
            for path in half_built(home / IMAGES):
                remove_tree(path)
    if faults:
        raise TargetError("\n".join(faults))
    return tuple(found)


def lab_at_work(*, home: Path, state: Path = STATE) -> tuple[DeploymentOwner, ...]:
    """Deployments without lab hosts (a null target, real hosts) whose owner is running."""
    owners, ours = owners_below(home / DEPLOYMENTS), deployments(state)
    return tuple(one for one in owners if one.at_work and one.deployment not in ours)


def _claimed(state: Path, home: Path | None, runc: Runc) -> tuple[ClaimedMachine, ...]:
    """Every deployment with a trace: its claim, else its containers, else its folder (a reboot
    removes claims).

    The folder alone of a deployment whose owner is running is not a leftover.
    """
    found = {one.deployment: one for one in claims(state)}
    for label, claimed in found.items():
        if home is not None and claimed.folder != home / DEPLOYMENTS / label:
            raise TargetError(
                f"{path_of(state, label)}: the folder of {label} is {claimed.folder}, which is not "
                f"in {home / DEPLOYMENTS}",
                advice="If it was made with another WEIGHBRIDGE_HOME, set that; else remove the "
                "file: nothing else of this suite names that folder.",
            )
    for container in runc.containers():
        if container.deployment not in found:
            folder = container.bundle.parent.parent
            found[container.deployment] = _without_claim(container.deployment, folder)
    if home is None or not (home / DEPLOYMENTS).is_dir():
        return tuple(found.values())
    busy = {one.deployment for one in lab_at_work(home=home, state=state)}
    cgroups = Cgroups()
    for folder in sorted((home / DEPLOYMENTS).iterdir()):
        label = folder.name
        if label in {*found, *busy} or not LABEL.fullmatch(label) or not folder.is_dir():
            continue
        # Processes without a claim here belong to another state folder.
        if not cgroups.pids(f"/{TREE}/{label}"):
            found[label] = _without_claim(label, folder)
    return tuple(found.values())


def _without_claim(deployment: str, folder: Path) -> ClaimedMachine:
    return ClaimedMachine(deployment=deployment, pid=os.getpid(), since="", folder=folder)
