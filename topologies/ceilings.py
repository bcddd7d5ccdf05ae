"""Ceilings: what a CPU, a disk and a network can do, by sysbench, fio and iperf3: their arguments
and their output.

Written for sysbench 1.0.20, fio 3.33 and iperf3 3.12; each figure that is read is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, PositiveInt

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_object, printable
from weighbridge.topologies.hosts import Hosts, Limited

Kind = Literal["cpu", "disk", "network", "osd"]
Unit = Literal["events/s", "B/s", "1/s", "bit/s"]
Operation = Literal["read", "write"]
Pick = Literal["sequential", "random"]

REGION_BYTES: Final = 128 * 2**20
"""How much of a disk fio works on, so that reads find data that was written and little of this
machine's disk is used. No disk of a hardware file is smaller.
"""
DISK_S: Final = 0.5
"""Linux throttles in slices of 0.1 s; the slack of the first is the same in all deployments."""
MODEL_DISK_S: Final = 2.0
"""For a disk with a model: a spinning one serves some 300 random requests in a second, of which
half a second would show a different share each time.
"""
PIECE_S: Final = 2.0
"""For a job at one of the sizes of a suite: as long as the shortest windows below its ceiling."""
SEQUENTIAL_BYTES: Final = 2**20
RANDOM_BYTES: Final = 4096
DEPTH: Final = 16
"""Requests in flight, as a small Ceph OSD or a few Swift workers have."""
IN_FLIGHT_BYTES: Final = 32 * 2**20
"""Fewer large requests are in flight, to fit into the memory of a small host: 8 of 4 MiB."""
BLOCK_BYTES: Final = 4096
"""What BlueStore and XFS allocate at least: objects, and so requests, take complete blocks."""
LARGEST_BYTES: Final = 4 * 2**20
"""Both stores split larger objects: RGW into stripes of this size, Swift's object server into less.
"""
PIECES_S: Final = 30.0
"""For all jobs at the sizes of a suite together, if that leaves each `LEAST_PIECE_S`."""
LEAST_PIECE_S: Final = 0.3
LEAST_BANDWIDTH_BLOCK_BYTES: Final = 64 * 2**10
"""The number of smaller requests is limited by the host's CPU, not by a limit of bandwidth."""

PRIMES_EVENTS: Final = 100
"""An event is all primes up to 10,000, sysbench's own default; about 1.5 ms of a CPU of 2020."""
CPU_PROBES: Final = 5
"""Probes of a CPU, of which the median counts: another program disturbs one or two of them."""
QUOTA_S: Final = 0.2
"""For one probe under a quota: 20 of its periods. Together a second, with all hosts at work."""

NETWORK_S: Final = 0.12
TRIES: Final = 3
"""Tries for a disk or a pair of hosts below its limit or its model, of which the best counts: other
programs only slow it down.
"""
REACHED: Final = 0.9
"""The share of what is promised that needs no further try. Headers, which iperf3 does not count,
are 5 %.
"""
ALL_PAIRS_S: Final = 60.0
"""For all pairs of hosts together, if that leaves each direction of a pair `LEAST_PAIR_S`."""
LEAST_PAIR_S: Final = 0.1
FREE_BIT_PER_S: Final = 10**10
"""The rate of an unlimited NIC for which data is sent over `NETWORK_S`."""
IPERF_PORT: Final = 5201
"""iperf3's own default."""
FABRIC_S: Final = 2
"""How long all hosts send at once; iperf3 takes whole seconds."""
FABRIC_PEERS: Final = 8
"""Receivers of a host at most: with more, programs and not the network would be measured."""
LEAST_SENT_BYTES: Final = 2 * 10**6
"""A token bucket lets some 0.13 MB through at once, 6 % of this."""

MOST: Final = 1e18
"""No host does this much of anything in a second: a larger value is an error."""

DISK_JOBS: Final[Mapping[str, tuple[str, int]]] = {
    "write": ("write", SEQUENTIAL_BYTES),
    "read": ("read", SEQUENTIAL_BYTES),
    "random write": ("randwrite", RANDOM_BYTES),
    "random read": ("randread", RANDOM_BYTES),
}
"""The jobs for a disk in their order: fio's name for each, and the size of its requests."""


SETTLE: Final = (
    *("--name=settle", "--rw=write", f"--bs={BLOCK_BYTES}", "--number_ios=1", "--end_fsync=1"),
    "--stonewall",
)
"""The job before each that reads: what was written is flushed, or a disk's own cache would answer
some reads. After 1 MiB writes to a modelled spinning disk, reads gave 126 and 135 MB/s instead of
91 and 91.
"""


class HostCeiling(Record):
    """One figure about one host; higher is better. `promised` is the limit in the hardware file."""

    host: str
    kind: Kind
    what: str
    """Unique for a host: `CPU`, `disk wb0 random read [of 64 kB]`, `network to store-1`."""
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Operation | None = None
    pick: Pick | None = None
    request_bytes: PositiveInt | None = None
    """With `operation`: the size of the objects that the disk was measured for, in B/s."""
    sender: str | None = None
    receiver: str | None = None


