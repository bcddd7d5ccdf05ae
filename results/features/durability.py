"""What survived power cuts, layout by layout: counts, the judgement, and what it can claim.

Objects count once at every cut: cuts of one load share most of them, so the statement about chance
is about cuts. With no loss in k cuts, at most 1 - 0.05^(1/k) of such cuts lose anything, with 95 %
confidence: about 3/k, the rule of three (J. A. Hanley and A. Lippman-Hand, JAMA 249, 1983, 1743).
With losses it is the interval of C. Clopper and E. Pearson (Biometrika 26, 1934, 404).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Answers
from weighbridge.results.figures.doubt import (
    UNSYNCED,
    Judgement,
    PowerMark,
    no_cuts,
    not_tried,
    power_words,
)
from weighbridge.results.figures.statistics import LEVEL, beta_quantile
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import UNKNOWN, counted, grouped, listed, show_figure, upper
from weighbridge.results.run.durability import FINDINGS, Finding, PowerCut, read_cuts
from weighbridge.results.show.chart import BAD, COLOUR, Chart, Panel, Spec, layer
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import BAD as SLIDE_BAD
from weighbridge.results.show.slide import INK, Slide, SlideCell, Topic, table_of
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import RUN
from weighbridge.suites import TRAITS

LISTINGS: Final[tuple[Finding, ...]] = ("not-listed", "listed-lost", "listed-deleted")
"""Findings about listings alone: always said, and no loss."""
LOSSES: Final[tuple[Finding, ...]] = tuple(each for each in FINDINGS if each not in LISTINGS)
FINDING_WORDS: Final[Mapping[Finding, str]] = {
    "lost": "lost",
    "torn": "torn",
    "wrong": "wrong",
    "stale": "stale",
    "undead": "deleted but back",
    "unreadable": "unreadable",
    "not-listed": "not listed",
    "listed-lost": "listed but lost",
    "listed-deleted": "listed but deleted",
}


def _loses(cut: PowerCut) -> bool:
    return cut.serves_s is None or any(cut.count(finding) for finding in LOSSES)


def share_that_loses(losing: int, cuts: int) -> tuple[float, float]:
    """The 95 % interval of the share of cuts that lose, from 0 if none did; without cuts 0 to 1."""
    if not losing:
        return 0.0, 1.0 - LEVEL ** (1 / cuts) if cuts else 1.0
    low = beta_quantile(losing, cuts - losing + 1, LEVEL / 2)
    high = beta_quantile(losing + 1, cuts - losing, 1 - LEVEL / 2) if losing < cuts else 1.0
    return low, high


class CutSeries(Record):
    """Cuts of one layout, in order: those of the store as it is, or those of its control."""

    cuts: tuple[PowerCut, ...]

    @property
    def made(self) -> int:
        return len(self.cuts)

    @property
    def served(self) -> int:
        return sum(cut.serves_s is not None for cut in self.cuts)

    @property
    def losing(self) -> int:
        """How many lost anything acknowledged, or left a store that does not serve."""
        return sum(map(_loses, self.cuts))

    @property
    def seen_to_lose(self) -> int:
        """How many served again and had lost something that was acknowledged."""
        return sum(
            cut.serves_s is not None and cut.acknowledged > 0 and _loses(cut) for cut in self.cuts
        )

    @property
    def telling(self) -> int:
        """How many could have lost something."""
        return sum(_loses(cut) or cut.acknowledged + cut.deleted > 0 for cut in self.cuts)

    @property
    def acknowledged(self) -> int:
        """Objects that had to be there, over all cuts."""
        return sum(cut.acknowledged for cut in self.cuts)

    @property
    def most_acknowledged(self) -> int:
        return max((cut.acknowledged for cut in self.cuts), default=0)

    @property
    def deleted(self) -> int:
        """Objects that had to be gone, over all cuts."""
        return sum(cut.deleted for cut in self.cuts)

    def count(self, *findings: Finding) -> int:
        """Objects with these findings, over all cuts."""
        return sum(cut.count(finding) for cut in self.cuts for finding in findings)

    def cuts_with(self, finding: Finding) -> int:
        return sum(cut.count(finding) > 0 for cut in self.cuts)

    @property
    def serves_s(self) -> tuple[float, float] | tuple[None, None]:
        """Seconds until it served again: median and largest; None if it never did."""
        times = [cut.serves_s for cut in self.cuts if cut.serves_s is not None]
        return (median(times), max(times)) if times else (None, None)

    @property
    def kinds(self) -> dict[tuple[str, int, str], CutSeries]:
        """By API, size and way of writing, the cuts with the objects of that kind alone."""
        kinds: dict[tuple[str, int, str], list[PowerCut]] = {}
        for cut in self.cuts:
            by_kind = grouped(cut.objects, lambda one: (one.api, one.size_bytes, one.way))
            for kind, own in by_kind.items():
                part = cut.model_copy(update={"objects": tuple(own)})
                kinds.setdefault(kind, []).append(part)
        return {kind: CutSeries(cuts=tuple(cuts)) for kind, cuts in kinds.items()}

    def among(self, cuts: int, noun: str = "cut") -> str:
        """`3 of 20 cuts`."""
        return f"{cuts} of {counted(self.made, noun)}"

    def words(self, findings: Sequence[Finding]) -> tuple[str, ...]:
        """`3 lost`, for each of the findings that there is."""
        counts = [(self.count(finding), FINDING_WORDS[finding]) for finding in findings]
        return tuple(f"{objects:,} {words}" for objects, words in counts if objects)


class LayoutDurability(Record):
    """One layout: its cuts, those of its control, and what they show."""

    layout: str
    store: CutSeries
    control: CutSeries

    @property
    def release(self) -> str:
        """Its release; of the last cut if they differ."""
        return (*self.control.cuts, *self.store.cuts)[-1].release

    @property
    def why(self) -> str:
        """Why nothing can be said of it; empty if it is `kept` or `lost`."""
        store, control = self.store, self.control
        if not store.made:
            return "no cut was made"
        if not store.served:
            return f"it served after none of {counted(store.made, 'cut')}"
        if store.losing:
            return ""
        if not store.telling:
            return "nothing had been acknowledged"
        if not control.made:
            return "there was no control"
        if not control.served:
            return "the control did not serve again, so nothing of it was read"
        return "" if control.seen_to_lose else "the control lost nothing"

    @property
    def judgement(self) -> Judgement:
        """A loss is a loss, whatever the control did; that nothing is lost needs the control."""
        if self.why:
            return "cannot-tell"
        return "lost" if self.store.losing else "kept"

    @property
    def loss(self) -> str:
        """`lost acknowledged writes in 3 of 20 power cuts`: the gravest finding; empty without."""
        store = self.store
        if self.judgement != "lost":
            return ""
        among = store.among(store.losing, "power cut")
        if store.count("lost", "torn", "wrong", "stale"):
            return f"lost acknowledged writes in {among}"
        if store.count("undead"):
            return f"brought deleted objects back in {among}"
        if store.served < store.made and store.losing == store.made - store.served:
            return f"did not serve after {among}"
        return f"left acknowledged objects unreadable in {among}"

    @property
    def mark(self) -> PowerMark:
        """What stands beside its write results."""
        store = self.store
        text, count = self.loss, f"{store.losing} of {store.made}"
        if self.why:
            text, count = f"cannot tell: {self.why}", "cannot tell"
        elif not text:
            text = f"{counted(store.made, 'cut')}: 0 of {store.acknowledged:,} acknowledged lost"
        return PowerMark(
            layout=self.layout,
            judgement=self.judgement,
            said=text,
            count=count,
            listings=store.words(LISTINGS),
            loss=self.loss,
        )

    @property
    def headline(self) -> str:
        """`rgw-beast lost 0 of 22,892 acknowledged objects in 20 power cuts`."""
        if self.why:
            return f"{self.layout}: cannot tell what a power cut destroys, since {self.why}"
        cuts = counted(self.store.made, "power cut")
        kept = f"lost 0 of {self.store.acknowledged:,} acknowledged objects in {cuts}"
        return f"{self.layout} {self.loss or kept}"

    @property
    def share_words(self) -> str:
        """`14 %`, or `3.2 % to 38 %`: which cuts may lose; empty where nothing can be said."""
        if self.why:
            return ""
        ends = share_that_loses(self.store.losing, self.store.telling)
        low, high = (f"{show_figure(100 * end, 2)} %" for end in ends)
        return f"{low} to {high}" if self.loss else high

    @property
    def sentence(self) -> str:
        """The headline, and how sure it is; the table has the rest."""
        store = self.store
        lost = f"{listed(store.words(LOSSES) or ['none lost'])}, of {store.acknowledged:,} "
        lost += f"acknowledged objects and {store.deleted:,} deletions"
        most = f"at most {store.most_acknowledged:,} objects at one cut"
        if self.why:
            text = f"{self.headline}."
            return text + f" In {counted(store.made, 'cut')}: {lost}." * bool(store.served)
        if self.loss:
            return (
                f"{self.headline} under load: {lost} ({most}). Of such cuts, {self.share_words} "
                "lose something (95 %)."
            )
        return (
            f"{self.headline} under load, and 0 of {store.deleted:,} deletions ({most}). At most "
            f"{self.share_words} of such cuts lose anything (95 %)."
        )


def durability_of(
    cuts: Sequence[PowerCut], layouts: Sequence[str] = ()
) -> tuple[LayoutDurability, ...]:
    """What the cuts show, by layout: these first, then others, as far as they were tried."""
    ordered = sorted(cuts, key=lambda cut: cut.number)
    tried = dict.fromkeys(cut.layout for cut in cuts)
    names = dict.fromkeys([*(name for name in layouts if name in tried), *tried])

    def series(layout: str, *, control: bool) -> CutSeries:
        own = [cut for cut in ordered if cut.layout == layout and cut.control == control]
        return CutSeries(cuts=tuple(own))

    return tuple(
        LayoutDurability(
            layout=name, store=series(name, control=False), control=series(name, control=True)
        )
        for name in names
    )


@of_run
def durability(data: RunData) -> tuple[LayoutDurability, ...]:
    """What survived power cuts; empty if no layout was tried."""
    layouts = [layout.name for layout in data.plan.layouts]
    return durability_of(read_cuts(data.store.folder), layouts)


def with_power_marks(
    rows: Sequence[Row],
    tried: Sequence[LayoutDurability],
    controls: Mapping[str, str],
    answers: Mapping[str, Answers],
) -> tuple[Row, ...]:
    """The rows; those of operations that write have the mark of their layout, if any layout was
    tried, or if any acknowledges what is not on disk (`answers`). An A/A control has that of the
    layout that it repeats.
    """
    marks = {layout.layout: layout.mark for layout in tried}
    answers = answers if set(answers.values()) & UNSYNCED else {}
    if not marks and not answers:
        return tuple(rows)
    marked = []
    for row in rows:
        if TRAITS[row.operation].writes:
            repeated = controls.get(row.layout, "")
            unknown = not_tried(row.layout) if marks else no_cuts(row.layout)
            mark = marks.get(row.layout) or marks.get(repeated) or unknown
            answer = answers.get(row.layout) or answers.get(repeated)
            own = mark.model_copy(update={"layout": row.layout, "answers": answer})
            marked.append(row.model_copy(update={"power": own}))
        else:
            marked.append(row)
    return tuple(marked)


_OF_CUT: Final = ("layout", "release", "control", "at_s", "seed", "keep", "serves_s", "why_not")


def _lines(data: RunData) -> Iterator[Line]:
    """Cut by cut; controls after the cuts of their layout."""
    for layout in durability(data):
        for cut in (*layout.store.cuts, *layout.control.cuts):
            # Nothing was read after a cut after which nothing served.
            for objects in cut.objects or (None,):
                yield line(
                    objects,
                    **{name: getattr(cut, name) for name in _OF_CUT},
                    cut=cut.number,
                    unflushed_blocks=sum(disk.unflushed_blocks for disk in cut.disks),
                    kept_blocks=sum(disk.kept_blocks for disk in cut.disks),
                )


DURABILITY: Final = Table(
    "durability",
    "A line for each power cut and kind of objects: what survived.",
    columns(f"""
{RUN}
layout text | The layout.
release text | Its release.
control boolean | Whether disks kept nothing that was synced: it must lose objects.
cut integer | Number of the cut, from 1 on.
at_s number s | Load before the cut.
seed integer | What decided about the cut.
keep number | Chance that an unflushed block is kept.
serves_s number s | From power on until every operation works; unknown if it did not serve.
why_not text | Why it did not serve; else empty.
api text | How the objects were written.
size_bytes integer B | Size of an object.
way text | Written at once (plain), or in parts (multipart).
acknowledged integer | Objects that must exist: acknowledged writes.
deleted integer | Objects that must be gone: acknowledged deletions.
in_flight integer | Of those, objects with a request that was not answered at the cut.
lost integer | Acknowledged, and not found.
torn integer | Acknowledged, and a mixture or a part of what was written.
wrong integer | Acknowledged, and bytes that were never written to them.
stale integer | Acknowledged, and an older version.
undead integer | Deleted, and there.
unreadable integer | Answered by errors, or not at all.
not_listed integer | Readable as acknowledged, and in no listing.
listed_lost integer | Listed, and not found when read.
listed_deleted integer | Deleted and not found when read, yet listed.
unflushed_blocks integer | Blocks of 4 KiB of all disks that were written and not flushed at the
    cut.
