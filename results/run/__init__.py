"""What a run folder holds, read and written: other rooms take what is named here.

Nothing that draws or computes is loaded by it. Profiles, block traces and bands of latencies have
modules of their own beside it.
"""

from weighbridge.results.run.histogram import Histogram, rank_of
from weighbridge.results.run.reading import read_bounded, write_atomically
from weighbridge.results.run.resolved import (
    BUSY,
    UNEVEN,
    LatencyBound,
    Manifest,
    PlannedHost,
    PlannedLayout,
    ResolvedPlan,
    RunEvent,
    Sheet,
    State,
)
from weighbridge.results.run.step import Bins, Measurement, Second, StepKey, StepResult, Tally
from weighbridge.results.run.store import RunStore, gaps
from weighbridge.results.run.telemetry import (
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
from weighbridge.results.run.trial import (
    EntryVerdict,
    Fragment,
    LayoutVariant,
    Trial,
    TuningRun,
    TuningStore,
    Winner,
)
