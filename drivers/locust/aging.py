"""Aging a store: fill it and churn it, the same for the same seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from weighbridge.drivers.engine._native import object_name, object_sizes, sample
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.prepared_objects import PreparedObjects, Say
from weighbridge.drivers.order import AgeBuckets, Aged, AgeRound, Setup

_CHURN = 7
"""Tells draws of victims from all other draws of a seed."""


class Aging:
    """One aging. Objects have numbers from 0 on, in the order in which they are written; none is
    ever used twice.
    """

    def __init__(self, setup: Setup, allowance: CpuAllowance, order: AgeBuckets, say: Say) -> None:
        seed = setup.seed if order.age.seed is None else order.age.seed
        self._setup = setup.model_copy(update={"seed": seed})
        self._stock = PreparedObjects(self._setup, allowance)
        self._order = order
        self._say = say
        self._workload = order.age.workload(order.objects)

    def run(self) -> Aged:
        """Do it. Raises DriverError when an object cannot be written or deleted."""
        order, began_s = self._order, time.monotonic()
        sizes = object_sizes(
            self._workload.model_dump_json(), self._setup.seed, 0, self._workload.objects.count
        )
        upto = [0, *accumulate(sizes)]
        self._stock.make_buckets(self._workload, self._say)
        self._stock.write(self._workload, range(order.objects), order.parallel, self._say)
        rounds = []
        left = list(range(order.objects))
        for number, (gone, new, left) in enumerate(churned(order, self._setup.seed)):  # noqa: B007 - the last one is what is left
            self._stock.delete(self._workload, gone, order.parallel, self._say)
            self._stock.write(self._workload, new, order.parallel, self._say)
            deleted_bytes = sum(sizes[one] for one in gone)
            rounds.append(
                AgeRound(
                    number=number,
                    deleted=len(gone),
                    deleted_bytes=deleted_bytes,
                    written=len(new),
                    written_bytes=upto[new.stop] - upto[new.start],
                )
            )
        return Aged(
            objects=len(left),
            bytes=sum(sizes[one] for one in left),
            filled_bytes=upto[order.objects],
            rounds=tuple(rounds),
            seconds=time.monotonic() - began_s,
            fingerprint=fingerprint(left, order.age.containers, sizes.__getitem__),
        )


def churned(order: AgeBuckets, seed: int) -> Iterator[tuple[list[int], range, list[int]]]:
    """Of each round, the objects that go, those that come, and those that are there after it."""
    alive, each = list(range(order.objects)), order.age.turnover(order.objects)
    for number in range(order.age.churn):
        places = set(sample([seed, _CHURN, number], len(alive), each))
        gone = [one for place, one in enumerate(alive) if place in places]
        new = range(order.objects + number * each, order.objects + (number + 1) * each)
        alive = [*(one for place, one in enumerate(alive) if place not in places), *new]
        yield gone, new, alive


def fingerprint(numbers: Sequence[int], containers: int, size_of: Callable[[int], int]) -> str:
    """A sum over container, name and size of each object: the same for stores that were given the
    same.
    """
    whole = hashlib.sha256()
    for one in sorted(numbers):
        whole.update(
            f"{one % containers}/{object_name(one // containers)} {size_of(one)}\n".encode()
        )
    return whole.hexdigest()[:16]
