"""Names in listings without objects, where a suite asks for them and the store takes them."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.drivers.engine._native import object_name
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.results.record.step import Pass
from weighbridge.suites import Workload, deleted_indexes


def with_objects(passes: Sequence[Pass]) -> tuple[Pass, ...]:
    """The passes on a store that takes no names without objects: with objects."""
    return tuple(
        way.model_copy(update={"workloads": tuple(map(_with_objects, way.workloads))})
        for way in passes
    )


def _with_objects(workload: Workload) -> Workload:
    if workload.listed is None or not workload.listed.names_only:
        return workload
    listed = workload.listed.model_copy(update={"names_only": False})
    return workload.model_copy(update={"listed": listed})


def put_names(
    gateway: RunningGateway, workload: Workload, buckets: Sequence[str], seed: int
) -> str:
    """Put a workload's names into listings, those that its steps must not find as deleted; returns
    what results must say of it. Raises TargetError.
    """
    names = [object_name(index) for index in range(workload.objects.per_container)]
    gone = [names[index] for index in deleted_indexes(workload, seed)]
    how = {gateway.put_names(bucket, names, gone) for bucket in buckets}
    return f"its names are {' and '.join(sorted(how))}: nothing but listings can be measured"
