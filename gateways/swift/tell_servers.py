"""What runs from which configuration file, as a program on a host: Swift's servers cannot be asked
for their options.

stdin is JSON, a list of paths of configuration files; stdout is JSON by path: `sha256` of the file,
`age_s` since it was written, and `processes`, `[pid, age_s]` of each that has the path among its
arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def processes(path: str, proc: Path, uptime_s: float, ticks: int) -> list[list[float]]:
    """Number and age, in seconds, of each process below `proc` that has the path among its
    arguments.

    `uptime_s` is the machine's, `ticks` how many of the kernel's make a second (proc(5):
    starttime).
    """
    found = []
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            # The name of the program, in brackets, may have spaces and brackets of its own.
            stat = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if path.encode() in words:
            found.append([int(folder.name), uptime_s - int(stat[19]) / ticks])
    return found


def main() -> None:
    """Tell it."""
    told: dict[str, Any] = {}
    for path in json.load(sys.stdin):
        with Path(path).open("rb") as file:
            content, written = file.read(), os.fstat(file.fileno()).st_mtime
        uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        age_s = time.time() - written
        ran = processes(path, Path("/proc"), uptime_s, os.sysconf("SC_CLK_TCK"))
        told[path] = {
            "sha256": hashlib.sha256(content).hexdigest(),
            "age_s": age_s,
            "processes": ran,
        }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
