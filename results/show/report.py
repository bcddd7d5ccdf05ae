"""The report of a run: what its page shows of the answer, of features, and of what it rests on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import power_brief
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.use import limit_brief
from weighbridge.results.judge.comparison import Comparison, Kind, kind_of, subjects
from weighbridge.results.judge.host_equality import host_shares, sameness, unequal_shares
from weighbridge.results.judge.leads import overall
from weighbridge.results.judge.reasons import Reason, Remedy, marks
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, grouped, show_ratio
from weighbridge.results.run import ResolvedPlan, RunEvent, Sheet
from weighbridge.results.run.step import driver_label
from weighbridge.results.show.chart_source import drawn_ends_ms
from weighbridge.results.show.charts.resources import limits_section
from weighbridge.results.show.feature import Answer, Gallery, signs
from weighbridge.results.show.page import render
from weighbridge.results.show.section import Grid, Section, sortable
from weighbridge.results.show.table import Filled
from weighbridge.results.show.tables import EFFECTS, SUMMARY, effect_lines, effects_of, row_lines

_NUMBER: Final = re.compile(r"\d+")

ANSWERS: Final = ("ratios", "throughput-bars")
"""The charts that are not folded."""
BACKGROUND: Final = "background: "
"""Prefix of facts about background work of daemons: scrub, balancer, auditors, replicators ..."""

NOTABLE_EVENTS: Final = ("resumed", "unlike", "budget")
"""Events a reader must know of: the run was resumed, the environment changed, the budget ended it.
"""


class Fact(Record):
    """One setting: a value for each layout, in order."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def report(
    data: RunData,
    answer: Answer,
    gallery: Gallery,
    sections: Sequence[Section],
    reasons: Sequence[Reason] = (),
    remedy: Remedy | None = None,
) -> str:
    """Render the report. `sections` are those of features; `remedy` would settle what is open."""
    manifest, plan, rows, comparison = data.manifest, data.plan, data.rows, data.comparison
    tuning = data.tuning
    if tuning is not None:
        # Its section has the settings; all else is about the layout without them.
        base = tuple(one for one in plan.layouts if one.name == tuning.baseline)
        plan = plan.model_copy(update={"layouts": base})
        rows = tuple(row for row in rows if row.layout == tuning.baseline)
    layouts = [layout.name for layout in plan.layouts]
    compared = [name for name in layouts if name not in plan.twins]
    table, names = results_grid(rows, reasons), subjects(rows)
    about = [names[kind_of(row)] for row in rows]
    own = [row for row in rows if row.layout not in plan.twins]
    unsampled = (f"{one.layout}: {one.text}" for one in data.events if one.kind == "telemetry")
    kinds = {effects[0].about: effects for effects in overall(comparison).values()}
    return render(
        "report.html.j2",
        gallery.charts,
        plan.layouts,
        manifest=manifest,
        plan=plan,
        plan_yaml=data.store.plan_yaml(),
        tuning=tuning,
        seed=plan.suite.seed if tuning is None else tuning.tuning.seed,
        configs=[one for one in manifest.configs if one.layout in layouts],
        headline=answer.headline or f"{compared[0]}, measured alone",
        caveat=answer.caveat,
        context=answer.context,
        compared=compared,
        kinds=kinds,
        details=[
            effect
            for effect in comparison.effects
            if effect.workers is not None and effect.metric == "throughput"
        ],
        cards=answer.cards,
        limits=limits_section(own, tuple(dict.fromkeys(unsampled))),
        caches=_caches(layouts, data.events),
        attested=sameness(data.attested, layouts, plan.twins),
        several_drivers=len({row.driver for row in rows}) > 1,
        driver_label=driver_label,
        table=table,
        lines=list(zip(rows, about, table.lines, table.values, strict=True)),
        spoilt=[
            row
            for row in rows
            if tuning is None
            and (not row.ranked or row.count("errors") or row.repeats < plan.suite.repeats)
        ],
        reasons=reasons,
        remedy=remedy,
        signs=signs(data) if tuning is None else (),
        first=[section for section in sections if not section.folded],
        folded=[section for section in sections if section.folded],
        gallery=gallery,
        claim_repeats=REPEATS_FOR_A_CLAIM,
        glance=glance(rows if tuning is None else (), comparison, reasons, plan.twins),
        anchor_of=anchor_of,
        general=[sheet for sheet in manifest.sheets if sheet.layout is None],
        unequal=unequal_shares(plan),
        facts={**_share_facts(plan), **_facts(manifest.sheets, layouts)},
        command=shlex.join(manifest.command),
        maps=gallery.of("certainty"),
        bars=[one for one in gallery.of("figures") if one.key in ANSWERS],
        figures=[
            *gallery.of("workers"),
            *(one for one in gallery.of("figures") if one.key not in ANSWERS),
        ],
        leads=answer.leads,
        comparison=comparison,
        gaps=(*data.gaps, *gallery.left_out),
        turns=[event for event in data.events if event.kind in NOTABLE_EVENTS],
        effects=effects_grid(comparison, over="repeats", subject="layout")
        if tuning is None
        else effects_grid(comparison, over="trials", subject="setting"),
    )


