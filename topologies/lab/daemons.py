"""Services that were started on a lab host and not stopped, kept in its folder, so that a later
command can see which of them died.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.topologies.lab.ending import BUNDLES
from weighbridge.topologies.lab.program import LabProcess

FILE: Final = "daemons.json"


class LabDaemon(Record):
    """A service by its first process on this machine; `pid` None: it ended at once."""

    host: str
    service: str
    pid: int | None
    started: int = 0

    @property
    def alive(self) -> bool:
        """Whether that same process is running."""
        if self.pid is None:
            return False
        now = LabProcess.of(self.pid)
        return now is not None and now.started == self.started


class KeptDaemons(Record):
    """The content of the file."""

    daemons: tuple[LabDaemon, ...]


def keep(folder: Path, host: str, services: Mapping[str, LabProcess | None]) -> None:
    """Record atomically which services run on the host with this folder. Raises TargetError."""
    daemons = tuple(
        LabDaemon(host=host, service=name, pid=one.pid, started=one.started)
        if one
        else LabDaemon(host=host, service=name, pid=None)
        for name, one in services.items()
    )
    try:
        safe_files.write(folder, FILE, KeptDaemons(daemons=daemons).model_dump_json().encode())
    except OSError as error:
        raise TargetError(f"{host}: {folder / FILE} cannot be written: {error.strerror}") from error


def daemons(deployment: Path) -> tuple[LabDaemon, ...]:
    """All services of a deployment, by its folder, that were started and not stopped.

    Raises TargetError.
    """
    found: list[LabDaemon] = []
    for path in sorted((deployment / BUNDLES).glob(f"*/{FILE}")):
        try:
            found += KeptDaemons.model_validate_json(path.read_bytes()).daemons
        except FileNotFoundError:
            continue  # the host is being torn down
        except (OSError, ValidationError) as error:
            raise TargetError(f"{path} is not a valid list of started daemons: {error}") from error
    return tuple(found)