kept_blocks integer | Of these, those that were kept by chance.
"""),
    _lines,
)


MAX_EXAMPLES: Final = 20
_WAYS: Final = {"plain": "at once", "multipart": "in parts"}
_TEXTS: Final = ("Layout", "Verdict", "Release", "API", "Written")


def durability_sections(data: RunData) -> Iterator[Section]:
    """What survives a power cut; none where no power was cut."""
    if tried := durability(data):
        yield durability_section(tried)


def durability_section(tried: Sequence[LayoutDurability]) -> Section:
    """What survived, of layouts that were tried."""
    every = [series for layout in tried for series in (layout.store, layout.control)]
    seen = [
        finding
        for finding in FINDINGS
        # These have a column even where there are none.
        if finding in ("lost", "not-listed") or any(series.count(finding) for series in every)
    ]
    unseen = [FINDING_WORDS[finding] for finding in FINDINGS if finding not in seen]
    failures = [
        f"{layout.layout}, cut {cut.number}{' of its control' * cut.control}: {cut.why_not}"
        for layout in tried
        for cut in (*layout.store.cuts, *layout.control.cuts)
        if cut.why_not
    ]
    stores = [
        {
            **_cells(layout.layout, layout.store, seen),
            "Verdict": layout.judgement.replace("-", " "),
            "Cuts that may lose": layout.share_words or UNKNOWN,
            "Release": layout.release or UNKNOWN,
        }
        for layout in tried
        if layout.store.made
    ]
    controls = [
        {
            **_cells(f"{layout.layout}, control", layout.control, seen),
            "Verdict": "lost" if layout.control.losing else "lost nothing",
        }
        for layout in tried
        if layout.control.made
    ]
    kinds = [
        {
            **_cells(layout.layout, series, seen),
            "API": api,
            "Object": show_bytes(size_bytes),
            "Written": _WAYS[way],
        }
        for layout in tried
        for (api, size_bytes, way), series in layout.store.kinds.items()
    ]
    names = [upper(FINDING_WORDS[finding]) for finding in seen]
    objects = ("Acknowledged", "Of one cut", "Deleted", *names)
    by_layout = _grid(
        "By layout, then the controls: the same stores with syncs that keep nothing during the "
        "load. They must lose objects, which says nothing about a layout; where a control loses "
        "nothing, no layout is proven to keep anything. Objects are over all cuts, and count once "
        "at each; cuts that may lose: the 95 % interval of their share",
        [*stores, *controls],
        (
            *("Layout", "Verdict", "Cuts", "Cuts that lost", "Cuts that may lose", "Served after"),
            *(*objects, "Serves after, s", "At most, s", "Release"),
        ),
    )
    by_kind = _grid(
        "By kind of objects, over all cuts; without controls",
        kinds,
        ("Layout", "API", "Object", "Written", *objects),
    )
    brief = _grid(
        "",
        [*stores, *controls],
        ("Layout", "Verdict", "Cuts", "Served after", "Acknowledged", *names, "Serves after, s"),
    )
    sentences = [layout.sentence for layout in tried]
    parts = (
        Part(
            text="All hosts of the store lost power at one instant, under load. What its disks had "
            "not been asked to flush was lost, or kept by chance. The store was started again on "
            "what was left. Then every object with an acknowledged write or deletion was read and "
            "looked for in listings.",
            sentences=sentences,
            grids=(by_layout,),
            foot=f"No object was {listed(unseen, 'or')}." if unseen and stores else "",
        ),
        Part(chart="power-cuts" if stores else ""),
        Part("By API, size and way of writing", grids=(by_kind,), folded=True),
        _examples(tried),
        Part("Cuts after which a store did not serve", sentences=failures),
    )
    title = "What survives a power cut"
    return Section("durability", title, parts, [*sentences, *failures], (brief,))


def _cells(name: str, series: CutSeries, seen: Sequence[Finding]) -> dict[str, str]:
    """What the tables say of a series, by their heads."""
    cells = {
        "Layout": name,
        "Cuts": str(series.made),
        "Cuts that lost": str(series.losing),
        "Served after": str(series.served),
        "Acknowledged": f"{series.acknowledged:,}",
        "Of one cut": f"{series.most_acknowledged:,}",
        "Deleted": f"{series.deleted:,}",
    }
    for finding in seen:
        objects, cuts = series.count(finding), counted(series.cuts_with(finding), "cut")
        cells[upper(FINDING_WORDS[finding])] = f"{objects:,} in {cuts}" if objects else "0"
    times = map(show_figure, series.serves_s, (2, 2))
    return cells | dict(zip(("Serves after, s", "At most, s"), times, strict=True))


def _grid(caption: str, lines: Sequence[Mapping[str, str]], heads: Sequence[str]) -> Grid:
    numbers = [place for place, head in enumerate(heads) if head not in _TEXTS]
    return Grid(
        caption, heads, [[cells.get(head, "") for head in heads] for cells in lines], numbers
    )


def _examples(tried: Sequence[LayoutDurability]) -> Part:
    """Objects with findings, by name; without those of controls."""
    lines: list[tuple[str, ...]] = []
    more = []
    for layout in tried:
        examples = [(cut.number, each) for cut in layout.store.cuts for each in cut.examples]
        lines += [
            (
                *(layout.layout, str(number), FINDING_WORDS[each.finding], each.api),
                *(f"{each.container}/{each.name}", each.what),
            )
            for number, each in examples[:MAX_EXAMPLES]
        ]
        if (left := len(examples) - MAX_EXAMPLES) > 0:
            more.append(f"{layout.layout}: {left:,} more, in durability.jsonl of the run folder")
    head = ("Layout", "Cut", "Finding", "API", "Object", "What was seen")
    grid = Grid("Examples of findings; without controls", head, lines, (1,))
    return Part("Objects, by name", grids=(grid,), foot=" ".join(more), folded=True)


_NONE: Final = 0.5
"""Where cuts that lost nothing are drawn: at the foot of a logarithmic scale."""


def power_cut_charts(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a run in which power was cut, without controls; else none."""
    tried = [layout for layout in durability(source.data) if layout.store.made]
    if not tried:
        return ()
    chart = Chart(
        key="power-cuts",
        title="Objects lost, by power cut",
        finding=upper(power_words(layout.mark for layout in tried)),
        caption="Each mark is a cut, at its second of the load. ×: acknowledged objects that were "
        "lost, torn, wrong, stale, back or unreadable. Rings: objects that listings have wrong. "
        "Dots at the foot: cuts that lost nothing.",
        panels=_panels(tried),
        section="durability",
        layouts=source.layouts,
    )
    return (chart,)


