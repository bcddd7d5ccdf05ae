"""The order of attestation, and its cleanup in all cases, with hosts that give recorded answers."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import Dice, cases, tried, wrong_json, wrong_text
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError, UsageError
from weighbridge.common.host import Completed
from weighbridge.gateways.gateway import HostNeed
from weighbridge.topologies.attestation import (
    DISK_JOBS,
    AttestOptions,
    attest,
    bits_per_s,
    cpus,
    disk_figures,
    disk_jobs,
    events_per_s,
    piece_s,
    pieces,
)
from weighbridge.topologies.baseline import bare, measure
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.fake import FakeHost, FakeHosts
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.hosts import LIMITED, Limited
from weighbridge.topologies.loader import load_hardware, shipped_hardware

DATA = Path(__file__).resolve().parents[1] / "data"


def recorded(name: str) -> str:
    return (DATA / name).read_text()


ANSWERS = {
    "sysbench": recorded("sysbench-1.0.20.txt"),
    "fio": recorded("fio-3.33.json"),
    "iperf3": recorded("iperf3-3.12.json"),
}
REFUSED = recorded("iperf3-3.12-refused.json")
HARDWARE = Hardware.model_validate(
    {
        "name": "recorded",
        "kind": "lab",
        "hosts": {
            "client-1": {"cpus": 0.5, "nic": "1Gbit"},
            "gateway-1": {"cpus": 1.5, "nic": "2Gbit"},
            "store-1": {
                "disks": [{"size": "1GiB", "bandwidth": "100MB"}, {"size": "300MiB", "iops": 500}]
            },
        },
    }
)
NEEDS = {
    "gateway-1": HostNeed(roles=("radosgw",)),
    "store-1": HostNeed(roles=("osd",), disks=2, tier="storage"),
}
SERVER = "print('Server listening on 5201', flush=True); input()"


class Recorded(FakeHost):
    """Gives the tools' recorded answers; `asked` has all commands with the limits that were on."""

    def __init__(self, name: str, hosts: RecordedHosts, folder: Path) -> None:
        super().__init__(name, name, folder / name)
        self.disks = tuple(f"/dev/wb{index}" for index, _ in enumerate(HARDWARE.hosts[name].disks))
        self._hosts = hosts

    def tool(self, name: str) -> tuple[str, ...]:
        return (name,)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        self._hosts.asked.append((self.name, " ".join(argv), frozenset(self._hosts.limited)))
        if self._hosts.breaks in argv:
            raise CommandFailed(self.name, argv, 1, "it broke")
        if argv[-1] == "--version":
            return Completed(f"{argv[0]} 1.0 (of today)\n", "")
        tool = argv[3] if argv[0] == "sh" else argv[0]
        slow = {"fio": self._hosts.slow_jobs, "sysbench": self._hosts.slow_cpus}.get(tool)
        answer = slow.pop() if slow and "--name=fill" not in argv else None
        return Completed(answer or self._hosts.answers.get(tool, ""), "")

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        server = super().spawn([sys.executable, "-c", self._hosts.server], stderr=stderr)
        self._hosts.servers.append(server)
        return server


class RecordedHosts(FakeHosts):
    def __init__(self, folder: Path) -> None:
        self.limited: set[Limited] = set()
        self.asked: list[tuple[str, str, frozenset[Limited]]] = []
        self.servers: list[subprocess.Popen[bytes]] = []
        self.answers = dict(ANSWERS)
        self.slow_jobs: list[str] = []
        """What fio answers before its answer."""
        self.slow_cpus: list[str] = []
        self.breaks = ""
        self.server = SERVER
        self.hosts = {name: Recorded(name, self, folder) for name in HARDWARE.hosts}

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited |= set(what)

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited -= set(what)

    def limits_during(self, word: str) -> list[frozenset[Limited]]:
        return [limited for _, command, limited in self.asked if word in command]

    def words(self, *wanted: str) -> list[str]:
        """The words of the first command with all of these."""
        commands = [command.split() for _, command, _ in self.asked]
        return next(words for words in commands if {*wanted} <= {*words})


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[RecordedHosts]:
    """Whatever happens in a test, no limit, no data and no server is left on them."""
    hosts = RecordedHosts(tmp_path)
    yield hosts
    assert hosts.limited == set()
    assert len(hosts.limits_during("blkdiscard")) == len(hosts.limits_during("--name=fill"))
    assert all(server.poll() is not None for server in hosts.servers)


