"""What a cluster says of its pools and placement groups, read from what `ceph` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.common.tool_output import json_value, printable
from weighbridge.drivers.rados.host_commands import CommandOutput
from weighbridge.results.record.benched_pool import kept_words

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
        """Whether gateways may keep objects in it, by a name that somebody gave: as the pool of a
        storage class, say.
        """
        last = self.pool_name.rpartition(".")[2]
        return "rgw" in self.application_metadata and last not in NO_OBJECTS

    @property
    def faults(self) -> tuple[str, ...]:
        """Why nothing should be benched in it."""
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
    """How a pool keeps objects; `profile` gets what `ceph` prints of its erasure coding, if it has
    any, by name.
    """
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
