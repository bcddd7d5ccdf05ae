"""Which services of a lab host were started and not stopped, kept in its folder: a later command
asks by it which of them died.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common import inside
from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.topologies.lab.ending import BUNDLES
from weighbridge.topologies.lab.program import LabProcess

FILE: Final = "daemons.json"


class LabDaemon(Record):
    """A service by its first process: its number on this machine and when it started; None: it had
    ended as soon as it began.
    """

    host: str
    service: str
    pid: int | None
    started: int = 0

    @property
    def alive(self) -> bool:
        """Whether that very process is there."""
        if self.pid is None:
            return False
        now = LabProcess.of(self.pid)
        return now is not None and now.started == self.started


class KeptDaemons(Record):
    """What is in the file."""

    daemons: tuple[LabDaemon, ...]


def keep(folder: Path, host: str, services: Mapping[str, LabProcess | None]) -> None:
    """Write down, whole or not at all, what runs on a host whose folder this is.

    Raises TargetError.
    """
    daemons = tuple(
        LabDaemon(host=host, service=name, pid=one.pid, started=one.started)
        if one
        else LabDaemon(host=host, service=name, pid=None)
        for name, one in services.items()
    )
    try:
        inside.write(folder, FILE, KeptDaemons(daemons=daemons).model_dump_json().encode())
    except OSError as error:
        raise TargetError(f"{host}: {folder / FILE} cannot be written: {error.strerror}") from error


def daemons(deployment: Path) -> tuple[LabDaemon, ...]:
    """All that was started on the hosts of the deployment that has this folder, and not stopped.

    Raises TargetError.
    """
    found: list[LabDaemon] = []
    for path in sorted((deployment / BUNDLES).glob(f"*/{FILE}")):
        try:
            found += KeptDaemons.model_validate_json(path.read_bytes()).daemons
        except FileNotFoundError:
            continue  # it is being taken away
        except (OSError, ValidationError) as error:
            raise TargetError(
                f"{path} does not tell which daemons were started: {error}"
            ) from error
    return tuple(found)
