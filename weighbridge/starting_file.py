"""Files to edit: what a file that ships says, with every other key and what each is for.

The comments are the documentation of the records that validate such files.
"""

from __future__ import annotations

import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from weighbridge.common.document import Document, models_in
from weighbridge.gateways.gateway import STORES
from weighbridge.suites import Suite
from weighbridge.suites import loader as suite_files
from weighbridge.topologies import loader
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, field_texts

WIDTH: Final = 100
Models = Mapping[str, type[BaseModel]]
"""Records of keys whose type does not tell them."""


@dataclass(frozen=True)
class StartingKind:
    """A kind of file: its record, the shipped file to start from, how to find one, its use."""

    model: type[BaseModel]
    usual: str
    path: Callable[[str], Path]
    use: str


KINDS: Final[Mapping[str, StartingKind]] = MappingProxyType(
    {
        "suite": StartingKind(
            Suite, "endpoints", suite_files.find, "weighbridge compare --suite FILE"
        ),
        "layout": StartingKind(
            Layout,
            "rgw-beast",
            lambda name: loader.find(name, loader.shipped_layouts(), "layout"),
            "weighbridge compare --layouts FILE,swift; check it: weighbridge render FILE",
        ),
        "hardware": StartingKind(
            Hardware,
            "lab-cpu",
            lambda name: loader.find(name, loader.shipped_hardware(), "hardware"),
            "weighbridge compare --hardware FILE",
        ),
    }
)


def starting_file(kind: str, base: str | None = None, file: Path | None = None) -> str:
    """A file of this kind that says what `base` says. Raises UsageError or DocumentError."""
    one = KINDS[kind]
    document = Document.read(one.path(base or one.usual))
    checked = document.into(one.model)
    given = dict(document.data)
    stem = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-") if file is not None else ""
    given["name"] = stem if 0 < len(stem) <= 40 else f"my-{given['name']}"[:40]
    models: dict[str, type[BaseModel]] = {}
    if isinstance(checked, Layout):
        store = STORES[STORES.known(checked.gateway)]
        models = {"place": store.Placement, "settings": store.Settings}
    place = str(file) if file is not None else "FILE"
    head = (
        f"# {one.use.replace('FILE', place)}",
        "# Keys that begin with # have their defaults; `null` means not set.",
    )
    return "\n".join((*head, *_lines(one.model, given, "", models))) + "\n"


def _lines(
    model: type[BaseModel], given: Mapping[str, Any], indent: str, models: Models
) -> Iterator[str]:
    texts = field_texts(model)
    for name, field in model.model_fields.items():
        text = texts.get(name, "")
        width = max(WIDTH - len(indent) - 2, 40)
        yield from (f"{indent}# {line}" for line in textwrap.wrap(text, width))
        if name in given:
            yield from _given(name, given[name], field, indent, models)
        else:
            yield f"{indent}# {name}: {_flow(_default(field))}"


def _given(name: str, value: Any, field: FieldInfo, indent: str, models: Models) -> Iterator[str]:
    """A key with its value; records, and the first of several, are commented."""
    known = [models[name]] if name in models else models_in(field.annotation)
    deeper = f"{indent}  "
    if isinstance(value, dict) and value:
        if typing.get_origin(field.annotation) is dict and name not in models:
            yield from _mapping(name, value, known, indent)
            return
        inner = _fitting(known, value)
        if inner is not None:
            yield f"{indent}{name}:"
            yield from _lines(inner, value, deeper, {})
            return
    if isinstance(value, list) and value and isinstance(value[0], dict):
        inner = _fitting(known, value[0])
        if inner is not None:
            yield f"{indent}{name}:"
            first, *others = _lines(inner, value[0], f"{deeper}  ", {})
            yield f"{deeper}- {first.lstrip()}"
            yield from others
            for other in value[1:]:
                yield from textwrap.indent(_block([other]), deeper).splitlines()
            return
    yield f"{indent}{name}: {_flow(value)}"


def _mapping(
    name: str, value: dict[str, Any], known: list[type[BaseModel]], indent: str
) -> Iterator[str]:
    """A mapping by names of the user's; if to records, the first is commented."""
    first, *others = value.items()
    inner = _fitting(known, first[1]) if first[1] and isinstance(first[1], dict) else None
    if inner is None:
        yield f"{indent}{name}: {_flow(value)}"
        return
    deeper = f"{indent}  "
    yield f"{indent}{name}:"
    yield f"{deeper}{first[0]}:"
    yield from _lines(inner, first[1], f"{deeper}  ", {})
    for key, other in others:
        yield f"{deeper}{key}: {_flow(other)}"


def _fitting(known: list[type[BaseModel]], value: Mapping[str, Any]) -> type[BaseModel] | None:
    return next((one for one in known if set(value) <= set(one.model_fields)), None)


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return None
    return to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
    )
    return text.removesuffix("...\n").strip()


def _block(value: Any) -> str:
    return yaml.safe_dump(
        value, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )
