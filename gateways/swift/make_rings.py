"""Rings by Swift's own builder, as a program on a host with Swift: one process instead of a dozen.

stdin is JSON `{"part_power": n, "seed": n, "rings": {type: {"replicas": n, "devices": [device,
...]}}}`, each device with zone, ip, port and name. stdout is JSON, the ring files by type in
base64.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


def ring(order: dict[str, Any], own: dict[str, Any]) -> bytes:
    """The content of one ring file."""
    from swift.common.ring import RingBuilder  # type: ignore[import-not-found]  # noqa: PLC0415 - installed only on the hosts where this runs

    builder = RingBuilder(order["part_power"], own["replicas"], 0)
    for one in own["devices"]:
        builder.add_dev(
            {
                "region": 1,
                "zone": one["zone"],
                "ip": one["ip"],
                "port": one["port"],
                "replication_ip": one["ip"],
                "replication_port": one["port"],
                "device": one["device"],
                "weight": 100.0,
                "meta": "",
            }
        )
    builder.rebalance(seed=order["seed"])
    builder.validate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ring.gz"
        builder.get_ring().save(str(path))
        return path.read_bytes()


if __name__ == "__main__":
    order = json.load(sys.stdin)
    json.dump(
        {kind: base64.b64encode(ring(order, own)).decode() for kind, own in order["rings"].items()},
        sys.stdout,
    )
