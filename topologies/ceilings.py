"""Ceilings: what a CPU, a disk and a network can do, by sysbench, fio and iperf3: how each is
asked, and what it answers.

sysbench 1.0.20, fio 3.33 and iperf3 3.12 are what is understood; each answer is checked for what is
read from it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PositiveInt

from weighbridge.common.errors import TargetError
from weighbridge.common.printed import json_object, printable
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record

Kind = Literal["cpu", "disk", "network", "osd"]
Unit = Literal["events/s", "B/s", "1/s", "bit/s"]
Operation = Literal["read", "write"]
Pick = Literal["sequential", "random"]

REGION_BYTES: Final = 128 * 2**20
"""How much of a disk fio works on: reads find data that was written, and no more of this machine's
disk is taken.

No disk of a hardware file is smaller."""
DISK_S: Final = 0.5
"""A throttle of Linux works in slices of 0.1 s; the first one's slack is in all deployments the
same.
"""
PIECE_S: Final = 0.7
"""The same of jobs at the sizes of a suite: after seven slices that slack is a few percent."""
SEQUENTIAL_BYTES: Final = 2**20
RANDOM_BYTES: Final = 4096
DEPTH: Final = 16
"""Requests in hand: what a small Ceph OSD or a few Swift workers have."""
IN_HAND_BYTES: Final = 32 * 2**20
"""Large requests are fewer in hand, so that they fit into the memory of a small host: 8 of 4 MiB.
"""
BLOCK_BYTES: Final = 4096
"""What BlueStore and XFS give away of a disk at least: an object takes whole blocks, and so does a
request for it.
"""
LARGEST_BYTES: Final = 4 * 2**20
"""Both stores hand larger objects to their disks in pieces:

RGW in stripes of this size, Swift's object server in less.
"""
PIECES_S: Final = 30.0
"""For all jobs at the sizes of a suite together, so far as each has at least `LEAST_PIECE_S`."""
LEAST_PIECE_S: Final = 0.3
UNHURRIED_BYTES: Final = 64 * 2**10
"""Of requests below it, how many a host's CPU can make decides, not a limit of bandwidth."""

PRIMES_EVENTS: Final = 100
"""An event is all primes up to 10,000, sysbench's own default; about 1.5 ms of a CPU of 2020."""
CPU_PROBES: Final = 5
"""So often a CPU is asked.

The median counts: what another program takes in between spoils one or two of them, not the figure.
"""
QUOTA_S: Final = 0.2
"""For one of them under a quota: 20 of its periods.

Together a second, in which all hosts are at work.
"""

NETWORK_S: Final = 0.12
NETWORK_TRIES: Final = 3
"""A pair that falls short of its limit is asked so often at most, and its best counts: others on
the machine only take away.
"""
NETWORK_REACHED: Final = 0.9
"""Of the limit: what reaches so much of it is not asked again.

Headers, which iperf3 does not count, are 5 %.
"""
ALL_PAIRS_S: Final = 60.0
"""For all pairs of hosts together, so far as each direction of each has at least `LEAST_PAIR_S`."""
LEAST_PAIR_S: Final = 0.1
FREE_BIT_PER_S: Final = 10**10
"""What an unlimited NIC is given to carry for `NETWORK_S`."""
IPERF_PORT: Final = 5201
"""Its own default."""
FABRIC_S: Final = 2
"""All hosts send at once for so long; iperf3 takes whole seconds."""
FABRIC_PEERS: Final = 8
"""To so many others at most: with more hosts programs, not the network, would be measured."""
LEAST_SENT_BYTES: Final = 2 * 10**6
"""A token bucket lets some 0.13 MB through at once: of this it is 6 %."""

MOST: Final = 1e18
"""No host does so much of anything in a second: what is above it is no figure."""

DISK_JOBS: Final[Mapping[str, tuple[str, int]]] = {
    "write": ("write", SEQUENTIAL_BYTES),
    "read": ("read", SEQUENTIAL_BYTES),
    "random write": ("randwrite", RANDOM_BYTES),
    "random read": ("randread", RANDOM_BYTES),
}
"""What is done to a disk, in this order: fio's name for it, and the size of its requests."""


