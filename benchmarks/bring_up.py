"""Seconds from cached images to the first verified PUT and GET, to a running gateway, and down.

    python benchmarks/bring_up.py [--layouts rgw-beast,swift@swift-2.35] [--runs 5] [--json FILE]

`verified_s`: from nothing to PUT, HEAD, GET and DELETE verified over every API of the layout.
`standing_s`: until it is ready to be measured (RGW: HEALTH_OK and all placement groups clean; both:
facts read, limits applied). `down_s`: tearing everything down. Needs root and the lab's tools;
images are built first and not counted. `load` is the machine's load average before each run:
figures of a busy machine mean little, since Swift's start is purely CPU-bound.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from weighbridge.environment import place
from weighbridge.selection import hardware_named, layout_named
from weighbridge.topologies.deployment import StateFolders, deploy
from weighbridge.topologies.images import ensure
from weighbridge.topologies.loader import split


def once(layout: str, hardware_name: str, where: StateFolders) -> dict[str, float | str]:
    """Start a layout and tear it down; the seconds of each part."""
    hardware = hardware_named(hardware_name)
    planned = layout_named(layout, hardware)
    ensure(planned.gateway.image, lambda _: None, store=where.images)
    load = os.getloadavg()[0]
    verified: list[float] = []
    started = time.monotonic()

    def log(line: str) -> None:
        if line.startswith("verified"):
            verified.append(time.monotonic() - started)

    with deploy(planned, hardware, where, log):
        ready = time.monotonic() - started
        down = time.monotonic()
    return {
        "layout": layout,
        "verified_s": round(verified[0], 2),
        "standing_s": round(ready, 2),
        "down_s": round(time.monotonic() - down, 2),
        "load": round(load, 1),
    }


def main() -> int:
    """Run the layouts in turn; print a row for each run and the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layouts", default="rgw-beast,swift")
    parser.add_argument("--hardware", default="lab-cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    layouts = split(options.layouts)
    rows = []
    for _ in range(options.runs):
        for layout in layouts:
            rows.append(once(layout, options.hardware, place()))
            print(*(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
    for layout in layouts:
        own = [row for row in rows if row["layout"] == layout]
        medians = {
            name: statistics.median(float(row[name]) for row in own)
            for name in ("verified_s", "standing_s", "down_s")
        }
        print(
            f"{layout}: median of {len(own)}:",
            *(f"{name}={value:.2f}" for name, value in medians.items()),
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
