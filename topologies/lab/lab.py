"""The lab hosts of one deployment: started in parallel, connected, limited, and torn down."""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError, UsageError
from weighbridge.common.host import Host, program_environment
from weighbridge.common.paths import IMPORTED_FROM
from weighbridge.common.structure import CutDisk
from weighbridge.gateways.together import together
from weighbridge.topologies.disk_models import DISK_MODELS, described
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec, slice_words
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited, PowerCuts, remove_folder
from weighbridge.topologies.images import built_on, packages_sum
from weighbridge.topologies.lab import bundle as bundles
from weighbridge.topologies.lab import ending, model_disks, network, runc
from weighbridge.topologies.lab.bundle import Bundle, RootDisk
from weighbridge.topologies.lab.cgroup import TREE, Cgroups, Write, disk_use
from weighbridge.topologies.lab.claim import STATE, Claim, RootLimit
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.ending import BUNDLES, tear_down
from weighbridge.topologies.lab.host import LabHost, Started
from weighbridge.topologies.lab.model_disks import GROUP, ModelDisks, file_name, wanted_disks
from weighbridge.topologies.lab.network import Port
from weighbridge.topologies.lab.requirements import exhausted
from weighbridge.topologies.lab.runc import Runc

_ROOT: Final = Disk(size=4 * 2**30, model=DISK_MODELS["ideal"])
"""For all that a host has outside its disks: a mon's store, rings, keys. A sparse file."""


@dataclass(frozen=True)
class PlannedHost:
    """A host to start. `image` None: this machine's root."""

    name: str
    index: int
    spec: HostSpec
    image: Path | None
    root: Disk | None = None
    """The disk of what it writes to its root; None: a folder of this machine."""

    @property
    def all_disks(self) -> tuple[Disk, ...]:
        """Its disks, and that of its root last."""
        return self.spec.disks if self.root is None else (*self.spec.disks, self.root)


def planned_hosts(
    hardware: Hardware,
    images: Mapping[str, Path],
    names: Collection[str],
    *,
    cuts: bool,
) -> tuple[PlannedHost, ...]:
    """The hosts to start; see `start_lab`. Raises UsageError."""
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
        own = PlannedHost(name, index, spec, None if image == Path("/") else image)
        planned.append(_recorded(own) if cuts and own.image is not None else own)
    return tuple(planned)


def _recorded(one: PlannedHost) -> PlannedHost:
    """The host on disks that take no time and remember what is written to them."""
    disks = tuple(Disk(size=disk.size, model=DISK_MODELS["ideal"]) for disk in one.spec.disks)
    spec = one.spec.model_copy(update={"disks": disks})
    return PlannedHost(one.name, one.index, spec, one.image, root=_ROOT)


START_S: Final = 60.0
"""A host starts in 0.1 s, and even on a very busy machine in less than this."""
FIRST_SPARE_DESCRIPTOR: Final = 100


def start_container(bundle: Bundle, runc: Runc, submounts: Sequence[str], lock: int) -> int:
    """Start a container, with the claim's `lock`; its first pid. Raises CommandFailed."""
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
    argv = [*private, "bash", "-ec", script, "bash", *runc.argv(*run, bundle.id)]
    log = bundle.logs / "init.out"
    try:
        with log.open("wb") as out:
            code = subprocess.run(
                argv,
                cwd=bundle.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=program_environment(),
                pass_fds=(*spare, lock),
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


def python_of_this_process() -> tuple[Path, ...]:
    """Folders of this Python and this project, for drivers on clients, even below /tmp."""
    return tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), IMPORTED_FROM)))


# Power cuts of lab hosts: their disks are files of one program, which remembers every write.


