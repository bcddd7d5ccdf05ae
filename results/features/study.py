"""A replayed study: its tables, the maps of what changed, and its published figures beside ours."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.features.conclusions import ConclusionResult, conclusions, judged_pairs
from weighbridge.results.figures.doubt import PairDoubt, doubt_words
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import counted, grouped, show_value, upper
from weighbridge.results.run import ResolvedPlan
from weighbridge.results.run.reading import read_record, write_atomically
from weighbridge.results.show.chart import Chart, Panel
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.charts.change_map import (
    ROW_PX,
    cell_layers,
    cell_text,
    change_cells,
    tone,
)
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import names_encoding
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import BETTER, MUTED, WORSE, Slide, SlideCell, Topic, table_of
from weighbridge.suites import Suite
from weighbridge.suites.studies import (
    WORKLOAD,
    FactorComparison,
    Published,
    ScaleName,
    Study,
    StudyScale,
    TableShape,
    Variant,
)

FILE: Final = "study.json"

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


@dataclass(frozen=True)
class StudyTable:
    """A table of words and figures; the first `labels` cells of each line are its labels."""

    title: str
    head: tuple[str, ...]
    labels: int
    lines: tuple[tuple[Value, ...], ...]
    note: str = ""

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(map(show_value, line)) for line in self.lines)

    @property
    def grid(self) -> Grid:
        numbers = [
            place
            for place, head in enumerate(self.head)
            if place >= self.labels and head != "beside"
        ]
        caption = f"{self.title}. {self.note}" if self.note else self.title
        return Grid(caption, self.head, self.shown, numbers, labels=self.labels)


@dataclass(frozen=True)
class StudyOutcome:
    """All results of a study."""

    run: StudyRun
    tables: tuple[StudyTable, ...]
    recaps: tuple[Recap, ...]
    published: tuple[StudyTable, ...]
    conclusions: tuple[ConclusionResult, ...]

    @property
    def concluded(self) -> StudyTable | None:
        """What the study concluded; None if it has no conclusions."""
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
    title, columns = "The study’s own parameters", ("Parameter", "In the study", "Here")
    return StudyTable(title, columns, labels=3, lines=tuple(lines))


def study_of(run_folder: Path) -> StudyRun | None:
    """The study that a run replays; None if it replays none. Raises UsageError if unreadable."""
    path = run_folder / FILE
    return read_record(path, StudyRun) if path.exists() else None


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
    names = [workload.name for workload in plan.suite.workloads]
    return StudyOutcome(
        run=run,
        tables=tuple(_table(shape, run, names, rows) for shape in run.study.tables),
        recaps=recaps(run.study, rows, plan.suite, between),
        published=tuple(_published(one, run, rows) for one in run.study.published),
        conclusions=conclusions(run.study, run.chosen, rows, plan.suite.bounds, between),
    )


# Tables of a study.


@dataclass(frozen=True)
class _Level:
    """What a row is in one dimension of a table."""

    place: float
    key: str
    name: str


def _level(run: StudyRun, workloads: Sequence[str], row: Row, dimension: str) -> _Level:
    study = run.study
    if dimension == "workers":
        theirs = run.chosen.study_workers(row.workload, row.workers)
        name = str(row.workers) if theirs == row.workers else f"{row.workers} (study: {theirs})"
        return _Level(row.workers, str(row.workers), name)
    if dimension == "size":
        size = "" if row.object_size_bytes is None else show_bytes(row.object_size_bytes)
        return _Level(row.object_size_bytes or 0.0, size, study.label(size))
    order: Sequence[str] = ()
    if dimension in study.factors:
        variant = next(one for one in study.variants if one.name == row.layout)
        key, order = variant.factors[dimension], study.levels(dimension)
    elif dimension == "variant":
        key, order = row.layout, [variant.name for variant in study.variants]
    elif dimension == "workload":
        key, order = row.workload, workloads
    else:
        key = {"operation": row.operation, "api": row.api}[dimension]
    return _Level(order.index(key) if key in order else 0, key, study.label(key))


def _table(
    shape: TableShape, run: StudyRun, workloads: Sequence[str], rows: Sequence[Row]
) -> StudyTable:
    def levels(row: Row, dimensions: Sequence[str]) -> tuple[_Level, ...]:
        return tuple(_level(run, workloads, row, dimension) for dimension in dimensions)

    chosen = [
        row
        for row in rows
        if all(levels(row, [name])[0].key in wanted for name, wanted in shape.where.items())
    ]
    cells = grouped(chosen, lambda row: (levels(row, shape.down), levels(row, shape.across)))
    down, across = (
        sorted(dict.fromkeys(each), key=lambda line: [level.place for level in line])
        for each in (
            [levels(row, shape.down) for row in chosen],
            [levels(row, shape.across) for row in chosen] if shape.across else [()],
        )
    )
    head = [name.capitalize() for name in shape.down]
    head += [
        " ".join([*(level.name for level in column), title])
        for column in across
        for title in shape.cells.values()
    ]
    lines = [
        (
            *(level.name for level in line),
            *(
                _figure(cells.get((line, column), []), figure)
                for column in across
                for figure in shape.cells
            ),
        )
        for line in down
    ]
    return StudyTable(shape.title, tuple(head), len(shape.down), tuple(lines))


def _figure(rows: Sequence[Row], figure: str) -> Value:
    if not rows:
        return None
    if len(rows) > 1:
        return "several"
    (row,) = rows
    if not row.valid:
        return "not valid" if row.points else None
    if not row.ranked:
        return "not ranked"
    return row.value(next(one.key for one in METRICS.values() if one.column == figure))


def published_lines(file: str) -> tuple[dict[str, str], ...]:
    """The lines of a file of published figures. Raises UsageError for an unknown name."""
    path = resources.files("weighbridge.results").joinpath("published", f"{file}.csv")
    if not path.is_file():
        raise UsageError(f"no published figures {file!r} in results/published")
    return tuple(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def _published(one: Published, run: StudyRun, rows: Sequence[Row]) -> StudyTable:
    """Every published line, with ours if the replay has a counterpart."""
    lines = published_lines(one.file)
    figures = {figure.column for figure in one.figures}
    own = [column for column in (lines[0] if lines else {}) if column not in figures]
    head = [column.replace("_", " ") for column in own]
    for figure in one.figures:
        head.append(f"{figure.title}: published")
        head += [] if figure.ours is None else ["here"]
    body: list[tuple[Value, ...]] = []
    for line in lines:
        words, counterparts = _beside(one, run, rows, line)
        cells: list[Value] = [line[column] or None for column in own]
        for figure in one.figures:
            text = line.get(figure.column)
            cells.append(float(text) * figure.scale if text else None)
            if figure.ours is not None:
                cells.append(_figure(counterparts, figure.ours))
        body.append((*cells, words))
    note = f"{run.study.source}. Other hardware and other releases: not comparable. {one.note}"
    return StudyTable(one.title, (*head, "beside"), len(own), tuple(body), note.strip())


def _beside(
    one: Published, run: StudyRun, rows: Sequence[Row], line: dict[str, str]
) -> tuple[str, list[Row]]:
    """The replay's counterpart of a published line, in words, and its row if this run has one."""
    place = one.beside(line)
    if place.variant is None or place.workload is None or place.workers is None:
        return NOT_REPLAYED, []
    workers = run.chosen.our_workers(place.workload, place.workers)
    wanted = (place.variant, place.workload, workers)
    counterparts = [row for row in rows if (row.layout, row.workload, row.workers) == wanted]
    words = f"{place.variant}, {place.workload}, {counted(workers, 'worker')}"
    return words if counterparts else f"{NOT_REPLAYED} in this run ({words})", counterparts


