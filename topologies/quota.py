"""CPU quotas: microseconds of CPU time in each period (Documentation/scheduler/sched-bwc.rst)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEAST_QUOTA_US: Final = 1_000
"""The kernel's least quota and period (`min_cfs_quota_period`, kernel/sched/core.c)."""
LONGEST_PERIOD_US: Final = 1_000_000
"""The kernel's longest period (`max_cfs_quota_period`)."""
LEAST_CPUS: Final = LEAST_QUOTA_US / LONGEST_PERIOD_US
DEFAULT_PERIOD_S: Final = 0.01
"""A host that has used up its quota waits for the rest of the period, so at most this long.

With the kernel's and runc's default of 0.1 s a gateway's p90 shows that wait (measured by
`benchmarks/cpu_period.py`, table in docs/cpu-limits.md). Much less gains nothing: the kernel checks
quotas at its ticks, 4 ms apart at 250 Hz.
"""
SLICE: Final = Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")
"""How much a CPU takes at once of the quota that its cgroup's CPUs share; of the whole machine."""


@dataclass(frozen=True)
class Quota:
    """`quota_us` of CPU time in each `period_us`."""

    quota_us: int
    period_us: int


def quota_of(cpus: float, period_s: float) -> Quota:
    """The quota of `cpus` CPUs; its period is longer where the kernel would refuse the quota."""
    period_us = round(period_s * 1e6)
    if cpus * period_us < LEAST_QUOTA_US:
        period_us = min(LONGEST_PERIOD_US, math.ceil(LEAST_QUOTA_US / cpus))
    return Quota(quota_us=max(LEAST_QUOTA_US, round(cpus * period_us)), period_us=period_us)


def slice_words(path: Path = SLICE) -> str:
    """The slice of this machine's kernel, such as `5000 us`."""
    try:
        return f"{int(path.read_text())} us"
    except (OSError, ValueError):
        return "not reported by this kernel"
