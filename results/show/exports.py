"""Files that leave a run, by format: its tables, its histograms, its slides."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.quantities import utc
from weighbridge.common.registry import Registry
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.histogram import DIGITS, HIGHEST_US, Histogram, rank_of
from weighbridge.results.run.reading import make_folder, refuse_existing, write_atomically
from weighbridge.results.run.step import Measurement, StepKey, StepResult
from weighbridge.results.show.table import Table, object_schema
from weighbridge.results.show.tables import HOSTS, RUNS, tables

EXPORTS: Final = "exports"
SCHEMA_VERSION: Final = 1
"""Of the JSON document: raised when a field is removed or changes its meaning; fields may be added
at any time.
"""
_ABOUT_RUN: Final = tuple(one for one in RUNS.columns if one.name != "folder")
"""Without what is about this machine only."""


@dataclass(frozen=True)
class ExportFile:
    """A file: its name, without a folder, and its content."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Produced:
    """What a format made of a run; `remarks`: what could not be exported, and how the rest was."""

    files: tuple[ExportFile, ...]
    remarks: tuple[str, ...] = ()
    folder: str = ""
    """The name of the folder for the files; empty: none."""


@dataclass(frozen=True)
class Format:
    """One format. One that is `of_tables` gets those that were named, or else those of `default`
    (if it is empty, all but `runs` and the long `hosts`); others export complete runs.
    """

    about: str
    """What it writes, in a few words."""
    make: Callable[[RunData, Sequence[Table]], Produced]
    of_tables: bool = False
    default: tuple[str, ...] = ()


# Formats of tables.


def _files(
    suffix: str, content: Callable[[RunData, Table], bytes]
) -> Callable[[RunData, Sequence[Table]], Produced]:
    def make(data: RunData, chosen: Sequence[Table]) -> Produced:
        return Produced(
            tuple(ExportFile(f"{one.name}.{suffix}", content(data, one)) for one in chosen)
        )

    return make


def _json(data: RunData, chosen: Sequence[Table]) -> Produced:
    (about,) = RUNS.of_runs([data]).objects
    document = {
        "schema_version": SCHEMA_VERSION,
        "run": {one.name: about[one.name] for one in _ABOUT_RUN},
        "tables": {one.name: one.of_runs([data]).objects for one in chosen},
    }
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    return Produced((ExportFile("run.json", f"{text}\n".encode()),))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a run as JSON, with units and meanings of all fields."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of Weighbridge",
        "description": "What `weighbridge export RUN --to json` writes. Null is unknown, never "
        "zero.",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "run": object_schema(_ABOUT_RUN),
            "tables": {
                "type": "object",
                "description": "The requested tables.",
                "properties": {name: one.schema for name, one in tables().items()},
                "additionalProperties": False,
            },
        },
        "required": ["schema_version", "run", "tables"],
        "additionalProperties": False,
    }


# What HdrHistogram's tools read: percentile distributions (.hgrm), as its Java tools print them, in
# ms; and interval logs (.hlog, version 1.3), of one interval for each operation of a step.
#
# Ticks are those of HdrHistogram with five per half-distance: ten to the median, then five for each
# halving of the distance to 100 %. The value at a tick is defined as everywhere here: that at rank
# ceil(n x p), never above the exact maximum.


TICKS: Final = 5
"""Ticks per half-distance."""
_SUB_BUCKETS: Final = 2 ** math.ceil(math.log2(2 * 10**DIGITS))
_BUCKETS: Final = 1 + math.ceil(math.log2((HIGHEST_US + 1) / _SUB_BUCKETS))


@dataclass(frozen=True)
class _Latencies:
    """A histogram of a step, with its maximum and sum where they are known exactly."""

    name: str
    encoded: str
    max_us: int | None = None
    sum_us: int | None = None


