"""Windows of several worker groups merged: counts are added, exact minima and maxima are kept,
percentiles are never averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from weighbridge.drivers.engine._native import added_histograms
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.results.record.measurement import EndpointTally, Second, Tally
from weighbridge.suites import Operation


def merged(windows: Sequence[Window]) -> Window:
    """One window of all. `window_s` is their mean, since they open and close together.

    CPU seconds are added; `cpu_limit` is left out, since it differs by host. Raises ValueError when
    there are no windows.
    """
    if not windows:
        raise ValueError("no windows to merge")
    if len(windows) == 1:
        return windows[0]
    tallies: dict[Operation, list[Tally]] = {}
    moments: dict[tuple[Operation, int], list[Second]] = {}
    for window in windows:
        for tally in window.tallies:
            tallies.setdefault(tally.operation, []).append(tally)
        for second in window.seconds:
            moments.setdefault((second.operation, second.second), []).append(second)
    return Window(
        tallies=tuple(_tally(same) for _, same in sorted(tallies.items())),
        seconds=tuple(_second(same) for _, same in sorted(moments.items())),
        window_s=sum(window.window_s for window in windows) / len(windows),
        begun=_sum(window.begun for window in windows),
        behind_us=_most(window.behind_us for window in windows),
        connections=_sum(window.connections for window in windows),
        stall_us=_most(window.stall_us for window in windows),
        endpoints=_endpoints([one for window in windows for one in window.endpoints]),
        cpu_s=sum(window.cpu_s for window in windows),
    )


def merged_progress(parts: Sequence[WorkerProgress]) -> WorkerProgress:
    """The progress of all worker groups; the last error is the last group's that has one."""
    return WorkerProgress(
        started=sum(part.started for part in parts),
        running=sum(part.running for part in parts),
        exhausted=sum(part.exhausted for part in parts),
        done=sum(part.done for part in parts),
        failed=sum(part.failed for part in parts),
        bytes=sum(part.bytes for part in parts),
        errors=_added_errors(part.errors for part in parts),
        last_error=next((part.last_error for part in reversed(parts) if part.last_error), None),
    )


def _added_errors(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update(part)
    return dict(errors)


def _tally(same: Sequence[Tally]) -> Tally:
    return Tally(
        operation=same[0].operation,
        count=sum(tally.count for tally in same),
        bytes=sum(tally.bytes for tally in same),
        errors=_added_errors(tally.errors for tally in same),
        latency=_added(tally.latency for tally in same),
        first_byte=_added(tally.first_byte for tally in same),
        min_us=min((tally.min_us for tally in same if tally.min_us is not None), default=None),
        max_us=_most(tally.max_us for tally in same),
        sum_us=_sum(tally.sum_us for tally in same),
        in_flight=_added(tally.in_flight for tally in same),
        in_flight_max_us=_most(tally.in_flight_max_us for tally in same),
        outstanding_us=_sum(tally.outstanding_us for tally in same),
        failed_us=_sum(tally.failed_us for tally in same),
        before_us=_sum(tally.before_us for tally in same),
    )


def _endpoints(parts: Sequence[EndpointTally]) -> tuple[EndpointTally, ...]:
    """The counts of each endpoint, added; one is left out if any process left it out."""
    by_name: dict[str, list[EndpointTally]] = {}
    for part in parts:
        by_name.setdefault(part.name, []).append(part)
    return tuple(
        EndpointTally(
            name=name,
            count=sum(one.count for one in same),
            errors=_added_errors(one.errors for one in same),
            latency=_added(one.latency for one in same),
            left_out=any(one.left_out for one in same),
        )
        for name, same in by_name.items()
    )


def _second(same: Sequence[Second]) -> Second:
    bands: Counter[int] = Counter()
    for second in same:
        bands.update(dict(second.bands))
    return Second(
        second=same[0].second,
        operation=same[0].operation,
        count=sum(second.count for second in same),
        bytes=sum(second.bytes for second in same),
        errors=sum(second.errors for second in same),
        max_us=max(second.max_us for second in same),
        sum_us=sum(second.sum_us for second in same),
        bands=tuple(sorted(bands.items())),
        in_flight=_sum(second.in_flight for second in same),
        failures=_added_errors(second.failures for second in same),
    )


def _sum(parts: Iterable[int | None]) -> int | None:
    """None when one part is unknown: a sum without it would be wrong."""
    known = list(parts)
    return None if None in known else sum(part for part in known if part is not None)


def _most(parts: Iterable[int | None]) -> int | None:
    """The largest that is known."""
    return max((part for part in parts if part is not None), default=None)


def _added(histograms: Iterable[str | None]) -> str | None:
    known = [histogram for histogram in histograms if histogram is not None]
    if len(known) < 2:
        return known[0] if known else None
    return added_histograms(known)