# What changed from one level of a factor to another.


_PICKS: Final = {"sequential": "sequential", "uniform": "random"}


@dataclass(frozen=True)
class RecapCell:
    """The change of throughput of one workload, and where it is in its map."""

    down: str
    across: str
    effect: Effect


@dataclass(frozen=True)
class Recap:
    """The map of one level vs the baseline of its factor; cells are in drawing order."""

    title: str
    factor: str
    baseline: str
    level: str
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: tuple[RecapCell, ...]


def recaps(
    study: Study, rows: Sequence[Row], suite: Suite, between: Sequence[PairDoubt] = ()
) -> tuple[Recap, ...]:
    """The maps that a study compares, for all variants that have rows; none without cells."""
    here = {row.layout for row in rows}
    variants = [variant for variant in study.variants if variant.name in here]
    picks = {one.name: _PICKS.get(str(one.pick), "") for one in suite.workloads}
    maps = []
    for one in study.compares:
        for level in one.against:
            matched = _matched(one, level, variants, rows)
            pairs: list[tuple[MetricKey, Row, Row]] = [
                ("throughput", before, after) for _, before, after in matched
            ]
            effects = judged_pairs(pairs, rows, suite.bounds, between)
            maps.append(_recap(study, one, level, matched, effects, picks))
    return tuple(one for one in maps if one.cells)


