"""How the period of the hosts' CPU quota affects latencies of the same layout with the same limits.

    python benchmarks/cpu_period.py [--layouts rgw-beast,swift] [--hardware lab-cpu]
        [--periods 100ms,20ms,10ms,5ms] [--workers 4,16] [--rounds 3] [--seconds 5]
        [--size 64KB] [--json FILE]

Each layout is deployed once; then reads run once at every worker count with each period, repeated
in every round with the periods in another order (rotated). Only the period changes: quotas are the
same share of a CPU on all hosts, including the client. The load is the suite's Locust driver, whose
engine times every request from when it is sent, so that a stall of the host is in the latency of
each request that waited for it. A figure is the median of the rounds, max the largest.

`throttled` is what the gateway's host counted while the step ran: the share of its quota's periods
in which it ran out, the share of the time that it was stopped, and the mean length of a stop.
`limited` names the figures that the rule of `results.figures.use` attributes to the
quota. `others` is the share of this machine's CPUs that neither the hosts nor this program used:
figures of a busy machine mean little. `slice` is the kernel's (sched_cfs_bandwidth_slice_us), which
is read and never changed. Needs root and the lab's tools; images are built first and not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from weighbridge.common.host import Counters
from weighbridge.common.quantities import parse_seconds
from weighbridge.conductor.opening import opened
from weighbridge.drivers.protocol import Driver, Prepare, Step
from weighbridge.environment import place
from weighbridge.results.figures.use import Throttled
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Pass
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import Suite, Workload
from weighbridge.topologies.deployment import Deployment, deploy
from weighbridge.topologies.hardware import quota_of, slice_words
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab.cgroup import Cgroups, LabMachine
from weighbridge.topologies.lab.host import LabHost
from weighbridge.topologies.loader import split

PERCENTS = (50.0, 90.0, 99.0)
FIGURES = ("p50", "p90", "p99", "max")
GATEWAY = "gateway-1"
THROTTLING_COLUMNS = ("periods throttled", "time", "each ms", "set by the limit", "others")


@dataclass(frozen=True)
class PeriodRow:
    """One step. Latencies are in milliseconds, shares are of 1; throttling is the gateway's."""

    layout: str
    workers: int
    period_ms: float
    op_s: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    periods_throttled: float
    time_throttled: float
    stall_ms: float
    limited: tuple[str, ...]
    """Which of p50, p90, p99 and max the gateway's quota is said to determine."""
    others: float
    """Share of the machine's CPUs that others used while the step ran."""


def set_period(deployment: Deployment, period_s: float) -> None:
    """Apply this period to the quotas of all hosts."""
    cgroups = Cgroups()
    for name, host in deployment.hosts.items():
        if not isinstance(host, LabHost):
            raise TypeError(f"{name} is not a lab host")
        spec = deployment.hardware.hosts[name]
        devices = tuple(disk.number for disk in host.bundle.disks)
        for write in cgroups.limits(host.bundle.cgroup, spec, devices, {"cpu"}, period_s=period_s):
            write.apply()


def throttled(
    before: Counters, after: Counters, cpus: float, period_s: float, took_s: float
) -> Throttled:
    """How the gateway's host was throttled between two samples of its counters."""
    grown = [
        float(getattr(after, name) or 0) - float(getattr(before, name) or 0)
        for name in ("cpu_periods", "throttled_periods", "throttled_s")
    ]
    quota = quota_of(cpus, period_s)
    return Throttled(
        host=GATEWAY,
        quota_cpus=cpus,
        period_ms=quota.period_us / 1e3,
        periods=grown[0],
        throttled_periods=grown[1],
        throttled_s=grown[2],
        window_s=took_s,
    )


def others_cpu_s(deployment: Deployment, machine: LabMachine) -> float:
    """CPU seconds of this machine that neither the hosts nor this process used so far."""
    total = machine.counters()
    return (
        (total.cpu_s or 0.0)
        - (total.conductor_cpu_s or 0.0)
        - sum(one.counters().cpu_s or 0.0 for one in deployment.hosts.values())
    )


