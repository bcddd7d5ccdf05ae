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
from weighbridge.results.features.layers.staircase import (
    HARDWARE,
    INSIDE,
    LAYER_BOUND,
    NAMES,
    PLAIN,
    LayerStep,
    Staircase,
    doubts,
    gaps,
    percent,
    staircase_csv,
)
from weighbridge.results.features.layers.staircases import beside, own_stairs, stairs_of
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
from weighbridge.results.show.section import Grid, Part, Section
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
from weighbridge.results.show.tables import rows_table

DRAWN: Final[tuple[Level, ...]] = ("disk", "network", "rados", "object-server")


def ceiling_lines(stairs: Iterable[Staircase]) -> Mapping[str, tuple[CeilingLine, ...]]:
    """The ceilings by key of the panel; those within LAYER_BOUND share one line."""
    found = {}
    for kind, group in groupby(stairs, key=lambda stair: stair.kind):
        mine = list(group)
        lines: list[CeilingLine] = []
        for level in DRAWN:
            steps = [
                (step.throughput_ops_s or 0.0, stair.layout)
                for stair in mine
                if (step := stair.step(level)) is not None and step.carries
            ]
            # The top layer is the curve itself.
            below = [
                one
                for one in steps
                if any(stair.layout == one[1] and stair.top.level != level for stair in mine)
            ]
            lines += _merged(level, sorted(below), len(below))
        found["-".join(kind)] = tuple(lines)
    return found


def _merged(level: Level, steps: Sequence[tuple[float, str]], count: int) -> list[CeilingLine]:
    groups: list[list[tuple[float, str]]] = []
    for one in steps:
        if groups and one[0] <= groups[-1][0][0] * (1 + LAYER_BOUND):
            groups[-1].append(one)
        else:
            groups.append([one])
    lines = []
    for group in groups:
        layouts = tuple(layout for _, layout in group)
        named = ", ".join(layouts) if len(group) < 3 else f"{len(group)} layouts"
        whose = "" if len(group) == count else f" ({named})"
        value = median_low([value for value, _ in group])
        lines.append(
            CeilingLine(
                layouts=layouts, layer=PLAIN[level], label=f"{PLAIN[level]}{whose}", value=value
            )
        )
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
            _panel(list(mine)) for _, mine in groupby(stairs, key=lambda stair: stair.kind)
        ),
        layouts=source.layouts,
        legend=len(source.layouts) > 1,
    )
    return (chart,)


def _panel(stairs: Sequence[Staircase]) -> Panel:
    names = _levels(stairs)
    rows = [row for stair in stairs for step in reversed(stair.steps) for row in _rows(stair, step)]
    known = [value for stair in stairs for step in stair.steps if (value := step.bandwidth_mb_s)]
    # Twice as far to the right as the largest: there the texts are.
    scale = AxisScale.logarithmic([*known, 4 * max(known, default=1.0)], "MB/s (log scale)")
    layouts = list(dict.fromkeys(stair.layout for stair in stairs))
    loss = layer("rule", "bin", "isValid(datum._below)", x="bandwidth_mb_s", x2="_below")
    words = layer("text", "figure", "", x="_right", text="_text")
    points = []
    for one in standing_layers("bandwidth_mb_s"):
        place = one["encoding"].pop("y")
        points.append({**one, "encoding": {**one["encoding"], "x": place}})
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
            "layer": [loss, *points, words],
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


def _rows(stair: Staircase, step: LayerStep) -> Iterator[dict[str, Any]]:
    rate, below = step.bandwidth_mb_s, None
    if step.below is not None and (lower := stair.step(step.below)) is not None:
        below = lower.bandwidth_mb_s
    figure = "not measured" if rate is None else f"{'≥ ' * bool(step.held)}{show_figure(rate)}"
    of = (
        ""
        if step.of_below is None or step.below is None or rate is None
        else f", {percent(step.of_below)} of {PLAIN[step.below]}"
    )
    doubted = step.doubt is not None and step.doubt.verdict != "at least"
    remark = f", {step.doubt.verdict}" if step.doubt is not None and doubted else ""
    standing = NOT_COMPARABLE if not step.believable else PROVISIONAL if step.held else COMPARABLE
    yield {
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
        "_below": below if rate is not None else None,
        "_right": max(rate or 0.0, below or 0.0) or None,
        "_text": f"{figure}{of}{remark}",
    }


