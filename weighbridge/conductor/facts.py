from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from weighbridge.drivers.kind import KINDS
from weighbridge.topologies.hardware import RECORDED, Hardware

PACKAGES = ("pydantic", "vl-convert-python")


def facts_of_machine(hardware: Hardware) -> dict[str, str]:
    """Facts by name. What is not known is left out, never guessed."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    facts = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": system,
        "cpus": str(len(os.sched_getaffinity(0))),
        "load before": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "hardware": hardware.name,
    }
    packages = dict.fromkeys(
        (*(name for kind in KINDS.values() for name in kind.packages), *PACKAGES)
    )
    facts |= {f"package {name}": version for name in packages if (version := _version(name))}
    facts |= {
        f"sysctl {name}": value
        for name in RECORDED
        if (value := _read(Path("/proc/sys", *name.split("."))))
    }
    facts |= _models()
    return facts


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace").strip().replace("\t", " ") if path.exists() else ""


def _models() -> dict[str, str]:
    """CPU model and memory, if Linux reports them."""
    facts = {}
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            facts["cpu"] = line.split(":", 1)[1].strip()
            break
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemTotal"):
            facts["memory"] = line.split(":", 1)[1].strip()
    return facts
