"""Keeping the logs of hosts that go: copies of regular files, in a folder that people share.

Whoever is root on a host fills the folder of its logs with what they like. A link there could show
any file of this machine: links, pipes and the like are named in a file beside the copies, and never
followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weighbridge.common import inside
from weighbridge.common.errors import TargetError
from weighbridge.common.inert import inert
from weighbridge.common.quantities import show_bytes

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 64 * 2**30
"""Of one host in one deployment: debug logs of days are less."""
NOT_COPIED: Final = "{host}.not-copied.txt"


def keep(source: Path, folder: Path, host: str) -> None:
    """Copy a host's folder of logs as `folder`/`host`; what is not copied is in
    `folder`/`host`.not-copied.txt, a line each.

    Raises TargetError when nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        left_out = "".join(f"{inert(line)}\n" for line in _copied(source, folder, host))
        if left_out:
            inside.write(folder, NOT_COPIED.format(host=host), left_out.encode(errors="replace"))
    except OSError as error:
        advice = "Make room there, or say another place; the hosts are taken away all the same."
        raise TargetError(
            f"{folder}: the logs of {host} cannot be kept: {error.strerror}", advice=advice
        ) from error


def _copied(source: Path, folder: Path, host: str) -> Iterator[str]:
    """Copy what can be; yields a line about each thing that was not."""
    left_bytes = MOST_BYTES
    for number, entry in enumerate(inside.entries(source)):
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
    with os.fdopen(inside.opened(source, name, os.O_RDONLY), "rb") as original:
        known = os.fstat(original.fileno())
        if known.st_size > left_bytes:
            raise inside.Refused(
                0, f"is not copied: no more than {show_bytes(MOST_BYTES)} are, of one host", name
            )
        descriptor = inside.opened(
            folder, f"{host}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, make_folders=True
        )
        with os.fdopen(descriptor, "wb") as copy:
            os.fchmod(descriptor, stat.S_IMODE(known.st_mode) & 0o666)
            shutil.copyfileobj(original, copy, 2**20)
            copy.flush()
            os.utime(descriptor, ns=(known.st_atime_ns, known.st_mtime_ns))
        return known.st_size
