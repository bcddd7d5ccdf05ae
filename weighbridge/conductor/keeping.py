"""Reading what keeping objects costs: the disks around a preparation, and daemons' memory."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

from pydantic import Field, PositiveInt, TypeAdapter, ValidationError

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.drivers.protocol import Prepared
from weighbridge.gateways import program
from weighbridge.gateways.daemon import Daemon, by_host
from weighbridge.gateways.disk_space import KeptBytes
from weighbridge.gateways.together import together
from weighbridge.results.record.kept import DaemonMemory, KeptObjects
from weighbridge.results.record.step import Pass
from weighbridge.suites import Workload

_NUMBERED: Final = re.compile(r"[.-]\d+$")


class _Memory(Record):
    """What the program on a host prints of one daemon."""

    processes: PositiveInt
    resident_bytes: Count
    peak_bytes: Count | None


_ANSWER: Final = TypeAdapter(Annotated[list[_Memory | None], Field(max_length=10_000)])


def kept_objects(
    layout: str,
    repeat: int,
    way: Pass,
    workload: Workload,
    prepared: Prepared,
    *,
    before: KeptBytes | None,
    after: KeptBytes | None,
) -> KeptObjects | None:
    """The record of a preparation; None where something is unknown, or nothing was written."""
    if before is None or after is None or not prepared.objects:
        return None
    return KeptObjects(
        layout=layout,
        repeat=repeat,
        workload=workload.name,
        api=way.api,
        driver=way.driver,
        objects=prepared.objects,
        stored_bytes=prepared.bytes,
        compressible=workload.objects.compressible,
        before_bytes=before.data_bytes,
        after_bytes=after.data_bytes,
        beside_before_bytes=before.beside_bytes,
        beside_after_bytes=after.beside_bytes,
        how=after.how,
    )


def memory_of(
    daemons: Sequence[Daemon], layout: str, repeat: int, workload: str
) -> list[DaemonMemory]:
    """The memory of daemons; unknown of those whose processes are not found, or not readable.

    Raises TargetError, also for an answer of a host that is none.
    """
    groups = by_host(daemons)
    answers = together([partial(_ask, group) for group in groups])
    return [
        DaemonMemory(
            layout=layout,
            repeat=repeat,
            workload=workload,
            host=one.host.name,
            daemon=one.service.name,
            role=_NUMBERED.sub("", one.service.name),
            processes=0 if found is None else found.processes,
            resident_bytes=None if found is None else found.resident_bytes,
            peak_bytes=None if found is None else found.peak_bytes,
        )
        for group, answer in zip(groups, answers, strict=True)
        for one, found in zip(group, answer, strict=True)
    ]


def _ask(group: Sequence[Daemon]) -> list[_Memory | None]:
    host = group[0].host
    argv = program.ship(host, "weighbridge.gateways.daemon_memory")
    done = host.run(argv, stdin=json.dumps([one.service.argv for one in group]))
    try:
        found = _ANSWER.validate_json(done.stdout)
    except ValidationError as error:
        raise TargetError(
            f"{host.name}: no memory of daemons: {error.errors()[0]['msg']}"
        ) from None
    if len(found) != len(group):
        raise TargetError(f"{host.name}: the memory of {len(found)} daemons, not of {len(group)}")
    return found
