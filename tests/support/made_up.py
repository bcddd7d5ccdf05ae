"""Measurements made up for tests of every room: seeded, whole, with latencies drawn from a
lognormal distribution.
"""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping

from weighbridge.results.record.bands import band_of
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Bins, Load, Measurement, Second, Tally
from weighbridge.suites import Api, Operation

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


@functools.lru_cache(
    maxsize=1000
)  # tests make the same run hundreds of times, and a step of it has ten thousand latencies
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
    draw = random.Random(seed)
    shares = dict(operations)
    total = max(1, round(workers * window_s * 1000 / mean_ms))
    tallies, seconds = [], []
    for number, (operation, weight) in enumerate(shares.items()):
        count = round(total * weight / sum(shares.values()))
        middle = math.log(mean_ms * 1000) - spread**2 / 2
        values = [max(1, round(draw.lognormvariate(middle, spread))) for _ in range(count)]
        size = object_size_bytes if operation in ("read", "write") else 0
        failures = dict(errors) if number == 0 else {}
        tallies.append(
            Tally(
                operation=operation,
                count=count,
                bytes=count * size,
                errors=failures,
                latency=Histogram.of(values).encode() if values and not bins else None,
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
                operation, values, size, sum(failures.values()), max(1, math.ceil(window_s))
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


def _seconds(
    operation: Operation, values: list[int], size: int, failed: int, length: int
) -> list[Second]:
    """The values dealt out to the seconds of the window; all failures fall into the first."""
    return [
        Second(
            second=second,
            operation=operation,
            count=len(part),
            bytes=len(part) * size,
            errors=failed if second == 0 else 0,
            max_us=max(part, default=0),
            sum_us=sum(part),
            bands=tuple(sorted(Counter(map(band_of, part)).items())),
        )
        for second in range(length)
        for part in [values[second::length]]
    ]
