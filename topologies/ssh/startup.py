"""Setting up real hosts for one deployment: reached, examined, claimed and started."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge.common.errors import TargetError, UsageError, WeighbridgeError
from weighbridge.common.host import Command, Host
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.gateways.together import together
from weighbridge.topologies.attestation import TOOLS
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited
from weighbridge.topologies.ssh import claim as claims
from weighbridge.topologies.ssh import disks, ending, kernel, leftovers
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.host import SshHost
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry, source
from weighbridge.topologies.ssh.kernel import KernelState
from weighbridge.topologies.ssh.services import Services, check_view_folder, view_names, view_script

RECONNECT_S = 8.0
"""How long to try to reach a lost host again before it is left as it is."""
HURRY_S = 5.0
"""What hosts have to end what they do after a second signal."""


@dataclass
class HostSetup:
    """What is known of one host while it is being set up."""

    connection: SshConnection
    cgroup: int = 2
    """The version of its cgroups."""
    state: KernelState | None = None
    disks: tuple[RealDisk, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    """Further facts about it."""
    claim: ClaimedHost | None = None
    """The claim on it; None: there is none (any more)."""
    host: SshHost | None = None


class SshHosts(Hosts):
    """Real hosts that are claimed for a deployment; `add_started` offers them by name."""

    def __init__(
        self, deployment: str, hardware: Hardware, setups: Mapping[str, HostSetup]
    ) -> None:
        self.deployment = deployment
        self.hosts: dict[str, Host] = {}
        self._hardware = hardware
        self._setups = setups

    def add_started(self) -> None:
        """Offer hosts by name: all are started."""
        self.hosts.update(
            {name: one.host for name, one in self._setups.items() if one.host is not None}
        )

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        together([partial(self._limit, *one, what, lift=False) for one in self._setups.items()])

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        together([partial(self._limit, *one, what, lift=True) for one in self._setups.items()])

    def _limit(self, name: str, one: HostSetup, what: Collection[Limited], *, lift: bool) -> None:
        if one.host is None:
            return
        services, spec = one.host.services, self._hardware.hosts[name]
        disks, period_s = one.host.disks, self._hardware.cpu_period
        script = (
            services.unlimit(spec, disks, what)
            if lift
            else services.limit(spec, disks, what, period_s=period_s)
        )
        if script:
            one.connection.sh(script)

    def facts(self) -> Mapping[str, str]:
        facts = {"hosts": "real hosts over SSH", "mtu": str(self._hardware.network.mtu)}
        setups = self._setups.values()
        found = together([partial(_facts_of, one, self._hardware) for one in setups])
        for name, own in zip(self._setups, found, strict=True):
            facts |= {f"{key} {name}": value for key, value in own.items()}
        unaccounted = [
            name
            for name, one in self._setups.items()
            if one.cgroup == 1
            and any(disk.bandwidth or disk.iops for disk in self._hardware.hosts[name].disks)
        ]
        if unaccounted:
            facts["write-back"] = (
                f"{', '.join(unaccounted)}: cgroup version 1 does not charge write-back to the "
                "writer: what goes through the page cache is written at the disk's own rate"
            )
        return facts

    def close(self) -> None:
        setups = self._setups.values()
        errors = filter(None, together([partial(self._give_back, one) for one in setups]))
        message = "\n".join(error.message for error in errors)
        for one in setups:
            one.connection.close()
        if message:
            raise TargetError(
                message,
                advice="`weighbridge down --hardware FILE` removes what is left as soon as its "
                "host answers",
            )

    def hurry(self) -> None:
        for one in self._setups.values():
            one.connection.give_up(HURRY_S)

    def _give_back(self, one: HostSetup) -> WeighbridgeError | None:
        if one.claim is None:
            return None
        shell = one.connection
        faults: list[WeighbridgeError] = []
        try:
            if one.host is not None:
                one.host.disconnect()
        except WeighbridgeError as error:
            faults.append(error)
        except OSError as error:
            faults.append(TargetError(f"{shell.where}: its logs cannot be kept: {error}"))
        try:
            if shell.lost:
                shell.renew(RECONNECT_S)
            ending.give_back(shell, one.claim)
            one.claim = None
        except WeighbridgeError as error:
            # If the host is lost, this error mostly repeats the one about its logs.
            faults = [*(fault for fault in faults if not shell.lost), error]
        if not faults:
            return None
        return TargetError("\n".join(fault.message for fault in faults))


def _facts_of(one: HostSetup, hardware: Hardware) -> dict[str, str]:
    facts = dict(one.facts)
    if one.state is not None:
        state = one.state
        speed = "" if state.speed_mbit_s is None else f", {state.speed_mbit_s} Mbit/s"
        memory = f"{state.memory_bytes / 2**30:.1f} GiB"
        facts["kernel"] = state.kernel
        facts["machine"] = f"{state.cpu or 'CPU of unknown model'}, {state.cpus} CPUs, {memory}"
        facts["nic"] = f"{state.nic}{speed}"
    if one.disks:
        facts["disks"] = "; ".join(map(str, one.disks))
    former = (one.claim.former if one.claim is not None else None) or kernel.FormerSettings()
    now = kernel.look(one.connection, hardware)
    was = {name: f" (was {value})" for name, value in former.sysctls.items()}
    facts["sysctl"] = "; ".join(
        f"{name} {value}{was.get(name, '')}" for name, value in now.recorded.items()
    )
    facts["mtu"] = str(now.mtu) if former.mtu is None else f"{now.mtu} (was {former.mtu})"
    if one.host is not None:
        services, shell = one.host.services, one.connection
        script = 'test -e /sys/fs/cgroup/cgroup.controllers -o -e "$1" || echo missing'
        if shell.sh(script, f"/sys/fs/cgroup/cpuacct/{services.group}").stdout:
            facts["cpu"] = "of the entire host: its kernel does not count it for a slice"
        facts["limits"] = limits_read(shell.sh(services.read_limits()).stdout, one.disks)
    return facts


def limits_read(text: str, disks: Sequence[RealDisk]) -> str:
    """Limits as the kernel reports them, with names of devices instead of numbers."""
    for disk in disks:
        text = re.sub(rf"\b{re.escape(disk.device)}\b", disk.path, text)
    return "; ".join(text.splitlines())


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
    setups = {
        name: HostSetup(SshConnection(name, hardware.hosts[name], hardware.access))
        for name in names
    }
    hosts = SshHosts(deployment, hardware, setups)
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
        said: dict[str, list[str]] = {"systemd": [], "cgroup": [], "missing": [], "python": []}
        wanted = (*_NEEDED, *(TOOLS if self._tools else ()))
        for line in shell.sh(_LOOK, access.python, *wanted).stdout.splitlines():
            what, _, word = line.partition(" ")
            said.setdefault(what, []).append(word)
        systemd, missing = said["systemd"], " ".join(said["missing"])
        one.cgroup = 1 if said["cgroup"] else 2
        faults: list[str] = []
        where = f"{name} ({spec.address})"
        if missing:
            faults.append(f"{where}: programs are missing: {missing}. {INSTALL_RELEASE}")
        old = [text for text in said["python"] if tuple(map(int, text.split("."))) < (3, 9)]
        if old:
            faults.append(
                f"{where}: its {access.python} is {old[0]}, and 3.9 or later is needed (ssh: "
                "python)"
            )
        if not systemd:
            faults.append(f"{where}: systemd does not run it, and services and limits need that")
        if missing or not systemd:
            raise UsageError("\n".join(faults))
        one.facts["services"] = systemd[0]
        if name not in self._hardware.clients and self._image.packages:
            packages = installed_programs(shell)
            faults += release_faults(shell, self._image, packages)
            one.packages = packages or {}
            versions = [f"{name} {one.packages.get(name, '')}" for name in self._image.packages]
            one.facts["packages"] = ", ".join(versions)
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
        holder = int(shell.sh(services.hold(spec.memory)).stdout)
        one.claim = one.claim.model_copy(update={"holder": holder})
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

        start = partial(one.connection.spawn, argv, stderr=errors, send=send)
        return HostTelemetry(start, one.connection.where, errors=errors)

    def _suite(self, shell: SshConnection) -> Command:
        from weighbridge.topologies.ssh import suite  # noqa: PLC0415 - only clients need it

        return suite.ensure(shell, self._hardware, self._folder.parent.parent, self._say)


def _all(work: Iterable[Callable[[], object]]) -> None:
    """Do all in parallel. Raises one error about all failures, of the kind of the first."""
    _, failed = leftovers.attempt_all(dict(enumerate(work)))
    errors = sorted(failed.values(), key=lambda error: isinstance(error, UsageError))
    if not errors:
        return
    first = errors[0]
    if len(errors) == 1:
        raise first
    kind = UsageError if isinstance(first, UsageError) else TargetError
    advice = next((error.advice for error in errors if error.advice), "")
    raise kind("\n".join(error.message for error in errors), advice=advice) from first
