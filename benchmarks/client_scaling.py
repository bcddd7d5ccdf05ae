"""How throughput scales with load clients: 1, 2 and 4 lab hosts with the null target.

    python benchmarks/client_scaling.py --json FILE [--quick]      (needs root, as the lab does)

All hosts run at once, in one deployment per case; rounds are interleaved, each number of clients
has one turn in each, and a row is the median of the rounds. Locust's driver runs as in a
comparison: its master and a worker process on the first client, a worker process on each of the
others. A row has the ratio of its throughput to that of one client, and that ratio divided by the
number of clients: 1 is linear. `client_share` is the CPU of the busiest client relative to its
limit.

waiting    clients of half a core; every response takes 20 ms, so that the 8 workers of each make
           400 requests per second and use little CPU: any loss is the cost of the master and of
           merging
loaded     the same with 48 workers per client. They run in step, since all wait equally long, so
           the null target's one thread answers 192 requests one after the other:
           D / (D + n s) of linear is the maximum, with s = 9 us for each of n
small      responses come at once and every client uses its full fifth of a core: CPU-bound
           clients that leave enough of a machine of two cores for the null target
busy       the same with half a core per client. Four of these are two cores: if the machine has
           no more, they compete with the null target and each other; see `machine_share` (of all
           CPUs) and `target_cpus`
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Literal

from weighbridge.conductor.opening import opened
from weighbridge.drivers.protocol import Prepare, Step
from weighbridge.environment import place
from weighbridge.gateways.null.null import Null, NullPlacement, NullSettings
from weighbridge.results.run.step import Measurement, Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.cgroup import LabMachine
from weighbridge.topologies.loader import Layout, Planned

COUNTS = (1, 2, 4)
CLIENT_CPUS = {"waiting": 0.5, "loaded": 0.5, "small": 0.2, "busy": 0.5}
DELAY_MS = {"waiting": 20.0, "loaded": 20.0, "small": 0.0, "busy": 0.0}
WORKERS = {"waiting": 8, "loaded": 48, "small": 8, "busy": 8}
"""Per client."""

Case = Literal["waiting", "loaded", "small", "busy"]


@dataclass(frozen=True)
class ScalingTurn:
    """Results of one turn, and the CPU that clients, target and machine used."""

    ops_s: float
    client_share: float
    target_cpus: float
    machine_share: float


@dataclass(frozen=True)
class ScalingRow:
    """One line of the result: medians of the rounds."""

    case: Case
    clients: int
    workers: int
    ops_s: float
    ratio: float
    of_linear: float
    client_share: float
    target_cpus: float
    machine_share: float


def hardware(case: Case, clients: int) -> Hardware:
    """Clients of a case, and a host without limits for the null target."""
    names = [f"client-{number}" for number in range(1, clients + 1)]
    hosts = {
        **{name: {"cpus": CLIENT_CPUS[case], "memory": "512MiB"} for name in names},
        "gateway-1": {},
    }
    return Hardware.model_validate(
        {"name": "scaling", "kind": "lab", "clients": names, "hosts": hosts}
    )


def planned(case: Case) -> Planned:
    """The null target of a case."""
    gateway = Null(
        "engine", NullPlacement(target="gateway-1"), NullSettings(delay_ms=DELAY_MS[case])
    )
    layout = Layout(
        name="null",
        about="the null target",
        gateway="null",
        release="engine",
        place={"target": "gateway-1"},
    )
    return Planned(layout, gateway, "")


def suite(case: Case, window_s: float) -> Suite:
    """Reads of 4 KiB."""
    workload = {
        "name": case,
        "objects": {"size": "4KiB", "containers": 2, "per_container": 50},
        "operations": {"read": 1},
        "workers": [WORKERS[case]],
        "warmup": "1s",
        "runtime": f"{window_s:g}s",
    }
    return Suite.model_validate(
        {"name": "scaling", "about": "How load grows with clients", "workloads": [workload]}
    )


def turn(
    deployment: Deployment, case: Case, options: Suite, clients: int, log: Path
) -> ScalingTurn:
    """One step by the first clients of the deployment."""
    deployment.hardware = hardware(case, clients)
    (workload,) = options.workloads
    machine, target = LabMachine(), deployment.hosts["gateway-1"]
    with opened(
        deployment, options, Pass(api="s3", workloads=(workload,)), prefix="wb-bench", log=log
    ) as ready:
        ready.driver.prepare(Prepare(workload=workload))
        used: list[tuple[float, float, float]] = []

        def sample(phase: str, done_s: float) -> None:
            if phase == "measure":
                used.append(
                    (done_s, target.counters().cpu_s or 0.0, machine.counters().cpu_s or 0.0)
                )

        step = Step(workload=workload, workers=clients * workload.workers[0])
        measurement = ready.driver.step(step, lambda one: sample(one.phase, one.done)).measurement
    (first_s, target_first, machine_first), (last_s, target_last, machine_last) = used[0], used[-1]
    span_s = last_s - first_s
    return ScalingTurn(
        throughput(measurement),
        measurement.load.share if measurement.load is not None else float("nan"),
        (target_last - target_first) / span_s,
        (machine_last - machine_first) / span_s / (machine.cpus or 1),
    )


def throughput(measurement: Measurement) -> float:
    """Operations per second; a failed one ends the benchmark."""
    (tally,) = measurement.tallies
    if tally.failed:
        raise SystemExit(f"{measurement.workload}: {tally.errors}")
    return tally.count / measurement.window_s


def rows(case: Case, turns: dict[int, list[ScalingTurn]]) -> list[ScalingRow]:
    """The medians of a case."""
    middle = {count: statistics.median(one.ops_s for one in mine) for count, mine in turns.items()}
    base = middle[COUNTS[0]]
    return [
        ScalingRow(
            case=case,
            clients=count,
            workers=count * WORKERS[case],
            ops_s=round(middle[count], 1),
            ratio=round(middle[count] / base, 3),
            of_linear=round(middle[count] / base / count, 3),
            client_share=round(statistics.median(one.client_share for one in mine), 3),
            target_cpus=round(statistics.median(one.target_cpus for one in mine), 3),
            machine_share=round(statistics.median(one.machine_share for one in mine), 3),
        )
        for count, mine in turns.items()
    ]


def show(found: list[ScalingRow]) -> None:
    """Print a table."""
    titles = ("clients", "workers", "op/s", "ratio", "of linear", "client", "target", "machine")
    print(f"{'case':8} {''.join(title.rjust(10) for title in titles)}")
    for one in found:
        print(
            f"{one.case:8} "
            f"{one.clients:10}{one.workers:10}{one.ops_s:10.1f}{one.ratio:10.3f}{one.of_linear:10.3f}"
            f"{one.client_share:10.0%}{one.target_cpus:10.2f}{one.machine_share:10.0%}"
        )


def log(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr)


def main() -> None:
    """Measure, print the table, write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of 3 s windows instead of 5 rounds of 10 s: a trial, not a result",
    )
    parser.add_argument(
        "--cases", nargs="+", choices=DELAY_MS, default=list(DELAY_MS), help="only these"
    )
    options = parser.parse_args()
    rounds, window_s = (1, 3.0) if options.quick else (5, 10.0)
    found: list[ScalingRow] = []
    with tempfile.TemporaryDirectory(prefix="client-scaling-") as folder:
        file = Path(folder, "driver.log")
        for case in options.cases:
            turns: dict[int, list[ScalingTurn]] = {count: [] for count in COUNTS}
            with deploy(planned(case), hardware(case, max(COUNTS)), place(), log) as deployment:
                for number, count in product(range(rounds), COUNTS):
                    log(f"{case}, round {number + 1}/{rounds}: {count} clients")
                    turns[count].append(turn(deployment, case, suite(case, window_s), count, file))
            found += rows(case, turns)
    show(found)
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
