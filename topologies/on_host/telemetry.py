"""Counters, processes and logs of a host, by question and answer.

`python3 -I -c SOURCE WORDS`: WORDS is JSON, `{"group": cgroup or null, "nic": device or null,
"disks": ["8:0", ...], "log": folder}`. Each line of stdin is a question in JSON, answered by one
line. It ends with its stdin and needs Python 3.9.

`{"ask": "counters"}`: numbers by the names of `common.host.Counters`; null: not known. `{"ask":
"running", "processes": [[pid, started], ...]}`: a list of true and false. `{"ask": "log", "name":
path or "", "known": {path: [inode, offset], ...}}`: additions since, `{"files": {path: {"inode":
number, "offset": bytes, "data": base64}}, "more": bool}`; offset 0: a new file.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any

SECTOR_BYTES = 512
START = 19
"""The place in `stat_of` of a process's start, in ticks since the boot."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MOST_BYTES = 2 * 2**20
"""Of logs in one answer at most."""
CGROUPS = "/sys/fs/cgroup"
PROC = "/proc"
BLOCK = "/sys/dev/block"


def read(path: str) -> str:
    """The text of a small file."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


def pairs(text: str) -> dict[str, int]:
    """`name number` lines, and no others."""
    words = (line.split() for line in text.splitlines())
    return {one[0]: int(one[1]) for one in words if len(one) == 2}


def counters(
    group: str | None, nic: str | None, disks: list[str], interfaces: str = ""
) -> dict[str, Any]:
    """All counters since the start of each; `interfaces` is the table of another namespace's."""
    found = of_group(group) if group else of_host()
    found["disks"] = [of_disk(disk) for disk in disks]
    found.update(of_nic(read(interfaces or f"{PROC}/net/dev"), nic))
    return found


def of_group(group: str) -> dict[str, Any]:
    """CPU and memory of a cgroup and those below it."""
    second = Path(f"{CGROUPS}/cgroup.controllers").exists()
    folder = f"{CGROUPS}/{group}" if second else f"{CGROUPS}/memory/{group}"
    cpu = pairs(read(f"{folder if second else f'{CGROUPS}/cpu/{group}'}/cpu.stat"))
    pages = pairs(read(f"{folder}/memory.stat"))
    used = int(read(f"{folder}/memory.{'current' if second else 'usage_in_bytes'}"))
    total = "" if second else "total_"
    cached = pages[f"{total}active_file"] + pages[f"{total}inactive_file"]
    peak = f"{folder}/memory.{'peak' if second else 'max_usage_in_bytes'}"
    found: dict[str, Any] = {
        "cpu_periods": cpu.get("nr_periods"),
        "throttled_periods": cpu.get("nr_throttled"),
        "memory_bytes": used,
        "memory_held_bytes": max(0, used - cached),
        # Version 2 has it since Linux 5.19.
        "memory_peak_bytes": int(read(peak)) if Path(peak).exists() else None,
    }
    if second:
        found["cpu_s"] = cpu["usage_usec"] / 1e6
        found["throttled_s"] = cpu["throttled_usec"] / 1e6 if "throttled_usec" in cpu else None
        found["oom_kills"] = pairs(read(f"{folder}/memory.events"))["oom_kill"]
        return found
    account = f"{CGROUPS}/cpuacct/{group}/cpuacct.usage"
    # systemd uses cpuacct only if it is mounted together with cpu; else a slice is not counted.
    found["cpu_s"] = int(read(account)) / 1e9 if Path(account).exists() else of_host()["cpu_s"]
    found["throttled_s"] = cpu["throttled_time"] / 1e9
    # Version 1 counts in the cgroup of the killed process, which ends with it: use the host's
    # count.
    found["oom_kills"] = pairs(read(f"{PROC}/vmstat")).get("oom_kill")
    return found


def of_host() -> dict[str, Any]:
    """CPU and memory of the entire host, if a deployment's alone are not counted."""
    memory = pairs(read(f"{PROC}/meminfo").replace(" kB", "").replace(":", ""))
    return {
        "cpu_s": sum(machine_ticks(read(f"{PROC}/stat"))) / TICKS_PER_S,
        "memory_bytes": (memory["MemTotal"] - memory["MemFree"]) * 1024,
        "memory_held_bytes": (memory["MemTotal"] - memory["MemAvailable"]) * 1024,
        "oom_kills": pairs(read(f"{PROC}/vmstat")).get("oom_kill"),
    }


