"""Hardware made from this machine: the largest equal set of lab hosts that it can promise.

It is a template, `lab-disks`, whose shares are scaled:

- Below 8 cores, CPU quotas are those of the template times the machine's CPUs by the template's, so
  that together they are all CPUs. From 8 cores on each host has as many whole cores of its own as
  every other (cpuset), the most that leave at least one core, the first, to the conductor and the
  kernel. Cores are physical: no two hosts share one. Only CPUs count on which this command may run.
- Memory grows with the CPUs, and is that of the template at least, unless all hosts together would
  have more than 70 % of the machine's: then each has less, in proportion.
- Disks have the template's model where the machine has FUSE, else limits. They are half or a
  quarter as large where the file system could not hold all of them when full.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, NonNegativeInt, PositiveInt

from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import cpu_numbers, show_bytes, show_cpus
from weighbridge.common.record import Record
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.requirements import CPUSET, IMAGES_BYTES
from weighbridge.topologies.on_host.machine import free_bytes

WHOLE_CORES_FROM: Final = 8
"""With five hosts this is a core each, and three for all else."""
MOST_MEMORY: Final = 0.7
"""Of the machine: the rest is for the conductor, the page cache of the disks' files, and others."""
LEAST_STORE_BYTES: Final = 1536 * 2**20
"""Of a storage host: its daemons and a little cache."""
MEMORY_STEP_BYTES: Final = 64 * 2**20
NAME: Final = re.compile(r"auto(-[0-9]+)?")
"""What hardware made from a machine is asked for by, and called: `auto-2` of one with two CPUs."""
LIMITED_IOPS: Final = 120
LIMITED_BANDWIDTH: Final = 150_000_000
"""Of disks without a model: about what a spinning disk does, without its seeks."""
TOPOLOGY: Final = Path("/sys/devices/system/cpu")


class Machine(Record):
    """What a machine has for lab hosts."""

    cores: Annotated[tuple[tuple[NonNegativeInt, ...], ...], Field(min_length=1)]
    """The CPUs of each physical core on which this command may run."""
    memory_bytes: PositiveInt
    free_bytes: NonNegativeInt
    """Of the file system of the hosts' disks."""
    no_models: str | None = None
    """Why its disks cannot have a model; None: they can."""
    cpusets: bool = True
    """Whether hosts can have CPUs of their own."""

    @property
    def cpus(self) -> int:
        return sum(map(len, self.cores))


