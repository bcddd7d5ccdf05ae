"""Whether disks with a model take the time of their model, and what their program costs.

    python benchmarks/disk_models.py [--models spinning-7200,sata-ssd,nvme,ideal] [--depths 1,4,32]
        [--seconds 5] [--rounds 3] [--size 1GiB] [--json FILE]

For each model a disk is served as in a deployment, a loop device attached to its file, and fio
loads it directly: random requests of 4 KiB, sequential ones of 1 MiB, and random writes that are
each followed by fsync, at every depth (fsync at depth 1 alone: fio waits for all requests before).
`model` is what `vdisk_server simulate` says of the same load; both begin with an empty cache. The
figure is the median of the rounds.

The disk's file was written once before, so that its data are in memory. The way through loop device
and FUSE is measured first: with a disk of 2 ms, whose requests find idle CPUs, and with one that
takes no time, whose requests find CPUs at work. A model's `overhead` makes up for the latter.

`late` is how much later than the model the program sent its answers, for each of them: what the
machine added after the program knew what to do. Where a figure differs by more than 5 %, the row
says which part of the machine explains at least half of it: late answers, the way through idle
CPUs, or no CPU that is free. `CPU` is what the program itself used for a request, by the account
of its threads. Needs root, fio and FUSE; figures of a busy machine mean little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from weighbridge.common.host import ModelDiskCounters
from weighbridge.common.quantities import parse_bytes
from weighbridge.topologies.disk_models import (
    DISK_MODELS,
    DiskFigures,
    DiskLoad,
    DiskModel,
    SpinningDisk,
    simulate,
)
from weighbridge.topologies.lab import model_disks
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.disk import LoopDisk, attached
from weighbridge.topologies.lab.model_disks import ModelDisks, WantedDisk

LABEL = f"bench-disks-{os.getpid()}"
END_S = 60.0
AGREES = 0.05
BUSY = 0.15
"""The share of idle CPUs below which the machine is said to be the limit."""
LONGER = 50
WAY_MODEL = DISK_MODELS["ideal"].model_copy(
    update={"read_latency": 2e-3, "variation": 0.0, "base": "way"}
)


@dataclass(frozen=True)
class DiskJob:
    """What fio does. `rw` is fio's name."""

    rw: str
    request_bytes: int
    fsync: bool = False

    @property
    def name(self) -> str:
        """Such as `randread 4 KiB`."""
        size = f"{self.request_bytes // 1024} KiB"
        return f"{self.rw} {size}{' + fsync' if self.fsync else ''}"


JOBS = (
    DiskJob("randread", 4096),
    DiskJob("randwrite", 4096),
    DiskJob("read", 2**20),
    DiskJob("write", 2**20),
    DiskJob("randwrite", 4096, fsync=True),
)


@dataclass(frozen=True)
class DiskRow:
    """One job at one depth. Times in microseconds; `model_*` None: the model has no limit."""

    model: str
    job: str
    depth: int
    per_s: float
    model_per_s: float | None
    mean_us: float
    model_mean_us: float | None
    fsync_us: float | None
    model_fsync_us: float | None
    late_us: float
    cpu_us: float
    idle_cpus: float
    """How many CPUs of the machine had nothing to do, on average."""
    apart: float | None
    """Requests a second relative to the model's, less 1."""
    limited_by: str