def _panels(tried: Sequence[LayoutDurability]) -> tuple[Panel, ...]:
    rows = {layout.layout: list(map(_row, layout.store.cuts)) for layout in tried}
    every = [row for own in rows.values() for row in own]
    last = max(row["at_s"] for row in every)
    most = max(row[name] for row in every for name in ("lost", "wrong_in_listings"))
    x = AxisScale.from_zero(last or 1.0, "seconds of load before the cut")
    scale = AxisScale.logarithmic((1.0, max(most, 10)), "objects (log scale)")
    y = scale.model_copy(update={"low": _NONE})
    none = layer("circle", "repeat", "!datum.lost", y="_none")
    rings = layer("point", "sure", "datum.wrong_in_listings", y="wrong_in_listings")
    rings["mark"] |= {"filled": False, "strokeWidth": 3}
    lost = layer("point", "cross", "datum.lost", y="lost", color=BAD)
    spec: Spec = {
        "encoding": {"x": {**x.encoding(), "field": "at_s"}, "y": y.encoding(), "color": COLOUR},
        "layer": [none, rings, lost],
    }
    return tuple(
        Panel(
            key=layout.layout,
            title=layout.layout,
            finding=f"lost writes in {layout.store.among(layout.store.losing)}",
            rows=rows[layout.layout],
            spec=spec,
        )
        for layout in tried
    )


