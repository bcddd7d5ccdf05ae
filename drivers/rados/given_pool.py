"""A pool that exists for `rados bench`, in a cluster that this suite did not start.

All objects of a run are in a namespace of its own (rados(8), `--namespace`): whatever is in it is
the run's. Without one, `rados cleanup` would delete what anybody ever benched from that host, where
the metadata of a run that was killed is missing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import DriverError, ObjectsLeft, TargetError, UsageError
from weighbridge.common.host import ProgramHost
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import CephPool, Fragments, Redundancy
from weighbridge.common.tool_output import json_value, printable
from weighbridge.drivers.rados.cluster import BenchPlace
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands
from weighbridge.results.run.resolved import BenchedPool, kept_words
from weighbridge.suites import RadosBenchOptions

CODED: Final = 3
"""The type of pools with erasure coding; replicated ones are 1."""
FULL: Final = ("full", "full_quota", "backfillfull", "nearfull")
"""Flags of a pool in which writes wait for ever, or soon will."""
CLEAN: Final = "active+clean"
"""How states of placement groups begin in which nothing is to be repaired or moved."""
NO_OBJECTS: Final = frozenset(
    {
        *("root", "control", "log", "meta", "index", "non-ec", "otp"),
        # Of releases before 12.
        *("rgw", "gc", "extra", "usage", "intent-log", "users", "uid", "email", "keys", "swift"),
    }
)
"""How names of radosgw's pools end that it names itself and in which it keeps no objects."""
MOST_FRAGMENTS: Final = 256
"""An object is on so many OSDs at most, of either kind of fragment."""

Kept = Redundancy | str
"""How a pool keeps objects, or why that is not known."""

_Count = Annotated[int, Field(ge=0, lt=2**64)]
_Number = Annotated[int, Field(ge=1, lt=2**31)]


class PoolDetail(Record):
    """One pool of `ceph osd pool ls detail`. Most of it is left out."""

    model_config = ConfigDict(extra="ignore")

    pool_name: str
    type: int
    size: _Number
    pg_num: _Number
    crush_rule: _Count
    # It becomes an argument: none that is an option.
    erasure_code_profile: Annotated[str, Field(pattern=r"^([^-].{0,199})?$")] = ""
    read_tier: int = -1
    write_tier: int = -1
    tier_of: int = -1
    options: dict[str, Any] = Field(default_factory=dict)
    quota_max_bytes: _Count = 0
    quota_max_objects: _Count = 0
    flags_names: str = ""
    application_metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def coded(self) -> bool:
        """Whether it keeps fragments, by its profile, instead of copies."""
        return self.type == CODED

    @property
    def keeps_objects(self) -> bool:
        """Whether gateways keep objects in it, by the name that radosgw gives such pools."""
        return "rgw" in self.application_metadata and self.pool_name.endswith(".buckets.data")

    @property
    def may_keep_objects(self) -> bool:
        """Whether gateways may keep objects in it, by a given name, as of a storage class."""
        last = self.pool_name.rpartition(".")[2]
        return "rgw" in self.application_metadata and last not in NO_OBJECTS

    @property
    def faults(self) -> tuple[str, ...]:
        full = [one for one in self.flags_names.split(",") if one in FULL]
        found = [f"it is full ({', '.join(full)}): writes would wait for ever"] if full else []
        limits = [show_bytes(self.quota_max_bytes)] if self.quota_max_bytes else []
        limits += [f"{self.quota_max_objects:,} objects"] if self.quota_max_objects else []
        if limits:
            found.append(
                f"it has a quota ({', '.join(limits)}): once that is used up, writes would wait "
                "for ever"
            )
        return tuple(found)

    @property
    def odd(self) -> str:
        """How it keeps objects in another way than its replicas and devices say; empty: in none."""
        mode = self.options.get("compression_mode", "none")
        if mode != "none":
            return (
                f"compresses (compression_mode {printable(mode)}), and what rados bench writes is "
                "almost nothing then"
            )
        if max(self.read_tier, self.write_tier, self.tier_of) >= 0:
            return "has a cache tier, or is one"
        return ""

    @property
    def remark(self) -> str:
        """Who else uses it; empty: nobody that says so."""
        others = [printable(one) for one in self.application_metadata if one != "rados"]
        return f"it is in use by {', '.join(others)}" if others else ""


_DETAILS: Final = TypeAdapter(Annotated[list[PoolDetail], Field(max_length=10_000)])


class _GroupState(Record):
    model_config = ConfigDict(extra="ignore")

    state_name: str
    count: _Count


_STATES: Final = TypeAdapter(list[_GroupState])


