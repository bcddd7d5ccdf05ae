"""What it costs a client to generate load: CPU of several clients with the same null target.

    python benchmarks/driver_cost.py --json FILE [--quick]

Clients are pinned to CPU 0 and the target to CPU 1, so that neither takes the other's time and
their shares do not depend on the scheduler. Rounds are interleaved: every client has one turn in
each, and a row is the median of the rounds. CPU is user and system time of all threads of the
client:

locust-engine  `python -m weighbridge.drivers.locust` with engine users, signing every request:
               inside its window, as it measures itself
engine         the same engine without Locust: inside its window (getrusage)
engine-blind   the same with `verify: 0`: no read is compared with what was written, where the
               others compare the default share
engine-*       the same, writes only, signed and checked in other ways (docs/signing.md): the
               payload's SHA-256, signed chunks, a trailing CRC32 or CRC64NVME; computed for
               each request
locust-sdk     `python -m weighbridge.drivers.locust` with boto3 users: inside its window
wrk            unsigned requests: its complete life (wait4); its start costs some milliseconds
warp           signed requests, if it is installed: its complete life minus that of the shortest
               run, since it prepares its objects in the same process
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from nulltarget import KEY, USER, NullTarget, workload, wrk_put_script
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, Signing
from weighbridge.drivers.engine import _native
from weighbridge.drivers.protocol import (
    EVENT,
    DriverCommand,
    Failed,
    Measured,
    Prepare,
    Prepared,
    Quit,
    Ready,
    Setup,
    Step,
)
from weighbridge.suites import UNSIGNED, Workload
from weighbridge.suites.workload import VERIFIED_SHARE

CLIENT_CPU, TARGET_CPU = "0", 1
WARMUP_S = 1.0
SEED = 2014
GIB = 2**30
WRK_DONE = re.compile(r"(\d+) requests in .*?, .* read")
WRK_BAD = re.compile(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)")
PREFIX = "bench"


@dataclass(frozen=True)
class CostCase:
    """What every client does: `operation` on objects of one size over some connections."""

    operation: Literal["read", "write"]
    object_size_bytes: int
    connections: int

    @property
    def workload(self) -> Workload:
        """The case as a workload; it verifies the default share of reads."""
        objects = 200 if self.object_size_bytes < 2**20 else 4
        record = workload(self.operation, self.object_size_bytes, objects)
        return Workload.model_validate(
            {**record, "warmup": WARMUP_S, "workers": [self.connections], "verify": VERIFIED_SHARE}
        )


@dataclass(frozen=True)
class TurnCost:
    """What a client did in one turn, and its CPU time."""

    count: int
    cpu_s: float
    window_s: float


@dataclass(frozen=True)
class CostRow:
    """One line of the result: medians of the rounds."""

    client: str
    operation: str
    object_size_bytes: int
    connections: int
    cpu_us_per_op: float
    cpu_s_per_gib: float
    ops_s: float


CASES = (
    CostCase("read", 4096, 16),
    CostCase("write", 4096, 16),
    CostCase("read", 64 * 2**20, 4),
    CostCase("write", 64 * 2**20, 4),
)

SIGNED = {
    "signed": Signing(payload="signed"),
    "chunks": Signing(payload="chunks"),
    "crc32": Signing(payload="trailer", checksum="crc32"),
    "crc64nvme": Signing(payload="trailer", checksum="crc64nvme"),
}
"""Ways to sign writes beside the default, by name of the client."""


def pinned(*argv: str) -> list[str]:
    """The command on the clients' CPU."""
    return ["taskset", "-c", CLIENT_CPU, *argv]


