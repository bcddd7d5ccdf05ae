"""Whether a driver can do what a workload says: asked before anything starts, so that no run ends in its middle over it."""

from __future__ import annotations

from typing import Literal

from suites import Api, Workload

DriverName = Literal["locust", "cosbench", "rados", "fio"]


def unfit(workload: Workload, api: Api, driver: DriverName) -> tuple[str, ...]:
    """What of a workload this driver cannot do over this API, in words; empty when it can do all of it."""
    if driver == "cosbench":
        from drivers.cosbench.fitness import unfit as cosbench_unfit  # noqa: PLC0415 - a driver is imported where it is wanted

        return cosbench_unfit(workload, api)
    if api == "object-server":
        return tuple(_object_server(workload))
    if api in ("rados", "rbd", "cephfs"):
        return tuple(_bench(workload, api))
    return ()


def _bench(workload: Workload, api: Api) -> list[str]:
    """Ceph's benches and fio do one operation on objects of one size, as fast as they can."""
    found = []
    if len(workload.operations) > 1 or not set(workload.operations) <= {"read", "write"}:
        found.append(f"{api} is read or written, one of them at a time, not {' and '.join(workload.operations)}")
    if not isinstance(workload.objects.size, int):
        found.append(f"{api} is asked objects of one size")
    if workload.pick not in ("uniform", "sequential"):
        found.append(f"{api} picks objects by chance or one after the other, not by popularity")
    if workload.rate_per_s is not None:
        found.append(f"{api} is asked as fast as it answers, not at a rate")
    if workload.verify:
        found.append(f"what is read of {api} is not compared")
    return found


def _object_server(workload: Workload) -> list[str]:
    strange = set(workload.operations) - {"read", "write", "delete", "head"}
    return [f"object servers know no {', '.join(sorted(strange))}"] if strange else []
