"""What clients do in `driver_cost.py`, and what is measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nulltarget import workload

from weighbridge.suites import Workload
from weighbridge.suites.workload import VERIFIED_SHARE

WARMUP_S = 1.0


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
