"""Disks of a host: `look` at those whose names are on stdin, or `clear` those whose names and sizes
are.

The kernel is asked by the disk's number: a name in /dev may be another disk's tomorrow, and lsblk
needs udev, which not every container has. stdout is JSON.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EDGE_BYTES = 2**20
"""Cleared at both ends of a disk, and empty at the start of one that may not be wiped: labels,
partition tables and all file systems' first superblocks are there.
"""
RETRY_S = 0.1
BLKDISCARD, BLKRRPART = 0x1277, 0x125F
"""linux/fs.h."""
CANNOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.EIO, errno.EREMOTEIO, errno.EPERM)
"""Errors of disks that cannot discard."""
KINDS = {
    "swap": "swap space",
    "LVM2_member": "a volume of LVM",
    "linux_raid_member": "a member of a RAID (md)",
    "ceph_bluestore": "an OSD of Ceph (BlueStore)",
    "crypto_LUKS": "an encrypted volume (LUKS)",
}
BLUESTORE = b"bluestore block device"
"""The start of its label: libblkid knows it only since 2.35."""


def text(*parts: str | Path) -> str:
    """The text of a file of the kernel; empty: there is none."""
    try:
        return Path(*parts).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def number(path: str) -> str:
    """The number of a block device, such as 259:0. Raises ValueError for anything else."""
    status = Path(path).stat()
    if not stat.S_ISBLK(status.st_mode):
        raise ValueError("it is not a block device")
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def system(device: str) -> Path:
    """The device's folder in sysfs."""
    return Path("/sys/dev/block", device)


def listed(folder: Path) -> list[str]:
    """The names in a folder; none if it does not exist."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def parts(device: str) -> list[tuple[str, str]]:
    """Names and numbers of a disk's partitions."""
    folder = system(device)
    names = [name for name in listed(folder) if (folder / name / "partition").exists()]
    return [(name, text(folder, name, "dev")) for name in names]


def uses(path: str, device: str) -> list[str]:
    """What uses the disk or a partition of it."""
    names = {device: Path(path).name, **{own: name for name, own in parts(device)}}
    found = []
    for line in f"{text('/proc/1/mountinfo')}\n{text('/proc/self/mountinfo')}".splitlines():
        words = line.split()
        if words and words[2] in names:
            found.append(f"{names[words[2]]} is mounted at {words[4]}")
    for one, name in names.items():
        for holder in listed(system(one) / "holders"):
            folder = system(one) / "holders" / holder
            called = text(folder, "dm", "name") or text(folder, "md", "level")
            found.append(f"{name} is part of {holder}" + (f" ({called})" if called else ""))
    swaps = [line.split()[0] for line in text("/proc/swaps").splitlines()[1:]]
    found += [f"{names[one]} is swapped to" for one in _numbers(swaps) if one in names]
    for loop in listed(Path("/sys/block")):
        for one in _numbers([text("/sys/block", loop, "loop", "backing_file")]):
            if one in names:
                found.append(f"{names[one]} is the backing device of {loop}")
    if not found:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            found.append("a program, or a mount that only a container sees, has it exclusively")
    return list(dict.fromkeys(found))


def _numbers(paths: list[str]) -> Iterator[str]:
    for path in paths:
        try:
            yield number(path)
        except (OSError, ValueError):
            continue


def size_of(path: str) -> int:
    """The size of a device in bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def holds(path: str, size: int) -> list[str]:
    """What is on a disk. Raises ValueError where that cannot be found out."""
    for tool in ("blkid", "wipefs"):
        if shutil.which(tool) is None:
            raise ValueError(
                f"the host has no {tool} to examine it: install its package util-linux"
            )
    done = _run("blkid", "-p", "-o", "export", path)
    if done.returncode not in (0, 2, 8):
        raise ValueError(f"blkid failed: {done.stderr.strip() or done.returncode}")
    facts = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    # Status 2: nothing known is on it; 8: several things are.
    found = ["data of several kinds at once"] if done.returncode == 8 else []
    kind = facts.get("TYPE")
    if kind is not None:
        label = f" with the name {facts['LABEL']!r}" if "LABEL" in facts else ""
        other = f"a file system ({kind})" if facts.get("USAGE") == "filesystem" else kind
        found.append(KINDS.get(kind, other) + label)
    if "PTTYPE" in facts:
        found.append(f"a partition table ({facts['PTTYPE']})")
    if not found:
        done = _run("wipefs", "--noheadings", "--output", "TYPE", path)
        if done.returncode:
            raise ValueError(f"wipefs failed: {done.stderr.strip() or done.returncode}")
        found += [f"a label of {kind}" for kind in dict.fromkeys(done.stdout.split())]
    if not found:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            start = os.pread(descriptor, min(EDGE_BYTES, size), 0)
        finally:
            os.close(descriptor)
        if start.startswith(BLUESTORE):
            found.append(KINDS["ceph_bluestore"])
        elif start.strip(b"\0"):
            found.append("data of an unknown kind in its first MiB")
    return found


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def model_of(folder: Path) -> str:
    """A disk's vendor and model; SCSI fills both up with spaces."""
    words = f"{text(folder, 'device', 'vendor')} {text(folder, 'device', 'model')}"
    return " ".join(words.split())


