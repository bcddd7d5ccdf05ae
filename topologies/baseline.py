"""The baseline of a hardware file: what its hosts can do alone and together, without a gateway."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, Literal

from weighbridge.common.cleanup import CleanupStack
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.gateways.together import at_once
from weighbridge.topologies import attestation
from weighbridge.topologies.attestation import (
    DiskJob,
    HostCeiling,
    HostDisk,
    ask,
    limited,
    measured_disk,
    serve,
)
from weighbridge.topologies.deployment import StateFolders, new_label, start_hosts
from weighbridge.topologies.disk_models import described
from weighbridge.topologies.hardware import Disk, Hardware, HostsRequest
from weighbridge.topologies.hosts import Hosts

Group = Literal["cpu", "disk", "disks", "network", "fabric"]
"""`disks`: several at once; `fabric`: every host sends to and receives from others at once."""

ALONE_S: Final = 60.0
"""For all jobs of all disks one after the other, if that leaves each LEAST_PIECE_S."""
ALL_HOSTS: Final = "all hosts"


class BaselineFigure(HostCeiling):
    """One figure. Those with the same `job` and the same `like` should be equal."""

    group: Group
    job: str
    """`what` without the name of the disk, such as `random read of 64 kB`."""
    like: str = ""
    """The limits in the hardware file, such as `20 GiB, 200 MB/s`."""


def refuse(hardware: Hardware) -> None:
    """Raise UsageError where hosts cannot be measured alone."""
    if not hardware.of.measurable:
        raise UsageError(
            f"the hosts of {hardware.name!r} {hardware.of.refuses}",
            advice="Choose hardware of kind lab or ssh.",
        )


@contextmanager
def bare(hardware: Hardware, place: StateFolders, say: Say) -> Iterator[Hosts]:
    """All hosts with the measuring tools alone, in the block. Raises UsageError, as `prepared`."""
    refuse(hardware)
    # No gateway is installed: hosts have this machine's own root, or are real.
    bare_image = RootImage(name="bare", suite="", packages=())
    names = list(hardware.hosts)
    asked = HostsRequest(
        hardware, names, bare_image, images=place.images, state=place.state, tools=True
    )
    prepared = hardware.of.prepared(asked, say)
    endings = CleanupStack()
    try:
        yield start_hosts(prepared, place.deployments / new_label("baseline"), endings)
    finally:
        try:
            endings.close()
        finally:
            endings.close()


def measure(
    hosts: Hosts, hardware: Hardware, sizes: Sequence[int], say: Say
) -> tuple[BaselineFigure, ...]:
    """Measure hosts; limits are then off, disks empty. Raises CommandFailed, TargetError."""
    found: list[BaselineFigure] = []
    say("CPUs")
    for one in attestation.cpus(hosts, hardware):
        cpus = hardware.hosts[one.host].most_cpus
        like = "all CPUs" if cpus is None else f"{cpus:g} CPUs"
        found.append(BaselineFigure(**dict(one), group="cpu", job=one.what, like=like))
    disks = attestation.all_disks(hosts, hardware)
    if disks:
        jobs = attestation.pieces(sizes)
        with attestation.filled(disks), limited(hosts, "disk"):
            found += _disks_alone(disks, jobs, say)
            found += _disks_together(disks, jobs, say)
    if len(hosts.hosts) > 1:
        say("the network, pair by pair")
        pairs = list(itertools.combinations(hosts.hosts, 2))
        for one in attestation.network(hosts, hardware, pairs):
            like = _nic_limit(one.promised)
            found.append(BaselineFigure(**dict(one), group="network", job="network", like=like))
        say("the network, all hosts at once")
        found += _fabric(hosts, hardware)
    return tuple(found)


def _disks_alone(
    disks: Sequence[HostDisk], jobs: Sequence[DiskJob], say: Say
) -> Iterator[BaselineFigure]:
    seconds = attestation.piece_s(len(disks) * len(jobs), ALONE_S, attestation.DISK_S)
    for one in disks:
        host, path, disk = one
        say(f"disk {path.rpartition('/')[2]} of {host.name}")
        for job, figure in zip(jobs, measured_disk(one, jobs, seconds), strict=True):
            yield BaselineFigure(
                **dict(figure), group="disk", job=job.name, like=_disk_limits(disk)
            )


def _disks_together(
    disks: Sequence[HostDisk], jobs: Sequence[DiskJob], say: Say
) -> Iterator[BaselineFigure]:
    groups: dict[str, list[HostDisk]] = {}
    for one in disks:
        groups.setdefault(one[0].name, []).append(one)
    if len(groups) > 1:
        groups[ALL_HOSTS] = list(disks)
    for name, own in groups.items():
        if len(own) == 1:
            continue
        say(f"{len(own)} disks of {name} at once")
        seconds = attestation.piece_s(len(jobs))
        figures = at_once([partial(measured_disk, one, jobs, seconds) for one in own])
        for job, same in zip(jobs, zip(*figures, strict=True), strict=True):
            promises = [one.promised for one in same if one.promised is not None]
            total = same[0].model_copy(
                update={
                    "host": name,
                    "what": f"{len(own)} disks at once {job.name}",
                    "value": sum(one.value for one in same),
                    "promised": sum(promises) if len(promises) == len(same) else None,
                }
            )
            yield BaselineFigure(**dict(total), group="disks", job=job.name)


def _disk_limits(disk: Disk) -> str:
    words = [show_bytes(disk.size)] if disk.size is not None else []
    words += [] if disk.bandwidth is None else [f"{show_bytes(disk.bandwidth)}/s"]
    words += [] if disk.iops is None else [f"{disk.iops} requests/s"]
    words += [] if disk.model is None else [described(disk.model)]
    return ", ".join(words)


def _nic_limit(bit_per_s: float | None) -> str:
    return "no limit" if bit_per_s is None else f"{bit_per_s / 1e9:g} Gbit/s"


def _fabric(hosts: Hosts, hardware: Hardware) -> Iterator[BaselineFigure]:
    names = list(hosts.hosts)
    peers = min(len(names) - 1, attestation.FABRIC_PEERS)
    flows = [
        (names[here], names[(here + step) % len(names)], step)
        for here in range(len(names))
        for step in range(1, peers + 1)
    ]

    def send(sender: str, receiver: str, step: int) -> float:
        port = attestation.IPERF_PORT + step
        arguments = attestation.fabric_arguments(hosts.hosts[receiver].address, port)
        return ask(hosts.hosts[sender], "iperf3", arguments, attestation.bits_per_s)

    with ExitStack() as stack, limited(hosts, "nic"):
        for _, receiver, step in flows:
            # A server for each flow: iperf3 serves one client at a time.
            serve(hosts.hosts[receiver], stack, attestation.IPERF_PORT + step)
        values = at_once([partial(send, *flow) for flow in flows])
    for name in names:
        nic = hardware.hosts[name].nic
        for word, end in (("sent", 0), ("received", 1)):
            rates = [rate for flow, rate in zip(flows, values, strict=True) if flow[end] == name]
            yield BaselineFigure(
                host=name,
                kind="network",
                what=f"{word} while all hosts send to {peers}",
                value=sum(rates),
                unit="bit/s",
                promised=None if nic is None else nic.rate,
                group="fabric",
                job=word,
                like=_nic_limit(None if nic is None else nic.rate),
            )
