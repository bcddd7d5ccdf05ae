"""The lab hosts of one deployment: started in parallel, connected, limited, and torn down."""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError, UsageError
from weighbridge.common.home import IMPORTED_FROM
from weighbridge.common.host import Host
from weighbridge.gateways.together import together
from weighbridge.topologies.disk_models import described
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited
from weighbridge.topologies.images import built_on, packages_sum
from weighbridge.topologies.lab import bundle as bundles
from weighbridge.topologies.lab import model_disks, network, runc
from weighbridge.topologies.lab.bundle import Bundle
from weighbridge.topologies.lab.cgroup import TREE, Cgroups, Write
from weighbridge.topologies.lab.claim import STATE, Claim, RootLimit
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.ending import BUNDLES, tear_down
from weighbridge.topologies.lab.host import LabHost
from weighbridge.topologies.lab.model_disks import GROUP, ModelDisks, file_name, wanted_disks
from weighbridge.topologies.lab.network import Port
from weighbridge.topologies.lab.requirements import exhausted
from weighbridge.topologies.lab.runc import Runc
from weighbridge.topologies.lab.usage import disk_use
from weighbridge.topologies.quota import slice_words

SWITCH = "_switch"
"""The container of the bridge; no host's name begins with an underscore."""
START_S = 60.0
"""A host starts in 0.1 s, and even on a very busy machine in less than this."""
FIRST_SPARE_DESCRIPTOR = 100


@dataclass(frozen=True)
class _PlannedHost:
    """A host to start. `image` None: this machine's root."""

    name: str
    index: int
    spec: HostSpec
    image: Path | None


