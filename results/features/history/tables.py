"""The history of many runs: its tables, and the DuckDB file that keeps what was judged of each run.

A run is read again when its folder has changed, or this program; one whose folder is gone stays as
it was judged last. Beside that the file has the tables, for anybody's queries.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.features.compare_runs.guard import ComparedRun, read_compared_run
from weighbridge.results.features.history.history import History, RunChange, break_words
from weighbridge.results.features.history.run_series import OUTLIER_RULE, RULE, begun
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.numbers import show_figure, show_p, show_percent
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.page import render
from weighbridge.results.show.table import (
    Filled,
    Line,
    Table,
    columns,
    create,
    database,
    insert,
    line,
    lock,
    quoted,
)
from weighbridge.results.show.tables import doubt_texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CELL: Final = f"""
layout text | The layout.
release text | Its release; empty if it has none.
suite text | The suite.
workload text | The workload.
operation text | The operation on objects.
api text | The API.
driver text | What made the load.
workers integer | Worker count.
metric text | The metric: {", ".join(METRICS)}.
group integer | Runs of one number are comparable, within layout, suite and workload.
"""
FIGURES: Final = Table(
    "figures",
    "A line for each compared metric of each cell of each run, in order of time.",
    columns(f"""
{_CELL}
run text | Name of the run.
begun_at time | When the run began, UTC.
value number | The figure, in the unit of its metric; unknown for one in a bin.
low number | Lower end of its 95 % interval over the repeats.
high number | Upper end of that.
bin_low_ms number | Lower edge of its bin, where the driver counts in bins.
bin_high_ms number | Upper edge of that.
unit text | Unit of the metric.
standing text | sure, provisional (a mild doubt) or not comparable (a grave one, or not valid).
doubts texts | Doubts about it, each with its grade.
why text | Why it is not comparable.
outlier text | That it is far outside those of its neighbours, and no change; empty: it is not.
"""),
)
CHANGES: Final = Table(
    "changes",
    "A line for each change of a metric of a cell, in order of time.",
    columns(f"""
{_CELL}
run text | The first run after the change.
begun_at time | When that run began, UTC.
previous text | The last run of the figures before it.
before number | Mean of the figures before it.
after number | Mean of the figures after it.
ratio number | After relative to before.
runs_before integer | Figures before it, since the last change.
runs_after integer | Figures after it, until the next change.
passing integer | Figures between, at levels that did not last.
p number | P-value of Student's t-test, not corrected.
direction text | better or worse.
doubts texts | Doubts about its figures, unless those without make the change: then provisional.
text text | The change in a sentence.
"""),
)


def history_tables(history: History) -> tuple[Filled, Filled]:
    """Figures and changes."""
    changes = [
        line(one, begun_at=one.begun, doubts=doubt_texts(one.doubts))
        for layout in history.changes
        for one in layout.changes
    ]
    return Filled(FIGURES, tuple(_figures(history))), Filled(CHANGES, tuple(changes))


def _figures(history: History) -> Iterator[Line]:
    for series in history.series:
        for point in series.points:
            within = point.figure.within
            yield line(
                point,
                point.figure,
                series,
                begun_at=point.begun,
                bin_low_ms=None if within is None else within.low_ms,
                bin_high_ms=None if within is None else within.high_ms,
                unit=METRICS[series.metric].unit,
                doubts=doubt_texts(point.doubts),
            )


# The database.


DATABASE: Final = "history.duckdb"
LARGEST_RECORD_BYTES: Final = 2**25
"""For a manifest or a plan in a folder of many runs: in memory it can be 25 times as large."""
_KEPT: Final = (
    "CREATE TABLE IF NOT EXISTS kept (run VARCHAR PRIMARY KEY, state VARCHAR, document VARCHAR)"
)
_ADVICE: Final = (
    "Move it away to start a new one: run folders have all that it keeps, except of deleted runs."
)


class KeptRuns(Record):
    """The runs of a history, and what was left out."""

    runs: tuple[ComparedRun, ...]
    gone: tuple[str, ...]
    """Names of runs that are kept although their folder was not among those read."""
    left_out: tuple[str, ...]
    """A sentence for each folder, or kept run, that could not be read."""


@contextmanager
def history_database(path: Path) -> Iterator[DuckDBPyConnection]:
    """The database, made if missing, for this process alone. Raises UsageError if it cannot be."""
    import duckdb  # noqa: PLC0415 - heavy, and an extra

    # DuckDB writes ahead to the second one, and would follow a link.
    for file in (path, path.with_name(f"{path.name}.wal")):
        if file.is_symlink() or (file.exists() and not file.is_file()):
            raise UsageError(
                f"{file}: is not a plain file, and is left alone", advice="Choose another --out."
            )
    try:
        # A file that somebody else made can have views: they must reach no other file.
        connection = duckdb.connect(path, config={"enable_external_access": False})
        try:
            lock(connection)
            connection.begin()
            _make_kept(connection, path)
            yield connection
            connection.commit()
        finally:
            connection.close()
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{path}: {first}", advice=_ADVICE) from error


def _make_kept(connection: DuckDBPyConnection, path: Path) -> None:
    # A view, or a column that is computed, may take for ever to read.
    with database() as plain:
        plain.execute(_KEPT)
        expected = _tables(plain)
    connection.execute(_KEPT)
    if not set(expected) <= set(_tables(connection)):
        raise UsageError(f"{path}: another program made its table of kept runs", advice=_ADVICE)


def _tables(connection: DuckDBPyConnection) -> list[tuple[str, ...]]:
    """Schema, name and definition of each table named `kept`."""
    return connection.execute(
        "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE table_name = 'kept'"
    ).fetchall()


def keep_runs(connection: DuckDBPyConnection, folders: Iterable[Path], version: str) -> KeptRuns:
    """Judge the new and changed runs of folders, keep them, and return all; `version` is this
    program's.
    """
    left_out: list[str] = []
    seen: dict[str, Path] = {}
    runs: list[ComparedRun] = []
    for folder in folders:
        try:
            _refuse_large(folder)
            run = RunStore.open(folder).manifest.run_id
            if run in seen:
                left_out.append(f"left out: {folder}: the same run as {seen[run]}")
                continue
            runs.append(_keep(connection, folder, run, version))
            seen[run] = folder
        except WeighbridgeError as error:
            left_out.append(f"left out: {error.message}")
    gone = tuple(_gone(connection, seen, left_out))
    return KeptRuns(
        runs=(*runs, *gone),
        gone=tuple(run.manifest.run_id for run in gone),
        left_out=tuple(left_out),
    )


def replace_table(connection: DuckDBPyConnection, filled: Filled) -> None:
    """Put a table into the database, instead of the one of that name."""
    connection.execute(f"DROP TABLE IF EXISTS {quoted(filled.table.name)}")
    create(connection, filled.table)
    insert(connection, filled)


def _refuse_large(folder: Path) -> None:
    """Raise UsageError for a manifest or plan that would take gigabytes of memory to read."""
    for name in ("manifest.json", "plan.resolved.json"):
        path = folder / name
        if path.is_file() and path.stat().st_size > LARGEST_RECORD_BYTES:
            most = show_bytes(LARGEST_RECORD_BYTES)
            raise UsageError(f"{path}: is larger than {most}, the limit in a history")


def _keep(connection: DuckDBPyConnection, folder: Path, run: str, version: str) -> ComparedRun:
    """The run as it is kept, or judged now and kept. Raises as reading it does."""
    state = _state(folder, version)
    known = connection.execute("SELECT state FROM kept WHERE run = ?", [run]).fetchone()
    kept = _parsed(connection, run) if known == (state,) else None
    if kept is not None:
        return kept
    found = read_compared_run(folder)
    if found.is_tuning:
        raise UsageError(f"{folder}: is a tuning, whose trials are not runs of a suite")
    begun(found)
    brief = found.brief
    connection.execute(
        "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", [run, state, brief.model_dump_json()]
    )
    return brief


def _gone(
    connection: DuckDBPyConnection, seen: Collection[str], left_out: list[str]
) -> Iterator[ComparedRun]:
    for (run,) in connection.execute("SELECT run FROM kept ORDER BY run").fetchall():
        if run in seen:
            continue
        found = _parsed(connection, run)
        if found is None:
            left_out.append(
                f"left out: {run}: is kept in a form that cannot be read, and its folder is not "
                "among those read"
            )
        else:
            yield found


def _parsed(connection: DuckDBPyConnection, run: str) -> ComparedRun | None:
    """A run as it is kept; None if that cannot be read, or is another run."""
    # One at a time: all the documents together may not fit into memory.
    line = connection.execute("SELECT document FROM kept WHERE run = ?", [run]).fetchone()
    try:
        found = ComparedRun.model_validate_json(line[0] or "" if line else "")
        begun(found)
    except (ValidationError, WeighbridgeError):
        return None
    return found if found.manifest.run_id == run else None


def _state(folder: Path, version: str) -> str:
    """A checksum of the names, sizes and times of a run's files, and of the program's version."""
    parts = [version]
    for place in ("", "telemetry"):
        for entry in sorted(_entries(folder / place), key=lambda one: one.name):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode):
                parts.append(f"{place}/{entry.name} {about.st_size} {about.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _entries(folder: Path) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return ()


CHANGE_HEAD: Final = (
    *("From", "Run", "Layout", "Requests", "Workers", "Metric", "Before", "After"),
    *("Change", "Runs", "p", "Verdict"),
)
CHANGE_NUMBERS: Final = frozenset({"Workers", "Before", "After", "Change", "p"})


def history_page(
    history: History,
    charts: Sequence[Chart],
    *,
    version: str,
    gone: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> str:
    """The page. `gone` runs have no folder any more, `left_out` says what could not be read."""
    return render(
        "history.html.j2",
        charts,
        charts[0].layouts if charts else (),
        history=history,
        version=version,
        drawn=charts,
        change_head=CHANGE_HEAD,
        change_numbers=CHANGE_NUMBERS,
        changes=[
            (change_cells(one), _sorted_by(one), bool(one.doubts))
            for each in history.changes
            for one in each.changes
        ],
        breaks=break_words(history.breaks),
        gone=gone,
        left_out=left_out,
        rule=RULE,
        outlier_rule=OUTLIER_RULE,
    )


def change_cells(one: RunChange) -> tuple[str, ...]:
    """The cells of a change, below CHANGE_HEAD."""
    metric = METRICS[one.metric]
    return (
        f"{one.begun:%Y-%m-%d}",
        one.run,
        one.label,
        one.about,
        str(one.workers),
        metric.name,
        f"{show_figure(one.before)} {metric.unit}",
        f"{show_figure(one.after)} {metric.unit}",
        show_percent(one.ratio),
        f"{one.runs_before} and {one.runs_after}"
        + (f", {one.passing} between left out" if one.passing else ""),
        show_p(one.p),
        one.standing,
    )


def _sorted_by(one: RunChange) -> tuple[str, ...]:
    numbers = {
        "Before": one.before,
        "After": one.after,
        "Change": one.ratio,
        "p": one.p,
    }
    return tuple(
        f"{numbers[title]:.9g}" if title in numbers else cell
        for title, cell in zip(CHANGE_HEAD, change_cells(one), strict=True)
    )
