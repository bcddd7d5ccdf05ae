"""The claim on a real host: one deployment runs there at a time, and records what it changes before
it does.

It is a file below the folder of deployments on the host itself, where any machine finds it, also
after a conductor was killed.
"""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field, ValidationError

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.record import Record
from weighbridge.topologies.hosts import Label, started_at
from weighbridge.topologies.on_host.machine import CLAIM
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.kernel import FormerSettings
from weighbridge.topologies.ssh.remote import run_remote

Words = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{0,4096}$")]
"""Text to show to people: one line, so that it cannot imitate other lines of a message."""


class ClaimedHost(Record):
    """What a deployment uses of a real host. `pid` on the host `conductor` is its conductor."""

    deployment: Label
    conductor: Words
    pid: int
    started: int = 0
    """When that process started, in ticks since the boot; 0: not known. Pids are reused."""
    user: Words
    since: Words
    """UTC, ISO 8601."""
    kept: Words = ""
    """The deployment's folder on the conductor's machine."""
    folder: Words
    """`SshAccess.folder` of the hardware, which holds all that the deployment put on the host."""
    boot: str = ""
    """The host's boot: processes and kernel settings do not outlive it."""
    disks: tuple[RealDisk, ...] = ()
    """Disks that the deployment may have written to."""
    former: FormerSettings | None = None
    """The host's kernel settings before; None: nothing was to be changed."""
    holder: int | None = None
    """The process on the host that holds the deployment's view; None: not started yet."""

    @property
    def by(self) -> str:
        """Who made the claim, as a phrase."""
        kept = f", which keeps it in {self.kept}" if self.kept else ""
        return f"process {self.pid} of {self.user} on {self.conductor}{kept}"

    def conductor_running(self, here: str) -> bool:
        """Whether its conductor is running on this machine, whose host name is `here`."""
        if self.conductor != here:
            return False
        started = started_at(self.pid)
        return started is not None and self.started in (0, started)


def new_claim(deployment: str, folder: str, *, since: str, kept: str = "") -> ClaimedHost:
    """The claim of this process."""
    import getpass  # noqa: PLC0415 - asked for once in a deployment
    import socket  # noqa: PLC0415

    return ClaimedHost(
        deployment=deployment,
        conductor=socket.gethostname(),
        pid=os.getpid(),
        started=started_at(os.getpid()) or 0,
        user=getpass.getuser(),
        since=since,
        kept=kept,
        folder=folder,
    )


def take(shell: SshConnection, claimed: ClaimedHost) -> ClaimedHost:
    """Claim a host; returns the claim as it is written there.

    Raises UsageError when another deployment is running there, TargetError.
    """
    answer = _run(shell, "take", claimed.folder, claimed)
    if "taken" in answer:
        first = _parse(shell, claimed.folder, answer["taken"])
        raise UsageError(
            f"{shell.name} ({shell.address}): {first.deployment} has been running there since "
            f"{first.since} ({first.by}), and only one deployment can run on a host at a time",
            advice="Wait for that run or end it: it tears its deployment down. `weighbridge down "
            "--hardware FILE` tears down what a killed run left.",
        )
    return _parse(shell, claimed.folder, answer["claim"])


def read(shell: SshConnection, folder: str) -> ClaimedHost | None:
    """The claim on a host; None: there is none. Raises TargetError where it cannot be read."""
    answer = _run(shell, "read", folder)
    return _parse(shell, folder, answer["claim"]) if "claim" in answer else None


def write(shell: SshConnection, claimed: ClaimedHost) -> None:
    """Record what is about to be changed. Raises TargetError if the claim is not ours any more."""
    answer = _run(shell, "write", claimed.folder, claimed)
    if "claim" not in answer:
        raise TargetError(
            f"{shell.name} ({shell.address}): the claim of {claimed.deployment} is gone from "
            f"{claimed.folder}",
            advice="Has another `weighbridge down` removed it meanwhile?",
        )


def release(shell: SshConnection, claimed: ClaimedHost) -> None:
    """Release a host of which the deployment uses nothing more; other claims are left alone."""
    _run(shell, "release", claimed.folder, claimed)


def _run(
    shell: SshConnection, verb: str, folder: str, claimed: ClaimedHost | None = None
) -> dict[str, str]:
    given = None if claimed is None else claimed.model_dump(mode="json")
    answer: dict[str, str] = run_remote(shell, "claim", verb, folder, given=given)
    return answer


def _parse(shell: SshConnection, folder: str, text: str) -> ClaimedHost:
    try:
        return ClaimedHost.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise TargetError(
            f"{shell.name} ({shell.address}): {folder}/{CLAIM} is not a claim of a deployment: "
            f"{where}: {fault['msg']}".replace(": :", ":"),
            advice="Was it written by another version of weighbridge? Tear that deployment down "
            "with it, or by hand.",
        ) from None