SIZES = AttestOptions(sizes=(64_000, 2**30))
IN_PIECES = json.dumps(
    {
        "jobs": [
            {"jobname": f"{pick} {operation} of {size}", "error": 0, operation: {"iops": iops}}
            for size, iops in (("64 kB", 1000.0), ("4 MiB", 20.0))
            for pick, operation in itertools.product(("sequential", "random"), ("write", "read"))
        ]
    }
)


@pytest.fixture
def sized(hosts: RecordedHosts) -> RecordedHosts:
    hosts.answers["fio"] = IN_PIECES
    return hosts


def quietly(line: str) -> None:
    pass


def test_each_limit_is_on_only_while_its_resource_is_measured(hosts: RecordedHosts) -> None:
    attest(hosts, HARDWARE, NEEDS, quietly)
    for word, *limits in (
        ("--events=100",),
        ("--events=200",),
        ("--events=63", "cpu"),
        ("--events=94", "cpu"),
        ("--name=fill",),
        ("--name=write", "disk"),
        ("--name=random read", "disk"),
        ("--client", "nic"),
        ("blkdiscard",),
    ):
        assert set(hosts.limits_during(word)) == {frozenset(limits)}, word


def test_every_host_disk_and_path_gets_figures_with_the_limits_of_the_hardware(
    hosts: RecordedHosts,
) -> None:
    attestation = attest(hosts, HARDWARE, NEEDS, quietly)
    found = {(one.host, one.what): one for one in attestation.ceilings}
    assert len(found) == len(attestation.ceilings)
    # They are one machine, and store-1 has as many threads as client-1.
    free = {host for host, what in found if what == "CPU without its quota"}
    assert free == {"client-1", "gateway-1"}
    # store-1 has no quota: there is nothing to measure under it.
    assert {host: found[host, "CPU"].promised for host in ("client-1", "gateway-1")} == {
        "client-1": 626.75 * 0.5,
        "gateway-1": 626.75 * 1.5 / 2,
    }
    assert ("store-1", "CPU") not in found
    assert found["store-1", "disk wb0 write"].promised == 100_000_000
    # Nothing limits its small requests: the CPU does.
    assert ("store-1", "disk wb0 random write") not in found
    assert found["store-1", "disk wb1 write"].promised is None
    assert found["store-1", "disk wb1 random read"].promised == 500
    assert {what for host, what in found if host == "store-1" and what.startswith("network")} == {
        *("network from client-1", "network to client-1"),
        *("network from gateway-1", "network to gateway-1"),
    }
    # The slower NIC limits a pair.
    assert found["gateway-1", "network from client-1"].promised == 10**9
    assert found["store-1", "network to gateway-1"].promised == 2 * 10**9
    assert attestation.tools == {name: f"{name} 1.0" for name in ANSWERS}
    assert len(hosts.servers) == 2


def fio_at(share: float) -> str:
    """The recorded answer of disks that do this share of it."""
    answer = json.loads(ANSWERS["fio"])
    for job in answer["jobs"]:
        for way in ("read", "write"):
            job[way] |= {key: job[way][key] * share for key in ("bw_bytes", "iops")}
    return json.dumps(answer)


