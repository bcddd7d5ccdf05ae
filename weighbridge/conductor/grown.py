"""What a host's counters grew by between two samples."""

from __future__ import annotations

from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.results.record.telemetry import DiskSecond, ModelDiskSecond


def grown(first: Counters, last: Counters) -> dict[str, object]:
    """The use of a host between two samples; unknown if a counter is unknown in one, or fell."""
    return {
        "cpu_s": _more(first.cpu_s, last.cpu_s),
        "throttled_s": _more(first.throttled_s, last.throttled_s),
        "cpu_periods": _more(first.cpu_periods, last.cpu_periods),
        "throttled_periods": _more(first.throttled_periods, last.throttled_periods),
        "conductor_cpu_s": _more(first.conductor_cpu_s, last.conductor_cpu_s),
        "kernel_cpu_s": _more(first.kernel_cpu_s, last.kernel_cpu_s),
        "oom_kills": _more(first.oom_kills, last.oom_kills),
        "network_faults": _more(first.network_faults, last.network_faults),
        "received_bytes": _more(first.network_received_bytes, last.network_received_bytes),
        "sent_bytes": _more(first.network_sent_bytes, last.network_sent_bytes),
        "memory_bytes": last.memory_bytes,
        "memory_held_bytes": last.memory_held_bytes,
        "disks": _disks(first.disks, last.disks),
    }


def _more(first: float | None, last: float | None) -> float | None:
    if first is None or last is None or last < first:
        return None
    more = last - first
    return more if isinstance(more, int) else round(more, 6)


def _disks(
    first: tuple[DiskCounters, ...] | None, last: tuple[DiskCounters, ...] | None
) -> tuple[DiskSecond, ...] | None:
    if first is None or last is None or len(first) != len(last):
        return None
    names = ("read_bytes", "written_bytes", "reads", "writes", "busy_s", "waited_s")
    pairs = [
        {name: _more(getattr(a, name), getattr(b, name)) for name in names}
        for a, b in zip(first, last, strict=True)
    ]
    if any(value is None for one in pairs for value in one.values()):
        return None
    said = [_model(a.model, b.model) for a, b in zip(first, last, strict=True)]
    return tuple(
        DiskSecond.model_validate({**one, "model": model})
        for one, model in zip(pairs, said, strict=True)
    )


def _model(
    first: ModelDiskCounters | None, last: ModelDiskCounters | None
) -> ModelDiskSecond | None:
    """What a disk with a model counted between two samples; None: it has none, or one fell."""
    if first is None or last is None:
        return None
    names = [name for name in ModelDiskSecond.model_fields if name != "cached_bytes"]
    more = {name: _more(getattr(first, name), getattr(last, name)) for name in names}
    if None in more.values():
        return None
    return ModelDiskSecond.model_validate({**more, "cached_bytes": last.cached_bytes})
