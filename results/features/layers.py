"""Charts of layers: the staircase from the disks to the clients, and ceilings in other charts.

Rates are on a logarithmic scale, since a disk and a gateway may differ a hundredfold. So they are
points, not bars: the length of a bar would mean nothing. The band between a point and the rate of
the layer below is what is lost between the two.

A ceiling is what disks, network or store can do. The scale of a chart of throughput follows the
gateways' figures: a ceiling extends it a little, and never so far that they are squeezed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median_low
from typing import Any, Final

from weighbridge.common.structure import Level
from weighbridge.results.features.staircase import (
    INSIDE,
    LAYER_BOUND,
    NAMES,
    PLAIN,
    LayerStep,
    Staircase,
    doubts,
    gaps,
    percent,
    stairs_of,
)
from weighbridge.results.figures.doubt import doubt_brief, few
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import limit_brief
from weighbridge.results.judge.comparison import kind_of, subjects
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, upper
from weighbridge.results.run import write_atomically
from weighbridge.results.run.step import driver_label
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    Panel,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import CeilingLine, ChartKind, ChartSource
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import AxisScale, names_encoding
from weighbridge.results.show.section import Grid, Part, Section, grid_of
from weighbridge.results.show.slide import (
    BAD,
    INK,
    MUTED,
    Slide,
    SlideCell,
    SlideLine,
    Topic,
    table_of,
)
from weighbridge.results.show.table import Filled, Line, Table, columns, line
from weighbridge.results.show.tables import RUN, rows_table

DRAWN: Final[tuple[Level, ...]] = ("disk", "network", "rados", "object-server")
"""Layers whose ceilings are drawn across the chart of throughput."""


def own_stairs(data: RunData) -> tuple[Staircase, ...]:
    """The staircases without those of A/A controls; none where the suite asks for none."""
    return tuple(stair for stair in stairs_of(data) or () if stair.layout not in data.plan.twins)


def ceiling_lines(stairs: Iterable[Staircase]) -> Mapping[str, tuple[CeilingLine, ...]]:
    """The ceilings by key of the panel; those within LAYER_BOUND share one line."""
    lines: dict[str, tuple[CeilingLine, ...]] = {}
    for kind, group in groupby(stairs, key=lambda stair: stair.kind):
        alike, merged = list(group), []
        for level in DRAWN:
            # The top layer is the curve itself.
            rates = [
                (step.throughput_ops_s or 0.0, stair.layout)
                for stair in alike
                if stair.top.level != level
                and (step := stair.step(level)) is not None
                and step.carries
            ]
            merged += _merged(level, sorted(rates))
        lines["-".join(kind)] = tuple(merged)
    return lines


def _merged(level: Level, rates: Sequence[tuple[float, str]]) -> list[CeilingLine]:
    groups: list[list[tuple[float, str]]] = []
    for rate in rates:
        if groups and rate[0] <= groups[-1][0][0] * (1 + LAYER_BOUND):
            groups[-1].append(rate)
        else:
            groups.append([rate])
    lines = []
    for group in groups:
        layouts = tuple(layout for _, layout in group)
        label, named = PLAIN[level], ", ".join(layouts)
        if len(groups) > 1:
            label += f" ({named if len(group) < 3 else f'{len(group)} layouts'})"
        value = median_low([value for value, _ in group])
        lines.append(CeilingLine(layouts, PLAIN[level], label, value))
    return lines


def staircase_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run's layers; none where there is nothing to draw."""
    stairs = own_stairs(source.data)
    if not any(stair.known for stair in stairs):
        return ()
    chart = Chart(
        key="efficiency-staircase",
        section="layers",
        title="Where it is lost: from the disks to the clients",
        finding=finding(stairs),
        caption="MB/s that each layer can serve to clients, after replication, and its share of "
        "the layer below. Hollow: at least this, since its load client ran out of CPU. ×: not "
        "believable.",
        panels=tuple(
            _panel(list(alike)) for _, alike in groupby(stairs, key=lambda stair: stair.kind)
        ),
        layouts=source.layouts,
        legend=len(source.layouts) > 1,
    )
    return (chart,)


