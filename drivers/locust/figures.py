"""Locust's own statistics, filled in bulk from windows, so that its tables, pages and CSV files
agree with what the workers recorded.

An entry is added as Locust's master adds its workers' reports, which also fills what its current
percentiles are made of. Times are in ms with three digits; Locust cuts some to whole ms.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from locust.stats import RequestStats, StatsEntry, StatsError, get_stats_summary

from weighbridge.drivers.locust.worker_group import Window
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Tally

Key = TypeVar("Key")


@dataclass(frozen=True)
class _Fed:
    count: int = 0
    bytes: int = 0
    sum_us: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    latencies_us: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, tally: Tally) -> _Fed:
        return cls(
            count=tally.count,
            bytes=tally.bytes,
            sum_us=tally.sum_us or 0,
            errors=tally.errors,
            latencies_us=dict(Histogram.decode(tally.latency).buckets()) if tally.latency else {},
        )

    def since(self, earlier: _Fed) -> _Fed:
        return _Fed(
            count=self.count - earlier.count,
            bytes=self.bytes - earlier.bytes,
            sum_us=self.sum_us - earlier.sum_us,
            errors=_more(self.errors, earlier.errors),
            latencies_us=_more(self.latencies_us, earlier.latencies_us),
        )


class LocustFigures:
    """Feeds one workload's windows to Locust's statistics, an entry for each operation."""

    def __init__(self, stats: RequestStats, workload: str) -> None:
        self._stats = stats
        self._workload = workload
        self._fed: dict[str, _Fed] = {}
        self._fed_s = 0.0

    def forget(self) -> None:
        """The next window is a new one, which begins with nothing."""
        self._fed.clear()
        self._fed_s = 0.0

    def add(self, window: Window) -> None:
        """Add what this window has recorded since it was added before."""
        now_s = time.time()
        since_s = now_s - max(0.0, window.window_s - self._fed_s)
        self._fed_s = window.window_s
        for tally in window.tallies:
            fed = _Fed.of(tally)
            new = fed.since(self._fed.get(tally.operation, _Fed()))
            if new.count or new.errors:
                whole = self._fed.get(tally.operation) is None
                self._fed[tally.operation] = fed
                self._extend(tally, new, since_s, now_s, whole=whole)

    def _extend(
        self, tally: Tally, new: _Fed, since_s: float, now_s: float, *, whole: bool
    ) -> None:
        failed = sum(new.errors.values())
        one = StatsEntry(self._stats, self._workload, tally.operation)
        # Locust counts failures as requests; here they have no latency.
        one.num_requests, one.num_none_requests, one.num_failures = (
            new.count + failed,
            failed,
            failed,
        )
        one.total_content_length = new.bytes
        one.start_time, one.last_request_timestamp = since_s, now_s
        one.num_reqs_per_sec[int(now_s)] = new.count + failed
        if failed:
            one.num_fail_per_sec[int(now_s)] = failed
        if new.latencies_us:
            # Extremes are exact of a complete window; later ones are as fine as the histogram.
            least_us = tally.min_us if whole else None
            most_us = tally.max_us if whole else None
            least_us = min(new.latencies_us) if least_us is None else least_us
            most_us = max(new.latencies_us) if most_us is None else most_us
            # Locust's annotations say int; its sums and keys may be any numbers.
            one.total_response_time = new.sum_us / 1000  # type: ignore[assignment]
            one.min_response_time = least_us / 1000  # type: ignore[assignment]
            one.max_response_time = most_us / 1000  # type: ignore[assignment]
            times_ms: Counter[float] = Counter()
            for us, count in new.latencies_us.items():
                times_ms[float(f"{us / 1000:.3g}")] += count
            one.response_times = times_ms  # type: ignore[assignment]
        self._stats.get(one.name, one.method).extend(one)
        self._stats.total.extend(one)
        for error_class, count in new.errors.items():
            # Not by log_error, which would count another failure.
            key = StatsError.create_key(tally.operation, self._workload, error_class)
            error = self._stats.errors.setdefault(
                key, StatsError(tally.operation, self._workload, error_class)
            )
            error.occurred()
            error.occurrences += count - 1


def feed(stats: RequestStats, workload: str, window: Window) -> None:
    """Have Locust's statistics show a window, and nothing else."""
    stats.clear_all()
    LocustFigures(stats, workload).add(window)


def summary(stats: RequestStats) -> str:
    """Locust's own table, as text for the log."""
    return "\n".join(get_stats_summary(stats, current=False))


def _more(now: Mapping[Key, int], before: Mapping[Key, int]) -> dict[Key, int]:
    grown = {key: count - before.get(key, 0) for key, count in now.items()}
    return {key: count for key, count in grown.items() if count > 0}
