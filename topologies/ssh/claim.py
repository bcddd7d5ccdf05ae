"""The claim on a real host: one deployment stands there at a time, and what it takes or changes is
written down before it does.

It is a file below the folder of deployments on the host itself, so that it is found from any
machine, and by whoever comes after a conductor that was killed.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Final

from pydantic import Field, ValidationError

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.record import Record
from weighbridge.topologies.conducting import started_at
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.kernel import Former
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.there import ask
from weighbridge.topologies.ssh.there.claim_there import FILE

LABEL: Final = re.compile(r"^[a-z0-9][a-z0-9-]{0,60}$")
"""What a deployment is called, and its folder, on this machine too: none leads elsewhere."""
Words = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{0,4096}$")]
"""What is shown to people: of one line, since it is shown between lines of this suite's own."""


class ClaimedHost(Record):
    """What a deployment has of a real host.

    Its conductor is process `pid` of the machine whose host name is `conductor`.
    """

    deployment: Annotated[str, Field(pattern=LABEL.pattern)]
    conductor: Words
    pid: int
    started: int = 0
    """When that process started, in ticks since its machine was booted: a number that is given
    again starts later. 0: not known.
    """
    user: Words
    since: Words
    """UTC, ISO 8601."""
    kept: Words = ""
    """Folder on the conductor's machine with what it keeps of the deployment."""
    folder: Words
    """`Access.folder` of the hardware: below it is all that the deployment put on the host."""
    boot: str = ""
    """Which boot of the host it is of: processes and kernel settings do not outlive one."""
    disks: tuple[RealDisk, ...] = ()
    """Disks that it may have written on."""
    former: Former | None = None
    """What the host's kernel was set to before; None: nothing was to be changed."""
    holder: int | None = None
    """Process on the host that holds the deployment's view; None: it was not started yet."""
    holder_started: int | None = None
    """When that process started, in ticks since the host was booted."""

    @property
    def by(self) -> str:
        """Who made it, in words."""
        kept = f", which keeps it in {self.kept}" if self.kept else ""
        return f"process {self.pid} of {self.user} on {self.conductor}{kept}"

    def conducted_by(self, here: str) -> bool:
        """Whether its conductor is alive on this machine, whose host name is `here`."""
        if self.conductor != here:
            return False
        begun = started_at(self.pid)
        return begun is not None and self.started in (0, begun)


def mine(deployment: str, folder: str, *, since: str, kept: str = "") -> ClaimedHost:
    """The claim that this process makes."""
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


def take(shell: Shell, claimed: ClaimedHost) -> ClaimedHost:
    """Claim a host; returns the claim as it is written there.

    Raises UsageError when another deployment stands there, TargetError.
    """
    answer = _asked(shell, "take", claimed.folder, claimed)
    if "taken" in answer:
        first = _read(shell, claimed.folder, answer["taken"])
        raise UsageError(
            f"{shell.name} ({shell.address}): {first.deployment} stands there since {first.since} "
            f"({first.by}), and only one "
            "deployment stands on a host at a time",
            advice="Wait for that run or end it: it takes its deployment away. What a killed one "
            "left is taken away by "
            "`weighbridge down --hardware FILE`.",
        )
    return _read(shell, claimed.folder, answer["claim"])


def read(shell: Shell, folder: str) -> ClaimedHost | None:
    """The claim on a host; None where there is none. Raises TargetError where it cannot be read."""
    answer = _asked(shell, "read", folder)
    return _read(shell, folder, answer["claim"]) if "claim" in answer else None


def write(shell: Shell, claimed: ClaimedHost) -> None:
    """Write down what is about to be taken or changed.

    Raises TargetError where the claim is not this deployment's (any more).
    """
    answer = _asked(shell, "write", claimed.folder, claimed)
    if "claim" not in answer:
        raise TargetError(
            f"{shell.name} ({shell.address}): the claim of {claimed.deployment} is gone from "
            f"{claimed.folder}",
            advice="Was it taken away by another `weighbridge down` meanwhile?",
        )


def release(shell: Shell, claimed: ClaimedHost) -> None:
    """Give a host back: nothing of the deployment is left there.

    A claim that is gone, or another's, is left as it is.
    """
    _asked(shell, "release", claimed.folder, claimed)


def _asked(
    shell: Shell, verb: str, folder: str, claimed: ClaimedHost | None = None
) -> dict[str, str]:
    given = None if claimed is None else claimed.model_dump(mode="json")
    answer: dict[str, str] = ask(shell, "claim", verb, folder, given=given)
    return answer


def _read(shell: Shell, folder: str, text: str) -> ClaimedHost:
    try:
        return ClaimedHost.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise TargetError(
            f"{shell.name} ({shell.address}): {folder}/{FILE} is not a claim of a deployment: "
            f"{where}: {fault['msg']}".replace(": :", ":"),
            advice="Was it written by another version of weighbridge? Take what it tells of away "
            "by that one, or by hand.",
        ) from None
