"""The results of a replayed study: its tables, its recap, and its published figures beside ours."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, Literal

from pydantic import PositiveInt, ValidationError

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.features.study.conclusions import ConclusionResult, conclusions
from weighbridge.results.figures.doubt import PairDoubt, doubt_words, touching
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.statistics import (
    LEVEL,
    REPEATS_FOR_A_CLAIM,
    Ratio,
    corrected,
    ratio,
    welch,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Share
from weighbridge.results.judge.leads import NEAR
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, show_percent
from weighbridge.results.run import ResolvedPlan, read_bounded
from weighbridge.suites import Workload
from weighbridge.suites.studies import (
    WORKLOAD,
    FactorComparison,
    Published,
    PublishedColumn,
    ScaleName,
    Study,
    StudyScale,
    TableShape,
    Variant,
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


@of_run
def replayed(data: RunData) -> StudyOutcome | None:
    """The result of the study that the run replays, if any. Raises UsageError if unreadable."""
    run = study_of(data.store.folder)
    if run is None:
        return None
    return outcome(run, data.plan, (*data.rows, *data.layers), data.between)


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


SAME: Final = "~"
"""No change that matters: below the practical threshold, or not significant."""

_PICKS: Final = {"sequential": "sequential", "uniform": "random"}

Verdict = Literal["changed", "same", "provisional", "missing"]
"""The verdict on a cell. `provisional`: fewer repeats than a claim needs, or a doubt."""


class RecapCell(Record):
    """The change of throughput of one kind of requests; `ratio` None: not measured or not valid."""

    down: str
    across: str
    baseline: str
    layout: str
    workload: str
    workers: PositiveInt
    ratio: Ratio | None
    verdict: Verdict
    p: Share | None = None
    """Welch's test on the logarithms; None if a side has one repeat."""
    q: Share | None = None
    """The p-value corrected for the number of cells of the map."""
    why: str = ""

    @property
    def percent(self) -> float | None:
        return None if self.ratio is None else (self.ratio.value - 1) * 100

    @property
    def text(self) -> str:
        """`+34 %`, `~`, or a cross if missing; in brackets if it makes no claim."""
        if self.ratio is None or self.percent is None:
            return "×"
        if self.verdict == "same":
            return SAME
        words = SAME if abs(self.percent) < NEAR * 100 else show_percent(self.ratio.value)
        return words if self.verdict == "changed" else f"({words})"


class Recap(Record):
    """The map of one level vs the baseline of its factor; cells are in drawing order."""

    title: str
    factor: str
    baseline: str
    level: str
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: tuple[RecapCell, ...]

    def cell(self, down: str, across: str) -> RecapCell | None:
        return next((one for one in self.cells if (one.down, one.across) == (down, across)), None)


def recaps(study: Study, rows: Sequence[Row], workloads: Sequence[Workload]) -> tuple[Recap, ...]:
    """The maps that a study compares, for all variants that have rows; none without cells."""
    here = {row.layout for row in rows}
    variants = [variant for variant in study.variants if variant.name in here]
    picks = {workload.name: _PICKS.get(str(workload.pick), "") for workload in workloads}
    made = [
        _recap(study, one, level, variants, rows, picks)
        for one in study.compares
        for level in one.against
    ]
    return tuple(one for one in made if one.cells)


def change(after: Sequence[float], before: Sequence[float]) -> tuple[Ratio, Verdict]:
    """The ratio of two sets of repeats and the verdict on it. Raises ValueError as `ratio` does."""
    found = ratio(after, before)
    if found.repeats < REPEATS_FOR_A_CLAIM:
        return found, "provisional"
    low, high = found.low, found.high
    clear = low is not None and high is not None and (low > 1 + NEAR or high < 1 / (1 + NEAR))
    return found, "changed" if clear else "same"


def corrected_cells(cells: Sequence[RecapCell]) -> tuple[RecapCell, ...]:
    """The cells of one map with corrected p-values; insignificant ones have not changed."""
    tested = [number for number, cell in enumerate(cells) if cell.p is not None]
    made = list(cells)
    for number, q in zip(
        tested, corrected([p for cell in cells if (p := cell.p) is not None]), strict=True
    ):
        still = (
            cells[number].verdict if q <= LEVEL or cells[number].verdict != "changed" else "same"
        )
        made[number] = cells[number].model_copy(update={"q": q, "verdict": still})
    return tuple(made)


