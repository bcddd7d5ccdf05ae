"""Whether the engine, wrk and a plain asyncio client see the same of the same target.

    python benchmarks/driver_agreement.py --json FILE [--rounds N] [--sizes BYTES...] [--workers
    N...]

Three clients that share no code ask the null target for objects and write them, 4 KiB and 1 MiB,
with 1 to 64 connections that each have one request outstanding. Rounds are interleaved: each client
has its turn in each, in an order that turns from round to round, and is compared with the others of
the same round; a figure is the median of the rounds. Bounds: throughput within 3 %, and p50, p90
and p99 within 0.2 ms + 3 %.

Clients of which one takes a hundred times the CPU of another for a request can only agree where
none of them, nor the target, is short of CPU. The target therefore holds each answer back, which is
most of what a request takes (`DELAYS_MS`), so that neither it nor the dearest client, in Python, is
busy for more than about 40 % of the time; how busy the busiest was is in the table. Client and
target have a CPU each, of which a program of the idle class keeps either from sleeping, and run
before all other programs (SCHED_RR), which on a machine that does something else beside would
otherwise be measured as well.

Delays are drawn, from half of the mean to one and a half of it. Were they all the same, workers
that once asked together would do so for ever, and their answers, of which the target writes one
after the other, would come in bursts of 16 to 64 MiB: what a client sees of those depends on the
order in which it empties its connections. Each turn has a target of its own that draws the same
delays in the same order for all clients of a round, and others in the next round.

All turns are measured alike: from the first request on, since wrk has no warm-up, and without what
is in flight at the end.
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
from nulltarget import NullTarget, workload

from weighbridge.drivers.engine import _native
from weighbridge.results.record.histogram import Histogram

CLIENT_CPU, TARGET_CPU = 0, 1
SEED: Final = 2014
SPREAD: Final = 0.5
LEAST_TURN_S: Final = 3.0
REQUESTS_A_TURN: Final = 40
"""Of one connection: the one in flight at the end, which nobody counts, is then no more than 2.5 %
of any client's.
"""
PERCENTS: Final = (50, 90, 99)
WORKERS: Final = (1, 4, 16, 64)
SIZES: Final = (4096, 2**20)
DELAYS_MS: Final = {
    4096: {1: 10.0, 4: 10.0, 16: 20.0, 64: 40.0},
    2**20: {1: 10.0, 4: 10.0, 16: 20.0, 64: 80.0},
}
"""Means, by object size in bytes and workers."""
THROUGHPUT_BOUND, LATENCY_BOUND, LATENCY_BOUND_MS = 0.03, 0.03, 0.2

# Percentiles in microseconds and the count, as wrk itself keeps them, in a line of its own.
WRK_DONE = """
done = function(summary, latency, requests)
  local bad = summary.errors
  io.write(string.format('{"count": %d, "window_s": %f, "percentiles_us": [%f, %f, %f], "errors": %d}\\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(90), latency:percentile(99),
    bad.connect + bad.read + bad.write + bad.status + bad.timeout))
