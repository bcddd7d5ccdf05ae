"""What SDK users record: for each operation an HDR histogram, exact min, max and sum, errors by
class, and per-second series.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hdrh.histogram import HdrHistogram

from weighbridge.results.record.bands import band_of
from weighbridge.results.record.measurement import Second, Tally
from weighbridge.suites import Operation

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 3


def new_histogram() -> HdrHistogram:
    """An empty histogram with every measurement's bounds: 1 us to 1 h, 3 significant digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def encoded(histogram: HdrHistogram) -> str:
    """A histogram as V2 deflate base64."""
    return str(histogram.encode().decode("ascii"))


def _count(histogram: HdrHistogram, latency_us: int) -> None:
    """Count a value at the bounds if it is outside of them; min and max are kept apart."""
    histogram.record_value(min(HIGHEST_US, max(LOWEST_US, latency_us)))


@dataclass
class _Moment:
    count: int = 0
    bytes: int = 0
    errors: int = 0
    max_us: int = 0
    sum_us: int = 0
    bands: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class _Record:
    latency: HdrHistogram = field(default_factory=new_histogram)
    first_byte: HdrHistogram = field(default_factory=new_histogram)
    count: int = 0
    bytes: int = 0
    min_us: int = 2**63
    max_us: int = 0
    sum_us: int = 0
    in_flight: HdrHistogram = field(default_factory=new_histogram)
    in_flight_max_us: int = 0
    outstanding_us: int = 0
    failed_us: int = 0
    before_us: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    seconds: dict[int, _Moment] = field(default_factory=dict)


class Recorder:
    """Records the requests of a window. Latencies are whole microseconds; `at_s` is seconds since
    the window opened.
    """

    def __init__(self) -> None:
        self._records: dict[Operation, _Record] = {}

    def success(
        self,
        operation: Operation,
        at_s: float,
        latency_us: int,
        moved_bytes: int,
        first_byte_us: int | None,
    ) -> None:
        """Record a request that succeeded."""
        record = self._records.setdefault(operation, _Record())
        record.count += 1
        record.bytes += moved_bytes
        record.min_us = min(record.min_us, latency_us)
        record.max_us = max(record.max_us, latency_us)
        record.sum_us += latency_us
        record.before_us += _before(at_s, latency_us)
        _count(record.latency, latency_us)
        if first_byte_us is not None:
            _count(record.first_byte, first_byte_us)
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.count += 1
        moment.bytes += moved_bytes
        moment.max_us = max(moment.max_us, latency_us)
        moment.sum_us += latency_us
        moment.bands[band_of(latency_us)] += 1

    def failure(self, operation: Operation, at_s: float, error_class: str, age_us: int) -> None:
        """Record a request that failed after `age_us`, without a latency.

        One that timed out might have ended any time later, so it counts as in flight.
        """
        record = self._records.setdefault(operation, _Record())
        record.errors[error_class] = record.errors.get(error_class, 0) + 1
        record.failed_us += age_us
        record.before_us += _before(at_s, age_us)
        if error_class == "timeout":
            _unseen(record, age_us)
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.errors += 1
        moment.failures[error_class] += 1

    def rested(self, operation: Operation, rest_us: int) -> None:
        """Record that a worker paused after a failure, inside the window."""
        self._records.setdefault(operation, _Record()).failed_us += rest_us

    def outstanding(self, operation: Operation, at_s: float, age_us: int) -> None:
        """Record a request that was outstanding for `age_us` when the window closed, at `at_s`."""
        record = self._records.setdefault(operation, _Record())
        record.outstanding_us += age_us
        record.before_us += _before(at_s, age_us)
        _unseen(record, age_us)

    def waiting(self, operation: Operation, age_us: int) -> None:
        """Record a request that was due `age_us` before the window closed, and was not sent."""
        _unseen(self._records.setdefault(operation, _Record()), age_us)

    def tallies(self) -> tuple[Tally, ...]:
        """The complete window, by operation."""
        return tuple(
            Tally(
                operation=operation,
                count=record.count,
                bytes=record.bytes,
                errors=dict(record.errors),
                latency=_encoded_unless_empty(record.latency),
                first_byte=_encoded_unless_empty(record.first_byte),
                min_us=record.min_us if record.count else None,
                max_us=record.max_us if record.count else None,
                sum_us=record.sum_us,
                in_flight=_encoded_unless_empty(record.in_flight),
                in_flight_max_us=record.in_flight_max_us
                if record.in_flight.get_total_count()
                else None,
                outstanding_us=record.outstanding_us,
                failed_us=record.failed_us,
                before_us=record.before_us,
            )
            for operation, record in sorted(self._records.items())
        )

    def seconds(self) -> tuple[Second, ...]:
        """The window by seconds, without those in which nothing of an operation completed."""
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
                failures=dict(moment.failures),
            )
            for operation, record in sorted(self._records.items())
            for second, moment in sorted(record.seconds.items())
        )


def _encoded_unless_empty(histogram: HdrHistogram) -> str | None:
    return encoded(histogram) if histogram.get_total_count() else None


def _before(at_s: float, age_us: int) -> int:
    """How much of a time that ended `at_s` after the window opened was before it, in us."""
    return max(0, age_us - round(at_s * 1e6))


def _unseen(record: _Record, age_us: int) -> None:
    _count(record.in_flight, age_us)
    record.in_flight_max_us = max(record.in_flight_max_us, age_us)
