"""Windows of several crews as one: counts are added, true minima and maxima kept, percentiles never
averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from weighbridge.drivers.engine._native import added_histograms
from weighbridge.drivers.locust.worker_group import Window, WorkerProgress
from weighbridge.results.record.measurement import Second, Tally
from weighbridge.suites import Operation


def merged(windows: Sequence[Window]) -> Window:
    """One window of all: `window_s` is their mean (they are opened and closed together), CPU
    seconds are added.

    Whose CPU they may use is left out: it is another one on each host. Raises ValueError when there
    is none.
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
        behind_us=max(
            (window.behind_us for window in windows if window.behind_us is not None), default=None
        ),
        cpu_s=sum(window.cpu_s for window in windows),
    )


def merged_pulses(pulses: Sequence[WorkerProgress]) -> WorkerProgress:
    """One pulse of all crews; the last error is that of the last crew that has any."""
    errors: dict[str, int] = {}
    for pulse in pulses:
        for name, count in pulse.errors.items():
            errors[name] = errors.get(name, 0) + count
    return WorkerProgress(
        started=sum(pulse.started for pulse in pulses),
        running=sum(pulse.running for pulse in pulses),
        exhausted=sum(pulse.exhausted for pulse in pulses),
        done=sum(pulse.done for pulse in pulses),
        failed=sum(pulse.failed for pulse in pulses),
        bytes=sum(pulse.bytes for pulse in pulses),
        errors=errors,
        last_error=next((pulse.last_error for pulse in reversed(pulses) if pulse.last_error), None),
    )


def _tally(same: Sequence[Tally]) -> Tally:
    errors: dict[str, int] = {}
    for tally in same:
        for name, count in tally.errors.items():
            errors[name] = errors.get(name, 0) + count
    return Tally(
        operation=same[0].operation,
        count=sum(tally.count for tally in same),
        bytes=sum(tally.bytes for tally in same),
        errors=errors,
        latency=_added(tally.latency for tally in same),
        first_byte=_added(tally.first_byte for tally in same),
        min_us=min((tally.min_us for tally in same if tally.min_us is not None), default=None),
        max_us=max((tally.max_us for tally in same if tally.max_us is not None), default=None),
        sum_us=_sum(tally.sum_us for tally in same),
        in_flight=_added(tally.in_flight for tally in same),
        in_flight_max_us=max(
            (tally.in_flight_max_us for tally in same if tally.in_flight_max_us is not None),
            default=None,
        ),
        outstanding_us=_sum(tally.outstanding_us for tally in same),
        failed_us=_sum(tally.failed_us for tally in same),
        before_us=_sum(tally.before_us for tally in same),
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
    )


def _sum(parts: Iterable[int | None]) -> int | None:
    """None where one of them is not known: a sum without it would be wrong."""
    known = list(parts)
    return None if None in known else sum(part for part in known if part is not None)


def _added(histograms: Iterable[str | None]) -> str | None:
    there = [histogram for histogram in histograms if histogram is not None]
    if len(there) < 2:
        return there[0] if there else None
    return added_histograms(there)
