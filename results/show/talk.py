"""The talk of a run: the answer first, at most MAX_SLIDES slides, and the rest behind a divider.

Figures, verdicts and their words are those of the analysis; here is decided which of them are on
which slide. A run may answer several questions: the first of its topics is that of the talk.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.figures.doubt import (
    doubt_words,
    marks_of,
    power_brief,
    touching,
    with_losses,
)
from weighbridge.results.figures.metrics import METRICS, PRIMARY, MetricKey
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.use import limit_brief, saturated
from weighbridge.results.judge import words
from weighbridge.results.judge.comparing import reason
from weighbridge.results.judge.comparison import Effect, Kind, kind_of, subjects
from weighbridge.results.judge.host_equality import host_shares, verdict
from weighbridge.results.judge.leads import is_ahead, overall
from weighbridge.results.judge.reasons import reasons, remedy_of
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.words import caveats, headline, title
from weighbridge.results.numbers import (
    UNKNOWN,
    counted,
    grouped,
    listed,
    show_figure,
    show_percent,
    upper,
)
from weighbridge.results.run import PlannedHost
from weighbridge.results.run.step import driver_label
from weighbridge.results.show.charts.resources import resource_finding
from weighbridge.results.show.deck import Deck
from weighbridge.results.show.feature import FEATURES, Answer, signs
from weighbridge.results.show.slide import (
    BAD,
    BETTER,
    INK,
    MAX_SLIDES,
    MUTED,
    SHADE,
    WORSE,
    Point,
    Series,
    Slide,
    SlideCard,
    SlideCell,
    SlideChart,
    SlideLine,
    Topic,
    bar_chart,
    table_of,
)

MAX_WORKLOADS: Final = 4
"""Workloads with a slide before the divider: those with the largest differences."""
MAX_CARDS: Final = 8
MAX_CURVES: Final = 6
"""Layouts that can be told apart as lines; more are bars at the largest worker count."""
MAX_TITLE: Final = 150
"""Characters of a title that names each layout."""
MAX_CELL: Final = 120
"""Characters of a setting on a slide; the report has all of it."""

SETTINGS: Final[tuple[str, ...]] = (
    *("gateway", "share of the hosts", "path", "rgw: rgw_frontends", "replicas"),
    *("acknowledgement", "object store", "rgw: rgw_thread_pool_size", "workers", "tcp_nodelay"),
    *("daemons", "placement groups"),
)
"""Those that affect results most, in order, by their names in the manifest's fact sheets."""
NOT_SETTINGS: Final = (
    *("image ", "limits ", "verified", "kernel", "machine", "runc", "cgroup", "mtu", "hosts"),
    *("packages", "radosgw", "disk model", "write-back", "CPU quota", "reads by OSD"),
)
"""How facts begin that are about the hosts, or follow from the release or the run."""


def talk(data: RunData) -> Deck:
    """The deck of a run. Raises as reading a run does."""
    talked = _Talk(data)
    first, then = [
        [
            topic
            for feature in FEATURES.values()
            if feature.comes_first is first
            if (topic := feature.topic(data)) is not None
        ]
        for first in (True, False)
    ]
    topics = [*first, *talked.comparison(bool(first)), *then]
    slides = [slide for topic in topics for slide in topic.slides if slide is not topics[0].shown]
    told, more = talked.workloads[:MAX_WORKLOADS], talked.workloads[MAX_WORKLOADS:]
    closing = (*talked.limits(told), talked.trust(topics[0]), talked.meaning(topics))
    room = MAX_SLIDES - 1 - len(closing)
    created = data.manifest.created_at
    return Deck(
        title=topics[0].answer,
        footer=f"Weighbridge · {data.plan.suite.name} · {created[:10]}",
        dated=created,
        layouts=data.plan.layouts,
        slides=(talked.opening(topics), *slides[:room], *closing),
        backup=(
            *slides[room:],
            *(slide for topic in topics for slide in topic.backup),
            *talked.figures(),
            *talked.limits(more),
            *talked.caveats(topics[0]),
            *talked.settings(),
        ),
    )


