"""The cluster for its benchmarks: pools of their own are made, waited for and removed; nothing else
is touched.

Where the cluster already runs, `rados bench` gets a pool that exists instead
(`drivers.rados.given_pool`): both are a `BenchCluster`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.host import Host, ProgramHost
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_object, json_value
from weighbridge.drivers.protocol import DriverFailure
from weighbridge.results.run.step import Tally
from weighbridge.suites import RadosBenchOptions

# `rados bench`: its command, its results, and the results of several in parallel.
#
# Its JSON, in 14.2, 16.2 and 18.2: a line `hints = 1` comes first, every value is a string,
# seconds without an operation have no row in `datas`, reads lack the bandwidths of writes, and
# the deviation of a single sample is garbage. Only the totals are read.


Mode = Literal["write", "seq", "rand"]
"""Write new objects; read those of an earlier run in order, until they run out; or at random."""

FOR_EVER_S: Final = 10**6
"""For a write that ends when its objects exist."""


class BenchPlace(Record):
    """Where a `rados bench` keeps objects; `client`: options such as its user and namespace."""

    pool: str
    client: tuple[str, ...] = ()
    tag: str = ""
    """Ends names of its runs, where several share a place."""

    @property
    def rados(self) -> tuple[str, ...]:
        return ("rados", *self.client, "--pool", self.pool)


class RadosBenchCommand(Record):
    """One `rados bench`. `run` names its objects: reads without it would use others' objects."""

    place: BenchPlace
    mode: Mode
    seconds: Annotated[int, Field(ge=1)]
    workers: Annotated[int, Field(ge=1)]
    object_bytes: Annotated[int, Field(ge=1)]
    run: str
    objects: Annotated[int, Field(ge=1)] | None = None
    """A write ends with this number."""

    def argv(self) -> tuple[str, ...]:
        words = [*self.place.rados, "bench", str(self.seconds), self.mode]
        words += ["-t", str(self.workers), "--run-name", self.run, "--format", "json"]
        if self.mode == "write":
            words += ["-b", str(self.object_bytes), "-O", str(self.object_bytes), "--no-cleanup"]
        if self.objects is not None:
            words += ["--max-objects", str(self.objects)]
        return tuple(words)

    def cleanup_argv(self) -> tuple[str, ...]:
        return *self.place.rados, "cleanup", "--run-name", self.run


Count = Annotated[int, Field(ge=0, lt=2**63)]
"""rados counts in 64 bits."""
Latency = Annotated[float, Field(ge=0, le=10 * FOR_EVER_S)]
"""In seconds; none is longer than the longest benchmark."""


