"""What results cost: merging histograms of many drivers, the table of a run, and its report.

usage: aggregation.py [--steps N] [--histograms N] [--report N] [--linear] [--json FILE]

Prepared first, seeded and not counted: a run of N steps (10,000), each with 100 drivers' histograms
of 1000 latencies (1e9 operations by default). Then each stage runs in its own process; printed are
its CPU time (with its child processes), wall time and peak memory (of its largest process):

  sum     merges the histograms of each step, as the Locust driver does, judges the step and
          writes `steps.jsonl`, with one process per CPU
  table   reads `steps.jsonl`, judges every step and writes the table as CSV
  page    derives a run of 200 steps with telemetry, without picture files: table, findings, the
          HTML report with its charts
  report  derives the same run with every picture as PNG, SVG and PDF

`--linear` also measures sum and table at a tenth of the steps, to show that cost is linear in
steps.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass
from functools import lru_cache
from itertools import chain
from multiprocessing import Pool
from pathlib import Path

from weighbridge.drivers.engine._native import added_histograms
from weighbridge.results import derive
from weighbridge.results.figures.summary import read_visits, rows_of
from weighbridge.results.figures.validity import judge
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import Load, Measurement, Second, StepKey, StepResult, Tally
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.tables import rows_table
from weighbridge.suites import Bounds, Objects, Suite, Workload

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from fake_run import fake_run

SECONDS = 20
LATENCIES = 1000
DISTINCT = 500
"""Distinct histograms from which each step's are drawn; duplicates do not make merging faster."""
BANDS = 14
WORKERS = tuple(2**power for power in range(10))
REPEATS = 5
LAYOUTS = ("rgw-beast", "swift")


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage. Wall time includes the start of its process."""

    stage: str
    steps: int
    cpu_s: float
    wall_s: float
    peak_mib: float


@dataclass(frozen=True)
class DriverResult:
    """What one driver reports of its window, as far as it is merged."""

    latency: str
    sum_us: int
    min_us: int
    max_us: int


def driver_results(seed: int) -> list[DriverResult]:
    """Results of drivers, with lognormal latencies around 3 to 30 ms."""
    draw = random.Random(seed)
    made = []
    for _ in range(DISTINCT):
        middle = draw.uniform(8.0, 10.3)
        values = [max(1, round(draw.lognormvariate(middle, 0.4))) for _ in range(LATENCIES)]
        made.append(
            DriverResult(Histogram.of(values).encode(), sum(values), min(values), max(values))
        )
    return made


def keys(steps: int) -> Iterator[StepKey]:
    """The steps of the run: repeats, layouts, workloads, worker counts."""
    workloads = range(-(-steps // (REPEATS * len(LAYOUTS) * len(WORKERS))))
    found = (
        StepKey(
            layout=layout, api="swift", workload=f"read-{number}", workers=workers, repeat=repeat
        )
        for repeat in range(REPEATS)
        for layout in LAYOUTS
        for number in workloads
        for workers in WORKERS
    )
    return (key for _, key in zip(range(steps), found, strict=False))


def prepare(folder: Path, steps: int, histograms: int) -> None:
    """A run folder without steps, and a file with a line of driver results for each step."""
    results = [json.dumps(astuple(one)) for one in driver_results(2014)]
    draw = random.Random(steps)
    with (folder / "driver_results.jsonl").open("w") as file:
        for _ in range(steps):
            file.write(f"[{','.join(draw.choices(results, k=histograms))}]\n")
    names = dict.fromkeys(key.workload for key in keys(steps))
    suite = Suite(
        name="many",
        about="Many steps",
        workloads=tuple(read_workload(name) for name in names),
        repeats=REPEATS,
        layouts=LAYOUTS,
    )
    layouts = [{"name": name, "gateway": "rgw"} for name in LAYOUTS]
    plan = ResolvedPlan.model_validate(
        {"suite": suite.model_dump(), "hardware": {"name": "none"}, "layouts": layouts}
    )
    RunStore.create(folder, plan_yaml="name: many\n", plan=plan, suite=suite.name)


def read_workload(name: str) -> Workload:
    """Reads at every worker count."""
    return Workload(
        name=name,
        objects=Objects(size=64000),
        operations={"read": 1},
        workers=WORKERS,
        runtime=f"{SECONDS}s",
    )


def run_in(folder: Path) -> RunStore:
    """The only run folder of a folder."""
    (found,) = (path for path in folder.iterdir() if path.is_dir())
    return RunStore.open(found)


def merge(folder: Path, steps: int) -> None:
    """Merge and judge each step's histograms into `steps.jsonl`, with one process per CPU.

    Unlike in a run, the lines are not synced one by one.
    """
    with (
        (folder / "driver_results.jsonl").open("rb") as file,
        (run_in(folder).folder / "steps.jsonl").open("w") as out,
        Pool() as pool,
    ):
        jobs = zip(range(steps), keys(steps), file, strict=True)
        out.writelines(pool.imap(step_line, jobs, chunksize=20))


def step_line(job: tuple[int, StepKey, bytes]) -> str:
    """The line of one step, from its drivers' results."""
    order, key, line = job
    encoded, sums_us, lows_us, highs_us = zip(*json.loads(line), strict=True)
    count, sum_us = LATENCIES * len(encoded), sum(sums_us)
    tally = Tally(
        operation="read",
        count=count,
        bytes=count * 64000,
        latency=added_histograms(list(encoded)),
        min_us=min(lows_us),
        max_us=max(highs_us),
        sum_us=sum_us,
    )
    measurement = Measurement(
        api=key.api,
        workload=key.workload,
        workers=key.workers,
        driver="locust-engine",
        started_at="2014-11-04T12:00:00Z",
        window_s=sum_us / 1e6 / key.workers,  # as Little's law requires
        warmup_s=5.0,
        tallies=(tally,),
        seconds=series(count),
        load=Load(cpu_s=1.0, cpu_limit=100.0, window_s=SECONDS),
    )
    verdict = judge(measurement, Bounds())
    step = StepResult(
        key=key, measurement=measurement, valid=verdict.valid, notes=verdict.notes, order=order
    )
    return step.model_dump_json() + "\n"