class _Talk:
    """A run's layouts beside each other, without A/A controls; of a tuning its baseline."""

    def __init__(self, data: RunData) -> None:
        self.data = data
        names = list(data.plan.measured)
        self.layouts = names if data.tuning is None else [data.tuning.baseline]
        self.rows = [row for row in data.rows if row.layout in self.layouts]
        self.names = subjects(self.rows)
        self.answer = Answer(data)
        self.leads = {lead.kind: lead for lead in self.answer.leads}
        self.pairs = overall(data.comparison) if data.tuning is None else {}
        self.reasons = reasons(self.rows, data.comparison) if data.tuning is None else ()

    @property
    def workloads(self) -> list[Kind]:
        """In order; of many, those with the largest differences come first."""
        suite = self.data.plan.suite
        offered = {workload.name for workload in suite.workloads if workload.overload is not None}
        apart = {}
        for kind in [kind for kind in self.names if kind[0] not in offered]:
            ratios = [pair.ratio for pair in self.pairs.get(kind, ()) if is_ahead(pair)]
            apart[kind] = max((ratio.either_way for ratio in ratios if ratio), default=1.0)
        telling = sorted(apart, key=lambda kind: -apart[kind])[:MAX_WORKLOADS]
        return sorted(apart, key=lambda kind: kind not in telling)

    def of(self, kind: Kind) -> list[Row]:
        return [row for row in self.rows if kind_of(row) == kind]

    # ---- the first slide

    def opening(self, topics: Sequence[Topic]) -> Slide:
        """The question, its answer, what shows it, and what was measured how."""
        first, *others = topics
        manifest = self.data.manifest
        lines = [topic.sentence for topic in others[:1]]
        if manifest.state != "done":
            why = "".join(f": {line}" for line in manifest.error.splitlines()[:1])
            lines.insert(0, f"This run is not complete: {manifest.state}{why}.")
        if len(first.cards) > MAX_CARDS:
            lines.append(f"{len(first.cards) - MAX_CARDS} more workloads: see the backup.")
        shown = first.shown or Slide(
            title=first.answer,
            caveat=first.caveat,
            cards=first.cards[:MAX_CARDS],
            notes=tuple(pair.text for pairs in self.pairs.values() for pair in pairs),
        )
        return replace(shown, lead=first.question, lines=(*lines, f"{self.answer.context}."))

    # ---- the comparison of layouts, or one layout alone

    def comparison(self, answered: bool) -> Iterator[Topic]:
        """Who is faster in which workload. None of a tuning, and where nothing else was asked."""
        if self.data.tuning is not None or (answered and not self.workloads):
            return
        names = [self.names[kind] for kind in self.workloads]
        what = listed(names) if 0 < len(names) <= 3 else f"{len(names)} workloads"
        which = f"which of {len(self.layouts)} layouts"
        which = listed(self.layouts, "or") if len(self.layouts) <= 6 else which
        alone = f"What does {which} do with {what}?"
        answer, caveat = self._answer()
        yield Topic(
            question=f"Which serves {what} fastest: {which}?" if len(self.layouts) > 1 else alone,
            answer=answer,
            caveat=caveat,
            cards=tuple(map(_card, self.answer.cards)),
            slides=tuple(self._workload(kind) for kind in self.workloads),
            backup=tuple(self._changes()),
            meaning=tuple(f"{self._title(kind)}." for kind in self.workloads[:MAX_WORKLOADS]),
        )

    def _answer(self) -> tuple[str, str]:
        """The answer without a full stop, and its caveat."""
        if not any(row.ranked for row in self.rows):
            return "Nothing valid was measured", ""
        if len(self.layouts) == 1:
            return f"{self.layouts[0]}, measured alone", ""
        return headline(self.answer.leads, self.answer.stores), caveats(self.answer.leads)

    def _title(self, kind: Kind) -> str:
        """Who serves most compared with the first layout, and least; of a single one its best."""
        about, rows = upper(self.names[kind]), self.of(kind)
        if kind in self.leads:
            return title(self.leads[kind], self.answer.stores, intervals=True)
        rates = [(row.value("throughput") or 0.0, row.workers) for row in rows if row.ranked]
        rate, workers = max(rates, default=(0.0, 0))
        at = f"at most {show_figure(rate)} op/s, at {counted(workers, 'worker')}"
        return f"{about}: {at if rate else 'nothing that can be compared'}"

    def _workload(self, kind: Kind) -> Slide:
        """Throughput and p90 by workers; without any figure, why."""
        rows, pairs = self.of(kind), self.pairs.get(kind, [])
        power = marks_of([row.power for row in rows])
        charts = [self._chart(rows, "throughput"), self._chart(rows, "p90")]
        absent = [f"{row.layout} at {row.workers}" for row in rows if not row.value("throughput")]
        repeats = max((row.repeats for row in rows), default=0)
        each = f"Figures: geometric mean of {repeats} repeats" if repeats > 1 else "One repeat"
        feet = [f"{each}; whiskers: 95 % interval"]
        curves = [curve for chart in charts if chart is not None for curve in chart.series]
        feet += [] if all(curve.joined for curve in curves) else ["×: not comparable"]
        feet += [f"not measured: {', '.join(absent)}"] if absent else []
        feet += [_without_p90(rows)] if charts[0] is not None and charts[1] is None else []
        feet += [power_brief(power)] if power else []
        return Slide(
            title=with_losses(self._title(kind), power),
            caveat=caveats([self.leads[kind]]) if kind in self.leads else "",
            charts=tuple(chart for chart in charts if chart is not None),
            lines=() if charts[0] else tuple(f"{row.layout}: {_why_not(row)}." for row in rows),
            foot=f"{'; '.join(feet)}.",
            notes=tuple(pair.text for pair in pairs),
        )

    def _chart(self, rows: Sequence[Row], metric: MetricKey) -> SlideChart | None:
        """A metric by workers, or at one worker count; None if nothing is known of it."""
        rows = [row for row in rows if row.value(metric) is not None]
        if not rows:
            return None
        title = f"{METRICS[metric].name}, {METRICS[metric].unit}"
        last = max(row.workers for row in rows)
        if len(self.layouts) > MAX_CURVES or all(row.workers == last for row in rows):
            bars = [_point(row, metric, bar=True) for row in rows if row.workers == last]
            return bar_chart(f"{title}, at {counted(last, 'worker')}", bars)
        series = []
        for layout in self.layouts:
            for joined in (True, False):
                points = [
                    _point(row, metric)
                    for row in rows
                    if row.layout == layout and may_rank(row, metric) == joined
                ]
                name = layout if joined else f"{layout}, not comparable"
                series += [Series(name, tuple(points), layout, joined)] if points else []
        return SlideChart("lines", title, tuple(series), "workers")

    def _changes(self) -> Iterator[Slide]:
        """The change from the first layout at each worker count."""
        comparison = self.data.comparison
        effects = [one for one in comparison.effects if one.metric in PRIMARY]
        groups = grouped(effects, lambda one: (kind_of(one), one.workers))
        columns = [(name, metric) for name in comparison.subjects for metric in PRIMARY]
        lines: list[SlideLine] = []
        for (kind, workers), at_workers in groups.items():
            if workers is None:
                continue
            cells = {(effect.subject, effect.metric): _change(effect) for effect in at_workers}
            changes = [cells.get(column, SlideCell("")) for column in columns]
            lines.append([upper(self.names.get(kind, kind[0])), str(workers), *changes])
        if lines:
            yield Slide(
                title=f"Change from {comparison.baseline}",
                labels=2,
                table=table_of(
                    ("", "workers", *(f"{name}, {METRICS[key].name}" for name, key in columns)),
                    lines,
                ),
                foot="Blue: better, orange: worse. ~: not significant, =: too small to matter. In "
                "brackets: provisional. ×: not comparable.",
            )

    # ---- why, how sure, and what it means

    def limits(self, kinds: Sequence[Kind]) -> Iterator[Slide]:
        """What was used most, a line a layout; none where it was not recorded."""
        rows = [row for kind in kinds for row in self.of(kind)]
        if not any(row.resources for row in rows):
            return
        most = {kind: max(row.workers for row in self.of(kind)) for kind in kinds}
        lines: list[SlideLine] = []
        for layout in self.layouts:
            cells = {
                kind_of(row): _limit(row)
                for row in rows
                if row.layout == layout and row.workers == most[kind_of(row)]
            }
            lines.append([layout, *(cells.get(kind, SlideCell(UNKNOWN)) for kind in kinds)])
        head = [f"{upper(self.names[kind])}, {counted(most[kind], 'worker')}" for kind in kinds]
        finding = resource_finding(self.rows)
        yield Slide(
            title=finding if len(finding) <= MAX_TITLE else "What ran out, layout by layout",
            lead="The most used resource at the largest worker count, in % of its limit",
            table=table_of(("", *head), lines),
            foot="Shaded: it may have been the bottleneck (80 % or more, or throttled in half of "
            "its CPU quota periods). +1: so may another.",
        )

    def trust(self, first: Topic) -> Slide:
        """The signs of trust, and the gravest reasons for doubt."""
        data = self.data
        inks = {"good": BETTER, "doubt": WORSE, "bad": BAD, "unknown": MUTED}
        lines = [
            (sign.title, SlideCell(sign.words, ink=inks[sign.state], bold=True), sign.detail)
            for sign in signs(data)
        ]
        doubts = [f"{upper(gap)}." for gap in data.gaps]
        doubts += [*first.doubts, *(f"{upper(reason.text)}." for reason in self.reasons)]
        more = [f"{len(doubts) - 2} more: see the backup."] if len(doubts) > 3 else []
        return Slide(
            title=f"How sure: {self._certainty()}",
            table=table_of(("", "", "What it rests on"), lines) if lines else (),
            lines=(*doubts[: 2 if more else 3], *more),
            notes=(
                f"{verdict(data.attested, self.layouts)}.",
                *(floor.words for floor in data.comparison.noise),
                *data.comparison.unused,
                *doubts,
            ),
        )

    def _certainty(self) -> str:
        """How many figures are in doubt, gravest first."""
        cells = {(row.layout, kind_of(row), row.workers) for row in self.rows}
        total = counted(len(cells), "figure")
        if self.data.manifest.state != "done":
            return f"the run is not complete ({self.data.manifest.state})"
        for status in ("not valid", "not comparable", "provisional"):
            touched = {
                cell for reason in self.reasons if reason.status == status for cell in reason.cells
            }
            if touched >= cells and cells:
                return f"all of {total} are {status}"
            if touched:
                return f"{len(touched)} of {total} {'is' if len(touched) == 1 else 'are'} {status}"
        return f"no caveat about {total}" if cells and not self.data.tuning else "what it rests on"

    def meaning(self, topics: Sequence[Topic]) -> Slide:
        """What the audience may conclude, and how to repeat the run."""
        plan, manifest = self.data.plan, self.data.manifest
        lines = [part for topic in topics for part in topic.meaning or (topic.sentence,)]
        lines.append("Other hosts, settings and loads may give another order.")
        if all(workload.rate_per_s is None for workload in plan.suite.workloads):
            lines.append(
                "A closed loop, in which each worker waits for its answer: this measures capacity, "
                "not what users experience."
            )
        would = remedy_of(self.data)
        lines += [f"{would.says.rstrip('.')}."] if would is not None else []
        lines += [] if manifest.command else ["The command of this run was not recorded."]
        version = manifest.weighbridge_version or "(version not recorded)"
        return Slide(
            title="What it means for you, and how to repeat it",
            lines=tuple(lines),
            code=shlex.join(manifest.command),
            foot=f"Weighbridge {version}, suite {plan.suite.name}, hardware {plan.hardware.name}, "
            f"seed {plan.suite.seed}; run {manifest.run_id} of {manifest.created_at[:10]}.",
            notes=(f"To settle it: {would.command}",) if would and would.command else (),
        )

    # ---- backup

    def figures(self) -> Iterator[Slide]:
        """Throughput and p90 of all cells, with their intervals."""
        cells = {(kind_of(row), row.workers, row.layout): row for row in self.rows}
        most = max((row.repeats for row in self.rows), default=0)
        lines: list[SlideLine] = []
        for kind, workers in dict.fromkeys((kind, workers) for kind, workers, _ in cells):
            rows = [cells.get((kind, workers, layout)) for layout in self.layouts]
            figures = [cell for row in rows for cell in _figures(row, most)]
            lines.append([upper(self.names[kind]), str(workers), *figures])
        if lines:
            head = [f"{name}, {unit}" for name in self.layouts for unit in ("op/s", "p90 in ms")]
            yield Slide(
                title="Throughput and p90",
                labels=2,
                table=table_of(("", "workers", *head), lines),
                foot="Geometric mean of the repeats with half its 95 % interval in per cent, or "
                f"its ends; n = {most} if not said. Grey: provisional. Red: not comparable.",
            )

    def caveats(self, first: Topic) -> Iterator[Slide]:
        lines = [("", f"{upper(gap)}.", "") for gap in self.data.gaps]
        lines += [("", doubt, "") for doubt in first.doubts]
        lines += [(upper(reason.status), reason.words, reason.where) for reason in self.reasons]
        if lines:
            yield Slide(title="All caveats", table=table_of(("", "Why", "Of what"), lines))

    def settings(self) -> Iterator[Slide]:
        """How it was measured, and the settings of the layouts, first those that decide results."""
        hosts: dict[str, list[str]] = {}
        for name, host in self.data.plan.hardware.hosts.items():
            hosts.setdefault(_limits_of(host), []).append(name)
        drivers = list(dict.fromkeys(driver_label(row.driver) for row in self.rows))
        lines = [(listed(names), limits) for limits, names in hosts.items()]
        lines.append(("attestation", verdict(self.data.attested, self.layouts)))
        lines += [("load", listed(drivers))] if drivers else []
        lines.append(("caches", self.data.plan.suite.cache_words))
        yield Slide(title="How it was measured", table=table_of(("", "all layouts"), lines))
        facts = self._facts()
        order = [name for name in SETTINGS if name in facts]
        order += [name for name in facts if name not in SETTINGS and _differs(facts[name])]
        table: list[SlideLine] = []
        for name in order:
            fill = SHADE if _differs(facts[name]) else ""
            values = [facts[name].get(layout, UNKNOWN) for layout in self.layouts]
            cells = [SlideCell(_brief(value), fill=fill) for value in values]
            table.append([name.removeprefix("background: ").removeprefix("rgw: "), *cells])
        if table:
            yield Slide(
                title="Settings",
                table=table_of(("", *self.layouts), table),
                foot="Shaded: differs between layouts. The report has all settings.",
            )

    def _facts(self) -> dict[str, dict[str, str]]:
        """By the name of a setting its value for each layout that has it."""
        facts: dict[str, dict[str, str]] = {}
        for sheet in self.data.manifest.sheets:
            for name, value in sheet.facts.items() if sheet.layout in self.layouts else ():
                if sheet.layout is not None and not name.startswith(NOT_SETTINGS):
                    facts.setdefault(name, {})[sheet.layout] = value
        shares = {share.layout: share.words for share in host_shares(self.data.plan)}
        if _differs(shares):
            facts["share of the hosts"] = shares
        return facts


