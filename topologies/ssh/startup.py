"""Setting up real hosts for one deployment: reached, examined, claimed and started."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from weighbridge.common.errors import TargetError, UsageError, WeighbridgeError
from weighbridge.common.host import Command
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.gateways.together import together
from weighbridge.topologies.attestation import TOOLS
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.ssh import claim as claims
from weighbridge.topologies.ssh import disks, ending, kernel
from weighbridge.topologies.ssh.connection import EventLoop, SshConnection
from weighbridge.topologies.ssh.host import SshHost
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry, source
from weighbridge.topologies.ssh.hosts import HostSetup, SshHosts
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.services import Services, check_view_folder, view_names, view_script

INSTALL_RELEASE: Final = "`weighbridge doctor --hardware FILE` lists what to install"
"""Advice in errors about missing packages and programs."""

# One line for each installed package: `python3-swift 2.30.1-0+deb12u1`.
_RELEASE_LOOK: Final = """
if command -v dpkg-query >/dev/null; then
  echo packages
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' 2>/dev/null |
    sed -n 's/^installed //p'
fi
"""


def installed_programs(shell: SshConnection) -> dict[str, str] | None:
    """All installed packages' versions; None: they are not Debian's. Raises TargetError."""
    lines = shell.sh(_RELEASE_LOOK).stdout.splitlines()
    if not lines:
        return None
    pairs = (line.partition(" ") for line in lines[1:])
    return {name: version for name, _, version in pairs if version}


def release_faults(
    shell: SshConnection, image: RootImage, packages: Mapping[str, str] | None
) -> tuple[str, ...]:
    """Why a layout of this release cannot run on a host, in sentences; empty: it can."""
    where = f"{shell.name} ({shell.address})"
    if packages is None:
        return (f"{where}: has no packages of Debian or Ubuntu",)
    release = image.name.partition("-")[2]
    found = []
    missing = [name for name in image.packages if name not in packages]
    if missing:
        found.append(f"{where}: packages are missing: {' '.join(missing)}. {INSTALL_RELEASE}")
    versions = {name: packages[name] for name in image.version_packages if name in packages}
    for name, version in versions.items():
        if not of_release(version, release):
            found.append(
                f"{where}: {name} is {version}, and the layout needs {image.name}: install that, "
                "or set `release` in the layout to the installed one"
            )
            break
    return tuple(found)


def of_release(version: str, release: str) -> bool:
    """Whether a version belongs to a release, as `16.2.15+ds-0` to `16`, `1:2.30.1-0` to `2.30`."""
    plain = re.sub(r"^\d+:", "", version)
    return re.match(re.escape(release) + r"(?![0-9])", plain) is not None


_NEEDED: Final = ("unshare", "nsenter", "mount", "setsid", "env", "grep", "stat")

Result = TypeVar("Result")

_LOOK: Final = """
python=$1; shift
if [ -d /run/systemd/system ]; then echo "systemd $(systemctl --version | head -n 1)"; fi
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then echo "cgroup 1"; fi
for one in "$@"; do command -v -- "$one" >/dev/null || echo "missing $one"; done
if command -v -- "$python" >/dev/null; then
  "$python" -I -c 'import sys; print("python %d.%d" % sys.version_info[:2])'
else
  echo "missing $python"