class RadosBenchResult(Record):
    """The result of one `rados bench`. Latencies are None without operations."""

    seconds: Annotated[float, Field(gt=0)]
    count: Count
    object_bytes: Count
    mean_s: Latency | None = None
    min_s: Latency | None = None
    max_s: Latency | None = None

    @classmethod
    def of(cls, mode: Mode, output: str) -> RadosBenchResult:
        """A result from its output. Raises DriverError when something is missing."""
        found = json_object("rados bench", output, DriverError)
        kind = "write" if mode == "write" else "read"
        try:
            count = int(found[f"total_{kind}s_made"])
            # Without operations, mean and extremes are uninitialised.
            times = (
                {f"{name}_s": float(found[word]) for name, word in _TIMES.items()} if count else {}
            )
            return cls(
                seconds=float(found["total_time_run"]),
                count=count,
                object_bytes=int(found[f"{kind}_size"]),
                **times,
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise DriverError(
                f"rados bench {mode}: {error!r} in its output: {output[-300:]!r}"
            ) from error


_TIMES: Final = {"mean": "average_latency", "min": "min_latency", "max": "max_latency"}


def combined(
    results: Sequence[RadosBenchResult], operation: Literal["read", "write"]
) -> tuple[Tally, float]:
    """The result of several in parallel, and the seconds of the window: the longest, since they
    started together.

    Operations and bytes are added, the mean is weighted by operations, the extremes are exact.
    Raises DriverError when the sums are impossible.
    """
    count = sum(one.count for one in results)
    try:
        tally = Tally(
            operation=operation,
            count=count,
            bytes=sum(one.count * one.object_bytes for one in results),
            min_us=min(
                (round(one.min_s * 1e6) for one in results if one.min_s is not None), default=None
            ),
            max_us=max(
                (round(one.max_s * 1e6) for one in results if one.max_s is not None), default=None
            ),
            sum_us=sum(
                round(one.mean_s * one.count * 1e6) for one in results if one.mean_s is not None
            ),
        )
    except ValueError as error:
        raise DriverError(f"rados bench: {count} operations are impossible: {error}") from error
    return tally, max(one.seconds for one in results)


CLEAN_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.5


class ToolCluster(Protocol):
    """A Ceph cluster, as a driver needs it whose tool runs on `machine`."""

    @property
    def machine(self) -> ProgramHost:
        """A host with Ceph's programs and keys."""

    def version(self) -> str:
        """Such as `ceph version 16.2.15 pacific (stable)`. Raises TargetError, DriverError."""

    def remove_made(self, *, timeout_s: float = 60) -> None:
        """Remove all that was made here. Raises TargetError, DriverError."""


class BenchCluster(ToolCluster, Protocol):
    """The same, as `rados bench` needs it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about steps in it."""

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
        """A place for each instance."""

    def make_places(self, prefix: str, options: RadosBenchOptions) -> None:
        """Make those that do not exist. Raises TargetError, DriverError."""

    def how(self, options: RadosBenchOptions) -> str:
        """Where instances keep their objects, in words that follow their number in parallel."""


class RadosCluster:
    """A Ceph cluster, by a host with an admin keyring; `replicas` is the cluster's setting."""

    notes: tuple[str, ...] = ()

    def __init__(self, machine: Host, *, replicas: int) -> None:
        self.machine = machine
        self.replicas = replicas
        self.pools: list[str] = []
        """Pools that were made here and still exist."""

    def ceph(self, *words: str, timeout_s: float = 60) -> str:
        """What `ceph` prints. Raises CommandFailed."""
        return self.machine.run(["ceph", *words], timeout_s=timeout_s).stdout

    def ask(self, *words: str) -> Any:
        """What `ceph` answers in JSON, after any empty line. Raises CommandFailed, TargetError."""
        return json_value(
            f"{self.machine.name}: ceph {' '.join(words)}",
            self.ceph(*words, "--format", "json"),
            TargetError,
        )

    def version(self) -> str:
        """Such as `ceph version 16.2.15 (...) pacific (stable)`."""
        return self.machine.run(["ceph", "--version"]).stdout.strip()

    def make_pools(self, pools: Mapping[str, int], application: str) -> None:
        """Make pools of so many placement groups, clean. Raises CommandFailed, DriverFailure."""
        wanted = {name: count for name, count in pools.items() if name not in self.pools}
        for name, count in wanted.items():
            self.pools.append(name)
            self.ceph("osd", "pool", "create", name, str(count), str(count))
            if application:  # CephFS names its pools itself
                self.ceph("osd", "pool", "application", "enable", name, application)
        if wanted:
            self.await_clean()

    def await_clean(self) -> None:
        """Wait until all placement groups are active and clean. Raises DriverFailure after
        CLEAN_WITHIN_S, or when a pool has other replicas than the layout's.
        """
        details = self.ask("osd", "pool", "ls", "detail")
        for pool in details:
            name, size = pool["pool_name"], pool["size"]
            if name in self.pools and size != self.replicas:
                raise DriverFailure(
                    f"{self.machine.name}: the pool {name} has {size} replicas, the layout "
                    f"{self.replicas}"
                )
        wanted = sum(pool["pg_num"] for pool in details)
        deadline = time.monotonic() + CLEAN_WITHIN_S
        while True:
            groups = self.ask("status")["pgmap"]
            clean = sum(
                one["count"]
                for one in groups.get("pgs_by_state", ())
                if one["state_name"] == "active+clean"
            )
            if clean == groups["num_pgs"] == wanted:
                return
            if time.monotonic() > deadline:
                what = (
                    f"{clean} of {wanted} placement groups were active and clean after "
                    f"{CLEAN_WITHIN_S:g} s"
                )
                raise DriverFailure(f"{self.machine.name}: {what}\n{self.ceph('health', 'detail')}")
            time.sleep(_POLL_S)

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
        names = (f"{prefix}-rados-{number}" for number in range(options.instances))
        return tuple(BenchPlace(pool=name) for name in names)

    def make_places(self, prefix: str, options: RadosBenchOptions) -> None:
        groups = pg_num_each(options.pg_num, options.instances)
        names = [one.pool for one in self.places(prefix, options)]
        self.make_pools(dict.fromkeys(names, groups), "rados")

    def how(self, options: RadosBenchOptions) -> str:
        groups = pg_num_each(options.pg_num, options.instances)
        return f"a pool of {groups} placement groups each"

    def remove_made(self, *, timeout_s: float = 60) -> None:
        """Remove all pools that were made here, with their content. Raises CommandFailed."""
        while self.pools:
            name = self.pools[-1]
            confirmed = "--yes-i-really-really-mean-it"
            self.ceph("osd", "pool", "rm", name, name, confirmed, timeout_s=timeout_s)
            self.pools.pop()


def split_evenly(total: int, parts: int) -> list[int]:
    """`total` in parts as equal as possible, the first ones larger by one."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def pg_num_each(total: int, parts: int) -> int:
    """Placement groups of each of `parts` pools: the largest power of two, at least one, by which
    they have at most `total` together.
    """
    return 1 << max(0, (total // parts).bit_length() - 1)