def _card(card: words.Card) -> SlideCard:
    """The card of a workload on a slide: the winner's name stands before its figure."""
    return SlideCard(
        figure=f"{card.name} {card.figure}" if card.figure else UNKNOWN,
        about=upper(card.about),
        text=card.text if card.figure else f"{card.name}. {card.text}".rstrip(),
        detail=card.detail,
        colour=card.layout or MUTED,
        caveat=bool(card.caveat),
    )


def _point(row: Row, metric: MetricKey, *, bar: bool = False) -> Point:
    figure = row.figure(metric)
    ranked = may_rank(row, metric)
    text = f"{'≥ ' * figure.at_least}{show_figure(figure.value)}"
    return Point(
        x=row.layout if bar else row.workers,
        y=figure.value or 0.0,
        low=figure.low,
        high=figure.high,
        label=(text if ranked else f"{text}, not comparable") if bar else "",
        colour=row.layout if ranked else MUTED,
    )


def _without_p90(rows: Sequence[Row]) -> str:
    if any(row.within("p90") is not None for row in rows):
        return "p90: known only in bins, see the table of figures"
    # As `results.figures.validity` notes it of a driver that reports none.
    unreported = any("no percentiles" in note for row in rows for note in row.notes)
    return "p90: the driver reports none" if unreported else "p90: too few samples for one"


