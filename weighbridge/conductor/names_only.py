"""Names in listings without objects, where a suite asks for them and the store takes them."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.drivers.engine._native import object_name
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.suites import Workload, deleted_indexes


def takes_names(gateway: RunningGateway, workload: Workload) -> bool:
    """Whether the store gets the names of a workload alone."""
    return workload.listed is not None and workload.listed.names_only and gateway.takes_names


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
