"""How much repeated attestations of the same hosts differ: the noise below which differences
between deployments mean nothing.

    python benchmarks/attestation.py [--hardware lab-cpu] [--runs 5] [--idle 0] [--json FILE]

Repeatedly starts the hosts of a hardware file, attests them as a run does and tears them down; all
hosts have this machine's files as their root, since no gateway is needed. Prints the figures of
each, how much they differ (as a share of the highest), and the largest difference of each kind: the
bounds of `results.run.telemetry` must be above it. `--idle 0.8` waits before each run until
that share of the machine's CPUs has been idle for two seconds. `others` is the share of the
machine's CPU time that others used meanwhile. Needs root and the lab's tools; the image with the
tools is built first and not counted.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
from pathlib import Path

import psutil

from weighbridge.environment import place
from weighbridge.gateways.gateway import HostNeed
from weighbridge.topologies.attestation import IMAGE, Attestation, attest
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import start_lab
from weighbridge.topologies.loader import load_hardware, shipped_hardware


def needs_of(hardware: Hardware) -> dict[str, HostNeed]:
    """Hosts with disks store data, others but clients are gateways, as in the shipped layouts."""
    return {
        name: HostNeed(
            roles=("any",), disks=len(spec.disks), tier="storage" if spec.disks else "gateway"
        )
        for name, spec in hardware.hosts.items()
        if name not in hardware.clients
    }


def once(hardware: Hardware, tools: Path) -> tuple[Attestation, float]:
    """One attestation, and the share of the machine's CPU time that others used."""
    label = f"attestation-{secrets.token_hex(3)}"
    folder = place().deployments / label
    folder.mkdir(parents=True)
    roots = dict.fromkeys(hardware.hosts, Path("/"))
    try:
        with start_lab(
            label,
            hardware,
            roots,
            lambda _: None,
            folder=folder,
            names=list(hardware.hosts),
            state=place().state,
            tools=tools,
        ) as hosts:
            before = psutil.cpu_times()
            found = attest(hosts, hardware, needs_of(hardware), lambda _: None)
            after = psutil.cpu_times()
            own_s = sum(host.counters().cpu_s or 0.0 for host in hosts.hosts.values())
    finally:
        shutil.rmtree(folder)
    busy_s = (
        sum(after[:8])
        - sum(before[:8])
        - (after.idle - before.idle)
        - (after.iowait - before.iowait)
    )
    return found, max(0.0, busy_s - own_s) / ((psutil.cpu_count() or 1) * found.took_s)


def main() -> int:
    """Run them; print a row for each figure and the largest difference of each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hardware", default="lab-cpu")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--idle", type=float, default=0.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    hardware = load_hardware(shipped_hardware()[options.hardware])
    tools = ensure(IMAGE, print, store=place().images)
    runs = []
    for number in range(options.runs):
        while 1 - psutil.cpu_percent(2) / 100 < options.idle:
            pass
        found, others = once(hardware, tools)
        runs.append(found)
        print(f"run {number + 1}: {found.took_s:.1f} s, others {others:.2f}", flush=True)
    rows = []
    for of in zip(*(run.ceilings for run in runs), strict=True):
        values = [one.value for one in of]
        difference = 1 - min(values) / max(values)
        rows.append(
            {
                "host": of[0].host,
                "kind": of[0].kind,
                "what": of[0].what,
                "values": values,
                "apart": round(difference, 3),
            }
        )
        print(
            f"{of[0].host:10} {of[0].what:28} {difference:6.1%} ",
            *(f"{value:.4g}" for value in values),
            of[0].unit,
        )
    for kind in ("cpu", "disk", "network"):
        largest = max((float(row["apart"]) for row in rows if row["kind"] == kind), default=0.0)
        print(f"{kind}: differences up to {largest:.1%}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