def _row(cut: PowerCut) -> dict[str, Any]:
    return {
        "layout": cut.layout,
        "cut": cut.number,
        "at_s": cut.at_s,
        "acknowledged": cut.acknowledged,
        **{finding: cut.count(finding) for finding in FINDINGS},
        "lost": sum(map(cut.count, LOSSES)),
        "wrong_in_listings": sum(map(cut.count, LISTINGS)),
        "serves_s": cut.serves_s,
        "_none": _NONE,
    }


def durability_topic(data: RunData) -> Topic | None:
    """What power cuts destroyed."""
    tried = [layout for layout in durability(data) if layout.store.made]
    if not tried:
        return None
    answer = "; ".join(layout.headline for layout in tried)
    shares = [
        f"{'' if layout.loss else 'at most '}{layout.share_words} on {layout.layout}"
        for layout in tried
        if not layout.why
    ]
    head = ("", "cuts that lost", "acknowledged", "listed wrongly", "serves after", "control lost")
    slide = Slide(
        title=answer,
        caveat=f"Such cuts that lose something (95 %): {listed(shares)}" if shares else "",
        table=table_of(head, map(_slide_line, tried)),
        foot="Acknowledged: objects, each counted once at every cut. The control has syncs that "
        "keep nothing, and must lose writes.",
        notes=tuple(layout.sentence for layout in tried),
    )
    question = "What is lost when all hosts of a store lose power at one instant, under load?"
    return Topic(question=question, answer=answer, slides=(slide,))


def _slide_line(layout: LayoutDurability) -> list[str | SlideCell]:
    store, control, lost = layout.store, layout.control, bool(layout.loss)
    return [
        layout.layout,
        SlideCell(layout.mark.count, bold=lost, ink=SLIDE_BAD if lost else INK),
        f"{store.acknowledged:,}",
        f"{store.count(*LISTINGS):,}",
        f"{show_figure(store.serves_s[0], 2)} s" if store.served else "did not",
        f"{control.losing} of {control.made}" if control.made else "not run",
    ]


FEATURE: Final = Feature(
    answer=lambda data: "; ".join(layout.headline for layout in durability(data)),
    tables=(DURABILITY,),
    charts={"power-cuts": ChartKind(power_cut_charts)},
    sections=durability_sections,
    topic=durability_topic,
)