fi
"""


def start_ssh(
    deployment: str,
    hardware: Hardware,
    image: RootImage,
    say: Say,
    *,
    folder: Path,
    names: Collection[str],
    tools: bool = False,
) -> Hosts:
    """Set up the hosts `names` for a deployment; `folder` is for copies of their logs and the like.

    `image` lists the packages that hosts other than clients need; `tools` adds those of
    attestation. All hosts are reached, examined and claimed before any is changed. Raises
    UsageError, MissingPrerequisite, CommandFailed or TargetError after giving all hosts back.
    """
    check_view_folder(hardware.access.folder)
    loop = EventLoop()
    setups = {
        name: HostSetup(SshConnection(name, hardware.hosts[name], hardware.access, loop))
        for name in names
    }
    hosts = SshHosts(deployment, hardware, loop, setups)
    startup = _Startup(deployment, hardware, image, say, folder, tools=tools)
    try:
        _all(one.connection.open for one in setups.values())
        _all(partial(startup.check_programs, name, one) for name, one in setups.items())
        _all(partial(startup.claim, one) for one in setups.values())
        _all(partial(startup.check_resources, name, one) for name, one in setups.items())
        _all(partial(startup.start, name, one, setups) for name, one in setups.items())
        for name in names:
            host = setups[name].host
            if name in hardware.clients and host is not None:
                host.module("weighbridge")
        hosts.add_started()
    except BaseException:
        hosts.close()
        raise
    say(f"{len(setups)} real hosts are ready")
    return hosts


class _Startup:
    """The steps of a deployment's start on its hosts; each is done on all hosts in parallel."""

    def __init__(
        self,
        deployment: str,
        hardware: Hardware,
        image: RootImage,
        say: Say,
        folder: Path,
        *,
        tools: bool,
    ) -> None:
        self._deployment = deployment
        self._hardware = hardware
        self._image = image
        self._say = say
        self._folder = folder
        self._tools = tools

    def check_programs(self, name: str, one: HostSetup) -> None:
        """Check a host's programs, changing nothing. Raises UsageError with all that is wrong."""
        shell, spec, access = one.connection, self._hardware.hosts[name], self._hardware.access
        wanted = (*_NEEDED, *(TOOLS if self._tools else ()))
        lines = shell.sh(_LOOK, access.python, *wanted).stdout.splitlines()
        systemd = [line.partition(" ")[2] for line in lines if line.startswith("systemd ")]
        missing = [line.partition(" ")[2] for line in lines if line.startswith("missing ")]
        versions = [line.split()[1].split(".") for line in lines if line.startswith("python ")]
        python = tuple(map(int, versions[0])) if versions else None
        faults: list[str] = []
        where = f"{name} ({spec.address})"
        if missing:
            faults.append(f"{where}: programs are missing: {' '.join(missing)}. {INSTALL_RELEASE}")
        if python is not None and python < (3, 9):
            version = ".".join(map(str, python))
            faults.append(
                f"{where}: its {access.python} is {version}, and 3.9 or later is needed (ssh: "
                "python)"
            )
        one.cgroup = 1 if "cgroup 1" in lines else 2
        if not systemd:
            faults.append(f"{where}: systemd does not run it, and services and limits need that")
        if missing or not systemd:
            raise UsageError("\n".join(faults))
        one.facts["services"] = systemd[0]
        if name not in self._hardware.clients and self._image.packages:
            packages = installed_programs(shell)
            faults += release_faults(shell, self._image, packages)
            one.packages = packages or {}
            one.facts["packages"] = ", ".join(
                f"{package} {one.packages[package]}"
                for package in self._image.packages
                if package in one.packages
            )
        if faults:
            raise UsageError("\n".join(faults))

    def check_resources(self, name: str, one: HostSetup) -> None:
        """Check a claimed host, changing nothing. Raises UsageError with all that is wrong."""
        one.state = kernel.look(one.connection, self._hardware)
        faults = kernel.faults(one.connection, self._hardware, one.state)
        one.disks, wrong = disks.look(one.connection, self._hardware.hosts[name].disks)
        if faults or wrong:
            raise UsageError("\n".join((*faults, *wrong)))

    def claim(self, one: HostSetup) -> None:
        """Claim a host. Raises UsageError where another deployment is running."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        folder = self._hardware.access.folder
        own = claims.new_claim(self._deployment, folder, since=since, kept=str(self._folder))
        one.claim = claims.take(one.connection, own)

    def start(self, name: str, one: HostSetup, setups: Mapping[str, HostSetup]) -> None:
        """Change a host's settings, clear its disks, and start the deployment's view there."""
        shell, spec = one.connection, self._hardware.hosts[name]
        assert one.claim is not None and one.state is not None  # noqa: S101, PT018 - examined and claimed before
        before = kernel.former(self._hardware, one.state)
        one.claim = one.claim.model_copy(update={"disks": one.disks, "former": before})
        claims.write(shell, one.claim)
        kernel.apply(shell, self._hardware, before)
        disks.clear(shell, [disk for disk in one.disks if disk.holds])
        own = ending.folder_of(self._deployment, self._hardware.access.folder)
        shell.sh(f"mkdir -p {shlex.quote(own)}/log {shlex.quote(own)}/view")
        services = ending.services_of(one.claim)
        holder, started = map(int, shell.sh(services.hold(spec.memory)).stdout.split())
        one.claim = one.claim.model_copy(update={"holder": holder, "holder_started": started})
        claims.write(shell, one.claim)
        services = ending.services_of(one.claim)
        addresses = {other: str(self._hardware.hosts[other].address) for other in setups}
        words = (
            *services.enter(),
            *services.environment("view"),
            *("/bin/sh", "-ec", view_script(), "sh", own),
        )
        done = shell.run(words, stdin=view_names(addresses))
        if done.code != 0:
            raise TargetError(
                f"{shell.where}: cannot set up the deployment's view: {done.text.strip()}"
            )
        logs = self._folder / "logs" / name
        logs.mkdir(parents=True, exist_ok=True)
        one.host = SshHost(
            shell,
            services,
            disks=[disk.path for disk in one.disks],
            logs=logs,
            telemetry=self._telemetry(name, one, services, own),
            suite=partial(self._suite, shell),
            cores=one.state.cpus,
        )

    def _telemetry(self, name: str, one: HostSetup, services: Services, own: str) -> HostTelemetry:
        assert one.state is not None  # noqa: S101 - examined before
        words = {
            "group": services.group,
            "nic": one.state.nic,
            "disks": [disk.device for disk in one.disks],
            "log": f"{own}/log",
        }
        # It runs outside of the limits.
        argv = (
            *services.environment("telemetry"),
            *(self._hardware.access.python, "-I", "-c", source(), json.dumps(words)),
        )
        errors = self._folder / f"telemetry-{name}.err"

        def send(_number: int) -> None:
            one.connection.sh(services.kill("telemetry"))

        start = partial(RemoteProgram, one.connection, argv, stderr=errors, send=send)
        return HostTelemetry(start, one.connection.where, errors=errors)

    def _suite(self, shell: SshConnection) -> Command:
        from weighbridge.topologies.ssh import suite  # noqa: PLC0415 - only clients need it

        return suite.ensure(shell, self._hardware, self._folder.parent.parent, self._say)


def _all(work: Iterable[Callable[[], object]]) -> None:
    """Do all in parallel. Raises one error about all failures, of the kind of the first."""
    failed: list[WeighbridgeError] = []

    def one(do: Callable[[], object]) -> None:
        try:
            do()
        except WeighbridgeError as error:
            failed.append(error)

    together([partial(one, do) for do in work])
    if not failed:
        return
    first = next((error for error in failed if not isinstance(error, UsageError)), failed[0])
    errors = [first, *(error for error in failed if error is not first)]
    if len(errors) == 1:
        raise first
    kind = UsageError if isinstance(first, UsageError) else TargetError
    advice = next((error.advice for error in errors if error.advice), "")
    raise kind("\n".join(error.message for error in errors), advice=advice) from first
