"""What a probe of a deployment reports."""

from __future__ import annotations

import json

from weighbridge.common import program_lines
from weighbridge.topologies.deployment import Deployment


def counters(deployment: Deployment, name: str) -> dict[str, float]:
    probe = next(one for one in deployment.running_gateway.probes() if one.name == name)
    process = probe.host.spawn(probe.argv, stderr=probe.host.log("probe.err"), env=probe.env)
    assert process.stdout is not None
    try:
        line: dict[str, float] = json.loads(process.stdout.readline())
    finally:
        program_lines.end(process)
    return line
