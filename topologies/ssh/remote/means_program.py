"""Systemd, space and file system at a folder, overlayfs, SELinux and firewalld.

stdout is JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def file_system(path: Path) -> str:
    """The type of the file system of a path, by the longest mount point above it."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        if len(point) >= len(best) and (path == Path(point) or Path(point) in path.parents):
            best, kind = point, right.split()[0]
    return kind


def overlay() -> bool:
    """Whether the running kernel has overlayfs, or a module that it loads on demand."""
    if "overlay" in Path("/proc/filesystems").read_text(encoding="ascii").split():
        return True
    listed = Path("/lib/modules", os.uname().release, "modules.dep")
    return listed.exists() and "/overlay.ko" in listed.read_text(encoding="utf-8")


def text(path: str) -> str:
    """The text of a file; empty: it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def trusted() -> list[str] | None:
    """The sources of firewalld's zone for trusted ones; None: it is not running."""
    if shutil.which("firewall-cmd") is None:
        return None
    words = ["firewall-cmd", "--zone=trusted", "--list-sources"]
    listed = subprocess.run(words, capture_output=True, text=True, check=False)
    # It ends with 252 where firewalld does not run.
    return listed.stdout.split() if listed.returncode == 0 else None


def look(folder: Path) -> dict[str, Any]:
    """See `topologies.ssh.requirements`."""
    existing = next(path for path in (folder, *folder.parents) if path.exists()).resolve()
    space = os.statvfs(existing)
    return {
        "systemd": Path("/run/systemd/system").is_dir(),
        "free_bytes": space.f_bavail * space.f_frsize,
        "file_system": file_system(existing),
        "overlay": overlay(),
        "selinux": text("/sys/fs/selinux/enforce") == "1",
        "firewalld": trusted(),
    }


if __name__ == "__main__":
    json.dump(look(Path(sys.argv[1])), sys.stdout)
