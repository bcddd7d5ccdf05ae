"""Attestation: what a deployment's hosts can do, measured on each deployment in the same way,
before its gateway is there.

The limits of the hardware are on while what they limit is measured, and only those: iperf3 under a
quota of CPU time would tell of the quota. On pretended hosts, which have no limits, nothing is
measured.

The layers `disk` and `network` of a suite are measured here too: disks at the sizes of its objects,
all pairs of hosts.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, TypeVar

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import HostNeed, RootImage, Say
from weighbridge.topologies import ceilings
from weighbridge.topologies.ceilings import DiskRequest, HostCeiling
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.hosts import Hosts, Limited

IMAGE: Final = RootImage(
    name="tools",
    suite="bookworm",
    packages=("fio", "iperf3", "sysbench"),
    # Unpacked and not installed: they run by their own loader in other roots, nothing else of this
    # one is used.
    options=("--variant=extract",),
)
"""The tools. One image for hosts of all kinds: releases of Debian have other releases of them, and
other compilers.
"""
VERSIONS: Final = (("fio", "--version"), ("iperf3", "--version"), ("sysbench", "--version"))
LONGEST_S: Final = 60.0
"""For one tool on one host; each is told to take two seconds at most."""
PIECES_LONGEST_S: Final = LONGEST_S + 20 * ceilings.PIECES_S
"""The same for disks at the sizes of a suite: however many there are, it is some minutes."""

Result = TypeVar("Result")
HostDisk = tuple[Host, str, Disk]
"""A disk: its host, its path there, its limits."""


class Attestation(Record):
    """What hosts can do, as it was measured.

    `tools` are the versions by name, `took_s` how long all of it took.
    """

    ceilings: tuple[HostCeiling, ...]
    tools: dict[str, str]
    took_s: float


class AttestOptions(Record):
    """What is asked of hosts; without anything they are not attested."""

    sameness: bool = False
    """The figures by which deployments are compared:

    CPU, disks, and who talks to whom while a gateway is weighed.
    """
    sizes: tuple[int, ...] = ()
    """The layer `disk`: every disk, for objects of these sizes in bytes, sequential and random,
    read and written.
    """
    all_pairs: bool = False
    """The layer `network`: every pair of hosts, both ways."""

    def __bool__(self) -> bool:
        """Whether anything is."""
        return self.sameness or bool(self.sizes) or self.all_pairs


def attest(
    hosts: Hosts,
    hardware: Hardware,
    needs: Mapping[str, HostNeed],
    say: Say,
    asked: AttestOptions | None = None,
) -> Attestation:
    """Measure hosts that run nothing yet. Their limits are off, and their disks as empty as before,
    when this returns.

    CPUs without their quota, and pairs of hosts on the network, one after the other: each wants
    more of the machine than its share. CPUs under their quota, and disks under their limits, all at
    once: that is what a gateway and its storage have of them, and where the machine cannot keep
    what the hardware file promises it shows here. Lab hosts have the same CPUs when nothing limits
    them: one of them is asked. Real hosts have each their own, and are asked at once.

    Without `asked` it is what deployments are compared by. Raises CommandFailed or TargetError
    naming host and tool.
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
    found = [
        *(cpus(hosts, hardware) if asked.sameness else ()),
        *_disks(hosts, hardware, ceilings.pieces(asked.sizes), sameness=asked.sameness),
        *network(hosts, hardware, pairs),
    ]
    took_s = time.monotonic() - started
    say(f"hosts attested, {len(found)} figures in {took_s:.1f} s")
    return Attestation(ceilings=tuple(found), tools=tools, took_s=took_s)


def tools_of(hosts: Hosts, hardware: Hardware) -> dict[str, str]:
    """Versions of the tools by name. Raises CommandFailed."""
    host = hosts.hosts[hardware.clients[0]]
    told = at_once([partial(_version, host, name, option) for name, option in VERSIONS])
    return {name: version for (name, _), version in zip(VERSIONS, told, strict=True)}


def _version(host: Host, name: str, option: str) -> str:
    return host.run([*host.tool(name), option]).stdout.splitlines()[0].split(" (")[0]


@contextmanager
def limited(hosts: Hosts, what: Limited) -> Iterator[None]:
    """Hosts under one kind of their limits."""
    hosts.limit({what})
    try:
        yield
    finally:
        hosts.unlimit({what})


