from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.csv_format import csv_file
from weighbridge.results.export.data_table import DataTable
from weighbridge.results.export.durability_table import durability_table
from weighbridge.results.export.effect_tables import effects_table, ledger_table, trials_table
from weighbridge.results.export.file import ExportFile, Format, Produced
from weighbridge.results.export.hgrm_format import hgrm_files, hlog_files
from weighbridge.results.export.json_format import json_file
from weighbridge.results.export.keeping_tables import kept_table, memory_table
from weighbridge.results.export.markdown_format import markdown_file
from weighbridge.results.export.outage_tables import outages_table
from weighbridge.results.export.paper import PaperTable, effects_paper, summary_paper
from weighbridge.results.export.parquet_format import parquet_file
from weighbridge.results.export.run_tables import steps_table, summary_table
from weighbridge.results.export.second_table import seconds_table
from weighbridge.results.export.tuning_paper import tuning_paper

TABLES: Final[Mapping[str, Callable[[Sequence[RunData]], DataTable]]] = MappingProxyType(
    {
        "summary": summary_table,
        "steps": steps_table,
        "seconds": seconds_table,
        "effects": effects_table,
        "kept": kept_table,
        "memory": memory_table,
        "outages": outages_table,
        "durability": durability_table,
        "ledger": ledger_table,
        "trials": trials_table,
    }
)
OF_TUNINGS: Final = ("ledger", "trials")
_PAPERS: Final = ("summary", "effects", "ledger")


Make = Callable[[RunData, Sequence[str]], Produced]


def _of_tables(write: Callable[[DataTable], ExportFile]) -> Make:
    return lambda data, tables: Produced(
        files=tuple(write(TABLES[name]([data])) for name in tables)
    )


def _of_papers(write: Callable[[PaperTable], ExportFile]) -> Make:
    return lambda data, tables: Produced(files=tuple(write(_paper(data, name)) for name in tables))


def _json(data: RunData, tables: Sequence[str]) -> Produced:
    return Produced(files=(json_file(data, [TABLES[name]([data]) for name in tables]),))


def _pptx(data: RunData, _tables: Sequence[str]) -> Produced:
    from weighbridge.results.show.deck import (  # noqa: PLC0415 - heavy, and needed only here
        font_here,
        powerpoint,
    )
    from weighbridge.results.show.talk import talk  # noqa: PLC0415 - as above

    return Produced(
        files=(ExportFile(name="slides.pptx", content=powerpoint(talk(data))),),
        remarks=(f"slides.pptx: {font_here()}",),
    )


def _paper(data: RunData, name: str) -> PaperTable:
    if name == "summary":
        return summary_paper(data)
    return tuning_paper(data) if name == "ledger" else effects_paper(data, data.comparison)


FORMATS: Final[Registry[Format]] = Registry(
    "weighbridge.exports",
    "format",
    own={
        "csv": Format(
            "a file per table, unrounded; empty cells are unknown",
            _of_tables(csv_file),
            tuple(TABLES),
            ("summary",),
        ),
        "parquet": Format(
            "the same with typed columns (zstd); NULL is unknown",
            _of_tables(parquet_file),
            tuple(TABLES),
            ("summary",),
        ),
        "json": Format(
            "one document of all tables; --schema prints its JSON Schema",
            _json,
            tuple(TABLES),
            tuple(TABLES),
        ),
        "hgrm": Format(
            "HdrHistogram percentile distributions, a file per step and operation",
            lambda data, _: hgrm_files(data),
        ),
        "hlog": Format(
            "HdrHistogram interval logs, a file per step", lambda data, _: hlog_files(data)
        ),
        "markdown": Format(
            "the table of a run (or its effects, or a tuning's settings) for notes",
            _of_papers(markdown_file),
            _PAPERS,
            ("summary",),
        ),
        "pptx": Format("the slides of a talk", _pptx),
    },
    kind=Format,
)
"""Every format by name; others come by entry points of the group `weighbridge.exports`."""


def format_of(name: str, tables: Sequence[str]) -> tuple[Format, tuple[str, ...]]:
    """A format and the tables to export. Raises UsageError on unknown ones."""
    found = FORMATS.get_or_refuse(name)
    for table in tables:
        if not found.tables:
            raise UsageError(
                f"{name} exports complete runs, not single tables", advice="Omit --table."
            )
        if table not in found.tables:
            known = did_you_mean(table, found.tables)
            raise UsageError(
                f"{name} has no table {table!r}{known}", advice=f"It has {', '.join(found.tables)}."
            )
    return found, tuple(dict.fromkeys(tables)) or found.default