class HostCeiling(Record):
    """One figure about one host, always better when it is higher.

    `promised` is the hardware file's limit in the same unit.
    """

    host: str
    kind: Kind
    what: str
    """Such as `CPU`, `disk wb0 random read`, `disk wb0 random read of 64 kB` or `network to
    store-1`: unique for a host.
    """
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Operation | None = None
    pick: Pick | None = None
    request_bytes: PositiveInt | None = None
    """With `operation`, of what a disk did for objects of this size: then `unit` is B/s."""
    sender: str | None = None
    receiver: str | None = None


class DiskRequest(Record):
    """What a disk is asked for objects of one size, each of them a request.

    `request_bytes` is theirs, not rounded to blocks.
    """

    operation: Operation
    pick: Pick
    request_bytes: PositiveInt

    @property
    def name(self) -> str:
        """Such as `random read of 64 kB`."""
        whole = self.request_bytes % 1000 == 0 or self.request_bytes % 1024 == 0
        return (
            f"{self.pick} {self.operation} of "
            f"{show_bytes(self.request_bytes) if whole else f'{self.request_bytes} B'}"
        )

    @property
    def block_bytes(self) -> int:
        """What is really asked of the disk: whole blocks."""
        return -(-self.request_bytes // BLOCK_BYTES) * BLOCK_BYTES

    @property
    def rw(self) -> str:
        """What fio calls it."""
        return f"rand{self.operation}" if self.pick == "random" else self.operation


def cpu_arguments(threads: int, *, events: int | None = None) -> tuple[str, ...]:
    """What sysbench is told: so many events of work over all threads, or without them
    `PRIMES_EVENTS` a thread.
    """
    return (
        "cpu",
        f"--threads={threads}",
        f"--events={events or PRIMES_EVENTS * threads}",
        "--time=0",
        "run",
    )


def quota_events(free_per_s: float, cpus: float, threads: int) -> int:
    """How many events take `QUOTA_S` under a quota, by those a second that as many threads do
    without it.
    """
    return max(1, round(free_per_s * cpus / threads * QUOTA_S))


def events_per_s(told: str) -> float:
    """Events a second of what `sysbench cpu` printed, once or more often: the median.

    Raises TargetError.
    """
    found = re.findall(r"^\s*events per second:\s*([0-9.]+)$", told, re.MULTILINE)
    return median(_positive(one, "sysbench", "events per second", told) for one in found or [None])


def fill_arguments(device: str) -> tuple[str, ...]:
    """What fio is told to write a disk's region once, so that reads have something to read."""
    return (*_disk(device), "--name=fill", "--rw=write", f"--bs={SEQUENTIAL_BYTES}", "--iodepth=4")


def disk_arguments(device: str, jobs: Collection[str] = DISK_JOBS) -> tuple[str, ...]:
    """What fio is told to do some of `DISK_JOBS`, or all, one after the other."""
    words = list(_disk(device))
    for name in jobs:
        rw, size = DISK_JOBS[name]
        words += [
            f"--name={name}",
            f"--rw={rw}",
            f"--bs={size}",
            f"--iodepth={DEPTH}",
            "--stonewall",
            "--time_based",
        ]
        words.append(f"--runtime={DISK_S * 1000:.0f}ms")
    return tuple(words)


def pieces(sizes: Sequence[int]) -> tuple[DiskRequest, ...]:
    """What a disk is asked for objects of these sizes in bytes; those above `LARGEST_BYTES` are
    asked in pieces of that.
    """
    asked = sorted({min(size, LARGEST_BYTES) for size in sizes if size > 0})
    ways: tuple[tuple[Operation, Pick], ...] = (
        *(("write", "sequential"), ("read", "sequential")),
        *(("write", "random"), ("read", "random")),
    )
    return tuple(
        DiskRequest(operation=operation, pick=pick, request_bytes=size)
        for size in asked
        for operation, pick in ways
    )


def piece_s(count: int) -> float:
    """How long each of so many jobs is, in seconds."""
    return max(LEAST_PIECE_S, min(PIECE_S, PIECES_S / count))


def piece_arguments(
    device: str, asked: Sequence[DiskRequest], *, seconds: float | None = None
) -> tuple[str, ...]:
    """What fio is told to do pieces one after the other, each for so many seconds."""
    words = list(_disk(device))
    runtime_ms = 1000 * (seconds or piece_s(len(asked)))
    for piece in asked:
        depth = max(1, min(DEPTH, IN_HAND_BYTES // piece.block_bytes))
        words += [
            f"--name={piece.name}",
            f"--rw={piece.rw}",
            f"--bs={piece.block_bytes}",
            f"--iodepth={depth}",
            "--stonewall",
        ]
        words += ["--time_based", f"--runtime={runtime_ms:.0f}ms"]
    return tuple(words)


def piece_figures(told: str, asked: Sequence[DiskRequest]) -> tuple[float, ...]:
    """Bytes of objects a second, in the order in which they were asked. Raises TargetError."""
    jobs = _jobs(told)
    return tuple(
        _positive(
            _side(jobs, piece.name, piece.operation).get("iops"),
            "fio",
            f"iops of {piece.name}",
            told,
        )
        * piece.request_bytes
        for piece in asked
    )


def _disk(device: str) -> tuple[str, ...]:
    # A set seed: the same places are written and read in every deployment.
    shared = (
        f"--filename={device}",
        f"--size={REGION_BYTES}",
        "--direct=1",
        "--ioengine=libaio",
        "--randseed=2014",
    )
    # Latencies are not what is asked, and to keep them costs a host of a third of a CPU some
    # requests.
    quiet = ("--disable_lat=1", "--disable_clat=1", "--disable_slat=1", "--clat_percentiles=0")
    return ("--output-format=json", "--eta=never", "--thread", *quiet, *shared)


def disk_figures(told: str, asked: Collection[str] = DISK_JOBS) -> Mapping[str, tuple[float, Unit]]:
    """By name of job: bytes a second where it was sequential, requests a second where it was
    random. Raises TargetError.
    """
    jobs = _jobs(told)
    figures: dict[str, tuple[float, Unit]] = {}
    for name in asked:
        rw, _ = DISK_JOBS[name]
        side = _side(jobs, name, rw.removeprefix("rand"))
        if rw.startswith("rand"):
            figures[name] = (_positive(side.get("iops"), "fio", f"iops of {name}", told), "1/s")
        else:
            figures[name] = (
                _positive(side.get("bw_bytes"), "fio", f"bw_bytes of {name}", told),
                "B/s",
            )
    return figures


def _jobs(told: str) -> Mapping[str, Any]:
    jobs = json_object("fio", told, TargetError).get("jobs", [])
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise TargetError(
            f"fio: its jobs are no list of objects in what it printed: {told[:400]!r}"
        )
    return {str(job.get("jobname")): job for job in jobs}


def _side(jobs: Mapping[str, Any], name: str, operation: str) -> Mapping[str, Any]:
    """What a job read or wrote; nothing of it where the job is missing.

    Raises TargetError when it failed.
    """
    job = jobs.get(name, {})
    if job.get("error"):
        raise TargetError(f"fio: {name}: error {printable(job['error'])}")
    return _object(job, operation)


def network_arguments(
    address: str, rate_bit_per_s: int | None, *, reverse: bool, seconds: float = NETWORK_S
) -> tuple[str, ...]:
    """What iperf3 is told as a client: to send as much as takes so long at the rate; `reverse`: the
    server sends.
    """
    size_bytes = max(LEAST_SENT_BYTES, int((rate_bit_per_s or FREE_BIT_PER_S) * seconds / 8))
    words = ("--client", address, "--bytes", str(size_bytes), "--json", "--connect-timeout", "5000")
    return (*words, "--reverse") if reverse else words


def fabric_arguments(address: str, port: int) -> tuple[str, ...]:
    """What iperf3 is told as one of many clients that send at the same time."""
    return (
        "--client",
        address,
        "--port",
        str(port),
        "--time",
        str(FABRIC_S),
        "--json",
        "--connect-timeout",
        "5000",
    )


def bits_per_s(told: str) -> float:
    """Bits a second of what `iperf3 --json` printed, as its receiver counted them.

    Raises TargetError.
    """
    answer = json_object("iperf3", told, TargetError)
    if "error" in answer:
        raise TargetError(f"iperf3: {printable(answer['error'])}")
    received = _object(_object(answer, "end"), "sum_received")
    return _positive(
        received.get("bits_per_second"), "iperf3", "end.sum_received.bits_per_second", told
    )


def _object(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object of a name, and nothing of it where there is none."""
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _positive(value: object, tool: str, name: str, told: str) -> float:
    """A figure that was found; one that is missing, nothing, or beyond anything that can be is no
    figure.
    """
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < MOST:
        raise TargetError(f"{tool}: no {name} in what it printed: {told[:400]!r}")
    return number