def _panel(stairs: Sequence[Staircase]) -> Panel:
    names = _levels(stairs)
    rows = [_row(stair, step) for stair in stairs for step in reversed(stair.steps)]
    rates = [rate for stair in stairs for step in stair.steps if (rate := step.bandwidth_mb_s)]
    # Twice as far to the right as the largest: there the texts are.
    scale = AxisScale.logarithmic([*rates, 4 * max(rates, default=1.0)], "MB/s (log scale)")
    layouts = list(dict.fromkeys(stair.layout for stair in stairs))
    loss = layer("rule", "bin", "isValid(datum._below)", x="bandwidth_mb_s", x2="_below")
    words = layer("text", "figure", "", x="_right", text="_text")
    beside = {"field": "layout", "type": "nominal", "sort": layouts}
    return Panel(
        key="-".join(stairs[0].kind),
        title=upper(stairs[0].about),
        rows=rows,
        spec={
            "encoding": {
                "x": scale.encoding(),
                "y": {**names_encoding(names), "field": "layer"},
                "yOffset": {**beside, "scale": {"domain": layouts}},
                "color": COLOUR,
            },
            "layer": [loss, *standing_layers("bandwidth_mb_s", along="x"), words],
        },
        height=max(2, len(layouts)) * len(names) * 22 + 40,
        alt_text=" ".join(f"{stair.words}." for stair in stairs),
    )


def _levels(stairs: Sequence[Staircase]) -> list[str]:
    """The names of the layers from the clients down: those of the longest staircase, and others
    before the layer that is above them.
    """
    names: list[str] = []
    for stair in sorted(stairs, key=lambda stair: -len(stair.steps)):
        at = 0
        for step in reversed(stair.steps):
            if step.name in names:
                at = names.index(step.name) + 1
            else:
                names.insert(at, step.name)
                at += 1
    return names


def _row(stair: Staircase, step: LayerStep) -> dict[str, Any]:
    rate, below = step.bandwidth_mb_s, None
    if rate is not None and step.below is not None and (lower := stair.step(step.below)):
        below = lower.bandwidth_mb_s
    standing = NOT_COMPARABLE if not step.believable else PROVISIONAL if step.held else COMPARABLE
    return {
        "layout": stair.layout,
        "layer": step.name,
        "workers": step.workers,
        "throughput_ops_s": step.throughput_ops_s,
        "bandwidth_mb_s": rate,
        "below": step.below,
        "share_of_below": step.of_below,
        "standing": None if rate is None else standing,
        "note": step.note,
        "_at": rate,
        "_below": below,
        "_right": max(rate or 0.0, below or 0.0) or None,
        "_text": "not measured" if rate is None else _text(step, rate),
    }


def _text(step: LayerStep, value: float | None) -> str:
    """A figure of a step: `≥ 50.0, 34 % of its disks, from memory`."""
    doubt = "" if step.doubt is None else step.doubt.verdict
    doubt = "" if doubt == "at least" else doubt
    return ", ".join(filter(None, (_at_least(step, value), step.share, doubt)))


def _at_least(step: LayerStep, value: float | None) -> str:
    """A figure of a step; its load generator may have run out of CPU."""
    return f"{'≥ ' if step.held and value is not None else ''}{show_figure(value)}"


def staircase_lines(stair: Staircase) -> Iterator[Line]:
    """A line for each layer, from the bottom up."""
    for step in stair.steps:
        at = "" if step.workers is None else f"at {counted(step.workers, 'worker')}"
        doubt = None if step.doubt is None else str(step.doubt)
        yield line(
            step,
            stair.head,
            about=stair.about,
            share_of_below=step.of_below,
            share_of_disks=step.of_disks,
            held_by_its_load=bool(step.held),
            believable=step.believable if step.throughput_ops_s is not None else None,
            doubt=doubt,
        ).showing(
            {
                "about": upper(stair.about),
                "level": step.name,
                "throughput_ops_s": _at_least(step, step.throughput_ops_s),
                "bandwidth_mb_s": _at_least(step, step.bandwidth_mb_s),
                "below": step.share or UNKNOWN,
                "share_of_disks": percent(step.of_disks) or UNKNOWN,
                "note": "; ".join(part for part in (doubt, at, step.note) if part),
            }
        )


