"""What HdrHistogram's tools read: percentile distributions (.hgrm), as its Java tools print them,
in ms; and interval logs (.hlog, version 1.3), of one interval for each operation of a step.

Ticks are those of HdrHistogram with five per half-distance: ten to the median, then five for each
halving of the distance to 100 %. The value at a tick is defined as everywhere here: that at rank
ceil(n x p), never above the exact maximum.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.file import ExportFile, Produced
from weighbridge.results.record.histogram import DIGITS, HIGHEST_US, Histogram, rank_of
from weighbridge.results.record.step import StepResult

TICKS: Final = 5
"""Ticks per half-distance."""
_SUB_BUCKETS: Final = 2 ** math.ceil(math.log2(2 * 10**DIGITS))
_BUCKETS: Final = 1 + math.ceil(math.log2((HIGHEST_US + 1) / _SUB_BUCKETS))


@dataclass(frozen=True)
class _Latencies:
    """A histogram of a step. Its maximum and sum are exact where they are known."""

    name: str
    encoded: str
    histogram: Histogram
    max_us: int | None = None
    sum_us: int | None = None


def hgrm_files(data: RunData) -> Produced:
    """A file for each step and operation with a histogram, and for reads' time to first byte."""

    def distributions(step: StepResult, found: Sequence[_Latencies]) -> Iterator[ExportFile]:
        for one in found:
            text = distribution(one.histogram, one.max_us, one.sum_us)
            yield ExportFile(name=f"{step.key.file_name}.{one.name}.hgrm", content=text.encode())

    return _of_each_step(data, "hgrm", distributions)


def hlog_files(data: RunData) -> Produced:
    """A file for each step with a histogram."""

    def log(step: StepResult, found: Sequence[_Latencies]) -> Iterator[ExportFile]:
        if step.measurement is None:
            return
        # The log writer of the Python library is not used: it drops tags and rounds maxima down.
        text = _log_header(step.measurement.started_at)
        for one in found:
            highest_us = one.histogram.percentile_us(100)
            top_ms = min(highest_us, highest_us if one.max_us is None else one.max_us) / 1000
            window = f"0.000,{step.measurement.window_s:.3f},{top_ms:.3f}"
            text += f"Tag={one.name},{window},{one.encoded}\n"
        yield ExportFile(name=f"{step.key.file_name}.hlog", content=text.encode())

    return _of_each_step(data, "hlog", log)


def _of_each_step(
    data: RunData,
    folder: str,
    files_of: Callable[[StepResult, Sequence[_Latencies]], Iterable[ExportFile]],
) -> Produced:
    files: list[ExportFile] = []
    remarks, without = [], []
    for key, step in data.steps.items():
        encoded = list(_encoded(step))
        if not encoded:
            without.append(str(key))
        found = []
        for name, text, max_us, sum_us in encoded:
            try:
                found.append(_Latencies(name, text, Histogram.decode(text), max_us, sum_us))
            except InvalidMeasurement as error:
                remarks.append(f"{key}, {name}: {error.message}; left out")
        try:
            files += files_of(step, found) if found else ()
        except InvalidMeasurement as error:
            remarks.append(f"{key}: {error.message}; left out")
    if without:
        more = f"; and {len(without) - 3} more" if len(without) > 3 else ""
        some = f"{'; '.join(without[:3])}{more}"
        remarks.append(f"{len(without)} of {len(data.steps)} steps have no histogram: {some}")
    return Produced(files=tuple(files), remarks=tuple(remarks), folder=folder)


def _log_header(started_at: str) -> str:
    """Raises InvalidMeasurement if it is no time."""
    try:
        start_s = datetime.fromisoformat(started_at).timestamp()
    except ValueError as error:
        raise InvalidMeasurement(f"{started_at!r} is not a time in ISO 8601") from error
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


def _encoded(step: StepResult) -> Iterator[tuple[str, str, int | None, int | None]]:
    for tally in step.measurement.tallies if step.measurement is not None else ():
        if tally.latency is not None:
            yield tally.operation, tally.latency, tally.max_us, tally.sum_us
        if tally.first_byte is not None:
            yield f"{tally.operation}-first-byte", tally.first_byte, None, None
