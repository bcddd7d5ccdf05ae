"""For tests: a pool of a cluster whose programs keep objects as files, and who else has some."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fake_ceph import FakeCeph
from weighbridge.common.ceph_pool import CephPool
from weighbridge.results.record.benched_pool import BenchedPool

Seen = Callable[..., BenchedPool]

CODED: dict[str, object] = {"type": 3, "erasure_code_profile": "p"}

POOL = CephPool(host="gateway-1", pool="bench", user="client.bench")
NAMESPACE = "wb-0123abcd"
THEIRS = ("theirs/precious", "/benchmark_data_gateway-1_7_object0")
"""Objects of others: in a namespace, and of a bench from the same host."""


class Machine:
    """This machine, with the programs of a fake cluster."""

    name = "gateway-1"
    python = sys.executable

    def __init__(self, ceph: FakeCeph) -> None:
        self.path = f"{ceph.bin}:{os.environ['PATH']}"

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with stderr.open("ab") as file:
            return subprocess.Popen(
                # Without `site`, a start of Python costs half as much.
                [argv[0], "-S", *argv[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **(env or {}), "PATH": self.path},
            )


def ours(ceph: FakeCeph) -> list[str]:
    """Objects in the namespace of the run."""
    return [one for one in ceph.objects if one.startswith(NAMESPACE)]


def untouched(ceph: FakeCeph) -> bool:
    """Whether all others are there."""
    return [one for one in ceph.objects if not one.startswith("wb-")] == sorted(
        f"{'objects' if one.startswith('/') else ''}{one}" for one in THEIRS
    )
