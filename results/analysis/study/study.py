"""The results of a replayed study: its tables, its recap, and its published figures beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap, recaps
from weighbridge.results.analysis.study.study_conclusions import ConclusionResult, conclusions
from weighbridge.results.doubt import PairDoubt
from weighbridge.results.figures import UNKNOWN, counted, show_figure
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import ResolvedPlan, read_bounded
from weighbridge.suites.studies import (
    Published,
    PublishedColumn,
    ScaleName,
    Study,
    StudyScale,
    TableShape,
)

FILE: Final = "study.json"

NOT_VALID: Final = "not valid"
NOT_RANKED: Final = "not ranked"
"""Not steady, or above a layer below it."""
SEVERAL: Final = "several"
NOT_REPLAYED: Final = "not replayed"

Value = str | int | float | None


class StudyRun(Record):
    """Which study a run replays, and at which scale."""

    study: Study
    scale: ScaleName
    lacking: tuple[str, ...] = ()
    """What the study's hosts had and this run's lacked, as was accepted."""

    @property
    def chosen(self) -> StudyScale:
        return self.study.scales[self.scale]


class StudyTable(Record):
    """A table of words and figures; the first `labels` cells of each line are its labels."""

    title: str
    note: str = ""
    head: tuple[str, ...]
    labels: int
    lines: tuple[tuple[Value, ...], ...]

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(show(value) for value in line) for line in self.lines)

    def csv(self) -> str:
        """The table with all digits; empty cells are unknown."""
        return csv_lines(self.head, self.lines)


class StudyOutcome(Record):
    """All results of a study."""

    run: StudyRun
    tables: tuple[StudyTable, ...]
    recaps: tuple[Recap, ...]
    published: tuple[StudyTable, ...]
    conclusions: tuple[ConclusionResult, ...] = ()

    @property
    def parameters(self) -> StudyTable | None:
        """The study's own parameters, and what has their values here; None if there are none."""
        return parameter_table(self.run.chosen, self.run.lacking)

    @property
    def concluded(self) -> StudyTable | None:
        if not self.conclusions:
            return None
        return StudyTable(
            title="What the study concluded, and this run’s verdict",
            head=("In the study", "The study", "This run", "Why"),
            labels=4,
            lines=tuple((one.where, one.says, one.verdict, one.why) for one in self.conclusions),
        )


def parameter_table(scale: StudyScale, lacking: Sequence[str]) -> StudyTable | None:
    """A scale's parameters, needs (`lacking`: not met) and lacks, with places in the study."""
    lines = [(one.says, one.where, one.here) for one in scale.parameters]
    for need in scale.needs:
        head = f"{need.says} ({need.where}): "
        unmet = next((one.removeprefix(head) for one in lacking if one.startswith(head)), "")
        lines.append(
            (need.says, need.where, f"not here: {unmet}" if unmet else "as the hosts have")
        )
    lines += [(one.says, one.where, f"not here: {one.why}") for one in scale.lacks]
    if not lines:
        return None
    return StudyTable(
        title="The study’s own parameters",
        head=("Parameter", "In the study", "Here"),
        labels=3,
        lines=tuple(lines),
    )


def show(value: Value) -> str:
    """A cell as text."""
    if value is None:
        return UNKNOWN
    return show_figure(value) if isinstance(value, float) else str(value)


def study_of(run_folder: Path) -> StudyRun | None:
    """The study that a run replays; None if it replays none. Raises UsageError if unreadable."""
    path = run_folder / FILE
    try:
        return StudyRun.model_validate_json(read_bounded(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def outcome(
    run: StudyRun, plan: ResolvedPlan, rows: Sequence[Row], between: Sequence[PairDoubt] = ()
) -> StudyOutcome:
    """The results of a study; `between` are doubts about pairs of layouts. Raises UsageError."""
    workloads = plan.suite.workloads
    table = _Levels(run, [workload.name for workload in workloads])
    return StudyOutcome(
        run=run,
        tables=tuple(_table(shape, table, rows) for shape in run.study.tables),
        recaps=recaps(run.study, rows, workloads),
        published=tuple(_published(one, run, rows) for one in run.study.published),
        conclusions=conclusions(run.study, run.chosen, rows, plan.suite.bounds, between),
    )


class _Levels:
    """The levels of a row in each dimension, with their order and names."""

    def __init__(self, run: StudyRun, workloads: Sequence[str]) -> None:
        self.run = run
        self._variants = {variant.name: variant for variant in run.study.variants}
        self._order: Mapping[str, Sequence[str]] = {
            "variant": list(self._variants),
            "workload": list(workloads),
            **{factor: run.study.levels(factor) for factor in run.study.factors},
        }

    def level(self, row: Row, dimension: str) -> str:
        if dimension in self.run.study.factors:
            return self._variants[row.layout].factors[dimension]
        own: dict[str, Callable[[], str]] = {
            "variant": lambda: row.layout,
            "workload": lambda: row.workload,
            "operation": lambda: row.operation,
            "size": lambda: (
                "" if row.object_size_bytes is None else show_bytes(row.object_size_bytes)
            ),
            "workers": lambda: str(row.workers),
            "api": lambda: row.api,
        }
        return own[dimension]()

    def place(self, row: Row, dimension: str) -> float:
        if dimension == "size":
            return row.object_size_bytes or 0.0
        if dimension == "workers":
            return row.workers
        level, order = self.level(row, dimension), self._order.get(dimension, ())
        return order.index(level) if level in order else 0

    def name(self, row: Row, dimension: str) -> str:
        level = self.level(row, dimension)
        if dimension == "workers":
            theirs = self.run.chosen.study_workers(row.workload, row.workers)
            return level if theirs == row.workers else f"{level} (study: {theirs})"
        return self.run.study.label(level)


def _table(shape: TableShape, levels: _Levels, rows: Sequence[Row]) -> StudyTable:
    mine = [
        row
        for row in rows
        if all(levels.level(row, name) in wanted for name, wanted in shape.where.items())
    ]
    down = _keys(shape.down, levels, mine)
    across = _keys(shape.across, levels, mine) if shape.across else {(): ()}
    cells: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]] = {}
    for row in mine:
        place = (
            tuple(levels.level(row, name) for name in shape.down),
            tuple(levels.level(row, name) for name in shape.across),
        )
        cells.setdefault(place, []).append(row)
    head = [name.capitalize() for name in shape.down]
    head += [
        " ".join([*names, title]) for names in across.values() for title in shape.cells.values()
    ]
    lines = [
        (
            *names,
            *(
                _figure(cells.get((key, column), []), figure)
                for column in across
                for figure in shape.cells
            ),
        )
        for key, names in down.items()
    ]
    return StudyTable(
        title=shape.title, head=tuple(head), labels=len(shape.down), lines=tuple(lines)
    )


