"""Attestation: measure what a deployment's hosts can do, in the same way for every deployment,
before its gateway starts.

Only the limits of what is being measured are on: under a quota of CPU time iperf3 would measure the
quota. Fake hosts have no limits and are not measured.

The layers `disk` and `network` of a suite are measured here too: disks at the sizes of the suite's
objects, and all pairs of hosts.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import HostNeed, RootImage, Say
from weighbridge.gateways.together import at_once
from weighbridge.topologies import ceilings
from weighbridge.topologies.ceilings import (
    TIMEOUT_S,
    DiskRequest,
    HostCeiling,
    ask,
    limited,
    serve,
)
from weighbridge.topologies.disk_models import DiskLoad, expected_per_s
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.hosts import Hosts

TOOLS: Final = ("fio", "iperf3", "sysbench")
STUDY_TOOLS: Final = ("bonnie++", "rbd-fuse")
"""Those of studies, which attestation does not use."""
IMAGE: Final = RootImage(
    name="tools",
    suite="bookworm",
    packages=(*TOOLS, *STUDY_TOOLS),
    # Unpacked, not installed: the tools run in other roots with this image's own loader.
    options=("--variant=extract",),
)
"""The tools. One image for all hosts: each Debian release has other versions and compilers."""
PIECES_TIMEOUT_S: Final = TIMEOUT_S + 20 * ceilings.PIECES_S
"""For disks at the sizes of a suite: a few minutes, whatever the number of sizes."""

Apart = Callable[[Sequence[HostCeiling]], bool]
"""Whether these figures seem to be of other hosts than those of other deployments."""

HostDisk = tuple[Host, str, Disk]
"""A disk: its host, its path on that host, its limits."""


class Attestation(Record):
    """What was measured. `tools` has versions by name; `took_s` is the time it all took."""

    ceilings: tuple[HostCeiling, ...]
    tools: dict[str, str]
    took_s: float


class AttestOptions(Record):
    """What to measure; an empty request leaves hosts unattested."""

    sameness: bool = False
    """Figures to compare deployments by: CPU, disks, and links that a gateway's benchmark uses."""
    sizes: tuple[int, ...] = ()
    """The layer `disk`: sequential and random reads and writes of objects of these sizes, in bytes.
    """
    all_pairs: bool = False
    """The layer `network`: every pair of hosts, both ways."""

    def __bool__(self) -> bool:
        return self.sameness or bool(self.sizes) or self.all_pairs


def attest(
    hosts: Hosts,
    hardware: Hardware,
    needs: Mapping[str, HostNeed],
    say: Say,
    asked: AttestOptions | None = None,
    apart: Apart = lambda _: False,
) -> Attestation:
    """Measure hosts that run nothing yet, by default (`asked` is None) for comparing deployments.

    CPUs without their quota and pairs of hosts on the network are measured one after the other,
    since each needs more of the machine than its share. CPUs under their quota and disks under
    their limits are measured all at once, as a gateway and its storage will use them: this shows
    where the machine cannot keep what the hardware file promises. Lab hosts share one machine's
    CPUs, so one host is measured without its quota for all; real hosts are measured each, at once.
    Disks and networks that do less than is promised are measured again, `ceilings.TRIES` times.
    CPUs, of which hosts may promise more than the machine has, are measured before and after disks
    and networks, and once more if the hosts are `apart` from those of other deployments; the best
    counts, since programs of a few seconds disturb one of them.

    Afterwards limits are off and disks empty again. Raises CommandFailed or TargetError naming host
    and tool.
    """
    asked = asked or AttestOptions(sameness=True)
    started = time.monotonic()
    say("attesting the hosts")
    tools = tools_of(hosts, hardware)
    names = tuple(hosts.hosts)
    pairs = _pairs(names, hardware.clients, needs) if asked.sameness else []
    if asked.all_pairs:
        pairs += [
            (here, there)
            for here, there in itertools.combinations(names, 2)
            if not {(here, there), (there, here)} & {*pairs}
        ]
    found = list(cpus(hosts, hardware)) if asked.sameness else []
    found += _disks(hosts, hardware, ceilings.pieces(asked.sizes), sameness=asked.sameness)
    found += network(hosts, hardware, pairs)
    if asked.sameness:
        found = _better(found, cpus(hosts, hardware))
        if apart(found):
            say("the hosts seem to differ from those of other layouts: measuring their CPUs again")
            found = _better(found, cpus(hosts, hardware))
    took_s = time.monotonic() - started
    say(f"hosts attested, {len(found)} figures in {took_s:.1f} s")
    return Attestation(ceilings=tuple(found), tools=tools, took_s=took_s)