def _recap(
    study: Study,
    one: FactorComparison,
    level: str,
    variants: Sequence[Variant],
    rows: Sequence[Row],
    picks: dict[str, str],
) -> Recap:
    by_workload = one.factor == WORKLOAD
    pairs = [
        (a, b)
        for a in variants
        for b in variants
        if (a is b if by_workload else _differ(a, b, one.factor, one.baseline, level))
    ]
    varying = [
        factor
        for factor in study.factors
        if factor != one.factor and len({a.factors.get(factor) for a, _ in pairs}) > 1
    ]
    # By workload: rows of the level count as those of the baseline's workload.
    of = {
        (row.layout, _kind(row, one.baseline if by_workload else row.workload)): row
        for row in rows
        if not by_workload or row.workload == level
    }
    matched = [
        (a, row, of[key])
        for a, b in pairs
        for row in rows
        if row.layout == a.name
        and (not by_workload or row.workload == one.baseline)
        and (key := (b.name, _kind(row))) in of
    ]
    words = _operation_words([before for _, before, _ in matched], picks)
    named = [
        " · ".join([*(study.label(a.factors[name]) for name in varying), words[_kind(before)]])
        for a, before, _ in matched
    ]
    # Two workloads of one operation and size: their names tell them apart.
    places = [(name, *_across(before)) for name, (_, before, _) in zip(named, matched, strict=True)]
    twice = {place for place, count in Counter(places).items() if count > 1}
    named = [
        f"{name} · {before.workload}" if place in twice else name
        for name, place, (_, before, _) in zip(named, places, matched, strict=True)
    ]
    cells = corrected_cells(
        [
            _cell(name, before, after)
            for name, (_, before, after) in zip(named, matched, strict=True)
        ]
    )
    across = {_column(before): _across(before) for _, before, _ in matched}
    return Recap(
        title=f"{one.factor}: {study.label(one.baseline)} → {study.label(level)}",
        factor=one.factor,
        baseline=one.baseline,
        level=level,
        down=tuple(dict.fromkeys(cell.down for cell in cells)),
        across=tuple(sorted(across, key=lambda text: across[text])),
        cells=cells,
    )


def _differ(a: Variant, b: Variant, factor: str, baseline: str, level: str) -> bool:
    """Whether two variants differ in a factor as requested, and in nothing else."""
    rest_a, rest_b = (
        {name: value for name, value in one.factors.items() if name != factor} for one in (a, b)
    )
    return a.factors.get(factor) == baseline and b.factors.get(factor) == level and rest_a == rest_b


def _kind(row: Row, workload: str | None = None) -> tuple[object, ...]:
    """What two rows must share to be compared, by their own workload or as another one."""
    named = row.workload if workload is None else workload
    return named, row.operation, row.api, row.driver, row.layer, row.workers


def _across(row: Row) -> tuple[float, int]:
    return row.object_size_bytes or 0.0, row.workers


def _column(row: Row) -> str:
    size = "" if row.object_size_bytes is None else show_bytes(row.object_size_bytes)
    return f"{size} × {row.workers}" if size else f"{row.workers}"


def _operation_words(rows: Sequence[Row], picks: dict[str, str]) -> dict[tuple[object, ...], str]:
    """Names of the requests of each kind: `write`, `read, random`; with the API of several."""
    apis = {(row.api, row.layer) for row in rows}
    words = {}
    for row in rows:
        others = {picks.get(one.workload, "") for one in rows if one.operation == row.operation}
        text = (
            f"{row.operation}, {picks[row.workload]}"
            if len(others) > 1 and picks.get(row.workload)
            else str(row.operation)
        )
        words[_kind(row)] = f"{text} ({row.layer or row.api})" if len(apis) > 1 else text
    return words


def _cell(down: str, before: Row, after: Row) -> RecapCell:
    head = {
        "down": down,
        "across": _column(before),
        "baseline": before.layout,
        "layout": after.layout,
        "workload": before.workload,
        "workers": before.workers,
    }
    for row in (before, after):
        if not row.ranked:
            why = doubt_words(row.condemned) or "; ".join(row.notes) or "not measured"
            return RecapCell(**head, ratio=None, verdict="missing", why=f"{row.layout}: {why}")
    a, b = ([point.ops_s for point in row.used] for row in (after, before))
    if not a or not b or min(*a, *b) <= 0:
        return RecapCell(
            **head,
            ratio=None,
            verdict="missing",
            why="a repeat had no successful operation: there is no ratio",
        )
    found, verdict = change(a, b)
    p = welch(a, b).p if found.repeats >= 2 else None
    doubts = touching([*before.doubts, *after.doubts], "throughput")
    if doubts:
        return RecapCell(**head, ratio=found, verdict="provisional", p=p, why=doubt_words(doubts))
    return RecapCell(**head, ratio=found, verdict=verdict, p=p)
