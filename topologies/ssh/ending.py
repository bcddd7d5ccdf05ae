"""Giving a real host back: processes ended, disks cleared, settings restored, files removed."""

from __future__ import annotations

import shlex

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.topologies.ssh import claim, disks, kernel
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.services import HostDeployment, Services

DEPLOYMENTS = "deployments"
"""The folder, below that of the hardware's `ssh`, of the deployments' folders."""


def folder_of(deployment: str, folder: str) -> str:
    """A deployment's folder on a host."""
    return f"{folder}/{DEPLOYMENTS}/{deployment}"


def services_of(claimed: ClaimedHost) -> Services:
    """The way to run and end a deployment's processes on a host."""
    on_host = HostDeployment(
        claimed.deployment,
        folder_of(claimed.deployment, claimed.folder),
        claimed.holder or 0,
        claimed.boot,
    )
    return Services(on_host)


def end(shell: SshConnection, claimed: ClaimedHost) -> None:
    """End a deployment's processes, by its label, and its view. Raises TargetError for the rest."""
    services = services_of(claimed)
    script = services.end([disk.device for disk in claimed.disks])
    left = shell.sh(script, timeout_s=120).stdout.split()
    if left:
        raise TargetError(
            f"{shell.name} ({shell.address}): processes of {claimed.deployment} are still running: "
            f"{', '.join(left)}",
            advice="a process that waits for a disk cannot be ended before the disk answers",
        )


def give_back(shell: SshConnection, claimed: ClaimedHost) -> None:
    """Remove a deployment from a host, in the reverse order of its start, and release the claim.

    Goes on after a failure, but keeps the claim then, so that this can be tried again. Raises
    TargetError naming what is left.
    """
    faults: list[WeighbridgeError] = []
    folder = shlex.quote(folder_of(claimed.deployment, claimed.folder))
    try:
        end(shell, claimed)
        disks.clear(shell, claimed.disks)
    except WeighbridgeError as error:
        faults.append(error)
    try:
        if claimed.former is not None:
            kernel.restore(shell, claimed.former)
    except WeighbridgeError as error:
        faults.append(error)
    if not faults:
        try:
            parent = f"{shlex.quote(claimed.folder)}/{DEPLOYMENTS}"
            script = f"rm -rf --one-file-system {folder}; rmdir --ignore-fail-on-non-empty {parent}"
            shell.sh(f"if [ -d {folder} ]; then {script}; fi", timeout_s=300)
            claim.release(shell, claimed)
        except WeighbridgeError as error:
            faults.append(error)
    if faults:
        advice = next((error.advice for error in faults if error.advice), "")
        raise TargetError("\n".join(error.message for error in faults), advice=advice)