def _why_not(row: Row) -> str:
    """Why a row is not compared."""
    return reason(row) if not row.valid else doubt_words(row.condemned) or "not comparable"


def _limit(row: Row) -> SlideCell:
    brief, full = limit_brief(row.resources), bool(saturated(row.resources))
    return SlideCell(brief or "not recorded", fill=SHADE if full else "", bold=full)


def _change(effect: Effect) -> SlideCell:
    """A change in per cent, or from threefold on as a factor; in brackets if provisional."""
    if effect.ratio is None or effect.verdict == "not comparable":
        return SlideCell("×", ink=MUTED)
    if effect.verdict in ("not significant", "too small to matter"):
        return SlideCell("~" if effect.verdict == "not significant" else "=", ink=MUTED)
    text = show_percent(effect.ratio.value)
    if effect.verdict == "provisional":
        return SlideCell(f"({text})")
    return SlideCell(text, ink=BETTER if effect.verdict == "better" else WORSE, bold=True)


def _figures(row: Row | None, most: int) -> tuple[SlideCell, SlideCell]:
    """Throughput and p90; `most`: the usual number of repeats."""
    if row is None:
        return SlideCell(UNKNOWN), SlideCell(UNKNOWN)
    rate, p90 = shown(row, "throughput"), shown(row, "p90")
    rate += f", n = {row.repeats}" if row.repeats < most else ""
    return _figure(row, "throughput", rate), _figure(row, "p90", p90)