def details(printed: str, where: str) -> tuple[PoolDetail, ...]:
    """The pools that `ceph osd pool ls detail` printed. Raises TargetError."""
    tool = f"{where}: ceph osd pool ls detail"
    try:
        return tuple(_DETAILS.validate_python(json_value(tool, printed, TargetError)))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise TargetError(f"{tool}: {printable(place)}: {printable(fault['msg'])}") from None


def fragments(printed: str, where: str) -> Fragments:
    """Data and parity of `ceph osd erasure-code-profile get`. Raises TargetError."""
    tool = f"{where}: ceph osd erasure-code-profile get"
    found = json_value(tool, printed, TargetError)
    try:
        data, parity = int(found["k"]), int(found["m"])
        if max(data, parity) > MOST_FRAGMENTS:
            raise ValueError(f"more than {MOST_FRAGMENTS} fragments")  # noqa: TRY301 - as below
        return Fragments(data=data, parity=parity)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TargetError(f"{tool}: no k and m in {printable(found)}") from error


def kept_by(pool: PoolDetail, profile: Callable[[str], CommandOutput]) -> Kept:
    """How a pool keeps objects; `profile` gets `ceph`'s words on its erasure coding, by name."""
    if not pool.coded:
        return Redundancy(replicas=pool.size)
    name = pool.erasure_code_profile
    answer = profile(name)
    if answer.code != 0:
        return f"ceph osd erasure-code-profile get {printable(name)}: {said(answer)}"
    try:
        return Redundancy(replicas=1, fragments=fragments(answer.text, printable(pool.pool_name)))
    except TargetError as error:
        return error.message


def unclean(status: CommandOutput) -> str:
    """What to know of the cluster's placement groups, from `ceph status`; empty: all are clean."""
    if status.code != 0:
        return f"whether placement groups are active and clean is not known: {said(status)}"
    try:
        groups = json_value("ceph status", status.text, TargetError)["pgmap"]["pgs_by_state"]
        states = _STATES.validate_python(groups)
    except (KeyError, TypeError, ValidationError, TargetError):
        states = []
    if not states:
        return "whether placement groups are active and clean is not known: ceph status has none"
    bad = [one for one in states if not one.state_name.startswith(CLEAN)]
    if not bad:
        return ""
    total = sum(one.count for one in states)
    words = ", ".join(f"{one.count} {' '.join(printable(one.state_name).split())}" for one in bad)
    return f"of {total} placement groups of the cluster not all are active and clean: {words}"


def apart(pool: PoolDetail, stores: Sequence[PoolDetail], kept: Mapping[str, Kept]) -> str:
    """Why what gateways reach in `stores` is no share of what `pool` reaches; empty: it is one.

    `stores`: the pools in which they keep objects, or may; `kept`: how each pool keeps them, by
    name.
    """
    if not any(one.keeps_objects for one in stores):
        return (
            "the cluster has no pool in which a radosgw keeps objects (NAME.buckets.data), so it "
            "is not known how gateways keep them, nor on which devices"
        )
    own = kept[pool.pool_name]
    unknown = "it is not known how pool {} keeps objects: {}"
    if isinstance(own, str):
        return unknown.format(pool.pool_name, own)
    for one in stores:
        theirs = kept[one.pool_name]
        if isinstance(theirs, str):
            return unknown.format(printable(one.pool_name), theirs)
        keep = "keep" if one.keeps_objects else "may keep"
        name = f"{printable(one.pool_name)}, in which gateways {keep} objects"
        if theirs != own:
            return f"pool {pool.pool_name} has {kept_words(own)}, and {name}, {kept_words(theirs)}"
        if one.size != pool.size:
            return (
                f"pool {pool.pool_name} has pieces of an object on {pool.size} OSDs, and {name}, "
                f"on {one.size}"
            )
        if one.crush_rule != pool.crush_rule:
            return (
                f"pool {pool.pool_name} has CRUSH rule {pool.crush_rule}, and {name}, "
                f"{one.crush_rule}: it may be on other devices"
            )
    return next(
        (f"pool {printable(one.pool_name)} {one.odd}" for one in (pool, *stores) if one.odd), ""
    )


def fewer(pool: PoolDetail, stores: Sequence[PoolDetail]) -> str:
    """That a pool may be on fewer OSDs than those of gateways; empty: it is not."""
    most = max(stores, key=lambda one: one.pg_num, default=pool)
    if most.pg_num <= pool.pg_num:
        return ""
    return (
        f"it has {pool.pg_num} placement groups, and {printable(most.pool_name)} {most.pg_num}: it "
        "may use fewer OSDs, and reach less"
    )


