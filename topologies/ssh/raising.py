"""Real hosts for one deployment: reached, looked at, taken, and given back."""

from __future__ import annotations

import json
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
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.ssh import claim as claims
from weighbridge.topologies.ssh import disks, ending, kernel, release, view
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.event_loop import EventLoop
from weighbridge.topologies.ssh.host import SshHost
from weighbridge.topologies.ssh.host_reader import HostReader, source
from weighbridge.topologies.ssh.hosts import SshHosts, Taken
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.services import Services

TOOLS: Final = ("fio", "iperf3", "sysbench")
"""What attestation runs."""
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


def raise_ssh(
    deployment: str,
    hardware: Hardware,
    image: RootImage,
    say: Say,
    *,
    folder: Path,
    names: Collection[str],
    tools: bool = False,
) -> Hosts:
    """Take the hosts `names` for a deployment. `folder` gets what is kept of them here, such as
    copies of their logs.

    `image` says what has to be installed on hosts that do not make the load; `tools`: what
    attestation wants too. All are reached, looked at and claimed before anything is changed on any.
    Raises UsageError, MissingMeans, CommandFailed or TargetError; everything that was taken is then
    given back.
    """
    view.check_folder(hardware.access.folder)
    loop = EventLoop()
    taken = {
        name: Taken(SshConnection(name, hardware.hosts[name], hardware.access, loop))
        for name in names
    }
    hosts = SshHosts(deployment, hardware, loop, taken)
    raising = _Raising(deployment, hardware, image, say, folder, tools=tools)
    try:
        _all(one.connection.open for one in taken.values())
        _all(partial(raising.look, name, one) for name, one in taken.items())
        _all(partial(raising.take, one) for one in taken.values())
        _all(partial(raising.survey, name, one) for name, one in taken.items())
        _all(partial(raising.settle, name, one, taken) for name, one in taken.items())
        for name in names:
            host = taken[name].host
            if name in hardware.clients and host is not None:
                host.module("weighbridge")
        hosts.stand()
    except BaseException:
        hosts.close()
        raise
    say(f"{len(taken)} real hosts are taken")
    return hosts


