"""The hosts of one deployment on this machine: raised in parallel, wired, limited, and taken
away.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weighbridge.common.errors import CommandFailed, MissingMeans, TargetError, UsageError
from weighbridge.common.home import IMPORTED_FROM
from weighbridge.common.host import Host
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited
from weighbridge.topologies.images import built_on, packages_sum
from weighbridge.topologies.lab import bundle as bundles
from weighbridge.topologies.lab import network, runc
from weighbridge.topologies.lab.bundle import Bundle
from weighbridge.topologies.lab.cgroup import TREE, Cgroups, Write
from weighbridge.topologies.lab.claim import STATE, Claim, RootLimit
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.ending import BUNDLES, take_away
from weighbridge.topologies.lab.host import LabHost
from weighbridge.topologies.lab.network import Port
from weighbridge.topologies.lab.runc import Runc
from weighbridge.topologies.lab.usage import disk_use
from weighbridge.topologies.quota import slice_words

SWITCH = "_switch"
"""The container that holds the bridge; no host's name begins with an underscore."""
START_S = 60.0
"""A host starts in 0.1 s; on the busiest machine it would still be there after this."""
AT_ONCE = 8
"""Hosts started or ended at a time."""
FIRST_SPARE_DESCRIPTOR = 100

One = TypeVar("One")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Wanted:
    """A host that is to be raised."""

    name: str
    index: int
    spec: HostSpec
    image: Path | None


