"""The memory of daemons, as a program on their host, from /proc.

stdin is JSON, a list of command lines as the daemons were started; stdout is JSON, for each one
`{"processes": n, "resident_bytes": n, "peak_bytes": n or null}`, or null where no process has it.
A daemon's processes are those with its command line and all their descendants; memory that they
share counts once, and files that they map as much as the process that has most of them resident.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

Number = Optional[int]  # noqa: UP045 - hosts may have Python 3.9, which evaluates it


def matches(words: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a process's words are a daemon's, perhaps behind an interpreter and its options."""
    tail = [os.path.basename(argv[0]), *argv[1:]]  # noqa: PTH119 - words need not be paths
    for index, word in enumerate(words):
        found = [os.path.basename(word), *words[index + 1 : index + len(tail)]]  # noqa: PTH119
        if found == tail:
            return True
    return False


def numbers(text: str, names: Sequence[str]) -> dict[str, int]:
    """The kB lines of a status or smaps file with these names, in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name in names and len(words) == 2 and words[1] == "kB":
            found[name] = int(words[0]) * 1024
    return found


class Process:
    """One process of the host."""

    def __init__(self, folder: Path) -> None:
        """Raises FileNotFoundError or ProcessLookupError when it has ended."""
        self.folder = folder
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        self.words = words[:-1] if words[-1:] == [""] else words
        # The program's name, in brackets, may contain spaces and brackets.
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        self.parent = int(stat.split()[1])

    def resident(self) -> Optional[tuple[int, int]]:  # noqa: UP045
        """Its resident bytes of memory proper, a part of those that it shares with its relatives,
        and of files; None where they cannot be read.

        Other hosts of a lab may map the same files: each host would have them by itself.
        """
        try:
            text = (self.folder / "smaps_rollup").read_text(encoding="utf-8")
            status = (self.folder / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        own = numbers(text, ["Pss_Anon", "Pss_Shmem"])
        files = numbers(status, ["RssFile"])
        return (sum(own.values()), files["RssFile"]) if len(own) == 2 and files else None

    def peak(self) -> Number:
        """The most that was resident; None where it cannot be read."""
        try:
            text = (self.folder / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return numbers(text, ["VmHWM"]).get("VmHWM")


def processes(proc: Path) -> dict[int, Process]:
    """All processes by number."""
    found = {}
    for folder in proc.glob("[0-9]*"):
        try:
            found[int(folder.name)] = Process(folder)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return found


def memory(every: Mapping[int, Process], argv: Sequence[str]) -> Optional[dict[str, Number]]:  # noqa: UP045
    """The memory of one daemon; None where it has no process, or one that cannot be read."""
    own = {number for number, one in every.items() if matches(one.words, argv)}
    grown = True
    while grown:
        more = {number for number, one in every.items() if one.parent in own} - own
        own |= more
        grown = bool(more)
    sizes = [every[number].resident() for number in sorted(own)]
    known = [size for size in sizes if size is not None]
    if not own or len(known) < len(own):
        return None
    alone = every[next(iter(own))].peak() if len(own) == 1 else None
    resident = sum(size for size, _ in known) + max(files for _, files in known)
    return {"processes": len(own), "resident_bytes": resident, "peak_bytes": alone}


def main() -> None:
    """Read command lines from stdin, print their memory."""
    every = processes(Path("/proc"))
    every.pop(os.getpid(), None)
    json.dump([memory(every, argv) for argv in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
