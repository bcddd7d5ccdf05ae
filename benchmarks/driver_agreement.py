"""Whether the engine, wrk and a plain asyncio client see the same of the same target.

    python benchmarks/driver_agreement.py --json FILE [--rounds N] [--sizes BYTES...] [--workers N...]

Three clients that share no code ask the null target for objects and write them, 4 KiB and 1 MiB, with 1 to 64 connections that
each have one request outstanding. Rounds are interleaved: each client has its turn in each, in an order that turns from round to
round, and is compared with the others of the same round; a figure is the median of the rounds. Bounds: throughput within 3 %,
and p50, p90 and p99 within 0.2 ms + 3 %.

Clients of which one takes a hundred times the CPU of another for a request can only agree where none of them, nor the target, is
short of CPU. The target therefore holds each answer back by a known delay (`DELAYS_MS`), which is most of what a request takes: it
is chosen so that the dearest client, in Python, uses half of its CPU at most. Client and target have a CPU each, of which a
program of the idle class keeps either from sleeping, and run before all other programs (SCHED_RR), which on a machine that
does something else beside would otherwise be measured as well.

Answers that come at once are written one after the other, 1 MiB in 0.25 ms, and who reads all of them a piece at a time gets each
after all: 16 workers that begin together stay together, and have 44 ms where those that came apart have 40. Workers of the engine
and of the asyncio client therefore begin one after the other over the length of a delay; wrk's, which cannot, come apart by
themselves, since it reads one answer to its end before the next.

wrk has no warm-up, and its connections start at once: its first requests are among its figures, and its last ones, cut off,
are not. A turn is therefore as long as 150 requests of a connection at least, so that neither end comes to 1 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final

from driver_accuracy import awake
from nulltarget import NullTarget, workload

from drivers.engine import _native
from results.histogram import Histogram

CLIENT_CPU, TARGET_CPU = 0, 1
SEED: Final = 2014
WARMUP_S: Final = 0.5
LEAST_TURN_S: Final = 4.0
REQUESTS_A_TURN: Final = 150
PERCENTS: Final = (50, 90, 99)
WORKERS: Final = (1, 4, 16, 64)
SIZES: Final = (4096, 2**20)
DELAYS_MS: Final = {
    4096: {1: 10.0, 4: 10.0, 16: 20.0, 64: 40.0},
    2**20: {1: 10.0, 4: 10.0, 16: 40.0, 64: 100.0},
}
"""By object size in bytes and workers."""
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
        """How long the target holds an answer back."""
        return DELAYS_MS[self.object_size_bytes][self.workers]

    @property
    def apart_s(self) -> float:
        """How long after the one before it a worker begins."""
        return self.delay_ms / 1000 / self.workers

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

    @classmethod
    def of(cls, told: dict[str, object]) -> Seen:
        """From what a client printed."""
        count, window_s, percentiles = told["count"], told["window_s"], told["percentiles_us"]
        assert isinstance(count, int)
        assert isinstance(window_s, float)
        assert isinstance(percentiles, list)
        return cls(count / window_s, *(round(one / 1000, 4) for one in percentiles))


@dataclass(frozen=True)
class Row:
    """The engine beside another client: medians over the rounds. Differences are the engine's less the other's."""

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
    within: bool


def run(argv: list[str], stdin: str = "") -> str:
    """A client's turn, on its CPU and before all other programs; what it printed."""
    pinned = ["chrt", "-r", "10", "taskset", "-c", str(CLIENT_CPU), *argv]
    done = subprocess.run(pinned, input=stdin, stdout=subprocess.PIPE, text=True, check=False, timeout=300)
    if done.returncode:
        raise SystemExit(f"{argv[0]} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def engine(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of the engine, without Locust."""
    work = workload(case.operation, case.object_size_bytes, 4)
    job = {
        "config": target.config(work, seed=SEED), "connections": case.workers, "apart_s": case.apart_s, "warmup_s": WARMUP_S,
        "window_s": turn_s,
    }  # fmt: skip
    told = json.loads(run([sys.executable, str(Path(__file__).with_name("direct_engine.py"))], json.dumps(job)))
    if told["errors"]:
        raise SystemExit(f"engine: {told['errors']}")
    latency = Histogram.decode(told["latency"])
    return Seen.of({**told, "percentiles_us": [latency.percentile_us(percent) for percent in PERCENTS]})


def wrk(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of wrk. Writes send the same body again and again."""
    with tempfile.TemporaryDirectory() as folder:
        script, body = Path(folder, "agreement.lua"), Path(folder, "body")
        text = WRK_DONE
        if case.operation == "write":
            body.write_bytes(_native.content(SEED, case.object_size_bytes, 0, case.object_size_bytes))
            text += f'wrk.method = "PUT"\nlocal file = io.open("{body}", "rb")\nwrk.body = file:read("*a")\nfile:close()\n'
        script.write_text(text)
        argv = ["wrk", "-t1", f"-c{case.workers}", f"-d{turn_s:.0f}s", "--timeout", "30s", "-s", str(script)]
        out = run([*argv, f"{target.url}{case.path}"])
    told = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    if told["errors"]:
        raise SystemExit(f"wrk: {out}")
    return Seen.of(told)


def plain(target: NullTarget, case: Case, turn_s: float) -> Seen:
    """A turn of the asyncio client."""
    job = {
        "port": target.port, "method": {"read": "GET", "write": "PUT"}[case.operation], "path": case.path,
        "body_bytes": case.object_size_bytes if case.operation == "write" else 0, "connections": case.workers,
        "apart_s": case.apart_s, "warmup_s": WARMUP_S, "window_s": turn_s,
    }  # fmt: skip
    return Seen.of(json.loads(run([sys.executable, str(Path(__file__).with_name("asyncio_client.py"))], json.dumps(job))))


CLIENTS: dict[str, Callable[[NullTarget, Case, float], Seen]] = {"engine": engine, "wrk": wrk, "asyncio": plain}


def turns(case: Case, number: int) -> dict[str, Seen]:
    """One round: every client's turn, in an order that turns with the round's number."""
    turn_s = float(round(max(LEAST_TURN_S, REQUESTS_A_TURN * case.delay_ms / 1000)))
    names = list(CLIENTS)
    shift = number % len(names)
    seen = {}
    with NullTarget(seed=SEED, core=TARGET_CPU, delay_ms=case.delay_ms, first=True) as target:
        target.make_bucket(case.bucket)
        target.put(case.bucket, _native.object_name(0), SEED, case.object_size_bytes)
        for name in names[shift:] + names[:shift]:
            seen[name] = CLIENTS[name](target, case, turn_s)
            print(f"round {number + 1}, {case}: {name} {seen[name]}", file=sys.stderr)
    return seen


def row(case: Case, other: str, rounds: list[dict[str, Seen]]) -> Row:
    """The engine beside another client in the same rounds."""
    middle = statistics.median
    ratio = middle(one["engine"].ops_s / one[other].ops_s for one in rounds)
    within = abs(ratio - 1) <= THROUGHPUT_BOUND
    apart = []
    for name in (f"p{percent}_ms" for percent in PERCENTS):
        pairs = [(getattr(one["engine"], name), getattr(one[other], name)) for one in rounds]
        apart.append(middle(ours - theirs for ours, theirs in pairs))
        within &= abs(apart[-1]) <= LATENCY_BOUND_MS + LATENCY_BOUND * middle(theirs for _, theirs in pairs)
    ops_s, p50_ms = (middle(getattr(one["engine"], name) for one in rounds) for name in ("ops_s", "p50_ms"))
    figures = (round(ops_s, 1), round(ratio, 4), round(p50_ms, 3), *(round(one, 3) for one in apart))
    return Row(case.operation, case.object_size_bytes, case.workers, case.delay_ms, other, *figures, within)


def table(rows: list[Row]) -> str:
    """The rows as a table of Markdown."""
    columns = ("operation", "size", "workers", "delay ms", "engine op/s", "engine p50 ms", "beside")
    columns += ("throughput", "p50 ms", "p90 ms", "p99 ms", "agree")
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for one in rows:
        size = {4096: "4 KiB", 2**20: "1 MiB"}[one.object_size_bytes]
        cells = [one.operation, size, str(one.workers), f"{one.delay_ms:g}", f"{one.engine_ops_s:g}", f"{one.engine_p50_ms:.2f}"]
        cells += [one.other, f"{one.ratio:.3f}", *(f"{apart:+.2f}" for apart in (one.p50_ms, one.p90_ms, one.p99_ms))]
        lines.append(f"| {' | '.join(cells)} | {'yes' if one.within else 'no'} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, print the table, write the rows. Exit status 1 where they do not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each client (3); one is a look, not a result")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, metavar="BYTES")
    parser.add_argument("--workers", type=int, nargs="+", choices=WORKERS, default=WORKERS, metavar="N")
    asked = parser.parse_args()
    cases = [Case(operation, size, workers) for size, operation, workers in product(asked.sizes, ("read", "write"), asked.workers)]
    rows = []
    with awake((CLIENT_CPU, TARGET_CPU)):
        for case in cases:
            rounds = [turns(case, number) for number in range(asked.rounds)]
            rows += [row(case, other, rounds) for other in CLIENTS if other != "engine"]
    print(table(rows))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8")
    return 0 if all(one.within for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