@lru_cache(maxsize=1)
def series(count: int) -> tuple[Second, ...]:
    """A step's series: the same every second, in as many bands as a gateway's latencies span."""
    each = count // SECONDS
    bands = tuple((band, each // BANDS) for band in range(44, 44 + BANDS))
    return tuple(
        Second(
            second=second,
            operation="read",
            count=each,
            bytes=0,
            errors=0,
            max_us=90_000,
            sum_us=each * 9_000,
            bands=bands,
        )
        for second in range(SECONDS)
    )


def tabulate(folder: Path) -> None:
    """The table of all steps, as CSV."""
    run = run_in(folder)
    plan = run.plan()
    rows = rows_of(plan, read_visits(run, plan, run.steps()))
    (folder / "summary.csv").write_text(rows_table(rows, folder.name).csv)


def prepare_report(folder: Path, steps: int) -> None:
    """A run with telemetry: five repeats of two layouts read at ten worker counts."""
    count = max(1, steps // (REPEATS * len(LAYOUTS) * len(WORKERS)))
    workloads = tuple(read_workload(f"read-{number}") for number in range(count))
    fake_run(folder, workloads=workloads, repeats=REPEATS)


def measured(stage: str, folder: Path, steps: int) -> StageCost:
    """One stage in its own process. Raises CalledProcessError if it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    options = ["--stage", stage, "--folder", str(folder), "--steps", str(steps)]
    answer = subprocess.run(
        [sys.executable, __file__, *options],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return StageCost(stage, steps, cpu_s, wall_s, float(answer.stdout) / 1024)


def costs(steps: int, histograms: int) -> Iterator[StageCost]:
    """The cost of merging and tabulating so many steps."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-aggregation-") as name:
        prepare(Path(name), steps, histograms)
        yield measured("sum", Path(name), steps)
        yield measured("table", Path(name), steps)


def report_costs(steps: int) -> Iterator[StageCost]:
    """The cost of the report of so many steps, without and with picture files."""
    with tempfile.TemporaryDirectory(prefix="weighbridge-aggregation-") as name:
        prepare_report(Path(name), steps)
        yield measured("page", Path(name), steps)
        yield measured("report", Path(name), steps)


def do_stage(stage: str, folder: Path, steps: int) -> None:
    """Run one stage in this process, and print the peak memory of its largest process in KiB."""
    match stage:
        case "sum":
            merge(folder, steps)
        case "table":
            tabulate(folder)
        case _:
            derive(run_in(folder).folder, pictures=stage == "report")
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    print(max(resource.getrusage(who).ru_maxrss for who in whose))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--histograms", type=int, default=100)
    parser.add_argument(
        "--report", type=int, default=200, help="steps of the run for the report; 0: no report"
    )
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--stage", choices=("sum", "table", "page", "report"), help=argparse.SUPPRESS
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        do_stage(options.stage, options.folder, options.steps)
        return
    sizes = [options.steps // 10, options.steps] if options.linear else [options.steps]
    found: list[StageCost] = []
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    stages = [costs(steps, options.histograms) for steps in sizes]
    if options.report:
        stages.append(report_costs(options.report))
    for cost in chain.from_iterable(stages):
        found.append(cost)
        show(cost, options.histograms)
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in found], indent=1) + "\n")


def show(cost: StageCost, histograms: int) -> None:
    """A line of the table."""
    what = f"{cost.steps:,} steps" + (f" x {histograms} histograms" if cost.stage == "sum" else "")
    each = cost.cpu_s / cost.steps * 1e3
    print(
        f"{cost.stage:<7}{what:<30}{cost.cpu_s:8.1f} s CPU{cost.wall_s:8.1f} "
        f"s{cost.peak_mib:8.0f} MiB  {each:.2f} ms CPU per step"
    )


if __name__ == "__main__":
    main()