Match = tuple[Variant, Row, Row]
"""The baseline's variant, its row, and that of the level."""


def _matched(
    one: FactorComparison, level: str, variants: Sequence[Variant], rows: Sequence[Row]
) -> list[Match]:
    """The rows of the baseline and of the level, alike in all else."""
    if one.factor == WORKLOAD:
        # Rows of the level count as those of the baseline's workload.
        of = {(row.layout, _kind(row, one.baseline)): row for row in rows if row.workload == level}
        pairs = [(variant, variant) for variant in variants]
        rows = [row for row in rows if row.workload == one.baseline]
    else:
        of = {(row.layout, _kind(row, row.workload)): row for row in rows}
        wanted = {one.factor: level}
        pairs = [
            (before, after)
            for before in variants
            if before.factors.get(one.factor) == one.baseline
            for after in variants
            if {**before.factors, **wanted} == after.factors
        ]
    return [
        (before, row, of[key])
        for before, after in pairs
        for row in rows
        if row.layout == before.name and (key := (after.name, _kind(row, row.workload))) in of
    ]


def _recap(
    study: Study,
    one: FactorComparison,
    level: str,
    matched: Sequence[Match],
    effects: Sequence[Effect],
    picks: dict[str, str],
) -> Recap:
    variants = [variant for variant, _, _ in matched]
    varying = [
        factor
        for factor in study.factors
        if factor != one.factor and len({variant.factors.get(factor) for variant in variants}) > 1
    ]
    words = _operation_words([before for _, before, _ in matched], picks)
    named = [
        " · ".join(
            [
                *(study.label(variant.factors[name]) for name in varying),
                words[_kind(before, before.workload)],
            ]
        )
        for variant, before, _ in matched
    ]
    # Two workloads of one operation and size: their names tell them apart.
    places = [(name, *_across(before)) for name, (_, before, _) in zip(named, matched, strict=True)]
    cells = []
    for name, place, (_, before, _), effect in zip(named, places, matched, effects, strict=True):
        called = f"{name} · {before.workload}" if places.count(place) > 1 else name
        cells.append(RecapCell(called, _column(before), effect))
    across = {_column(before): _across(before) for _, before, _ in matched}
    return Recap(
        title=f"{one.factor}: {study.label(one.baseline)} → {study.label(level)}",
        factor=one.factor,
        baseline=one.baseline,
        level=level,
        down=tuple(dict.fromkeys(cell.down for cell in cells)),
        across=tuple(sorted(across, key=lambda text: across[text])),
        cells=tuple(cells),
    )


def _kind(row: Row, workload: str) -> tuple[object, ...]:
    """What two rows must share to be compared, as of this workload."""
    return workload, row.operation, row.api, row.driver, row.layer, row.workers


def _across(row: Row) -> tuple[float, int]:
    return row.object_size_bytes or 0.0, row.workers


def _column(row: Row) -> str:
    size = "" if row.object_size_bytes is None else show_bytes(row.object_size_bytes)
    return f"{size} × {row.workers}" if size else f"{row.workers}"


def _operation_words(rows: Sequence[Row], picks: dict[str, str]) -> dict[tuple[object, ...], str]:
    """What each row requests: `write`, `read, random`; with the API of several."""
    apis = {(row.api, row.layer) for row in rows}
    words = {}
    for row in rows:
        pick = picks.get(row.workload, "")
        others = {picks.get(one.workload, "") for one in rows if one.operation == row.operation}
        text = f"{row.operation}, {pick}" if len(others) > 1 and pick else str(row.operation)
        key = _kind(row, row.workload)
        words[key] = f"{text} ({row.layer or row.api})" if len(apis) > 1 else text
    return words


