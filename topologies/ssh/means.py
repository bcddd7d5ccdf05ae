"""What real hosts have to have before a layout stands on them, and what of it can be installed by
their own manager of packages.

Nothing that is there already is upgraded or removed, and nothing that is installed is started or
will be at the next boot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from weighbridge.common.errors import CommandFailed, MissingMeans, TargetError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ALWAYS
from weighbridge.topologies.lab.means import Mean
from weighbridge.topologies.loader import Planned
from weighbridge.topologies.ssh import claim, disks, kernel, leftovers, release, suite, view, wheels
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.raising import TOOLS, unlimitable
from weighbridge.topologies.ssh.suite import HostPython
from weighbridge.topologies.ssh.there import ask

ROOM_BYTES: Final = 2**30
"""What a deployment's logs and state outside of its disks take on a host, as guessed: a monitor's
store is the most of it.
"""
NO_UPPER: Final = ("overlay", "overlayfs", "nfs", "nfs4", "fuse", "ecryptfs", "vfat", "tmpfs")
"""File systems that cannot carry what an overlay writes, or forget it; tmpfs would, but eats the
memory of what is weighed.
"""
INSTALL_S: Final = 1800.0
VENV: Final = "python3-venv"


@dataclass(frozen=True)
class HostMeans:
    """One host. `manager` is apt, dnf, zypper or empty; `packages` are those that would have to be
    installed.
    """

    host: str
    means: tuple[Mean, ...]
    manager: str = ""
    packages: tuple[str, ...] = ()


def here(hardware: Hardware) -> tuple[Mean, ...]:
    """What this machine needs to reach real hosts and to make clients of them."""
    access = hardware.access
    known = Path(access.known_hosts).expanduser()
    remedy = f"ssh-keyscan HOST >>{known}, and compare the fingerprints"
    found = [Mean(str(known), known.is_file(), "hosts are known by their own keys", remedy)]
    if access.key is not None:
        key = Path(access.key).expanduser()
        found.append(
            Mean(
                str(key),
                key.is_file(),
                "it opens the hosts",
                "ssh-keygen makes one; hosts want it in authorized_keys",
            )
        )
    try:
        wheels.own_files()
        built = True
    except MissingMeans:
        built = False
    found.append(
        Mean("the engine of this suite, built", built, "it is taken along to clients", "make setup")
    )
    return tuple(found)


def look(hardware: Hardware, layouts: Sequence[Planned]) -> tuple[HostMeans, ...]:
    """What the hosts of real hardware have and lack, for layouts that are to stand there.

    Changes nothing.
    """
    with leftovers.shells(hardware) as ways:
        seen, failed = leftovers.at_once(
            {name: partial(_look, one, hardware, layouts) for name, one in ways.items()}
        )
    for name, error in failed.items():
        seen[name] = HostMeans(
            name, (_lacks("reached as root by its key", error.message, error.advice),)
        )
    return tuple(seen[name] for name in hardware.hosts)


def install(hardware: Hardware, lacking: Sequence[HostMeans], say: Say) -> None:
    """Install what hosts lack of packages, on all of them at once.

    Raises TargetError naming the hosts where it failed, or where something that is there would have
    to be upgraded or removed.
    """
    wanted = {one.host: one for one in lacking if one.packages and one.manager == "apt"}
    with leftovers.shells(hardware) as ways:
        work: dict[str, Callable[[], None]] = {
            name: partial(_install, ways[name], one, say) for name, one in wanted.items()
        }
        _, failed = leftovers.at_once(work)
    if failed:
        raise TargetError("\n".join(str(error) for error in failed.values()))


def packages_for(hardware: Hardware, name: str, layouts: Sequence[Planned]) -> tuple[str, ...]:
    """Packages, by Debian's names, that a host has to have for these layouts: of gateways, and of
    attestation.
    """
    wanted = [*TOOLS]
    for image in _images(hardware, name, layouts):
        wanted += [*image.packages, *ALWAYS]
    return tuple(dict.fromkeys(wanted))


def _images(hardware: Hardware, name: str, layouts: Sequence[Planned]) -> tuple[RootImage, ...]:
    """Of layouts that place something there: a client's are none of the host's business, which has
    the suite.
    """
    if name in hardware.clients:
        return ()
    found = [
        one.gateway.releases[one.gateway.release] for one in layouts if name in one.gateway.needs()
    ]
    return tuple(dict.fromkeys(image for image in found if image.packages))


def _look(shell: SshConnection, hardware: Hardware, layouts: Sequence[Planned]) -> HostMeans:
    name, access, spec = shell.name, hardware.access, hardware.hosts[shell.name]
    shell.open()
    told: dict[str, Any] = ask(shell, "means", access.folder)
    python = suite.look(shell, access)
    kind, installed = release.installed(shell)
    found = [_has("reached as root by its key")]
    found.append(_python(python, access.python, client=name in hardware.clients))
    found += _folder(told, access.folder)
    if not told["systemd"]:
        found += [
            _lacks(
                "systemd",
                what,
                "leave limits out of the hardware file, or boot the host with systemd",
            )
            for what in unlimitable(spec)
        ]
    standing = claim.read(shell, access.folder)
    if standing is not None:
        found.append(
            _lacks(
                "nothing stands there",
                f"{standing.deployment} since {standing.since}, by {standing.by}",
                "`weighbridge down --hardware FILE`, if no run is at work with it",
            )
        )
    looked = kernel.look(shell, hardware)
    wrong = kernel.faults(shell, hardware, looked)
    settings = f", {len(looked.sysctls)} kernel settings" if looked.sysctls else ""
    nic = _has(f"{looked.nic}, MTU {looked.mtu}{settings}")
    found += [_lacks("NIC and kernel settings", what) for what in wrong] or [nic]
    real, faults = disks.look(shell, spec.disks)
    found += [
        _has(f"disk {disk}" + (f", to be wiped of {disk.holds}" if disk.holds else ""))
        for disk in real
    ]
    found += [_lacks("disk", what) for what in faults]
    wanted = packages_for(hardware, name, layouts)
    if name in hardware.clients and python.missing:
        wanted = (*wanted, VENV)
    lacking: tuple[str, ...]
    if kind == "debian":
        lacking = tuple(one for one in wanted if one not in installed)
        if lacking:
            found.append(
                _lacks(
                    "packages", " ".join(lacking), "weighbridge doctor --hardware FILE --install"
                )
            )
        else:
            found.append(_has(f"{len(wanted)} packages"))
    else:
        lacking = tuple(one for one in (*TOOLS, "mkfs.xfs") if one not in told["programs"])
        if lacking:
            found.append(
                _lacks(
                    "programs",
                    " ".join(lacking),
                    f"install them by {told['manager'] or 'the manager of its packages'}",
                )
            )
    for image in _images(hardware, name, layouts):
        others = [
            what
            for what in release.faults(shell, image, kind, installed)
            if "packages are missing" not in what
        ]
        found += [_lacks(image.name, what) for what in others]
    return HostMeans(name, tuple(found), told["manager"], lacking)


def _has(name: str) -> Mean:
    return Mean(name, found=True, why="", remedy="")


def _lacks(name: str, why: str, remedy: str = "") -> Mean:
    return Mean(name, found=False, why=why, remedy=remedy)


def _python(found: HostPython, word: str, *, client: bool) -> Mean:
    version = tuple(int(part) for part in found.python.version.split("."))
    least = suite.OLDEST if client else (3, 9)
    wanted = ".".join(map(str, least))
    why = "the suite runs on it" if client else "small programs of the suite run by it"
    remedy = f"install Python {wanted} or later beside it, and say which it is (ssh: python)"
    return Mean(f"{word}, {wanted} or later (it is {found.full})", version >= least, why, remedy)


def _folder(told: Mapping[str, Any], folder: str) -> list[Mean]:
    free, kind = told["free_bytes"], told["file_system"]
    found = []
    try:
        view.check_folder(folder)
    except WeighbridgeError as error:
        found.append(_lacks(folder, error.message, error.advice))
    room = f"{show_bytes(ROOM_BYTES)} of room at {folder} ({free / 2**30:.1f} GiB free)"
    found.append(
        Mean(
            room,
            free >= ROOM_BYTES,
            "logs, and what daemons keep beside their disks",
            "make room, or say another (ssh: folder)",
        )
    )
    found.append(
        Mean(
            f"a file system at {folder} that overlays can be written on ({kind})",
            kind not in NO_UPPER,
            "what a deployment writes to /etc and /var goes there",
            "say a folder on a local ext4 or xfs (ssh: folder)",
        )
    )
    found.append(
        Mean(
            "overlayfs",
            told["overlay"],
            "a deployment sees a layer of its own over /etc and /var",
            "modprobe overlay",
        )
    )
    return found


def _install(shell: SshConnection, one: HostMeans, say: Say) -> None:
    shell.open()
    say(f"{shell.name}: installing {' '.join(one.packages)}")
    try:
        done = shell.sh(_APT, *one.packages, timeout_s=INSTALL_S)
    except CommandFailed as error:
        tail = "\n".join(error.output.splitlines()[-12:])
        raise TargetError(
            f"{shell.name} ({shell.address}): the packages were not installed:\n{tail}"
        ) from error
    for line in done.stdout.splitlines():
        say(f"{shell.name}: {line}")


# invoke-rc.d and deb-systemd-invoke ask policy-rc.d whether a service may be started: 101 says no.
# What a package enables for the next boot is told apart by the list of before.
_APT: Final = """
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d
mine=
before=$(mktemp) after=$(mktemp)
done_with() {
  rm -f "$before" "$after"
  if [ -n "$mine" ]; then rm -f "$policy"; fi
}
trap done_with EXIT
enabled() {
  if command -v systemctl >/dev/null; then
    systemctl list-unit-files --state=enabled --no-legend --plain 2>/dev/null | cut -d ' ' -f 1
  fi
  for one in /etc/rc2.d/S*; do if [ -e "$one" ]; then echo "$one"; fi; done
}
get() { apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold --no-install-recommends "$@"; }
plan=$(get --simulate install "$@" 2>&1) || {
  get update >&2
  plan=$(get --simulate install "$@" 2>&1) || { echo "$plan" >&2; exit 1; }
}
if echo "$plan" | grep -Eq '^(Inst [^ ]+ \\[|Remv )'; then
  echo "this would change what is installed there, which is left to who looks after the host:" >&2
  echo "$plan" | grep -E '^(Inst [^ ]+ \\[|Remv )' >&2
  exit 1
fi
if [ ! -e "$policy" ]; then
  mine=1
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
enabled | sort >"$before"
get --yes install "$@" >&2
enabled | sort >"$after"
comm -13 "$before" "$after" | while read -r one; do
  case $one in
    /etc/rc2.d/*) update-rc.d "$(echo "${one##*/}" | sed 's/^S[0-9]*//')" disable >&2 ;;
    *) systemctl disable "$one" >&2 ;;
  esac || { echo "$one is started at each boot now, and could not be disabled" >&2; exit 1; }
  echo "${one##*/} would have been started at each boot: it was disabled"
done
echo "installed $# packages"
"""
