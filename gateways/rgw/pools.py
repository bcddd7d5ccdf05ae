"""Pools: their placement groups by default and by size, their copies, how they are made, and what
the mon says of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.gateways.options import Option, OptionRecord
from weighbridge.gateways.rgw.monitor import Command, Monitor
from weighbridge.gateways.sizing import Sized, pieces

Count = Annotated[int, Field(ge=1)]
INDEX_POOL = "default.rgw.buckets.index"
DATA_POOL = "default.rgw.buckets.data"
OTHER_POOLS = (
    ".rgw.root",
    "default.rgw.log",
    "default.rgw.control",
    "default.rgw.meta",
    "default.rgw.buckets.non-ec",
)
_PROFILE: Final = "weighbridge"
"""Name of the erasure code profile."""
MAX_PG_NUM: Final = 32768
MAX_OTHER_PG_NUM: Final = 32
"""Ceph's default of `osd_pool_default_pg_num`: these pools have little in them."""
PgNum = Annotated[int, Field(ge=1, le=MAX_PG_NUM)]


class EcSettings(Record):
    """Erasure coding of a pool: `k` fragments with data, `m` more to replace lost ones."""

    k: Annotated[int, Field(ge=2, le=32)]
    """Fragments with data."""
    m: Annotated[int, Field(ge=1, le=16)]
    """Fragments with parity: how many may be lost."""
    plugin: Literal["jerasure", "isa"] = "jerasure"
    """Ceph's library for the code, with its default technique (reed_sol_van)."""
    stripe_unit: Annotated[Bytes, Field(ge=4096, le=4 * 2**20)] = 4096
    """Bytes of a stripe in each fragment: an object is padded to `k` times that many."""

    @model_validator(mode="after")
    def _aligned(self) -> EcSettings:
        if self.stripe_unit % 4096:
            raise ValueError(f"stripe_unit {self.stripe_unit} is not a multiple of 4096")
        return self

    @property
    def fragments(self) -> Fragments:
        return Fragments(data=self.k, parity=self.m)


class PoolSettings(OptionRecord):
    """RADOS pools. Their placement groups are fixed: the autoscaler and the balancer are off.

    Unless given, their numbers follow the rule of Ceph's own autoscaler (`mon_target_pg_per_osd`,
    100): of 100 copies an OSD the data pool has 64 %, since it has the load, the index 16 %, and
    each of the other five 4 %. The defaults here are those of three OSDs and three copies.
    """

    replicas: Annotated[Count, Option("global", "osd_pool_default_size")] = 3
    """Number of copies; with `ec`, of the other pools than that of object data."""
    min_size: Annotated[Count, Option("global", "osd_pool_default_min_size")] = 2
    """Copies that must be available for a pool to serve requests; Ceph's own choice with `ec`."""
    ec: EcSettings | None = None
    """Erasure coding of the object data pool, such as `{k: 2, m: 1}`; None: copies. Index and other
    pools always have copies.
    """
    failure_domain: Literal["host", "osd"] = "host"
    """What no two copies or fragments share."""
    data_pg_num: PgNum = 64
    """Placement groups of the object data pool: a power of two."""
    index_pg_num: PgNum = 16
    """Placement groups of the bucket index pool."""
    other_pg_num: PgNum = 4
    """Placement groups of each of RGW's other pools."""

    @model_validator(mode="after")
    def _sensible(self) -> PoolSettings:
        if self.min_size > self.replicas:
            raise ValueError(f"min_size {self.min_size} is above replicas {self.replicas}")
        for name in ("data_pg_num", "index_pg_num", "other_pg_num"):
            count: int = getattr(self, name)
            if count & (count - 1):
                raise ValueError(f"{name} {count} is not a power of two")
        return self

    @property
    def kept(self) -> Redundancy:
        if self.ec is None:
            return Redundancy(replicas=self.replicas)
        return Redundancy(replicas=1, fragments=self.ec.fragments)

    @property
    def wide_ec(self) -> EcSettings | None:
        """The erasure coding, if objects have at least as many fragments as other pools copies."""
        return self.ec if self.ec and self.ec.fragments.count >= self.replicas else None

    @property
    def most_parts(self) -> int:
        """The most copies or fragments of a pool, each in a failure domain of its own."""
        return self.replicas if self.wide_ec is None else self.wide_ec.fragments.count

    @property
    def part_words(self) -> str:
        """What there are most of: `3 replicas` or `3 fragments (k 2, m 1)`."""
        if (ec := self.wide_ec) is None:
            return f"{self.replicas} replicas"
        return f"{ec.fragments.count} fragments (k {ec.k}, m {ec.m})"

    @property
    def groups(self) -> dict[str, int]:
        """Placement groups by pool, for all pools that radosgw would create on demand."""
        others = dict.fromkeys(OTHER_POOLS, self.other_pg_num)
        return {**others, INDEX_POOL: self.index_pg_num, DATA_POOL: self.data_pg_num}

    def by_size(self, osds: int) -> Iterator[Sized]:
        """Placement groups for so many OSDs."""
        if not osds:
            return
        parts = self.replicas if self.ec is None else self.ec.fragments.count
        for key, percent, copies, most in (
            ("data_pg_num", 64, parts, MAX_PG_NUM),
            ("index_pg_num", 16, self.replicas, MAX_PG_NUM),
            ("other_pg_num", 4, self.replicas, MAX_OTHER_PG_NUM),
        ):
            yield pieces(f"pools.{key}", osds, copies, percent=percent, most=most)