def _figure(row: Row, metric: MetricKey, text: str) -> SlideCell:
    ink = MUTED if touching(row.doubts, metric) else INK
    text = text.replace(" ", "\N{NO-BREAK SPACE}")
    return SlideCell(text, ink=ink if may_rank(row, metric) else BAD)


def _differs(values: dict[str, str]) -> bool:
    """Whether layouts that have a setting differ; others are of another kind."""
    return len({*values.values()}) > 1


def _brief(value: str) -> str:
    """The first clause of a value."""
    text = value.removeprefix("a write is acknowledged when ").split("; ")[0]
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1].rstrip()}…"


def _limits_of(host: PlannedHost) -> str:
    """`0.3 CPU, 2.5 GiB, disk of 200 MB/s, 1 Gbit/s`."""
    limits = [host.cpu_words("")]
    limits += [show_bytes(host.memory)] if host.memory is not None else []
    for disk in host.disks:
        speed = f" of {show_bytes(disk.bandwidth)}/s" if disk.bandwidth is not None else ""
        limits.append(f"disk {disk.model['base']}" if disk.model is not None else f"disk{speed}")
    if host.nic is not None and host.nic.rate is not None:
        limits.append(f"{show_figure(host.nic.rate / 1e9)} Gbit/s")
    if host.nic is not None and host.nic.delay:
        limits.append(f"{show_figure(host.nic.delay * 1e6)} µs to a peer")
    return ", ".join(limits)
