"""Aging a store: fill it and churn it, the same for the same seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from weighbridge.drivers.engine._native import object_name, object_sizes, sample
from weighbridge.drivers.locust.prepared_objects import PreparedObjects, Send
from weighbridge.drivers.protocol import AgeBuckets, Aged, AgeRound, Setup

_CHURN = 7
"""Keeps draws of deleted objects apart from all other draws of a seed."""


class Aging:
    """One aging. Objects are numbered from 0 in the order they are written; no number is reused."""

    def __init__(self, setup: Setup, command: AgeBuckets, send: Send) -> None:
        seed = setup.seed if command.age.seed is None else command.age.seed
        self._setup = setup.model_copy(update={"seed": seed})
        self._objects = PreparedObjects(self._setup)
        self._command = command
        self._send = send
        self._workload = command.age.workload(command.objects)

    def run(self) -> Aged:
        """Fill and churn. Raises DriverError when an object cannot be written or deleted."""
        command, began_s = self._command, time.monotonic()
        sizes = object_sizes(
            self._workload.model_dump_json(), self._setup.seed, 0, self._workload.objects.count
        )
        upto = [0, *accumulate(sizes)]
        self._objects.make_buckets(self._workload, self._send)
        self._objects.write(self._workload, range(command.objects), command.parallel, self._send)
        rounds = []
        left = list(range(command.objects))
        for number, (gone, new, left) in enumerate(churned(command, self._setup.seed)):  # noqa: B007 - the last one is used below
            self._objects.delete(self._workload, gone, command.parallel, self._send)
            self._objects.write(self._workload, new, command.parallel, self._send)
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
            filled_bytes=upto[command.objects],
            rounds=tuple(rounds),
            seconds=time.monotonic() - began_s,
            fingerprint=fingerprint(left, command.age.containers, sizes.__getitem__),
        )


def churned(command: AgeBuckets, seed: int) -> Iterator[tuple[list[int], range, list[int]]]:
    """Of each round, the objects deleted, those written, and those that exist after it."""
    alive, each = list(range(command.objects)), command.age.turnover(command.objects)
    for number in range(command.age.churn):
        deleted = set(sample([seed, _CHURN, number], len(alive), each))
        gone = [one for position, one in enumerate(alive) if position in deleted]
        new = range(command.objects + number * each, command.objects + (number + 1) * each)
        alive = [*(one for position, one in enumerate(alive) if position not in deleted), *new]
        yield gone, new, alive


def fingerprint(numbers: Sequence[int], containers: int, size_of: Callable[[int], int]) -> str:
    """A hash over container, name and size of each object: equal for equal stores."""
    digest = hashlib.sha256()
    for one in sorted(numbers):
        digest.update(
            f"{one % containers}/{object_name(one // containers)} {size_of(one)}\n".encode()
        )
    return digest.hexdigest()[:16]
