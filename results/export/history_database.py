"""The database of a history: a DuckDB file that keeps what was judged of every run.

A run is read again when its folder has changed, or this program; one whose folder is gone stays as
it was judged last. Beside that the file has the tables of `history_tables`, for anybody's queries.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.compared_run import ComparedRun, read_compared_run
from weighbridge.results.analysis.history.run_series import begun
from weighbridge.results.export.data_table import DataTable
from weighbridge.results.export.database import create, insert, lock, quoted
from weighbridge.results.record.store import RunStore

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DATABASE: Final = "history.duckdb"
"""Its name in the folder of a history."""
_ADVICE: Final = (
    "Move it away to begin a new one: run folders have all that it keeps, except of runs that are "
    "gone."
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
    """The database, made if missing, open to this process alone; committed at the end.

    Raises UsageError if it is something else, or in use.
    """
    import duckdb  # noqa: PLC0415 - heavy, and an extra

    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(
            f"{path}: is not a plain file, and is left alone", advice="Choose another --out."
        )
    try:
        # A file that somebody else made can have views: they must reach no other file.
        connection = duckdb.connect(path, config={"enable_external_access": False})
        try:
            lock(connection)
            connection.begin()
            connection.execute(
                "CREATE TABLE IF NOT EXISTS kept "
                "(run VARCHAR PRIMARY KEY, state VARCHAR, document VARCHAR)"
            )
            yield connection
            connection.commit()
        finally:
            connection.close()
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{path}: {first}", advice=_ADVICE) from error


def keep_runs(connection: DuckDBPyConnection, folders: Iterable[Path], version: str) -> KeptRuns:
    """Judge the runs of these folders that are new or have changed, keep them, and return all.

    `version` is this program's. Folders that are no runs, or tunings, are left out.
    """
    left_out: list[str] = []
    seen: dict[str, Path] = {}
    for folder in folders:
        try:
            run = RunStore.open(folder).manifest.run_id
            if run in seen:
                left_out.append(f"left out: {folder}: the same run as {seen[run]}")
                continue
            _keep(connection, folder, run, version)
            seen[run] = folder
        except WeighbridgeError as error:
            left_out.append(f"left out: {error.message}")
    runs = list(_kept(connection, left_out))
    return KeptRuns(
        runs=tuple(runs),
        gone=tuple(run.manifest.run_id for run in runs if run.manifest.run_id not in seen),
        left_out=tuple(left_out),
    )


def replace_table(connection: DuckDBPyConnection, table: DataTable) -> None:
    """Put a table into the database, instead of the one of that name."""
    connection.execute(f"DROP TABLE IF EXISTS {quoted(table.name)}")
    create(connection, table.name, table.fields)
    insert(connection, table.name, table)


def _keep(connection: DuckDBPyConnection, folder: Path, run: str, version: str) -> None:
    """Judge a run and keep it, unless that was done. Raises as reading it does."""
    state = _state(folder, version)
    known = connection.execute("SELECT state FROM kept WHERE run = ?", [run]).fetchone()
    if known == (state,):
        return
    found = read_compared_run(folder)
    if found.is_tuning:
        raise UsageError(f"{folder}: is a tuning, whose trials are no runs of a suite")
    begun(found)
    connection.execute(
        "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", [run, state, found.brief.model_dump_json()]
    )


def _kept(connection: DuckDBPyConnection, left_out: list[str]) -> Iterator[ComparedRun]:
    for run, document in connection.execute("SELECT run, document FROM kept").fetchall():
        try:
            found = ComparedRun.model_validate_json(document)
            begun(found)
        except (ValidationError, WeighbridgeError):
            left_out.append(
                f"left out: {run}: was kept by another version, and its folder is not among those "
                "read"
            )
            continue
        yield found


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