def tools_of(hosts: Hosts, hardware: Hardware) -> dict[str, str]:
    """Versions of the tools by name. Raises CommandFailed."""
    host = hosts.hosts[hardware.clients[0]]

    def version(tool: str) -> str:
        return host.run([*host.tool(tool), "--version"]).stdout.splitlines()[0].split(" (")[0]

    return dict(zip(TOOLS, at_once([partial(version, tool) for tool in TOOLS]), strict=True))


def cpus(hosts: Hosts, hardware: Hardware) -> Iterator[HostCeiling]:
    """Every host's CPUs: without their quota one after the other, under their quota all at once."""
    # Lab hosts are one machine: those with the same number of threads share one measurement, but
    # CPUs of a host's own may be halves of cores.
    shared = hardware.of.contained
    measured: dict[object, str] = {}
    keys: dict[str, object] = {
        name: (_threads(hardware, name), hardware.hosts[name].cpuset is None) if shared else name
        for name in hosts.hosts
    }
    for name, key in keys.items():
        measured.setdefault(key, name)

    calls = []
    for name in measured.values():
        arguments = ceilings.cpu_arguments(_threads(hardware, name))
        calls.append(partial(_events_per_s, hosts.hosts[name], arguments))
    values = [call() for call in calls] if shared else at_once(calls)
    free_per_s = dict(zip(measured, values, strict=True))
    for key, name in measured.items():
        yield HostCeiling(
            host=name,
            kind="cpu",
            what="CPU without its quota",
            value=free_per_s[key],
            unit="events/s",
        )

    def under_quota(name: str, cpus: float) -> HostCeiling:
        threads = _threads(hardware, name)
        free = free_per_s[keys[name]]
        arguments = ceilings.cpu_arguments(
            threads, events=ceilings.quota_events(free, cpus, threads)
        )
        value = _events_per_s(hosts.hosts[name], arguments)
        # Promised is a share of what as many threads do without a quota: a quota counts threads,
        # and two threads of one core do less than two cores.
        return HostCeiling(
            host=name,
            kind="cpu",
            what="CPU",
            value=value,
            unit="events/s",
            promised=free * cpus / threads,
        )

    limits = [
        (name, cpus) for name in hosts.hosts if (cpus := hardware.hosts[name].most_cpus) is not None
    ]
    with limited(hosts, "cpu"):
        yield from at_once([partial(under_quota, *one) for one in limits])


def _events_per_s(host: Host, arguments: Sequence[str]) -> float:
    return ask(host, "sysbench", arguments, ceilings.events_per_s, times=ceilings.CPU_PROBES)


def _threads(hardware: Hardware, name: str) -> int:
    return math.ceil(hardware.hosts[name].most_cpus or 1)


def all_disks(hosts: Hosts, hardware: Hardware) -> list[HostDisk]:
    """Every disk of every host, with its limits."""
    return [
        (host, path, disk)
        for name, host in hosts.hosts.items()
        for path, disk in zip(host.disks, hardware.hosts[name].disks, strict=True)
    ]


