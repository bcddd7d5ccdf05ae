"""What a front costs: CPU of the gateway host for anonymous S3 reads, from radosgw directly and
through Apache.

    python benchmarks/front_cost.py [--rounds 3] [--seconds 4] [--connections 32] [--json FILE]

In one deployment of rgw-beast, each turn starts Apache in front of radosgw and stops it: with
mod_proxy_http (`http`), with mod_proxy_fcgi and the FastCGI responder (`fastcgi`), or not at all
(`direct`). wrk reads one object from the client host. Turns are interleaved: every path has one per
round, and a figure is the median of the rounds. CPU is user and system time by program, over all
its processes, in milliseconds per request (ticks of 10 ms); rates are those of a host with limits
and only show that there was load. Needs root, the lab's tools and wrk.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from weighbridge.common.host import Host
from weighbridge.environment import place
from weighbridge.gateways import daemon
from weighbridge.gateways.apache.front import Apache, ApacheSettings
from weighbridge.gateways.front import Backend, Behind
from weighbridge.gateways.ports import await_ports
from weighbridge.selection import hardware_named, layout_named
from weighbridge.topologies.deployment import Deployment, deploy
from weighbridge.topologies.images import ensure

PATHS = ("direct", "http", "fastcgi")
SIZES = {"4KiB": 4096, "1MiB": 1 << 20}
RADOSGW_PORT = 8000
PROGRAMS = ("radosgw", "apache2", "fastcgi_respond")  # the kernel keeps 15 bytes of a name
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
DONE = re.compile(r"(\d+) requests in ")
BAD = re.compile(r"Non-2xx or 3xx responses: \d+|Socket errors: .*")

UPLOAD = """
import json, os, sys, boto3
from botocore.config import Config
e = json.load(sys.stdin)
s3 = boto3.client("s3", endpoint_url=e["url"], region_name=e["region"],
                  aws_access_key_id=e["user"], aws_secret_access_key=e["key"],
                  config=Config(s3={"addressing_style": "path"},
                                request_checksum_calculation="when_required"))
s3.create_bucket(Bucket="open")
for name, size in e["sizes"].items():
    s3.put_object(Bucket="open", Key=name, Body=os.urandom(size), ACL="public-read")
"""


@dataclass(frozen=True)
class PathTurn:
    """One turn of a path: `cpu_ms` by program per request."""

    path: str
    size: str
    requests: int
    seconds: float
    cpu_ms: dict[str, float]
    bad: str


def ticks(host: Host) -> dict[str, int]:
    """CPU ticks by program, of running processes and their ended children."""
    used = dict.fromkeys(PROGRAMS, 0)
    command = ["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || true"]
    for line in host.run(command).stdout.splitlines():
        name, _, rest = line.partition("(")[2].rpartition(")")
        if name in used:
            fields = rest.split()
            # With those of ended children: Apache ends processes while it runs.
            used[name] += sum(int(field) for field in fields[11:15])
    return used


@contextmanager
def front(deployment: Deployment, path: str) -> Iterator[int]:
    """The port of a path, with what it needs running until the block ends."""
    if path == "direct":
        yield RADOSGW_PORT
        return
    host = deployment.hosts["gateway-1"]
    apache = Apache(ApacheSettings.model_validate({"path": path}), Behind())
    for name, text in apache.files(
        host.address, [Backend("radosgw", host.address, RADOSGW_PORT)]
    ).items():
        host.put(name, text)
    daemons = apache.daemons(host)
    daemon.start(daemons)
    try:
        await_ports(deployment.client, daemons, print)
        yield apache.port
    finally:
        for one in daemons:
            host.stop(one.service.name)


def turn(
    deployment: Deployment, path: str, size: str, seconds: float, connections: int
) -> PathTurn:
    """Read one object over a path for some seconds."""
    host = deployment.hosts["gateway-1"]
    with front(deployment, path) as port:
        url = f"http://{host.address}:{port}/open/{size}"
        argv = ["wrk", "-t", "1", "-c", str(connections), "--timeout", "30s", url]
        # Warm up: connections are opened and Apache starts its processes.
        deployment.client.run([*argv, "-d", "1s"])
        before = ticks(host)
        output = deployment.client.run(
            [*argv, "-d", f"{seconds:g}s"], timeout_s=seconds + 60
        ).stdout
        used = {name: value - before[name] for name, value in ticks(host).items()}
    requests = int(DONE.search(output)[1])  # type: ignore[index]
    cpu_ms = {name: round(value * 1000 / TICKS_PER_S / requests, 4) for name, value in used.items()}
    return PathTurn(path, size, requests, seconds, cpu_ms, " ".join(BAD.findall(output)))


def main() -> int:
    """Run the turns; print a row for each and the medians with their ratio to `direct`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    hardware = hardware_named("lab-cpu")
    planned = layout_named("rgw-beast", hardware)
    ensure(planned.gateway.image, print, store=place().images)
    turns: list[PathTurn] = []
    with deploy(planned, hardware, place(), print) as deployment:
        s3 = next(one for one in deployment.endpoints if one.api == "s3")
        order = {**json.loads(s3.model_dump_json()), "sizes": SIZES}
        deployment.client.run([sys.executable, "-c", UPLOAD], stdin=json.dumps(order))
        for _ in range(options.rounds):
            for size in SIZES:
                for path in PATHS:
                    turns.append(turn(deployment, path, size, options.seconds, options.connections))
                    print(
                        *(f"{name}={value}" for name, value in asdict(turns[-1]).items()),
                        flush=True,
                    )
    for size in SIZES:
        direct = 0.0
        for path in PATHS:
            own = [one for one in turns if (one.path, one.size) == (path, size)]
            medians = {
                name: statistics.median(one.cpu_ms[name] for one in own) for name in PROGRAMS
            }
            total = statistics.median(sum(one.cpu_ms.values()) for one in own)
            direct = direct or total
            rate = statistics.median(one.requests / one.seconds for one in own)
            parts = ", ".join(f"{name} {value:.3f}" for name, value in medians.items() if value)
            print(
                f"{size} {path}: {total:.3f} CPU-ms per request ({parts}), {total / direct:.2f} x "
                f"direct; {rate:.0f} requests/s"
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in turns], indent=1) + "\n")
    return 1 if any(one.bad for one in turns) else 0


if __name__ == "__main__":
    sys.exit(main())