_METRICS_SHOWN: Final = tuple(metric for metric in METRICS.values() if metric.page)
_COLUMNS: Final = {
    "workload": "Workload",
    "operation": "Operation",
    "sent": "Sent",
    "object_size_bytes": "Size",
    "api": "API",
    "driver": "Driver",
    "workers": "Workers",
    "layout": "Layout",
    "power_cuts": "Power cuts",
    **{metric.column: metric.title for metric in _METRICS_SHOWN},
    "saturated": "Saturated",
    "repeats": "Repeats",
    "steady": "Steady",
    "valid": "Valid",
    "doubts": "In doubt",
}
_IF_SEVERAL: Final = ("api", "driver")
"""Columns that are left out where all lines have the same in them."""


def results_grid(rows: Sequence[Row], reasons: Sequence[Reason] = ()) -> Grid:
    """The table of results; the letters of its last column are those of `reasons`."""
    lines = []
    for row, line in zip(rows, row_lines(rows), strict=True):
        size, letters = row.object_size_bytes, marks(row, reasons)
        texts = {metric.column: shown(row, metric.key) for metric in _METRICS_SHOWN}
        ends: dict[str, float | None] = {}
        for metric in _METRICS_SHOWN:
            figure, within = row.figure(metric.key), row.within(metric.key)
            ends[metric.column] = figure.value if within is None else drawn_ends_ms(within)[1]
        texts |= {
            "object_size_bytes": UNKNOWN if size is None else show_bytes(size),
            "driver": driver_label(row.driver),
            "saturated": limit_brief(row.resources) or UNKNOWN,
            "doubts": letters,
        }
        cells = {**line.cells, **ends, "doubts": letters}
        lines.append(replace(line, cells=cells, shown=texts))
    table = Filled(SUMMARY, tuple(lines))
    left_out = {name for name in _IF_SEVERAL if len(set(table.column(name))) == 1}
    if all(row.power is None for row in rows):
        left_out.add("power_cuts")
    heads = {name: head for name, head in _COLUMNS.items() if name not in left_out}
    return sortable(
        "One line per layout, workload, operation and worker count; summary.csv has the same "
        "figures.",
        table,
        heads,
    )


_EFFECTS: Final = {
    "about": "Requests",
    "workers": "Workers",
    "subject": "Layout",
    "metric": "Metric",
    "ratio": "Ratio",
    "p": "p",
    "q": "q",
    "rank_p": "Mann-Whitney p",
    "delta": "Cliff’s δ",
    "smallest": "Detectable",
    "verdict": "Verdict",
    "doubts": "In doubt",
}


def effects_grid(
    comparison: Comparison, *, over: str, subject: str, baseline: str = "", csv: str = "effects.csv"
) -> Grid:
    """Every test of a comparison, over `over`; `csv`: its file, if there is one."""
    caption = (
        f"Ratios are of geometric means over the {over}, with their 95 % interval; above 1 the "
        f"{subject} has more than {baseline or comparison.baseline}: better for throughput, worse "
        "for latency."
    )
    lines = []
    for effect, line in zip(effects_of(comparison), effect_lines(comparison), strict=True):
        reasons: list[str] = [doubt.what for doubt in effect.doubts]
        reasons += [power_brief(effect.power)] if effect.power else []
        lines.append(line.showing({**line.shown, "doubts": ", ".join(dict.fromkeys(reasons))}))
    table = Filled(EFFECTS, tuple(lines))
    grid = sortable(f"{caption} The same data are in {csv}." if csv else caption, table, _EFFECTS)
    verdicts = table.column("verdict")
    weak = [n for n, verdict in enumerate(verdicts) if verdict not in ("better", "worse")]
    return replace(grid, bad=weak)