class LabHosts(Hosts):
    """Containers that stand, their switch, and the claim on this machine that goes with them."""

    def __init__(
        self,
        claim: Claim,
        hardware: Hardware,
        *,
        runc: Runc,
        cgroups: Cgroups,
        folder: Path,
        tools: Path | None = None,
    ) -> None:
        self.deployment = claim.claimed.deployment
        self.hosts: dict[str, Host] = {}
        self._lab: dict[str, LabHost] = {}
        self._ports: dict[str, Port] = {}
        self._switch_pid = 0
        self._claim = claim
        self._hardware = hardware
        self._runc = runc
        self._cgroups = cgroups
        self._bundles = folder / BUNDLES
        self._images: dict[Path, str] = {}
        self._tools = tools
        self._closed = False

    # raising
    # -----------------------------------------------------------------------------------------------------------------

    def _raise(self, wanted: Collection[_Wanted], logs: Path, say: Callable[[str], None]) -> None:
        """Start the hosts and join them. What was started when this fails is ended by close()."""
        self._bundles.mkdir(parents=True)
        etc_hosts = self._bundles / "etc-hosts"
        etc_hosts.write_text(
            bundles.etc_hosts({one.name: network.address(one.index) for one in wanted})
        )
        shown = bundles.submounts(Path("/proc/self/mountinfo").read_bytes())

        def start(one: _Wanted | None) -> LabHost | int:
            name = SWITCH if one is None else one.name
            attached: list[LoopDisk] = []
            try:
                folder = self._bundles / name
                folder.mkdir()
                for index, disk in enumerate(one.spec.disks if one is not None else ()):
                    attached.append(LoopDisk.attach(f"/dev/wb{index}", disk.size or 0, folder))
                made = Bundle(
                    deployment=self.deployment,
                    host=name,
                    folder=folder,
                    logs=logs / name,
                    image=one.image if one is not None else None,
                    etc_hosts=etc_hosts,
                    disks=tuple(attached),
                    memory_bytes=one.spec.memory if one is not None else None,
                    limit_swap=self._cgroups.accounts_swap(),
                    visible=_python_of_this_process(),
                    tools=self._tools,
                )
                before = disk_use([disk.minor for disk in attached])
                pid = self._start(made, shown)
            finally:
                for loop in attached:
                    loop.close()
            if one is None:
                return pid
            return LabHost(
                made, network.address(one.index), self._runc, self._cgroups, pid=pid, before=before
            )

        started = time.monotonic()
        for one in _all(start, (None, *wanted)):
            if isinstance(one, LabHost):
                self._lab[one.name] = one
            else:
                self._switch_pid = one
        self.hosts.update(self._lab)
        for name, host in self._lab.items():
            index = next(one.index for one in wanted if one.name == name)
            self._ports[name] = Port(index, host.pid, host.address)
        network.wire(self._switch_pid, tuple(self._ports.values()), self._hardware.network.mtu)
        self._images = {
            one.image: packages_sum(one.image) for one in wanted if one.image is not None
        }
        say(f"{len(self._lab)} hosts stand after {time.monotonic() - started:.2f} s")

    def _start(self, made: Bundle, shown: Collection[str]) -> int:
        """Start one container; returns the number of its first process."""
        made.write()
        # runc hands on descriptors from 3 on; bash puts the disks there. Copies above 100, so that
        # none is in another's way.
        spare = [
            fcntl.fcntl(disk.descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_DESCRIPTOR)
            for disk in made.disks
        ]
        moves = "".join(f"exec {3 + index}<&{one} {one}<&-\n" for index, one in enumerate(spare))
        run = (
            "run",
            "--detach",
            "--no-new-keyring",
            "--preserve-fds",
            str(len(spare)),
            "--bundle",
            ".",
            "--pid-file",
            "pid",
        )
        script = f'{moves}{made.script(tuple(shown))}\nexec "$@"'
        argv = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "bash",
            "-ec",
            script,
            "bash",
            *self._runc.argv(*run, made.id),
        ]
        log = made.logs / "init.out"
        try:
            with log.open("wb") as out:
                code = subprocess.run(
                    argv,
                    cwd=made.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    pass_fds=(*spare, self._claim.descriptor),
                    # Ctrl-C in the conductor's terminal is the conductor's to decide about.
                    start_new_session=True,
                    timeout=START_S,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            raise CommandFailed(
                made.host, ["runc", *run], None, log.read_text(errors="replace")
            ) from None
        finally:
            for one in spare:
                os.close(one)
        if code:
            said = log.read_text(errors="replace")
            raise CommandFailed(made.host, ["runc", *run], code, said, advice=_used_up(said))
        return int((made.folder / "pid").read_text())

    # standing
    # ----------------------------------------------------------------------------------------------------------------

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Put the CPU, block and NIC limits of the hardware on, or some of them.

        Raises TargetError.
        """
        if "disk" in what:
            self._limit_write_back()

        def one(name: str) -> None:
            host, spec = self._lab[name], self._hardware.hosts[name]
            devices = tuple(disk.number for disk in host.bundle.disks)
            period_s = self._hardware.cpu_period
            for write in self._cgroups.limits(
                host.bundle.cgroup, spec, devices, what, period_s=period_s
            ):
                write.apply()
            if spec.nic is not None and "nic" in what:
                network.limit(self._switch_pid, self._ports[name], spec.nic)

        _all(one, self._lab)

    def _limit_write_back(self) -> None:
        root: list[Write] = []
        for name, host in self._lab.items():
            for disk, spec in zip(host.bundle.disks, self._hardware.hosts[name].disks, strict=True):
                root += self._cgroups.write_back(disk.number, spec)
        self._claim.add(tuple(RootLimit(path=one.path, text=one.text) for one in root))
        for write in root:
            write.apply()

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Take limits off again that `limit` put on. Raises TargetError."""
        if "disk" in what:
            self._claim.lift()

        def one(name: str) -> None:
            host, spec = self._lab[name], self._hardware.hosts[name]
            devices = tuple(disk.number for disk in host.bundle.disks)
            for write in self._cgroups.lifts(host.bundle.cgroup, spec, devices, what):
                write.apply()
            if spec.nic is not None and "nic" in what:
                network.unlimit(self._switch_pid, self._ports[name])

        _all(one, self._lab)

    def facts(self) -> Mapping[str, str]:
        """What the hosts are; limits as the kernel reads them back.

        Raises TargetError or CommandFailed.
        """
        version = self._cgroups.version
        facts = {
            "hosts": "containers of this machine under runc, on one kernel and one real disk",
            "kernel": platform.release(),
            "machine": f"{os.cpu_count()} CPUs, "
            f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} "
            "GiB",
            "runc": runc.version(),
            "cgroup": f"version {version}",
            "CPU quota": f"in periods of {self._hardware.cpu_period * 1e3:g} ms, of which a CPU "
            f"takes slices of {slice_words()}",
            "mtu": str(self._hardware.network.mtu),
        }
        for image, packages in self._images.items():
            facts[f"image {image.name}"] = packages
            facts[f"packages of {image.name}"] = f"those of {built_on(image)}"
        for name, host in self._lab.items():
            facts[f"limits {name}"] = self._limits_of(host)
        if version == 1 and any(host.bundle.disks for host in self._lab.values()):
            facts["write-back"] = (
                "cgroup version 1 charges write-back to the root: disks are limited there as "
                "well, in a budget of its own, "
                "so that direct and written-back I/O at once may reach twice the rate"
            )
        indirect = [
            f"{name}{disk.path}"
            for name, host in self._lab.items()
            for disk in host.bundle.disks
            if not disk.direct
        ]
        if indirect:
            facts["disks through the page cache"] = ", ".join(indirect)
        unlimited = [
            name
            for name in self._lab
            if any(
                one.bandwidth is None and one.iops is None
                for one in self._hardware.hosts[name].disks
            )
        ]
        if unlimited:
            facts["disks without limits"] = (
                f"{', '.join(unlimited)}: they share the machine's disk with all others"
            )
        return facts

    def _limits_of(self, host: LabHost) -> str:
        devices = {disk.number: disk.path for disk in host.bundle.disks}
        told = [*self._cgroups.read(host.bundle.cgroup, devices)]
        told.append(f"nic {network.read_limit(self._ports[host.name])}")
        return "; ".join(told)

    # taking away
    # -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Take everything away but the logs.

        May be called more than once. Raises TargetError naming what stayed.
        """
        if self._closed:
            return
        take_away(self._claim.claimed, self._runc, self._cgroups)
        self._closed = True
        self._claim.release()


def raise_lab(
    deployment: str,
    hardware: Hardware,
    images: Mapping[str, Path],
    say: Callable[[str], None],
    *,
    folder: Path,
    names: Collection[str],
    state: Path = STATE,
    tools: Path | None = None,
) -> LabHosts:
    """Raise the hosts `names` of a hardware file, joined and with their memory limits on;
    everything else by `limit()`.

    `images` has the root image of every host that does not make the load; the image `/` and hosts
    that make the load get this machine's own root, read only. `folder` takes what belongs to the
    hosts (their logs stay there, in `logs/HOST`); `state` is where the claim on the machine and
    runc's state are kept; `tools` is the root image that `Host.tool` finds its programs in.

    Raises UsageError when another deployment stands, MissingMeans without root, tools or loop
    devices, CommandFailed when a host does not start; everything that was started is then gone
    again.
    """
    wanted = _wanted(hardware, images, names)
    if os.geteuid() != 0:
        raise MissingMeans("lab hosts need root", advice="run it as root, or through sudo")
    if any(character in str(folder) for character in ':,\\"'):
        raise UsageError(
            f'{folder}: a folder with one of : , \\ " in its name cannot be below an overlay'
        )
    cgroups = Cgroups()
    if cgroups.pids(f"/{TREE}/{deployment}"):
        raise UsageError(f"{deployment}: a deployment of this label stands on this machine already")
    claim = Claim(deployment, folder, state)
    hosts = LabHosts(
        claim, hardware, runc=Runc(state / "runc"), cgroups=cgroups, folder=folder, tools=tools
    )
    try:
        hosts._raise(wanted, folder / "logs", say)  # noqa: SLF001 - this function is the constructor of what it returns
    except BaseException as error:
        try:
            hosts.close()
        except TargetError as stayed:
            error.add_note(str(stayed))
        raise
    return hosts


def _used_up(said: str) -> str:
    """What to do about a host that did not start for want of something of this machine's; empty
    where that is not known.
    """
    if "No space left on device" in said and (
        "unshare" in said or "namespace" in said or "clone" in said
    ):
        return (
            "This machine has no namespace left to give, though it says that of space: `sysctl "
            "user` shows how many there may be "
            "(max_mnt_namespaces, max_net_namespaces ...), `lsns` who has them."
        )
    if "No space left on device" in said and "cgroup" in said:
        return (
            "This machine has no cgroup left to give: see cgroup.max.descendants; `weighbridge "
            "down --all` removes leftovers."
        )
    if "Cannot allocate memory" in said or "cannot allocate memory" in said:
        return (
            "This machine has no memory left: end other programs, or choose hardware with "
            "less; `weighbridge doctor` counts it."
        )
    return ""


def _wanted(
    hardware: Hardware, images: Mapping[str, Path], names: Collection[str]
) -> tuple[_Wanted, ...]:
    unknown = sorted(set(names) - set(hardware.hosts))
    if unknown:
        raise UsageError(f"{hardware.name} has no hosts {', '.join(unknown)}")
    wanted = []
    for index, (name, spec) in enumerate(hardware.hosts.items()):
        if name not in names:
            continue
        image = None if name in hardware.clients else images.get(name)
        if image is None and name not in hardware.clients:
            raise UsageError(f"{name}: no root image was given for it")
        if image is not None and not (image / "usr").is_dir():
            raise UsageError(f"{name}: {image} is not a root image")
        wanted.append(_Wanted(name, index, spec, None if image == Path("/") else image))
    return tuple(wanted)


def _python_of_this_process() -> tuple[Path, ...]:
    """Where this Python and this project are: drivers run them on client hosts, also when they are
    below /tmp.
    """
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), IMPORTED_FROM)))


def _all(work: Callable[[One], Result], items: Iterable[One]) -> list[Result]:
    """Do all at the same time; raises the first error when all have ended, so that none is still at
    work then.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        futures = [pool.submit(work, item) for item in items]
        wait(futures)
    finally:
        # Also when the conductor is interrupted: what is being started must be there to be ended.
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]