# Chart, section, files and slides.


def _charts(source: ChartSource) -> tuple[Chart, ...]:
    study = replayed(source.data)
    return () if study is None or not study.recaps else (study_maps(study.recaps),)


def study_maps(maps: Sequence[Recap]) -> Chart:
    """The chart of a study's maps, one below the other."""
    return Chart(
        key="recap",
        section="study",
        title="What changed",
        finding=_study_finding(maps),
        caption="Change of throughput, other factors equal; columns are object size × workers. "
        "Blue: faster. Orange: slower. Grey: ~ not significant, a number alone too small to "
        f"matter, in brackets provisional, such as fewer than {REPEATS_FOR_A_CLAIM} repeats. "
        "×: not measured or not comparable.",
        panels=tuple(_study_panel(one, str(number)) for number, one in enumerate(maps)),
        columns=1,
    )


def _study_panel(one: Recap, key: str) -> Panel:
    # Size and number are on two lines.
    expression = "split(datum.label, ' × ')"
    across = names_encoding(one.across, orient="top", labelAngle=0, labelExpr=expression)
    across["axis"]["labelPadding"] = "$line"
    down = {**names_encoding(one.down), "field": "kind"}
    return Panel(
        key=key,
        title=one.title,
        rows=[_study_row(one, cell) for cell in one.cells],
        spec={
            "encoding": {"x": {**across, "field": "column"}, "y": down},
            "layer": cell_layers("true"),
        },
        height=ROW_PX * max(1, len(one.down)),
        alt_text="Change of throughput. The table below has every cell.",
    )


def _study_row(one: Recap, cell: RecapCell) -> dict[str, Any]:
    effect = cell.effect
    return {
        **{name: getattr(one, name) for name in ("factor", "baseline", "level")},
        "kind": cell.down,
        "column": cell.across,
        "layout": effect.subject,
        **{name: getattr(effect, name) for name in ("workload", "workers")},
        **change_cells(effect.ratio),
        **{name: getattr(effect, name) for name in ("q", "verdict")},
        "why": doubt_words(effect.doubts) or effect.reasons,
        "_tone": tone(effect),
        "_text": cell_text(effect),
    }


def _study_finding(maps: Sequence[Recap]) -> str:
    """How many cells changed significantly, or that none makes a claim."""
    effects = [cell.effect for one in maps for cell in one.cells]
    ratios = [effect.ratio for effect in effects if effect.ratio is not None]
    if not ratios:
        return "Nothing could be compared"
    verdicts = Counter(effect.verdict for effect in effects if effect.ratio is not None)
    if verdicts["provisional"] == len(ratios):
        repeats = counted(max(ratio.repeats for ratio in ratios), "repeat")
        pairs = counted(len(ratios), "comparison")
        why = ", ".join(dict.fromkeys(doubt.what for one in effects for doubt in one.doubts))
        return f"What was measured in {pairs} by {repeats} is provisional: {why}"
    changed = f"{verdicts['better']} became faster and {verdicts['worse']} slower"
    changed += f", {verdicts['too small to matter']} changed too little to matter"
    return f"Of {len(ratios)} comparisons {changed}; of the others nothing can be claimed"


