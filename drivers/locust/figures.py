"""Locust's own statistics, filled from a window, so that its tables and CSV files agree with the
measurement.

Locust keeps whole milliseconds (and two digits above 100 ms): its percentiles are approximate, the
measurement's are exact.
"""

from __future__ import annotations

import time

from hdrh.histogram import HdrHistogram
from locust.stats import (
    RequestStats,
    StatsEntry,
    StatsError,
    bucket_response_time,
    get_stats_summary,
)

from weighbridge.drivers.locust.worker_group import Window
from weighbridge.results.record.measurement import Tally


def feed(stats: RequestStats, workload: str, window: Window) -> None:
    """Put a window into Locust's statistics: an entry for each operation, and the total."""
    stats.clear_all()
    began_s = time.time() - window.window_s
    for tally in window.tallies:
        for entry in (stats.get(workload, tally.operation), stats.total):
            _add(entry, tally)
            entry.start_time = began_s
            # Locust divides by this span: the entire window, not up to its last whole second.
            entry.last_request_timestamp = began_s + window.window_s
        for error_class, count in tally.errors.items():
            # Not by log_error, which would count another failure.
            error = StatsError(tally.operation, workload, error_class, occurrences=count)
            stats.errors[StatsError.create_key(tally.operation, workload, error_class)] = error
    for second in window.seconds:
        for entry in (stats.get(workload, second.operation), stats.total):
            entry.num_reqs_per_sec[int(began_s) + second.second] += second.count + second.errors
            entry.num_fail_per_sec[int(began_s) + second.second] += second.errors


def summary(stats: RequestStats) -> str:
    """Locust's own table, as text for the log."""
    return "\n".join(get_stats_summary(stats, current=False))


def _add(entry: StatsEntry, tally: Tally) -> None:
    failed = tally.failed
    # Locust counts failures as requests; here they have no latency.
    entry.num_requests += tally.count + failed
    entry.num_none_requests += failed
    entry.num_failures += failed
    entry.total_content_length += tally.bytes
    if (
        tally.latency is None
        or tally.min_us is None
        or tally.max_us is None
        or tally.sum_us is None
    ):
        return
    entry.total_response_time += tally.sum_us / 1000  # type: ignore[assignment] # annotated as int, used as float
    min_ms, earlier_ms = tally.min_us / 1000, entry.min_response_time
    min_ms = min_ms if earlier_ms is None else min(earlier_ms, min_ms)
    entry.min_response_time = min_ms  # type: ignore[assignment]
    entry.max_response_time = max(entry.max_response_time, tally.max_us / 1000)  # type: ignore[assignment]
    for bucket in HdrHistogram.decode(tally.latency).get_recorded_iterator():
        entry.response_times[bucket_response_time(bucket.value_iterated_to / 1000)] += (
            bucket.count_at_value_iterated_to
        )
