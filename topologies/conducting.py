"""Whose a deployment is: the process that made it, written into its folder before anything else,
and whether that lives.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import inside
from weighbridge.common.record import Record

CONDUCTOR: Final = "conductor.json"
"""Name of the file, in a deployment's folder, that says whose it is from its first moment on."""


class Conducted(Record):
    """A deployment's folder, by the process that made it. `since` is UTC, ISO 8601."""

    deployment: str
    pid: int
    since: str
    started: int = 0
    """When that process started, in ticks since the boot; 0: not told, by an earlier version."""

    @property
    def at_work(self) -> bool:
        """Whether that very process, not one that took its number, is alive."""
        begun = started_at(self.pid)
        return begun is not None and self.started in (0, begun)


def conduct(folder: Path) -> None:
    """Make a deployment's folder, which is this process's from then on. Raises OSError."""
    folder.mkdir(parents=True, mode=0o700)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    mine = Conducted(
        deployment=folder.name, pid=os.getpid(), since=now, started=started_at(os.getpid()) or 0
    )
    inside.write(folder, CONDUCTOR, mine.model_dump_json().encode())


def conducted_below(deployments: Path) -> tuple[Conducted, ...]:
    """The folders of deployments that are there, also of processes that are gone; one that does not
    say whose it is is left out.
    """
    found = []
    for path in sorted(deployments.glob(f"*/{CONDUCTOR}")):
        with suppress(
            OSError, ValidationError
        ):  # it goes while it is looked at, or its process was killed as it wrote
            found.append(Conducted.model_validate_json(path.read_bytes()))
    return tuple(found)


def started_at(pid: int) -> int | None:
    """When a process of this machine started, in ticks since the boot; None when there is none of
    that number.
    """
    try:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
