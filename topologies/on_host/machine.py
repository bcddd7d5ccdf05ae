"""What a real host is asked and told outside of any deployment's programs: its claim, disks, kernel
settings and leftovers. `python3 -I -c SOURCE QUESTION WORDS...`: stdin and stdout are JSON.

Disks: the kernel is asked by the disk's number: a name in /dev may be another disk's tomorrow, and
lsblk needs udev, which not every container has.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import ipaddress
import json
import os
import platform
import shutil
import stat
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLAIM = "claim.json"
LABEL = b"WEIGHBRIDGE_DEPLOYMENT="
NEEDED = ("venv", "sqlite3", "ssl", "zlib")
"""What a Python needs to run this suite."""
BOOT = "/proc/sys/kernel/random/boot_id"
"""Processes and kernel settings do not outlive it."""
EDGE_BYTES = 2**20
"""Cleared at both ends of a disk, and empty at the start of one that may not be wiped: labels,
partition tables and all file systems' first superblocks are there.
"""
RETRY_S = 0.1
BLKDISCARD = 0x1277
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
USAGES = {"filesystem": "a file system", "partition-table": "a partition table"}
BLUESTORE = b"bluestore block device"
"""The start of its label: libblkid knows it only since 2.35."""


def text(*parts: str | Path) -> str:
    """The text of a small file, as of the kernel; empty: there is none."""
    try:
        return Path(*parts).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A command with what it printed, whatever its status."""
    return subprocess.run(words, capture_output=True, text=True, check=False)


def existing(folder: Path) -> Path:
    """The folder, or what there is of the path to it."""
    return next(path for path in (folder, *folder.parents) if path.exists()).resolve()


def free_bytes(folder: Path) -> int:
    """The free space where a folder is, or will be."""
    space = os.statvfs(existing(folder))
    return space.f_bavail * space.f_frsize


def claim(verb: str, folder: Path, given: Any) -> dict[str, str]:
    """Do what `verb` says, under a lock that is held for moments; the file alone is the claim."""
    if verb == "read" and not folder.is_dir():
        return {}
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path = folder / CLAIM
    try:
        there: str | None = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        there = None
    if verb == "take" and there is not None:
        return {"taken": there}
    if verb == "read":
        return {} if there is None else {"claim": there}
    if verb == "take":
        given["boot"] = text(BOOT)
        return write_claim(path, given)
    if there is None or not same(there, given):
        return {}
    if verb == "release":
        path.unlink()
        return {}
    return write_claim(path, given)


def same(there: str, given: Any) -> bool:
    """Whether the present claim is of the same deployment."""
    try:
        return bool(json.loads(there)["deployment"] == given["deployment"])
    except (ValueError, KeyError, TypeError):
        return False


def write_claim(path: Path, given: Any) -> dict[str, str]:
    """Write it atomically and to the disk: it must survive a power failure."""
    text = json.dumps(given)
    draft = path.with_suffix(".partial")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
    return {"claim": text}


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
    with Path(path).open("rb") as disk:
        return disk.seek(0, os.SEEK_END)


def holds(path: str, size: int) -> list[str]:
    """What is on a disk. Raises ValueError where that cannot be found out."""
    if shutil.which("wipefs") is None:
        raise ValueError("the host has no wipefs to examine it: install its package util-linux")
    done = run("wipefs", "--json", "--output", "TYPE,USAGE,LABEL", path)
    if done.returncode:
        raise ValueError(f"wipefs failed: {done.stderr.strip() or done.returncode}")
    found: dict[str, None] = {}
    for one in json.loads(done.stdout)["signatures"] if done.stdout.strip() else ():
        kind, named = one["type"], one.get("label")
        words = KINDS.get(kind, f"{USAGES.get(one['usage'], 'a label')} ({kind})")
        found[words + (f" with the name {named!r}" if named else "")] = None
    if not found:
        with Path(path).open("rb") as disk:
            start = disk.read(min(EDGE_BYTES, size))
        if start.startswith(BLUESTORE):
            found[KINDS["ceph_bluestore"]] = None
        elif start.strip(b"\0"):
            found["data of an unknown kind in its first MiB"] = None
    return list(found)


def model_of(folder: Path) -> str:
    """A disk's vendor and model; SCSI fills both up with spaces."""
    words = f"{text(folder, 'device', 'vendor')} {text(folder, 'device', 'model')}"
    return " ".join(words.split())


def look_at_disk(name: str) -> dict[str, Any]:
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


def clear_disk(name: str, size: int, freed_s: float) -> None:
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
            run("wipefs", "--all", "--force", f"/dev/{label}")
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
    done = run("wipefs", "--all", "--force", path)
    if done.returncode:
        raise ValueError(f"wipefs failed: {done.stderr.strip() or done.returncode}")
    run("blockdev", "--rereadpt", path)  # the kernel forgets the partitions that were on it


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
            clear_disk(name, size, freed_s)
        except (OSError, ValueError) as error:
            failed.append(f"{name}: {error}")
    return failed


def file_of(name: str) -> str:
    """The file of a setting; a dot within a part of its name is written as a slash (sysctl(8))."""
    path = "/proc/sys/" + name.translate(str.maketrans("./", "/."))
    if os.path.normpath(path) != path:
        raise ValueError(f"{name} is not the name of a setting")
    return path


def value_of(name: str) -> str:
    """The value of a setting."""
    return " ".join(Path(file_of(name)).read_text(encoding="utf-8").split())


