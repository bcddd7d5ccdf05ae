"""Attestation: measure what a deployment's hosts can do, in the same way for every deployment,
before its gateway starts.

Only the limits of what is being measured are on: under a quota of CPU time iperf3 would measure the
quota. Fake hosts have no limits and are not measured.

The layers `disk` and `network` of a suite are measured here too: disks at the sizes of the suite's
objects, and all pairs of hosts.

Written for sysbench 1.0.20, fio 3.33 and iperf3 3.12; each figure that is read is checked.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, PositiveInt

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_object, printable
from weighbridge.gateways.gateway import HostNeed, RootImage, Say
from weighbridge.gateways.together import at_once
from weighbridge.topologies.disk_models import DiskLoad, expected_per_s
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.hosts import Hosts, Limited

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


class DiskJob(Record):
    """Requests that fio makes of a disk, one size and one kind of them."""

    name: str
    """Such as `random read`, and `random read of 64 kB` for objects of a suite's size."""
    operation: Operation
    pick: Pick
    request_bytes: PositiveInt
    unit: Unit = "B/s"
    """What counts: `B/s` bytes of requests, `1/s` their number."""
    sized: bool = False
    """Whether `request_bytes` is the size of a suite's objects, not rounded to blocks."""

    @property
    def block_bytes(self) -> int:
        """What the disk is really asked for: complete blocks."""
        return -(-self.request_bytes // BLOCK_BYTES) * BLOCK_BYTES

    @property
    def depth(self) -> int:
        """Requests in flight: fewer large ones."""
        return max(1, min(DEPTH, IN_FLIGHT_BYTES // self.block_bytes))

    @property
    def counted_bytes(self) -> int:
        """What a request counts, in `unit`."""
        return self.request_bytes if self.unit == "B/s" else 1


DISK_JOBS: Final = (
    DiskJob(name="write", operation="write", pick="sequential", request_bytes=2**20),
    DiskJob(name="read", operation="read", pick="sequential", request_bytes=2**20),
    DiskJob(name="random write", operation="write", pick="random", request_bytes=4096, unit="1/s"),
    DiskJob(name="random read", operation="read", pick="random", request_bytes=4096, unit="1/s"),
)
"""The jobs by which disks are compared, in their order."""


def pieces(sizes: Sequence[int]) -> tuple[DiskJob, ...]:
    """The jobs for objects of these sizes in bytes, split as stores split them."""
    jobs = []
    for size in sorted({min(size, LARGEST_BYTES) for size in sizes if size > 0}):
        rounded = size % 1000 == 0 or size % 1024 == 0
        words = show_bytes(size) if rounded else f"{size} B"
        for like in DISK_JOBS:
            name = f"{like.pick} {like.operation} of {words}"
            jobs.append(
                DiskJob(
                    name=name,
                    operation=like.operation,
                    pick=like.pick,
                    request_bytes=size,
                    sized=True,
                )
            )
    return tuple(jobs)


def piece_s(count: int, together_s: float = PIECES_S, longest_s: float = PIECE_S) -> float:
    """The runtime of each of `count` jobs, in seconds."""
    return max(LEAST_PIECE_S, min(longest_s, together_s / count))


def cpu_arguments(threads: int, *, events: int | None = None) -> tuple[str, ...]:
    """Arguments of sysbench: `events` over all threads, by default `PRIMES_EVENTS` a thread."""
    events = events or PRIMES_EVENTS * threads
    return ("cpu", f"--threads={threads}", f"--events={events}", "--time=0", "run")


def events_per_s(printed: str) -> float:
    """The median of the events a second that `sysbench cpu` printed. Raises TargetError."""
    found = re.findall(r"^\s*events per second:\s*([0-9.]+)$", printed, re.MULTILINE)
    return median(
        _positive(one, "sysbench", "events per second", printed) for one in found or [None]
    )


def fill_arguments(device: str) -> tuple[str, ...]:
    """Arguments of fio that write a disk's region once, so that reads find data."""
    return (*_disk(device), "--name=fill", "--rw=write", "--bs=1048576", "--iodepth=4")


def disk_arguments(device: str, jobs: Sequence[DiskJob], seconds: float) -> tuple[str, ...]:
    """Arguments of fio for jobs one after the other, each for `seconds`."""
    words = list(_disk(device))
    for job in jobs:
        words += SETTLE if job.operation == "read" else ()
        words += (
            f"--name={job.name}",
            f"--rw={'rand' if job.pick == 'random' else ''}{job.operation}",
            f"--bs={job.block_bytes}",
            f"--iodepth={job.depth}",
            "--stonewall",
            "--time_based",
            f"--runtime={1000 * seconds:.0f}ms",
        )
    return tuple(words)


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


def disk_figures(printed: str, jobs: Sequence[DiskJob]) -> tuple[float, ...]:
    """What fio reports of its jobs, each in its unit, in their order. Raises TargetError."""
    answers = json_object("fio", printed, TargetError).get("jobs", [])
    if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
        raise TargetError(f"fio: `jobs` is not a list of objects in its output: {printed[:400]!r}")
    by_name = {str(one.get("jobname")): one for one in answers}
    figures = []
    for job in jobs:
        answer = by_name.get(job.name, {})
        if answer.get("error"):
            raise TargetError(f"fio: {job.name}: error {printable(answer['error'])}")
        iops = _object(answer, job.operation).get("iops")
        per_s = _positive(iops, "fio", f"iops of {job.name}", printed)
        figures.append(per_s * job.counted_bytes)
    return tuple(figures)


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
    Disks and networks that do less than is promised are measured again, `TRIES` times.
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
    found += _disks(hosts, hardware, pieces(asked.sizes), sameness=asked.sameness)
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
    threads = {name: math.ceil(hardware.hosts[name].most_cpus or 1) for name in hosts.hosts}
    keys: dict[str, object] = {
        name: (threads[name], hardware.hosts[name].cpuset is None) if shared else name
        for name in hosts.hosts
    }
    measured: dict[object, str] = {}
    for name, key in keys.items():
        measured.setdefault(key, name)

    def probed(name: str, events: int | None = None) -> float:
        arguments = cpu_arguments(threads[name], events=events)
        return ask(
            *(hosts.hosts[name], "sysbench", arguments, events_per_s),
            times=CPU_PROBES,
        )

    calls = [partial(probed, name) for name in measured.values()]
    values = [call() for call in calls] if shared else at_once(calls)
    free_per_s = dict(zip(measured, values, strict=True))
    for key, name in measured.items():
        what = "CPU without its quota"
        yield HostCeiling(host=name, kind="cpu", what=what, value=free_per_s[key], unit="events/s")
    # Promised is a share of what as many threads do without a quota: a quota counts threads, and
    # two threads of one core do less than two cores.
    promised = {
        name: free_per_s[keys[name]] * quota / threads[name]
        for name in hosts.hosts
        if (quota := hardware.hosts[name].most_cpus) is not None
    }
    calls = [
        partial(probed, name, max(1, round(per_s * QUOTA_S))) for name, per_s in promised.items()
    ]
    with limited(hosts, "cpu"):
        values = at_once(calls)
    for (name, per_s), value in zip(promised.items(), values, strict=True):
        yield HostCeiling(
            host=name, kind="cpu", what="CPU", value=value, unit="events/s", promised=per_s
        )


def all_disks(hosts: Hosts, hardware: Hardware) -> list[HostDisk]:
    """Every disk of every host, with its limits."""
    return [
        (host, path, disk)
        for name, host in hosts.hosts.items()
        for path, disk in zip(host.disks, hardware.hosts[name].disks, strict=True)
    ]


def _disks(
    hosts: Hosts, hardware: Hardware, pieces: Sequence[DiskJob], *, sameness: bool
) -> Iterator[HostCeiling]:
    if not sameness and not pieces:
        return
    disks = all_disks(hosts, hardware)
    with filled(disks), limited(hosts, "disk"):
        if sameness:
            calls = []
            for one in disks:
                seconds = DISK_S if one[2].model is None else MODEL_DISK_S
                calls.append(partial(measured_disk, one, disk_jobs(hardware, one[2]), seconds))
            yield from _best(calls)
        if pieces:
            seconds = piece_s(len(pieces))
            found = at_once([partial(measured_disk, one, pieces, seconds) for one in disks])
            yield from itertools.chain.from_iterable(found)


def _best(calls: Sequence[Callable[[], list[HostCeiling]]]) -> list[HostCeiling]:
    """The figures of calls at once, again while one is below what is promised."""
    best: list[HostCeiling] = []
    for _ in range(TRIES):
        best = _better(best, itertools.chain.from_iterable(at_once(calls)))
        if all(one.value >= REACHED * (one.promised or 0) for one in best):
            break
    return best


def _better(known: Iterable[HostCeiling], again: Iterable[HostCeiling]) -> list[HostCeiling]:
    best = {(one.host, one.what): one for one in known}
    for one in again:
        if one.value > best.setdefault((one.host, one.what), one).value:
            best[one.host, one.what] = one
    return list(best.values())


def disk_jobs(hardware: Hardware, disk: Disk) -> tuple[DiskJob, ...]:
    """The jobs by which a disk is compared between deployments.

    Small requests to a disk of the lab that neither a limit nor its model slows down are left out:
    CPU, which is measured already, decides how many there are.
    """
    return tuple(
        job
        for job in DISK_JOBS
        if not hardware.of.contained or job.unit == "B/s" or _promised(disk, job) is not None
    )


@contextmanager
def filled(disks: Sequence[HostDisk]) -> Iterator[None]:
    """Write the tested region of each disk once, and discard everything at the end."""
    fill = fill_arguments
    try:
        # Without limits: at 20 MB/s this would take a quarter of a minute.
        at_once([partial(ask, host, "fio", fill(path), str) for host, path, _ in disks])
        yield
    finally:
        # A loop disk passes this on to the file below it, which then frees its space. The page
        # cache holds nothing of it: all reads and writes were direct.
        at_once([partial(host.run, ["blkdiscard", path]) for host, path, _ in disks])


def measured_disk(one: HostDisk, jobs: Sequence[DiskJob], seconds: float) -> list[HostCeiling]:
    """Measure a disk by jobs in turn, each for `seconds`."""
    host, path, disk = one
    arguments = disk_arguments(path, jobs, seconds)
    read = partial(disk_figures, jobs=jobs)
    values = ask(host, "fio", arguments, read, timeout_s=TIMEOUT_S + 20 * seconds * len(jobs))
    found = []
    for job, value in zip(jobs, values, strict=True):
        ceiling = HostCeiling(
            host=host.name,
            kind="disk",
            what=f"disk {Path(path).name} {job.name}",
            value=value,
            unit=job.unit,
            promised=_promised(disk, job),
        )
        if job.sized:
            sized = {key: getattr(job, key) for key in ("operation", "pick", "request_bytes")}
            ceiling = ceiling.model_copy(update=sized)
        found.append(ceiling)
    return found


def _promised(disk: Disk, job: DiskJob) -> float | None:
    """What the limits or the model of a disk allow of a job, in its unit; None where requests are
    so small that the CPU decides how many there are.
    """
    if disk.model is not None and disk.size is not None:
        load = DiskLoad(
            write=job.operation == "write",
            random=job.pick == "random",
            bytes=job.block_bytes,
            depth=job.depth,
            span=REGION_BYTES,
        )
        per_s = expected_per_s(disk.model, disk.size, load)
        return None if per_s is None else per_s * job.counted_bytes
    by_number = None if disk.iops is None else float(disk.iops * job.counted_bytes)
    if job.unit == "1/s":
        return by_number
    if disk.bandwidth is None:
        return by_number if job.sized else None
    by_bytes = disk.bandwidth * job.request_bytes / job.block_bytes
    if by_number is not None:
        # Either may be reached first, and a large request may count as several.
        return min(by_number, by_bytes) if job.sized else None
    large = job.block_bytes >= LEAST_BANDWIDTH_BLOCK_BYTES
    return by_bytes if large and job.pick == "sequential" else None


def network(
    hosts: Hosts, hardware: Hardware, pairs: Sequence[tuple[str, str]]
) -> Iterator[HostCeiling]:
    """The throughput between the hosts of each pair, one direction after the other."""
    if not pairs:
        return
    longest_s = min(NETWORK_S, ALL_PAIRS_S / len(pairs) / 2)
    seconds = max(LEAST_PAIR_S, longest_s)

    def measured(here: str, there: str, *, reverse: bool) -> list[HostCeiling]:
        nics = [hardware.hosts[name].nic for name in (here, there)]
        # The slower NIC limits a pair.
        rate = min((nic.rate for nic in nics if nic and nic.rate is not None), default=None)
        address = hosts.hosts[there].address
        arguments = network_arguments(address, rate, reverse=reverse, seconds=seconds)
        sender, receiver = (there, here) if reverse else (here, there)
        return [
            HostCeiling(
                host=there,
                kind="network",
                what=f"network {'to' if reverse else 'from'} {here}",
                value=ask(hosts.hosts[here], "iperf3", arguments, bits_per_s),
                unit="bit/s",
                promised=rate,
                sender=sender,
                receiver=receiver,
            )
        ]

    with ExitStack() as stack, limited(hosts, "nic"):
        for name in dict.fromkeys(there for _, there in pairs):
            serve(hosts.hosts[name], stack)
        for here, there in pairs:
            for reverse in (False, True):
                yield from _best([partial(measured, here, there, reverse=reverse)])


def _pairs(
    names: Sequence[str], clients: Sequence[str], needs: Mapping[str, HostNeed]
) -> list[tuple[str, str]]:
    pairs = [(client, name) for client in clients for name in names if name not in clients]
    tiers = {name: needs[name].tier for name in names if name in needs}
    storage = [name for name, tier in tiers.items() if tier == "storage"]
    return pairs + [
        (name, store) for name, tier in tiers.items() if tier == "gateway" for store in storage
    ]
