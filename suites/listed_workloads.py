"""Workloads whose objects are only listed: one for each share of deletes, and what each finds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from weighbridge.suites.factors import LONGEST_NAME
from weighbridge.suites.workload import Workload


def variants(workload: Workload) -> tuple[Workload, ...]:
    """A workload for each share of deletes that it lists, the first with its name; itself if it
    lists none. Raises ValueError if a name gets too long.
    """
    listed = workload.listed
    if listed is None or not isinstance(listed.deleted, tuple):
        return (workload,)
    found = []
    for number, share in enumerate(listed.shares):
        name = f"{workload.name}-{100 * share:.0f}-deleted" if number else workload.name
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"listed: {name} is longer than {LONGEST_NAME} characters; choose a shorter name "
                "for the workload"
            )
        of = workload.name if number else listed.of
        own = listed.model_copy(update={"deleted": share, "of": of})
        found.append(workload.model_copy(update={"name": name, "listed": own}))
    return tuple(found)


def continues(workload: Workload) -> bool:
    """Whether it deletes objects of another workload, and so cannot be prepared before its end."""
    return workload.listed is not None and workload.listed.of is not None


def whole(workload: Workload) -> Workload:
    """The workload whose buckets have its objects, before anything was deleted."""
    listed = workload.listed
    if listed is None:
        return workload
    before = listed.model_copy(update={"deleted": 0.0, "of": None})
    return workload.model_copy(update={"name": listed.of or workload.name, "listed": before})


def remaining(workload: Workload) -> Workload:
    """The same with as many objects as its steps find. Which ones, only `deleted_indexes` knows."""
    listed, objects = workload.listed, workload.objects
    if listed is None:
        return workload
    left = objects.per_container - listed.gone(objects.per_container)
    return whole(workload).model_copy(
        update={"objects": objects.model_copy(update={"per_container": left})}
    )


def deleted_indexes(workload: Workload, seed: int) -> tuple[int, ...]:
    """Indexes of the objects that are deleted from each of its containers, in random order: those
    of a smaller share are the first of a larger one.
    """
    listed, count = workload.listed, workload.objects.per_container
    if listed is None or not listed.gone(count):
        return ()
    drawn = sorted(range(count), key=lambda index: _draw(seed, index))
    return tuple(drawn[: listed.gone(count)])


def _draw(seed: int, index: int) -> bytes:
    return hashlib.sha256(f"deleted {seed} {index}".encode()).digest()


def check_order(workloads: Sequence[Workload]) -> None:
    """Raise ValueError unless each that deletes objects of another follows it, and those that
    deleted fewer of them.
    """
    last: dict[str, Workload] = {}
    for one in workloads:
        if one.listed is None:
            continue
        name, of = f"{one.name}: listed", one.listed.of
        if of is not None:
            earlier = last.get(of)
            if earlier is None or earlier.listed is None:
                raise ValueError(f"{name}: no workload {of!r} before it that is only listed")
            if earlier.objects != one.objects:
                raise ValueError(f"{name}: the objects of {of} are others")
            if one.listed.shares[0] <= earlier.listed.shares[0]:
                raise ValueError(f"{name}: it deletes no more than a workload before it")
        last[of or one.name] = one
