"""Tells what a real host has used, which processes are there, and what is new in its logs; runs
there while it is asked.

`python3 -I -c SOURCE WORDS`: WORDS is JSON, `{"group": cgroup or null, "nic": device or null,
"disks": ["8:0", ...], "log": folder}`. Each line of its stdin is a question, JSON too; each is
answered by one line. It ends when its stdin does. Good for Python 3.9.

`{"ask": "counters"}`: numbers by the names of `common.host.Counters`; null where the kernel does
not tell. `{"ask": "there", "processes": [[pid, started], ...]}`: a list of true and false. `{"ask":
"log", "name": path or "", "known": {path: [inode, offset], ...}}`: what was added since, `{"files":
{path: {"inode": number, "offset": bytes, "data": base64}}, "more": bool}`; offset 0 is of a file
that was begun anew.
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
"""Of logs in one answer."""
CGROUPS = "/sys/fs/cgroup"
PROC = "/proc"
BLOCK = "/sys/dev/block"


def read(path: str) -> str:
    """The text of a small file."""
    return Path(path).read_text(encoding="utf-8", errors="replace")


def pairs(text: str) -> dict[str, int]:
    """`name number` lines."""
    return {
        line.split()[0]: int(line.split()[1])
        for line in text.splitlines()
        if len(line.split()) == 2
    }


def counters(group: str | None, nic: str | None, disks: list[str]) -> dict[str, Any]:
    """What has been used, since whenever each began to count."""
    told = of_group(group) if group else of_host()
    told["disks"] = [of_disk(read(f"{BLOCK}/{disk}/stat")) for disk in disks]
    told.update(of_nic(read(f"{PROC}/net/dev"), nic))
    return told


def of_group(group: str) -> dict[str, Any]:
    """CPU and memory of a cgroup and all below it."""
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
        # systemd knows cpuacct only as it is mounted together with cpu: on its own, nothing is
        # counted for a slice.
        "cpu_s": int(read(account)) / 1e9 if Path(account).exists() else of_host()["cpu_s"],
        "throttled_s": cpu["throttled_time"] / 1e9,
        "cpu_periods": cpu["nr_periods"],
        "throttled_periods": cpu["nr_throttled"],
        "memory_bytes": used,
        "memory_held_bytes": max(
            0, used - pages["total_active_file"] - pages["total_inactive_file"]
        ),
        "memory_peak_bytes": int(read(f"{folder}/memory.max_usage_in_bytes")),
        # Version 1 counts them in the cgroup of the process that was ended, which goes with it: the
        # host's own count stays.
        "oom_kills": pairs(read(f"{PROC}/vmstat")).get("oom_kill"),
    }


def of_host() -> dict[str, Any]:
    """CPU and memory of the whole host, where nothing is counted for a deployment alone."""
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
    """Of a /sys/dev/block/*/stat (Documentation/block/stat.rst)."""
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
    """Of a /proc/net/dev; nothing where there is no such device."""
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


def there(pid: int, started: int) -> bool:
    """Whether this very process is there and no zombie."""
    try:
        fields = read(f"{PROC}/{pid}/stat").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] not in "ZX" and int(fields[19]) == started


def new_of(folder: str, name: str, known: dict[str, list[int]]) -> dict[str, Any]:
    """What was added to one log, or to all, since it was last told of."""
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
            if error.errno in (
                errno.ENOENT,
                errno.ELOOP,
                errno.ENOTDIR,
                errno.ENXIO,
            ):  # gone, a link, or a socket
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
    """A file's descriptor, reached without following any link below the folder: daemons that write
    there are not root.
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
        raise FileNotFoundError(errno.ENOENT, "is no regular file", path)
    return at


def below(folder: str) -> Iterator[str]:
    """All regular files below a folder, by their paths in it."""
    for at, _, names in os.walk(folder):
        for name in names:
            path = Path(at) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(folder))


def answer(question: dict[str, Any], words: dict[str, Any]) -> Any:
    """What is said to a question."""
    if question["ask"] == "counters":
        return counters(words["group"], words["nic"], words["disks"])
    if question["ask"] == "there":
        return [there(pid, started) for pid, started in question["processes"]]
    return new_of(words["log"], question["name"], question["known"])


def main() -> None:
    """Answer until nobody asks any more."""
    words = json.loads(sys.argv[1])
    for line in sys.stdin:
        try:
            told = {"answer": answer(json.loads(line), words)}
        except (OSError, KeyError, ValueError, IndexError) as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