def ask(
    host: Host,
    tool: str,
    arguments: Sequence[str],
    read: Callable[[str], Result],
    *,
    times: int = 1,
    timeout_s: float = LONGEST_S,
) -> Result:
    """What a tool says on a host, asked so many times by one command.

    Raises CommandFailed, or TargetError naming the host when its words are not understood.
    """
    argv = [*host.tool(tool), *arguments]
    if times > 1:
        argv = ["sh", "-ec", f'for _ in $(seq {times}); do "$@"; done', tool, *argv]
    told = host.run(argv, timeout_s=timeout_s).stdout
    try:
        return read(told)
    except TargetError as error:
        raise TargetError(f"{host.name}: {error.message}") from error


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """All at the same time, however many; raises the first error when all have ended."""
    if not calls:
        return []
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]


# CPU
# -------------------------------------------------------------------------------------------------------------------------


def cpus(hosts: Hosts, hardware: Hardware) -> Iterator[HostCeiling]:
    """What every host's CPUs do, without their quota one after the other, and under it all at
    once.
    """
    # Of lab hosts with as many threads the first is asked for all: they are one machine.
    shares = hardware.of.contained
    asked: dict[object, str] = {}
    for name in hosts.hosts:
        asked.setdefault(_threads(hardware, name) if shares else name, name)

    def without_quota(name: str) -> float:
        return _events_per_s(hosts.hosts[name], ceilings.cpu_arguments(_threads(hardware, name)))

    calls = [partial(without_quota, name) for name in asked.values()]
    of = dict(zip(asked, [call() for call in calls] if shares else at_once(calls), strict=True))
    for key, name in asked.items():
        yield HostCeiling(
            host=name, kind="cpu", what="CPU without its quota", value=of[key], unit="events/s"
        )

    def under_quota(name: str, cpus: float) -> HostCeiling:
        threads = _threads(hardware, name)
        free = of[threads if shares else name]
        arguments = ceilings.cpu_arguments(
            threads, events=ceilings.quota_events(free, cpus, threads)
        )
        value = _events_per_s(hosts.hosts[name], arguments)
        # By what as many threads do without a quota: two threads of one core are no two cores, and
        # a quota counts threads.
        return HostCeiling(
            host=name,
            kind="cpu",
            what="CPU",
            value=value,
            unit="events/s",
            promised=free * cpus / threads,
        )

    under = [
        (name, cpus) for name in hosts.hosts if (cpus := hardware.hosts[name].cpus) is not None
    ]
    with limited(hosts, "cpu"):
        yield from at_once([partial(under_quota, *one) for one in under])


def _events_per_s(host: Host, arguments: Sequence[str]) -> float:
    """The median of several probes, which one command makes."""
    return ask(host, "sysbench", arguments, ceilings.events_per_s, times=ceilings.CPU_PROBES)


def _threads(hardware: Hardware, name: str) -> int:
    return math.ceil(hardware.hosts[name].cpus or 1)


# disks
# -----------------------------------------------------------------------------------------------------------------------


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
        figures = ask(
            host,
            "fio",
            ceilings.disk_arguments(path, jobs),
            partial(ceilings.disk_figures, asked=jobs),
        )
        name = path.rpartition("/")[2]
        return [
            HostCeiling(
                host=host.name,
                kind="disk",
                what=f"disk {name} {job}",
                value=value,
                unit=unit,
                promised=_promised(disk, unit),
            )
            for job, (value, unit) in figures.items()
        ]

    disks = all_disks(hosts, hardware)
    measured: list[list[HostCeiling]] = []
    with filled(disks), limited(hosts, "disk"):
        if sameness:
            measured += at_once([partial(measure, *one) for one in disks])
        if pieces:
            measured += at_once([partial(in_pieces, one, pieces) for one in disks])
    yield from itertools.chain.from_iterable(measured)


def disk_jobs(hardware: Hardware, disk: Disk) -> tuple[str, ...]:
    """What a disk is asked for sameness.

    How many small requests a lab's disk does, where nothing limits them, is the machine's CPU,
    which is asked already.
    """
    random = not hardware.of.contained or disk.iops is not None
    return tuple(
        name for name, (rw, _) in ceilings.DISK_JOBS.items() if random or not rw.startswith("rand")
    )


@contextmanager
def filled(disks: Sequence[HostDisk]) -> Iterator[None]:
    """Disks whose regions were written once; at the end they are as empty as before."""
    try:
        # Without limits: it is not what is measured, and at 20 MB/s it would take a quarter of a
        # minute.
        at_once([partial(_fill, host, path) for host, path, _ in disks])
        yield
    finally:
        # A loop disk hands this on to the file below it, which gives its room back. Nothing of it
        # is in the page cache: all reading and writing was direct.
        at_once([partial(host.run, ["blkdiscard", path]) for host, path, _ in disks])