class LabHosts(Hosts):
    """Running containers, their switch, and the deployment's claim on this machine."""

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
        self._model_disks: ModelDisks | None = None
        self._closed = False

    def _start_all(
        self, planned: Collection[_PlannedHost], logs: Path, say: Callable[[str], None]
    ) -> None:
        """Start the hosts and connect them. After a failure close() ends what was started."""
        self._bundles.mkdir(parents=True)
        etc_hosts = self._bundles / "etc-hosts"
        addresses = {one.name: network.address(one.index) for one in planned}
        etc_hosts.write_text(bundles.etc_hosts(addresses))
        self._start_model_disks(planned, logs)
        submounts = bundles.submounts(Path("/proc/self/mountinfo").read_bytes())

        def start(one: _PlannedHost | None) -> LabHost | int:
            name = SWITCH if one is None else one.name
            attached: list[LoopDisk] = []
            try:
                folder = self._bundles / name
                folder.mkdir()
                for index, disk in enumerate(one.spec.disks if one is not None else ()):
                    attached.append(self._attach(name, index, disk, folder))
                bundle = Bundle(
                    deployment=self.deployment,
                    host=name,
                    folder=folder,
                    logs=logs / name,
                    image=one.image if one is not None else None,
                    etc_hosts=etc_hosts,
                    disks=tuple(attached),
                    memory_bytes=one.spec.memory if one is not None else None,
                    cpuset=one.spec.cpuset if one is not None else None,
                    limit_swap=self._cgroups.accounts_swap(),
                    visible=_python_of_this_process(),
                    tools=self._tools,
                )
                before = disk_use([disk.minor for disk in attached])
                pid = self._start(bundle, submounts)
            finally:
                for loop in attached:
                    loop.close()
            if one is None:
                return pid
            address = addresses[one.name]
            return LabHost(
                bundle,
                address,
                self._runc,
                self._cgroups,
                pid=pid,
                before=before,
                model_disks=self._model_disks,
            )

        started = time.monotonic()
        for one in together([partial(start, one) for one in (None, *planned)]):
            if isinstance(one, LabHost):
                self._lab[one.name] = one
            else:
                self._switch_pid = one
        self.hosts.update(self._lab)
        for wanted in planned:
            host = self._lab[wanted.name]
            self._ports[wanted.name] = Port(wanted.index, host.pid, host.address)
        network.wire(self._switch_pid, tuple(self._ports.values()), self._hardware.network.mtu)
        images = [one.image for one in planned if one.image is not None]
        self._images = {image: packages_sum(image) for image in images}
        say(f"{len(self._lab)} hosts started in {time.monotonic() - started:.2f} s")

    def _start_model_disks(self, planned: Collection[_PlannedHost], logs: Path) -> None:
        """Start the program of all disks that have a model, if there are any."""
        folder = self._bundles / GROUP
        disks = {one.name: one.spec.disks for one in planned}
        if wanted := wanted_disks(self.deployment, disks, folder):
            self._model_disks = ModelDisks.start(
                self.deployment,
                wanted,
                cgroups=self._cgroups,
                folder=folder,
                log=logs / GROUP / model_disks.LOG,
                lock=self._claim.descriptor,
            )
            self.helpers = (self._model_disks.pid,)

    def _attach(self, host: str, index: int, disk: Disk, folder: Path) -> LoopDisk:
        path = f"/dev/wb{index}"
        if disk.model is None or self._model_disks is None:
            return LoopDisk.attach(path, disk.size or 0, folder)
        name = file_name(self.deployment, host, index)
        return LoopDisk.over(path, self._model_disks.path(name))

    def _start(self, bundle: Bundle, submounts: Sequence[str]) -> int:
        """Start one container; returns the pid of its first process."""
        bundle.write()
        # runc passes on descriptors from 3 on, where bash moves the disks'. They are copied to
        # numbers above 100 first, so that none overwrites another.
        spare = [
            fcntl.fcntl(disk.descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_SPARE_DESCRIPTOR)
            for disk in bundle.disks
        ]
        moves = "".join(f"exec {3 + index}<&{one} {one}<&-\n" for index, one in enumerate(spare))
        run = (
            *("run", "--detach", "--no-new-keyring", "--preserve-fds", str(len(spare))),
            *("--bundle", ".", "--pid-file", "pid"),
        )
        script = f'{moves}{bundle.script(submounts)}\nexec "$@"'
        private = ("unshare", "--mount", "--propagation", "private")
        argv = [*private, "bash", "-ec", script, "bash", *self._runc.argv(*run, bundle.id)]
        log = bundle.logs / "init.out"
        try:
            with log.open("wb") as out:
                code = subprocess.run(
                    argv,
                    cwd=bundle.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    pass_fds=(*spare, self._claim.descriptor),
                    # Ctrl-C in the conductor's terminal must not reach it.
                    start_new_session=True,
                    timeout=START_S,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            output = log.read_text(errors="replace")
            raise CommandFailed(bundle.host, ["runc", *run], None, output) from None
        finally:
            for one in spare:
                os.close(one)
        if code:
            output = log.read_text(errors="replace")
            advice = exhausted(output)
            raise CommandFailed(bundle.host, ["runc", *run], code, output, advice=advice)
        return int((bundle.folder / "pid").read_text())

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """See Hosts."""
        if "disk" in what:
            self._limit_write_back()
            if self._model_disks is not None:
                self._model_disks.pace(on=True)

        def limit(name: str) -> None:
            host, spec = self._lab[name], self._hardware.hosts[name]
            devices = tuple(disk.number for disk in host.bundle.disks)
            group, period_s = host.bundle.cgroup, self._hardware.cpu_period
            for write in self._cgroups.limits(group, spec, devices, what, period_s=period_s):
                write.apply()
            if spec.nic is not None and "nic" in what:
                nic = spec.nic
                network.limit(self._switch_pid, self._ports[name], nic.rate, nic.delay)

        together([partial(limit, name) for name in self._lab])

    def _limit_write_back(self) -> None:
        root: list[Write] = []
        for name, host in self._lab.items():
            for disk, spec in zip(host.bundle.disks, self._hardware.hosts[name].disks, strict=True):
                root += self._cgroups.write_back(disk.number, spec)
        self._claim.add(tuple(RootLimit(path=one.path, text=one.text) for one in root))
        for write in root:
            write.apply()

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """See Hosts."""
        if "disk" in what:
            self._claim.lift()
            if self._model_disks is not None:
                self._model_disks.pace(on=False)

        def unlimit(name: str) -> None:
            host, spec = self._lab[name], self._hardware.hosts[name]
            devices = tuple(disk.number for disk in host.bundle.disks)
            for write in self._cgroups.lifts(host.bundle.cgroup, spec, devices, what):
                write.apply()
            if spec.nic is not None and "nic" in what:
                network.unlimit(self._switch_pid, self._ports[name], spec.nic.rate)

        together([partial(unlimit, name) for name in self._lab])

    def facts(self) -> Mapping[str, str]:
        """See Hosts. Raises TargetError or CommandFailed."""
        version = self._cgroups.version
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        facts = {
            "hosts": "containers of this machine under runc, on one kernel and one real disk",
            "kernel": platform.release(),
            "machine": f"{os.cpu_count()} CPUs, {memory_bytes / 2**30:.1f} GiB",
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
                "cgroup version 1 charges write-back to the root: disks are limited there too, "
                "separately, so that direct and written-back I/O at once may reach twice the rate"
            )
        indirect = [
            f"{name}{disk.path}"
            for name, host in self._lab.items()
            for disk in host.bundle.disks
            if not disk.direct
        ]
        if indirect:
            facts["disks through the page cache"] = ", ".join(indirect)
        disks = {name: self._hardware.hosts[name].disks for name in self._lab}
        unlimited = [
            name
            for name, own in disks.items()
            if any((disk.bandwidth, disk.iops, disk.model) == (None, None, None) for disk in own)
        ]
        if unlimited:
            facts["disks without limits"] = (
                f"{', '.join(unlimited)}: they share the machine's disk with all others"
            )
        for name, own in disks.items():
            for index, disk in enumerate(own):
                if disk.model is not None:
                    facts[f"disk model {name}/dev/wb{index}"] = described(disk.model)
        return facts

    def check(self) -> None:
        """See Hosts."""
        if self._model_disks is not None:
            self._model_disks.check()

    def _limits_of(self, host: LabHost) -> str:
        devices = {disk.number: disk.path for disk in host.bundle.disks}
        own_cpus = host.bundle.cpuset is not None
        limits = self._cgroups.read(host.bundle.cgroup, devices, own_cpus=own_cpus)
        return "; ".join((*limits, f"nic {network.read_limit(self._ports[host.name])}"))

    def close(self) -> None:
        """Tear down everything but the logs. See Hosts."""
        if self._closed:
            return
        tear_down(self._claim.claimed, self._runc, self._cgroups)
        if self._model_disks is not None:
            self._model_disks.close()
        self._closed = True
        self._claim.release()


def start_lab(
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
    """Start the hosts `names` of a hardware file, connected, with only the limits of memory and
    the CPUs of their own on.

    `images` has the root image of every host that does not make the load; the image `/` and hosts
    that make the load get this machine's own root, read only. `folder` holds what belongs to the
    hosts, whose logs stay in its `logs/HOST`; `state` holds the claim on this machine and runc's
    state; `tools` is the root image of `Host.tool`.

    Raises UsageError when another deployment is running, MissingPrerequisite without root, tools or
    loop devices, CommandFailed when a host does not start, after tearing down all that was started.
    """
    planned = _planned(hardware, images, names)
    if any(disk.model is not None for one in planned for disk in one.spec.disks):
        model_disks.require()
    if os.geteuid() != 0:
        raise MissingPrerequisite("lab hosts need root", advice="run it as root, or through sudo")
    if any(character in str(folder) for character in ':,\\"'):
        raise UsageError(f"{folder}: an overlay's folder cannot have : , \\ or \" in its name")
    cgroups = Cgroups()
    if cgroups.pids(f"/{TREE}/{deployment}"):
        raise UsageError(f"{deployment}: a deployment of this label is already running")
    claim = Claim(deployment, folder, state)
    hosts = LabHosts(
        claim, hardware, runc=Runc(state / "runc"), cgroups=cgroups, folder=folder, tools=tools
    )
    try:
        hosts._start_all(planned, folder / "logs", say)  # noqa: SLF001 - this function is the constructor of what it returns
    except BaseException as error:
        try:
            hosts.close()
        except TargetError as left:
            error.add_note(str(left))
        raise
    return hosts


def _planned(
    hardware: Hardware, images: Mapping[str, Path], names: Collection[str]
) -> tuple[_PlannedHost, ...]:
    unknown = sorted(set(names) - set(hardware.hosts))
    if unknown:
        raise UsageError(f"{hardware.name} has no hosts {', '.join(unknown)}")
    planned = []
    for index, (name, spec) in enumerate(hardware.hosts.items()):
        if name not in names:
            continue
        image = None if name in hardware.clients else images.get(name)
        if image is None and name not in hardware.clients:
            raise UsageError(f"{name}: no root image was given for it")
        if image is not None and not (image / "usr").is_dir():
            raise UsageError(f"{name}: {image} is not a root image")
        planned.append(_PlannedHost(name, index, spec, None if image == Path("/") else image))
    return tuple(planned)


def _python_of_this_process() -> tuple[Path, ...]:
    """Folders of this Python and this project, for drivers on clients, even below /tmp."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), IMPORTED_FROM)))
