"""What questions other than who is faster give to a talk: a function each, from the run's data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from weighbridge.common.structure import Level
from weighbridge.results.analysis.answer import concluded, survived
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.durability import LISTINGS, LayoutDurability
from weighbridge.results.analysis.find.answers import RATE_HEAD, FoundKind, rate_lines
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.analysis.layers.staircase import (
    NAMES,
    PLAIN,
    LayerStep,
    Staircase,
    doubts,
    gaps,
    percent,
)
from weighbridge.results.analysis.outages import OutageKind
from weighbridge.results.analysis.overload import OverloadKind
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.tuning.setting_lines import (
    change_figure,
    setting_lines,
    short_names,
)
from weighbridge.results.analysis.tuning.tuning_result import (
    BLUE,
    ORANGE,
    TuningResult,
    could_be_shown,
)
from weighbridge.results.analysis.tuning.tuning_result import cards as tuning_cards
from weighbridge.results.doubt import doubt_brief, few, touching
from weighbridge.results.figures import UNKNOWN, counted, listed, show_figure, upper
from weighbridge.results.figures import percent as percent_of_ratio
from weighbridge.results.metrics import MetricKey
from weighbridge.results.show.deck import (
    BAD,
    BETTER,
    INK,
    MUTED,
    WORSE,
    Card,
    Cell,
    Chart,
    Line,
    Point,
    Series,
    Slide,
    bar_chart,
    table_of,
)
from weighbridge.results.statistics import Ratio

MAX_BARS: Final = 10
MAX_CONCLUSIONS: Final = 5
"""What is readable on a slide; the backup has all."""
WIDEST: Final = 2.0
"""An axis ends at so many times the largest change, wherever an interval ends."""
VERDICT_INKS: Final = {"better": BETTER, "worse": WORSE}
LEVELS: Final[tuple[Level, ...]] = (
    *("front", "gateway", "object-server", "rados", "network", "osd", "disk"),
)
"""Layers from the top down."""


@dataclass(frozen=True)
class Topic:
    """What one question gives to the talk of a run. The answer of the first topic is its title."""

    question: str
    answer: str
    """A sentence without a full stop."""
    caveat: str = ""
    cards: tuple[Card, ...] = ()
    slides: tuple[Slide, ...] = ()
    """The most important first: those without room come behind the divider."""
    backup: tuple[Slide, ...] = ()
    doubts: tuple[str, ...] = ()
    """Sentences on how sure the answer is."""
    meaning: tuple[str, ...] = ()
    """Sentences on what it means for the audience."""

    @property
    def sentence(self) -> str:
        """The answer with its caveat."""
        caveat = self.caveat or (self.shown.caveat if self.shown is not None else "")
        return f"{upper(self.answer)}{f' ({caveat[:1].lower()}{caveat[1:]})' if caveat else ''}."

    @property
    def shown(self) -> Slide | None:
        """The slide that shows the answer, if its title is the answer."""
        return next((slide for slide in self.slides[:1] if slide.title == self.answer), None)


def durability_topic(data: RunData) -> Topic | None:
    """What power cuts destroyed."""
    tried = [layout for layout in data.durability if layout.store.made]
    if not tried:
        return None
    answer = "; ".join(map(survived, tried))
    shares = []
    for layout in tried:
        most = "at most " if layout.judgement == "kept" else ""
        shares += [f"{most}{layout.share_words} on {layout.layout}"] if not layout.why else []
    head = ("", "cuts that lost", "acknowledged", "listed wrongly", "serves after", "control lost")
    slide = Slide(
        title=answer,
        caveat=f"Such cuts that lose something (95 %): {listed(shares)}" if shares else "",
        table=table_of(head, [_cuts(layout) for layout in tried]),
        foot="Acknowledged: objects, each counted once at every cut. The control has syncs that "
        "keep nothing, and must lose writes.",
        notes=tuple(layout.sentence for layout in tried),
    )
    question = "What is lost when all hosts of a store lose power at one instant, under load?"
    return Topic(question=question, answer=answer, slides=(slide,))


def _cuts(layout: LayoutDurability) -> list[str | Cell]:
    store, control = layout.store, layout.control
    lost = layout.judgement == "lost"
    told = "cannot tell" if layout.why else f"{store.losing} of {store.made}"
    return [
        layout.layout,
        Cell(told, bold=lost, ink=BAD if lost else INK),
        f"{store.acknowledged:,}",
        f"{sum(store.found[finding].objects for finding in LISTINGS):,}",
        "did not" if store.serves_s is None else f"{show_figure(store.serves_s[0], 2)} s",
        f"{control.losing} of {control.made}" if control.made else "not run",
    ]


def study_topic(data: RunData) -> Topic | None:
    """Whether the conclusions of a study hold."""
    study = data.study
    if study is None:
        return None
    answer = concluded(study)
    inks = {"contradicts": WORSE, "supports": BETTER, "cannot tell": MUTED}
    ordered = sorted(study.conclusions, key=lambda conclusion: [*inks].index(conclusion.verdict))
    lines = [
        (Cell(conclusion.verdict, ink=inks[conclusion.verdict]), conclusion.says, conclusion.why)
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


def find_topic(data: RunData) -> Topic | None:
    """The highest rate within a bound on latency."""
    if data.found is None or not data.found.kinds:
        return None
    bound = str(data.found.bound)
    sentences = zip(data.found.kinds, data.found.sentences, strict=True)
    slides = tuple(_rates(kind, bound, sentence) for kind, sentence in sentences)
    table = table_of(RATE_HEAD, rate_lines(data.found))
    return Topic(
        question=f"Which rate does each serve within {bound}?",
        answer=slides[0].title,
        slides=slides,
        backup=(Slide(title=f"Rates within {bound}", labels=2, table=table),),
    )


def _rates(kind: FoundKind, bound: str, sentence: str) -> Slide:
    graves = dict.fromkeys(words for rate in kind.rates for words in rate.condemned)
    notes = dict.fromkeys(note for rate in kind.rates for note in rate.notes)
    caveat = f"Provisional: {'; '.join(notes)}" if notes else ""
    bars = [
        Point(
            x=rate.layout,
            y=rate.rate_per_s or 0.0,
            low=rate.low_per_s,
            high=rate.high_per_s,
            label=rate.figure,
            colour=rate.layout,
        )
        for rate in kind.rates
    ]
    answers = ", ".join(f"{rate.layout} {rate.words}" for rate in kind.rates)
    return Slide(
        title=f"{upper(kind.about)} within {bound}: {answers}",
        caveat=f"Not comparable: {'; '.join(graves)}" if graves else caveat,
        charts=(bar_chart("highest rate, requests/s", bars),),
        foot=f"{counted(kind.connections, 'connection')}; whiskers: 95 % interval over repeats.",
        notes=(sentence,),
    )


def overload_topic(data: RunData) -> Topic | None:
    """What is still served when more is asked than can be."""
    slides = tuple(_goodput(kind) for kind in data.overload)
    if not slides:
        return None
    question = "What does each still serve when more is asked than it can?"
    return Topic(question=question, answer=slides[0].title, slides=slides)


def _goodput(kind: OverloadKind) -> Slide:
    series = []
    caveats: list[str] = []
    for curve in kind.curves:
        points = []
        for point in curve.judged:
            figure, short = point.row.figure("goodput"), few(point.row.repeats)
            points.append(Point(point.offered_per_s, figure.value or 0.0, figure.low, figure.high))
            doubts = [*touching(point.row.doubts, "goodput"), *([short] if short else [])]
            caveats += [upper(doubt_brief(doubts))] if doubts else []
        series += [Series(curve.layout, tuple(points), curve.layout)] if points else []
    return Slide(
        title=kind.best,
        caveat="; ".join(dict.fromkeys(caveats)),
        charts=(Chart("paths", "goodput, /s", tuple(series), "offered, /s"),) if series else (),
        lines=() if series else kind.sentences,
        foot="Whiskers: 95 % interval.",
        notes=kind.sentences,
    )


def outage_topic(data: RunData) -> Topic | None:
    """What happens while something is broken."""
    kinds = data.outages.kinds
    if not kinds:
        return None
    slides = tuple(_stalls(kind) for kind in kinds)
    question = "What do clients see when something dies?"
    if len(kinds) == 1:
        question = f"{question} {upper(kinds[0].about)}"
        return Topic(question=question, answer=slides[0].title, slides=slides)
    cards = []
    longest = []
    for kind, slide in zip(kinds, slides, strict=True):
        spreads = [row.spread("stall") for row in kind.rows]
        stall = max((spread.middle for spread in spreads if spread is not None), default=None)
        figure = f"{show_figure(stall, 2)} s"
        caveat = slide.caveat
        cards.append(Card(figure, upper(kind.about), slide.title, caveat, caveat=bool(caveat)))
        longest += [stall] if stall is not None else []
    low, high = min(longest, default=None), max(longest, default=None)
    span = f"{show_figure(low, 2)} to {show_figure(high, 2)} s"
    answer = f"Longest stall of a worker: {span} in {len(kinds)} cases"
    return Topic(question=question, answer=answer, cards=tuple(cards), slides=slides)


def _stalls(kind: OutageKind) -> Slide:
    layouts = {row.layout for row in kind.rows}
    doubts = [doubt for row in kind.rows for doubt in row.doubts]
    doubts += [pair.doubt for pair in kind.between if layouts.issuperset(pair.layouts)]
    brief = doubt_brief(doubts)
    metrics: dict[MetricKey, str] = {"stall": "longest stall, s", "recover": "until 90 % again, s"}
    charts = []
    for metric, title in metrics.items():
        bars = []
        for row in kind.rows:
            spread = row.spread(metric)
            if spread is not None:
                bars.append(
                    Point(
                        x=row.layout,
                        y=spread.middle,
                        low=spread.least,
                        high=spread.most,
                        label=spread.words,
                        colour=row.layout,
                    )
                )
        charts += [bar_chart(title, bars)] if bars else []
    sentences = tuple(row.sentence for row in kind.rows)
    return Slide(
        title=kind.headline.removesuffix(f" ({brief})"),
        caveat=upper(brief),
        lead=upper(kind.about),
        charts=tuple(charts),
        lines=() if charts else sentences,
        foot="Bars: median; whiskers: lowest and highest repeat.",
        notes=sentences,
    )


def layers_topic(data: RunData) -> Iterator[Topic]:
    """What each layer serves of what is below it; none where no layer was measured."""
    controls = data.plan.twins
    stairs = [stair for stair in data.stairs or () if stair.known and stair.layout not in controls]
    slides = tuple(
        _stairs(about, list(same), data.rows)
        for about, same in groupby(stairs, key=lambda stair: stair.about)
    )
    if slides:
        question = "What does each layer serve of what is below it?"
        yield Topic(question=question, answer=slides[0].title, slides=slides)


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
    lines: list[Line] = []
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


def _step(step: LayerStep | None) -> Cell:
    if step is None or step.throughput_ops_s is None:
        return Cell(UNKNOWN if step is not None else "", ink=MUTED)
    text = f"{'≥ ' * bool(step.held)}{show_figure(step.throughput_ops_s)}"
    if step.of_below is not None and step.below is not None:
        text += f", {percent(step.of_below)} of {PLAIN[step.below]}"
    if step.doubt is not None and step.doubt.verdict != "at least":
        text += f" ({step.doubt.verdict})"
    return Cell(text, ink=INK if step.believable else BAD)


def tuning_topic(data: RunData) -> Topic | None:
    """Which settings help."""
    result = data.tuned
    if result is None:
        return None
    readings = result.table.readings
    lost = sum(reading.value is None for reading in readings) or "none"
    doubts = [f"Of {counted(len(readings), 'reading')}, {lost} could not be used."]
    doubts += [f"{upper(drift.words.rstrip('.'))}." for drift in result.table.drift]
    if result.run.tuning.strategy == "screen":
        doubts.append(
            "Each setting was tried alone: combined effects are known only where confirmed."
        )
    meaning = [result.winner_words, *([result.confirmation_words] if result.winner else [])]
    if files := [fragment.name for fragment in result.to_paste]:
        meaning.append(f"Ready to paste, in derived/winner: {listed(files)}.")
    settings = counted(len(result.table.entries), "setting")
    objectives = listed([result.called(number) for number in range(len(result.run.objectives))])
    tones = {BLUE: BETTER, ORANGE: WORSE}
    return Topic(
        question=f"Which of {settings} of {result.run.tuning.layout} help {objectives}?",
        answer=result.headline,
        cards=tuple(
            Card(
                figure=card.figure,
                about=card.about,
                text=short_names([card.text])[card.text],
                detail=card.detail,
                colour=tones.get(card.colour, MUTED),
            )
            for card in tuning_cards(result)
        ),
        slides=tuple(_effects(result)),
        backup=tuple(_ledger(result)),
        doubts=tuple(doubts),
        meaning=tuple(meaning),
    )


def _effects(result: TuningResult) -> Iterator[Slide]:
    """The changes of each objective, the largest first."""
    entries = result.table.entries
    short = short_names([entry.name for entry in entries])
    for number in range(len(result.run.objectives)):
        changes = [
            (effect.ratio, short[entry.name], effect)
            for entry in entries
            if (effect := entry.effects[number]).ratio is not None
        ]
        changes.sort(key=lambda change: -change[0].either_way)
        if not changes:
            continue
        called, (_, name, effect) = result.called(number), changes[0]
        bars = [_bar(*change) for change in changes]
        title = f"No setting changes the {called} significantly"
        if effect.verdict in VERDICT_INKS:
            title = f"{name} changes the {called} most: {change_figure(effect)}"
        limit = WIDEST * max(abs(bar.y) for bar in bars) or 1.0
        yield Slide(
            title=title,
            charts=(bar_chart(f"{called}, change in %", bars[:MAX_BARS], limit),),
            foot="Compared with the baseline beside it. Blue: better, orange: worse, grey, ~: no "
            "significant effect. Whiskers: 95 % interval. The backup has all settings.",
            notes=tuple(f"{effect.text}." for _, _, effect in changes),
        )


def _bar(ratio: Ratio, name: str, effect: Effect) -> Point:
    return Point(
        x=name,
        y=percent_of_ratio(ratio.value),
        low=None if ratio.low is None else percent_of_ratio(ratio.low),
        high=None if ratio.high is None else percent_of_ratio(ratio.high),
        label=change_figure(effect),
        colour=VERDICT_INKS.get(effect.verdict, MUTED),
    )


def _ledger(result: TuningResult) -> Iterator[Slide]:
    """All settings with their effects and verdicts."""
    settings = setting_lines(result)
    if not settings:
        return
    entries = {entry.variant.name: entry for entry in result.table.entries}
    short = short_names([line.name for line in settings])
    lines = []
    for line in settings:
        cells: list[str | Cell] = [short[line.name]]
        for change, effect in zip(line.changes, entries[line.variant].effects, strict=True):
            interval = f" ({change.interval})" if change.interval else ""
            cells += [f"{change.change}{interval}", could_be_shown(effect) or UNKNOWN]
        ink = VERDICT_INKS.get(line.verdict, INK)
        cells += [Cell(f"{line.sign} {line.verdict}", ink=ink), line.gateway_cpu, str(line.trials)]
        lines.append(cells)
    called = [upper(result.called(number)) for number in range(len(result.run.objectives))]
    head = [part for name in called for part in (name, "would be found")]
    counts = Counter(line.verdict for line in settings)
    better, worse = counts["better"] or "None", counts["worse"] or "none"
    yield Slide(
        title=f"{better} of {counted(len(settings), 'setting')} better, {worse} worse",
        table=table_of(("Setting", *head, "Verdict", "Gateway CPU", "Trials"), lines),
        foot="Compared with the baseline beside each trial. ~: not significant. In brackets: 95 % "
        "interval. Would be found: the smallest effect that so many trials find 8 times in 10.",
    )


FEATURES: Final = (
    tuning_topic,
    study_topic,
    durability_topic,
    find_topic,
    overload_topic,
    outage_topic,
)
"""Topics that come before the comparison of layouts, the first of which is that of the talk."""
