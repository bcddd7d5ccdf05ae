"""How settings follow the size of hosts: one rule for every kind of store and front.

1. A program that works on all CPUs has a process or thread for each CPU of its host, at least one.
   Daemons of a kind on the same host share them.
2. What only waits, a thread or a connection, is counted by CPU too, and is never below what a host
   of one CPU has: it costs memory, not CPU.
3. A storage host gives 60 % of its memory to the caches of its store, in equal parts for its disks;
   a store that caches in the kernel's page cache has what is free by itself.
4. Data is placed in a hundred pieces per disk, in a power of two: placement groups, partitions.

A setting is one for all hosts of a role: the smallest of them decides. What a layout says itself
stays. docs/real-hosts.md has a table and where each figure comes from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record

CACHE_PERCENT: Final = 60
"""Of a storage host's memory. cephadm takes 70 %, less what other daemons of the host need."""
PIECES_PER_DISK: Final = 100
"""Ceph's `mon_target_pg_per_osd`, and what Swift's deployment guide multiplies disks by."""
_STEP_BYTES: Final = 2**20


class HostSize(Record):
    """What a host has for its services. None: not known."""

    cpus: Annotated[float, Field(gt=0)] | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    disks: Annotated[int, Field(ge=0)] = 0


Sizes = Mapping[str, HostSize]
"""Sizes by the hosts' names."""


class Sized(Record):
    """A setting that follows the size of hosts."""

    key: str
    """Its dotted key below `settings`."""
    value: int
    why: str
    """How it follows, in words with the figures."""
    size: bool = False
    """Whether it is a size in bytes."""

    @property
    def shown(self) -> str:
        """The value as files have it."""
        return show_bytes(self.value) if self.size else str(self.value)

    def below(self, key: str) -> Sized:
        """The same setting, whose key is below another one."""
        return self.model_copy(update={"key": f"{key}.{self.key}"})


class Role:
    """The hosts of one role, as the smallest of them."""

    def __init__(self, names: Iterable[str], sizes: Sizes) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._sizes = {name: sizes.get(name, HostSize()) for name in self._names}

    def processes(self, key: str, *, shared_by: int = 1, most: int | None = None) -> Sized:
        """One for each CPU (rule 1); `shared_by`: daemons of the kind on a host."""
        each = max(1, self._whole_cpus // shared_by)
        why = f"one per CPU: {self._cpu_words}{_shared(shared_by)}"
        if most is not None and each > most:
            return Sized(key=key, value=most, why=f"{why}, at most {most}")
        return Sized(key=key, value=each, why=why)

    def waiting(
        self, key: str, *, per_cpu: int, least: int, shared_by: int = 1, of: str = "per host"
    ) -> Sized:
        """What only waits (rule 2), `least` or more for each host; `shared_by`: see `processes`."""
        each = max(1, max(least, per_cpu * self._whole_cpus) // shared_by)
        why = f"{per_cpu} per CPU, at least {least} {of}: {self._cpu_words}{_shared(shared_by)}"
        return Sized(key=key, value=each, why=why)

    def cache(self, key: str, parts: Mapping[str, int], *, least_bytes: int) -> Sized | None:
        """A part of the hosts' caches (rule 3), of which each host has so many; None: a host's
        memory is not known, or no host has a part.
        """
        each: dict[str, int] = {}
        for name, size in self._sizes.items():
            if size.memory_bytes is None:
                return None
            if parts.get(name):
                share = size.memory_bytes * CACHE_PERCENT // 100 // parts[name]
                each[name] = share // _STEP_BYTES * _STEP_BYTES
        if not each:
            return None
        name = min(each, key=each.__getitem__)
        has = show_bytes(self._sizes[name].memory_bytes or 0)
        why = f"{CACHE_PERCENT} % of {name}'s {has} for {_counted(parts[name], 'disk')}"
        if each[name] < least_bytes:
            why += f", at least {show_bytes(least_bytes)}"
        return Sized(key=key, value=max(least_bytes, each[name]), why=why, size=True)

    @property
    def _whole_cpus(self) -> int:
        return min((math.floor(size.cpus or 0) for size in self._sizes.values()), default=0)

    @property
    def _cpu_words(self) -> str:
        unknown = [name for name, size in self._sizes.items() if size.cpus is None]
        if unknown:
            return f"those of {', '.join(unknown)} are not known"
        name = min(self._sizes, key=lambda one: self._sizes[one].cpus or 0)
        return f"{name} has {self._sizes[name].cpus:g}"


def pieces(key: str, disks: int, copies: int, *, percent: int = 100, most: int) -> Sized:
    """Pieces with so many copies each (rule 4), of which a pool has `percent`: the nearest power of
    two, of two equally near ones the lower.
    """
    ideal = disks * PIECES_PER_DISK * percent / 100 / copies
    lower = 1 << max(0, math.floor(math.log2(max(1.0, ideal))))
    value = min(most, lower if ideal <= 1.5 * lower else 2 * lower)
    share = "" if percent == 100 else f"{percent} % of "
    why = f"{share}{PIECES_PER_DISK} per disk, of {_counted(disks, 'disk')}, by {copies} copies"
    why = f"{why}: {ideal:g}, as a power of two"
    return Sized(key=key, value=value, why=f"{why}, at most {most}" if ideal > most else why)


def bits(key: str, disks: int, *, least: int, most: int) -> Sized:
    """The power of two of at least as many pieces as rule 4 says, without copies."""
    power = math.ceil(math.log2(max(1, disks * PIECES_PER_DISK)))
    why = f"2^{power} is at least {PIECES_PER_DISK} for each of {_counted(disks, 'disk')}"
    if power < least:
        why += f"; at least 2^{least}"
    if power > most:
        why = f"{why}; at most 2^{most}"
    return Sized(key=key, value=min(most, max(least, power)), why=why)


Settings = TypeVar("Settings", bound=Record)


def left_open(settings: Record, found: Iterable[Sized]) -> tuple[Sized, ...]:
    """Those of the settings that the layout does not give itself."""
    return tuple(one for one in found if not _given(settings, one.key.split(".")))


def with_sizes(settings: Settings, found: Iterable[Sized]) -> Settings:
    """The settings with these values in them."""
    for one in found:
        settings = _changed(settings, one.key.split("."), one.value)
    return settings


def _given(record: Record, path: Sequence[str]) -> bool:
    name, *rest = path
    if name not in record.model_fields_set:
        return False
    return not rest or _given(getattr(record, name), rest)


def _changed(record: Settings, path: Sequence[str], value: int) -> Settings:
    name, *rest = path
    inner: Any = _changed(getattr(record, name), rest, value) if rest else value
    return record.model_copy(update={name: inner})


def _shared(by: int) -> str:
    return f", for {by} daemons" if by > 1 else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
