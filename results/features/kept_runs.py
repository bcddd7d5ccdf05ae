"""The runs of a history, kept in a DuckDB file as they were judged.

A run is read again when its folder has changed, or this program; one whose folder is gone stays as
it was judged last. Beside that the file has the tables of the history, for anybody's queries.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.quantities import show_bytes
from weighbridge.results.features.run_guard import ComparedRun, read_compared_run
from weighbridge.results.features.run_series import begun
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.table import Filled, create, database, insert, lock, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DATABASE: Final = "history.duckdb"
LARGEST_RECORD_BYTES: Final = 2**25
"""For a manifest or a plan in a folder of many runs: in memory it can be 25 times as large."""
_KEPT: Final = (
    "CREATE TABLE IF NOT EXISTS kept (run VARCHAR PRIMARY KEY, state VARCHAR, document VARCHAR)"
)
_ADVICE: Final = (
    "Move it away to start a new one: run folders have all that it keeps, except of deleted runs."
)


@dataclass(frozen=True)
class KeptRuns:
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
    tables = "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE table_name = 'kept'"
    with database() as plain:
        plain.execute(_KEPT)
        expected = plain.execute(tables).fetchall()
    connection.execute(_KEPT)
    if not set(expected) <= set(connection.execute(tables).fetchall()):
        raise UsageError(f"{path}: another program made its table of kept runs", advice=_ADVICE)


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
    # Configuration files decide nothing here, and may be large.
    manifest = found.manifest.model_copy(update={"configs": ()})
    brief = found.model_copy(update={"manifest": manifest})
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
        entries: list[Path] = []
        with suppress(OSError):
            entries = sorted((folder / place).iterdir())
        for entry in entries:
            about = entry.lstat()
            if stat.S_ISREG(about.st_mode):
                parts.append(f"{place}/{entry.name} {about.st_size} {about.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
