"""An export: a run folder is read, files are made of it, and all of them are written whole, or
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.file import ExportFile, Produced
from weighbridge.results.export.formats import OF_TUNINGS, format_of
from weighbridge.results.record.store import make_folder, write_whole

EXPORTS: Final = "exports"


class Exported(Record):
    """What was written, and what could not go in: gaps of the run and what the format left out, in
    sentences.
    """

    paths: tuple[Path, ...]
    remarks: tuple[str, ...]


def produce(run: Path, to: str, tables: Sequence[str] = ()) -> tuple[RunData, Produced]:
    """The files of a run in a format, not written anywhere; the gaps of the run are the first of
    its remarks.

    Raises UsageError on an unknown format or table and on what is no run; InvalidMeasurement when
    something of it cannot be read, or when there is nothing that could go into any file.
    """
    form, wanted = format_of(to, tables)
    data = RunData(run)
    lacking = [name for name in tables if name in OF_TUNINGS] if data.tuning is None else []
    if lacking:
        raise UsageError(
            f"{run}: is no tuning: it has no {' and no '.join(lacking)}",
            advice="Leave --table away, or choose another.",
        )
    gaps = data.gaps
    made = form.make(data, wanted)
    if not made.files:
        raise InvalidMeasurement(
            "\n".join((f"{run}: there is nothing to export as {to}", *made.remarks, *gaps))
        )
    return data, made.model_copy(update={"remarks": (*gaps, *made.remarks)})


def export(
    run: Path, to: str, tables: Sequence[str] = (), *, out: Path | None = None, force: bool = False
) -> Exported:
    """Write a run in a format, into `derived/exports` of its folder or to `out`; returns what was
    written.

    One file goes to `out` itself, or into it where it is a folder; several go into it. Raises as
    `produce` does, UsageError when a file is there already and `force` is not given (then nothing
    is written), StoreError when one cannot be written.
    """
    data, made = produce(run, to, tables)
    paths = _places(made, out, data.store.derived / EXPORTS)
    there = [path for path in paths if path.exists()]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise UsageError(
            f"{there[0]}{more}: there already",
            advice="Give --force to replace it, or another place with --out.",
        )
    # The run's own folder may come from anybody; any other place is the user's.
    within = data.store.folder if out is None else None
    if within is not None:
        data.store.make_derived(EXPORTS)
    for path, file in zip(paths, made.files, strict=True):
        if within is None:
            make_folder(path.parent)
        write_whole(path, file.content, folder=within)
    return Exported(paths=paths, remarks=made.remarks)


def single(to: str, made: Produced) -> ExportFile:
    """The one file of an export. Raises UsageError where there are several."""
    if made.folder or len(made.files) > 1:
        raise UsageError(
            f"{to} makes {len(made.files)} files: they cannot go to standard output",
            advice="Give a folder with --out.",
        )
    return made.files[0]


def _places(made: Produced, out: Path | None, unasked: Path) -> tuple[Path, ...]:
    if out is None:
        folder = unasked / made.folder if made.folder else unasked
    elif made.folder or len(made.files) > 1 or out.is_dir():
        folder = out
    else:
        return (out,)
    return tuple(folder / file.name for file in made.files)