class DiskRequest(Record):
    """A request to a disk for an object of `request_bytes`, which are not rounded to blocks."""

    operation: Operation
    pick: Pick
    request_bytes: PositiveInt

    @property
    def name(self) -> str:
        """Such as `random read of 64 kB`."""
        rounded = self.request_bytes % 1000 == 0 or self.request_bytes % 1024 == 0
        size = show_bytes(self.request_bytes) if rounded else f"{self.request_bytes} B"
        return f"{self.pick} {self.operation} of {size}"

    @property
    def block_bytes(self) -> int:
        """What the disk is really asked for: complete blocks."""
        return -(-self.request_bytes // BLOCK_BYTES) * BLOCK_BYTES

    @property
    def rw(self) -> str:
        return f"rand{self.operation}" if self.pick == "random" else self.operation


def cpu_arguments(threads: int, *, events: int | None = None) -> tuple[str, ...]:
    """Arguments of sysbench: `events` over all threads, by default `PRIMES_EVENTS` a thread."""
    events = events or PRIMES_EVENTS * threads
    return ("cpu", f"--threads={threads}", f"--events={events}", "--time=0", "run")


def quota_events(free_per_s: float, cpus: float, threads: int) -> int:
    """Events that take `QUOTA_S` under a quota, if as many threads do `free_per_s` without it."""
    return max(1, round(free_per_s * cpus / threads * QUOTA_S))


def events_per_s(printed: str) -> float:
    """The median of the events a second that `sysbench cpu` printed. Raises TargetError."""
    found = re.findall(r"^\s*events per second:\s*([0-9.]+)$", printed, re.MULTILINE)
    return median(
        _positive(one, "sysbench", "events per second", printed) for one in found or [None]
    )


def fill_arguments(device: str) -> tuple[str, ...]:
    """Arguments of fio that write a disk's region once, so that reads find data."""
    return (*_disk(device), "--name=fill", "--rw=write", f"--bs={SEQUENTIAL_BYTES}", "--iodepth=4")


def disk_arguments(
    device: str, jobs: Collection[str] = DISK_JOBS, *, seconds: float = DISK_S
) -> tuple[str, ...]:
    """Arguments of fio for `jobs` of `DISK_JOBS`, one after the other, each for `seconds`."""
    words = list(_disk(device))
    for name in jobs:
        rw, size = DISK_JOBS[name]
        words += _job(name, rw, size, depth=DEPTH, runtime_s=seconds)
    return tuple(words)


def pieces(sizes: Sequence[int]) -> tuple[DiskRequest, ...]:
    """The requests for objects of these sizes in bytes, split as stores split them."""
    asked = sorted({min(size, LARGEST_BYTES) for size in sizes if size > 0})
    ways: tuple[tuple[Operation, Pick], ...] = (
        ("write", "sequential"),
        ("read", "sequential"),
        ("write", "random"),
        ("read", "random"),
    )
    return tuple(
        DiskRequest(operation=operation, pick=pick, request_bytes=size)
        for size in asked
        for operation, pick in ways
    )


def piece_s(count: int) -> float:
    """The runtime of each of `count` jobs, in seconds."""
    return max(LEAST_PIECE_S, min(PIECE_S, PIECES_S / count))


def piece_arguments(
    device: str, asked: Sequence[DiskRequest], *, seconds: float | None = None
) -> tuple[str, ...]:
    """Arguments of fio for pieces one after the other, each for `seconds`, by default `piece_s`."""
    words = list(_disk(device))
    for piece in asked:
        depth, runtime_s = depth_of(piece), seconds or piece_s(len(asked))
        words += _job(piece.name, piece.rw, piece.block_bytes, depth=depth, runtime_s=runtime_s)
    return tuple(words)


def depth_of(piece: DiskRequest) -> int:
    """Requests in flight: fewer large ones."""
    return max(1, min(DEPTH, IN_FLIGHT_BYTES // piece.block_bytes))


def _job(name: str, rw: str, block_bytes: int, *, depth: int, runtime_s: float) -> tuple[str, ...]:
    return (
        *(SETTLE if "read" in rw else ()),
        f"--name={name}",
        f"--rw={rw}",
        f"--bs={block_bytes}",
        f"--iodepth={depth}",
        "--stonewall",
        "--time_based",
        f"--runtime={1000 * runtime_s:.0f}ms",
    )


def piece_figures(printed: str, asked: Sequence[DiskRequest]) -> tuple[float, ...]:
    """Bytes of objects a second, in the order of `asked`. Raises TargetError."""
    jobs = _jobs(printed)
    iops = [_figure(jobs, piece.name, piece.operation, "iops", printed) for piece in asked]
    return tuple(per_s * piece.request_bytes for per_s, piece in zip(iops, asked, strict=True))


def _disk(device: str) -> tuple[str, ...]:
    # A fixed seed: the same places are written and read in every deployment.
    shared = (
        f"--filename={device}",
        f"--size={REGION_BYTES}",
        "--direct=1",
        "--ioengine=libaio",
        "--randseed=2014",
    )
    # Latencies are not needed, and recording them costs a host of a third of a CPU some requests.
    quiet = ("--disable_lat=1", "--disable_clat=1", "--disable_slat=1", "--clat_percentiles=0")
    return ("--output-format=json", "--eta=never", "--thread", *quiet, *shared)


def disk_figures(
    printed: str, asked: Collection[str] = DISK_JOBS
) -> Mapping[str, tuple[float, Unit]]:
    """By job: bytes/s of sequential ones, requests/s of random ones. Raises TargetError."""
    jobs = _jobs(printed)
    figures: dict[str, tuple[float, Unit]] = {}
    for name in asked:
        rw, _ = DISK_JOBS[name]
        random = rw.startswith("rand")
        key = "iops" if random else "bw_bytes"
        unit: Unit = "1/s" if random else "B/s"
        figures[name] = (_figure(jobs, name, rw.removeprefix("rand"), key, printed), unit)
    return figures


def _jobs(printed: str) -> Mapping[str, Any]:
    jobs = json_object("fio", printed, TargetError).get("jobs", [])
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise TargetError(f"fio: `jobs` is not a list of objects in its output: {printed[:400]!r}")
    return {str(job.get("jobname")): job for job in jobs}


def _figure(jobs: Mapping[str, Any], name: str, operation: str, key: str, printed: str) -> float:
    job = jobs.get(name, {})
    if job.get("error"):
        raise TargetError(f"fio: {name}: error {printable(job['error'])}")
    return _positive(_object(job, operation).get(key), "fio", f"{key} of {name}", printed)


def network_arguments(
    address: str, rate_bit_per_s: int | None, *, reverse: bool, seconds: float = NETWORK_S
) -> tuple[str, ...]:
    """Arguments of an iperf3 client that sends for `seconds` at a rate; `reverse`: the server."""
    size_bytes = max(LEAST_SENT_BYTES, int((rate_bit_per_s or FREE_BIT_PER_S) * seconds / 8))
    words = ("--client", address, "--bytes", str(size_bytes), "--json", "--connect-timeout", "5000")
    return (*words, "--reverse") if reverse else words


def fabric_arguments(address: str, port: int) -> tuple[str, ...]:
    """Arguments of one of many iperf3 clients that send at the same time."""
    server = ("--client", address, "--port", str(port))
    return (*server, "--time", str(FABRIC_S), "--json", "--connect-timeout", "5000")


def bits_per_s(printed: str) -> float:
    """Bits a second by the receiver in the output of `iperf3 --json`. Raises TargetError."""
    answer = json_object("iperf3", printed, TargetError)
    if "error" in answer:
        raise TargetError(f"iperf3: {printable(answer['error'])}")
    name = "bits_per_second"
    received = _object(_object(answer, "end"), "sum_received").get(name)
    return _positive(received, "iperf3", f"end.sum_received.{name}", printed)


def _object(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _positive(value: object, tool: str, name: str, printed: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < MOST:
        raise TargetError(f"{tool}: no {name} in its output: {printed[:400]!r}")
    return number


TIMEOUT_S: Final = 60.0
"""For one tool on one host; each is asked to run for two seconds at most."""

Result = TypeVar("Result")


@contextmanager
def limited(hosts: Hosts, what: Limited) -> Iterator[None]:
    """Put one kind of limit on the hosts while the block runs."""
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
    timeout_s: float = TIMEOUT_S,
) -> Result:
    """Run a tool `times` times in one command, and read it. Raises CommandFailed, TargetError."""
    argv = [*host.tool(tool), *arguments]
    if times > 1:
        argv = ["sh", "-ec", f'for _ in $(seq {times}); do "$@"; done', tool, *argv]
    printed = host.run(argv, timeout_s=timeout_s).stdout
    try:
        return read(printed)
    except TargetError as error:
        raise TargetError(f"{host.name}: {error.message}") from error


def serve(host: Host, stack: ExitStack, port: int = IPERF_PORT) -> None:
    """Start iperf3 as a server of one client at a time; the stack ends it. Raises CommandFailed."""
    log = host.log("attest-iperf3.out")
    address = ("--bind", host.address, "--port", str(port))
    argv = (*host.tool("iperf3"), "--server", "--forceflush", *address)
    server = stack.enter_context(host.spawn(argv, stderr=log))
    stack.callback(server.kill)
    lines = ProgramLines(server)
    try:
        while b"listening" not in lines.next(TIMEOUT_S):
            pass
    except NoLine as error:
        code = error.code if isinstance(error, ProgramEnded) else None
        output = "\n".join(host.log_tail("attest-iperf3.out"))
        raise CommandFailed(host.name, argv, code, output) from None
