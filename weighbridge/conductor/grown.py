"""What a host's counters grew by between two samples."""

from __future__ import annotations

from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.results.record.telemetry import DiskSecond, ModelDiskSecond

_GROWING = (
    *("cpu_s", "throttled_s", "cpu_periods", "throttled_periods", "conductor_cpu_s"),
    *("kernel_cpu_s", "oom_kills", "network_faults"),
)
"""Counters of a host that only grow, and have the same name in `HostSecond`."""


def grown(first: Counters, last: Counters) -> dict[str, object]:
    """The use of a host between two samples; unknown if a counter is unknown in one, or fell."""
    more = {name: _more(getattr(first, name), getattr(last, name)) for name in _GROWING}
    return {
        **more,
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
