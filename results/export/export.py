from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.file import ExportFile, Produced
from weighbridge.results.export.formats import OF_TUNINGS, format_of
from weighbridge.results.record.writing import make_folder, write_atomically

EXPORTS: Final = "exports"


class Exported(Record):
    """What was written, and what was not (gaps, remarks of the format), in sentences."""

    paths: tuple[Path, ...]
    remarks: tuple[str, ...]


def produce(run: Path, to: str, tables: Sequence[str] = ()) -> tuple[RunData, Produced]:
    """The files of a run in a format, not yet written; its remarks begin with the run's gaps.

    Raises UsageError on an unknown format or table, or where the folder is not a run;
    InvalidMeasurement when something in it cannot be read, or when no file could be made.
    """
    form, wanted = format_of(to, tables)
    data = RunData(run)
    lacking = [name for name in tables if name in OF_TUNINGS] if data.tuning is None else []
    if lacking:
        raise UsageError(
            f"{run}: not a tuning: it has no {' and no '.join(lacking)}",
            advice="Omit --table, or choose another.",
        )
    gaps = data.gaps
    made = form.make(data, wanted)
    if not made.files:
        raise InvalidMeasurement(
            "\n".join((f"{run}: nothing to export as {to}", *made.remarks, *gaps))
        )
    return data, made.model_copy(update={"remarks": (*gaps, *made.remarks)})


def export(
    run: Path, to: str, tables: Sequence[str] = (), *, out: Path | None = None, force: bool = False
) -> Exported:
    """Write a run in a format, into `derived/exports` of its folder or to `out`.

    A single file goes to `out`, or into it where it is a folder; several go into it. Raises as
    `produce` does, UsageError when a file exists and `force` is not set (then nothing is written),
    StoreError when one cannot be written.
    """
    data, made = produce(run, to, tables)
    paths = _places(made, out, data.store.derived / EXPORTS)
    existing = [path for path in paths if path.exists()]
    if existing and not force:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise UsageError(
            f"{existing[0]}{more}: exists already",
            advice="Use --force to replace it, or choose another place with --out.",
        )
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
