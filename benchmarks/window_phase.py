"""Whether windows of few requests count as many as workers / mean latency says.

    python benchmarks/window_phase.py [--repeats 10]
    python benchmarks/window_phase.py RUN ...

Without runs, Locust's driver reads from a null target with latencies that are known: constant, or
uniform from none to twice the mean. A window that opens or closes in step with its workers counts
requests at a phase, which is the same in all repeats, so that no interval shows it: `off by` is
throughput by count / (workers / mean latency) - 1, over all repeats, with the spread of single
windows. `drift` is what the second half of windows counted more than the first. Of runs it is shown
for each closed loop of each layout.
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
WORKERS = (1, 4, 16)

Cell = tuple[str, list[Measurement]]


def on_null_targets(repeats: int) -> Iterator[Cell]:
    """Repeats of reads from null targets with these latencies."""
    with tempfile.TemporaryDirectory() as folder:
        for delay_ms, spread in CASES:
            reads = Workload(
                name="reads",
                objects=Objects(size=4096, containers=1, per_container=20),
                operations={"read": 1.0},
                workers=WORKERS,
                runtime=2.0,
                warmup=0.4,
            )
            argv = [sys.executable, "-m", "weighbridge.drivers.locust"]
            log = Path(folder, "driver.log")
            with (
                NullTarget(seed=SEED, delay_ms=delay_ms, delay_spread=spread) as target,
                log.open("wb") as stderr,
                DriverProcess(
                    subprocess.Popen(
                        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
                    ),
                    log,
                ) as driver,
            ):
                at = Endpoint(api="s3", url=target.url, user=USER, key=SecretStr(KEY))
                driver.setup(Setup(target=at, bucket_prefix="wb-phase", seed=SEED))
                driver.prepare(Prepare(workload=reads))
                for workers in WORKERS:
                    steps = [
                        Step(workload=reads, workers=workers, repeat=n) for n in range(repeats)
                    ]
                    measured = [driver.step(step).measurement for step in steps]
                    yield f"{delay_ms:g} ms x (1 +- {spread:g}), {workers} workers", measured


def of_run(folder: Path) -> Iterator[Cell]:
    """The steps of a run, by layout, workload and workers."""
    cells: dict[str, list[Measurement]] = defaultdict(list)
    for step in RunStore.open(folder).steps():
        if step.measurement is not None and step.measurement.begun is None:
            key = step.key
            cells[f"{key.layout}, {key.workload}, {key.workers}"].append(step.measurement)
    yield from sorted(cells.items())


def line(name: str, measured: Sequence[Measurement]) -> str:
    """By how much the counts of a cell are off, and how they drift."""
    shares, halves = [], [0, 0]
    for one in measured:
        spent_s = sum(tally.sum_us or 0 for tally in one.complete) / 1e6
        shares.append(spent_s / (one.window_s * one.workers) - 1)
        complete = int(one.window_s + 0.1)
        for second in one.seconds:
            if not complete // 2 <= second.second < complete - complete // 2:
                halves[second.second >= complete // 2] += second.count
    drift = f"{halves[1] / halves[0] - 1:+7.1%}" if halves[0] else "      -"
    spread = statistics.stdev(shares) if len(shares) > 1 else 0.0
    count = sum(one.done for one in measured)
    return (
        f"{name:<44} {count:>7} requests, off by {statistics.mean(shares):+6.1%} "
        f"(sd {spread:.1%}), drift {drift}"
    )


def main() -> int:
    """Measure or read, and print a line for each cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run folders")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    cells = [cell for run in options.runs for cell in of_run(run)]
    for name, measured in cells or on_null_targets(options.repeats):
        print(line(name, measured), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
