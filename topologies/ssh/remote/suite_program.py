"""`look` at the host's Python, or `sweep` suites below a folder. stdout is JSON."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

NEEDED = ("venv", "sqlite3", "ssl", "zlib")


def look(folder: Path) -> dict[str, Any]:
    """See `topologies.ssh.suite.HostPython`."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    space = os.statvfs(existing)
    return {
        "python": {
            "version": f"{sys.version_info.major}.{sys.version_info.minor}",
            "soabi": str(sysconfig.get_config_var("SOABI")),
            "machine": platform.machine(),
        },
        "full": platform.python_version(),
        "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
        "free_bytes": space.f_bavail * space.f_frsize,
    }


def sweep(folder: Path, *, include_suites: bool) -> None:
    """Remove the unfinished suites below a folder, or all."""
    for path in folder.glob("suite-*"):
        if include_suites or path.name.endswith(".partial"):
            # Python's own removal recurses: a folder of some thousand levels would stay.
            subprocess.run(["rm", "-rf", "--", path], check=True)


if __name__ == "__main__":
    below = Path(sys.argv[2])
    if sys.argv[1] == "look":
        json.dump(look(below), sys.stdout)
    else:
        sweep(below, include_suites=sys.argv[3] == "all")
        json.dump(None, sys.stdout)
