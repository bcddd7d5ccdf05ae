"""Finding and removing what deployments have left on this machine.

Only what has a deployment's label is considered: claims below the state folder, annotated
containers, cgroups below /weighbridge, loop devices with a file in a deployment's folder, folders
of deployments, and images whose build was killed.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from weighbridge.topologies.images import half_built, sweep
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.claim import STATE, ClaimedMachine, claims, exclude_conductors
from weighbridge.topologies.lab.ending import disks, tear_down
from weighbridge.topologies.lab.runc import Runc
from weighbridge.topologies.ownership import DeploymentOwner, owners_below

DEPLOYMENTS = "deployments"
IMAGES = "images"

Kind = Literal[
    "container", "cgroup", "root cgroup limit", "disk", "claim", "folder", "half-built image"
]


@dataclass(frozen=True)
class LabLeftover:
    """A leftover. `deployment` is empty where it belongs to none (images)."""

    deployment: str
    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what}" + (f" of {self.deployment}" if self.deployment else "")


def find(*, home: Path | None = None, state: Path = STATE) -> tuple[LabLeftover, ...]:
    """Everything of all deployments on this machine, including those whose conductor is running.

    `home` holds `deployments/` and `images/`; without it only what the state folder knows is found.
    Raises TargetError or CommandFailed where this machine cannot be examined.
    """
    runc, cgroups = Runc(state / "runc"), Cgroups()
    found = [LabLeftover(one.deployment, "container", one.host) for one in runc.containers()]
    for claimed in _claimed(state, home, runc):
        label, folder = claimed.deployment, claimed.folder
        leftover = partial(LabLeftover, label)
        claim = state / "claims" / f"{label}.json"
        found += [leftover("cgroup", str(path)) for path in cgroups.folders(f"/{TREE}/{label}")]
        found += [leftover("root cgroup limit", limit.text) for limit in claimed.root_limits]
        found += [leftover("disk", str(path)) for path in disks(folder, label)]
        found += [leftover("claim", str(claim))] if claim.exists() else []
        found += [leftover("folder", str(folder))] if folder.exists() else []
    partial_images = half_built(home / IMAGES) if home is not None else ()
    found += [LabLeftover("", "half-built image", str(path)) for path in partial_images]
    return tuple(found)


def remove(
    deployment: str | None = None, *, home: Path | None = None, state: Path = STATE
) -> tuple[LabLeftover, ...]:
    """Remove what one deployment has left, or (None) what all have and half-built images; returns
    what was removed.

    A deployment of a running conductor is not removed (see `at_work`). Idempotent. Raises
    UsageError while a conductor of lab hosts is running, TargetError naming what could not be
    removed.
    """
    with exclude_conductors(state):
        found = [
            one for one in find(home=home, state=state) if deployment in (None, one.deployment)
        ]
        runc = Runc(state / "runc")
        for claimed in _claimed(state, home, runc):
            if deployment in (None, claimed.deployment):
                tear_down(claimed, runc, Cgroups())
                if claimed.folder.exists():
                    shutil.rmtree(claimed.folder)
                claimed.forget(state)
        if deployment is None and home is not None:
            for path in half_built(home / IMAGES):
                sweep(path)
    return tuple(found)


def at_work(*, home: Path, state: Path = STATE) -> tuple[DeploymentOwner, ...]:
    """Deployments without lab hosts (a null target, real hosts) whose owner is running."""
    runc = Runc(state / "runc")
    ours = {one.deployment for one in claims(state)} | {one.deployment for one in runc.containers()}
    return tuple(
        one
        for one in owners_below(home / DEPLOYMENTS)
        if one.at_work and one.deployment not in ours
    )


def _claimed(state: Path, home: Path | None, runc: Runc) -> tuple[ClaimedMachine, ...]:
    """Every deployment with a trace: its claim, else its containers, else its folder (a reboot
    removes claims).

    The folder alone of a deployment whose owner is running is not a leftover.
    """
    found = {one.deployment: one for one in claims(state)}
    for container in runc.containers():
        if container.deployment not in found:
            folder = container.bundle.parent.parent
            found[container.deployment] = _without_claim(container.deployment, folder)
    if home is None or not (home / DEPLOYMENTS).is_dir():
        return tuple(found.values())
    busy = {one.deployment for one in at_work(home=home, state=state)}
    cgroups = Cgroups()
    for folder in sorted((home / DEPLOYMENTS).iterdir()):
        label = folder.name
        if label in {*found, *busy} or not folder.is_dir():
            continue
        # Processes without a claim here belong to another state folder.
        if not cgroups.pids(f"/{TREE}/{label}"):
            found[label] = _without_claim(label, folder)
    return tuple(found.values())


def _without_claim(deployment: str, folder: Path) -> ClaimedMachine:
    return ClaimedMachine(deployment=deployment, pid=os.getpid(), since="", folder=folder)
