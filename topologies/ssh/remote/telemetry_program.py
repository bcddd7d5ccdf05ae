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


def counters(group: str | None, nic: str | None, disks: list[str]) -> dict[str, Any]:
    """All counters since the start of each."""
    found = of_group(group) if group else of_host()
    found["disks"] = [of_disk(read(f"{BLOCK}/{disk}/stat")) for disk in disks]
    found.update(of_nic(read(f"{PROC}/net/dev"), nic))
    return found


def of_group(group: str) -> dict[str, Any]:
    """CPU and memory of a cgroup and those below it."""
    if Path(f"{CGROUPS}/cgroup.controllers").exists():
        folder = f"{CGROUPS}/{group}"
        cpu = pairs(read(f"{folder}/cpu.stat"))
        pages = pairs(read(f"{folder}/memory.stat"))
        used = int(read(f"{folder}/memory.current"))
        peak = f"{folder}/memory.peak"
        return {
            "cpu_s": cpu["usage_usec"] / 1e6,
            "throttled_s": cpu["throttled_usec"] / 1e6 if "throttled_usec" in cpu else None,
            "cpu_periods": cpu.get("nr_periods"),
            "throttled_periods": cpu.get("nr_throttled"),
            "memory_bytes": used,
            "memory_held_bytes": max(0, used - pages["active_file"] - pages["inactive_file"]),
            "memory_peak_bytes": int(read(peak)) if Path(peak).exists() else None,
            "oom_kills": pairs(read(f"{folder}/memory.events"))["oom_kill"],
        }
    account = f"{CGROUPS}/cpuacct/{group}/cpuacct.usage"
    cpu = pairs(read(f"{CGROUPS}/cpu/{group}/cpu.stat"))
    folder = f"{CGROUPS}/memory/{group}"
    pages = pairs(read(f"{folder}/memory.stat"))
    used = int(read(f"{folder}/memory.usage_in_bytes"))
    return {
        # systemd uses cpuacct only if it is mounted together with cpu; else a slice is not counted.
        "cpu_s": int(read(account)) / 1e9 if Path(account).exists() else of_host()["cpu_s"],
        "throttled_s": cpu["throttled_time"] / 1e9,
        "cpu_periods": cpu["nr_periods"],
        "throttled_periods": cpu["nr_throttled"],
        "memory_bytes": used,
        "memory_held_bytes": max(
            0, used - pages["total_active_file"] - pages["total_inactive_file"]
        ),
        "memory_peak_bytes": int(read(f"{folder}/memory.max_usage_in_bytes")),
        # Version 1 counts in the cgroup of the killed process, which ends with it: use the host's
        # count.
        "oom_kills": pairs(read(f"{PROC}/vmstat")).get("oom_kill"),
    }


def of_host() -> dict[str, Any]:
    """CPU and memory of the entire host, if a deployment's alone are not counted."""
    user, nice, system, _idle, _iowait, irq, softirq = [
        int(word) for word in read(f"{PROC}/stat").split("\n", 1)[0].split()[1:8]
    ]
    memory = pairs(read(f"{PROC}/meminfo").replace(" kB", "").replace(":", ""))
    return {
        "cpu_s": (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"),
        "memory_bytes": (memory["MemTotal"] - memory["MemFree"]) * 1024,
        "memory_held_bytes": (memory["MemTotal"] - memory["MemAvailable"]) * 1024,
        "oom_kills": pairs(read(f"{PROC}/vmstat")).get("oom_kill"),
    }


def of_disk(text: str) -> dict[str, float]:
    """Counters in a /sys/dev/block/*/stat (Documentation/block/stat.rst)."""
    stat = [int(word) for word in text.split()]
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


def running(pid: int, started: int) -> bool:
    """Whether this same process is running and no zombie."""
    try:
        fields = read(f"{PROC}/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] not in "ZX" and int(fields[19]) == started


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
