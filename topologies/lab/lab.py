"""The lab hosts of one deployment: started in parallel, connected, limited, and torn down."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.common.errors import MissingPrerequisite, TargetError, UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import CutDisk
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.together import together
from weighbridge.topologies.attestation import IMAGE
from weighbridge.topologies.disk_models import described
from weighbridge.topologies.hardware import (
    Hardware,
    HostKind,
    HostSpec,
    HostsRequest,
    slice_words,
)
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited, PowerCuts, remove_folder
from weighbridge.topologies.images import Build, built_on, ensure, key, packages_sum
from weighbridge.topologies.images import together as built
from weighbridge.topologies.lab import bundle, ending, model_disks, network
from weighbridge.topologies.lab.bundle import Lab
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.claim import STATE, Claim
from weighbridge.topologies.lab.ending import tear_down
from weighbridge.topologies.lab.host import LabHost
from weighbridge.topologies.lab.model_disks import GROUP, ModelDisks, wanted_disks
from weighbridge.topologies.lab.runc import Runc
from weighbridge.topologies.local_command import command

SWITCH: Final = "_switch"
"""The container of the bridge; no host's name begins with an underscore."""


def planned_roots(
    hardware: Hardware, images: Mapping[str, Path], names: Collection[str]
) -> dict[str, Path | None]:
    """The roots of the hosts to start, in the order of the file; see `start_lab`. None: this
    machine's. Raises UsageError.
    """
    unknown = sorted(set(names) - set(hardware.hosts))
    if unknown:
        raise UsageError(f"{hardware.name} has no hosts {', '.join(unknown)}")
    roots: dict[str, Path | None] = {}
    for name in filter(names.__contains__, hardware.hosts):
        image = Path("/") if name in hardware.clients else images.get(name)
        if image is None:
            raise UsageError(f"{name}: no root image was given for it")
        if not (image / "usr").is_dir():
            raise UsageError(f"{name}: {image} is not a root image")
        roots[name] = None if image == Path("/") else image
    return roots


# Power cuts of lab hosts: their disks are files of one program, which remembers every write.


class LabPowerCuts(PowerCuts):
    """All hosts of a deployment but its clients."""

    def __init__(self, hosts: LabHosts, lab: Lab, disks: ModelDisks) -> None:
        self._hosts = hosts
        self._names = tuple(host.name for host in hosts.lab_hosts if host.recorded)
        self._disks = disks
        self._folder = lab.folder
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


