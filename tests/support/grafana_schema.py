"""Grafana's own types for dashboards and panels, as its Foundation SDK has them, asked what is
wrong with a dashboard.

The SDK is generated of the schemas in Grafana's source, but reads anything: unknown keys are
dropped, and values are not checked. So a dashboard is written again and compared, and each value is
compared with its type.
"""

from __future__ import annotations

import enum
import json
import types
import typing
import warnings
from collections.abc import Iterator
from typing import Any

with warnings.catch_warnings():
    # It warns, on import, of the form of dashboards that all of Grafana's versions read.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models import dashboard, units

UNITS = {value for name, value in vars(units).items() if isinstance(value, str) and name[0] != "_"}


def faults(board: dict[str, Any]) -> list[str]:
    """What is no part of a dashboard or of a panel's options, and what has another type."""
    register_default_plugins()
    read = dashboard.Dashboard.from_json(board)
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    return [*_lost(board, written, ""), *_unlike(read, dashboard.Dashboard, "")]


def _lost(given: Any, written: Any, where: str) -> Iterator[str]:
    """What Grafana's types do not keep."""
    if isinstance(given, dict) and isinstance(written, dict):
        for key, value in given.items():
            if key not in written:
                yield f"{where}/{key} is unknown"
            else:
                yield from _lost(value, written[key], f"{where}/{key}")
    elif isinstance(given, list) and isinstance(written, list):
        for place, (one, other) in enumerate(zip(given, written, strict=True)):
            yield from _lost(one, other, f"{where}/{place}")
    elif given != written:
        yield f"{where} is {given!r}, read as {written!r}"


def _unlike(value: Any, kind: Any, where: str) -> Iterator[str]:
    """Values that have another type than theirs."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        tried = [list(_unlike(value, one, where)) for one in inner]
        if all(tried):
            # Of a type and None, what is wrong with the value as that type says most.
            yield from max(tried, key=len)
    elif origin is list and isinstance(value, list):
        for place, one in enumerate(value):
            yield from _unlike(one, inner[0], f"{where}/{place}")
    elif origin is dict and isinstance(value, dict):
        for key, one in value.items():
            yield from _unlike(one, inner[1], f"{where}/{key}")
    elif origin is typing.Literal:
        if value not in inner:
            yield f"{where} is {value!r}, not one of {inner}"
    elif kind in (object, Any) or hasattr(value, "to_json"):
        if kind not in (object, Any) and not isinstance(value, kind):
            yield f"{where} is a {type(value).__name__}, not a {kind.__name__}"
        elif hasattr(value, "to_json"):
            for name, hint in typing.get_type_hints(type(value)).items():
                yield from _unlike(getattr(value, name), hint, f"{where}/{name}")
    elif isinstance(kind, type) and issubclass(kind, enum.Enum):
        if value not in [one.value for one in kind]:
            yield f"{where} is {value!r}, not one of {[one.value for one in kind]}"
    elif not _is(value, kind):
        yield f"{where} is {value!r}, not a {getattr(kind, '__name__', kind)}"


def _is(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, typing.get_origin(kind) or kind)