@pytest.mark.parametrize(("slow", "runs"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_disks_below_their_limit_are_measured_again_all_at_once_and_the_best_counts(
    slow: int, runs: int, hosts: RecordedHosts
) -> None:
    hosts.slow_jobs = [fio_at(0.01) for _ in range(slow) for _ in HARDWARE.hosts["store-1"].disks]
    attestation = attest(hosts, HARDWARE, NEEDS, quietly)
    assert len(hosts.limits_during("--name=write")) == runs * 2
    found = {one.what: one.value for one in attestation.ceilings if one.kind == "disk"}
    (written,) = (job for job in json.loads(fio_at(1))["jobs"] if job["jobname"] == "write")
    share = 0.01 if slow == 3 else 1
    assert found["disk wb0 write"] == pytest.approx(written["write"]["bw_bytes"] * share)


def test_a_host_is_promised_all_that_the_cpus_of_its_own_do_alone(hosts: RecordedHosts) -> None:
    specs = {name: {"cpuset": str(index)} for index, name in enumerate(HARDWARE.hosts)}
    specs["store-1"] = {"cpus": 1.0}
    own = Hardware.model_validate({"name": "own", "kind": "lab", "hosts": specs})
    found = {(one.host, one.what): one for one in cpus(hosts, own)}
    # One measurement for those with CPUs of their own, and one for the host without.
    free = {host for host, what in found if what == "CPU without its quota"}
    assert free == {"client-1", "store-1"}
    assert {found[host, "CPU"].promised for host in own.hosts} == {626.75}


def test_real_hosts_measure_their_own_cpus_and_small_requests(hosts: RecordedHosts) -> None:
    specs = {
        name: {"address": f"10.0.0.{index + 1}", "cpus": 0.5}
        for index, name in enumerate(HARDWARE.hosts)
    }
    limited = {"id": "/dev/disk/by-id/a", "bandwidth": "100MB"}
    specs["store-1"]["disks"] = [limited, {"id": "/dev/disk/by-id/b"}]
    real = Hardware.model_validate({"name": "real", "kind": "ssh", "hosts": specs})
    found = {(one.host, one.what) for one in attest(hosts, real, NEEDS, quietly).ceilings}
    assert {host for host, what in found if what == "CPU without its quota"} == set(HARDWARE.hosts)
    assert ("store-1", "disk wb0 random read") in found


@pytest.mark.parametrize(
    ("model", "asked"), [("ideal", False), ("nvme", False), ("spinning-7200", True)]
)
def test_small_requests_to_a_disk_whose_model_is_faster_than_the_host_are_left_out(
    model: str, *, asked: bool
) -> None:
    """They show the host's CPU, by a third more or less from one deployment to the next."""
    disk = Disk.model_validate({"size": "20GiB", "model": model})
    jobs = {job.name for job in disk_jobs(HARDWARE, disk)}
    assert {"read", "write"} <= jobs
    assert ("random read" in jobs, "random write" in jobs) == (asked, asked)


@pytest.mark.parametrize(
    ("slow", "apart", "runs", "best"),
    [(0, False, 2, 400.0), (1, False, 2, 400.0), (2, False, 2, 40.0), (2, True, 3, 400.0)],
)
def test_cpus_are_measured_twice_or_if_they_differ_three_times_and_the_best_median_counts(
    hosts: RecordedHosts, slow: int, runs: int, best: float, *, apart: bool
) -> None:
    figures = (400.0, 100.0, 410.0, 390.0, 405.0)
    hosts.answers["sysbench"] = "".join(f"    events per second:  {one}\n" for one in figures)
    each = 4  # two without a quota, two under it
    hosts.slow_cpus = ["events per second: 40\n"] * each * slow
    seen: list[float] = []
    ceilings = attest(
        hosts, HARDWARE, NEEDS, quietly, apart=lambda found: (seen.append(len(found)), apart)[1]
    ).ceilings
    assert {(one.host, one.what): one.value for one in ceilings}["client-1", "CPU"] == best
    assert seen == [len(ceilings)], "it is asked once, about all figures"
    commands = [command for _, command, _ in hosts.asked if "sysbench" in command]
    asked = [command for command in commands if "--version" not in command]
    assert len(asked) == each * runs
    assert all("for _ in $(seq 5)" in command for command in asked)


def broken_fio(**read: object) -> str:
    """The recorded answer with a read of which this is wrong; without one: with no read."""
    answer = json.loads(ANSWERS["fio"])
    answer["jobs"][1] = {"jobname": "none"} if not read else answer["jobs"][1] | read
    return json.dumps(answer)


@pytest.mark.parametrize(
    ("tool", "answer", "why"),
    [
        ("sysbench", "FATAL: out of luck", r"client-1: sysbench: no events .*FATAL: out of luck"),
        ("fio", broken_fio(error=5), "store-1: fio: read: error 5"),
        ("fio", broken_fio(), "store-1: fio: no iops of read"),
        ("fio", broken_fio(read={"iops": 1e19}), "fio: no iops of read"),
        ("fio", "segfault", r"what it printed is not JSON.*segfault"),
        ("fio", '{"jobs": 7}', "fio: `jobs` is not a list"),
        ("fio", '{"jobs": [7]}', "fio: `jobs` is not a list"),
        ("iperf3", "[1]", "not a JSON object"),
        ("iperf3", '{"end": []}', r"iperf3: no end\.sum_received"),
        ("iperf3", '{"end": {"sum_received": 7}}', "iperf3: no end"),
        ("iperf3", '{"end": {"sum_received": {"bits_per_second": 1e999}}}', "iperf3: no end"),
        ("iperf3", REFUSED, "iperf3: unable to connect to server: Connection refused"),
        ("server", "raise SystemExit(1)", r"gateway-1: iperf3 --server.*ended with 1"),
        # A command that fails.
        *[("", word, "it broke") for word in ("--events=100", "--events=63", "--name=fill")],
        *[("", word, "it broke") for word in ("--name=read", "--client")],
    ],
)
def test_output_without_a_figure_is_an_error_that_quotes_it(
    hosts: RecordedHosts, tool: str, answer: str, why: str
) -> None:
    if not tool:
        hosts.breaks = answer
    elif tool == "server":
        hosts.server = answer
    else:
        hosts.answers[tool] = answer
    with pytest.raises((CommandFailed, TargetError), match=why):
        attest(hosts, HARDWARE, NEEDS, quietly)
    if tool in ("iperf3", "server"):
        hosts.answers["fio"] = IN_PIECES
        with pytest.raises((CommandFailed, TargetError), match=why):
            measure(hosts, HARDWARE, [64_000], quietly)


SIDE = {"io_bytes": 733000, "bw_bytes": 244333, "iops": 2682.211859, "runtime": 3002}
RATES = {"bytes": 50069504, "seconds": 0.011471, "bits_per_second": 34919015953.273468}
JOBS = [{"jobname": job.name, "error": 0, "read": SIDE, "write": SIDE} for job in DISK_JOBS]
SMALL: dict[str, Any] = {"fio": {"jobs": JOBS}, "iperf3": {"end": {"sum_received": RATES}}}
"""What is read of the tools' answers."""
READERS: dict[str, Callable[[str], Sequence[float]]] = {
    "sysbench": lambda printed: [events_per_s(printed)],
    "fio": lambda printed: disk_figures(printed, DISK_JOBS),
    "iperf3": lambda printed: [bits_per_s(printed)],
}


@pytest.mark.parametrize("tool", ANSWERS)
@cases
def test_any_output_of_a_tool_is_figures_or_a_target_error(tool: str, dice: Dice) -> None:
    if tool == "sysbench":
        printed = wrong_text(dice, ANSWERS[tool])
    else:
        printed = wrong_json(dice, SMALL[tool]).decode(errors="replace")
    found = tried(lambda: READERS[tool](printed), TargetError)
    assert all(isinstance(one, float) and math.isfinite(one) and one > 0 for one in found or ())


@pytest.mark.parametrize("name", ["iperf3-3.12.json", "iperf3-3.12-reverse.json"])
def test_figures_are_what_the_tools_counted_by_hand_from_the_same_records(
    hosts: RecordedHosts, name: str
) -> None:
    hosts.answers["iperf3"] = recorded(name)
    hosts.answers["fio"] = "fio: this platform does not support mutexes\n" + ANSWERS["fio"]
    received = json.loads(recorded(name))["end"]["sum_received"]
    jobs = {job["jobname"]: job for job in json.loads(ANSWERS["fio"])["jobs"]}
    found = {one.what: one for one in attest(hosts, HARDWARE, NEEDS, quietly).ceilings}
    assert found["CPU"].value == 626.75
    write, read = jobs["write"]["write"], jobs["random read"]["read"]
    assert found["disk wb0 write"].unit == "B/s"
    assert found["disk wb0 write"].value == pytest.approx(
        write["io_bytes"] / write["runtime"] * 1000, rel=0.01
    )
    assert (found["disk wb1 random read"].value, found["disk wb1 random read"].unit) == (
        read["iops"],
        "1/s",
    )
    # iperf3 counts at both ends; what was sent may still be on its way.
    assert found["network from client-1"].value == pytest.approx(
        received["bytes"] * 8 / received["seconds"], rel=0.01
    )


def test_a_slow_network_gets_more_data_than_its_token_bucket_holds(hosts: RecordedHosts) -> None:
    sent = {}
    for nic in ("1Mbit", "1Gbit", "10Gbit", None):
        specs = {name: {"nic": nic} if nic else {} for name in HARDWARE.hosts}
        hardware = Hardware.model_validate({"name": "h", "kind": "lab", "hosts": specs})
        hosts.asked.clear()
        attest(hosts, hardware, {}, quietly, AttestOptions(all_pairs=True))
        words = hosts.words("--client")
        sent[nic] = int(words[words.index("--bytes") + 1])
    assert sent["1Mbit"] == 2 * 10**6
    assert sent["1Gbit"] == 10**9 * 0.12 / 8
    assert sent[None] == sent["10Gbit"]


def test_reads_hit_the_region_that_was_written_after_a_flush_of_what_was(
    sized: RecordedHosts,
) -> None:
    """Otherwise the disk's own cache answers some of the reads."""
    attest(sized, HARDWARE, NEEDS, quietly, SIZES)
    fill = sized.words("--name=fill")
    words = sized.words("--name=settle", "--filename=/dev/wb0")
    shared = {"--filename=/dev/wb0", f"--size={128 * 2**20}", "--direct=1"}
    assert shared <= {*fill} & {*words}
    assert "--rw=write" in fill
    jobs = [job.split() for job in " ".join(words).split("--name=")[1:]]
    reading = [number for number, job in enumerate(jobs) if {"--rw=read", "--rw=randread"} & {*job}]
    assert len(reading) == 4
    for number in reading:
        assert jobs[number - 1][0] == "settle"
        settle = {"--rw=write", "--number_ios=1", "--end_fsync=1", "--stonewall"}
        assert settle <= {*jobs[number - 1]}
    # Fewer large requests are in flight.
    assert (words.count("--iodepth=16"), words.count("--iodepth=8")) == (4, 4)
    assert {word for word in words if word.startswith("--runtime")} == {"--runtime=2000ms"}


def test_requests_are_complete_blocks_and_large_objects_are_split_as_stores_split_them() -> None:
    asked = pieces([1_000_000, 1, 64 * 10**6, 2**30, 0])
    names = [f"sequential write of {size}" for size in ("1 B", "1 MB", "4 MiB")]
    assert [one.name for one in asked[::4]] == names
    assert [one.block_bytes for one in asked[::4]] == [4096, 1_003_520, 2**22]
    assert len({one.name for one in pieces([1_000_001, 1_000_002])}) == 8
    # Many jobs are shorter.
    assert [piece_s(count) for count in (8, 80, 8000)] == [2.0, 0.375, 0.3]


def test_a_host_without_tools_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite, match="client-1: it has no fio"):
        FakeHost("client-1", "127.0.0.1", tmp_path).tool("fio")


def test_disks_alone_are_measured_at_the_sizes_of_a_suite(sized: RecordedHosts) -> None:
    ceilings = attest(sized, HARDWARE, NEEDS, quietly, SIZES).ceilings
    assert {
        (one.what, one.value, one.unit)
        for one in ceilings
        if one.what.startswith("disk wb0 random")
    } == {
        ("disk wb0 random write of 64 kB", 64_000_000.0, "B/s"),
        ("disk wb0 random read of 64 kB", 64_000_000.0, "B/s"),
        ("disk wb0 random write of 4 MiB", 20.0 * 2**22, "B/s"),
        ("disk wb0 random read of 4 MiB", 20.0 * 2**22, "B/s"),
    }
    assert len(ceilings) == 2 * 8
    assert {(one.operation, one.pick, one.request_bytes) for one in ceilings} == set(
        itertools.product(("read", "write"), ("sequential", "random"), (64_000, 2**22))
    )
    assert set(sized.limits_during("--name=random read of 64 kB")) == {frozenset({"disk"})}
    assert not sized.servers
    # A limit promises bytes of objects, not of blocks.
    found = {one.what: one for one in ceilings}
    assert found["disk wb0 sequential write of 64 kB"].promised == pytest.approx(
        100e6 * 64_000 / 65_536
    )
    assert found["disk wb0 random write of 64 kB"].promised is None
    assert found["disk wb1 random read of 64 kB"].promised == 500 * 64_000


def test_all_pairs_of_hosts_are_measured_both_ways_once(hosts: RecordedHosts) -> None:
    every = {(here, there) for here in HARDWARE.hosts for there in HARDWARE.hosts if here != there}
    for asked in (AttestOptions(all_pairs=True), AttestOptions(sameness=True, all_pairs=True)):
        ceilings = attest(hosts, HARDWARE, {}, quietly, asked).ceilings
        found = [(one.sender, one.receiver) for one in ceilings if one.kind == "network"]
        assert len(found) == len(every)
        assert set(found) == every
        assert len({(one.host, one.what) for one in ceilings}) == len(ceilings)
        by_peer = {
            one.receiver if one.what.startswith("network from") else one.sender: one
            for one in ceilings
            if one.sender
        }
        assert all(one.host in (one.sender, one.receiver) for one in by_peer.values())


def test_every_client_is_measured_with_all_hosts_that_are_no_clients(hosts: RecordedHosts) -> None:
    first, second, *others = HARDWARE.hosts
    several = HARDWARE.model_copy(update={"clients": (first, second)})
    ceilings = attest(hosts, several, {}, quietly).ceilings
    found = {frozenset((one.sender, one.receiver)) for one in ceilings if one.kind == "network"}
    assert found == {frozenset((client, name)) for client in (first, second) for name in others}


def test_disks_are_measured_alone_and_then_all_of_a_host_together(sized: RecordedHosts) -> None:
    found = measure(sized, HARDWARE, [64_000], quietly)
    alone = [one for one in found if one.group == "disk"]
    assert [one.what for one in alone[::4]] == [
        "disk wb0 sequential write of 64 kB",
        "disk wb1 sequential write of 64 kB",
    ]
    assert {one.value for one in alone} == {64e6}
    assert [one.like for one in alone[::4]] == ["1 GiB, 100 MB/s", "300 MiB, 500 requests/s"]
    together = [one for one in found if one.group == "disks"]
    assert {(one.host, one.value) for one in together} == {("store-1", 128e6)}
    # One of the two disks has no limit of random requests: so nothing is promised of both.
    assert [one.promised is not None for one in together] == [True, True, False, False]
    assert set(sized.limits_during("--name=random read of 64 kB")) == {frozenset({"disk"})}


def test_pairs_are_measured_both_ways_and_then_all_hosts_at_once_with_a_server_for_each_flow(
    sized: RecordedHosts,
) -> None:
    found = measure(sized, HARDWARE, [64_000], quietly)
    pairs = {(one.sender, one.receiver) for one in found if one.group == "network"}
    assert pairs == set(itertools.permutations(HARDWARE.hosts, 2))
    value = next(one.value for one in found if one.group == "network")
    fabric = {(one.host, one.job): one for one in found if one.group == "fabric"}
    assert set(fabric) == set(itertools.product(HARDWARE.hosts, ("sent", "received")))
    assert {one.value for one in fabric.values()} == {2 * value}
    assert fabric["client-1", "sent"].promised == 10**9
    # Two servers for the pairs, one for each of the six flows.
    assert len(sized.servers) == 2 + 6


@pytest.mark.parametrize(
    ("name", "why"), [("loopback", "are fake"), ("this-machine", "are this machine as it is")]
)
def test_hosts_that_cannot_be_measured_have_no_baseline(
    tmp_path: Path, name: str, why: str
) -> None:
    hardware = load_hardware(shipped_hardware()[name])
    with (
        pytest.raises(UsageError, match=why),
        bare(hardware, StateFolders(home=tmp_path, state=tmp_path), quietly),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
