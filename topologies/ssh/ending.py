"""Giving a real host back: all of a deployment ended there, its disks emptied, its settings as they
were, its files removed.
"""

from __future__ import annotations

import shlex

from weighbridge.common.errors import TargetError, WeighbridgeError
from weighbridge.topologies.ssh import claim, disks, kernel
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.plain import Plain
from weighbridge.topologies.ssh.services import Services, Stand
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.systemd import Systemd

DEPLOYMENTS = "deployments"
"""Folder, below that of the hardware's `ssh`, with a folder for each deployment."""


def folder_of(deployment: str, folder: str) -> str:
    """A deployment's own folder on a host."""
    return f"{folder}/{DEPLOYMENTS}/{deployment}"


def has_systemd(shell: Shell) -> bool:
    """Whether systemd runs the host. Raises TargetError."""
    return bool(shell.sh("test -d /run/systemd/system && echo yes || true").stdout)


def services_of(claimed: ClaimedHost, *, systemd: bool) -> Services:
    """How a deployment's processes on a host are run and ended."""
    stand = Stand(
        claimed.deployment,
        folder_of(claimed.deployment, claimed.folder),
        claimed.holder or 0,
        claimed.holder_started or 0,
        claimed.boot,
    )
    return Systemd(stand) if systemd else Plain(stand)


def end(shell: Shell, claimed: ClaimedHost) -> None:
    """End all of a deployment on a host, found by its label, and its view.

    Raises TargetError naming processes that stayed.
    """
    services = services_of(claimed, systemd=has_systemd(shell))
    stayed = shell.sh(
        services.end([disk.device for disk in claimed.disks]), timeout_s=120
    ).stdout.split()
    if stayed:
        raise TargetError(
            f"{shell.name} ({shell.address}): of {claimed.deployment}, processes are there still: "
            f"{', '.join(stayed)}",
            advice="a process that waits for a disk cannot be ended before that answers",
        )


def give_back(shell: Shell, claimed: ClaimedHost) -> None:
    """Take all of a deployment away from a host and give the claim up, in the reverse order of how
    it was raised.

    Nothing is left undone because something before it failed, but the claim stays then, so that it
    can be tried again. Raises TargetError naming what stayed.
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
            script = (
                f"rm -rf --one-file-system {folder}; rmdir --ignore-fail-on-non-empty "
                f"{shlex.quote(claimed.folder)}/{DEPLOYMENTS}"
            )
            shell.sh(f"if [ -d {folder} ]; then {script}; fi", timeout_s=300)
            claim.release(shell, claimed)
        except WeighbridgeError as error:
            faults.append(error)
    if faults:
        advice = next((error.advice for error in faults if error.advice), "")
        raise TargetError("\n".join(error.message for error in faults), advice=advice)