def _facts(sheets: Sequence[Sheet], layouts: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """The layouts' sheets side by side. Background work comes first: it must be off or the same."""
    background: list[Fact] = []
    found: dict[str, tuple[Fact, ...]] = {}
    for title in dict.fromkeys(sheet.title for sheet in sheets if sheet.layout is not None):
        mine = {sheet.layout: sheet.facts for sheet in sheets if sheet.title == title}
        rest: list[Fact] = []
        for name in dict.fromkeys(name for facts in mine.values() for name in facts):
            values = tuple(mine.get(layout, {}).get(name, UNKNOWN) for layout in layouts)
            fact = Fact(name=name.removeprefix(BACKGROUND), values=values)
            (background if name.startswith(BACKGROUND) else rest).append(fact)
        found[title] = tuple(rest)
    return {**({"background work": tuple(background)} if background else {}), **found}


def _share_facts(plan: ResolvedPlan) -> dict[str, tuple[Fact, ...]]:
    known = {share.layout: (share.words, ", ".join(share.hosts)) for share in host_shares(plan)}
    if not known:
        return {}
    none = (UNKNOWN, UNKNOWN)
    in_total, hosts = zip(*(known.get(one.name, none) for one in plan.layouts), strict=True)
    facts = (Fact(name="in total", values=in_total), Fact(name="hosts", values=hosts))
    return {"share of the hosts": facts}


def _caches(layouts: Sequence[str], events: Sequence[RunEvent]) -> tuple[Fact, ...]:
    """Which caches were dropped how often on each layout; texts that differ in numbers are one."""
    dropped = [one for one in events if one.kind == "caches" and one.layout in layouts]
    facts = []
    for pattern, same in grouped(dropped, lambda one: _NUMBER.sub("\0", one.text)).items():
        name = pattern
        for each in zip(*(map(int, _NUMBER.findall(one.text)) for one in same), strict=True):
            low, high = min(each), max(each)
            name = name.replace("\0", f"{low}" if low == high else f"{low} to {high}", 1)
        counts = [sum(one.layout == layout for one in same) for layout in layouts]
        values = tuple(
            UNKNOWN if not count else "once" if count == 1 else f"{count} times" for count in counts
        )
        facts.append(Fact(name=name, values=values))
    return tuple(facts)


_METRICS: Final[tuple[MetricKey, ...]] = ("throughput", "bandwidth", "p90", "max", "first-byte")


@dataclass(frozen=True)
class GlanceLine:
    """One layout at the most workers of a workload."""

    row: Row
    about: str
    cells: tuple[str, ...]
    ratio: str
    """Its throughput relative to the first layout's; in brackets what claims nothing."""
    marks: str
    anchor: str
    """Where its line is in the table of results."""


@dataclass(frozen=True)
class Glance:
    """The lines, the titles and units of their figures, and the layout of the ratios."""

    head: tuple[tuple[str, str], ...]
    lines: tuple[GlanceLine, ...]
    baseline: str
    anchors: dict[str, str]
    """Where the first line of each workload is in the table of results."""


def anchor_of(number: int) -> str:
    """The name of a line of the table of results, from 0, for links to it."""
    return f"row-{number + 1}"


def glance(
    rows: Sequence[Row],
    comparison: Comparison,
    found: Sequence[Reason],
    controls: Collection[str] = (),
) -> Glance:
    """The lines for a table of these rows, in its order, without the A/A `controls`."""
    names = subjects(rows)
    baseline = comparison.baseline if comparison.subjects else ""
    ratios = {
        (kind_of(effect), effect.workers, effect.subject): effect
        for effect in comparison.effects
        if effect.metric == "throughput"
    }
    most: dict[Kind, int] = {}
    anchors: dict[str, str] = {}
    for number, row in enumerate(rows):
        kind = kind_of(row)
        most[kind] = max(row.workers, most.get(kind, 0))
        anchors.setdefault(names[kind], anchor_of(number))
    lines = []
    for number, row in enumerate(rows):
        kind, ratio = kind_of(row), UNKNOWN
        if row.layout in controls or row.workers != most[kind]:
            continue
        effect = ratios.get((kind, row.workers, row.layout))
        if row.layout == baseline and row.ranked and row.figure("throughput").known:
            ratio = "1"
        elif effect is not None and effect.ratio is not None:
            ratio = show_ratio(effect.ratio.value)
            ratio = ratio if effect.verdict in ("better", "worse") else f"({ratio})"
        cells = tuple(shown(row, key, spread=False) for key in _METRICS)
        marked, anchor = marks(row, found), anchor_of(number)
        lines.append(GlanceLine(row, names[kind], cells, ratio, marked, anchor))
    head = tuple((METRICS[key].title, METRICS[key].unit) for key in _METRICS)
    return Glance(head, tuple(lines), baseline, anchors)
