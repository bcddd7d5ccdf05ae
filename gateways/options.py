"""Settings as rows: a field of a settings record says itself how it goes into its daemon's
configuration, what must start again for it, whether reports show it, and how it follows the size of
a host.

    threads: Annotated[Count, Option("client", "rgw_thread_pool_size", size=Size(32, 512))] = 512

Configuration files, scopes, shown facts, sizes and documentation are read off these rows. A field
without an `Option` goes into files in its store's own way, and needs a restart. Layouts and tunings
may name a setting of an `OptionRecord` as the daemon does, too.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, model_validator
from pydantic.fields import FieldInfo

from weighbridge.common.quantities import parse_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.gateways.config_text import OptionValue
from weighbridge.gateways.sizing import Role, Sized


@dataclass(frozen=True)
class Size:
    """How a number follows the CPUs of its host: what only waits, by `per_cpu` and never below
    `least`; with 0 a process or thread for each CPU, up to `most`.
    """

    per_cpu: int = 0
    least: int = 1
    most: int | None = None
    shared: bool = False
    """Whether the daemons of a host share it; else each has it."""
    of: str = "per host"

    def on(self, hosts: Role, key: str, daemons: int) -> Sized:
        """The setting on these hosts, which have so many daemons each."""
        sharing = daemons if self.shared else 1
        if not self.per_cpu:
            return hosts.processes(key, shared_by=sharing, most=self.most)
        return hosts.waiting(
            key, per_cpu=self.per_cpu, least=self.least, shared_by=sharing, of=self.of
        )


@dataclass(frozen=True)
class Option:
    """The row of a setting, which is an option of its daemon if it has a section."""

    section: str = ""
    """Where its store writes it: a section of the file, as the store's code calls it."""
    name: str = ""
    """The daemon's own name; empty: the field's."""
    scope: Scope = "restart"
    """What must start again for a change; on a field with a record, at least that for all in it."""
    shown: bool = True
    """Whether reports show what the running daemon has."""
    size: Size | None = None
    each_time: bool = False
    """Whether its daemon reads it for each request: it takes effect although nothing in the daemon
    observes it.
    """
    spell: Callable[[Any], OptionValue] | None = None
    """Its value as files have it; None: as it is, whole numbers of seconds without a dot, and not
    at all where the setting is None.
    """


class Row(NamedTuple):
    """A field that has an `Option`, by its dotted key below the record that was asked for."""

    key: str
    name: str
    """The daemon's name for it."""
    option: Option
    field: FieldInfo

    @property
    def in_bytes(self) -> bool:
        """Whether it is a size."""
        return any(getattr(one, "func", None) is parse_bytes for one in self.field.metadata)


_NO_OPTION: Final = Option()


def rows(model: type[BaseModel], under: str = "") -> Iterator[Row]:
    """All rows of a record, with those of records in it."""
    for name, field in model.model_fields.items():
        option, inner = _option(field), _record(field.annotation)
        if option is not _NO_OPTION:
            yield Row(f"{under}{name}", option.name or name, option, field)
        if inner is not None:
            yield from rows(inner, f"{under}{name}.")


class OptionRecord(Record):
    """Settings that may also be given by the daemon's own names."""

    @model_validator(mode="before")
    @classmethod
    def _by_own_names(cls, given: object) -> object:
        return by_keys(cls, given) if isinstance(given, dict) else given


def by_keys(model: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """Given settings by this suite's keys only. Raises ValueError where one is given by both."""
    settings = dict(given)
    own_names = by_option(model) if issubclass(model, OptionRecord) else {}
    for name in own_names.keys() & given.keys() - model.model_fields.keys():
        key = own_names[name].key
        *path, last = key.split(".")
        inner = settings
        for word in path:
            below = inner.get(word, {})
            if not isinstance(below, dict):
                return dict(given)  # which validation refuses
            inner[word] = dict(below)
            inner = inner[word]
        if last in inner:
            raise ValueError(f"{name} is {key}, and both are given")
        inner[last] = settings.pop(name)
    for name, field in model.model_fields.items():
        record, value = _record(field.annotation), settings.get(name)
        if record is not None and isinstance(value, dict):
            settings[name] = by_keys(record, value)
    return settings


def values(settings: BaseModel) -> dict[str, dict[str, OptionValue]]:
    """The options of a record, by section, in the order of its fields."""
    sections: dict[str, dict[str, OptionValue]] = {}
    for key, name, option, _ in rows(type(settings)):
        value: Any = settings
        for word in key.split("."):
            value = getattr(value, word, None)  # nothing is in a record that is not given
        if option.spell is not None:
            value = option.spell(value)
        elif isinstance(value, float) and value == int(value):
            value = int(value)
        if option.section and value is not None:
            sections.setdefault(option.section, {})[name] = value
    return sections


def scope_of(model: type[BaseModel], key: str) -> Scope:
    """The least restart for a setting, by its dotted key; `cluster` for an unknown one."""
    name, _, rest = key.partition(".")
    field = model.model_fields.get(name)
    if field is None:
        row = by_option(model).get(name) if issubclass(model, OptionRecord) else None
        return "cluster" if row is None else scope_of(model, row.key)
    scope, inner = _option(field).scope, _record(field.annotation)
    if scope == "cluster" or not rest or inner is None:
        return scope
    return scope_of(inner, rest)


@functools.cache
def by_option(model: type[BaseModel]) -> Mapping[str, Row]:
    """The rows of a record by the daemon's own names."""
    return {row.name: row for row in rows(model) if row.option.section}


def option_words(name: str, field: FieldInfo) -> str:
    """What documentation says of a field whose option has another name; empty: nothing."""
    own = _option(field).name
    return "" if own in {"", name} else f"`{own}`"


def sized(model: type[BaseModel], under: str, hosts: Role, daemons: int = 1) -> Iterator[Sized]:
    """The settings that follow the size of `hosts`, which have so many `daemons` each."""
    for key, _, option, _ in rows(model):
        if option.size is not None:
            yield option.size.on(hosts, f"{under}{key}", daemons)


def _option(field: FieldInfo) -> Option:
    return next((one for one in field.metadata if isinstance(one, Option)), _NO_OPTION)


def _record(annotation: Any) -> type[BaseModel] | None:
    """The record that a field has, or may have."""
    union = typing.get_origin(annotation) in {typing.Union, types.UnionType}
    for kind in typing.get_args(annotation) if union else (annotation,):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None