def _keys(
    dimensions: Sequence[str], levels: _Levels, rows: Sequence[Row]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The existing combinations of levels, in order, with their names."""
    ordered = sorted(rows, key=lambda row: [levels.place(row, name) for name in dimensions])
    keys = [tuple(levels.level(row, name) for name in dimensions) for row in ordered]
    names = [tuple(levels.name(row, name) for name in dimensions) for row in ordered]
    return dict(zip(keys, names, strict=True))


def _figure(rows: Sequence[Row], figure: str) -> Value:
    if not rows:
        return None
    if len(rows) > 1:
        return SEVERAL
    (row,) = rows
    if not row.valid:
        return NOT_VALID if row.points else None
    if not row.ranked:
        return NOT_RANKED
    metric = next(one.key for one in METRICS.values() if one.column == figure)
    value = row.value(metric)
    return None if value is None else float(value)


def published_lines(file: str) -> tuple[dict[str, str], ...]:
    """The lines of a file of published figures. Raises UsageError for an unknown name."""
    path = resources.files("weighbridge.results").joinpath("published", f"{file}.csv")
    if not path.is_file():
        raise UsageError(f"no published figures {file!r} in results/published")
    return tuple(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def _published(one: Published, run: StudyRun, rows: Sequence[Row]) -> StudyTable:
    """Every published line, with ours if the replay has a counterpart."""
    lines = published_lines(one.file)
    figures_of = {figure.column for figure in one.figures}
    own = [column for column in (lines[0] if lines else {}) if column not in figures_of]
    head = [column.replace("_", " ") for column in own]
    head += [title for figure in one.figures for title in _titles(figure)]
    body: list[tuple[Value, ...]] = []
    for line in lines:
        beside, found = _beside(one, run, rows, line)
        figures = [value for figure in one.figures for value in _both(figure, line, found)]
        body.append((*(line[column] or None for column in own), *figures, beside))
    note = (
        f"{run.study.source}. Other hardware and other releases: not comparable. {one.note}".strip()
    )
    return StudyTable(
        title=one.title, note=note, head=(*head, "beside"), labels=len(own), lines=tuple(body)
    )


def _beside(
    one: Published, run: StudyRun, rows: Sequence[Row], line: dict[str, str]
) -> tuple[str, list[Row]]:
    """The replay's counterpart of a published line, in words, and its row if this run has one."""
    place = one.beside(line)
    if place.variant is None or place.workload is None or place.workers is None:
        return NOT_REPLAYED, []
    workers = run.chosen.our_workers(place.workload, place.workers)
    wanted = (place.variant, place.workload, workers)
    found = [row for row in rows if (row.layout, row.workload, row.workers) == wanted]
    words = f"{place.variant}, {place.workload}, {counted(workers, 'worker')}"
    return (words if found else f"{NOT_REPLAYED} in this run ({words})"), found


def _titles(figure: PublishedColumn) -> tuple[str, ...]:
    return (
        (f"{figure.title}: published",)
        if figure.ours is None
        else (f"{figure.title}: published", "here")
    )


def _both(figure: PublishedColumn, line: dict[str, str], found: Sequence[Row]) -> tuple[Value, ...]:
    text = line.get(figure.column)
    theirs = float(text) * figure.scale if text else None
    return (theirs,) if figure.ours is None else (theirs, _figure(found, figure.ours))
