"""Disks of a host, as a program there: `look` at those whose names are on stdin, or `clear` those
whose names and sizes are.

Everything is asked of the kernel by the disk's number: a name in /dev may be another disk's
tomorrow, and lsblk wants udev's help, which is not there in every container. stdout is JSON.
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
"""What is cleared at both ends of a disk, and must be empty at its beginning where it may not be
wiped: labels, partition tables and the first superblock of every file system are there."""
LOOK_AGAIN_S = 0.1
BLKDISCARD, BLKRRPART = 0x1277, 0x125F
"""linux/fs.h."""
CANNOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.EIO, errno.EREMOTEIO, errno.EPERM)
"""What disks say that discard nothing."""
KINDS = {
    "swap": "swap space",
    "LVM2_member": "a volume of LVM",
    "linux_raid_member": "a member of a RAID (md)",
    "ceph_bluestore": "an OSD of Ceph (BlueStore)",
    "crypto_LUKS": "an encrypted volume (LUKS)",
}
BLUESTORE = b"bluestore block device"
"""What its label begins with: libblkid knows it only since 2.35."""


def text(*parts: str | Path) -> str:
    """A file of the kernel; empty where there is none."""
    try:
        return Path(*parts).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def number(path: str) -> str:
    """The number of a block device, such as 259:0. Raises ValueError for what is none."""
    status = Path(path).stat()
    if not stat.S_ISBLK(status.st_mode):
        raise ValueError("it is not a block device")
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def system(device: str) -> Path:
    """Where the kernel tells of a device."""
    return Path("/sys/dev/block", device)


def listed(folder: Path) -> list[str]:
    """The names in a folder; none where there is no such folder."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def parts(device: str) -> list[tuple[str, str]]:
    """Its partitions: name and number."""
    folder = system(device)
    names = [name for name in listed(folder) if (folder / name / "partition").exists()]
    return [(name, text(folder, name, "dev")) for name in names]


def uses(path: str, device: str) -> list[str]:
    """What uses the disk or a partition of it, in words."""
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
    found += [f"{names[one]} is swapped to" for one in _numbers(_swaps()) if one in names]
    for loop in listed(Path("/sys/block")):
        for one in _numbers([text("/sys/block", loop, "loop", "backing_file")]):
            if one in names:
                found.append(f"{names[one]} is what {loop} is made of")
    if not found:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            found.append(
                "something has it for itself: a program, or a mount that only a container sees"
            )
    return list(dict.fromkeys(found))


def _swaps() -> list[str]:
    return [line.split()[0] for line in text("/proc/swaps").splitlines()[1:]]


def _numbers(paths: list[str]) -> Iterator[str]:
    """Of those that are block devices."""
    for path in paths:
        try:
            yield number(path)
        except (OSError, ValueError):
            continue


def size_of(path: str) -> int:
    """Bytes of a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def holds(path: str, size: int) -> list[str]:
    """What is on a disk, in words. Raises ValueError where it cannot be told."""
    for tool in ("blkid", "wipefs"):
        if shutil.which(tool) is None:
            raise ValueError(
                f"the host has no {tool} to tell what is on it: install its package util-linux"
            )
    done = _run("blkid", "-p", "-o", "export", path)
    if done.returncode not in (0, 2, 8):
        raise ValueError(f"blkid failed: {done.stderr.strip() or done.returncode}")
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    # 2: it knows nothing of it; 8: it knows several things of it.
    found = ["data of several kinds at once"] if done.returncode == 8 else []
    kind = told.get("TYPE")
    if kind is not None:
        called = f" with the name {told['LABEL']!r}" if "LABEL" in told else ""
        found.append(
            KINDS.get(
                kind, f"a file system ({kind})" if told.get("USAGE") == "filesystem" else kind
            )
            + called
        )
    if "PTTYPE" in told:
        found.append(f"a partition table ({told['PTTYPE']})")
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
            found.append("data that no tool there knows the kind of, in its first MiB")
    return found


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def look(name: str) -> dict[str, Any]:
    """What a disk is; `fault` says why that cannot be told."""
    try:
        device = number(name)
    except FileNotFoundError:
        folder = Path(name).parent
        there = listed(folder)
        more = f" and {len(there) - 12} more" if len(there) > 12 else ""
        return {
            "fault": f"there is no such disk; in {folder} there is "
            f"{', '.join(there[:12]) or 'nothing'}{more}"
        }
    except (OSError, ValueError) as error:
        return {"fault": str(error)}
    path = str(Path(name).resolve())
    rotating = text(system(device), "queue", "rotational")
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
        "model": " ".join(
            f"{text(system(device), 'device', 'vendor')} {text(system(device), 'device', 'model')}".split()
        ),
        "rotational": None if not rotating else rotating == "1",
        "partition": (system(device) / "partition").exists(),
        "read_only": text(system(device), "ro") == "1",
        "used": used,
        "holds": held,
    }


def clear(name: str, size: int, freed_s: float) -> None:
    """Make a disk empty, once nothing uses it.

    Raises ValueError or OSError, nothing then being written where it is in use.
    """
    try:
        device = number(name)
    except FileNotFoundError:
        raise ValueError("it is not there any more") from None
    path = str(Path(name).resolve())
    if size_of(path) != size:
        raise ValueError(
            f"{path} has not the size that it had: it is another disk, and was not touched"
        )
    descriptor = _alone(path, device, freed_s)
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
    # Labels further in, such as Btrfs's copies.
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


def _alone(path: str, device: str, freed_s: float) -> int:
    """A descriptor that has the disk for itself. What used it may need a moment to be gone: the
    last mount of a file system ends some time after the last process that saw it.
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
                used = ["something took it just now"]
        if time.monotonic() > limit:
            raise ValueError(f"{path} is in use, and was not touched: {'; '.join(used)}")
        time.sleep(LOOK_AGAIN_S)


def cleared(disks: list[tuple[str, int]], freed_s: float) -> list[str]:
    """Clear all of them; returns what could not be, in words."""
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
