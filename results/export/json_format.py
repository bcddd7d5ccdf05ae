"""JSON: a run as one document, unrounded, null for what is unknown; and its JSON Schema.

`SCHEMA_VERSION` is raised when a field is removed or changes its meaning; fields may be added at
any time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import Cell, DataTable, Field, Kind, show_time
from weighbridge.results.export.durability_table import DURABILITY
from weighbridge.results.export.effect_tables import EFFECTS, LEDGER, TRIALS
from weighbridge.results.export.file import ExportFile
from weighbridge.results.export.host_tables import RUNS
from weighbridge.results.export.keeping_tables import KEPT, MEMORY
from weighbridge.results.export.outage_tables import OUTAGES
from weighbridge.results.export.run_tables import STEPS, SUMMARY
from weighbridge.results.export.second_table import SECONDS

SCHEMA_VERSION: Final = 1

_LOCAL: Final = ("folder",)
"""Fields of a run that are about this machine only."""
_TYPES: Final[Mapping[Kind, Mapping[str, Any]]] = MappingProxyType(
    {
        "text": {"type": ["string", "null"]},
        "integer": {"type": ["integer", "null"]},
        "number": {"type": ["number", "null"]},
        "boolean": {"type": ["boolean", "null"]},
        "time": {"type": ["string", "null"], "format": "date-time"},
        "texts": {"type": "array", "items": {"type": "string"}},
    }
)


def json_file(data: RunData, tables: Sequence[DataTable]) -> ExportFile:
    """A run with these tables as one document."""
    (about,) = json_objects(RUNS.fill([data]))
    document = {
        "schema_version": SCHEMA_VERSION,
        "run": {name: value for name, value in about.items() if name not in _LOCAL},
        "tables": {table.name: json_objects(table) for table in tables},
    }
    return ExportFile(
        name="run.json",
        content=json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()
        + b"\n",
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of such a document, with units and meanings of all fields."""
    schemas = (SUMMARY, STEPS, SECONDS, EFFECTS, LEDGER, TRIALS, KEPT, MEMORY, OUTAGES, DURABILITY)
    tables = {
        schema.name: {
            "type": "array",
            "description": schema.about,
            "items": _object_schema(schema.fields),
        }
        for schema in schemas
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of Weighbridge",
        "description": "What `weighbridge export RUN --to json` writes. Null is unknown, never "
        "zero.",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "run": _object_schema([field for field in RUNS.fields if field.name not in _LOCAL]),
            "tables": {
                "type": "object",
                "description": "The requested tables.",
                "properties": tables,
                "additionalProperties": False,
            },
        },
        "required": ["schema_version", "run", "tables"],
        "additionalProperties": False,
    }


def json_cell(cell: Cell) -> object:
    """A cell as a JSON value."""
    if isinstance(cell, datetime):
        return show_time(cell)
    return list(cell) if isinstance(cell, tuple) else cell


def json_objects(table: DataTable) -> list[dict[str, Any]]:
    """The lines of a table as JSON objects."""
    names = [field.name for field in table.fields]
    return [dict(zip(names, map(json_cell, line), strict=True)) for line in table.lines]


def _object_schema(fields: Sequence[Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            field.name: {
                **_TYPES[field.kind],
                "description": f"{field.about}{f' Unit: {field.unit}.' if field.unit else ''}",
            }
            for field in fields
        },
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }
