"""fio's output (3.33, `--output-format=json+`) as a tally.

Latencies are from passing a request to the engine until it is done (`lat`). fio counts them in bins
of 1/64 of a power of two and reports the middle of each, so a latency is off by at most 0.8 %; the
histogram that they are put into is off by 0.1 %. Minimum, maximum and mean are exact.

The count is `lat_ns.N`: requests done in the window. `total_ios` were started in it.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from weighbridge.common.errors import DriverError, InvalidMeasurement
from weighbridge.common.tool_output import json_object, printable
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Tally

BINS_NOTE: Final = "latencies are from fio's bins: percentiles are within 0.8 %"


def tally_of(
    output: str, operation: Literal["read", "write"], request_bytes: int
) -> tuple[Tally, float]:
    """The tally of one reported group of jobs, and the seconds of its window.

    Raises DriverError.
    """
    found = json_object("fio", output, DriverError)
    try:
        (job,) = found["jobs"]
        if job["error"]:
            raise DriverError(
                f"fio: error {printable(job['error'])}: {output[: output.find('{')][-300:]}"
            )
        side = job[operation]
        latency = side["lat_ns"]
        count, window_s = int(latency["N"]), float(side["runtime"]) / 1000
        if not 0 < window_s < math.inf and (count or window_s):
            raise DriverError(
                f"fio: {count} requests in a window of {window_s} s in its output: {output[:300]!r}"
            )
        if not count:
            return Tally(operation=operation, count=0, bytes=0), window_s
        bins = {int(middle): int(many) for middle, many in latency["bins"].items()}
        if sum(bins.values()) != count or min(bins.values()) < 0:
            raise DriverError(
                f"fio: its bins have {sum(bins.values())} requests, its total is {count}"
            )
        min_us, max_us = round(latency["min"] / 1000), round(latency["max"] / 1000)
        # The middle of the first and of the last bin may be outside of the exact extremes.
        counts = [
            (max(1, min(max(round(middle / 1000), min_us), max_us)), many)
            for middle, many in bins.items()
        ]
        tally = Tally(
            operation=operation,
            count=count,
            bytes=count * request_bytes,
            latency=Histogram.counted(counts).encode(),
            min_us=min_us,
            max_us=max_us,
            sum_us=round(float(latency["mean"]) * count / 1000),
        )
    except InvalidMeasurement as error:
        raise DriverError(f"fio: {error} (in its bins)") from error
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise DriverError(f"fio: {error!r} in its output: {output[:300]!r}") from error
    return tally, window_s