def _fill(host: Host, path: str) -> None:
    host.run([*host.tool("fio"), *ceilings.fill_arguments(path)], timeout_s=LONGEST_S)


def in_pieces(
    one: HostDisk, pieces: Sequence[DiskRequest], *, seconds: float | None = None
) -> list[HostCeiling]:
    """What a disk does for objects of the sizes of `pieces`, in their order; `seconds` for each, or
    as `ceilings.piece_s` says.
    """
    host, path, disk = one
    arguments = ceilings.piece_arguments(path, pieces, seconds=seconds)
    values = ask(
        host,
        "fio",
        arguments,
        partial(ceilings.piece_figures, asked=pieces),
        timeout_s=PIECES_LONGEST_S,
    )
    name = path.rpartition("/")[2]
    return [
        HostCeiling(
            host=host.name,
            kind="disk",
            what=f"disk {name} {piece.name}",
            value=value,
            unit="B/s",
            promised=_promised_of(disk, piece),
            operation=piece.operation,
            pick=piece.pick,
            request_bytes=piece.request_bytes,
        )
        for piece, value in zip(pieces, values, strict=True)
    ]


def _promised(disk: Disk, unit: ceilings.Unit) -> float | None:
    """A limit of one kind says nothing of the other: requests a second may be fewer than a
    bandwidth would let through.
    """
    if unit == "1/s":
        return disk.iops
    return disk.bandwidth if disk.iops is None else None


def _promised_of(disk: Disk, piece: DiskRequest) -> float | None:
    """What the limits let through of objects; nothing is promised of requests so small that their
    number is the CPU's to decide.
    """
    share = piece.request_bytes / piece.block_bytes
    limits = [float(disk.iops * piece.request_bytes)] if disk.iops is not None else []
    if disk.bandwidth is not None:
        limits.append(disk.bandwidth * share)
    decided = disk.iops is not None or (
        piece.pick == "sequential" and piece.block_bytes >= ceilings.UNHURRIED_BYTES
    )
    return min(limits, default=None) if decided else None


# network
# ---------------------------------------------------------------------------------------------------------------------


def network(
    hosts: Hosts, hardware: Hardware, pairs: Sequence[tuple[str, str]]
) -> Iterator[HostCeiling]:
    """What passes between the hosts of each pair, one direction after the other."""
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
                for _ in range(ceilings.NETWORK_TRIES if rate is not None else 1):
                    value = max(
                        value, ask(hosts.hosts[here], "iperf3", arguments, ceilings.bits_per_s)
                    )
                    if rate is None or value >= ceilings.NETWORK_REACHED * rate:
                        break
                what = f"network {'to' if reverse else 'from'} {here}"
                sender, receiver = (there, here) if reverse else (here, there)
                yield HostCeiling(
                    host=there,
                    kind="network",
                    what=what,
                    value=value,
                    unit="bit/s",
                    promised=rate,
                    sender=sender,
                    receiver=receiver,
                )


def slower_nic(hardware: Hardware, here: str, there: str) -> int | None:
    """What may pass between two hosts, in bits a second: the rate of the slower NIC; None where
    neither is limited.
    """
    rates = [nic for name in (here, there) if (nic := hardware.hosts[name].nic) is not None]
    return min(rates, default=None)


def _pairs(
    names: Sequence[str], clients: Sequence[str], needs: Mapping[str, HostNeed]
) -> list[tuple[str, str]]:
    """Who talks to whom while a gateway is weighed: clients with all other hosts, and what answers
    them with what keeps data.
    """
    pairs = [(client, name) for client in clients for name in names if name not in clients]
    tiers = {name: needs[name].tier for name in names if name in needs}
    storage = [name for name, tier in tiers.items() if tier == "storage"]
    return pairs + [
        (name, store) for name, tier in tiers.items() if tier == "gateway" for store in storage
    ]


def serve(host: Host, stack: ExitStack, port: int = ceilings.IPERF_PORT) -> None:
    """Have iperf3 listen on a host until the stack is left; one serves one client at a time.

    Raises CommandFailed.
    """
    log = host.log("attest-iperf3.out")
    argv = (
        *host.tool("iperf3"),
        "--server",
        "--forceflush",
        "--bind",
        host.address,
        "--port",
        str(port),
    )
    server = stack.enter_context(host.spawn(argv, stderr=log))
    stack.callback(server.kill)
    if server.stdout is None:
        raise ValueError("the program was started without a pipe")
    for line in server.stdout:
        if b"listening" in line:
            return
    raise CommandFailed(host.name, argv, server.wait(10), "\n".join(host.tail("attest-iperf3.out")))