STAIRCASE: Final = Table(
    "staircase",
    "A line for each layer of a layout and workload: what it can do for clients.",
    columns(f"""
{RUN}
about text | Requests in words. | Requests
layout text | The layout. | Layout
api text | The API of the requests.
driver text | What made them.
workload text | The workload.
operation text | The operation on objects.
object_size_bytes number B | Mean size of an object.
level text | The layer. | Layer
workers integer | Workers of a layer that was replayed.
throughput_ops_s number op/s | What it can do, after replication; unknown: a gap. | Throughput
bandwidth_mb_s number MB/s | Bytes of objects in that. | Bandwidth
below text | The layer that it is a share of. | Of the layer below
share_of_below number | Its share of that layer, of 1.
share_of_disks number | Its share of the disks, of 1. | Of its disks
saturated text | What was used up. | Saturated
held_by_its_load boolean | Whether its load generator ran out of CPU: it can do at least this.
believable boolean | Whether no layer below it can explain less; unknown: a gap.
doubt text | A remark on the figure.
note text | How it was obtained, or why it is unknown. | Notes
"""),
    lambda data: [each for stair in stairs_of(data) or () for each in staircase_lines(stair)],
)
_BESIDE_HEAD: Final = (
    *("Requests", "Layout", "Interface", "Driver", "Workers", "op/s", "MB/s", "Of RADOS"),
    *("Saturated", "Notes"),
)


def layer_sections(data: RunData) -> Iterator[Section]:
    """Where throughput is lost: each layer's share of the one below; none where none was asked."""
    stairs = stairs_of(data)
    if stairs is None:
        return
    remarks, lacking = doubts(stairs), gaps(stairs)
    # What uses the same store beside the gateways.
    aside = [row for row in data.layers if row.layer in ("rbd", "cephfs")]
    names = subjects(aside)
    known = any(stair.known for stair in own_stairs(data))
    # From the clients down, as one looks for what is lost.
    lines = [each for stair in stairs for each in reversed(list(staircase_lines(stair)))]
    steps = [step for stair in stairs for step in reversed(stair.steps)]
    data_grid = grid_of(
        "What each layer can do for clients, after replication: disk writes divided by "
        "the number of replicas, reads counted once. Disks and network as attested, at "
        "the request size nearest to an object’s size; what no host limit explains is "
        "noted. Also in staircase.csv.",
        Filled(STAIRCASE, tuple(lines)),
        bad=[number for number, step in enumerate(steps) if not step.believable],
    )
    beside_grid = Grid(
        "What RBD and CephFS did with requests of the same size on the gateway’s own "
        "host, at the largest worker count of each workload. Also in layers.csv.",
        _BESIDE_HEAD,
        [_beside(row, names[kind_of(row)], data.layers) for row in aside],
        (4, 5, 6, 7),
        [number for number, row in enumerate(aside) if not row.valid],
    )
    parts = (
        Part(
            text="" if known else "Nothing is known of the layers that were requested.",
            sentences=[f"{remark}." for remark in remarks],
            chart="efficiency-staircase" if known else "",
            foot=f"Gaps: {'; '.join(lacking)}." if lacking else "",
        ),
        Part("Show data", grids=(data_grid,), folded=True),
        Part("Beside the gateways, on the same store", grids=(beside_grid,)),
    )
    sentences = (*(stair.words for stair in stairs if stair.known), *remarks, *lacking)
    title = "Where throughput is lost: from the disks to the clients"
    yield Section("staircase", title, parts, sentences)


