from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.registry import Registry
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.setting_lines import RESTARTED, change_figure
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, interval_words
from weighbridge.results.export.csv_format import csv_file
from weighbridge.results.export.data_table import DataTable
from weighbridge.results.export.database import create, insert, opened, quoted
from weighbridge.results.export.durability_table import durability_table
from weighbridge.results.export.effect_tables import effects_table, ledger_table, trials_table
from weighbridge.results.export.file import ExportFile, Format, Produced
from weighbridge.results.export.json_format import json_file
from weighbridge.results.export.keeping_tables import kept_table, memory_table
from weighbridge.results.export.markdown_format import markdown_file
from weighbridge.results.export.outage_tables import outages_table
from weighbridge.results.export.paper import PaperColumn, PaperTable, effects_paper, summary_paper
from weighbridge.results.export.run_tables import steps_table, summary_table
from weighbridge.results.export.second_table import seconds_table
from weighbridge.results.figures import UNKNOWN, show_percent, upper
from weighbridge.results.record.histogram import DIGITS, HIGHEST_US, Histogram, rank_of
from weighbridge.results.record.step import StepResult
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio

# What HdrHistogram's tools read: percentile distributions (.hgrm), as its Java tools print them, in
# ms; and interval logs (.hlog, version 1.3), of one interval for each operation of a step. Ticks
# are those of HdrHistogram with five per half-distance: ten to the median, then five for each
# halving of the distance to 100 %. The value at a tick is defined as everywhere here: that at rank
# ceil(n x p), never above the exact maximum.
TICKS: Final = 5
"""Ticks per half-distance."""
_SUB_BUCKETS: Final = 2 ** math.ceil(math.log2(2 * 10**DIGITS))
_BUCKETS: Final = 1 + math.ceil(math.log2((HIGHEST_US + 1) / _SUB_BUCKETS))


@dataclass(frozen=True)
class _Latencies:
    """A histogram of a step. Its maximum and sum are exact where they are known."""

    name: str
    encoded: str
    histogram: Histogram
    max_us: int | None = None
    sum_us: int | None = None


def hgrm_files(data: RunData) -> Produced:
    """A file for each step and operation with a histogram, and for reads' time to first byte."""

    def distributions(step: StepResult, found: Sequence[_Latencies]) -> Iterator[ExportFile]:
        for one in found:
            text = distribution(one.histogram, one.max_us, one.sum_us)
            yield ExportFile(name=f"{step.key.file_name}.{one.name}.hgrm", content=text.encode())

    return _of_each_step(data, "hgrm", distributions)


def hlog_files(data: RunData) -> Produced:
    """A file for each step with a histogram."""

    def log(step: StepResult, found: Sequence[_Latencies]) -> Iterator[ExportFile]:
        if step.measurement is None:
            return
        # The log writer of the Python library is not used: it drops tags and rounds maxima down.
        text = _log_header(step.measurement.started_at)
        for one in found:
            highest_us = one.histogram.percentile_us(100)
            top_ms = min(highest_us, highest_us if one.max_us is None else one.max_us) / 1000
            window = f"0.000,{step.measurement.window_s:.3f},{top_ms:.3f}"
            text += f"Tag={one.name},{window},{one.encoded}\n"
        yield ExportFile(name=f"{step.key.file_name}.hlog", content=text.encode())

    return _of_each_step(data, "hlog", log)


def _of_each_step(
    data: RunData,
    folder: str,
    files_of: Callable[[StepResult, Sequence[_Latencies]], Iterable[ExportFile]],
) -> Produced:
    files: list[ExportFile] = []
    remarks, without = [], []
    for key, step in data.steps.items():
        encoded = list(_encoded(step))
        if not encoded:
            without.append(str(key))
        found = []
        for name, text, max_us, sum_us in encoded:
            try:
                found.append(_Latencies(name, text, Histogram.decode(text), max_us, sum_us))
            except InvalidMeasurement as error:
                remarks.append(f"{key}, {name}: {error.message}; left out")
        try:
            files += files_of(step, found) if found else ()
        except InvalidMeasurement as error:
            remarks.append(f"{key}: {error.message}; left out")
    if without:
        more = f"; and {len(without) - 3} more" if len(without) > 3 else ""
        some = f"{'; '.join(without[:3])}{more}"
        remarks.append(f"{len(without)} of {len(data.steps)} steps have no histogram: {some}")
    return Produced(files=tuple(files), remarks=tuple(remarks), folder=folder)


