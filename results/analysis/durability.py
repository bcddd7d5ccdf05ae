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
from typing import Final

from weighbridge.common.record import Record
from weighbridge.common.structure import Answers
from weighbridge.results.analysis.power_mark import (
    UNSYNCED,
    Judgement,
    PowerMark,
    no_cuts,
    not_tried,
)
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import counted, listed, show_figure
from weighbridge.results.probability import beta_quantile
from weighbridge.results.record.durability import (
    FINDINGS,
    Example,
    Finding,
    FoundObjects,
    PowerCut,
    Way,
)
from weighbridge.results.statistics import LEVEL
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