def _beside(row: Row, about: str, layers: Sequence[Row]) -> tuple[str, ...]:
    place = ("rados", row.layout, row.workload, row.operation)
    rates = [
        each.value("throughput")
        for each in layers
        if (each.layer, each.layout, each.workload, each.operation) == place and each.ranked
    ]
    rados = next((rate for rate in rates if rate), None)
    rate = row.value("throughput") if row.ranked else None
    return (
        upper(about),
        row.layout,
        NAMES["rbd" if row.layer == "rbd" else "cephfs"],
        driver_label(row.driver),
        str(row.workers),
        show_figure(row.value("throughput")),
        show_figure(row.value("bandwidth")),
        percent(rate / rados) if rate is not None and rados is not None else UNKNOWN,
        limit_brief(row.resources) or UNKNOWN,
        "; ".join(row.notes),
    )


def write_layers(data: RunData) -> None:
    """Write `layers.csv` if layers were replayed. Raises StoreError."""
    if data.plan.suite.layers and data.layers:
        table = rows_table(data.layers, data.manifest.run_id)
        write_atomically(data.store.derived / "layers.csv", table.csv)


def layers_topic(data: RunData) -> Topic | None:
    """What each layer serves of what is below it; none where no layer was measured."""
    stairs = [stair for stair in own_stairs(data) if stair.known]
    slides = tuple(
        _slide(about, list(alike), data.rows)
        for about, alike in groupby(stairs, key=lambda stair: stair.about)
    )
    if not slides:
        return None
    question = "What does each layer serve of what is below it?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _slide(about: str, stairs: Sequence[Staircase], rows: Sequence[Row]) -> Slide:
    tops = {(stair.layout, stair.kind) for stair in stairs}
    own = [row for row in rows if (row.layout, kind_of(row)) in tops]
    doubted = [doubt for row in own for doubt in (*row.doubts, *few(row.repeats))]
    lines: list[SlideLine] = []
    for level in reversed(NAMES):
        steps = [{step.level: step for step in stair.steps}.get(level) for stair in stairs]
        lines += [[NAMES[level], *map(_cell, steps)]] if any(steps) else []
    held = any(step.held for stair in stairs for step in stair.steps)
    more = " ≥: its load client ran out of CPU, so that it can do more." * held
    return Slide(
        title=finding(stairs),
        caveat=upper(doubt_brief(doubted)),
        lead=f"What each layer serves of {about}, in op/s, and of the layer below",
        table=table_of(("", *(stair.layout for stair in stairs)), lines),
        foot=f"{UNKNOWN}: not known.{more} Disks, OSDs and network: what clients could get after "
        "replication.",
        notes=(*(f"{stair.words}." for stair in stairs), *doubts(stairs), *gaps(stairs)),
    )


def finding(stairs: Sequence[Staircase]) -> str:
    """The layer that passes on the smallest share of what is below it."""
    shares = [
        (step.of_below, stair, step)
        for stair in stairs
        for step in stair.known
        if step.of_below is not None and step.believable
    ]
    if not shares:
        about = ", ".join(dict.fromkeys(stair.about for stair in stairs))
        return f"What the layers serve of {about} cannot be compared: too few of them are known"
    share, stair, step = min(shares, key=lambda candidate: candidate[0])
    name = step.name if step.level == "front" else f"the {PLAIN[step.level]}"
    below = INSIDE[step.below] if step.below is not None else "the layer below"
    where = f"{name} of {stair.layout}: {percent(share)} of what {below} can do"
    return f"{upper(stair.about)} lose most at {where}"


def _cell(step: LayerStep | None) -> SlideCell:
    if step is None or step.throughput_ops_s is None:
        return SlideCell(UNKNOWN if step is not None else "", ink=MUTED)
    return SlideCell(_text(step, step.throughput_ops_s), ink=INK if step.believable else BAD)


FEATURE: Final = Feature(
    tables=(STAIRCASE,),
    charts={"efficiency-staircase": ChartKind(staircase_chart)},
    ceilings=lambda data: ceiling_lines(own_stairs(data)),
    sections=layer_sections,
    topic=layers_topic,
    write=write_layers,
)
