"""HdrHistogram interval logs (version 1.3): `latency/*.hlog`, which HdrHistogram's tools read.

The log writer of the Python library is not used: it drops tags and rounds maxima down.
"""

from __future__ import annotations

import math
from datetime import datetime

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement


def interval_log(measurement: Measurement) -> str:
    """The log of a step: each operation's latencies, and first bytes as `OPERATION-first-byte`."""
    lines = [log_header(measurement.started_at)]
    for tally in measurement.tallies:
        max_us = tally.max_us or 0
        intervals = [
            (tally.operation, max_us, tally.latency),
            (
                f"{tally.operation}-first-byte",
                _highest_us(tally.first_byte, max_us),
                tally.first_byte,
            ),
        ]
        lines += [
            log_line(tag, 0.0, measurement.window_s, highest_us, encoded)
            for tag, highest_us, encoded in intervals
            if encoded is not None
        ]
    return "".join(lines)


def _highest_us(encoded: str | None, bound_us: int) -> int:
    """A histogram's highest latency; the bound if it is unreadable: the step is kept anyway."""
    try:
        return min(Histogram.decode(encoded or "").percentile_us(100), bound_us)
    except InvalidMeasurement:
        return bound_us


def log_header(started_at: str) -> str:
    """The header of a log whose lines count from `started_at` (UTC, ISO 8601).

    Raises InvalidMeasurement if that is not a time.
    """
    try:
        start = datetime.fromisoformat(started_at).timestamp()
    except ValueError as error:
        raise InvalidMeasurement(f"{started_at!r} is not a time in ISO 8601") from error
    return (
        "#[Latencies in microseconds, Interval_Max in milliseconds, times in seconds]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {start:.3f} (seconds since epoch), {started_at}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def log_line(tag: str, start_s: float, length_s: float, max_us: int, encoded: str) -> str:
    """One interval of a log. Raises ValueError on a tag that the format cannot hold."""
    if not tag or any(letter in tag for letter in ", \r\n\t"):
        raise ValueError(f"{tag!r} is not a valid tag: no commas or white space, and not empty")
    return f"Tag={tag},{start_s:.3f},{length_s:.3f},{max_us / 1000:.3f},{encoded}\n"


def read_log(text: str) -> tuple[tuple[str, float, float, Histogram], ...]:
    """(tag, start in s, length in s, histogram) of each interval; a torn last line is dropped.

    Raises InvalidMeasurement with the number of a malformed line.
    """
    *lines, _ = text.split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("#", '"')):
            continue
        tag, _, rest = (
            line.removeprefix("Tag=").partition(",") if line.startswith("Tag=") else ("", "", line)
        )
        try:
            start, length, _, payload = rest.strip().split(",")
            at_s, for_s = float(start), float(length)
            if not (0 <= at_s < math.inf and 0 <= for_s < math.inf):
                raise ValueError(f"{start} and {length} are not a start and length in seconds")  # noqa: TRY301 - reported as any other
            found.append((tag, at_s, for_s, Histogram.decode(payload)))
        except (ValueError, InvalidMeasurement) as error:
            raise InvalidMeasurement(
                f"line {number} of an interval log: {error}: {line[:100]!r}"
            ) from error
    return tuple(found)
