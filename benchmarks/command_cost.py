"""CPU of `weighbridge --help`, as a person pays it: user + system time of the whole process.

usage: command_cost.py [--runs N] [--json FILE]

The first run may have to compile modules and is left out; the median of the others is reported with
their range.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """CPU of one command over several runs, in milliseconds."""

    command: str
    median_ms: float
    least_ms: float
    most_ms: float
    runs: int


def cpu_ms(argv: list[str]) -> float:
    """CPU milliseconds of one process, its output thrown away.

    Raises RuntimeError when it fails.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 1)]
    pid = os.posix_spawn(argv[0], argv, dict(os.environ), file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    os.close(nothing)
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"{argv} ended with {os.waitstatus_to_exitcode(status)}")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = [str(Path(sys.executable).parent / "weighbridge"), "--help"]
    bare = [sys.executable, "-c", "pass"]
    rows = []
    for name, argv in (("weighbridge --help", command), ("python -c pass", bare)):
        times = [cpu_ms(argv) for _ in range(options.runs + 1)][1:]
        rows.append(Cost(name, statistics.median(times), min(times), max(times), len(times)))
    for row in rows:
        print(
            f"{row.command:<20} {row.median_ms:7.1f} ms CPU ({row.least_ms:.1f} to "
            f"{row.most_ms:.1f}, n = {row.runs})"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
