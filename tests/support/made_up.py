"""Measurements made up for tests of every room: seeded, whole, with latencies drawn from a
lognormal distribution.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Bins, Load, Measurement, Second, Tally
from weighbridge.suites import Api, Operation

Latencies = NDArray[np.int64]
KEPT_BITS = 11
"""Leading bits of a latency that a histogram of three significant digits tells apart."""
BIN_US = 10_000
"""COSBench's bins are 10 ms wide, and end at 500 s."""
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
    """A closed-loop step that keeps Little's law: `workers` busy for `window_s` with latencies of
    `mean_ms` on average.

    `spread` is the standard deviation of the logarithm of a latency; `errors` are failures by class
    of the first operation. Every request of a read or a write carries `object_size_bytes`. `bins`:
    the same step as COSBench tells it, in bins of 10 ms, each latency cut to whole milliseconds,
    without extremes, per-second series or its own CPU.
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


# Tests make the same run hundreds of times, and a step of it has ten thousand latencies.
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
    tallies, seconds = [], []
    for number, (operation, weight) in enumerate(shares.items()):
        count = round(total * weight / sum(shares.values()))
        middle = math.log(mean_ms * 1000) - spread**2 / 2
        drawn = np.maximum(1, np.rint(draw.lognormal(middle, spread, count)).astype(np.int64))
        values: list[int] = drawn.tolist()
        size = object_size_bytes if operation in ("read", "write") else 0
        failures = dict(errors) if number == 0 else {}
        tallies.append(
            Tally(
                operation=operation,
                count=count,
                bytes=count * size,
                errors=failures,
                latency=_histogram(drawn).encode() if values and not bins else None,
                bins=binned(values) if values and bins else None,
                min_us=None if bins else min(values, default=None),
                max_us=None if bins else max(values, default=None),
                sum_us=sum(value // 1000 * 1000 for value in values) if bins else sum(values),
            )
        )
        seconds += (
            []
            if bins
            else _seconds(
                operation, drawn, size, sum(failures.values()), max(1, math.ceil(window_s))
            )
        )
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


def binned(values_us: Iterable[int]) -> Bins:
    """Single latencies as COSBench counts them."""
    values = list(values_us)
    counts = Counter(value // BIN_US for value in values if value < BEYOND_US)
    beyond = sum(value >= BEYOND_US for value in values)
    return Bins(
        width_us=BIN_US, counts=tuple(sorted(counts.items())), beyond_us=BEYOND_US, beyond=beyond
    )


def _histogram(values_us: Latencies) -> Histogram:
    """Their histogram, each counted as the lowest latency that a histogram cannot tell from it."""
    dropped = np.maximum(0, _bits(values_us) - KEPT_BITS)
    lowest, counts = np.unique(values_us >> dropped << dropped, return_counts=True)
    return Histogram.counted(zip(lowest.tolist(), counts.tolist(), strict=True))


def _bits(values_us: Latencies) -> Latencies:
    """How many bits each has."""
    return np.frexp(values_us)[1].astype(np.int64)


def _bands(values_us: Latencies) -> tuple[tuple[int, int], ...]:
    """How many there are in each band (`band_of`), by band."""
    octave = _bits(values_us) - 1
    quarter = np.where(
        octave < 2, values_us << 2 - np.minimum(octave, 2), values_us >> np.maximum(octave, 2) - 2
    )
    bands, counts = np.unique(octave * 4 + (quarter & 3), return_counts=True)
    return tuple(zip(bands.tolist(), counts.tolist(), strict=True))


def _seconds(
    operation: Operation, values_us: Latencies, size: int, failed: int, length: int
) -> list[Second]:
    """The values dealt out to the seconds of the window; all failures fall into the first."""
    return [
        Second(
            second=second,
            operation=operation,
            count=len(part),
            bytes=len(part) * size,
            errors=failed if second == 0 else 0,
            max_us=int(part.max(initial=0)),
            sum_us=int(part.sum()),
            bands=_bands(part),
        )
        for second in range(length)
        for part in [values_us[second::length]]
    ]
