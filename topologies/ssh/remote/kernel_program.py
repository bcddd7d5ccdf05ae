"""Kernel settings and MTU: `look` at those named on stdin, or `set` them. stdout is JSON."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

SIOCGIFMTU, SIOCSIFMTU = 0x8921, 0x8922
"""linux/sockios.h."""
REQUEST = "16si12x"
"""struct ifreq with a number."""


def text(path: str) -> str:
    """The text of a file of the kernel; empty: it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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


def mtu_of(nic: str, value: int | None = None) -> int:
    """The MTU of a NIC, after setting it to `value`; /sys may be another network namespace's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        if value is not None:
            fcntl.ioctl(asked, SIOCSIFMTU, struct.pack(REQUEST, nic.encode(), value))
        found: int = struct.unpack(
            REQUEST, fcntl.ioctl(asked, SIOCGIFMTU, struct.pack(REQUEST, nic.encode(), 0))
        )[1]
        return found


def nic_of(address: str) -> str:
    """The device with an address; empty: there is none."""
    family, word = (socket.AF_INET6, "inet6") if ":" in address else (socket.AF_INET, "inet")
    wanted = socket.inet_pton(family, address)
    listed = subprocess.run(
        ["ip", "-o", "addr", "show"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    for line in listed.splitlines():
        words = line.split()
        if words[2] == word and socket.inet_pton(family, words[3].partition("/")[0]) == wanted:
            return words[1].partition("@")[0]
    return ""


def boot() -> str:
    """The host's boot."""
    return text("/proc/sys/kernel/random/boot_id").strip()


def look(address: str, names: list[str]) -> dict[str, Any]:
    """See `topologies.ssh.kernel.KernelState`."""
    nic = nic_of(address)
    cpus = [
        line.partition(":")[2].strip()
        for line in text("/proc/cpuinfo").splitlines()
        if line.startswith("model name")
    ]
    memory = next(
        line for line in text("/proc/meminfo").splitlines() if line.startswith("MemTotal:")
    )
    speed = text(f"/sys/class/net/{nic}/speed").strip() if nic else ""
    return {
        "kernel": os.uname().release,
        "boot": boot(),
        "cpu": cpus[0] if cpus else "",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory.split()[1]) * 1024,
        "nic": nic,
        "mtu": mtu_of(nic) if nic else None,
        # Without a speed or a cable a NIC says -1 or nothing.
        "speed_mbit_s": int(speed) if speed.isdigit() and int(speed) else None,
        "sysctls": {name: known(name) for name in names},
    }


def apply(given: dict[str, Any]) -> list[str]:
    """Set settings, and the MTU if given; returns messages about what the kernel did not accept.

    Settings of another boot are not set: the host has had its own since.
    """
    failed: list[str] = []
    if given["boot"] != boot():
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
        try:
            now_mtu = mtu_of(given["nic"], given["mtu"])
            if now_mtu != given["mtu"]:
                failed.append(
                    f"the MTU of {given['nic']} is {now_mtu} after it was set to {given['mtu']}"
                )
        except OSError as error:
            failed.append(f"the MTU of {given['nic']} could not be set to {given['mtu']}: {error}")
    return failed


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    given = json.load(sys.stdin)
    json.dump(look(sys.argv[2], given) if sys.argv[1] == "look" else apply(given), sys.stdout)
