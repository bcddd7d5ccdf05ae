"""What real hosts need before a layout can run on them. Nothing is changed there."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

from weighbridge.common.errors import MissingPrerequisite, TargetError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.attestation import TOOLS
from weighbridge.topologies.hardware import Hardware, MachineSize
from weighbridge.topologies.images import ALWAYS
from weighbridge.topologies.lab.requirements import HostRequirement
from weighbridge.topologies.loader import Planned, unsized
from weighbridge.topologies.ssh import claim, disks, kernel, leftovers, services, startup, suite
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.kernel import KernelState
from weighbridge.topologies.ssh.remote import run_remote
from weighbridge.topologies.ssh.suite import HostPython


def security_requirements(there: Mapping[str, Any], hardware: Hardware) -> list[HostRequirement]:
    """What `on_host/machine.py` found of both, where there is any; nothing is changed."""
    found = []
    if there["selinux"]:
        found.append(
            HostRequirement(
                "SELinux not enforcing",
                found=False,
                why="its policy for httpd, haproxy, memcached and Ceph knows neither the ports nor "
                "the files of a deployment",
                remedy="`setenforce 0` while you measure (until the next boot), or a policy of "
                "your own; `ausearch -m avc` shows what was denied",
            )
        )
    if there["firewalld"] is not None:
        addresses = [str(spec.address) for spec in hardware.hosts.values()]
        shut = [one for one in addresses if not _within(one, there["firewalld"])]
        sources = " ".join(f"--add-source={one}" for one in shut)
        found.append(
            HostRequirement(
                "firewalld lets the hosts reach each other",
                found=not shut,
                why=f"it trusts neither {', '.join(shut)}: their services cannot connect",
                remedy=f"firewall-cmd --zone=trusted {sources} (until it is reloaded)",
            )
        )
    return found


def _within(address: str, sources: Iterable[object]) -> bool:
    for source in sources:
        try:
            if ip_address(address) in ip_network(str(source), strict=False):
                return True
        except ValueError:
            continue  # a MAC address, or an ipset
    return False


ROOM_BYTES: Final = 2**30
"""An estimate of a deployment's logs and state outside its disks: mostly a monitor's store."""
NO_UPPER: Final = ("overlay", "overlayfs", "nfs", "nfs4", "fuse", "ecryptfs", "vfat", "tmpfs")
"""File systems that cannot hold an overlay's changes, or lose them; tmpfs could, but uses the
memory under test.
"""
VENV: Final = "python3-venv"
REACHED: Final = "login as root with a key"


@dataclass(frozen=True)
class HostRequirements:
    """A host's requirements."""

    host: str
    requirements: tuple[HostRequirement, ...]


def here(hardware: Hardware) -> tuple[HostRequirement, ...]:
    """What this machine needs to reach real hosts and to use them as clients."""
    access = hardware.access
    known = Path(access.known_hosts).expanduser()
    remedy = f"ssh-keyscan HOST >>{known}, and compare the fingerprints"
    ssh = shutil.which("ssh") is not None
    found = [
        HostRequirement("ssh", ssh, "reaches the hosts", "apt install openssh-client"),
        HostRequirement(str(known), known.is_file(), "has the hosts' own keys", remedy),
    ]
    if access.key is not None:
        key = Path(access.key).expanduser()
        remedy = "ssh-keygen makes one; add it to the hosts' authorized_keys"
        found.append(HostRequirement(str(key), key.is_file(), "logs in to the hosts", remedy))
    try:
        suite.own_files()
        built = True
    except MissingPrerequisite:
        built = False
    why = "is installed on clients"
    found.append(HostRequirement("the engine of this suite, built", built, why, "make setup"))
    return tuple(found)


def look(hardware: Hardware, layouts: Sequence[Planned]) -> tuple[HostRequirements, ...]:
    """What real hosts have and lack for these layouts. Changes nothing."""
    with leftovers.shells(hardware) as shells:
        seen, failed = leftovers.attempt_all(
            {name: partial(_look, shell, hardware, layouts) for name, shell in shells.items()}
        )
    for name, error in failed.items():
        seen[name] = HostRequirements(name, (_lacks(REACHED, error.message, error.advice),))
    return tuple(seen[name] for name in hardware.hosts)


def packages_for(hardware: Hardware, name: str, layouts: Sequence[Planned]) -> tuple[str, ...]:
    """Packages, by Debian's names, that a host needs for these layouts and for attestation."""
    wanted = [*TOOLS]
    for image in _images(hardware, name, layouts):
        wanted += [*image.packages, *ALWAYS]
    return tuple(dict.fromkeys(wanted))


def _images(hardware: Hardware, name: str, layouts: Sequence[Planned]) -> tuple[RootImage, ...]:
    if name in hardware.clients:
        return ()
    found = [one.gateway.image for one in layouts if name in one.gateway.needs()]
    return tuple(dict.fromkeys(image for image in found if image.packages))


