"""A pool that exists for `rados bench`, in a cluster that this suite did not start.

All objects of a run are in a namespace of its own (rados(8), `--namespace`): whatever is in it is
the run's. Without one, `rados cleanup` would delete what anybody ever benched from that host, where
the metadata of a run that was killed is missing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.ceph_pool import CephPool
from weighbridge.common.errors import DriverError, ObjectsLeft, TargetError
from weighbridge.common.host import ProgramHost
from weighbridge.common.tool_output import printable
from weighbridge.drivers.rados.bench import BenchPlace
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands
from weighbridge.drivers.rados.pool_state import PoolDetail, details, said, unclean
from weighbridge.suites import RadosBenchOptions

ANSWER_S: Final = 30.0
"""Time for an answer of the cluster; it may be one that does not answer."""
SWEEP_S: Final = 3600.0
DATA: Final = "benchmark_data_"
"""Begins the names of objects of `rados bench`; its metadata has the name of its run."""
RUN: Final = re.compile(r"wb-[A-Za-z0-9-]+")
"""Names of runs."""
PROBE: Final = "probe"
_TRIES: Final = 3
_AT_ONCE: Final = 200


class GivenPool:
    """A `BenchCluster` in an existing pool; `namespace` has all that is made there, and `log` gets
    the stderr of programs' parents.
    """

    def __init__(self, host: ProgramHost, pool: CephPool, *, namespace: str, log: Path) -> None:
        self.machine = host
        self.pool = pool
        self.namespace = namespace
        self.notes: tuple[str, ...] = ()
        self.commands = HostCommands(host, log)
        self._log = log

    def within(self, namespace: str) -> GivenPool:
        """The same in another namespace."""
        return GivenPool(self.machine, self.pool, namespace=namespace, log=self._log)

    @property
    def place(self) -> BenchPlace:
        """The namespace."""
        client = (*self.pool.client, "--namespace", self.namespace)
        return BenchPlace(pool=self.pool.pool, client=client)

    def ask(self, *argv: str, within_s: float = ANSWER_S) -> CommandOutput:
        """Run a program there, whatever its status. Raises DriverFailure, TargetError."""
        return self.commands.ask(argv, within_s=within_s)

    def ceph(self, *words: str) -> CommandOutput:
        """The same of `ceph`, as the pool's user, for JSON; a host without it is no failure."""
        return self.ask("env", "ceph", *self.pool.client, *words, "--format", "json")

    def version(self) -> str:
        """See ToolCluster: of the client."""
        return printable(self.ask("rados", "--version").text.strip())

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
        """The namespace, for each instance."""
        tags = [f"-{number}" for number in range(options.instances)]
        tags = tags if len(tags) > 1 else [""]
        return tuple(self.place.model_copy(update={"tag": tag}) for tag in tags)

    def make_places(self, prefix: str, options: RadosBenchOptions) -> None:
        """Nothing is to be made: note how the cluster is.

        Raises TargetError where writes would wait for ever, as since the run began.
        """
        listed = self.ceph("osd", "pool", "ls", "detail")
        if listed.code == 0:  # else its user may not know
            self._check(details(listed.text, self.machine.name))
        words = unclean(self.ceph("status"))
        self.notes = (words,) if words else ()

    def _check(self, pools: Sequence[PoolDetail]) -> None:
        """Raises TargetError with all that is wrong with the pool."""
        mine = next((one for one in pools if one.pool_name == self.pool.pool), None)
        faults = ("the cluster has it no longer",) if mine is None else mine.faults
        if faults:
            where = f"{self.machine.name}: pool {self.pool.pool}"
            raise TargetError("\n".join(f"{where}: {fault}" for fault in faults))

    def how(self, options: RadosBenchOptions) -> str:
        """See BenchCluster."""
        return f"in the pool {self.pool.pool}, which existed before"

    def remove_made(self, *, timeout_s: float = SWEEP_S) -> None:
        """Delete all in the namespace. Raises ObjectsLeft."""
        self.sweep(within_s=timeout_s)

    def sweep(self, *, within_s: float = SWEEP_S) -> int:
        """Delete all in the namespace; returns how many objects that were. Raises ObjectsLeft."""
        try:
            return self._sweep(time.monotonic() + within_s)
        except (TargetError, DriverError) as error:
            raise self.left(error.message) from error

    def left(self, why: str) -> ObjectsLeft:
        """The error for objects that may be left."""
        where = f"pool {self.pool.pool}, namespace {self.namespace}, by {self.machine.name}"
        return ObjectsLeft(where, why)

    def names(self, *, within_s: float = ANSWER_S) -> list[str]:
        """The objects in the namespace. Raises DriverError, TargetError."""
        listed = self.ask(*self.place.rados, "ls", within_s=within_s)
        if listed.code != 0:
            raise DriverError(f"{self.machine.name}: rados ls: {said(listed)}")
        return listed.text.split("\n") if listed.text else []

    def _sweep(self, until_s: float) -> int:
        def left_s() -> float:
            return max(1.0, until_s - time.monotonic())

        found = names = self.names(within_s=left_s())
        answer = ""
        for _ in range(_TRIES):
            if not names:
                return len(found)
            for words in _deleting(names):
                done = self.ask(*self.place.rados, *words, within_s=left_s())
                answer = said(done) if done.code else answer
            names = self.names(within_s=left_s())
        raise DriverError(f"{len(names)} objects are still there; rados says: {answer}")


def is_ours(name: str) -> bool:
    """Whether an object's name is one that runs of this suite give."""
    return name.startswith(DATA) or name == PROBE or RUN.fullmatch(name) is not None


def _deleting(names: list[str]) -> list[list[str]]:
    """The words after `rados` that delete these objects. Raises DriverError if one is not ours."""
    strange = next((name for name in names if not is_ours(name)), None)
    if strange is not None:
        raise DriverError(f"it has someone else's object, {printable(strange)!r}: nothing deleted")
    rest = [name for name in names if not name.startswith(DATA)]
    # `cleanup` deletes several at a time, `rm` one after the other.
    found = [["cleanup", "--prefix", DATA]] if len(rest) < len(names) else []
    return [
        *found,
        *(["rm", *rest[at : at + _AT_ONCE]] for at in range(0, len(rest), _AT_ONCE)),
    ]
