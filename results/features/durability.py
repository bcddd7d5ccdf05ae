"""What survived power cuts, layout by layout: counts, the judgement, and what it can claim.

Objects count once at every cut: cuts of one load share most of them, so the statement about chance
is about cuts. With no loss in k cuts, at most 1 - 0.05^(1/k) of such cuts lose anything, with 95 %
confidence: about 3/k, the rule of three (J. A. Hanley and A. Lippman-Hand, JAMA 249, 1983, 1743).
With losses it is the interval of C. Clopper and E. Pearson (Biometrika 26, 1934, 404).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Any, Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Answers
from weighbridge.results.figures.power_mark import (
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
from weighbridge.results.numbers import UNKNOWN, counted, listed, show_figure, upper
from weighbridge.results.run.durability import (
    FINDINGS,
    Example,
    Finding,
    FoundObjects,
    PowerCut,
    Way,
    read_cuts,
)
from weighbridge.results.show.chart import (
    BAD,
    COLOUR,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.slide import BAD as SLIDE_BAD
from weighbridge.results.show.slide import INK, Slide, SlideCell, Topic, table_of
from weighbridge.results.show.table import Line, Table, columns, line
from weighbridge.results.show.tables import RUN
from weighbridge.suites import TRAITS, Api

LISTINGS: Final[tuple[Finding, ...]] = ("not-listed", "listed-lost", "listed-deleted")
"""Findings about listings alone: always said, and no loss."""
LOSSES: Final[tuple[Finding, ...]] = tuple(one for one in FINDINGS if one not in LISTINGS)
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
_GONE: Final[tuple[Finding, ...]] = ("lost", "torn", "wrong", "stale")


class FindingCount(Record):
    """Objects with a finding, and the cuts in which there were any."""

    objects: int
    cuts: int


class KindDurability(Record):
    """The objects of one size, written in one way, over all cuts."""

    api: Api
    size_bytes: int
    way: Way
    acknowledged: int
    """Over all cuts; an object counts once at each."""
    most_acknowledged: int
    """Of one cut."""
    deleted: int
    found: dict[Finding, FindingCount]


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

    @cached_property
    def found(self) -> dict[Finding, FindingCount]:
        return {one: _count([cut.count(one) for cut in self.cuts]) for one in FINDINGS}

    @property
    def serves_s(self) -> tuple[float, float] | None:
        """Seconds until it served again: median and largest; None if it never did."""
        known = [cut.serves_s for cut in self.cuts if cut.serves_s is not None]
        return (median(known), max(known)) if known else None

    @cached_property
    def kinds(self) -> tuple[KindDurability, ...]:
        """By API, size and way, in the order in which they were found."""
        same: dict[tuple[Api, int, Way], list[list[FoundObjects]]] = {}
        for cut in self.cuts:
            mine: dict[tuple[Api, int, Way], list[FoundObjects]] = {}
            for one in cut.objects:
                mine.setdefault((one.api, one.size_bytes, one.way), []).append(one)
            for kind, ones in mine.items():
                same.setdefault(kind, []).append(ones)
        return tuple(_kind(*kind, by_cut) for kind, by_cut in same.items())

    @property
    def share(self) -> tuple[float, float]:
        """The share of such cuts that lose anything: its 95 % interval; from 0 if none did."""
        return share_that_loses(self.losing, self.telling)

    @property
    def examples(self) -> tuple[tuple[PowerCut, Example], ...]:
        return tuple((cut, one) for cut in self.cuts for one in cut.examples)


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
    def mark(self) -> PowerMark:
        """What stands beside its write results."""
        store = self.store
        count = f"{store.losing} of {store.made}"
        if self.why:
            text, count = f"cannot tell: {self.why}", "cannot tell"
        elif store.losing:
            text = self._loss_words()
        else:
            cuts = counted(store.made, "cut")
            text = f"{cuts}: 0 of {store.acknowledged:,} acknowledged lost"
        return PowerMark(
            layout=self.layout,
            judgement=self.judgement,
            said=text,
            count=count,
            listings=tuple(_finding_words(store, LISTINGS)),
            loss=text if self.judgement == "lost" else "",
        )

    @property
    def sentence(self) -> str:
        return " ".join((self._verdict_words(), *self._more_words()))

    def _loss_words(self) -> str:
        """`lost acknowledged writes in 3 of 20 power cuts`; the gravest that was found."""
        store = self.store
        among = f"{store.losing} of {counted(store.made, 'power cut')}"
        if any(store.found[one].objects for one in _GONE):
            return f"lost acknowledged writes in {among}"
        if store.found["undead"].objects:
            return f"brought deleted objects back in {among}"
        if store.served < store.made and store.losing == store.made - store.served:
            return f"did not serve after {among}"
        return f"left acknowledged objects unreadable in {among}"

    def _verdict_words(self) -> str:
        store = self.store
        if self.judgement == "kept":
            return (
                f"{self.layout} lost nothing that it had acknowledged in "
                f"{counted(store.made, 'power cut')} under load: 0 of {store.acknowledged:,} "
                f"objects, and 0 of {store.deleted:,} deletions (at most "
                f"{store.most_acknowledged:,} objects at one cut). At most {self.share_words} of "
                "such cuts lose anything (95 %)."
            )
        of = f"of {store.acknowledged:,} acknowledged objects and {store.deleted:,} deletions"
        each = listed(list(_finding_words(store, LOSSES)) or ["none lost"])
        if self.judgement == "lost":
            return (
                f"{self.layout} {self._loss_words()} under load: {each}, {of} (at most "
                f"{store.most_acknowledged:,} objects at one cut). Of such cuts, "
                f"{self.share_words} lose something (95 %)."
            )
        seen = f" In {counted(store.made, 'cut')}: {each}, {of}." if store.served else ""
        return f"{self.layout}: cannot tell what a power cut destroys, since {self.why}.{seen}"

    @property
    def share_words(self) -> str:
        """`14 %`, or `3.2 % to 38 %`: which cuts may lose; empty where nothing can be said."""
        if self.judgement == "cannot-tell":
            return ""
        low, high = self.store.share
        ends = [f"{show_figure(100 * one, 2)} %" for one in (low, high)]
        return ends[1] if self.judgement == "kept" else " to ".join(ends)

    def _more_words(self) -> Iterator[str]:
        store, control = self.store, self.control
        if each := list(_finding_words(store, LISTINGS, in_cuts=True)):
            yield f"Listings: {listed(each)}."
        if store.served < store.made:
            lacking = f"{store.made - store.served} of {counted(store.made, 'cut')}"
            yield f"It did not serve after {lacking}."
        if store.serves_s is not None:
            middle, most = (show_figure(one, 2) for one in store.serves_s)
            yield f"It served again after {middle} s (median; {most} s at most)."
        if control.made:
            among = f"{control.seen_to_lose} of {counted(control.made, 'cut')}"
            yield f"Its control, whose syncs keep nothing, lost writes in {among}."


def durability_of(
    cuts: Sequence[PowerCut], layouts: Sequence[str] = ()
) -> tuple[LayoutDurability, ...]:
    """What the cuts show, by layout: these first, then others, as far as they were tried."""
    tried = {cut.layout for cut in cuts}
    names = [*(one for one in layouts if one in tried), *(cut.layout for cut in cuts)]
    ordered = sorted(cuts, key=lambda cut: cut.number)
    return tuple(
        LayoutDurability(
            layout=name,
            store=_series(ordered, name, control=False),
            control=_series(ordered, name, control=True),
        )
        for name in dict.fromkeys(names)
    )


@of_run
def durability(data: RunData) -> tuple[LayoutDurability, ...]:
    """What survived power cuts; empty if no layout was tried."""
    return durability_of(read_cuts(data.store.folder), [one.name for one in data.plan.layouts])


def with_power_marks(
    rows: Sequence[Row],
    found: Sequence[LayoutDurability],
    controls: Mapping[str, str],
    answers: Mapping[str, Answers],
) -> tuple[Row, ...]:
    """The rows; those of operations that write have the mark of their layout, if any layout was
    tried, or if any acknowledges what is not on disk (`answers`). An A/A control has that of the
    layout that it repeats.
    """
    marks = {one.layout: one.mark for one in found}
    told = answers if set(answers.values()) & UNSYNCED else {}
    if not marks and not told:
        return tuple(rows)
    return tuple(
        row.model_copy(update={"power": _mark_of(row.layout, marks, controls, told)})
        if TRAITS[row.operation].writes
        else row
        for row in rows
    )


def share_that_loses(losing: int, cuts: int) -> tuple[float, float]:
    """The 95 % interval of the share of cuts that lose, from 0 if none did; without cuts 0 to 1."""
    if not losing:
        return 0.0, 1.0 - LEVEL ** (1 / cuts) if cuts else 1.0
    low = beta_quantile(losing, cuts - losing + 1, LEVEL / 2)
    high = beta_quantile(losing + 1, cuts - losing, 1 - LEVEL / 2) if losing < cuts else 1.0
    return low, high


def _loses(cut: PowerCut) -> bool:
    return cut.serves_s is None or any(cut.count(one) for one in LOSSES)


def _series(cuts: Sequence[PowerCut], layout: str, *, control: bool) -> CutSeries:
    return CutSeries(
        cuts=tuple(cut for cut in cuts if cut.layout == layout and cut.control == control)
    )


def _count(of_cuts: Sequence[int]) -> FindingCount:
    return FindingCount(objects=sum(of_cuts), cuts=sum(number > 0 for number in of_cuts))


def _kind(
    api: Api, size_bytes: int, way: Way, by_cut: Sequence[Sequence[FoundObjects]]
) -> KindDurability:
    acknowledged = [sum(one.acknowledged for one in ones) for ones in by_cut]
    return KindDurability(
        api=api,
        size_bytes=size_bytes,
        way=way,
        acknowledged=sum(acknowledged),
        most_acknowledged=max(acknowledged),
        deleted=sum(one.deleted for ones in by_cut for one in ones),
        found={
            finding: _count([sum(one.count(finding) for one in ones) for ones in by_cut])
            for finding in FINDINGS
        },
    )


def _finding_words(
    store: CutSeries, which: Sequence[Finding], *, in_cuts: bool = False
) -> Iterator[str]:
    for one in which:
        if objects := store.found[one].objects:
            where = f" in {store.found[one].cuts} of {counted(store.made, 'cut')}"
            yield f"{objects:,} {FINDING_WORDS[one]}{where if in_cuts else ''}"


def _mark_of(
    layout: str,
    marks: Mapping[str, PowerMark],
    controls: Mapping[str, str],
    answers: Mapping[str, Answers],
) -> PowerMark:
    repeated = controls.get(layout, "")
    unknown = not_tried(layout) if marks else no_cuts(layout)
    found = marks.get(layout) or marks.get(repeated) or unknown
    told = answers.get(layout) or answers.get(repeated)
    return found.model_copy(update={"layout": layout, "answers": told})


def _lines(data: RunData) -> Iterator[Line]:
    """Cut by cut; controls after the cuts of their layout."""
    for layout in durability(data):
        for cut in (*layout.store.cuts, *layout.control.cuts):
            # Nothing was read after a cut after which nothing served.
            for objects in cut.objects or (None,):
                yield line(
                    objects,
                    layout=cut.layout,
                    release=cut.release,
                    control=cut.control,
                    cut=cut.number,
                    at_s=cut.at_s,
                    seed=cut.seed,
                    keep=cut.keep,
                    serves_s=cut.serves_s,
                    why_not=cut.why_not,
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


MOST_EXAMPLES: Final = 20
ALWAYS: Final[tuple[Finding, ...]] = ("lost", "not-listed")
"""Findings that have a column even where there are none."""
_WAYS: Final = {"plain": "at once", "multipart": "in parts"}


def durability_sections(data: RunData) -> Iterator[Section]:
    """What survives a power cut; none where no power was cut."""
    found = durability(data)
    if found:
        yield durability_section(found)


def durability_section(found: Sequence[LayoutDurability]) -> Section:
    """What survived, of layouts that were tried."""
    seen = [one for one in FINDINGS if one in ALWAYS or _is_seen(one, found)]
    unseen = [FINDING_WORDS[one] for one in FINDINGS if one not in seen]
    failures = tuple(
        f"{one.layout}, cut {cut.number}{' of its control' * cut.control}: {cut.why_not}"
        for one in found
        for cut in (*one.store.cuts, *one.control.cuts)
        if cut.why_not
    )
    more = [
        f"{one.layout}: {left:,} more, in durability.jsonl of the run folder"
        for one in found
        if (left := len(one.store.examples) - MOST_EXAMPLES) > 0
    ]
    layouts, controls = _layouts(found, seen), _controls(found, seen)
    parts = (
        Part(
            text="All hosts of the store lost power at one instant, under load. What its disks had "
            "not been asked to flush was lost, or kept by chance. The store was started again on "
            "what was left. Then every object with an acknowledged write or deletion was read and "
            "looked for in listings.",
            sentences=[one.sentence for one in found],
            grids=(layouts,),
            foot=f"No object was {listed(unseen, 'or')}." if unseen and layouts.lines else "",
        ),
        Part(chart="power-cuts" if layouts.lines else ""),
        Part("By API, size and way of writing", grids=(_kinds(found, seen),), folded=True),
        Part("Objects, by name", grids=(_examples(found),), foot=" ".join(more), folded=True),
        Part("Cuts after which a store did not serve", sentences=failures),
        Part(
            "The controls",
            text="The same stores with syncs that keep nothing during the load: they must lose "
            "objects. What they lose says nothing about a layout; where a control loses nothing, "
            "no layout is proven to keep anything.",
            grids=(controls,),
            chart="power-cut-controls" if controls.lines else "",
        ),
    )
    return Section(
        "durability",
        "What survives a power cut",
        parts,
        [*(one.sentence for one in found), *failures],
        (_brief(found),),
    )


def _brief(found: Sequence[LayoutDurability]) -> Grid:
    """Only findings that there are have a column."""
    seen = [one for one in FINDINGS if one == "lost" or _is_seen(one, found)]
    head = ("layout", "verdict", "cuts", "served", "objects", *(FINDING_WORDS[one] for one in seen))
    lines = [
        (one.layout, one.judgement.replace("-", " "), *_brief_cells(one.store, seen))
        for one in found
    ]
    lines += [
        (
            f"{one.layout}, control",
            "lost" if one.control.losing else "lost nothing",
            *_brief_cells(one.control, seen),
        )
        for one in found
        if one.control.made
    ]
    return Grid("", (*head, "serves s"), lines, range(2, len(head) + 1))


def _brief_cells(series: CutSeries, seen: Sequence[Finding]) -> tuple[str, ...]:
    return (
        str(series.made),
        str(series.served),
        f"{series.acknowledged:,}",
        *(f"{series.found[one].objects:,}" for one in seen),
        UNKNOWN if series.serves_s is None else show_figure(series.serves_s[0], 2),
    )


def _is_seen(finding: Finding, found: Sequence[LayoutDurability]) -> bool:
    return any(
        series.found[finding].objects for one in found for series in (one.store, one.control)
    )


def _layouts(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> Grid:
    ends = ("Serves after, s", "At most, s", "Release")
    head = ("Layout", "Verdict", "Cuts that may lose", "Cuts", "Served after", *_heads(seen), *ends)
    return Grid(
        "By layout. Objects are over all cuts, and count once at each; cuts that may lose: the "
        "95 % interval of their share",
        head=head,
        lines=tuple(
            (
                one.layout,
                one.judgement.replace("-", " "),
                one.share_words or UNKNOWN,
                str(one.store.made),
                str(one.store.served),
                *_counts(one.store, seen),
                *(show_figure(value, 2) for value in one.store.serves_s or (None, None)),
                one.release or UNKNOWN,
            )
            for one in found
            if one.store.made
        ),
        numbers=tuple(range(2, len(head) - 1)),
    )


def _controls(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> Grid:
    head = ("Layout", "Cuts", "Cuts that lost", "Served after", *_heads(seen))
    return Grid(
        "Controls: the syncs of the store keep nothing",
        head=head,
        lines=tuple(
            (
                one.layout,
                str(one.control.made),
                str(one.control.losing),
                str(one.control.served),
                *_counts(one.control, seen),
            )
            for one in found
            if one.control.made
        ),
        numbers=tuple(range(1, len(head))),
    )


def _kinds(found: Sequence[LayoutDurability], seen: Sequence[Finding]) -> Grid:
    head = ("Layout", "API", "Object", "Written", *_heads(seen))
    return Grid(
        "By kind of objects, over all cuts; without controls",
        head=head,
        lines=tuple(
            (
                one.layout,
                kind.api,
                show_bytes(kind.size_bytes),
                _WAYS[kind.way],
                *_counts(kind, seen),
            )
            for one in found
            for kind in one.store.kinds
        ),
        numbers=(2, *range(4, len(head))),
    )


def _examples(found: Sequence[LayoutDurability]) -> Grid:
    return Grid(
        "Examples of findings; without controls",
        head=("Layout", "Cut", "Finding", "API", "Object", "What was seen"),
        lines=tuple(
            (
                one.layout,
                str(cut.number),
                FINDING_WORDS[example.finding],
                example.api,
                f"{example.container}/{example.name}",
                example.what,
            )
            for one in found
            for cut, example in one.store.examples[:MOST_EXAMPLES]
        ),
        numbers=(1,),
    )


def _heads(seen: Sequence[Finding]) -> tuple[str, ...]:
    return (
        "Acknowledged",
        "Of one cut",
        "Deleted",
        *(upper(FINDING_WORDS[one]) for one in seen),
    )


def _counts(counted_in: CutSeries | KindDurability, seen: Sequence[Finding]) -> tuple[str, ...]:
    return (
        f"{counted_in.acknowledged:,}",
        f"{counted_in.most_acknowledged:,}",
        f"{counted_in.deleted:,}",
        *(_found_words(counted_in.found[one]) for one in seen),
    )


def _found_words(found: FindingCount) -> str:
    return f"{found.objects:,} in {counted(found.cuts, 'cut')}" if found.objects else "0"


_NONE: Final = 0.5
"""Where cuts that lost nothing are drawn: at the foot of a logarithmic scale."""


def power_cut_charts(source: ChartSource) -> tuple[Chart, ...]:
    """The charts of a run in which power was cut, of stores and of controls; else none."""
    charts = []
    found = [one for one in durability(source.data) if one.store.made]
    if found:
        charts.append(
            Chart(
                key="power-cuts",
                title="Objects lost, by power cut",
                finding=upper(power_words(one.mark for one in found)),
                caption="Each mark is a cut, at its second of the load. ×: acknowledged objects "
                "that were lost, torn, wrong, stale, back or unreadable. Rings: objects that "
                "listings have wrong. Dots at the foot: cuts that lost nothing.",
                panels=_panels({one.layout: one.store for one in found}),
                section="durability",
                layouts=source.layouts,
            )
        )
    controls = [one for one in found if one.control.made]
    if controls:
        each = ", ".join(f"{one.layout} in {_among(one.control)}" for one in controls)
        charts.append(
            Chart(
                key="power-cut-controls",
                title="Objects lost by the controls, by power cut",
                finding=f"Controls must lose writes, and did: {each}",
                caption="No results of layouts: the same stores with syncs that keep nothing "
                "during the load. Marks as in the chart of power cuts.",
                panels=_panels({f"{one.layout}, control": one.control for one in controls}),
                section="durability",
                layouts=source.layouts,
            )
        )
    return tuple(charts)


def _among(series: CutSeries) -> str:
    return f"{series.losing} of {counted(series.made, 'cut')}"


def _panels(found: Mapping[str, CutSeries]) -> tuple[Panel, ...]:
    rows = {title: [_row(cut) for cut in series.cuts] for title, series in found.items()}
    every = [row for mine in rows.values() for row in mine]
    last = max(row["at_s"] for row in every)
    most = max(row[name] for row in every for name in ("lost", "wrong_in_listings"))
    x = AxisScale.from_zero(last or 1.0, "seconds of load before the cut")
    scale = AxisScale.logarithmic((1.0, max(most, 10)), "objects (log scale)")
    y = scale.model_copy(update={"low": _NONE})
    return tuple(
        Panel(
            key=title.replace(", ", "-"),
            title=title,
            finding=f"lost writes in {_among(series)}",
            rows=rows[title],
            spec=_spec(x, y),
        )
        for title, series in found.items()
    )


def _row(cut: PowerCut) -> dict[str, Any]:
    lost, listed = (
        sum(cut.count(one) for one in FINDINGS if one in which) for which in (LOSSES, LISTINGS)
    )
    return {
        "layout": cut.layout,
        "cut": cut.number,
        "at_s": cut.at_s,
        "acknowledged": cut.acknowledged,
        **{one.replace(" ", "_"): cut.count(one) for one in FINDINGS},
        "lost": lost,
        "wrong_in_listings": listed,
        "serves_s": cut.serves_s,
        "_none": _NONE,
    }


def _spec(x: AxisScale, y: AxisScale) -> Spec:
    none = layer("circle", "repeat", "!datum.lost", y="_none")
    rings = layer("point", "sure", "datum.wrong_in_listings", y="wrong_in_listings")
    rings["mark"] |= {"filled": False, "strokeWidth": 3}
    lost = layer("point", "cross", "datum.lost", y="lost", color=BAD)
    return {
        "encoding": {"x": {**x.encoding(), "field": "at_s"}, "y": y.encoding(), "color": COLOUR},
        "layer": [none, rings, lost],
    }


def durability_topic(data: RunData) -> Topic | None:
    """What power cuts destroyed."""
    tried = [layout for layout in durability(data) if layout.store.made]
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


def _cuts(layout: LayoutDurability) -> list[str | SlideCell]:
    store, control = layout.store, layout.control
    lost = layout.judgement == "lost"
    told = "cannot tell" if layout.why else f"{store.losing} of {store.made}"
    return [
        layout.layout,
        SlideCell(told, bold=lost, ink=SLIDE_BAD if lost else INK),
        f"{store.acknowledged:,}",
        f"{sum(store.found[finding].objects for finding in LISTINGS):,}",
        "did not" if store.serves_s is None else f"{show_figure(store.serves_s[0], 2)} s",
        f"{control.losing} of {control.made}" if control.made else "not run",
    ]


def survived(durability: LayoutDurability) -> str:
    """`rgw-beast: 0 of 22,892 acknowledged objects lost in 20 power cuts`."""
    if durability.judgement == "cannot-tell":
        return f"{durability.layout}: cannot tell, since {durability.why}"
    store = durability.store
    if durability.judgement == "kept":
        lost = f"0 of {store.acknowledged:,} acknowledged objects lost"
        return f"{durability.layout}: {lost} in {counted(store.made, 'power cut')}"
    return f"{durability.layout} {durability.mark.loss}"


FEATURE: Final = Feature(
    answer=lambda data: "; ".join(map(survived, durability(data))),
    tables=(DURABILITY,),
    charts={"power-cuts": ChartKind(power_cut_charts)},
    sections=durability_sections,
    topic=durability_topic,
)