def _look(shell: SshConnection, hardware: Hardware, layouts: Sequence[Planned]) -> HostRequirements:
    name, access, spec = shell.name, hardware.access, hardware.hosts[shell.name]
    shell.open()
    there: dict[str, Any] = run_remote(shell, "means", access.folder)
    python = suite.look(shell, access)
    installed = startup.installed_programs(shell)
    found = [_has(REACHED), _python(python, access.python, client=name in hardware.clients)]
    found += _folder(there, access.folder)
    if not there["systemd"]:
        found.append(_lacks("systemd", "runs and limits services", "boot the host with systemd"))
    running = claim.read(shell, access.folder)
    if running is not None:
        why = f"{running.deployment} since {running.since}, by {running.by}"
        remedy = "`weighbridge down --hardware FILE`, if no run is using it"
        found.append(_lacks("no deployment", why, remedy))
    state = kernel.look(shell, hardware)
    wrong = kernel.faults(shell, hardware, state)
    settings = f", {len(state.sysctls)} kernel settings" if state.sysctls else ""
    nic = _has(f"{state.nic}, MTU {state.mtu}{settings}")
    found += [_lacks("NIC and kernel settings", what) for what in wrong] or [nic]
    size = size_of(state)
    found.append(_has(f"machine: {{cpus: {size.cpus}, memory: {show_bytes(size.memory)}}}"))
    real, faults = disks.look(shell, spec.disks)
    for disk in real:
        found.append(
            _has(f"disk {disk}" + (f", to be wiped of {disk.holds}" if disk.holds else ""))
        )
    found += [_lacks("disk", what) for what in faults]
    found += security_requirements(there, hardware)
    wanted = packages_for(hardware, name, layouts)
    if name in hardware.clients and python.missing:
        wanted = (*wanted, VENV)
    if installed is None:
        remedy = "measure on hosts with Debian or Ubuntu"
        found.append(_lacks("packages of Debian or Ubuntu", "has what is installed", remedy))
        return HostRequirements(name, tuple(found))
    lacking = [one for one in wanted if one not in installed]
    if lacking:
        remedy = f"apt-get install --no-install-recommends {' '.join(lacking)}"
        found.append(_lacks("packages", " ".join(lacking), remedy))
    else:
        found.append(_has(f"{len(wanted)} packages"))
    for image in _images(hardware, name, layouts):
        others = startup.release_faults(shell, image, installed)
        found += [_lacks(image.name, one) for one in others if "packages are missing" not in one]
    return HostRequirements(name, tuple(found))


def _has(name: str) -> HostRequirement:
    return HostRequirement(name, found=True, why="", remedy="")


def _lacks(name: str, why: str, remedy: str = "") -> HostRequirement:
    return HostRequirement(name, found=False, why=why, remedy=remedy)


def _python(found: HostPython, word: str, *, client: bool) -> HostRequirement:
    version = tuple(int(part) for part in found.python.version.split("."))
    least = suite.OLDEST if client else (3, 9)
    needed = ".".join(map(str, least))
    why = "runs the suite" if client else "runs small programs of the suite"
    remedy = f"install Python {needed} or later beside it, and name it (ssh: python)"
    return HostRequirement(
        f"{word}, {needed} or later (it is {found.full})", version >= least, why, remedy
    )


def _folder(there: Mapping[str, Any], folder: str) -> list[HostRequirement]:
    free, kind = there["free_bytes"], there["file_system"]
    found = []
    try:
        services.check_view_folder(folder)
    except WeighbridgeError as error:
        found.append(_lacks(folder, error.message, error.advice))
    return [
        *found,
        HostRequirement(
            f"{show_bytes(ROOM_BYTES)} of disk at {folder} ({free / 2**30:.1f} GiB free)",
            free >= ROOM_BYTES,
            "for logs, and daemons' data outside their disks",
            "free some space, or choose another folder (ssh: folder)",
        ),
        HostRequirement(
            f"a file system at {folder} that supports overlays ({kind})",
            kind not in NO_UPPER,
            "keeps what a deployment writes to /etc and /var",
            "choose a folder on a local ext4 or xfs (ssh: folder)",
        ),
        HostRequirement(
            "overlayfs",
            there["overlay"],
            "gives a deployment its own layer over /etc and /var",
            "modprobe overlay",
        ),
    ]


_ROUGH_FROM_BYTES: Final = 4 * 2**30
_STEP_BYTES: Final = 64 * 2**20


def asked(hardware: Hardware) -> Hardware:
    """The hardware with sizes of all hosts but clients, asked if missing. Raises TargetError."""
    unknown = unsized(hardware)
    if not unknown:
        return hardware
    with leftovers.shells(hardware) as shells:
        found, failed = leftovers.attempt_all(
            {name: partial(_ask, shells[name], hardware) for name in unknown}
        )
    if failed:
        raise TargetError("\n".join(str(error) for error in failed.values()))
    hosts = {
        name: spec.model_copy(update={"machine": found[name]}) if name in found else spec
        for name, spec in hardware.hosts.items()
    }
    return hardware.model_copy(update={"hosts": hosts})


def size_of(state: KernelState) -> MachineSize:
    """The size of a host. Memory is rounded down, since each kernel keeps a little less or more to
    itself, which would make another run of it.
    """
    step = 2**30 if state.memory_bytes >= _ROUGH_FROM_BYTES else _STEP_BYTES
    return MachineSize(cpus=state.cpus, memory=state.memory_bytes // step * step)


def _ask(shell: SshConnection, hardware: Hardware) -> MachineSize:
    shell.open()
    return size_of(kernel.look(shell, hardware))