def histograms(data: RunData) -> Produced:
    """Each step's log, and each operation's distribution, of reads also of the first byte."""
    files: list[ExportFile] = []
    remarks: list[str] = []
    for key, step in data.steps.items():
        found = [
            (one, histogram)
            for one in _latencies(step)
            if (histogram := _readable(one, key, remarks)) is not None
        ]
        for one, histogram in found:
            text = distribution(histogram, one.max_us, one.sum_us)
            files.append(ExportFile(f"{key.file_name}.{one.name}.hgrm", text.encode()))
        if found and step.measurement is not None:
            try:
                text = _log(step.measurement, found)
            except InvalidMeasurement as error:
                remarks.append(f"{key}: {error.message}; its log is left out")
            else:
                files.append(ExportFile(f"{key.file_name}.hlog", text.encode()))
    without = [str(key) for key, step in data.steps.items() if not any(_latencies(step))]
    if without:
        more = f"; and {len(without) - 3} more" if len(without) > 3 else ""
        some = f"{'; '.join(without[:3])}{more}"
        remarks.append(f"{len(without)} of {len(data.steps)} steps have no histogram: {some}")
    return Produced(tuple(files), tuple(remarks), folder="hgrm")


def _log(measured: Measurement, found: Sequence[tuple[_Latencies, Histogram]]) -> str:
    """An interval log. Raises InvalidMeasurement if the step began at no time."""
    # The log writer of the Python library is not used: it drops tags and rounds maxima down.
    start_s = utc(measured.started_at).replace(tzinfo=UTC).timestamp()
    lines = [
        "#[Latencies in microseconds, Interval_Max in milliseconds, times in seconds]\n",
        "#[Histogram log format version 1.3]\n",
        f"#[StartTime: {start_s:.3f} (seconds since epoch), {measured.started_at}]\n",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n',
    ]
    for one, histogram in found:
        top_us = histogram.percentile_us(100)
        if one.max_us is not None:
            top_us = min(top_us, one.max_us)
        window = f"0.000,{measured.window_s:.3f},{top_us / 1000:.3f}"
        lines.append(f"Tag={one.name},{window},{one.encoded}\n")
    return "".join(lines)


def _readable(latencies: _Latencies, key: StepKey, remarks: list[str]) -> Histogram | None:
    """A histogram that counts something; if there is none, the remark says why."""
    try:
        histogram = Histogram.decode(latencies.encoded)
    except InvalidMeasurement as error:
        remarks.append(f"{key}, {latencies.name}: {error.message}; left out")
        return None
    if not histogram.count:
        remarks.append(f"{key}, {latencies.name}: the histogram counts no samples; left out")
        return None
    return histogram


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
    """The middle of a bucket, by its top: 1 us wide below 2048 us, 2 us below 4096 us ..."""
    width: int = 2 ** max(0, top_us.bit_length() - int(math.log2(_SUB_BUCKETS)))
    return top_us - width + 1 + width // 2


def _latencies(step: StepResult) -> Iterator[_Latencies]:
    for tally in step.measurement.tallies if step.measurement is not None else ():
        if tally.latency is not None:
            yield _Latencies(tally.operation, tally.latency, tally.max_us, tally.sum_us)
        if tally.first_byte is not None:
            yield _Latencies(f"{tally.operation}-first-byte", tally.first_byte)


# Formats, and writing them.


def _pptx(data: RunData, _: Sequence[Table]) -> Produced:
    from weighbridge.results.show.deck import powerpoint  # noqa: PLC0415 - heavy, and rarely needed
    from weighbridge.results.show.talk import talk  # noqa: PLC0415 - as above

    return Produced((ExportFile("slides.pptx", powerpoint(talk(data))),))


