"""Which process of this machine owns a deployment, and whether that process is still running."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.record import Record

CONDUCTOR: Final = "conductor.json"
"""The file in a deployment's folder that names its owner, written before anything else."""


class DeploymentOwner(Record):
    """The process that made a deployment's folder. `since` is UTC, ISO 8601."""

    deployment: str
    pid: int
    since: str
    started: int
    """When that process started, in ticks since the boot."""

    @property
    def at_work(self) -> bool:
        """Whether that same process, not a later one with its number, is running."""
        return started_at(self.pid) == self.started


def own_folder(folder: Path) -> None:
    """Make a deployment's folder, owned by this process. Raises OSError."""
    folder.mkdir(parents=True, mode=0o700)
    owner = DeploymentOwner(
        deployment=folder.name,
        pid=os.getpid(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        started=started_at(os.getpid()) or 0,
    )
    safe_files.write(folder, CONDUCTOR, owner.model_dump_json().encode())


def owners_below(deployments: Path) -> tuple[DeploymentOwner, ...]:
    """Owners of all folders of deployments, running or not, if they can be read."""
    found = []
    for path in sorted(deployments.glob(f"*/{CONDUCTOR}")):
        # The folder may just be going, or its process was killed while it wrote.
        with suppress(OSError, ValidationError):
            found.append(DeploymentOwner.model_validate_json(path.read_bytes()))
    return tuple(found)


def started_at(pid: int) -> int | None:
    """When a process of this machine started, in ticks since the boot; None: it is not running."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