def finding(stairs: Sequence[Staircase]) -> str:
    """By layout, the share of what the store can do, or else the hardware, that clients get."""
    by_level: dict[Level, list[str]] = {}
    for layout in dict.fromkeys(stair.layout for stair in stairs):
        shares: dict[Level, list[float]] = {}
        for stair in stairs:
            reference = _reference(stair)
            if (
                stair.layout == layout
                and reference is not None
                and reference.throughput_ops_s
                and stair.top.throughput_ops_s
            ):
                shares.setdefault(reference.level, []).append(
                    stair.top.throughput_ops_s / reference.throughput_ops_s
                )
        if shares:
            level, found = max(shares.items(), key=lambda one: len(one[1]))
            low, high = percent(min(found)), percent(max(found))
            span = high if low == high else f"{low.removesuffix(' %')} to {high}"
            by_level.setdefault(level, []).append(f"{span} ({layout})")
    parts = [
        f"of what {INSIDE[level]} can do, clients get {', '.join(layouts)}"
        for level, layouts in by_level.items()
    ]
    text = "; ".join(parts) or "what each layer can do"
    return upper(text)


def _reference(stair: Staircase) -> LayerStep | None:
    """The layer that a staircase's top is compared with: its store, else the slower below."""
    below = [
        step
        for step in stair.known
        if step is not stair.top and step.level != "gateway" and step.carries
    ]
    stores = [step for step in below if step.level not in HARDWARE]
    return (
        stores[-1]
        if stores
        else min(below, key=lambda step: step.throughput_ops_s or 0.0, default=None)
    )


_BESIDE: Final = {"rbd": "RBD", "cephfs": "CephFS"}