class LabPowerCuts(PowerCuts):
    """All hosts of a deployment but its clients."""

    def __init__(
        self, hosts: Hosts, names: tuple[str, ...], model_disks: ModelDisks, folder: Path
    ) -> None:
        self._hosts = hosts
        self._names = names
        self._disks = model_disks
        self._folder = folder
        self._on = True

    def record(self, *, flushes: bool) -> None:
        """See PowerCuts. One sync is for all hosts: they share this machine's kernel."""
        os.sync()
        self._disks.record(flushes=flushes)

    def mark(self) -> int:
        return self._disks.mark().number

    def cut(self) -> None:
        self._disks.cut()
        if self._on:
            self._hosts.power_off(self._names)
            self._on = False
            attached = partial(ending.disks, self._folder, self._hosts.deployment)
            if left := ending.until_none(attached):
                raise TargetError(f"{', '.join(map(str, left))} still attached after a power cut")

    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        self.cut()
        found = self._disks.restore(mark, keep=keep, seed=seed)
        self._on = True
        self._hosts.power_on(self._names)
        return tuple(map(self._shown, found))

    def _shown(self, disk: CutDisk) -> CutDisk:
        """With the name by which users know it; the last disk of a host is its root."""
        host, index = disk.name.removeprefix(f"{self._hosts.deployment}.").rsplit(".", 1)
        own = self._hosts.hosts[host].disks
        name = f"{host}{own[int(index)]}" if int(index) < len(own) else f"{host}/"
        return disk.model_copy(update={"name": name})


