"""Made-up measurements for tests: seeded, complete, with lognormal latencies."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from weighbridge.results.figures.validity import judge
from weighbridge.results.run.histogram import DIGITS, HIGHEST_US, LOWEST_US, Histogram
from weighbridge.results.run.step import Bins, Load, Measurement, Second, StepKey, StepResult, Tally
from weighbridge.results.run.telemetry import HostLimits, HostSecond
from weighbridge.suites import Api, Bounds, Operation, Workload

Latencies = NDArray[np.int64]
COLUMNS = (
    "run,layout,twin_of,api,driver,layer,workload,operation,object_size_bytes,sent,workers,repeats,"
    "throughput_ops_s,bandwidth_mb_s,p50_ms,p90_ms,p99_ms,p99_9_ms,max_ms,first_byte_p50_ms,first_byte_ms,"
    "first_byte_p99_ms,mean_ms,samples,errors,gateway_cpu_s_per_1000_ops,storage_cpu_s_per_1000_ops,"
    "from_disk_percent,goodput_ops_s,"
    "refused_percent,late_percent,timed_out_percent,failed_otherwise_percent,not_sent_percent,stall_s,detect_s,"
    "recover_s,rate_before_ops_s,unanswered_s,missed_s,away_p99_ms,away_max_ms,lowest_back_percent,"
    "throughput_over_repeats_low_ops_s,throughput_over_repeats_high_ops_s,p90_over_repeats_low_ms,"
    "p90_over_repeats_high_ms,p99_over_repeats_low_ms,p99_over_repeats_high_ms,max_over_repeats_low_ms,"
    "max_over_repeats_high_ms,first_byte_over_repeats_low_ms,first_byte_over_repeats_high_ms,"
    "goodput_over_repeats_low_ops_s,goodput_over_repeats_high_ops_s,stall_over_repeats_low_s,"
    "stall_over_repeats_high_s,detect_over_repeats_low_s,detect_over_repeats_high_s,recover_over_repeats_low_s,"
    "recover_over_repeats_high_s,p50_low_ms,p50_high_ms,p90_low_ms,p90_high_ms,p99_low_ms,p99_high_ms,p99_9_low_ms,"
    "p99_9_high_ms,max_low_ms,max_high_ms,saturated,limited_by,valid,steady,ranked,lower_bounds,provisional,doubts,"
    "power_cuts,notes"
)
"""The first line of summary.csv, which others read by name."""
KEPT_BITS = 11
"""Leading bits of a latency that a histogram of three significant digits tells apart."""
BIN_US = 10_000
"""Width of COSBench's bins; they end at BEYOND_US."""
BEYOND_US = 500_000_000


def fake_measurement(
    *,
    api: Api = "swift",
    workload: str = "small-read",
    operations: Mapping[Operation, float] | None = None,
    workers: int = 4,
    window_s: float = 20.0,
    mean_ms: float = 10.0,
    spread: float = 0.4,
    object_size_bytes: int = 1_000_000,
    errors: Mapping[str, int] | None = None,
    driver_share: float = 0.2,
    seed: int = 1,
    notes: tuple[str, ...] = (),
    bins: bool = False,
) -> Measurement:
    """A closed-loop step that obeys Little's law, with a mean latency of `mean_ms`.

    `spread` is the standard deviation of the logarithm of a latency; `errors` are failures of the
    first operation, by class. Each read and write transfers `object_size_bytes`. `bins`: the step
    as COSBench reports it, in bins of 10 ms, with latencies cut to whole milliseconds and without
    extremes, per-second series or its own CPU.
    """
    shares = tuple((operations or {"read": 1.0}).items())
    failures = tuple((errors or {}).items())
    return _measurement(
        api,
        workload,
        shares,
        workers,
        window_s,
        mean_ms,
        spread,
        object_size_bytes,
        failures,
        driver_share,
        seed,
        notes,
        bins,
    )