end
"""


@dataclass(frozen=True)
class Case:
    """What every client does: `operation` on objects of one size over so many connections."""

    operation: str
    object_size_bytes: int
    workers: int

    @property
    def delay_ms(self) -> float:
        """How long the target holds an answer back, on average."""
        return DELAYS_MS[self.object_size_bytes][self.workers]

    @property
    def bucket(self) -> str:
        """Where its objects are."""
        return f"bench-{self.operation}-{self.object_size_bytes}-0"

    @property
    def path(self) -> str:
        """The object that those clients ask for that ask for one alone."""
        return f"/{self.bucket}/{_native.object_name(0)}"


@dataclass(frozen=True)
class Seen:
    """What a client saw in one turn."""

    ops_s: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    client_cpus: float
    """CPUs that it used."""

    @classmethod
    def of(cls, told: dict[str, Any]) -> Seen:
        """From what a client printed."""
        at_ms = (round(one / 1000, 4) for one in told["percentiles_us"])
        return cls(
            told["count"] / told["window_s"], *at_ms, round(told["cpu_s"] / told["window_s"], 3)
        )


@dataclass(frozen=True)
class Row:
    """The engine beside another client: medians over the rounds.

    Differences are the engine's less the other's.
    """

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
    """CPUs used by the busiest of the target and of these two clients."""
    within: bool


def run(argv: list[str], stdin: str = "") -> str:
    """A client's turn, on its CPU and before all other programs; what it printed."""
    pinned = ["chrt", "-r", "10", "taskset", "-c", str(CLIENT_CPU), *argv]
    done = subprocess.run(
        pinned, input=stdin, stdout=subprocess.PIPE, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise SystemExit(f"{argv[0]} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def children_cpu_s() -> float:
    """CPU seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def engine(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of the engine, without Locust."""
    work = workload(case.operation, case.object_size_bytes, 4)
    job = {
        "config": target.config(work, seed=target.seed), "connections": case.workers, "warmup_s": 0.0, "window_s": turn_s,
    }  # fmt: skip
    told = json.loads(
        run([sys.executable, str(Path(__file__).with_name("direct_engine.py"))], json.dumps(job))
    )
    if told["errors"]:
        raise SystemExit(f"engine: {told['errors']}")
    latency = Histogram.decode(told["latency"])
    return Seen.of(
        {**told, "percentiles_us": [latency.percentile_us(percent) for percent in PERCENTS]}
    )


def wrk(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of wrk. Writes send the same body again and again."""
    with tempfile.TemporaryDirectory() as folder:
        script, body = Path(folder, "agreement.lua"), Path(folder, "body")
        text = WRK_DONE
        if case.operation == "write":
            body.write_bytes(
                _native.content(target.seed, case.object_size_bytes, 0, case.object_size_bytes)
            )
            text += (
                f'wrk.method = "PUT"\nlocal file = io.open("{body}", "rb")\nwrk.body = '
                'file:read("*a")\nfile:close()\n'
            )
        script.write_text(text)
        argv = [
            "wrk",
            "-t1",
            f"-c{case.workers}",
            f"-d{turn_s:.0f}s",
            "--timeout",
            "30s",
            "-s",
            str(script),
        ]
        before_s = children_cpu_s()
        out = run([*argv, f"{target.url}{case.path}"])
        cpu_s = children_cpu_s() - before_s
    told = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    if told["errors"]:
        raise SystemExit(f"wrk: {out}")
    return Seen.of({**told, "cpu_s": cpu_s})


def plain(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of the asyncio client."""
    job = {
        "port": target.port, "method": {"read": "GET", "write": "PUT"}[case.operation], "path": case.path,
        "body_bytes": case.object_size_bytes if case.operation == "write" else 0, "connections": case.workers,
        "window_s": turn_s,
    }  # fmt: skip
    return Seen.of(
        json.loads(
            run(
                [sys.executable, str(Path(__file__).with_name("asyncio_client.py"))],
                json.dumps(job),
            )
        )
    )


CLIENTS: dict[str, Callable[[NullTarget, Case, float], Seen]] = {
    "engine": engine,
    "wrk": wrk,
    "asyncio": plain,
}


def turns(case: Case, number: int) -> dict[str, tuple[Seen, float]]:
    """One round: every client's turn, in an order that turns with the round's number, and the CPUs
    that the target used in it.
    """
    turn_s = float(round(max(LEAST_TURN_S, REQUESTS_A_TURN * case.delay_ms / 1000)))
    names = list(CLIENTS)
    shift = number % len(names)
    seen = {}
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
            seen[name] = one, round((target.cpu_s() - before_s) / turn_s, 3)
        print(f"round {number + 1}, {case}: {name} {seen[name]}", file=sys.stderr)
    return seen


def row(case: Case, other: str, rounds: list[dict[str, tuple[Seen, float]]]) -> Row:
    """The engine beside another client in the same rounds."""
    middle = statistics.median
    pairs = [(one["engine"][0], one[other][0]) for one in rounds]
    ratio = middle(ours.ops_s / theirs.ops_s for ours, theirs in pairs)
    within = abs(ratio - 1) <= THROUGHPUT_BOUND
    apart = []
    for name in (f"p{percent}_ms" for percent in PERCENTS):
        figures = [(getattr(ours, name), getattr(theirs, name)) for ours, theirs in pairs]
        apart.append(middle(ours - theirs for ours, theirs in figures))
        within &= abs(apart[-1]) <= LATENCY_BOUND_MS + LATENCY_BOUND * middle(
            theirs for _, theirs in figures
        )
    busiest = middle(
        max(cpus for name in ("engine", other) for cpus in (one[name][0].client_cpus, one[name][1]))
        for one in rounds
    )
    ops_s, p50_ms = (
        middle(getattr(ours, name) for ours, _ in pairs) for name in ("ops_s", "p50_ms")
    )
    told = (
        round(ops_s, 1),
        round(ratio, 4),
        round(p50_ms, 3),
        *(round(one, 3) for one in apart),
        round(busiest, 3),
    )
    return Row(
        case.operation, case.object_size_bytes, case.workers, case.delay_ms, other, *told, within
    )


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
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
    """Measure, print the table, write the rows. Exit status 1 where they do not agree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        metavar="N",
        help="turns of each client (3); one is a look, not a result",
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, metavar="BYTES"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", choices=WORKERS, default=WORKERS, metavar="N"
    )
    asked = parser.parse_args()
    cases = [
        Case(operation, size, workers)
        for size, operation, workers in product(asked.sizes, ("read", "write"), asked.workers)
    ]
    rows = []
    with awake((CLIENT_CPU, TARGET_CPU)):
        for case in cases:
            rounds = [turns(case, number) for number in range(asked.rounds)]
            rows += [row(case, other, rounds) for other in CLIENTS if other != "engine"]
    print(table(rows))
    if asked.json:
        asked.json.write_text(
            json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8"
        )
    return 0 if all(one.within for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