def this_machine(home: Path) -> Machine:
    """What this machine has; `home` is for images and disks."""
    cgroups = Cgroups()
    return Machine(
        cores=cores_of(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        free_bytes=free_bytes(home),
        no_models=model_disks.lacking(),
        cpusets=cgroups.mount.is_dir() and CPUSET in cgroups.controllers(),
    )


def cores_of(cpus: set[int], topology: Path = TOPOLOGY) -> tuple[tuple[int, ...], ...]:
    """These CPUs by physical core; each is a core where the kernel does not say."""
    cores: dict[int, list[int]] = {}
    for cpu in sorted(cpus):
        try:
            text = (topology / f"cpu{cpu}/topology/thread_siblings_list").read_text()
            first = cpu_numbers(text.strip())[0]
        except (OSError, ValueError):
            first = cpu
        cores.setdefault(first, []).append(cpu)
    return tuple(map(tuple, cores.values()))


def made_for(machine: Machine, template: Hardware) -> Hardware:
    """The template's hosts at a machine's size, in words too. Raises UsageError if too small."""
    own = _own_cpus(machine, template)
    memory = _memory_factor(machine, template)
    part = _part_of_disks(machine, template)
    hosts = {
        name: HostSpec(
            cpus=None if own else round((spec.cpus or 0) * _cpu_factor(machine, template), 3),
            cpuset=own.get(name),
            memory=int((spec.memory or 0) * memory // MEMORY_STEP_BYTES) * MEMORY_STEP_BYTES,
            nic=spec.nic,
            disks=tuple(
                _disk(disk, part, modelled=machine.no_models is None) for disk in spec.disks
            ),
        )
        for name, spec in template.hosts.items()
    }
    return Hardware(
        name=f"auto-{machine.cpus}",
        about=_sentence(machine, hosts, template.clients),
        kind=template.kind,
        network=template.network,
        cpu_period=template.cpu_period,
        clients=template.clients,
        hosts=hosts,
    )


def _cpu_factor(machine: Machine, template: Hardware) -> float:
    return machine.cpus / sum(spec.cpus or 0 for spec in template.hosts.values())


def _own_cpus(machine: Machine, template: Hardware) -> dict[str, str]:
    each = (len(machine.cores) - 1) // len(template.hosts)
    if len(machine.cores) < WHOLE_CORES_FROM or not machine.cpusets or not each:
        return {}
    threads = min(map(len, machine.cores))
    last = machine.cores[-each * len(template.hosts) :]
    return {
        name: show_cpus(
            cpu for core in last[index * each : (index + 1) * each] for cpu in core[:threads]
        )
        for index, name in enumerate(template.hosts)
    }


def _memory_factor(machine: Machine, template: Hardware) -> float:
    total = sum(spec.memory or 0 for spec in template.hosts.values())
    factor = min(
        max(1.0, _cpu_factor(machine, template)), MOST_MEMORY * machine.memory_bytes / total
    )
    store = min(spec.memory or 0 for spec in template.hosts.values() if spec.disks)
    if store * factor < LEAST_STORE_BYTES:
        needed = total * LEAST_STORE_BYTES / store / MOST_MEMORY
        raise UsageError(
            f"hardware auto needs a machine with {math.ceil(needed / 2**30 * 10) / 10} GiB of "
            f"memory, for storage hosts of {show_bytes(LEAST_STORE_BYTES)}; this one has "
            f"{machine.memory_bytes / 2**30:.1f} GiB",
            advice="Use --hardware FILE with hosts that have less, or use a larger machine.",
        )
    return factor


def _part_of_disks(machine: Machine, template: Hardware) -> int:
    total = sum(disk.size or 0 for spec in template.hosts.values() for disk in spec.disks)
    for part in (1, 2, 4):
        if total // part + IMAGES_BYTES <= machine.free_bytes:
            return part
    raise UsageError(
        f"hardware auto needs {show_bytes(total // 4 + IMAGES_BYTES)} of disk for images and the "
        f"hosts' disks; {machine.free_bytes / 2**30:.1f} GiB are free",
        advice="Free some space, set WEIGHBRIDGE_HOME to a folder that has it, or give --hardware.",
    )


def _disk(disk: Disk, part: int, *, modelled: bool) -> Disk:
    size = (disk.size or 0) // part
    if modelled:
        return Disk(size=size, model=disk.model)
    return Disk(size=size, iops=LIMITED_IOPS, bandwidth=LIMITED_BANDWIDTH)


def _sentence(machine: Machine, hosts: Mapping[str, HostSpec], clients: Sequence[str]) -> str:
    groups = {
        "client": [hosts[name] for name in clients],
        "gateway": [one for name, one in hosts.items() if not one.disks and name not in clients],
        "storage host": [one for one in hosts.values() if one.disks],
    }
    counts = _listed([_counted(len(group), what) for what, group in groups.items()])
    first = [group[0] for group in groups.values()]
    if any(one.cpuset is not None for one in first):
        cpus = f"with {_counted(len(first[0].own_cpus), 'CPU')} each of their own"
    else:
        shares = _listed([f"{one.cpus:g}" for one in first])
        cpus = f"in {_counted(machine.cpus, 'CPU')} ({shares} each)"
    (disk, *_) = first[-1].disks
    disks = f"disks of {show_bytes(disk.size or 0)}"
    if disk.model is not None:
        disks, fuse = f"{disks}, {disk.model.base} in use", " and FUSE"
    else:
        disks += f" limited to {LIMITED_IOPS} IOPS and {show_bytes(LIMITED_BANDWIDTH)}/s"
        fuse = ""
    memory = f"{machine.memory_bytes / 2**30:.0f} GiB of memory"
    has = f"{_counted(len(machine.cores), 'core')}{',' if fuse else ' and'} {memory}{fuse}"
    why = f", but no disk models ({machine.no_models})" if machine.no_models is not None else ""
    return f"{counts} {cpus}, {disks}: this machine has {has}{why}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
