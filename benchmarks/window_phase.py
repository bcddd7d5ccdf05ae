"""Whether windows of few requests count as many as workers / mean latency says.

    python benchmarks/window_phase.py [--repeats 10] [RUN ...]

Without runs, Locust's driver reads from a null target with latencies that are known: constant, or
uniform from none to twice the mean. A window in step with its workers counts requests at a phase
that is the same in all repeats, so that no interval shows it: `off by` is throughput by count /
(workers / mean latency) - 1 over all repeats, with the spread of single windows, and `drift` what
second halves of windows counted more than first ones. Of runs, for each cell of a closed loop.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from nulltarget import KEY, USER, NullTarget
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import Prepare, Setup, Step
from weighbridge.results.run.step import Measurement
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Objects, Workload

SEED = 2014
CASES = ((600.0, 0.0), (600.0, 1.0), (150.0, 0.0), (20.0, 0.0))
"""Mean latencies in ms, and their spread in means."""
READS = Workload(
    name="reads",
    objects=Objects(size=4096, containers=1, per_container=20),
    operations={"read": 1.0},
    workers=(1, 4, 16),
    runtime=2.0,
    warmup=0.4,
)
Cell = tuple[str, list[Measurement]]


def on_null_target(delay_ms: float, spread: float, repeats: int) -> Iterator[Cell]:
    """Repeats of reads from a null target with these latencies."""
    argv = [sys.executable, "-m", "weighbridge.drivers.locust"]
    with (
        NullTarget(seed=SEED, delay_ms=delay_ms, delay_spread=spread) as target,
        tempfile.NamedTemporaryFile() as log,
        DriverProcess(
            subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log),
            Path(log.name),
        ) as driver,
    ):
        at = Endpoint(api="s3", url=target.url, user=USER, key=SecretStr(KEY))
        driver.setup(Setup(target=at, bucket_prefix="wb-phase", seed=SEED))
        driver.prepare(Prepare(workload=READS))
        for workers in READS.workers:
            steps = [Step(workload=READS, workers=workers, repeat=n) for n in range(repeats)]
            name = f"{delay_ms:g} ms x (1 +- {spread:g}), {workers} workers"
            yield name, [driver.step(step).measurement for step in steps]


def of_run(folder: Path) -> Iterator[Cell]:
    """The steps of a run, by layout, workload and workers."""
    cells: dict[str, list[Measurement]] = defaultdict(list)
    for step in RunStore.open(folder).steps():
        if step.measurement is not None and step.measurement.begun is None:
            name = f"{step.key.layout}, {step.key.workload}, {step.key.workers}"
            cells[name].append(step.measurement)
    yield from sorted(cells.items())


def line(name: str, measured: Sequence[Measurement]) -> str:
    """By how much the counts of a cell are off, and how they drift."""
    shares, halves = [], [0, 0]
    for one in measured:
        spent_s = sum(tally.sum_us or 0 for tally in one.complete) / 1e6
        shares.append(spent_s / (one.window_s * one.workers) - 1)
        half = int(one.window_s + 0.1) // 2
        for second in one.seconds:
            if second.second < 2 * half:
                halves[second.second // half] += second.count
    drift = halves[1] / max(1, halves[0]) - 1
    spread = statistics.stdev(shares) if len(shares) > 1 else 0.0
    return (
        f"{name:<44} {sum(one.done for one in measured):>7} requests, off by "
        f"{statistics.mean(shares):+6.1%} (sd {spread:.1%}), drift {drift:+7.1%}"
    )


def main() -> None:
    """Measure or read, and print a line for each cell."""
    parser = argparse.ArgumentParser(usage="window_phase.py [--repeats 10] [RUN ...]")
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    for delay_ms, spread in () if options.runs else CASES:
        for cell in on_null_target(delay_ms, spread, options.repeats):
            print(line(*cell), flush=True)
    for run in options.runs:
        print(*(line(*cell) for cell in of_run(run)), sep="\n")


if __name__ == "__main__":
    main()
