"""The parameters of a gateway's layouts, read off the records that validate them."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from weighbridge.common.quantities import parse_bytes, parse_seconds, show_bytes
from weighbridge.gateways.options import option_words


@dataclass(frozen=True)
class LayoutParameter:
    """One setting: its dotted key below `settings`, its type, its default, and what it does."""

    key: str
    kind: str
    default: str
    about: str


def parameters(settings: type[BaseModel], under: str = "") -> Iterator[LayoutParameter]:
    """Parameters of a record and of those in it, below `KEY[]` in lists, `KEY.NAME` in mappings."""
    texts = field_texts(settings)
    for name, field in settings.model_fields.items():
        inner, place = _record(field.annotation)
        key = f"{under}{name}{place}"
        if inner is not None:
            yield from parameters(inner, f"{key}.")
        else:
            text = texts.get(name, name.replace("_", " "))
            if own := option_words(name, field):
                text = f"{text.removesuffix('.')} ({own})."
            yield LayoutParameter(key, _kind_of(field), _default(field), text)


@functools.cache  # each time the source of its module would be parsed
def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstrings below the fields of a record and its base classes, by field."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if not issubclass(one, BaseModel) or one is BaseModel or vars(one).get("fronts"):
            continue  # fields of fronts come from a registry and have no source
        tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        (body,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
            ):
                words = ast.literal_eval(text.value) if isinstance(text.value, ast.Constant) else ""
                found[field.target.id] = " ".join(str(words).split())
    return found


def _record(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The record that a field holds, optional or not, or has in a list or a mapping, and how its
    keys are reached; None: it holds anything else.
    """
    origin, held = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        there = [one for one in held if one is not type(None)]
        return _record(there[0]) if len(there) == 1 else (None, "")
    if origin is typing.Annotated:
        return _record(held[0])
    for kind, place in ((tuple, "[]"), (dict, ".NAME")):
        if origin is kind and (inner := _record(held[0 if kind is tuple else 1])[0]) is not None:
            return inner, place
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation, ""
    return None, ""


def _kind_of(field: FieldInfo) -> str:
    readers = {getattr(one, "func", None) for one in field.metadata}
    if parse_bytes in readers:
        return "size"
    return "time" if parse_seconds in readers else _kind(field.annotation)


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return " | ".join(str(choice) for choice in typing.get_args(annotation))
    if origin in {typing.Union, types.UnionType}:
        kinds = ("none" if one is type(None) else _kind(one) for one in typing.get_args(annotation))
        return " | ".join(dict.fromkeys(kinds))
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin is not None:
        return "mapping" if origin is dict else "list"
    words = {int: "number", float: "number", str: "text", bool: "true | false"}
    name = getattr(annotation, "__name__", str(annotation))
    return words.get(annotation, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(must be given)"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    kind = _kind_of(field)
    if kind == "size":
        return show_bytes(value)
    if kind == "time":
        return f"{value:g}s"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, BaseModel):
        return ", ".join(f"{name}: {one}" for name, one in value if one is not None)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "{}" if value == {} else str(value)
