"""What a run may leave on this machine, counted from outside: by the kernel's own lists, not by the
suite's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

OURS = re.compile(
    r"ceph-\w+|radosgw|swift-[\w-]+|memcached|runc|java|drivers\.(locust|cosbench|fake)|null-target|infinity"
)
"""Programs that hosts run, and those that start and load them; `infinity` is what keeps a host's
first process waiting.
"""


@dataclass(frozen=True)
class Traces:
    """Everything of ours or unexplained: compare one taken before with one taken after."""

    namespaces: frozenset[str]
    mounts: frozenset[str]
    loops: frozenset[str]
    cgroups: frozenset[str]
    processes: frozenset[str]
    files: frozenset[str]

    def beyond(self, before: Traces) -> Traces:
        """What was not there before."""
        return Traces(
            *(getattr(self, one.name) - getattr(before, one.name) for one in fields(self))
        )


def traces(*folders: Path) -> Traces:
    """Network namespaces, mounts of any process, loop devices in use, cgroups, processes and files
    below `folders`.
    """
    nets, mounts, processes = set(), set(), set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            nets.add(str((process / "ns" / "net").readlink()))
            mounts |= {
                line
                for line in (process / "mounts").read_text().splitlines()
                if re.search("overlay|weighbridge|/dev/loop", line)
            }
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended while it was looked at
        # Whole words of the command's beginning: a text that somebody else's program was given may
        # name anything.
        if any(OURS.fullmatch(Path(word).name) for word in words[:4]):
            processes.add(f"{process.name} {' '.join(words)[:120]}")
    loops = {path.parent.parent.name for path in Path("/sys/block").glob("loop*/loop/backing_file")}
    cgroups = {str(path) for path in Path("/sys/fs/cgroup").rglob("*weighbridge*") if path.is_dir()}
    files = {str(path) for folder in folders if folder.exists() for path in folder.rglob("*")}
    return Traces(*(frozenset(one) for one in (nets, mounts, loops, cgroups, processes, files)))