class _Raising:
    """One deployment's way onto its hosts; each step is done on all of them at once."""

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

    def look(self, name: str, one: Taken) -> None:
        """See that a host has all that is needed; changes nothing.

        Raises UsageError with all that is wrong with it.
        """
        shell, spec, access = one.connection, self._hardware.hosts[name], self._hardware.access
        wanted = (*_NEEDED, *(TOOLS if self._tools else ()))
        told = shell.sh(_LOOK, access.python, *wanted).stdout.splitlines()
        systemd = [line.partition(" ")[2] for line in told if line.startswith("systemd ")]
        missing = [line.partition(" ")[2] for line in told if line.startswith("missing ")]
        python = next(
            (
                tuple(map(int, line.split()[1].split(".")))
                for line in told
                if line.startswith("python ")
            ),
            None,
        )
        faults: list[str] = []
        where = f"{name} ({spec.address})"
        if missing:
            faults.append(f"{where}: programs are missing: {' '.join(missing)}. {release.INSTALL}")
        if python is not None and python < (3, 9):
            faults.append(
                f"{where}: its {access.python} is {'.'.join(map(str, python))}, and 3.9 or later "
                "is wanted (ssh: python)"
            )
        one.systemd = bool(systemd)
        one.cgroup = 1 if "cgroup 1" in told else 2
        if not systemd:
            faults += [f"{where}: {what}" for what in unlimitable(spec)]
        if missing:
            raise UsageError("\n".join(faults))
        one.words["services"] = (
            systemd[0] if systemd else "plain processes in a namespace of their own"
        )
        if name not in self._hardware.clients and self._image.packages:
            kind, packages = release.installed(shell)
            faults += release.faults(shell, self._image, kind, packages)
            one.packages = packages
            listed = [
                f"{package} {packages[package]}"
                for package in self._image.packages
                if package in packages
            ]
            one.words["packages"] = ", ".join(listed)
        if faults:
            raise UsageError("\n".join(faults))

    def survey(self, name: str, one: Taken) -> None:
        """Look at what would be changed: a host that was claimed, so that no other deployment has
        its disks meanwhile.

        Changes nothing. Raises UsageError with all that is wrong with the host.
        """
        one.looked = kernel.look(one.connection, self._hardware)
        faults = kernel.faults(one.connection, self._hardware, one.looked)
        one.disks, wrong = disks.look(one.connection, self._hardware.hosts[name].disks)
        if faults or wrong:
            raise UsageError("\n".join((*faults, *wrong)))

    def take(self, one: Taken) -> None:
        """Claim a host. Raises UsageError where another deployment stands."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        wanted = claims.mine(
            self._deployment, self._hardware.access.folder, since=since, kept=str(self._folder)
        )
        one.claim = claims.take(one.connection, wanted)

    def settle(self, name: str, one: Taken, all_of_them: Mapping[str, Taken]) -> None:
        """Change what is to be changed on a host, and raise the deployment's view there."""
        shell, spec = one.connection, self._hardware.hosts[name]
        assert one.claim is not None and one.looked is not None  # noqa: S101, PT018 - looked at and taken before
        before = kernel.former(self._hardware, one.looked)
        one.claim = one.claim.model_copy(update={"disks": one.disks, "former": before})
        claims.write(shell, one.claim)
        kernel.apply(shell, self._hardware, before)
        disks.clear(shell, [disk for disk in one.disks if disk.holds])
        own = ending.folder_of(self._deployment, self._hardware.access.folder)
        shell.sh(f"mkdir -p {shlex.quote(own)}/log {shlex.quote(own)}/view")
        services = ending.services_of(one.claim, systemd=one.systemd)
        holder, started = map(int, shell.sh(services.hold(spec.memory)).stdout.split())
        one.claim = one.claim.model_copy(update={"holder": holder, "holder_started": started})
        claims.write(shell, one.claim)
        services = ending.services_of(one.claim, systemd=one.systemd)
        addresses = {other: str(self._hardware.hosts[other].address) for other in all_of_them}
        words = (
            *services.enter(),
            *services.environment("view"),
            "/bin/sh",
            "-ec",
            view.script(),
            "sh",
            own,
        )
        done = shell.run(words, stdin=view.names(addresses))
        if done.code != 0:
            raise TargetError(
                f"{shell.where}: what the deployment sees of it cannot be made: {done.text.strip()}"
            )
        logs = self._folder / "logs" / name
        logs.mkdir(parents=True, exist_ok=True)
        one.host = SshHost(
            shell,
            services,
            disks=[disk.path for disk in one.disks],
            logs=logs,
            teller=self._teller(name, one, services, own),
            suite=partial(self._suite, shell),
        )

    def _teller(self, name: str, one: Taken, services: Services, own: str) -> HostReader:
        assert one.looked is not None  # noqa: S101 - looked at before
        words = {
            "group": services.group,
            "nic": one.looked.nic,
            "disks": [disk.device for disk in one.disks],
            "log": f"{own}/log",
        }
        # Where processes have numbers of their own, it is in there with them; otherwise it is not
        # in the limits.
        enter = () if one.systemd else services.enter()
        argv = (
            *enter,
            *services.environment("teller"),
            self._hardware.access.python,
            "-I",
            "-c",
            source(),
            json.dumps(words),
        )
        errors = self._folder / f"teller-{name}.err"

        def send(_number: int) -> None:
            one.connection.sh(services.kill("teller"))

        program = RemoteProgram(one.connection, argv, stderr=errors, send=send)
        return HostReader(program, one.connection.where, errors=errors)

    def _suite(self, shell: SshConnection) -> Command:
        from weighbridge.topologies.ssh import suite  # noqa: PLC0415 - wanted on hosts that make the load

        return suite.ensure(shell, self._hardware, self._folder.parent.parent, self._say)


def unlimitable(spec: HostSpec) -> tuple[str, ...]:
    """What is asked of a host without systemd that cannot be had there, in words."""
    asked = []
    if spec.cpus is not None:
        asked.append("cpus")
    if spec.memory is not None:
        asked.append("memory")
    if any(disk.bandwidth is not None or disk.iops is not None for disk in spec.disks):
        asked.append("bandwidth or iops of disks")
    if not asked:
        return ()
    return (
        (
            f"it does not run systemd, and nothing can be limited there: leave {', '.join(asked)} out "
            "of the hardware file"
        ),
    )


def _all(work: Iterable[Callable[[], object]]) -> None:
    """Do all at once. Raises one error that tells of all that failed, of the kind of the first."""
    failed: list[WeighbridgeError] = []

    def one(do: Callable[[], object]) -> None:
        try:
            do()
        except WeighbridgeError as error:
            failed.append(error)

    together([partial(one, do) for do in work])
    if len(failed) == 1 or (failed and not all(isinstance(error, UsageError) for error in failed)):
        first = next((error for error in failed if not isinstance(error, UsageError)), failed[0])
        others = [error.message for error in failed if error is not first]
        if not others:
            raise first
        raise TargetError("\n".join([first.message, *others]), advice=first.advice) from first
    if failed:
        advice = next((error.advice for error in failed if error.advice), "")
        raise UsageError("\n".join(error.message for error in failed), advice=advice) from failed[0]