def _sections(data: RunData) -> Iterator[Section]:
    outcome = replayed(data)
    if outcome is None:
        return
    run, maps = outcome.run, study_maps(outcome.recaps) if outcome.recaps else None
    concluded, parameters = outcome.concluded, parameter_table(run.chosen, run.lacking)
    parts = (
        Part(text=f"{run.study.about}. After {run.study.source}.", sentences=run.chosen.about),
        Part(
            text="These hosts lack what the study’s had, as the command accepted:"
            if run.lacking
            else "",
            sentences=run.lacking,
        ),
        Part(
            title="What the study concluded, and what this run says about it",
            text="In our own words. A conclusion is supported if every cell that it covers agrees, "
            "and contradicted if one says the opposite. A cell is judged with "
            f"{REPEATS_FOR_A_CLAIM} repeats or more (--repeats {REPEATS_FOR_A_CLAIM}).",
            grids=() if concluded is None else (concluded.grid,),
        ),
        Part(grids=[table.grid for table in outcome.tables]),
        Part(title="What changed", chart="" if maps is None else maps.key),
        Part(
            title="Published figures, beside those measured here",
            text="Other hardware, other releases, another time: not comparable. They show what the "
            "study looked at, and in which direction its figures went."
            if outcome.published
            else "",
            grids=[table.grid for table in outcome.published],
            folded=True,
        ),
        Part(
            title="The study’s own parameters, and what has their values here",
            grids=() if parameters is None else (parameters.grid,),
            folded=True,
        ),
    )
    sentences = [
        f"{run.study.about} ({run.scale} scale), after {run.study.source}",
        *run.chosen.about,
        *(f"not as in the study: {lack}" for lack in run.lacking),
        *(f"{held.verdict}: {held.says} ({held.why})" for held in outcome.conclusions),
        *([] if maps is None else [f"{maps.finding}. {maps.caption}"]),
    ]
    yield Section(
        "replayed",
        f"The study, replayed at {run.scale} scale",
        parts,
        sentences,
        [table.grid for table in (*outcome.tables, *outcome.published)],
    )


def _write(data: RunData) -> None:
    """Write every table as CSV into `derived/study`, with all digits. Raises StoreError."""
    outcome = replayed(data)
    if outcome is None:
        return
    folder = data.store.make_derived("study")
    for kind, tables in (
        ("table", outcome.tables),
        ("published", outcome.published),
        ("conclusions", [outcome.concluded]),
        ("parameters", [parameter_table(outcome.run.chosen, outcome.run.lacking)]),
    ):
        for number, table in enumerate(filter(None, tables), start=1):
            slug = re.sub(r"[^a-z0-9]+", "-", table.title.lower())[:40].strip("-")
            text = csv_lines(table.head, table.lines)
            write_atomically(folder / f"{kind}-{number}-{slug}.csv", text)


MAX_CONCLUSIONS: Final = 5
"""What is readable on a slide; the backup has all."""


def _topic(data: RunData) -> Topic | None:
    study = replayed(data)
    if study is None:
        return None
    answer = _concluded(study)
    inks = {"contradicts": WORSE, "supports": BETTER, "cannot tell": MUTED}
    ordered = sorted(study.conclusions, key=lambda conclusion: [*inks].index(conclusion.verdict))
    lines = [
        (
            SlideCell(conclusion.verdict, ink=inks[conclusion.verdict]),
            conclusion.says,
            conclusion.why,
        )
        for conclusion in ordered
    ]
    head, more = ("This run", "The study says", "Why"), len(lines) - MAX_CONCLUSIONS
    slide = Slide(
        title=answer,
        table=table_of(head[:2], [line[:2] for line in lines[:MAX_CONCLUSIONS]]),
        foot=f"{counted(more, 'more conclusion')}: see the backup." if more > 0 else "",
        notes=tuple(f"{says} {upper(verdict.text)}: {why}" for verdict, says, why in lines),
    )
    tables = [
        Slide(
            title=table.title,
            labels=table.labels,
            table=table_of(table.head, table.shown),
            foot=table.note,
        )
        for table in (*study.tables, *study.published)
        if table.lines
    ]
    return Topic(
        question=f"Does it hold here? {study.run.study.source}",
        answer=answer if lines else f"{study.run.study.about}, replayed",
        slides=(slide,) if lines else (),
        backup=(
            Slide(title="Why a conclusion holds, or not", table=table_of(head, lines)),
            *tables,
        ),
    )


def _concluded(study: StudyOutcome) -> str:
    """`2 of 9 conclusions contradicted, none supported, 7 open`; empty without any."""
    if not study.conclusions:
        return ""
    counts = Counter(one.verdict for one in study.conclusions)
    return (
        f"{counts['contradicts'] or 'None'} of {counted(len(study.conclusions), 'conclusion')} "
        f"contradicted, {counts['supports'] or 'none'} supported, {counts['cannot tell']} open"
    )


FEATURE: Final = Feature(
    answer=lambda data: _concluded(study) if (study := replayed(data)) else "",
    charts={"recap": ChartKind(_charts)},
    sections=_sections,
    topic=_topic,
    write=_write,
)