class ServedDisk:
    """A disk of one model, attached."""

    def __init__(
        self, model: DiskModel, size_bytes: int, disks: ModelDisks, loop: LoopDisk
    ) -> None:
        self.model = model
        self.size_bytes = size_bytes
        self.device = f"/dev/loop{loop.minor}"
        self._disks = disks

    def counts(self) -> ModelDiskCounters:
        """What it has done."""
        return self._disks.counts()[f"{LABEL}.disk"]

    def empty(self) -> None:
        """Empty its cache."""
        self._disks.pace(on=False)
        self._disks.pace(on=True)

    def cpu_s(self) -> float:
        """CPU time of the program, from the scheduler (nanoseconds, not ticks)."""
        tasks = Path(f"/proc/{self._disks.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def served(model: DiskModel, size_bytes: int) -> Iterator[ServedDisk]:
    """A disk as in a deployment, removed after the block."""
    cgroups = Cgroups()
    with (
        tempfile.TemporaryDirectory(prefix="weighbridge-bench-") as name,
        Path("/dev/null").open("rb") as lock,
    ):
        folder = Path(name)
        wanted = WantedDisk(f"{LABEL}.disk", folder / "file", size_bytes, model)
        disks = ModelDisks.start(
            LABEL,
            [wanted],
            cgroups=cgroups,
            folder=folder,
            log=folder / "log",
            lock=lock.fileno(),
        )
        try:
            loop = LoopDisk.over("/dev/bench", disks.path(wanted.name))
            try:
                disk = ServedDisk(model, size_bytes, disks, loop)
                fio(disk.device, DiskJob("write", 2**20), 4, None, 1)
                yield disk
            finally:
                loop.close()
                model_disks.end([disks.pid])
                deadline = time.monotonic() + END_S
                while (attached(loop.minor) or disks.is_up()) and time.monotonic() < deadline:
                    time.sleep(0.01)
        finally:
            disks.kill()
            cgroups.remove(f"/weighbridge/{LABEL}")


def idle_s() -> float:
    """Seconds that all CPUs together had nothing to do."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def fio(device: str, job: DiskJob, depth: int, seconds: float | None, seed: int) -> Any:
    """The figures of a job; None: over the disk once. The seed is another one in each round."""
    words = [
        *("fio", f"--name={job.rw}", f"--filename={device}", f"--rw={job.rw}"),
        *(f"--bs={job.request_bytes}", f"--iodepth={depth}", "--direct=1", "--ioengine=libaio"),
        *("--thread", "--output-format=json"),
        *(["--time_based", f"--runtime={seconds}"] if seconds is not None else []),
        *(f"--randseed={seed}", *(["--fsync=1"] if job.fsync else [])),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["jobs"][0]


def expected(disk: ServedDisk, job: DiskJob, depth: int, seconds: float) -> DiskFigures | None:
    """What the model says of the same load: of a spinning disk's few requests, for longer, except
    where a cache fills meanwhile.
    """
    steady = job.fsync or not job.rw.endswith("write")
    longer = LONGER if steady and isinstance(disk.model, SpinningDisk) else 1
    load = DiskLoad(
        write=job.rw.endswith("write"),
        random=job.rw.startswith("rand"),
        bytes=job.request_bytes,
        depth=depth,
        span=disk.size_bytes,
        flush=job.fsync,
        seconds=seconds * longer,
    )
    return simulate(disk.model, disk.size_bytes, load)


def once(
    disk: ServedDisk, job: DiskJob, depth: int, seconds: float, seed: int, way_us: float = 0.0
) -> DiskRow:
    """One run of fio beside the model, beginning with an empty cache."""
    disk.empty()
    before, cpu_before_s, idle_before_s = disk.counts(), disk.cpu_s(), idle_s()
    started_s = time.monotonic()
    found = fio(disk.device, job, depth, seconds, seed)
    took_s = time.monotonic() - started_s
    after, cpu_s, idle = disk.counts(), disk.cpu_s() - cpu_before_s, idle_s() - idle_before_s
    figures = found["read" if "read" in job.rw else "write"]
    requests = sum(
        getattr(after, name) - getattr(before, name) for name in ("reads", "writes", "flushes")
    )
    model = expected(disk, job, depth, seconds)
    late_us = (after.late_s - before.late_s) / max(requests, 1) * 1e6
    apart = None if model is None else figures["iops"] / model.per_s - 1
    row = DiskRow(
        model=disk.model.base,
        job=job.name,
        depth=depth,
        per_s=figures["iops"],
        model_per_s=None if model is None else model.per_s,
        mean_us=figures["lat_ns"]["mean"] / 1e3,
        model_mean_us=None if model is None else model.mean_s * 1e6,
        fsync_us=found["sync"]["lat_ns"]["mean"] / 1e3 if job.fsync else None,
        model_fsync_us=model.flush_s * 1e6 if job.fsync and model is not None else None,
        late_us=late_us,
        cpu_us=cpu_s / max(requests, 1) * 1e6,
        idle_cpus=idle / took_s,
        apart=apart,
        limited_by="",
    )
    return DiskRow(**{**asdict(row), "limited_by": judged(row, way_us)})


def judged(row: DiskRow, way_us: float) -> str:
    """What decides a row: the model, the machine, or something else that has to be explained.

    `way_us` is the way through idle CPUs, beyond what the model makes up for.
    """
    if row.apart is None or row.model_mean_us is None:
        return "machine: no model"
    if abs(row.apart) <= AGREES:
        return "model"
    beyond_us = (row.mean_us + (row.fsync_us or 0)) - (
        row.model_mean_us + (row.model_fsync_us or 0)
    )
    halves = 2 if row.fsync_us is not None else 1
    if row.late_us * halves >= beyond_us / 2 > 0:
        return "machine: late answers"
    if (row.late_us + way_us) * halves >= beyond_us / 2 > 0:
        return "machine: way through idle CPUs"
    if row.idle_cpus < BUSY * (os.cpu_count() or 1):
        return "machine: no CPU left"
    return "unexplained"


def table(rows: Sequence[DiskRow]) -> Iterator[str]:
    """Lines for people."""
    yield (
        f"{'model':14}{'job':25}{'depth':>6}{'op/s':>10}{'model':>10}{'apart':>8}{'mean us':>10}"
        f"{'model':>10}{'fsync us':>10}{'model':>10}{'late us':>9}{'CPU us':>8}{'idle':>6}  limit"
    )

    def show(value: float | None, width: int) -> str:
        return f"{'-' if value is None else format(value, '.1f'):>{width}}"

    for one in rows:
        apart = "-" if one.apart is None else f"{one.apart:+.1%}"
        yield (
            f"{one.model:14}{one.job:25}{one.depth:>6}{show(one.per_s, 10)}"
            f"{show(one.model_per_s, 10)}{apart:>8}{show(one.mean_us, 10)}"
            f"{show(one.model_mean_us, 10)}{show(one.fsync_us, 10)}{show(one.model_fsync_us, 10)}"
            f"{show(one.late_us, 9)}{show(one.cpu_us, 8)}{one.idle_cpus:>6.2f}  {one.limited_by}"
        )


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--models", default=",".join(DISK_MODELS))
    parser.add_argument("--depths", default="1,4,32")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", default="1GiB")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    size_bytes = parse_bytes(asked.size)
    if not isinstance(size_bytes, int):
        parser.error("--size needs a size such as 1GiB")
    model_disks.require()
    depths = [int(depth) for depth in asked.depths.split(",")]
    probe = DiskJob("randread", 4096)
    with served(WAY_MODEL, size_bytes) as disk:
        row = once(disk, probe, 1, asked.seconds, 1)
        idle_us = row.mean_us - (row.model_mean_us or 0.0)
    with served(DISK_MODELS["ideal"], size_bytes) as disk:
        busy_us = once(disk, probe, 1, asked.seconds, 1).mean_us
    print(f"way through loop and FUSE: {busy_us:.0f} us with CPUs at work, {idle_us:.0f} us idle")
    rows: list[DiskRow] = []
    for name in asked.models.split(","):
        model = DISK_MODELS[name]
        way_us = max(0.0, idle_us - model.overhead * 1e6)
        with served(model, size_bytes) as disk:
            for job, depth in product(JOBS, depths):
                if job.fsync and depth > 1:
                    continue
                seeds = range(1, asked.rounds + 1)
                runs = [once(disk, job, depth, asked.seconds, seed, way_us) for seed in seeds]
                middle = statistics.median_low([one.per_s for one in runs])
                rows.append(next(one for one in runs if one.per_s == middle))
                head, line = table(rows[-1:])
                print(*((head, line) if len(rows) == 1 else (line,)), sep="\n", flush=True)
    if asked.json:
        document = {
            "way_busy_us": busy_us,
            "way_idle_us": idle_us,
            "rows": [asdict(one) for one in rows],
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