# Tests make the same run hundreds of times, and each of its steps has ten thousand latencies.
@functools.lru_cache(maxsize=1000)
def _measurement(
    api: Api,
    workload: str,
    operations: tuple[tuple[Operation, float], ...],
    workers: int,
    window_s: float,
    mean_ms: float,
    spread: float,
    object_size_bytes: int,
    errors: tuple[tuple[str, int], ...],
    driver_share: float,
    seed: int,
    notes: tuple[str, ...],
    bins: bool,
) -> Measurement:
    draw = np.random.default_rng(seed)
    shares = dict(operations)
    total = max(1, round(workers * window_s * 1000 / mean_ms))
    tallies: list[Tally] = []
    seconds: list[Second] = []
    for number, (operation, weight) in enumerate(shares.items()):
        count = round(total * weight / sum(shares.values()))
        middle = math.log(mean_ms * 1000) - spread**2 / 2
        drawn = np.maximum(1, np.rint(draw.lognormal(middle, spread, count)).astype(np.int64))
        size = object_size_bytes if operation in ("read", "write") else 0
        failures = dict(errors) if number == 0 else {}
        tallies.append(
            Tally(
                operation=operation,
                count=count,
                bytes=count * size,
                errors=failures,
                latency=_histogram(drawn).encode() if count and not bins else None,
                bins=binned(drawn) if count and bins else None,
                min_us=None if bins or not count else int(drawn.min()),
                max_us=None if bins or not count else int(drawn.max()),
                sum_us=int((drawn // 1000 * 1000 if bins else drawn).sum()),
            )
        )
        if not bins:
            length = max(1, math.ceil(window_s))
            seconds += _seconds(operation, drawn, size, sum(failures.values()), length)
    return Measurement(
        api=api,
        workload=workload,
        workers=workers,
        driver="cosbench" if bins else "locust-engine",
        started_at="2014-11-04T12:00:00Z",
        window_s=window_s,
        warmup_s=5.0,
        tallies=tuple(tallies),
        seconds=tuple(seconds),
        load=None
        if bins
        else Load(cpu_s=driver_share * window_s, cpu_limit=1.0, window_s=window_s),
        notes=notes,
    )


def measured_step(
    key: StepKey, workload: Workload, mean_ms: float, order: int, seed: int, **more: Any
) -> StepResult:
    """The judged step of a made-up measurement; `more` are arguments of `fake_measurement`."""
    measurement = fake_measurement(
        api=key.api,
        workload=key.workload,
        operations=workload.operations,
        workers=key.workers,
        window_s=workload.runtime,
        mean_ms=mean_ms,
        object_size_bytes=round(workload.objects.mean_bytes),
        seed=seed,
        **more,
    )
    verdict = judge(measurement, Bounds())
    return StepResult(
        key=key, measurement=measurement, valid=verdict.valid, notes=verdict.notes, order=order
    )


def host_second(limits: HostLimits, second: int, cpu_s: float, **more: Any) -> HostSecond:
    """A telemetry sample of a host without traffic; `more` are other fields of it."""
    idle = {
        "at_s": second + 1.0,
        "span_s": 1.0,
        "phase": "measure",
        "cpu_periods": 10,
        "throttled_periods": 0,
        "disks": None,
        "memory_bytes": 700 * 2**20,
        "memory_held_bytes": 500 * 2**20,
        "received_bytes": 0,
        "sent_bytes": 0,
        "network_faults": 0,
    }
    about = {"second": second, "host": limits.host, "tier": limits.tier, "cpu_s": cpu_s}
    return HostSecond.model_validate({**idle, **about, **more})


def binned(values_us: Iterable[int] | Latencies) -> Bins:
    values = [int(value) for value in values_us]
    counts = Counter(value // BIN_US for value in values if value < BEYOND_US)
    beyond = sum(value >= BEYOND_US for value in values)
    return Bins(
        width_us=BIN_US, counts=tuple(sorted(counts.items())), beyond_us=BEYOND_US, beyond=beyond
    )


def _histogram(values_us: Latencies) -> Histogram:
    """Their histogram: `Histogram.of` would take ten times as long."""
    dropped = np.maximum(0, _bits(values_us) - KEPT_BITS)
    counts: Latencies = np.bincount((dropped << KEPT_BITS - 1) + (values_us >> dropped))
    made = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    np.frombuffer(made.counts, np.uint64)[: len(counts)] = counts
    filled = np.flatnonzero(counts)
    made.set_internal_tacking_values(int(filled[0]), int(filled[-1]), len(values_us))
    return Histogram(made)


def _bits(values_us: Latencies) -> Latencies:
    return np.frexp(values_us)[1].astype(np.int64)


def _bands(values_us: Latencies) -> Latencies:
    """The band of each (`band_of`)."""
    octave = _bits(values_us) - 1
    quarter = np.where(
        octave < 2, values_us << 2 - np.minimum(octave, 2), values_us >> np.maximum(octave, 2) - 2
    )
    return octave * 4 + (quarter & 3)


def _seconds(
    operation: Operation, values_us: Latencies, size: int, failed: int, length: int
) -> list[Second]:
    bands = _bands(values_us)
    return [
        Second(
            second=second,
            operation=operation,
            count=len(part),
            bytes=len(part) * size,
            errors=failed if second == 0 else 0,
            max_us=int(part.max(initial=0)),
            sum_us=int(part.sum()),
            bands=tuple((int(band), int(counts[band])) for band in np.flatnonzero(counts)),
        )
        for second in range(length)
        for part in [values_us[second::length]]
        for counts in [np.bincount(bands[second::length])]
    ]