class LabHosts(Hosts):
    """Running containers, their switch, and the deployment's claim on this machine."""

    def __init__(self, lab: Lab, roots: Mapping[str, Path | None]) -> None:
        self.deployment = lab.deployment
        self.hosts: dict[str, Host] = {}
        self._lab: dict[str, LabHost] = {}
        self._shared = lab
        self._switch = LabHost(lab, SWITCH, -1, HostSpec(), None)
        self._limited: set[Limited] = set()
        self._closed = False
        for index, (name, spec) in enumerate(lab.hardware.hosts.items()):
            if name in roots:
                self._lab[name] = LabHost(lab, name, index, spec, roots[name])

    @property
    def lab_hosts(self) -> Collection[LabHost]:
        """The hosts, also before they are started."""
        return self._lab.values()

    def start(self, say: Callable[[str], None]) -> None:
        """Start the hosts and connect them. After a failure close() ends what was started."""
        lab, mtu = self._shared, self._shared.hardware.network.mtu
        lab.bundles.mkdir(parents=True)
        addresses = {host.name: host.address for host in self.lab_hosts}
        (lab.bundles / bundle.ETC_HOSTS).write_text(bundle.etc_hosts(addresses))
        folder = lab.bundles / GROUP
        disks = {host.name: host.all_disks for host in self.lab_hosts}
        if wanted := wanted_disks(self.deployment, disks, folder):
            lab.model_disks = ModelDisks.start(
                self.deployment,
                wanted,
                cgroups=lab.cgroups,
                folder=folder,
                log=lab.folder / "logs" / GROUP / model_disks.LOG,
                lock=lab.claim.descriptor,
                journal=lab.recorded,
            )
            self.helpers = (lab.model_disks.pid,)
        lab.submounts = bundle.submounts(Path("/proc/self/mountinfo").read_bytes())
        started = time.monotonic()
        together([host.power_on for host in (self._switch, *self.lab_hosts)])
        self.hosts.update(self._lab)
        network.bridge(self._switch.pid, mtu)
        network.wire(self._switch.pid, [host.port for host in self.lab_hosts], mtu)
        say(f"{len(self._lab)} hosts started in {time.monotonic() - started:.2f} s")

    def power_off(self, names: Collection[str]) -> None:
        for name in names:
            if name not in self._lab or name in self._shared.hardware.clients:
                raise UsageError(f"{name} is not a host of this deployment whose power can be cut")
        for name in names:
            network.unplug(self._switch.pid, self._lab[name].port)
        together([self._lab[name].power_off for name in names])

    def power_on(self, names: Collection[str]) -> None:
        hosts = [self._lab[name] for name in names]
        together([host.power_on for host in hosts])
        mtu = self._shared.hardware.network.mtu
        network.wire(self._switch.pid, [host.port for host in hosts], mtu)
        together([partial(host.limit, self._switch.pid, self._limited) for host in hosts])

    def plug(self, names: Collection[str], *, on: bool) -> None:
        ports = [self._lab[name].port for name in names]
        together([partial(network.plug, self._switch.pid, port, on=on) for port in ports])

    def fail_disk(self, name: str, disk: str, *, on: bool) -> None:
        self._lab[name].fail_disk(disk, on=on)

    def power_cuts(self) -> PowerCuts:
        lab = self._shared
        if lab.model_disks is None or not lab.recorded:
            return super().power_cuts()
        return LabPowerCuts(self, lab, lab.model_disks)

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        self._limited |= set(what)
        if "disk" in what:
            root = []
            for host in self.lab_hosts:
                for disk, spec in zip(host.bundle.disks, host.spec.disks, strict=True):
                    root += self._shared.cgroups.write_back(disk.number, spec)
            self._shared.claim.put(tuple(root))
        self._limit(what, lift=False)

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        self._limited -= set(what)
        if "disk" in what:
            self._shared.claim.lift()
        self._limit(what, lift=True)

    def _limit(self, what: Collection[Limited], *, lift: bool) -> None:
        if "disk" in what and self._shared.model_disks is not None and not self._shared.recorded:
            self._shared.model_disks.pace(on=not lift)
        switch_pid = self._switch.pid
        together([partial(host.limit, switch_pid, what, lift=lift) for host in self.lab_hosts])

    def facts(self) -> Mapping[str, str]:
        lab, version = self._shared, self._shared.cgroups.version
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        runc = command(["runc", "--version"]).splitlines()[0]
        facts = {
            "hosts": "containers of this machine under runc, on one kernel and one real disk",
            "kernel": platform.release(),
            "machine": f"{os.cpu_count()} CPUs, {memory_bytes / 2**30:.1f} GiB",
            "runc": runc.removeprefix("runc version ").strip(),
            "cgroup": f"version {version}",
            "CPU quota": f"in periods of {lab.hardware.cpu_period * 1e3:g} ms, of which a CPU "
            f"takes slices of {slice_words()}",
            "mtu": str(lab.hardware.network.mtu),
        }
        for image in dict.fromkeys(host.image for host in self.lab_hosts):
            if image is not None:
                facts[f"image {image.name}"] = packages_sum(image)
                facts[f"packages of {image.name}"] = f"those of {built_on(image)}"
        facts |= {f"limits {host.name}": host.limits() for host in self.lab_hosts}
        if version == 1 and any(host.disks for host in self.lab_hosts):
            facts["write-back"] = (
                "cgroup version 1 charges write-back to the root: disks are limited there too, "
                "separately, so that direct and written-back I/O at once may reach twice the rate"
            )
        indirect, unlimited, models = [], {}, {}
        for host in self.lab_hosts:
            for path, disk, loop in zip(
                host.disks, host.spec.disks, host.bundle.disks, strict=True
            ):
                if not loop.direct:
                    indirect.append(f"{host.name}{path}")
                if disk.model is not None:
                    models[f"disk model {host.name}{path}"] = described(disk.model)
                elif disk.bandwidth is None and disk.iops is None:
                    unlimited[host.name] = path
        if indirect:
            facts["disks through the page cache"] = ", ".join(indirect)
        if unlimited:
            facts["disks without limits"] = (
                f"{', '.join(unlimited)}: they share the machine's disk with all others"
            )
        return {**facts, **models}

    def check(self) -> None:
        if self._shared.model_disks is not None:
            self._shared.model_disks.check()

    def close(self) -> None:
        if self._closed:
            return
        lab = self._shared
        for host in self.lab_hosts:
            host.free_disks()
        tear_down(lab.claim.claimed, lab.runc, lab.cgroups)
        if lab.model_disks is not None:
            lab.model_disks.close()
        self._closed = True
        lab.claim.release()
        remove_folder(lab.bundles)


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
    roots = planned_roots(hardware, images, names)
    recorded = cuts and any(roots.values())
    if recorded or any(disk.model for name in roots for disk in hardware.hosts[name].disks):
        model_disks.require()
    if os.geteuid() != 0:
        raise MissingPrerequisite("lab hosts need root", advice="run it as root, or through sudo")
    if any(character in str(folder) for character in ':,\\"'):
        raise UsageError(f"{folder}: an overlay's folder cannot have : , \\ or \" in its name")
    cgroups = Cgroups()
    if cgroups.pids(f"/{TREE}/{deployment}"):
        raise UsageError(f"{deployment}: a deployment of this label is already running")
    claim = Claim(deployment, folder, state, cgroups.handed_on())
    lab = Lab(claim, hardware, Runc(state / "runc"), cgroups, folder, tools, recorded=cuts)
    hosts = LabHosts(lab, roots)
    try:
        hosts.start(say)
    except BaseException as error:
        try:
            hosts.close()
        except TargetError as left:
            error.add_note(str(left))
        raise
    return hosts


class LabKind(HostKind):
    """Containers of this machine."""

    contained: ClassVar[bool] = True
    cuts_power: ClassVar[bool] = True

    def address(self, index: int, spec: HostSpec) -> str:
        return network.address(index)

    def build(self, asked: Sequence[HostsRequest], say: Say) -> None:
        builds: dict[tuple[Path, str], Build] = {}
        for one in asked:
            if one.image.packages:
                builds[one.images, key(one.image)] = partial(ensure, one.image, store=one.images)
            if one.tools:
                builds[one.images, key(IMAGE)] = partial(bundle.toolbox, one.images)
        built(builds.values(), say)

    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        root = ensure(asked.image, say, store=asked.images) if asked.image.packages else Path("/")
        roots = {name: root for name in asked.names if name not in asked.hardware.clients}
        toolbox = bundle.toolbox(asked.images, say) if asked.tools else None
        return lambda label, folder: start_lab(
            label,
            asked.hardware,
            roots,
            say,
            folder=folder,
            names=asked.names,
            state=asked.state,
            tools=toolbox,
            cuts=asked.cuts,
        )


LAB = LabKind()
