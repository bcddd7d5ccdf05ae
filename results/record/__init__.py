"""What a run folder holds, read and written: other rooms take what is named here.

Nothing that draws or computes is loaded by it. Profiles, block traces and bands of latencies have
modules of their own beside it.
"""

from weighbridge.results.record.histogram import DIGITS, HIGHEST_US, Histogram, rank_of
from weighbridge.results.record.manifest import (
    BUSY,
    UNEVEN,
    ConfigFile,
    Manifest,
    RunEvent,
    Sheet,
    State,
)
from weighbridge.results.record.measurement import (
    Bins,
    ClientLoad,
    ErrorClass,
    Load,
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
from weighbridge.results.record.step import Pass, StepKey, StepResult
from weighbridge.results.record.store import Holder, RunStore, TelemetryFile, gaps, lock_run_folder
from weighbridge.results.record.telemetry import (
    EDGE_S,
    Attested,
    DiskLimit,
    DiskSecond,
    Head,
    HostLimits,
    HostSecond,
    Kind,
    Phase,
    ProbeSecond,
    Tail,
    Telemetry,
    TelemetryLine,
    Tier,
    Unit,
)
from weighbridge.results.record.trial import (
    CONFIRMATION,
    EntryVerdict,
    Fragment,
    LayoutVariant,
    Settings,
    Trial,
    TuningRun,
    TuningStore,
    Winner,
)
from weighbridge.results.record.writing import StoreError, make_folder, write_atomically

__all__ = [
    "BUSY",
    "CONFIRMATION",
    "DIGITS",
    "EDGE_S",
    "HIGHEST_US",
    "UNEVEN",
    "Attested",
    "Bins",
    "ClientLoad",
    "ConfigFile",
    "DiskLimit",
    "DiskSecond",
    "EntryVerdict",
    "ErrorClass",
    "Fragment",
    "Head",
    "Histogram",
    "Holder",
    "HostLimits",
    "HostSecond",
    "Kind",
    "LatencyBound",
    "LayoutVariant",
    "Load",
    "Manifest",
    "Measurement",
    "Pass",
    "Phase",
    "PlannedHost",
    "PlannedLayout",
    "ProbeSecond",
    "ResolvedPlan",
    "RunEvent",
    "RunStore",
    "Second",
    "Settings",
    "Sheet",
    "State",
    "StepKey",
    "StepResult",
    "StoreError",
    "Tail",
    "Tally",
    "Telemetry",
    "TelemetryFile",
    "TelemetryLine",
    "Tier",
    "Trial",
    "TuningRun",
    "TuningStore",
    "Unit",
    "Winner",
    "gaps",
    "lock_run_folder",
    "make_folder",
    "rank_of",
    "read_bounded",
    "write_atomically",
]