SWITCH = "_switch"
"""The container of the bridge; no host's name begins with an underscore."""
ETC_HOSTS = "etc-hosts"


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
        recorded: bool = False,
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
        self._recorded = recorded
        self._planned: dict[str, PlannedHost] = {}
        self._held: dict[str, tuple[LoopDisk, ...]] = {}
        self._limited: set[Limited] = set()
        self._logs = folder / "logs"
        self._submounts: tuple[str, ...] = ()
        self._closed = False

    def _start_all(self, planned: Collection[PlannedHost], say: Callable[[str], None]) -> None:
        """Start the hosts and connect them. After a failure close() ends what was started."""
        self._bundles.mkdir(parents=True)
        self._planned = {one.name: one for one in planned}
        etc_hosts = self._bundles / ETC_HOSTS
        addresses = {one.name: network.address(one.index) for one in planned}
        etc_hosts.write_text(bundles.etc_hosts(addresses))
        self._start_model_disks(planned)
        self._submounts = bundles.submounts(Path("/proc/self/mountinfo").read_bytes())

        def start(one: PlannedHost | None) -> LabHost | int:
            return self._start_switch() if one is None else self._start_host(one)

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
        network.bridge(self._switch_pid, self._hardware.network.mtu)
        network.wire(self._switch_pid, tuple(self._ports.values()), self._hardware.network.mtu)
        images = [one.image for one in planned if one.image is not None]
        self._images = {image: packages_sum(image) for image in images}
        say(f"{len(self._lab)} hosts started in {time.monotonic() - started:.2f} s")

    def _start_model_disks(self, planned: Collection[PlannedHost]) -> None:
        folder = self._bundles / GROUP
        disks = {one.name: one.all_disks for one in planned}
        if wanted := wanted_disks(self.deployment, disks, folder):
            self._model_disks = ModelDisks.start(
                self.deployment,
                wanted,
                cgroups=self._cgroups,
                folder=folder,
                log=self._logs / GROUP / model_disks.LOG,
                lock=self._claim.descriptor,
                journal=self._recorded,
            )
            self.helpers = (self._model_disks.pid,)

    def _attach(self, host: str, index: int, disk: Disk, folder: Path) -> LoopDisk:
        path = f"/dev/wb{index}"
        if disk.model is None or self._model_disks is None:
            return LoopDisk.attach(path, disk.size or 0, folder)
        name = file_name(self.deployment, host, index)
        return LoopDisk.over(path, self._model_disks.path(name))

    def _start_switch(self) -> int:
        folder = self._bundles / SWITCH
        folder.mkdir()
        logs, etc_hosts = self._logs / SWITCH, self._bundles / ETC_HOSTS
        bundle = Bundle(self.deployment, SWITCH, folder, logs, None, etc_hosts)
        return start_container(bundle, self._runc, self._submounts, self._claim.descriptor)

    def _run(self, one: PlannedHost, held: Sequence[LoopDisk] = ()) -> Started:
        folder = self._bundles / one.name
        again = folder.exists()
        attached = list(held)
        root: list[LoopDisk] = []
        try:
            folder.mkdir(exist_ok=True)
            for index, disk in enumerate(one.spec.disks if not held else ()):
                attached.append(self._attach(one.name, index, disk, folder))
            if one.root is not None:
                root.append(self._attach(one.name, len(one.spec.disks), one.root, folder))
            bundle = Bundle(
                deployment=self.deployment,
                host=one.name,
                folder=folder,
                logs=self._logs / one.name,
                image=one.image,
                etc_hosts=self._bundles / ETC_HOSTS,
                disks=tuple(attached),
                root=RootDisk(root[0], empty=not again) if root else None,
                memory_bytes=one.spec.memory,
                cpuset=one.spec.cpuset,
                limit_swap=self._cgroups.accounts_swap(),
                visible=python_of_this_process(),
                tools=self._tools,
            )
            before = disk_use([disk.minor for disk in attached])
            lock = self._claim.descriptor
            return Started(
                bundle, before, start_container(bundle, self._runc, self._submounts, lock)
            )
        finally:
            for loop in (*attached, *root):
                loop.close()

    def _start_host(self, one: PlannedHost) -> LabHost:
        return LabHost(
            self._run(one),
            network.address(one.index),
            self._runc,
            self._cgroups,
            model_disks=self._model_disks,
        )

    def power_off(self, names: Collection[str]) -> None:
        """See Hosts. Disks of hosts whose writes are recorded are closed, all others stay."""
        for name in names:
            if name not in self._lab or name in self._hardware.clients:
                raise UsageError(f"{name} is not a host of this deployment whose power can be cut")
        for name in names:
            network.unplug(self._switch_pid, self._ports[name])

        def end(name: str) -> None:
            host = self._lab[name]
            if not self._recorded:
                self._held[name] = tuple(disk.again() for disk in host.bundle.disks)
            host.power_off()

        together([partial(end, name) for name in names])

    def power_on(self, names: Collection[str]) -> None:
        def start(name: str) -> None:
            host = self._lab[name]
            host.power_on(self._run(self._planned[name], self._held.pop(name, ())))
            self._ports[name] = replace(self._ports[name], pid=host.pid)

        together([partial(start, name) for name in names])
        ports = [self._ports[name] for name in names]
        network.wire(self._switch_pid, ports, self._hardware.network.mtu)
        together([partial(self._limit_host, name, self._limited) for name in names])

    def plug(self, names: Collection[str], *, on: bool) -> None:
        ports = [self._ports[one] for one in names]
        together([partial(network.plug, self._switch_pid, port, on=on) for port in ports])

    def fail_disk(self, name: str, disk: str, *, on: bool) -> None:
        """See Hosts. Only a disk that has a model can fail."""
        index = self._lab[name].disks.index(disk)
        if self._model_disks is None or self._hardware.hosts[name].disks[index].model is None:
            raise UsageError(f"{name}: {disk} has no model, and only such a disk can fail")
        self._model_disks.fail(file_name(self.deployment, name, index), on=on)

    def power_cuts(self) -> PowerCuts:
        if self._model_disks is None or not self._recorded:
            return super().power_cuts()
        names = tuple(one.name for one in self._planned.values() if one.root is not None)
        return LabPowerCuts(self, names, self._model_disks, self._bundles.parent)

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        self._limited |= set(what)
        if "disk" in what:
            self._limit_write_back()
            if self._model_disks is not None and not self._recorded:
                self._model_disks.pace(on=True)
        together([partial(self._limit_host, name, what) for name in self._lab])

    def _limit_host(self, name: str, what: Collection[Limited]) -> None:
        host, spec = self._lab[name], self._hardware.hosts[name]
        devices = tuple(disk.number for disk in host.bundle.disks)
        group, period_s = host.bundle.cgroup, self._hardware.cpu_period
        for write in self._cgroups.limits(group, spec, devices, what, period_s=period_s):
            write.apply()
        if spec.nic is not None and "nic" in what:
            network.limit(self._switch_pid, self._ports[name], spec.nic.rate, spec.nic.delay)

    def _limit_write_back(self) -> None:
        root: list[Write] = []
        for name, host in self._lab.items():
            for disk, spec in zip(host.bundle.disks, self._hardware.hosts[name].disks, strict=True):
                root += self._cgroups.write_back(disk.number, spec)
        self._claim.add(tuple(RootLimit(path=one.path, text=one.text) for one in root))
        for write in root:
            write.apply()

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        self._limited -= set(what)
        if "disk" in what:
            self._claim.lift()
            if self._model_disks is not None and not self._recorded:
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
        attached = [(name, disk) for name, one in self._lab.items() for disk in one.bundle.disks]
        if indirect := [f"{name}{disk.path}" for name, disk in attached if not disk.direct]:
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
        if self._model_disks is not None:
            self._model_disks.check()

    def _limits_of(self, host: LabHost) -> str:
        devices = {disk.number: disk.path for disk in host.bundle.disks}
        own_cpus = host.bundle.cpuset is not None
        limits = self._cgroups.read(host.bundle.cgroup, devices, own_cpus=own_cpus)
        return "; ".join((*limits, f"nic {network.read_limit(self._ports[host.name])}"))

    def close(self) -> None:
        if self._closed:
            return
        for disk in [one for held in self._held.values() for one in held]:
            disk.close()
        self._held.clear()
        tear_down(self._claim.claimed, self._runc, self._cgroups)
        if self._model_disks is not None:
            self._model_disks.close()
        self._closed = True
        self._claim.release()
        remove_folder(self._bundles)


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
    cuts: bool = False,
) -> LabHosts:
    """Start the hosts `names` of a hardware file, connected, with only the limits of memory and
    the CPUs of their own on.

    `images` has the root image of every host that does not make the load; the image `/` and hosts
    that make the load get this machine's own root, read only. `folder` holds what belongs to the
    hosts, whose logs stay in its `logs/HOST`; `state` holds the claim on this machine and runc's
    state; `tools` is the root image of `Host.tool`. `cuts`: remember what is written to the disks
    of all hosts but clients, their roots included, for `power_cuts`.

    Raises UsageError when another deployment is running, MissingPrerequisite without root, tools or
    loop devices, CommandFailed when a host does not start, after tearing down all that was started.
    """
    planned = planned_hosts(hardware, images, names, cuts=cuts)
    if any(disk.model is not None for one in planned for disk in one.all_disks):
        model_disks.require()
    if os.geteuid() != 0:
        raise MissingPrerequisite("lab hosts need root", advice="run it as root, or through sudo")
    if any(character in str(folder) for character in ':,\\"'):
        raise UsageError(f"{folder}: an overlay's folder cannot have : , \\ or \" in its name")
    cgroups = Cgroups()
    if cgroups.pids(f"/{TREE}/{deployment}"):
        raise UsageError(f"{deployment}: a deployment of this label is already running")
    claim = Claim(deployment, folder, state, cgroups.handed_on())
    hosts = LabHosts(
        claim,
        hardware,
        runc=Runc(state / "runc"),
        cgroups=cgroups,
        folder=folder,
        tools=tools,
        recorded=cuts,
    )
    try:
        hosts._start_all(planned, say)  # noqa: SLF001 - this function is the constructor of what it returns
    except BaseException as error:
        try:
            hosts.close()
        except TargetError as left:
            error.add_note(str(left))
        raise
    return hosts
