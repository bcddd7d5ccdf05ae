"""How accurately the engine measures a null target with a known delay.

    python benchmarks/driver_accuracy.py --json FILE [--quick]

The target delays every response, so the true latency is the delay plus what the kernel takes for
the way there and back. While the engine measures, an independent probe (a blocking socket in its
own process) requests the same target; its figures show how much of an error is the machine's: a
target or client that did not get its CPU in time is late for both. A program of the idle class
keeps each of the two CPUs awake, since waking a sleeping CPU of a virtual machine takes 0.05 to 0.2
ms that are neither the target's nor the driver's. Goal: p90 within 1 % + 0.1 ms of the delay, and
also the maximum if the probe's is. The engine runs on CPU 0, the target on CPU 1.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from hdrh.histogram import HdrHistogram
from nulltarget import NullTarget, workload

from weighbridge.drivers.engine import _native

CLIENT_CPU, TARGET_CPU = 0, 1
SEED = 2014
SIZE_BYTES = 4096
CONNECTIONS = 4


@dataclass(frozen=True)
class AccuracyRow:
    """What one client measured at one delay.

    Errors are measured minus true; `within`: at most 1 % + 0.1 ms.
    """

    client: str
    delay_ms: float
    connections: int
    samples: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    max_ms: float
    p90_error_ms: float
    p90_error_percent: float
    p90_within: bool
    max_error_ms: float
    max_error_percent: float
    max_within: bool


def row(
    client: str, delay_ms: float, connections: int, samples: int, values_ms: Sequence[float]
) -> AccuracyRow:
    """A row of p50, p90, p99 and the maximum."""
    p50, p90, p99, largest = (round(value, 3) for value in values_ms)
    bound_ms = 0.01 * delay_ms + 0.1
    return AccuracyRow(
        client=client,
        delay_ms=delay_ms,
        connections=connections,
        samples=samples,
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        max_ms=largest,
        p90_error_ms=round(p90 - delay_ms, 3),
        p90_error_percent=round((p90 / delay_ms - 1) * 100, 2),
        p90_within=abs(p90 - delay_ms) <= bound_ms,
        max_error_ms=round(largest - delay_ms, 3),
        max_error_percent=round((largest / delay_ms - 1) * 100, 2),
        max_within=abs(largest - delay_ms) <= bound_ms,
    )


@contextmanager
def awake(cpus: Sequence[int]) -> Iterator[None]:
    """Keep CPUs awake: a loop on each, in the class that runs only when nothing else does."""
    with ExitStack() as stack:
        for cpu in cpus:
            code = (
                f"import os; os.sched_setaffinity(0, {{{cpu}}}); os.sched_setscheduler(0, "
                "os.SCHED_IDLE, os.sched_param(0))\n"
                "while True: pass"
            )
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-c", code]
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def probe(port: int, path: str, seconds: float) -> None:
    """Request with a blocking socket for some seconds; print latencies in nanoseconds as JSON.

    Runs in its own process. It reports when it is ready and waits for a line, so that its start is
    outside of the window.
    """
    request = f"GET {path} HTTP/1.1\r\nHost: probe\r\n\r\n".encode()
    latencies_ns = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print("ready", flush=True)
        sys.stdin.readline()
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            began_ns = time.perf_counter_ns()
            connection.sendall(request)
            got = connection.recv(65536)
            while len(got) < got.index(b"\r\n\r\n") + 4 + SIZE_BYTES:
                got += connection.recv(65536)
            latencies_ns.append(time.perf_counter_ns() - began_ns)
    print(json.dumps(latencies_ns))


def idle(engine: _native.Engine) -> bool:
    """Whether no worker runs; raises SystemExit if a request failed."""
    progress = json.loads(engine.progress())
    if progress["failed"]:
        raise SystemExit(f"engine: {progress['errors']}: {progress['last_error']}")
    return not progress["running"]


def measure(delay_ms: float, window_s: float) -> list[AccuracyRow]:
    """What the engine and the probe measure at the same time."""
    with NullTarget(seed=SEED, core=TARGET_CPU, delay_ms=delay_ms) as target:
        work = workload("read", SIZE_BYTES, 100)
        bucket = f"bench-{work['name']}-0"
        target.make_bucket(bucket)
        engine = _native.Engine(json.dumps(target.config(work, seed=SEED)))
        engine.prepare(0, 100, 1, CONNECTIONS)
        while not idle(engine):
            time.sleep(0.01)
        for worker in range(CONNECTIONS):
            engine.add_worker(worker, CONNECTIONS, 0)
        time.sleep(0.3)
        argv = [
            sys.executable,
            __file__,
            "--probe",
            str(target.port),
            f"/{bucket}/{_native.object_name(0)}",
            str(window_s),
        ]
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise SystemExit("the probe did not start")
            engine.open_window()
            out, _ = process.communicate("go\n", timeout=60 + window_s)
            engine.close_window()
        [tally] = json.loads(engine.snapshot())["tallies"]
        idle(engine)
        engine.stop(10.0)
    histogram = HdrHistogram.decode(tally["latency"])
    values_ms = [histogram.get_value_at_percentile(share) / 1000 for share in (50, 90, 99)]
    latencies_ns = sorted(json.loads(out))
    count = len(latencies_ns)
    probed_ms = [
        latencies_ns[min(count - 1, int(count * share))] / 1e6 for share in (0.5, 0.9, 0.99)
    ]
    return [
        row("engine", delay_ms, CONNECTIONS, tally["count"], [*values_ms, tally["max_us"] / 1000]),
        row("probe", delay_ms, 1, count, [*probed_ms, latencies_ns[-1] / 1e6]),
    ]


def show(rows: list[AccuracyRow]) -> None:
    """Print a table."""
    print(
        f"{'client':7} {'delay_ms':>8} {'samples':>8} {'p50_ms':>8} {'p90_ms':>8} {'p99_ms':>8} "
        f"{'max_ms':>8} "
        f"{'p90 error':>18} {'max error':>18}"
    )
    for one in rows:
        verdicts = ["ok" if good else "--" for good in (one.p90_within, one.max_within)]
        print(
            f"{one.client:7} {one.delay_ms:8g} {one.samples:8} {one.p50_ms:8.3f} "
            f"{one.p90_ms:8.3f} {one.p99_ms:8.3f} "
            f"{one.max_ms:8.3f} {one.p90_error_ms:7.3f}ms {one.p90_error_percent:4.1f}% "
            f"{verdicts[0]} "
            f"{one.max_error_ms:7.3f}ms {one.max_error_percent:4.1f}% {verdicts[1]}"
        )


def main() -> None:
    """Measure, print the table, write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="2 s per delay instead of 10 s")
    parser.add_argument(
        "--delays", type=float, nargs="+", default=[1.0, 2.0, 5.0, 10.0, 20.0, 100.0], metavar="MS"
    )
    parser.add_argument(
        "--probe", nargs=3, metavar=("PORT", "PATH", "SECONDS"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.probe:
        probe(int(options.probe[0]), options.probe[1], float(options.probe[2]))
        return
    os.sched_setaffinity(0, {CLIENT_CPU})
    with awake((CLIENT_CPU, TARGET_CPU)):
        rows = [
            one
            for delay_ms in options.delays
            for one in measure(delay_ms, 2.0 if options.quick else 10.0)
        ]
    show(rows)
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
