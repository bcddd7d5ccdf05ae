"""Which processes run with which configuration file, as a program on a host.

Swift's servers cannot be asked for their options. stdin is JSON, a list of paths of configuration
files; stdout is JSON by path: `sha256` of the file, `age_s` since it was written, and `processes`,
`[pid, age_s]` of each process that has the path among its arguments.
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
    """Pid and age, in seconds, of each process below `proc` that has the path among its arguments.

    `uptime_s` is the machine's, `ticks` is kernel ticks a second (proc(5): starttime).
    """
    found = []
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            # The program's name, in brackets, may contain spaces and brackets.
            stat = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if path.encode() in words:
            found.append([int(folder.name), uptime_s - int(stat[19]) / ticks])
    return found


def main() -> None:
    """Read the paths from stdin, print their processes."""
    found: dict[str, Any] = {}
    for path in json.load(sys.stdin):
        with Path(path).open("rb") as file:
            content, written = file.read(), os.fstat(file.fileno()).st_mtime
        uptime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        found[path] = {
            "sha256": hashlib.sha256(content).hexdigest(),
            "age_s": time.time() - written,
            "processes": processes(path, Path("/proc"), uptime_s, os.sysconf("SC_CLK_TCK")),
        }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