_HEAD: Final = (
    *("Requests", "Layout", "Layer", "op/s", "MB/s", "Of the layer below", "Of its disks"),
    *("Saturated", "Notes"),
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
    said, lacking, aside = doubts(stairs), gaps(stairs), beside(data.layers)
    names = subjects(aside)
    steps = [(stair, step) for stair in stairs for step in reversed(stair.steps)]
    known = any(stair.known for stair in own_stairs(data))
    parts = (
        Part(
            text="" if known else "Nothing is known of the layers that were requested.",
            sentences=[f"{doubt}." for doubt in said],
            chart="efficiency-staircase" if known else "",
            foot=f"Gaps: {'; '.join(lacking)}." if lacking else "",
        ),
        Part(
            "Show data",
            grids=(
                Grid(
                    "What each layer can do for clients, after replication: disk writes divided by "
                    "the number of replicas, reads counted once. Disks and network as attested, at "
                    "the request size nearest to an object’s size; what no host limit explains is "
                    "noted. Also in staircase.csv.",
                    _HEAD,
                    [_line(stair, step) for stair, step in steps],
                    (3, 4, 6),
                    [n for n, (_, step) in enumerate(steps) if not step.believable],
                ),
            ),
            folded=True,
        ),
        Part(
            "Beside the gateways, on the same store",
            grids=(
                Grid(
                    "What RBD and CephFS did with requests of the same size on the gateway’s own "
                    "host, at the largest worker count of each workload. Also in layers.csv.",
                    _BESIDE_HEAD,
                    [_beside(row, names[kind_of(row)], data.layers) for row in aside],
                    (4, 5, 6, 7),
                    [n for n, row in enumerate(aside) if not row.valid],
                ),
            ),
        ),
    )
    sentences = (*(stair.words for stair in stairs if stair.known), *said, *lacking)
    title = "Where throughput is lost: from the disks to the clients"
    yield Section("staircase", title, parts, sentences)


def write_layers(data: RunData) -> None:
    """Write `staircase.csv` and, if layers were replayed, `layers.csv`. Raises StoreError."""
    stairs = stairs_of(data)
    if stairs is not None:
        write_atomically(data.store.derived / "staircase.csv", staircase_csv(stairs))
        if data.layers:
            table = rows_table(data.layers, data.manifest.run_id)
            write_atomically(data.store.derived / "layers.csv", table.csv)


def _line(stair: Staircase, step: LayerStep) -> tuple[str, ...]:
    below = UNKNOWN if step.below is None else f"{percent(step.of_below)} of {INSIDE[step.below]}"
    doubt = "" if step.doubt is None else f"{step.doubt.verdict}: {step.doubt.text}"
    at = "" if step.workers is None else f"at {counted(step.workers, 'worker')}"
    return (
        upper(stair.about),
        stair.layout,
        step.name,
        _at_least(step.throughput_ops_s, bound=bool(step.held)),
        _at_least(step.bandwidth_mb_s, bound=bool(step.held)),
        below,
        percent(step.of_disks) or UNKNOWN,
        step.saturated or UNKNOWN,
        "; ".join(part for part in (doubt, at, step.note) if part),
    )


def _beside(row: Row, about: str, layers: Sequence[Row]) -> tuple[str, ...]:
    key = ("rados", row.layout, row.workload, row.operation)
    same = (
        one.value("throughput")
        for one in layers
        if (one.layer, one.layout, one.workload, one.operation) == key and one.ranked
    )
    rados = next((ops_s for ops_s in same if ops_s), None)
    rate = row.value("throughput") if row.ranked else None
    return (
        upper(about),
        row.layout,
        _BESIDE.get(row.layer or "", UNKNOWN),
        driver_label(row.driver),
        str(row.workers),
        show_figure(row.value("throughput")),
        show_figure(row.value("bandwidth")),
        percent(rate / rados) if rate is not None and rados is not None else UNKNOWN,
        limit_brief(row.resources) or UNKNOWN,
        "; ".join(row.notes),
    )


def _at_least(value: float | None, *, bound: bool) -> str:
    return f"{'≥ ' if bound and value is not None else ''}{show_figure(value)}"


LEVELS: Final[tuple[Level, ...]] = (
    *("front", "gateway", "object-server", "rados", "network", "osd", "disk"),
)
"""Layers from the top down."""


def layers_topic(data: RunData) -> Topic | None:
    """What each layer serves of what is below it; none where no layer was measured."""
    stairs = [stair for stair in own_stairs(data) if stair.known]
    slides = tuple(
        _stairs(about, list(same), data.rows)
        for about, same in groupby(stairs, key=lambda stair: stair.about)
    )
    if not slides:
        return None
    question = "What does each layer serve of what is below it?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _stairs(about: str, stairs: Sequence[Staircase], rows: Sequence[Row]) -> Slide:
    tops = {(stair.layout, stair.kind) for stair in stairs}
    own = [row for row in rows if (row.layout, kind_of(row)) in tops]
    doubted = [doubt for row in own for doubt in (*row.doubts, few(row.repeats)) if doubt]
    shares = [
        (step.of_below, stair, step)
        for stair in stairs
        for step in stair.known
        if step.of_below is not None and step.believable
    ]
    title = f"What the layers serve of {about} cannot be compared: too few of them are known"
    if shares:
        share, stair, step = min(shares, key=lambda candidate: candidate[0])
        name = step.name if step.level == "front" else f"the {PLAIN[step.level]}"
        below = PLAIN[step.below] if step.below is not None else "layer below"
        where = f"{name} of {stair.layout}: {percent(share)} of what its {below} can do"
        title = f"{upper(about)} lose most at {where}"
    lines: list[SlideLine] = []
    for level in LEVELS:
        steps = [{step.level: step for step in stair.steps}.get(level) for stair in stairs]
        lines += [[NAMES[level], *map(_step, steps)]] if any(steps) else []
    held = any(step.held for stair in stairs for step in stair.steps)
    more = " ≥: its load client ran out of CPU, so that it can do more." * held
    return Slide(
        title=title,
        caveat=upper(doubt_brief(doubted)),
        lead=f"What each layer serves of {about}, in op/s, and of the layer below",
        table=table_of(("", *(stair.layout for stair in stairs)), lines),
        foot=f"{UNKNOWN}: not known.{more} Disks, OSDs and network: what clients could get after "
        "replication.",
        notes=(*(f"{stair.words}." for stair in stairs), *doubts(stairs), *gaps(stairs)),
    )


def _step(step: LayerStep | None) -> SlideCell:
    if step is None or step.throughput_ops_s is None:
        return SlideCell(UNKNOWN if step is not None else "", ink=MUTED)
    text = f"{'≥ ' * bool(step.held)}{show_figure(step.throughput_ops_s)}"
    if step.of_below is not None and step.below is not None:
        text += f", {percent(step.of_below)} of {PLAIN[step.below]}"
    if step.doubt is not None and step.doubt.verdict != "at least":
        text += f" ({step.doubt.verdict})"
    return SlideCell(text, ink=INK if step.believable else BAD)


FEATURE: Final = Feature(
    charts={"efficiency-staircase": ChartKind(staircase_chart)},
    ceilings=lambda data: ceiling_lines(own_stairs(data)),
    sections=layer_sections,
    topic=layers_topic,
    write=write_layers,
)
