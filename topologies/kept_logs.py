"""Keeping the logs of hosts that are torn down, in a folder that people share.

Root on a host can put anything into its log folder, such as a link to any file of this machine.
Only regular files are copied; links, pipes and the like are named in a file beside the copies.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError
from weighbridge.common.escaping import escape_controls
from weighbridge.common.host import Host
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import Say

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 64 * 2**30
"""For one host in one deployment: debug logs of days are smaller."""
NOT_COPIED: Final = "{host}.not-copied.txt"


def keep_all(hosts: Mapping[str, Host], folder: Path, say: Say) -> None:
    """Copy the logs of all hosts.

    A failure is only reported: raised, it would hide the error that ended the deployment.
    """
    for name, host in hosts.items():
        source = host.log("")
        if source.is_dir():
            try:
                keep(source, folder, name)
            except TargetError as error:
                say(error.message)


def keep(source: Path, folder: Path, host: str) -> None:
    """Copy a host's log folder to `folder`/`host`; `folder`/`host`.not-copied.txt lists the rest.

    Raises TargetError when nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        not_copied = "".join(f"{escape_controls(line)}\n" for line in _copied(source, folder, host))
        if not_copied:
            safe_files.write(
                folder, NOT_COPIED.format(host=host), not_copied.encode(errors="replace")
            )
    except OSError as error:
        raise TargetError(
            f"{folder}: the logs of {host} cannot be kept: {error.strerror}",
            advice="Free some space or choose another folder; the hosts are torn down anyway.",
        ) from error


def _copied(source: Path, folder: Path, host: str) -> Iterator[str]:
    """Copy what can be copied; yields a line about everything else."""
    left_bytes = MOST_BYTES
    for number, entry in enumerate(safe_files.entries(source)):
        if number == MOST_FILES:
            yield f"all others: no more than {MOST_FILES} files are copied"
            return
        shown = entry.name.replace("\n", "\\n")
        if entry.otherwise:
            yield f"{shown}: is {entry.otherwise}"
            continue
        try:
            left_bytes -= _copy(source, folder, host, entry.name, left_bytes)
        except OSError as error:
            yield f"{shown}: {error.strerror}"


def _copy(source: Path, folder: Path, host: str, name: str, left_bytes: int) -> int:
    """Copy one file with its mode and time; returns its bytes. Raises OSError."""
    with os.fdopen(safe_files.open_descriptor(source, name, os.O_RDONLY), "rb") as original:
        known = os.fstat(original.fileno())
        if known.st_size > left_bytes:
            raise safe_files.Refused(
                0, f"is not copied: a host's logs are limited to {show_bytes(MOST_BYTES)}", name
            )
        descriptor = safe_files.open_descriptor(
            folder, f"{host}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, make_folders=True
        )
        with os.fdopen(descriptor, "wb") as copy:
            os.fchmod(descriptor, stat.S_IMODE(known.st_mode) & 0o666)
            shutil.copyfileobj(original, copy, 2**20)
            copy.flush()
            os.utime(descriptor, ns=(known.st_atime_ns, known.st_mtime_ns))
        return known.st_size
