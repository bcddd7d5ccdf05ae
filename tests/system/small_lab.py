"""Small hosts of the lab for tests of the lab itself."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weighbridge.common.host import Host
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import LabHosts, start_lab

MIB = 2**20
HARDWARE = Hardware.model_validate(
    {
        "name": "lab-test",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "512MiB", "nic": "200Mbit"},
            "gateway-1": {"cpus": 0.25, "memory": "128MiB", "nic": "200Mbit"},
            "store-1": {
                "memory": "512MiB",
                "disks": [{"size": "1GiB", "bandwidth": "20MiB"}, {"size": "512MiB"}],
            },
        },
    }
)
ROOT = Path("/")
PYTHON = sys.executable


def labelled(name: str) -> str:
    """A label unique to this run of the tests on this machine: cgroups are found by it."""
    return f"labtest-{name}-{secrets.token_hex(3)}"


def raised(
    label: str,
    folder: Path,
    state: Path,
    images: Mapping[str, Path] | None = None,
    hardware: Hardware = HARDWARE,
    **more: Any,
) -> LabHosts:
    """Hosts of a hardware, whose roots are those of `images`, or this machine's own."""
    folder.mkdir(parents=True, exist_ok=True)
    given = dict.fromkeys(hardware.hosts, ROOT) if images is None else images
    parts: dict[str, Any] = {
        "folder": folder,
        "state": state,
        "names": list(hardware.hosts),
        **more,
    }
    return start_lab(label, hardware, given, lambda line: None, **parts)


def python(host: Host, text: str, *words: str) -> str:
    return host.run([PYTHON, "-c", text, *words], timeout_s=120).stdout


def sh(host: Host, script: str, *words: str) -> str:
    return host.run(["sh", "-ec", script, "sh", *words], timeout_s=120).stdout


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def read(path: Path) -> bytes:
    """What a file of a process or a device has; nothing if that ended while it was looked at."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def cgroups_of(label: str) -> list[str]:
    """The folders of a deployment's cgroups in all hierarchies. Others' may go while they are
    looked through, which `Path.rglob` takes for an error.
    """
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(f"/{label}")]


def health(host: Host) -> str:
    return host.run(["ceph", "health"]).stdout.strip()