def known(name: str) -> str | None:
    """The value of a setting; None: this kernel (or network namespace) does not have it."""
    try:
        return value_of(name)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def nic_of(address: str) -> tuple[str, int | None]:
    """The device with an address, and its MTU; empty: there is none.

    /sys may be another network namespace's.
    """
    wanted = ipaddress.ip_address(address)
    for nic in json.loads(run("ip", "-j", "addr", "show").stdout):
        for own in nic.get("addr_info", ()):
            if ipaddress.ip_address(own["local"]) == wanted:
                return nic["ifname"], nic["mtu"]
    return "", None


def look_at_kernel(address: str, names: list[str]) -> dict[str, Any]:
    """See `topologies.ssh.kernel.KernelState`."""
    nic, mtu = nic_of(address)
    lines = text("/proc/cpuinfo").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    speed = text(f"/sys/class/net/{nic}/speed") if nic else ""
    return {
        "kernel": os.uname().release,
        "boot": text(BOOT),
        "cpu": next(models, ""),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "nic": nic,
        "mtu": mtu,
        # Without a speed or a cable a NIC says -1 or nothing.
        "speed_mbit_s": int(speed) if speed.isdigit() and int(speed) else None,
        "sysctls": {name: known(name) for name in names},
    }


def set_kernel(given: dict[str, Any]) -> list[str]:
    """Set settings, and the MTU if given; returns messages about what the kernel did not accept.

    Settings of another boot are not set: the host has had its own since.
    """
    failed: list[str] = []
    if given["boot"] != text(BOOT):
        return failed
    for name, value in given["sysctls"].items():
        try:
            Path(file_of(name)).write_text(value, encoding="utf-8")
            now = value_of(name)
            if now.split() != value.split():
                failed.append(
                    f"{name} is {now} after it was set to {value}: this kernel refuses the value"
                )
        except (OSError, ValueError) as error:
            failed.append(f"{name} could not be set to {value!r}: {error}")
    if given["mtu"] is not None:
        nic, mtu = given["nic"], given["mtu"]
        done = run("ip", "link", "set", "dev", nic, "mtu", str(mtu))
        if done.returncode:
            failed.append(f"the MTU of {nic} could not be set to {mtu}: {done.stderr.strip()}")
    return failed


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


def trusted() -> list[str] | None:
    """The sources of firewalld's zone for trusted ones; None: it is not running."""
    if shutil.which("firewall-cmd") is None:
        return None
    listed = run("firewall-cmd", "--zone=trusted", "--list-sources")
    # It ends with 252 where firewalld does not run.
    return listed.stdout.split() if listed.returncode == 0 else None


def means(folder: Path) -> dict[str, Any]:
    """Systemd, space and file system at a folder, overlayfs, SELinux and firewalld."""
    return {
        "systemd": Path("/run/systemd/system").is_dir(),
        "free_bytes": free_bytes(folder),
        "file_system": file_system(existing(folder)),
        "overlay": overlay(),
        "selinux": text("/sys/fs/selinux/enforce") == "1",
        "firewalld": trusted(),
    }


def labelled() -> dict[str, int]:
    """The number of processes of each deployment."""
    found: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is a kernel thread
            continue
        for one in variables:
            if one.startswith(LABEL):
                label = one[len(LABEL) :].decode(errors="replace")
                found[label] = found.get(label, 0) + 1
    return found


def traces(folder: Path) -> dict[str, Any]:
    """What deployments have here: see `topologies.ssh.leftovers`."""
    claimed = folder / CLAIM
    return {
        "claim": claimed.read_text(encoding="utf-8") if claimed.is_file() else None,
        "processes": labelled(),
        "folders": listed(folder / "deployments"),
        "suites": sorted(path.name for path in folder.glob("suite-*")),
    }


def look_at_python(folder: Path) -> dict[str, Any]:
    """See `topologies.ssh.suite.HostPython`."""
    return {
        "python": {
            "version": f"{sys.version_info.major}.{sys.version_info.minor}",
            "soabi": str(sysconfig.get_config_var("SOABI")),
            "machine": platform.machine(),
        },
        "full": platform.python_version(),
        "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
        "free_bytes": free_bytes(folder),
    }


def sweep(folder: Path, which: str) -> None:
    """Remove the unfinished suites below a folder, or all."""
    for path in folder.glob("suite-*"):
        if which == "all" or path.name.endswith(".partial"):
            # Python's own removal recurses: a folder of some thousand levels would stay.
            subprocess.run(["rm", "-rf", "--", path], check=True)


def answer(question: str, words: list[str], given: Any) -> Any:
    """The answer to a question: the name of a topic, and mostly a verb or a folder."""
    if question == "claim":
        return claim(words[0], Path(words[1]), given)
    if question == "disks":
        looking = words[0] == "look"
        return [look_at_disk(one) for one in given] if looking else cleared(given, float(words[1]))
    if question == "kernel":
        return look_at_kernel(words[1], given) if words[0] == "look" else set_kernel(given)
    if question == "leftovers":
        return traces(Path(words[0]))
    if question == "means":
        return means(Path(words[0]))
    if words[0] == "look":
        return look_at_python(Path(words[1]))
    return sweep(Path(words[1]), words[2])


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    json.dump(answer(sys.argv[1], sys.argv[2:], json.load(sys.stdin)), sys.stdout)
