"""What the SDK users record: per operation an HDR histogram, exact min, max and sum, errors by class, and per-second series."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hdrh.histogram import HdrHistogram

from results.bands import band_of
from results.measurement import Second, Tally
from suites import Operation

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 3


def new_histogram() -> HdrHistogram:
    """An empty histogram of the bounds that every measurement has: 1 us to 1 h, 3 significant digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def encoded(histogram: HdrHistogram) -> str:
    """Its V2 deflate base64 form."""
    return str(histogram.encode().decode("ascii"))


@dataclass
class _Moment:
    count: int = 0
    bytes: int = 0
    errors: int = 0
    max_us: int = 0
    sum_us: int = 0
    bands: Counter[int] = field(default_factory=Counter)


@dataclass
class _Record:
    latency: HdrHistogram = field(default_factory=new_histogram)
    first_byte: HdrHistogram = field(default_factory=new_histogram)
    count: int = 0
    bytes: int = 0
    min_us: int = 2**63
    max_us: int = 0
    sum_us: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    seconds: dict[int, _Moment] = field(default_factory=dict)


class Recorder:
    """Counts the requests of one window. Latencies are whole microseconds; `at_s` is seconds since the window opened."""

    def __init__(self) -> None:
        self._records: dict[Operation, _Record] = {}

    def success(self, operation: Operation, at_s: float, latency_us: int, moved_bytes: int, first_byte_us: int | None) -> None:
        """Count a request that did what it was to do."""
        record = self._records.setdefault(operation, _Record())
        record.count += 1
        record.bytes += moved_bytes
        record.min_us = min(record.min_us, latency_us)
        record.max_us = max(record.max_us, latency_us)
        record.sum_us += latency_us
        # The histogram's range is bounded; what lies outside is counted at its bound, and min and max stay exact beside it.
        record.latency.record_value(min(HIGHEST_US, max(LOWEST_US, latency_us)))
        if first_byte_us is not None:
            record.first_byte.record_value(min(HIGHEST_US, max(LOWEST_US, first_byte_us)))
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.count += 1
        moment.bytes += moved_bytes
        moment.max_us = max(moment.max_us, latency_us)
        moment.sum_us += latency_us
        moment.bands[band_of(latency_us)] += 1

    def failure(self, operation: Operation, at_s: float, error_class: str) -> None:
        """Count a request that failed; it has no latency."""
        record = self._records.setdefault(operation, _Record())
        record.errors[error_class] = record.errors.get(error_class, 0) + 1
        record.seconds.setdefault(int(at_s), _Moment()).errors += 1

    def tallies(self) -> tuple[Tally, ...]:
        """All of the window, by operation."""
        return tuple(
            Tally(
                operation=operation,
                count=record.count,
                bytes=record.bytes,
                errors=dict(record.errors),
                latency=encoded(record.latency) if record.count else None,
                first_byte=encoded(record.first_byte) if record.first_byte.get_total_count() else None,
                min_us=record.min_us if record.count else None,
                max_us=record.max_us if record.count else None,
                sum_us=record.sum_us,
            )
            for operation, record in sorted(self._records.items())
        )

    def seconds(self) -> tuple[Second, ...]:
        """The window second by second; seconds in which nothing of an operation completed are left out."""
        return tuple(
            Second(
                second=second,
                operation=operation,
                count=moment.count,
                bytes=moment.bytes,
                errors=moment.errors,
                max_us=moment.max_us,
                sum_us=moment.sum_us,
                bands=tuple(sorted(moment.bands.items())),
            )
            for operation, record in sorted(self._records.items())
            for second, moment in sorted(record.seconds.items())
        )