def _log_header(started_at: str) -> str:
    """Raises InvalidMeasurement if it is no time."""
    try:
        start_s = datetime.fromisoformat(started_at).timestamp()
    except ValueError as error:
        raise InvalidMeasurement(f"{started_at!r} is not a time in ISO 8601") from error
    return (
        "#[Latencies in microseconds, Interval_Max in milliseconds, times in seconds]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {started_at}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def distribution(histogram: Histogram, max_us: int | None = None, sum_us: int | None = None) -> str:
    """A histogram as text; `max_us` and `sum_us` are exact where known. Raises InvalidMeasurement
    when nothing was counted.
    """
    buckets = histogram.buckets()
    if not buckets:
        raise InvalidMeasurement("the histogram counts no samples")
    ranks = list(accumulate(count for _, count in buckets))
    count = ranks[-1]
    top_us = buckets[-1][0] if max_us is None else min(max_us, buckets[-1][0])
    lines = ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
    for percent in ticks():
        place = bisect_left(ranks, rank_of(count, percent) if percent else 1)
        value_us = min(buckets[place][0], top_us)
        lines.append(
            f"{value_us / 1000:12.3f} {percent / 100:14.12f} {ranks[place]:10d} "
            f"{100 / (100 - percent):14.2f}"
        )
        if ranks[place] == count:
            break
    lines.append(f"{top_us / 1000:12.3f} {1:14.12f} {count:10d}")
    middles = [(_middle_us(top), each) for top, each in buckets]
    mean_us = (sum(middle * each for middle, each in middles) if sum_us is None else sum_us) / count
    deviation_us = math.sqrt(
        sum(each * (middle - mean_us) ** 2 for middle, each in middles) / count
    )
    lines += [
        f"#[Mean    = {mean_us / 1000:12.3f}, StdDeviation   = {deviation_us / 1000:12.3f}]",
        f"#[Max     = {top_us / 1000:12.3f}, Total count    = {count:12d}]",
        f"#[Buckets = {_BUCKETS:12d}, SubBuckets     = {_SUB_BUCKETS:12d}]",
    ]
    return "\n".join(lines) + "\n"


def ticks() -> Iterator[float]:
    """Percentages from 0 to less than 100: five steps to each half of the distance to 100."""
    percent = 0.0
    while percent < 100:
        yield percent
        halvings = int(math.log2(100 / (100 - percent))) + 1
        percent += 100 / (TICKS * 2**halvings)


def _middle_us(top_us: int) -> int:
    """The middle of a bucket, given its top: buckets are 1 us wide below 2048 us, 2 us below 4096
    us ...
    """
    width: int = 2 ** max(0, top_us.bit_length() - int(math.log2(_SUB_BUCKETS)))
    return top_us - width + 1 + width // 2


def _encoded(step: StepResult) -> Iterator[tuple[str, str, int | None, int | None]]:
    for tally in step.measurement.tallies if step.measurement is not None else ():
        if tally.latency is not None:
            yield tally.operation, tally.latency, tally.max_us, tally.sum_us
        if tally.first_byte is not None:
            yield f"{tally.operation}-first-byte", tally.first_byte, None, None


def tuning_paper(data: RunData) -> PaperTable:
    """Each setting with its effects, in groups by verdict. Raises UsageError if it is no tuning."""
    result = data.tuned
    if result is None:
        raise UsageError(
            f"{data.store.folder}: not a tuning: it has no table of settings",
            advice="Choose another table.",
        )
    groups: dict[str, list[tuple[str, ...]]] = {}
    for entry in result.table.entries:
        groups.setdefault(entry.verdict, []).append(_line(result, entry))
    objectives = [result.called(number) for number in range(len(result.run.objectives))]
    state = "" if data.manifest.state == "done" else f" ({data.manifest.state})"
    return PaperTable(
        name="ledger",
        caption=f"Effect of each setting vs {result.table.baseline.name}; tuning "
        f"{result.run.tuning.name}, run {data.manifest.run_id}{state}",
        columns=(
            PaperColumn(title="Setting"),
            *(
                column
                for name in objectives
                for column in (
                    PaperColumn(title=upper(name), numeric=True),
                    PaperColumn(title="Interval", numeric=True),
                )
            ),
            PaperColumn(title="Verdict"),
            PaperColumn(title="Gateway CPU", numeric=True),
            PaperColumn(title="Storage CPU", numeric=True),
            PaperColumn(title="Trials", numeric=True),
            PaperColumn(title="Needs"),
        ),
        groups=tuple(tuple(lines) for lines in groups.values()),
        notes=tuple(_notes(result)),
    )


def _line(result: TuningResult, entry: SettingEntry) -> tuple[str, ...]:
    scope = result.scope(entry.variant)
    return (
        entry.name,
        *(cell for effect in entry.effects for cell in _cells(effect)),
        entry.verdict,
        _cpu(entry.gateway_cpu),
        _cpu(entry.storage_cpu),
        str(entry.trials),
        UNKNOWN if scope is None else RESTARTED[scope],
    )


def _cells(effect: Effect) -> tuple[str, str]:
    return change_figure(effect), interval_words(effect) or UNKNOWN


def _cpu(ratio: Ratio | None) -> str:
    return UNKNOWN if ratio is None else show_percent(ratio.value)


def _notes(result: TuningResult) -> Iterator[str]:
    looks = result.table.looks
    yield (
        "Change of geometric means from the baseline's trials before and after each trial; more is "
        "better for throughput, less for latencies. Intervals: 95 %"
        f"{f' over {looks} looks' if looks > 1 else ''}. ~: not significant."
    )
    if any(one.verdict == "provisional" for one in result.table.entries):
        yield f"In brackets: fewer than {REPEATS_FOR_A_CLAIM} trials, provisional."
    for one in result.table.drift:
        yield f"{upper(one.words.rstrip('.'))}."
    if result.winner is not None:
        yield result.winner_words
        yield result.confirmation_words
    for entry in result.refused:
        if entry.notes:
            yield f"{entry.name}: {entry.verdict}: {entry.notes[0]}."


def parquet_file(table: DataTable) -> ExportFile:
    """A table as a Parquet file."""
    name = f"{table.name}.parquet"
    with TemporaryDirectory(prefix="weighbridge-") as folder, opened() as connection:
        path = Path(folder) / name
        create(connection, table.name, table.fields)
        insert(connection, table.name, table)
        connection.execute(
            f"COPY {quoted(table.name)} TO '{_literal(path)}' (FORMAT parquet, COMPRESSION zstd)"
        )
        return ExportFile(name=name, content=path.read_bytes())


def _literal(path: Path) -> str:
    return str(path).replace("'", "''")


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
    from weighbridge.results.slides import deck  # noqa: PLC0415 - heavy, and needed only here
    from weighbridge.results.slides.typeface import shown_here  # noqa: PLC0415 - as above

    return Produced(
        files=(ExportFile(name="slides.pptx", content=deck(data.store)),),
        remarks=(f"the slides are {shown_here()}",),
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