def once(
    deployment: Deployment, driver: Driver, workload: Workload, workers: int, period_s: float
) -> PeriodRow:
    """One step with one period."""
    set_period(deployment, period_s)
    gateway = deployment.hosts[GATEWAY]
    machine = LabMachine()
    before, started_s = gateway.counters(), time.monotonic()
    others_before_s = others_cpu_s(deployment, machine)
    measured = driver.step(Step(workload=workload, workers=workers, repeat=0)).measurement
    took_s = time.monotonic() - started_s
    cpus = deployment.hardware.hosts[GATEWAY].cpus or 1.0
    held = throttled(before, gateway.counters(), cpus, period_s, took_s)
    [tally] = measured.tallies
    latency = Histogram.decode(tally.latency or "")
    others = (others_cpu_s(deployment, machine) - others_before_s) / took_s / machine.cpus
    lengths_ms = [latency.percentile_us(percent) / 1e3 for percent in PERCENTS]
    lengths_ms.append((tally.max_us or 0) / 1e3)
    return PeriodRow(
        layout=deployment.layout.name,
        workers=workers,
        period_ms=period_s * 1e3,
        op_s=round(tally.count / measured.window_s, 1),
        p50_ms=lengths_ms[0],
        p90_ms=lengths_ms[1],
        p99_ms=lengths_ms[2],
        max_ms=lengths_ms[3],
        periods_throttled=round(held.share_of_periods, 3) if held else 0.0,
        time_throttled=round(held.share_of_time or 0.0, 3) if held else 0.0,
        stall_ms=round(held.stall_ms or 0.0, 2) if held else 0.0,
        limited=tuple(
            name
            for name, percent, length_ms in zip(
                FIGURES, (*PERCENTS, 100.0), lengths_ms, strict=True
            )
            if held and held.touches(percent, length_ms)
        ),
        others=round(max(0.0, others), 2),
    )


def measure(name: str, options: argparse.Namespace) -> list[PeriodRow]:
    """All rounds of one layout on one deployment."""
    hardware = hardware_named(options.hardware)
    planned = layout_named(name, hardware)
    ensure(planned.gateway.image, print, store=place().images)
    workers = tuple(int(word) for word in options.workers.split(","))
    periods_s = [float(str(parse_seconds(word))) for word in options.periods.split(",")]
    workload = Workload.model_validate(
        {
            "name": "read",
            "objects": {"size": options.size, "containers": 2, "per_container": 100},
            "operations": {"read": 100},
            "workers": workers,
            "runtime": options.seconds,
            "warmup": 1.0,
        }
    )
    suite = Suite(name="cpu-period", about="", api=("swift",), workloads=(workload,))
    rows: list[PeriodRow] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        deploy(planned, hardware, place(), print) as deployment,
        opened(
            deployment,
            suite,
            Pass(api="swift", workloads=(workload,)),
            prefix="wb-period",
            log=Path(folder) / "driver.log",
        ) as ready,
    ):
        ready.driver.prepare(Prepare(workload=workload))
        for number, count in product(range(options.rounds), workers):
            shift = number % len(periods_s)
            for period_s in periods_s[shift:] + periods_s[:shift]:
                rows.append(once(deployment, ready.driver, workload, count, period_s))
                print(*(f"{key}={value}" for key, value in asdict(rows[-1]).items()), flush=True)
    return rows


def table(rows: Sequence[PeriodRow]) -> str:
    """Medians over the rounds, as Markdown."""
    lines = [
        (
            "| layout | workers | period ms | op/s | p50 ms | p90 ms | p99 ms | max ms | "
            f"{' | '.join(THROTTLING_COLUMNS)} |"
        ),
        f"| --- |{' ---: |' * 10} --- | ---: |",
    ]
    for cell in dict.fromkeys((row.layout, row.workers, row.period_ms) for row in rows):
        own = [row for row in rows if (row.layout, row.workers, row.period_ms) == cell]
        figures = [
            statistics.median(getattr(row, name) for row in own)
            for name in ("op_s", "p50_ms", "p90_ms", "p99_ms")
        ]
        figures.append(max(row.max_ms for row in own))
        shares = [
            statistics.median(getattr(row, name) for row in own)
            for name in ("periods_throttled", "time_throttled")
        ]
        stall_ms = statistics.median(row.stall_ms for row in own)
        # Figures that are limited in most of the rounds.
        limited = [one for one in FIGURES if 2 * sum(one in row.limited for row in own) > len(own)]
        others = statistics.median(row.others for row in own)
        words = [cell[0], str(cell[1]), f"{cell[2]:g}", *(f"{value:.3g}" for value in figures)]
        words += [
            *(f"{100 * share:.0f} %" for share in shares),
            f"{stall_ms:.3g}",
            " ".join(limited) or "-",
            f"{100 * others:.0f} %",
        ]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def main() -> int:
    """Run all layouts; print a row for each step, and the table of medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layouts", default="rgw-beast,swift")
    parser.add_argument("--hardware", default="lab-cpu")
    parser.add_argument("--periods", default="100ms,20ms,10ms,5ms")
    parser.add_argument("--workers", default="4,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", default="64KB")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"slice: {slice_words()}")
    rows = [row for name in split(options.layouts) for row in measure(name, options)]
    print(table(rows))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