def _disks(
    hosts: Hosts, hardware: Hardware, pieces: Sequence[DiskRequest], *, sameness: bool
) -> Iterator[HostCeiling]:
    if not sameness and not pieces:
        return

    def measure(host: Host, path: str, disk: Disk) -> list[HostCeiling]:
        jobs = disk_jobs(hardware, disk)
        read = partial(ceilings.disk_figures, asked=jobs)
        seconds = ceilings.DISK_S if disk.model is None else ceilings.MODEL_DISK_S
        arguments = ceilings.disk_arguments(path, jobs, seconds=seconds)
        return [
            HostCeiling(
                host=host.name,
                kind="disk",
                what=f"disk {Path(path).name} {job}",
                value=value,
                unit=unit,
                promised=_promised(disk, job, unit),
            )
            for job, (value, unit) in ask(host, "fio", arguments, read).items()
        ]

    disks = all_disks(hosts, hardware)
    with filled(disks), limited(hosts, "disk"):
        if sameness:
            yield from _best([partial(measure, *one) for one in disks])
        if pieces:
            found = at_once([partial(in_pieces, one, pieces) for one in disks])
            yield from itertools.chain.from_iterable(found)


def _best(calls: Sequence[Callable[[], list[HostCeiling]]]) -> list[HostCeiling]:
    best: list[HostCeiling] = []
    for _ in range(ceilings.TRIES):
        best = _better(best, itertools.chain.from_iterable(at_once(calls)))
        if all(one.value >= ceilings.REACHED * (one.promised or 0) for one in best):
            break
    return best


def _better(known: Iterable[HostCeiling], again: Iterable[HostCeiling]) -> list[HostCeiling]:
    best = {(one.host, one.what): one for one in known}
    for one in again:
        if one.value > best.setdefault((one.host, one.what), one).value:
            best[one.host, one.what] = one
    return list(best.values())


def disk_jobs(hardware: Hardware, disk: Disk) -> tuple[str, ...]:
    """The jobs by which a disk is compared between deployments.

    Small requests to a disk of the lab that neither a limit nor its model slows down are left out:
    CPU, which is measured already, decides how many there are.
    """

    def slowed(name: str) -> bool:
        return disk.iops is not None or _promised(disk, name, "1/s") is not None

    return tuple(
        name
        for name, (rw, _) in ceilings.DISK_JOBS.items()
        if not hardware.of.contained or not rw.startswith("rand") or slowed(name)
    )


@contextmanager
def filled(disks: Sequence[HostDisk]) -> Iterator[None]:
    """Write the tested region of each disk once, and discard everything at the end."""
    fill = ceilings.fill_arguments
    try:
        # Without limits: at 20 MB/s this would take a quarter of a minute.
        at_once([partial(ask, host, "fio", fill(path), str) for host, path, _ in disks])
        yield
    finally:
        # A loop disk passes this on to the file below it, which then frees its space. The page
        # cache holds nothing of it: all reads and writes were direct.
        at_once([partial(host.run, ["blkdiscard", path]) for host, path, _ in disks])


def in_pieces(
    one: HostDisk, pieces: Sequence[DiskRequest], *, seconds: float | None = None
) -> list[HostCeiling]:
    """Measure a disk for `pieces` in turn, each `seconds` long (None: `ceilings.piece_s`)."""
    host, path, disk = one
    values = ask(
        host,
        "fio",
        ceilings.piece_arguments(path, pieces, seconds=seconds),
        partial(ceilings.piece_figures, asked=pieces),
        timeout_s=PIECES_TIMEOUT_S,
    )
    return [
        HostCeiling(
            host=host.name,
            kind="disk",
            what=f"disk {Path(path).name} {piece.name}",
            value=value,
            unit="B/s",
            promised=_promised_of(disk, piece),
            operation=piece.operation,
            pick=piece.pick,
            request_bytes=piece.request_bytes,
        )
        for piece, value in zip(pieces, values, strict=True)
    ]


