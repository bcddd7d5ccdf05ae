"""Whether the engine, wrk and a plain asyncio client measure the same of the same target.

    python benchmarks/driver_agreement.py --json FILE [--rounds N] [--sizes BYTES...]
        [--workers N...]

Three clients that share no code read and write objects of 4 KiB and 1 MiB at the null target, over
1 to 64 connections that each have one request outstanding. Rounds are interleaved: each client has
one turn in each, in an order that rotates from round to round, and is compared with the others of
the same round; a figure is the median of the rounds. Bounds: throughput within 3 %, and p50, p90
and p99 within 0.2 ms + 3 %.

Clients of which one takes a hundred times the CPU of another per request can only agree where none
of them, nor the target, is short of CPU. The target therefore delays each response, for most of the
time of a request (`DELAYS_MS`), so that neither it nor the most expensive client, in Python, is
busy for more than about 40 % of the time; the table shows how busy the busiest was. Client and
target have a CPU each, which a program of the idle class keeps awake, and run before all other
programs (SCHED_RR), which would otherwise be measured too on a busy machine.

Delays are drawn from half of the mean to one and a half of it. If they were all the same, workers
that once sent requests together would stay in step, and their responses, which the target writes
one after the other, would arrive in bursts of 16 to 64 MiB: what a client measures then depends on
the order in which it reads its connections. Each turn has its own target, which draws the same
delays in the same order for all clients of a round, and others in the next round.

All turns are measured the same way: from the first request, since wrk has no warm-up, and without
what is in flight at the end.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from driver_accuracy import awake
from nulltarget import NullTarget, workload, wrk_put_script

from weighbridge.drivers.engine import _native
from weighbridge.results.run.histogram import Histogram

CLIENT_CPU, TARGET_CPU = 0, 1
SEED: Final = 2014
SPREAD: Final = 0.5
LEAST_TURN_S: Final = 3.0
REQUESTS_PER_TURN: Final = 40
"""Per connection: the request in flight at the end, which none counts, is at most 2.5 %."""
PERCENTS: Final = (50, 90, 99)
WORKERS: Final = (1, 4, 16, 64)
SIZES: Final = (4096, 2**20)
DELAYS_MS: Final = {
    4096: {1: 10.0, 4: 10.0, 16: 20.0, 64: 40.0},
    2**20: {1: 10.0, 4: 10.0, 16: 20.0, 64: 80.0},
}
"""Means, by object size in bytes and workers."""
THROUGHPUT_BOUND, LATENCY_BOUND, LATENCY_BOUND_MS = 0.03, 0.03, 0.2

# Prints a line with the count and percentiles in microseconds, as wrk keeps them.
WRK_DONE = """
done = function(summary, latency, requests)
  local bad = summary.errors
  io.write(string.format(
    '{"count": %d, "window_s": %f, "percentiles_us": [%f, %f, %f], "errors": %d}\\n',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50), latency:percentile(90), latency:percentile(99),
    bad.connect + bad.read + bad.write + bad.status + bad.timeout))
end
"""


@dataclass(frozen=True)
class AgreementCase:
    """What every client does: `operation` on objects of one size over some connections."""

    operation: str
    object_size_bytes: int
    workers: int

    @property
    def delay_ms(self) -> float:
        """How long the target delays a response, on average."""
        return DELAYS_MS[self.object_size_bytes][self.workers]

    @property
    def bucket(self) -> str:
        """Where its objects are."""
        return f"bench-{self.operation}-{self.object_size_bytes}-0"

    @property
    def path(self) -> str:
        """The object for clients that use only one."""
        return f"/{self.bucket}/{_native.object_name(0)}"


@dataclass(frozen=True)
class TurnFigures:
    """What a client measured in one turn."""

    ops_s: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    client_cpus: float
    """CPUs that it used."""

    @classmethod
    def of(cls, result: dict[str, Any]) -> TurnFigures:
        """From a client's output."""
        at_ms = (round(one / 1000, 4) for one in result["percentiles_us"])
        window_s = result["window_s"]
        return cls(result["count"] / window_s, *at_ms, round(result["cpu_s"] / window_s, 3))