def said(one: CommandOutput) -> str:
    """The last lines of what a program printed, as text for a message."""
    lines = [line for line in f"{one.text}\n{one.errors}".splitlines() if line.strip()]
    return printable(" | ".join(lines[-3:])) or f"status {one.code}"


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
        return GivenPool(self.machine, self.pool, namespace=namespace, log=self._log)

    @property
    def place(self) -> BenchPlace:
        client = (*self.pool.client, "--namespace", self.namespace)
        return BenchPlace(pool=self.pool.pool, client=client)

    def ask(self, *argv: str, within_s: float = ANSWER_S) -> CommandOutput:
        """Run a program there, whatever its status. Raises DriverFailure, TargetError."""
        return self.commands.ask(argv, within_s=within_s)

    def ceph(self, *words: str) -> CommandOutput:
        """The same of `ceph`, as the pool's user, for JSON; a host without it is no failure."""
        return self.ask("env", "ceph", *self.pool.client, *words, "--format", "json")

    def version(self) -> str:
        return printable(self.ask("rados", "--version").text.strip())

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
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
        mine = next((one for one in pools if one.pool_name == self.pool.pool), None)
        faults = ("the cluster has it no longer",) if mine is None else mine.faults
        if faults:
            where = f"{self.machine.name}: pool {self.pool.pool}"
            raise TargetError("\n".join(f"{where}: {fault}" for fault in faults))

    def how(self, options: RadosBenchOptions) -> str:
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


# Looking at a pool before anything is measured: whether it can be benched, and what is known of
# it.


CHECK: Final = "wb-check-"
"""Begins the namespace of the object that is written to see whether that is allowed."""
_HAS: Final = 'for one; do command -v "$one" || true; done'


def look(host: ProgramHost, pool: CephPool, *, log: Path) -> BenchedPool:
    """What is known of a pool that can be benched. One object is written to it, and deleted.

    Raises UsageError with all that is wrong with it, DriverError or TargetError where the host does
    not answer, ObjectsLeft if that object is left.
    """
    return _Look(host, pool, log).found()


class _Look:
    def __init__(self, host: ProgramHost, pool: CephPool, log: Path) -> None:
        self.pool = pool
        self.where = f"{host.name}: pool {pool.pool}"
        # What is probed has a namespace of its own: another run may be using the pool.
        self.given = GivenPool(host, pool, namespace=f"{CHECK}{os.urandom(8).hex()}", log=log)
        self.faults: list[str] = []
        self.advice: list[str] = []

    def found(self) -> BenchedPool:
        """See `look`."""
        here = BenchedPool(host=self.given.machine.name, pool=self.pool.pool, user=self.pool.user)
        programs = self.given.ask("sh", "-c", _HAS, "sh", "rados", "ceph").text.split()
        names = {Path(one).name for one in programs}
        if "rados" not in names:
            raise UsageError(
                f"{here.host} has no program `rados`, by which {self.where} would be benched",
                advice="Install ceph-common there, or name another of the observed hosts.",
            )
        found = (
            self._details(here)
            if "ceph" in names
            else here.model_copy(
                update={"apart": f"nothing is known of it: {here.host} has no program `ceph`"}
            )
        )
        if not self.faults:
            self._probe()
        if self.faults:
            raise UsageError(
                "\n".join(f"{self.where}: {fault}" for fault in self.faults),
                advice="\n".join(dict.fromkeys(self.advice)),
            )
        return found

    def _details(self, here: BenchedPool) -> BenchedPool:
        listed = self.given.ceph("osd", "pool", "ls", "detail")
        if listed.code != 0:
            return here.model_copy(
                update={"apart": f"nothing is known of it: {self.pool.user}: {said(listed)}"}
            )
        known = {one.pool_name: one for one in details(listed.text, here.host)}
        mine = known.get(self.pool.pool)
        if mine is None:
            hint = did_you_mean(self.pool.pool, [printable(name) for name in known])
            self.faults.append(f"the cluster has no such pool{hint}")
            self.advice.append("Name an existing pool: this suite makes none in such a cluster.")
            return here
        self.faults += mine.faults
        if mine.faults:
            self.advice.append("Name another pool, or one of your own for this.")
        stores = [
            one
            for one in known.values()
            if one.keeps_objects or (one.may_keep_objects and one is not mine)
        ]
        profile = partial(self.given.ceph, "osd", "erasure-code-profile", "get")
        kept = {one.pool_name: kept_by(one, profile) for one in (mine, *stores)}
        own = kept[mine.pool_name]
        remarks = (mine.remark, fewer(mine, stores), unclean(self.given.ceph("status")))
        return here.model_copy(
            update={
                "kept": None if isinstance(own, str) else own,
                "pg_num": mine.pg_num,
                "rule": mine.crush_rule,
                "stores": tuple(printable(one.pool_name) for one in stores),
                "apart": apart(mine, stores, kept),
                "remark": "; ".join(words for words in remarks if words),
            }
        )

    def _probe(self) -> None:
        rados = self.given.place.rados
        nothing_made = False
        try:
            for words in (("create", PROBE), ("stat", PROBE), ("ls",)):
                done = self.given.ask(*rados, *words)
                if done.code != 0:
                    self.faults.append(
                        f"{self.pool.user} cannot use it: rados {words[0]}: {said(done)}"
                    )
                    self._advise()
                    nothing_made = words[0] == "create"
                    return
        finally:
            if not nothing_made:
                self._delete()

    def _delete(self) -> None:
        with contextlib.suppress(DriverError, TargetError):
            if self.given.ask(*self.given.place.rados, "rm", PROBE).code == 0:
                return
        self.given.sweep(within_s=ANSWER_S)

    def _advise(self) -> None:
        pool = self.pool
        grant = (
            f"ceph auth get-or-create {pool.user} mon 'allow r' osd "
            f"{shlex.quote(f'allow rw pool={pool.pool}')}"
        )
        self.advice.append(
            "Its user needs a keyring that the login of ssh can read (`user`, `keyring`, `conf` of "
            f"the layout), and rights such as: {grant}"
        )