def _promised(disk: Disk, job: str, unit: ceilings.Unit) -> float | None:
    """A limit of one kind promises nothing of the other: either may be reached first."""
    if disk.model is not None:
        rw, request_bytes = ceilings.DISK_JOBS[job]
        per_s = _by_model(disk, rw, request_bytes, ceilings.DEPTH)
        return per_s if per_s is None or unit == "1/s" else per_s * request_bytes
    if unit == "1/s":
        return disk.iops
    return disk.bandwidth if disk.iops is None else None


def _by_model(disk: Disk, rw: str, request_bytes: int, depth: int) -> float | None:
    """Requests a second that the model of a disk sustains in the region that fio works on."""
    if disk.model is None or disk.size is None:
        return None
    load = DiskLoad(
        write=rw.endswith("write"),
        random=rw.startswith("rand"),
        bytes=request_bytes,
        depth=depth,
        span=ceilings.REGION_BYTES,
    )
    return expected_per_s(disk.model, disk.size, load)


def _promised_of(disk: Disk, piece: DiskRequest) -> float | None:
    """Bytes of objects a second that the limits or the model allow; None where requests are so
    small that the CPU decides how many there are.
    """
    if disk.model is not None:
        depth = ceilings.depth_of(piece)
        per_s = _by_model(disk, piece.rw, piece.block_bytes, depth)
        return None if per_s is None else per_s * piece.request_bytes
    share = piece.request_bytes / piece.block_bytes
    limits = [float(disk.iops * piece.request_bytes)] if disk.iops is not None else []
    if disk.bandwidth is not None:
        limits.append(disk.bandwidth * share)
    decided = disk.iops is not None or (
        piece.pick == "sequential" and piece.block_bytes >= ceilings.LEAST_BANDWIDTH_BLOCK_BYTES
    )
    return min(limits, default=None) if decided else None


def network(
    hosts: Hosts, hardware: Hardware, pairs: Sequence[tuple[str, str]]
) -> Iterator[HostCeiling]:
    """The throughput between the hosts of each pair, one direction after the other."""
    if not pairs:
        return
    seconds = max(
        ceilings.LEAST_PAIR_S, min(ceilings.NETWORK_S, ceilings.ALL_PAIRS_S / len(pairs) / 2)
    )
    with ExitStack() as stack, limited(hosts, "nic"):
        for name in dict.fromkeys(there for _, there in pairs):
            serve(hosts.hosts[name], stack)
        for here, there in pairs:
            rate = slower_nic(hardware, here, there)
            for reverse in (False, True):
                arguments = ceilings.network_arguments(
                    hosts.hosts[there].address, rate, reverse=reverse, seconds=seconds
                )
                value = 0.0
                for _ in range(ceilings.TRIES if rate is not None else 1):
                    got = ask(hosts.hosts[here], "iperf3", arguments, ceilings.bits_per_s)
                    value = max(value, got)
                    if rate is None or value >= ceilings.REACHED * rate:
                        break
                sender, receiver = (there, here) if reverse else (here, there)
                yield HostCeiling(
                    host=there,
                    kind="network",
                    what=f"network {'to' if reverse else 'from'} {here}",
                    value=value,
                    unit="bit/s",
                    promised=rate,
                    sender=sender,
                    receiver=receiver,
                )


def slower_nic(hardware: Hardware, here: str, there: str) -> int | None:
    """The rate of the slower of two hosts' NICs, in bits a second; None: neither is limited."""
    nics = [nic for name in (here, there) if (nic := hardware.hosts[name].nic) is not None]
    return min((nic.rate for nic in nics if nic.rate is not None), default=None)


def _pairs(
    names: Sequence[str], clients: Sequence[str], needs: Mapping[str, HostNeed]
) -> list[tuple[str, str]]:
    pairs = [(client, name) for client in clients for name in names if name not in clients]
    tiers = {name: needs[name].tier for name in names if name in needs}
    storage = [name for name, tier in tiers.items() if tier == "storage"]
    return pairs + [
        (name, store) for name, tier in tiers.items() if tier == "gateway" for store in storage
    ]
