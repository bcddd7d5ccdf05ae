"""CPU and memory of a command, by default `weighbridge --help`: user + system time of all its
processes, and the most that one of them had in memory.

usage: command_cost.py [--runs N] [--json FILE] [-- report RUN --no-charts]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path


def cpu_ms(argv: list[str]) -> float:
    """CPU milliseconds of one process, its output discarded. Raises RuntimeError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="the command's own words")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    words = options.words or ["--help"]
    command = [str(Path(sys.executable).parent / "weighbridge"), *words]
    bare = [sys.executable, "-c", "pass"]
    rows = []
    for name, argv in ((f"weighbridge {words[0]}", command), ("python -c pass", bare)):
        # The first run may have to compile modules and is not counted.
        times = [cpu_ms(argv) for _ in range(options.runs + 1)][1:]
        figures = {"median_ms": statistics.median(times), "least_ms": min(times)}
        rows.append({"command": name, **figures, "most_ms": max(times), "runs": len(times)})
        print(
            f"{name:<20} {figures['median_ms']:7.1f} ms CPU ({min(times):.1f} to "
            f"{max(times):.1f}, n = {len(times)})"
        )
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"at most {peak_mb:.0f} MB in memory")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