def make_pools(monitor: Monitor, settings: PoolSettings) -> None:
    """Create all pools, that of object data erasure coded if it is. Raises CommandFailed."""
    # From 17 on, a pool whose name begins with a dot, such as one of RGW's, is silently not
    # created without this flag.
    forced = {"yes_i_really_mean_it": True}
    coded: dict[str, object] = {}
    if settings.ec is not None:
        monitor.ask(_profile(settings.ec, settings.failure_domain))
        coded = {"pool_type": "erasure", "erasure_code_profile": _PROFILE}
    monitor.ask(
        *(
            {
                "prefix": "osd pool create",
                "pool": name,
                "pg_num": count,
                "pgp_num": count,
                **(forced if name.startswith(".") else {}),
                **(coded if name == DATA_POOL else {}),
            }
            for name, count in settings.groups.items()
        )
    )
    monitor.ask(
        *(
            {"prefix": "osd pool application enable", "pool": name, "app": "rgw"}
            for name in settings.groups
        )
    )


def _profile(settings: EcSettings, failure_domain: str) -> Command:
    return {
        "prefix": "osd erasure-code-profile set",
        "name": _PROFILE,
        "profile": [
            f"k={settings.k}",
            f"m={settings.m}",
            f"plugin={settings.plugin}",
            "technique=reed_sol_van",
            f"stripe_unit={settings.stripe_unit}",
            f"crush-failure-domain={failure_domain}",
        ],
    }


@dataclass(frozen=True)
class DataPool:
    """What the mon says of the pool of object data."""

    size: int
    """Copies or fragments."""
    min_size: int
    """How many must be available."""
    profile: dict[str, str] | None
    """The erasure code profile; None: it has copies."""

    @property
    def parts(self) -> str:
        return "replicas" if self.profile is None else "fragments"

    @property
    def words(self) -> str:
        """How the pool keeps objects, beside the pools that have copies."""
        if self.profile is None:
            return f"{self.size}"
        own = self.profile
        code = ", ".join(
            f"{name} {own[name]}" for name in ("plugin", "technique", "stripe_unit") if name in own
        )
        return f"erasure coded, {own.get('k')} data and {own.get('m')} parity fragments ({code})"


def data_pool(monitor: Monitor) -> DataPool:
    """What the mon says of the pool of object data. Raises CommandFailed."""
    asked = {"prefix": "osd pool get", "pool": DATA_POOL, "format": "json"}
    size, least, listed = (
        json.loads(text)
        for text in monitor.ask(
            {**asked, "var": "size"},
            {**asked, "var": "min_size"},
            {"prefix": "osd pool ls", "detail": "detail", "format": "json"},
        )
    )
    names = [one.get("erasure_code_profile") for one in listed if one["pool_name"] == DATA_POOL]
    profile = None
    if any(names):
        command = {"prefix": "osd erasure-code-profile get", "name": names[0], "format": "json"}
        answer = json.loads(monitor.ask(command)[0])
        profile = {str(key): str(value) for key, value in answer.items()}
    return DataPool(size=size["size"], min_size=least["min_size"], profile=profile)


def primaries(monitor: Monitor, osds: int) -> dict[int, int]:
    """For how many placement groups of the data pool each OSD, by number, answers reads."""
    command = {"prefix": "pg ls-by-pool", "poolstr": DATA_POOL, "format": "json", "to": "mgr"}
    answer = json.loads(monitor.ask(command)[0])
    # Release 14 returns the bare list.
    groups = answer["pg_stats"] if isinstance(answer, dict) else answer
    counts = dict.fromkeys(range(osds), 0)
    for group in groups:
        counts[group["acting_primary"]] += 1
    return counts