def machine_ticks(text: str) -> tuple[int, int]:
    """CPU time of programs and of interrupts in a /proc/stat; that of guests is part of user."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, text.split(None, 8)[1:8])
    return user + nice + system, irq + softirq


def of_disk(number: str) -> dict[str, float]:
    """The counters of a disk such as 8:0 (Documentation/block/stat.rst)."""
    stat = [int(word) for word in read(f"{BLOCK}/{number}/stat").split()]
    return {
        "read_bytes": stat[2] * SECTOR_BYTES,
        "written_bytes": stat[6] * SECTOR_BYTES,
        "reads": stat[0],
        "writes": stat[4],
        "busy_s": stat[9] / 1e3,
        "waited_s": (stat[3] + stat[7]) / 1e3,
    }


def of_nic(table: str, nic: str | None) -> dict[str, int]:
    """Counters in a /proc/net/dev; nothing if there is no such device."""
    for line in table.splitlines():
        name, _, numbers = line.partition(":")
        if nic and name.strip() == nic:
            fields = [int(word) for word in numbers.split()]
            # Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; sent: bytes,
            # packets, errs, drop, ...
            faults = fields[2] + fields[3] + fields[10] + fields[11]
            return {
                "network_received_bytes": fields[0],
                "network_sent_bytes": fields[8],
                "network_faults": faults,
            }
    return {}


def stat_of(pid: object, proc: str = "") -> list[str] | None:
    """The fields of a /proc/PID/stat from the state on; None: it has ended.

    The name before them, in parentheses, may hold anything, also blanks and parentheses.
    """
    try:
        fields = read(f"{proc or PROC}/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields


def running(pid: int, started: int) -> bool:
    """Whether this same process is running and no zombie."""
    fields = stat_of(pid)
    return fields is not None and int(fields[START]) == started


def added(folder: str, name: str, known: dict[str, list[int]]) -> dict[str, Any]:
    """What was added to one log, or to all, since they were last copied."""
    files = {}
    room = MOST_BYTES
    for path in [name] if name else sorted(below(folder)):
        try:
            with os.fdopen(opened(folder, path), "rb") as file:
                stat = os.fstat(file.fileno())
                inode, offset = known.get(path, (stat.st_ino, 0))
                if inode != stat.st_ino or offset > stat.st_size:
                    offset = 0
                file.seek(offset)
                data = file.read(room)
        except OSError as error:
            # Gone, a link, or a socket.
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
                continue
            raise
        if data or path not in known or [stat.st_ino, offset] != list(known[path]):
            text = base64.b64encode(data).decode("ascii")
            files[path] = {"inode": stat.st_ino, "offset": offset, "data": text}
        room -= len(data)
        if room <= 0:
            return {"files": files, "more": True}
    return {"files": files, "more": False}


def opened(folder: str, path: str) -> int:
    """A descriptor of a file below the folder. Links are not followed: daemons that write there are
    not root.
    """
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for part in path.split("/"):
        try:
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    if not S_ISREG(os.fstat(at).st_mode):
        os.close(at)
        raise FileNotFoundError(errno.ENOENT, "is not a regular file", path)
    return at


def below(folder: str) -> Iterator[str]:
    """All regular files below a folder, by their paths in it."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = Path(at) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(folder))


def answer(question: dict[str, Any], words: dict[str, Any]) -> Any:
    """The answer to a question."""
    if question["ask"] == "counters":
        return counters(words["group"], words["nic"], words["disks"])
    if question["ask"] == "running":
        return [running(pid, started) for pid, started in question["processes"]]
    return added(words["log"], question["name"], question["known"])


def main() -> None:
    """Answer questions until stdin ends."""
    words = json.loads(sys.argv[1])
    for line in sys.stdin:
        try:
            result = {"answer": answer(json.loads(line), words)}
        except (OSError, KeyError, ValueError, IndexError) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
