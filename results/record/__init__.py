"""What a run folder holds, read and written: other rooms take what is named here.

Nothing that draws or computes is loaded by it. Profiles, block traces and bands of latencies have
modules of their own beside it.
"""

from weighbridge.results.record.histogram import Histogram, rank_of
from weighbridge.results.record.manifest import (
    BUSY,
    UNEVEN,
    Manifest,
    RunEvent,
    Sheet,
    State,
)
from weighbridge.results.record.measurement import (
    Bins,
    Measurement,
    Second,
    Tally,
)
from weighbridge.results.record.reading import read_bounded
from weighbridge.results.record.resolved import (
    LatencyBound,
    PlannedHost,
    PlannedLayout,
    ResolvedPlan,
)
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore, gaps
from weighbridge.results.record.telemetry import (
    Attested,
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    Kind,
    ProbeSecond,
    Telemetry,
    Tier,
    Unit,
)
from weighbridge.results.record.trial import (
    CONFIRMATION,
    EntryVerdict,
    Fragment,
    LayoutVariant,
    Trial,
    TuningRun,
    TuningStore,
    Winner,
)
from weighbridge.results.record.writing import write_atomically

__all__ = [
    "BUSY",
    "CONFIRMATION",
    "UNEVEN",
    "Attested",
    "Bins",
    "DiskLimit",
    "DiskSecond",
    "EntryVerdict",
    "Fragment",
    "Histogram",
    "HostLimits",
    "HostSecond",
    "Kind",
    "LatencyBound",
    "LayoutVariant",
    "Manifest",
    "Measurement",
    "PlannedHost",
    "PlannedLayout",
    "ProbeSecond",
    "ResolvedPlan",
    "RunEvent",
    "RunStore",
    "Second",
    "Sheet",
    "State",
    "StepKey",
    "StepResult",
    "Tally",
    "Telemetry",
    "Tier",
    "Trial",
    "TuningRun",
    "TuningStore",
    "Unit",
    "Winner",
    "gaps",
    "rank_of",
    "read_bounded",
    "write_atomically",
]
