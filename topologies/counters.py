"""What hosts answer about their counters, checked: a host is under test, and may be anybody's."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

from pydantic import TypeAdapter, ValidationError

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters
from weighbridge.common.tool_output import printable

MOST_COUNTED: Final = 2**63
MOST_MEMORY_BYTES: Final = 2**50
_COUNTERS: Final = TypeAdapter(Counters)
_DISK: Final = tuple(field.name for field in fields(DiskCounters) if field.name != "model")
_ADDED: Final = (
    *("cpu_s", "oom_kills", "network_received_bytes", "network_sent_bytes", "network_faults"),
)


def counters_of(name: str, answer: object) -> Counters:
    """What a host answered. Raises TargetError with its name."""
    try:
        counters = _COUNTERS.validate_python(answer)
    except ValidationError as error:
        raise TargetError(f"{name}: invalid counters: {fault_of(error)}") from None
    for record in (counters, *(counters.disks or ())):
        for key, value in vars(record).items():
            most = MOST_MEMORY_BYTES if key.startswith("memory") else MOST_COUNTED
            # Of NaN no comparison is true.
            if isinstance(value, int | float) and not 0 <= value < most:
                raise TargetError(f"{name}: invalid counters: {key}: {printable(value)}")
    return counters


def fault_of(error: ValidationError) -> str:
    """The first fault of an answer, without what the host said."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return printable(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}")


def since(now: Counters, before: Counters) -> Counters:
    """What was used between two readings of the same counters; memory as it is now."""
    used = {
        name: value - (getattr(before, name) or 0)
        for name in _ADDED
        if (value := getattr(now, name)) is not None
    }
    disks = tuple(
        replace(disk, **{name: getattr(disk, name) - getattr(then, name) for name in _DISK})
        for disk, then in zip(now.disks or (), before.disks or (), strict=True)
    )
    if not disks:
        return replace(now, disks=None, **used)
    return replace(
        now,
        **used,
        disks=disks,
        disk_read_bytes=sum(disk.read_bytes for disk in disks),
        disk_written_bytes=sum(disk.written_bytes for disk in disks),
    )
