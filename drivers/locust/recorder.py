"""What the SDK users record: per operation an HDR histogram, exact min, max and sum, errors by
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
    """An empty histogram of the bounds that every measurement has: 1 us to 1 h, 3 significant
    digits.
    """
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
    in_flight: HdrHistogram = field(default_factory=new_histogram)
    in_flight_max_us: int = 0
    outstanding_us: int = 0
    failed_us: int = 0
    before_us: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    seconds: dict[int, _Moment] = field(default_factory=dict)


class Recorder:
    """Counts the requests of one window.

    Latencies are whole microseconds; `at_s` is seconds since the window opened.
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
        """Count a request that did what it was to do."""
        record = self._records.setdefault(operation, _Record())
        record.count += 1
        record.bytes += moved_bytes
        record.min_us = min(record.min_us, latency_us)
        record.max_us = max(record.max_us, latency_us)
        record.sum_us += latency_us
        record.before_us += _before(at_s, latency_us)
        # The histogram's range is bounded; what lies outside is counted at its bound, and min and
        # max stay exact beside it.
        record.latency.record_value(min(HIGHEST_US, max(LOWEST_US, latency_us)))
        if first_byte_us is not None:
            record.first_byte.record_value(min(HIGHEST_US, max(LOWEST_US, first_byte_us)))
        moment = record.seconds.setdefault(int(at_s), _Moment())
        moment.count += 1
        moment.bytes += moved_bytes
        moment.max_us = max(moment.max_us, latency_us)
        moment.sum_us += latency_us
        moment.bands[band_of(latency_us)] += 1

    def failure(self, operation: Operation, at_s: float, error_class: str, age_us: int) -> None:
        """Count a request that failed after `age_us`: it has no latency.

        One that was given up might have ended any time later.
        """
        record = self._records.setdefault(operation, _Record())
        record.errors[error_class] = record.errors.get(error_class, 0) + 1
        record.failed_us += age_us
        record.before_us += _before(at_s, age_us)
        if error_class == "timeout":
            _unseen(record, age_us)
        record.seconds.setdefault(int(at_s), _Moment()).errors += 1

    def rested(self, operation: Operation, rest_us: int) -> None:
        """A worker rested for so long after a failure, inside the window."""
        self._records.setdefault(operation, _Record()).failed_us += rest_us

    def outstanding(self, operation: Operation, at_s: float, age_us: int) -> None:
        """When the window closed, at `at_s`, a request was outstanding for `age_us`."""
        record = self._records.setdefault(operation, _Record())
        record.outstanding_us += age_us
        record.before_us += _before(at_s, age_us)
        _unseen(record, age_us)

    def waiting(self, operation: Operation, age_us: int) -> None:
        """When the window closed, a request that was to start `age_us` before had not been sent."""
        _unseen(self._records.setdefault(operation, _Record()), age_us)

    def tallies(self) -> tuple[Tally, ...]:
        """All of the window, by operation."""
        return tuple(
            Tally(
                operation=operation,
                count=record.count,
                bytes=record.bytes,
                errors=dict(record.errors),
                latency=encoded(record.latency) if record.count else None,
                first_byte=encoded(record.first_byte)
                if record.first_byte.get_total_count()
                else None,
                min_us=record.min_us if record.count else None,
                max_us=record.max_us if record.count else None,
                sum_us=record.sum_us,
                in_flight=encoded(record.in_flight) if record.in_flight.get_total_count() else None,
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
        """The window second by second; seconds in which nothing of an operation completed are left
        out.
        """
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


def _before(at_s: float, age_us: int) -> int:
    """How much of a time that ended `at_s` after the opening of the window lies before it, in
    microseconds.
    """
    return max(0, age_us - round(at_s * 1e6))


def _unseen(record: _Record, age_us: int) -> None:
    record.in_flight.record_value(min(HIGHEST_US, max(LOWEST_US, age_us)))
    record.in_flight_max_us = max(record.in_flight_max_us, age_us)