@contextmanager
def driver(
    target: NullTarget, users: Literal["engine", "sdk"]
) -> Iterator[Callable[[DriverCommand, type], object]]:
    """A Locust driver; the function sends a command and returns the answering event of a type."""
    with subprocess.Popen(
        pinned(sys.executable, "-m", "weighbridge.drivers.locust"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        commands, events = process.stdin, process.stdout

        def ask(command: DriverCommand, answer_type: type) -> object:
            commands.write(command.model_dump_json() + "\n")
            commands.flush()
            for line in events:
                event = EVENT.validate_json(line)
                if isinstance(event, answer_type):
                    return event
                if isinstance(event, Failed):
                    raise SystemExit(f"drivers.locust: {event.message}")
            raise SystemExit("drivers.locust ended without an answer")

        try:
            access = Endpoint(api="s3", url=target.url, user=USER, key=SecretStr(KEY))
            ask(Setup(target=access, users=users, bucket_prefix=PREFIX, seed=SEED), Ready)
            yield ask
            commands.write(Quit().model_dump_json() + "\n")
            commands.close()
            process.wait(30)
        finally:
            if process.poll() is None:
                process.kill()


def locust(
    users: Literal["engine", "sdk"], target: NullTarget, case: CostCase, window_s: float
) -> TurnCost:
    """A turn of the Locust driver."""
    work = case.workload.model_copy(update={"runtime": window_s})
    with driver(target, users) as ask:
        ask(Prepare(workload=work), Prepared)
        answer = ask(Step(workload=work, workers=case.connections), Measured)
    assert isinstance(answer, Measured)
    measurement = answer.measurement
    [tally] = measurement.tallies
    if tally.failed:
        raise SystemExit(f"locust-{users}: {tally.errors}")
    return TurnCost(tally.count, measurement.load.cpu_s, measurement.window_s)


def engine(
    target: NullTarget,
    case: CostCase,
    window_s: float,
    verify: float = VERIFIED_SHARE,
    signing: Signing = UNSIGNED,
) -> TurnCost:
    """A turn of the engine alone."""
    work = case.workload.model_copy(update={"verify": verify, "signing": signing})
    job = {
        "config": target.config(json.loads(work.model_dump_json()), seed=SEED),
        "connections": case.connections, "warmup_s": WARMUP_S, "window_s": window_s,
    }  # fmt: skip
    program = str(Path(__file__).with_name("direct_engine.py"))
    done = subprocess.run(
        pinned(sys.executable, program),
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120 + window_s,
    )
    result = json.loads(done.stdout)
    if result["errors"]:
        raise SystemExit(f"engine: {result['errors']}")
    return TurnCost(result["count"], result["cpu_s"], window_s)


def lifetime(argv: list[str]) -> tuple[str, float]:
    """Run a command: its output, and the CPU seconds of its complete life."""
    with subprocess.Popen(pinned(*argv), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv[0]} ended with {process.returncode}: {out}")
    return out, used.ru_utime + used.ru_stime


def wrk(target: NullTarget, case: CostCase, window_s: float) -> TurnCost:
    """A turn of wrk. Writes always send the same body, the least that wrk can do."""
    bucket = f"{PREFIX}-{case.workload.name}-0"
    url = f"{target.url}/{bucket}/{_native.object_name(0)}"
    with tempfile.TemporaryDirectory() as folder:
        argv = ["wrk", "-t1", f"-c{case.connections}", f"-d{window_s:.0f}s", "--timeout", "30s"]
        if case.operation == "write":
            script = Path(folder, "put.lua")
            script.write_text(wrk_put_script(folder, SEED, case.object_size_bytes))
            argv += ["-s", str(script)]
        out, cpu_s = lifetime([*argv, url])
    done, bad = WRK_DONE.search(out), WRK_BAD.search(out)
    if done is None or bad is not None:
        raise SystemExit(f"wrk: {out}")
    return TurnCost(int(done[1]), cpu_s, window_s)


def warp(target: NullTarget, case: CostCase, window_s: float) -> TurnCost:
    """A turn of warp: a run of the window's length minus a short one, with the preparation."""
    short_s = 1.0
    long, short = (_warp_once(target, case, length_s) for length_s in (window_s + short_s, short_s))
    return TurnCost(long.count - short.count, long.cpu_s - short.cpu_s, window_s)


def _warp_once(target: NullTarget, case: CostCase, length_s: float) -> TurnCost:
    verb = {"read": "get", "write": "put"}[case.operation]
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            "warp",
            verb,
            f"--host={target.host}:{target.port}",
            f"--access-key={USER}",
            f"--secret-key={KEY}",
            "--no-color",
            f"--obj.size={case.object_size_bytes}",
            f"--concurrent={case.connections}",
            f"--duration={length_s:.0f}s",
            "--disable-multipart",
            "--disable-sha256-payload",
            "--noclear",
            f"--bucket={PREFIX}-warp",
            f"--benchdata={folder}/ops",
        ]
        if verb == "get":
            argv.append(f"--objects={case.workload.objects.per_container}")
        out, cpu_s = lifetime(argv)
        ops, _ = lifetime(["warp", "analyze", "--json", f"{folder}/ops.json.zst"])
    total = json.loads(ops[ops.index("{") :])["total"]
    if total.get("total_errors"):
        raise SystemExit(f"warp: {out}")
    return TurnCost(total["total_requests"], cpu_s, length_s)


CLIENTS: dict[str, Callable[[NullTarget, CostCase, float], TurnCost]] = {
    "locust-engine": lambda *turn: locust("engine", *turn),
    "engine": engine,
    "engine-blind": lambda *turn: engine(*turn, verify=0.0),
    **{
        f"engine-{name}": lambda *turn, how=how: engine(*turn, signing=how)
        for name, how in SIGNED.items()
    },
    "wrk": wrk,
    "locust-sdk": lambda *turn: locust("sdk", *turn),
    "warp": warp,
}


def row(client: str, case: CostCase, turns: list[TurnCost]) -> CostRow:
    """The medians of a client's turns at a case."""
    us_per_op = statistics.median(turn.cpu_s / turn.count * 1e6 for turn in turns)
    ops_s = statistics.median(turn.count / turn.window_s for turn in turns)
    s_per_gib = us_per_op / 1e6 * GIB / case.object_size_bytes
    return CostRow(
        client,
        case.operation,
        case.object_size_bytes,
        case.connections,
        round(us_per_op, 3),
        round(s_per_gib, 5),
        round(ops_s, 1),
    )


def show(rows: list[CostRow]) -> None:
    """Print a table, with each client's cost as a multiple of wrk's."""
    wrk_us_per_op = {
        (one.operation, one.object_size_bytes): one.cpu_us_per_op
        for one in rows
        if one.client == "wrk"
    }
    print(
        f"{'client':14} {'operation':9} {'object_size':>11} {'conn':>4} {'cpu us/op':>11} "
        f"{'cpu s/GiB':>9} {'op/s':>9} {'x wrk':>6}"
    )
    for one in rows:
        base = wrk_us_per_op.get((one.operation, one.object_size_bytes), float("nan"))
        times = one.cpu_us_per_op / base
        print(
            f"{one.client:14} {one.operation:9} {one.object_size_bytes:11} {one.connections:4} "
            f"{one.cpu_us_per_op:11.2f} "
            f"{one.cpu_s_per_gib:9.4f} {one.ops_s:9.1f} {times:6.2f}"
        )


def show_verify(turns: dict[tuple[str, CostCase], list[TurnCost]]) -> None:
    """Print the cost of verifying a share of reads: the median ratio to `verify: 0` by round."""
    for case in CASES:
        pairs = zip(
            turns.get(("engine", case), ()), turns.get(("engine-blind", case), ()), strict=True
        )
        ratios = [
            (with_it.cpu_s / with_it.count) / (blind.cpu_s / blind.count)
            for with_it, blind in pairs
        ]
        if ratios:
            text = (
                f"{statistics.median(ratios):.3f} times ({min(ratios):.3f} to "
                f"{max(ratios):.3f} by round) the CPU of verify: 0"
            )
            print(
                f"verify: {VERIFIED_SHARE:.0%}, {case.operation} of {case.object_size_bytes} "
                f"bytes: {text}"
            )


def show_checksums(turns: dict[tuple[str, CostCase], list[TurnCost]]) -> None:
    """Print how fast trailers are beside their checksum alone: by round, what they cost more than
    no checksum, and what the same function takes for the same bytes by itself in this process.
    """
    for name in ("crc32", "crc64nvme"):
        for case in (one for one in CASES if one.operation == "write"):
            size, times = case.object_size_bytes, max(1, GIB // case.object_size_bytes)
            began_s = time.process_time()
            for _ in range(times):
                _native.checksum(name, SEED, size)
            alone_us = (time.process_time() - began_s) / times * 1e6
            more_us = [
                (one.cpu_s / one.count - plain.cpu_s / plain.count) * 1e6
                for one, plain in zip(
                    turns.get((f"engine-{name}", case), ()), turns[("engine", case)], strict=False
                )
            ]
            if more_us:
                middle_us = statistics.median(more_us)
                print(
                    f"trailing {name} of {size} bytes: {alone_us:.2f} us by itself "
                    f"({size / alone_us / 1000:.1f} GB/s); a PUT costs {middle_us:.2f} us more "
                    f"than without ({min(more_us):.2f} to {max(more_us):.2f} by round)"
                )


def main() -> None:
    """Measure, print the table, write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of 2 s windows instead of 5 rounds of 5 s: a trial, not a result",
    )
    parser.add_argument(
        "--clients",
        nargs="+",
        choices=CLIENTS,
        default=list(CLIENTS),
        help="only these; programs not on PATH are left out",
    )
    options = parser.parse_args()
    clients = [
        name for name in options.clients if name not in ("wrk", "warp") or shutil.which(name)
    ]
    rounds, window_s = (1, 2.0) if options.quick else (5, 5.0)
    turns: dict[tuple[str, CostCase], list[TurnCost]] = {}
    for number in range(rounds):
        for case in CASES:
            with NullTarget(seed=SEED, core=TARGET_CPU) as target:
                target.make_bucket(f"{PREFIX}-{case.workload.name}-0")
                target.put(
                    f"{PREFIX}-{case.workload.name}-0",
                    _native.object_name(0),
                    SEED,
                    case.object_size_bytes,
                )
                for name in clients:
                    if case.operation != "write" and name.removeprefix("engine-") in SIGNED:
                        continue
                    print(
                        f"round {number + 1}/{rounds}: {name}, {case.operation} of "
                        f"{case.object_size_bytes} bytes",
                        file=sys.stderr,
                    )
                    turns.setdefault((name, case), []).append(CLIENTS[name](target, case, window_s))
    rows = [
        row(name, case, turns[name, case])
        for case in CASES
        for name in clients
        if (name, case) in turns
    ]
    show(rows)
    if {"engine", "engine-blind"} <= set(clients):
        show_verify(turns)
    if "engine" in clients:
        show_checksums(turns)
    if options.json:
        options.json.write_text(
            json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
