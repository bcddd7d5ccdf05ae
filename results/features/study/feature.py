"""The maps of change of a study that a run replays."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from weighbridge.results.features.study.study import (
    Recap,
    RecapCell,
    StudyOutcome,
    StudyTable,
    replayed,
)
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.judge.leads import NEAR
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import counted, upper
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.show.chart import Chart, Panel
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.charts.change_map import (
    FADED,
    FULL,
    ROW_PX,
    cell_layers,
    change_cells,
)
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import names_encoding
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import BETTER, MUTED, WORSE, Slide, SlideCell, Topic, table_of


def study_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The maps of a study that a run replays; none where it replays none."""
    study = replayed(source.data)
    return () if study is None or not study.recaps else (study_maps(study.recaps),)


def study_maps(maps: Sequence[Recap]) -> Chart:
    """The chart of a study's maps, one below the other."""
    return Chart(
        key="recap",
        section="study",
        title="What changed",
        finding=_study_finding(maps),
        caption="Change of throughput in %, other factors equal; columns are object size × "
        f"workers. Blue: faster. Orange: slower. ~: less than {NEAR * 100:.0f} %, or not "
        f"significant with {REPEATS_FOR_A_CLAIM} or more repeats. In brackets and pale: fewer than "
        f"{REPEATS_FOR_A_CLAIM} repeats, provisional. ×: not measured or invalid.",
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
    ratio = cell.ratio
    doubled = 0.0 if ratio is None or cell.verdict == "same" else math.log2(ratio.value)
    place = max(-1.0, min(1.0, doubled / FULL))
    return {
        **{name: getattr(one, name) for name in ("factor", "baseline", "level")},
        "kind": cell.down,
        "column": cell.across,
        **{name: getattr(cell, name) for name in ("layout", "workload", "workers")},
        **change_cells(ratio),
        "q": cell.q,
        "verdict": cell.verdict,
        "why": cell.why,
        "_tone": None if ratio is None else place * (1 if cell.verdict == "changed" else FADED),
        "_text": cell.text,
    }


def _study_finding(maps: Sequence[Recap]) -> str:
    """How many cells changed significantly, or that none makes a claim."""
    cells = [cell for one in maps for cell in one.cells]
    measured = [cell for cell in cells if cell.ratio is not None]
    if not measured:
        return "Nothing could be compared"
    claims = [cell for cell in measured if cell.verdict == "changed"]
    if all(cell.verdict == "provisional" for cell in measured):
        few = max(cell.ratio.repeats for cell in measured if cell.ratio is not None)
        pairs = f"{len(measured)} comparison{'s' * (len(measured) > 1)}"
        return f"What was measured in {pairs} by {few} repeat{'s' * (few > 1)}: too few for a claim"
    faster = sum(cell.percent is not None and cell.percent > 0 for cell in claims)
    changed = f"{faster} became faster and {len(claims) - faster} slower"
    return f"Of {len(measured)} comparisons {changed}; of the others nothing can be claimed"


def study_sections(data: RunData) -> Iterator[Section]:
    """The study, what it concluded, its tables, and what it published."""
    outcome = replayed(data)
    if outcome is None:
        return
    run, maps = outcome.run, study_maps(outcome.recaps) if outcome.recaps else None
    concluded = () if outcome.concluded is None else (outcome.concluded,)
    parameters = () if outcome.parameters is None else (outcome.parameters,)
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
            grids=tuple(map(_grid, concluded)),
        ),
        Part(grids=tuple(map(_grid, outcome.tables))),
        Part(title="What changed", chart="" if maps is None else maps.key),
        Part(
            title="Published figures, beside those measured here",
            text="Other hardware, other releases, another time: not comparable. They show what the "
            "study looked at, and in which direction its figures went."
            if outcome.published
            else "",
            grids=tuple(map(_grid, outcome.published)),
        ),
        Part(
            title="The study’s own parameters, and what has their values here",
            grids=tuple(map(_grid, parameters)),
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
        tuple(map(_grid, (*outcome.tables, *outcome.published))),
    )


def _grid(table: StudyTable) -> Grid:
    return Grid(
        f"{table.title}. {table.note}" if table.note else table.title,
        table.head,
        table.shown,
        [n for n, head in enumerate(table.head) if n >= table.labels and head != "beside"],
        labels=table.labels,
    )


def write_study(data: RunData) -> None:
    """Write every table as CSV into `derived/study`. Raises StoreError."""
    outcome = replayed(data)
    if outcome is None:
        return
    folder = data.store.make_derived("study")
    for kind, tables in (
        ("table", outcome.tables),
        ("published", outcome.published),
        ("conclusions", [outcome.concluded]),
        ("parameters", [outcome.parameters]),
    ):
        for number, table in enumerate(filter(None, tables), start=1):
            slug = re.sub(r"[^a-z0-9]+", "-", table.title.lower())[:40].strip("-")
            write_atomically(folder / f"{kind}-{number}-{slug}.csv", table.csv())


MAX_CONCLUSIONS: Final = 5
"""What is readable on a slide; the backup has all."""


def study_topic(data: RunData) -> Topic | None:
    """Whether the conclusions of a study hold."""
    study = replayed(data)
    if study is None:
        return None
    answer = concluded(study)
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


def concluded(study: StudyOutcome) -> str:
    """`2 of 9 conclusions contradicted, none supported, 7 open`."""
    counts = Counter(one.verdict for one in study.conclusions)
    return (
        f"{counts['contradicts'] or 'None'} of {counted(len(study.conclusions), 'conclusion')} "
        f"contradicted, {counts['supports'] or 'none'} supported, {counts['cannot tell']} open"
    )


def study_answer(data: RunData) -> str:
    """Which conclusions hold; empty where none was tried."""
    study = replayed(data)
    return concluded(study) if study is not None and study.conclusions else ""


FEATURE: Final = Feature(
    answer=study_answer,
    charts={"recap": ChartKind(study_chart)},
    sections=study_sections,
    topic=study_topic,
    write=write_study,
)