@dataclass(frozen=True)
class AgreementRow:
    """The engine compared with another client (engine minus other): medians of the rounds."""

    operation: str
    object_size_bytes: int
    workers: int
    delay_ms: float
    other: str
    engine_ops_s: float
    ratio: float
    engine_p50_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    busiest_cpus: float
    """CPUs used by the busiest of the target and these two clients."""
    within: bool


def run(argv: list[str], stdin: str = "") -> str:
    """A client's turn, on its CPU and before all other programs; returns its output."""
    pinned = ["chrt", "-r", "10", "taskset", "-c", str(CLIENT_CPU), *argv]
    done = subprocess.run(
        pinned, input=stdin, stdout=subprocess.PIPE, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise SystemExit(f"{argv[0]} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def children_cpu_s() -> float:
    """CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_program(name: str, job: dict[str, Any]) -> dict[str, Any]:
    """A turn of a Python client beside this file: its result for a job."""
    result: dict[str, Any] = json.loads(
        run([sys.executable, str(Path(__file__).with_name(name))], json.dumps(job))
    )
    return result


def engine(target: NullTarget, case: AgreementCase, turn_s: float) -> TurnFigures:
    """A turn of the engine, without Locust."""
    work = workload(case.operation, case.object_size_bytes, 4)
    job = {
        "config": target.config(work, seed=target.seed),
        "connections": case.workers,
        "warmup_s": 0.0,
        "window_s": turn_s,
    }
    result = run_program("direct_engine.py", job)
    if result["errors"]:
        raise SystemExit(f"engine: {result['errors']}")
    latency = Histogram.decode(result["latency"])
    result["percentiles_us"] = [latency.percentile_us(percent) for percent in PERCENTS]
    return TurnFigures.of(result)


def wrk(target: NullTarget, case: AgreementCase, turn_s: float) -> TurnFigures:
    """A turn of wrk. Writes always send the same body."""
    with tempfile.TemporaryDirectory() as folder:
        script, text = Path(folder, "agreement.lua"), WRK_DONE
        if case.operation == "write":
            text += wrk_put_script(folder, target.seed, case.object_size_bytes)
        script.write_text(text)
        argv = ["wrk", "-t1", f"-c{case.workers}", f"-d{turn_s:.0f}s", "--timeout", "30s"]
        before_s = children_cpu_s()
        out = run([*argv, "-s", str(script), f"{target.url}{case.path}"])
        cpu_s = children_cpu_s() - before_s
    result = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    if result["errors"]:
        raise SystemExit(f"wrk: {out}")
    return TurnFigures.of({**result, "cpu_s": cpu_s})


def plain(target: NullTarget, case: AgreementCase, turn_s: float) -> TurnFigures:
    """A turn of the asyncio client."""
    job = {
        "port": target.port,
        "method": {"read": "GET", "write": "PUT"}[case.operation],
        "path": case.path,
        "body_bytes": case.object_size_bytes if case.operation == "write" else 0,
        "connections": case.workers,
        "window_s": turn_s,
    }
    return TurnFigures.of(run_program("asyncio_client.py", job))


CLIENTS: dict[str, Callable[[NullTarget, AgreementCase, float], TurnFigures]] = {
    "engine": engine,
    "wrk": wrk,
    "asyncio": plain,
}


def turns(case: AgreementCase, number: int) -> dict[str, tuple[TurnFigures, float]]:
    """One round: each client's turn, in rotated order, and the CPUs that the target used in it."""
    turn_s = float(round(max(LEAST_TURN_S, REQUESTS_PER_TURN * case.delay_ms / 1000)))
    names = list(CLIENTS)
    shift = number % len(names)
    figures_by_client = {}
    for name in names[shift:] + names[:shift]:
        with NullTarget(
            seed=SEED + number,
            core=TARGET_CPU,
            delay_ms=case.delay_ms,
            delay_spread=SPREAD,
            first=True,
        ) as target:
            target.make_bucket(case.bucket)
            target.put(case.bucket, _native.object_name(0), target.seed, case.object_size_bytes)
            before_s = target.cpu_s()
            one = CLIENTS[name](target, case, turn_s)
            figures_by_client[name] = one, round((target.cpu_s() - before_s) / turn_s, 3)
        print(f"round {number + 1}, {case}: {name} {figures_by_client[name]}", file=sys.stderr)
    return figures_by_client


def row(
    case: AgreementCase, other: str, rounds: list[dict[str, tuple[TurnFigures, float]]]
) -> AgreementRow:
    """The engine compared with another client in the same rounds."""
    middle = statistics.median
    pairs = [(one["engine"][0], one[other][0]) for one in rounds]
    ratio = middle(ours.ops_s / theirs.ops_s for ours, theirs in pairs)
    within = abs(ratio - 1) <= THROUGHPUT_BOUND
    differences = []
    for name in (f"p{percent}_ms" for percent in PERCENTS):
        figures = [(getattr(ours, name), getattr(theirs, name)) for ours, theirs in pairs]
        differences.append(middle(ours - theirs for ours, theirs in figures))
        within &= abs(differences[-1]) <= LATENCY_BOUND_MS + LATENCY_BOUND * middle(
            theirs for _, theirs in figures
        )
    busiest = middle(
        max(cpus for name in ("engine", other) for cpus in (one[name][0].client_cpus, one[name][1]))
        for one in rounds
    )
    ops_s, p50_ms = (
        middle(getattr(ours, name) for ours, _ in pairs) for name in ("ops_s", "p50_ms")
    )
    return AgreementRow(
        operation=case.operation,
        object_size_bytes=case.object_size_bytes,
        workers=case.workers,
        delay_ms=case.delay_ms,
        other=other,
        engine_ops_s=round(ops_s, 1),
        ratio=round(ratio, 4),
        engine_p50_ms=round(p50_ms, 3),
        p50_ms=round(differences[0], 3),
        p90_ms=round(differences[1], 3),
        p99_ms=round(differences[2], 3),
        busiest_cpus=round(busiest, 3),
        within=within,
    )


def table(rows: list[AgreementRow]) -> str:
    """The rows as a Markdown table."""
    columns = ("operation", "size", "workers", "delay ms", "engine op/s", "engine p50 ms", "beside")
    columns += ("throughput", "p50 ms", "p90 ms", "p99 ms", "busiest CPU", "agree")
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for one in rows:
        size = {4096: "4 KiB", 2**20: "1 MiB"}[one.object_size_bytes]
        cells = [
            one.operation,
            size,
            str(one.workers),
            f"{one.delay_ms:g}",
            f"{one.engine_ops_s:g}",
            f"{one.engine_p50_ms:.2f}",
        ]
        cells += [
            one.other,
            f"{one.ratio:.3f}",
            *(f"{apart:+.2f}" for apart in (one.p50_ms, one.p90_ms, one.p99_ms)),
        ]
        cells.append(f"{one.busiest_cpus:.0%}")
        lines.append(f"| {' | '.join(cells)} | {'yes' if one.within else 'no'} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table, write the rows. Exit status 1 if the clients do not agree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        metavar="N",
        help="turns of each client (3); one is a trial, not a result",
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, metavar="BYTES"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", choices=WORKERS, default=WORKERS, metavar="N"
    )
    options = parser.parse_args()
    cases = [
        AgreementCase(operation, size, workers)
        for size, operation, workers in product(options.sizes, ("read", "write"), options.workers)
    ]
    rows = []
    with awake((CLIENT_CPU, TARGET_CPU)):
        for case in cases:
            rounds = [turns(case, number) for number in range(options.rounds)]
            rows += [row(case, other, rounds) for other in CLIENTS if other != "engine"]
    print(table(rows))
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8"
        )
    return 0 if all(one.within for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