# What killed runs left in a pool: namespaces with names that only runs of this suite give.
#
# One with another object than those of `rados bench` and of runs is not theirs alone.


NAMESPACE: Final = re.compile(r"wb-[0-9a-f]{8}|wb-check-[0-9a-f]{16}")
_MTIME: Final = re.compile(r"mtime (\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+0000)?,")
_NUMBERED: Final = re.compile(r"(benchmark_data_.+)_object([0-9]{1,18})", re.DOTALL)
_SHOWN: Final = 3
_LOOKED_AT: Final = 100
"""So many objects of a namespace are asked for their time, at most."""


class PoolLeftover(Record):
    """A namespace of a run."""

    namespace: str
    objects: int
    newest: datetime
    """When the newest of those was written that were written last."""
    strange: tuple[str, ...] = ()
    """Some names in it that no run gives."""


def leftovers(given: GivenPool) -> tuple[PoolLeftover, ...]:
    """All such namespaces of a pool, by name. Raises DriverError, TargetError."""
    everywhere = BenchPlace(pool=given.pool.pool, client=given.pool.client)
    listed = given.ask(*everywhere.rados, "ls", "--all", within_s=SWEEP_S)
    if listed.code != 0:
        raise DriverError(f"{given.machine.name}: rados ls --all: {said(listed)}")
    found: dict[str, list[str]] = {}
    for _, line in listed.lines:
        namespace, tab, name = line.partition("\t")
        if tab and NAMESPACE.fullmatch(namespace):
            found.setdefault(namespace, []).append(name)
    return tuple(
        PoolLeftover(
            namespace=namespace,
            objects=len(names),
            newest=_newest(given.within(namespace), names),
            strange=tuple(printable(name) for name in names if not is_ours(name))[:_SHOWN],
        )
        for namespace, names in sorted(found.items())
    )


def _newest(given: GivenPool, names: Sequence[str]) -> datetime:
    """When the newest was written; an unreadable time counts as now: its age deletes nothing."""
    last = last_written(names)
    every = -(-len(last) // _LOOKED_AT) or 1
    # 14.2 prints local time without a zone.
    stat = ("env", "TZ=UTC", *given.place.rados, "stat")
    times = [mtime_of(given.ask(*stat, name)) for name in last[::every]]
    return max(times, default=datetime.now(UTC))


def last_written(names: Sequence[str]) -> list[str]:
    """Those of a namespace's objects of runs that may have been written last: the last of each
    `rados bench`, which numbers them, and all others.
    """
    last: dict[str, tuple[int, str]] = {}
    for name in names:
        if is_ours(name):
            found = _NUMBERED.fullmatch(name)
            whose, number = (found[1], int(found[2])) if found else (name, 0)
            last[whose] = max(last.get(whose, (-1, "")), (number, name))
    return [name for _, name in last.values()]


def mtime_of(answer: CommandOutput) -> datetime:
    """The time that `rados stat` printed in UTC; now if there is none that can be read."""
    found = _MTIME.search(answer.text) if answer.code == 0 else None
    try:
        return datetime.fromisoformat(found[1] if found else "").replace(tzinfo=UTC)
    except ValueError:
        return datetime.now(UTC)
