"""A CPU quota: so many microseconds in each period, as the kernel hands them out
(Documentation/scheduler/sched-bwc.rst).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEAST_QUOTA_US: Final = 1_000
"""The kernel refuses a quota, and a period, of less (`min_cfs_quota_period`, kernel/sched/core.c).
"""
LONGEST_PERIOD_US: Final = 1_000_000
"""It refuses a longer period (`max_cfs_quota_period`)."""
LEAST_CPUS: Final = LEAST_QUOTA_US / LONGEST_PERIOD_US
DEFAULT_PERIOD_S: Final = 0.01
"""A host that has used its quota up waits for the rest of the period: this is as long as that may
take.

The kernel's and runc's own 0.1 s is what p90 of a gateway then shows; `benchmarks/cpu_period.py`
measures it, docs/cpu-limits.md has its table. Much less is no better: the kernel looks at who is
over its quota at its ticks, 4 ms apart at 250 Hz."""
SLICE: Final = Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")
"""What a CPU takes at once of the quota of a period that its cgroup's CPUs share; the whole
machine's.
"""


@dataclass(frozen=True)
class Quota:
    """`quota_us` of CPU time in each `period_us`."""

    quota_us: int
    period_us: int


def quota_of(cpus: float, period_s: float) -> Quota:
    """The quota that is `cpus` CPUs.

    Its period is longer than `period_s` where the quota would be less than the kernel takes.
    """
    period_us = round(period_s * 1e6)
    if cpus * period_us < LEAST_QUOTA_US:
        period_us = min(LONGEST_PERIOD_US, math.ceil(LEAST_QUOTA_US / cpus))
    return Quota(quota_us=max(LEAST_QUOTA_US, round(cpus * period_us)), period_us=period_us)


def slice_words(path: Path = SLICE) -> str:
    """`5000 us`, as this machine's kernel has it; that it does not tell, where it does not."""
    try:
        return f"{int(path.read_text())} us"
    except (OSError, ValueError):
        return "not told by this kernel"