FORMATS: Final[Registry[Format]] = Registry(
    "weighbridge.exports",
    "format",
    own={
        "csv": Format(
            "a file per table, unrounded; empty cells are unknown",
            _files("csv", lambda data, one: one.of_runs([data]).csv.encode()),
            of_tables=True,
            default=("summary",),
        ),
        "parquet": Format(
            "the same with typed columns (zstd); NULL is unknown",
            _files("parquet", lambda data, one: one.of_runs([data]).parquet),
            of_tables=True,
            default=("summary",),
        ),
        "json": Format(
            "one document, by default of all tables but runs and hosts; --schema prints its JSON "
            "Schema",
            _json,
            of_tables=True,
        ),
        "markdown": Format(
            "a table for notes, rounded, with its caveats",
            _files("md", lambda data, one: one.markdown(data).encode()),
            of_tables=True,
            default=("summary",),
        ),
        "hgrm": Format(
            "HdrHistogram percentile distributions, a file per step and operation; and its "
            "interval logs (hlog), a file per step",
            lambda data, _: histograms(data),
        ),
        "pptx": Format("the slides of a talk", _pptx),
    },
    kind=Format,
)
"""Every format by name; others come by entry points of the group `weighbridge.exports`."""


@dataclass(frozen=True)
class Exported:
    """What was written, and what was not (gaps, remarks of the format), in sentences."""

    paths: tuple[Path, ...]
    remarks: tuple[str, ...]


def produce(data: RunData, to: str, names: Sequence[str] = ()) -> Produced:
    """The files of a run in a format, not yet written; its remarks begin with the run's gaps.

    Raises UsageError on an unknown format or table;
    InvalidMeasurement when something in it cannot be read, or when no file could be made.
    """
    form = FORMATS.get_or_refuse(to)
    chosen = _chosen(to, form, names)
    lacking = [one.name for one in chosen if names and not any(True for _ in one.lines(data))]
    remarks = (*data.gaps, *(f"this run has no lines of {name}" for name in lacking))
    made = form.make(data, chosen)
    if not made.files:
        raise InvalidMeasurement(
            "\n".join((f"{data.store.folder}: nothing to export as {to}", *made.remarks, *remarks))
        )
    return replace(made, remarks=(*remarks, *made.remarks))


def _chosen(to: str, form: Format, names: Sequence[str]) -> tuple[Table, ...]:
    """The tables to export. Raises UsageError on an unknown one."""
    if not form.of_tables:
        if names:
            raise UsageError(
                f"{to} exports complete runs, not single tables", advice="Omit --table."
            )
        return ()
    known = tables()
    every = [name for name in known if name not in (RUNS.name, HOSTS.name)]
    for name in names:
        if name not in known:
            raise UsageError(
                f"there is no table {name!r}{did_you_mean(name, tuple(known))}",
                advice=f"There are {', '.join(known)}.",
            )
    return tuple(known[name] for name in dict.fromkeys(names or form.default or every))


def export(
    data: RunData,
    to: str,
    names: Sequence[str] = (),
    *,
    out: Path | None = None,
    force: bool = False,
) -> Exported:
    """Write a run in a format, into `derived/exports` of its folder or to `out`.

    A single file goes to `out`, or into it where it is a folder; several go into it. Raises as
    `produce` does, UsageError when a file exists and `force` is not set (then nothing is written),
    StoreError when one cannot be written.
    """
    made = produce(data, to, names)
    paths = _places(made, out, data.store.derived / EXPORTS)
    refuse_existing(paths, force=force)
    # The run's folder may come from anyone; any other place is the user's.
    within = data.store.folder if out is None else None
    if within is not None:
        data.store.make_derived(EXPORTS)
    for path, file in zip(paths, made.files, strict=True):
        if within is None:
            make_folder(path.parent)
        write_atomically(path, file.content, folder=within)
    return Exported(paths=paths, remarks=made.remarks)


def single(to: str, made: Produced) -> ExportFile:
    """The only file of an export. Raises UsageError where there are several."""
    if made.folder or len(made.files) > 1:
        raise UsageError(
            f"{to} makes {len(made.files)} files: they cannot go to standard output",
            advice="Name a folder with --out.",
        )
    return made.files[0]


def _places(made: Produced, out: Path | None, default: Path) -> tuple[Path, ...]:
    if out is None:
        folder = default / made.folder if made.folder else default
    elif made.folder or len(made.files) > 1 or out.is_dir():
        folder = out
    else:
        return (out,)
    return tuple(folder / file.name for file in made.files)