def look(name: str) -> dict[str, Any]:
    """Facts about a disk; `fault` says why they are not known."""
    try:
        device = number(name)
    except FileNotFoundError:
        folder = Path(name).parent
        names = listed(folder)
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        present = ", ".join(names[:12]) or "nothing"
        return {"fault": f"there is no such disk; in {folder} there is {present}{more}"}
    except (OSError, ValueError) as error:
        return {"fault": str(error)}
    path = str(Path(name).resolve())
    folder = system(device)
    rotating = text(folder, "queue", "rotational")
    try:
        size = size_of(path)
        used = uses(path, device)
        held = [] if used else holds(path, size)
    except (OSError, ValueError) as error:
        return {"fault": f"{path}: {error}"}
    return {
        "fault": "",
        "path": path,
        "device": device,
        "size_bytes": size,
        "model": model_of(folder),
        "rotational": None if not rotating else rotating == "1",
        "partition": (folder / "partition").exists(),
        "read_only": text(folder, "ro") == "1",
        "used": used,
        "holds": held,
    }


def clear(name: str, size: int, freed_s: float) -> None:
    """Clear a disk once nothing uses it.

    Raises ValueError or OSError; a disk in use is not written to.
    """
    try:
        device = number(name)
    except FileNotFoundError:
        raise ValueError("it is no longer there") from None
    path = str(Path(name).resolve())
    if size_of(path) != size:
        raise ValueError(f"{path} has another size than before: another disk, so not touched")
    descriptor = _open_alone(path, device, freed_s)
    try:
        for label, _ in reversed(parts(device)):
            _run("wipefs", "--all", "--force", f"/dev/{label}")
        try:
            fcntl.ioctl(descriptor, BLKDISCARD, struct.pack("QQ", 0, size))
        except OSError as error:
            if error.errno not in CANNOT:
                raise
        nothing = bytes(min(EDGE_BYTES, size))
        for offset in (0, size - len(nothing)):
            os.pwrite(descriptor, nothing, offset)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    # wipefs also finds labels further in, such as Btrfs's copies.
    done = _run("wipefs", "--all", "--force", path)
    if done.returncode:
        raise ValueError(f"wipefs failed: {done.stderr.strip() or done.returncode}")
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, BLKRRPART)  # the kernel forgets the partitions that were on it
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(descriptor)


def _open_alone(path: str, device: str, freed_s: float) -> int:
    """An exclusive descriptor of a disk, which may stay in use for a moment: the last mount of a
    file system ends some time after the last process that saw it.
    """
    limit = time.monotonic() + freed_s
    while True:
        used = uses(path, device)
        if not used:
            try:
                return os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                used = ["a program opened it just now"]
        if time.monotonic() > limit:
            raise ValueError(f"{path} is in use, so not touched: {'; '.join(used)}")
        time.sleep(RETRY_S)


def cleared(disks: list[tuple[str, int]], freed_s: float) -> list[str]:
    """Clear all disks; returns messages about those that failed."""
    failed = []
    for name, size in disks:
        try:
            clear(name, size, freed_s)
        except (OSError, ValueError) as error:
            failed.append(f"{name}: {error}")
    return failed


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    asked = json.load(sys.stdin)
    if sys.argv[1] == "look":
        json.dump([look(name) for name in asked], sys.stdout)
    else:
        json.dump(cleared(asked, float(sys.argv[2])), sys.stdout)
