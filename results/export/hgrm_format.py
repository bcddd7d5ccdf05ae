"""What HdrHistogram's tools read: percentile distributions (.hgrm), as its Java tools print them,
in ms; and interval logs (.hlog, version 1.3), of one interval for each operation of a step.

Ticks are those of HdrHistogram with five per half-distance: ten to the median, then five for each
halving of the distance to 100 %. The value at a tick is defined as everywhere here: that at rank
ceil(n x p), never above the exact maximum.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from itertools import accumulate
from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.quantities import utc
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.file import ExportFile, Produced
from weighbridge.results.record.histogram import DIGITS, HIGHEST_US, Histogram, rank_of
from weighbridge.results.record.step import StepKey, StepResult

TICKS: Final = 5
"""Ticks per half-distance."""
_SUB_BUCKETS: Final = 2 ** math.ceil(math.log2(2 * 10**DIGITS))
_BUCKETS: Final = 1 + math.ceil(math.log2((HIGHEST_US + 1) / _SUB_BUCKETS))


@dataclass(frozen=True)
class _Latencies:
    """A histogram of a step, with its maximum and sum where they are known exactly."""

    name: str
    encoded: str
    max_us: int | None = None
    sum_us: int | None = None


def hgrm_files(data: RunData) -> Produced:
    """A file for each step and operation with a histogram, and for reads' time to first byte."""
    files: list[ExportFile] = []
    remarks: list[str] = []
    for key, step in data.steps.items():
        for latencies in _latencies(step):
            histogram = _readable(latencies, key, remarks)
            if histogram is not None:
                text = distribution(histogram, latencies.max_us, latencies.sum_us)
                name = f"{key.file_name}.{latencies.name}.hgrm"
                files.append(ExportFile(name=name, content=text.encode()))
    remarks += _without_histogram(data)
    return Produced(files=tuple(files), remarks=tuple(remarks), folder="hgrm")


def hlog_files(data: RunData) -> Produced:
    """A file for each step with a histogram."""
    files: list[ExportFile] = []
    remarks: list[str] = []
    for key, step in data.steps.items():
        # The log writer of the Python library is not used: it drops tags and rounds maxima down.
        lines = []
        for latencies in _latencies(step):
            histogram = _readable(latencies, key, remarks)
            if histogram is not None and step.measurement is not None:
                top_us = histogram.percentile_us(100)
                if latencies.max_us is not None:
                    top_us = min(top_us, latencies.max_us)
                window = f"0.000,{step.measurement.window_s:.3f},{top_us / 1000:.3f}"
                lines.append(f"Tag={latencies.name},{window},{latencies.encoded}\n")
        if lines and step.measurement is not None:
            try:
                text = "".join([_log_header(step.measurement.started_at), *lines])
            except InvalidMeasurement as error:
                remarks.append(f"{key}: {error.message}; left out")
                continue
            files.append(ExportFile(name=f"{key.file_name}.hlog", content=text.encode()))
    remarks += _without_histogram(data)
    return Produced(files=tuple(files), remarks=tuple(remarks), folder="hlog")


def _readable(latencies: _Latencies, key: StepKey, remarks: list[str]) -> Histogram | None:
    """A histogram that counts something; if there is none, the remark says why."""
    try:
        histogram = Histogram.decode(latencies.encoded)
    except InvalidMeasurement as error:
        remarks.append(f"{key}, {latencies.name}: {error.message}; left out")
        return None
    if not histogram.count:
        remarks.append(f"{key}, {latencies.name}: the histogram counts no samples; left out")
        return None
    return histogram


def _without_histogram(data: RunData) -> tuple[str, ...]:
    """A remark on the steps that have none, if there are any."""
    without = [str(key) for key, step in data.steps.items() if not any(_latencies(step))]
    if not without:
        return ()
    more = f"; and {len(without) - 3} more" if len(without) > 3 else ""
    some = f"{'; '.join(without[:3])}{more}"
    return (f"{len(without)} of {len(data.steps)} steps have no histogram: {some}",)


def _log_header(started_at: str) -> str:
    """Raises InvalidMeasurement if it is no time."""
    start_s = utc(started_at).replace(tzinfo=UTC).timestamp()
    return (
        "#[Latencies in microseconds, Interval_Max in milliseconds, times in seconds]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {started_at}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def distribution(histogram: Histogram, max_us: int | None = None, sum_us: int | None = None) -> str:
    """A histogram as text; `max_us` and `sum_us` are exact where known. Raises InvalidMeasurement
    when nothing was counted.
    """
    buckets = histogram.buckets()
    if not buckets:
        raise InvalidMeasurement("the histogram counts no samples")
    ranks = list(accumulate(count for _, count in buckets))
    count = ranks[-1]
    top_us = buckets[-1][0] if max_us is None else min(max_us, buckets[-1][0])
    lines = ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
    for percent in ticks():
        place = bisect_left(ranks, rank_of(count, percent) if percent else 1)
        value_us = min(buckets[place][0], top_us)
        lines.append(
            f"{value_us / 1000:12.3f} {percent / 100:14.12f} {ranks[place]:10d} "
            f"{100 / (100 - percent):14.2f}"
        )
        if ranks[place] == count:
            break
    lines.append(f"{top_us / 1000:12.3f} {1:14.12f} {count:10d}")
    middles = [(_middle_us(top), each) for top, each in buckets]
    mean_us = (sum(middle * each for middle, each in middles) if sum_us is None else sum_us) / count
    deviation_us = math.sqrt(
        sum(each * (middle - mean_us) ** 2 for middle, each in middles) / count
    )
    lines += [
        f"#[Mean    = {mean_us / 1000:12.3f}, StdDeviation   = {deviation_us / 1000:12.3f}]",
        f"#[Max     = {top_us / 1000:12.3f}, Total count    = {count:12d}]",
        f"#[Buckets = {_BUCKETS:12d}, SubBuckets     = {_SUB_BUCKETS:12d}]",
    ]
    return "\n".join(lines) + "\n"


def ticks() -> Iterator[float]:
    """Percentages from 0 to less than 100: five steps to each half of the distance to 100."""
    percent = 0.0
    while percent < 100:
        yield percent
        halvings = int(math.log2(100 / (100 - percent))) + 1
        percent += 100 / (TICKS * 2**halvings)


def _middle_us(top_us: int) -> int:
    """The middle of a bucket, given its top: buckets are 1 us wide below 2048 us, 2 us below 4096
    us ...
    """
    width: int = 2 ** max(0, top_us.bit_length() - int(math.log2(_SUB_BUCKETS)))
    return top_us - width + 1 + width // 2


def _latencies(step: StepResult) -> Iterator[_Latencies]:
    for tally in step.measurement.tallies if step.measurement is not None else ():
        if tally.latency is not None:
            yield _Latencies(tally.operation, tally.latency, tally.max_us, tally.sum_us)
        if tally.first_byte is not None:
            yield _Latencies(f"{tally.operation}-first-byte", tally.first_byte)
