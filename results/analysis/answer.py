"""The answer of a run in a sentence, with what was compared, the caveats, and a card a workload.

What a run was made for decides which answer it is: that of a tuning, of power cuts, of a study, of
a search for rates, of what died, of overload, else that of its comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.leads import Lead, leads
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.study.study import StudyOutcome
from weighbridge.results.analysis.words import Card, card, caveats, context, headline, store_names
from weighbridge.results.figures import counted


@dataclass(frozen=True)
class Answer:
    """The answer of a run."""

    data: RunData

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who leads in each workload; empty if fewer than two layouts were compared."""
        comparison = self.data.comparison
        return () if self.data.tuned is not None else leads(comparison)

    @cached_property
    def stores(self) -> dict[str, str]:
        """What the layouts of one store may be called by."""
        return store_names(self.data.plan)

    @property
    def headline(self) -> str:
        """Without its end. Empty: nothing was measured that could be an answer."""
        return self._other or (headline(self.leads, self.stores) if self.leads else "")

    @cached_property
    def _other(self) -> str:
        """The answer of another question than a comparison; empty if none was asked."""
        data = self.data
        if data.tuned is not None:
            return data.tuned.headline
        if data.durability:
            return "; ".join(map(survived, data.durability))
        if data.study is not None and data.study.conclusions:
            return concluded(data.study)
        if data.found is not None:
            return "; ".join(text.rstrip(".") for text in data.found.sentences)
        kinds = data.outages.kinds
        if len(kinds) == 1:
            return kinds[0].headline
        stalls = [f"{kind.about}: {kind.headline}" for kind in kinds]
        return "; ".join(stalls or [kind.headline for kind in data.overload])

    @property
    def caveat(self) -> str:
        """What keeps the answer of a comparison from being a claim; empty for claims."""
        return "" if self._other else caveats(self.leads)

    @property
    def context(self) -> str:
        """What was compared: releases, API, hosts, repeats."""
        tuned = self.data.tuned
        settings = None if tuned is None else len(tuned.table.entries)
        return context(self.data.manifest, self.data.plan, settings)

    @property
    def cards(self) -> tuple[Card, ...]:
        return tuple(card(lead, self.stores) for lead in self.leads)


def survived(durability: LayoutDurability) -> str:
    """`rgw-beast: 0 of 22,892 acknowledged objects lost in 20 power cuts`."""
    if durability.judgement == "cannot-tell":
        return f"{durability.layout}: cannot tell, since {durability.why}"
    store = durability.store
    if durability.judgement == "kept":
        lost = f"0 of {store.acknowledged:,} acknowledged objects lost"
        return f"{durability.layout}: {lost} in {counted(store.made, 'power cut')}"
    return f"{durability.layout} {durability.mark.loss}"


def concluded(study: StudyOutcome) -> str:
    """`2 of 9 conclusions contradicted, none supported, 7 open`."""
    counts = Counter(one.verdict for one in study.conclusions)
    return (
        f"{counts['contradicts'] or 'None'} of {counted(len(study.conclusions), 'conclusion')} "
        f"contradicted, {counts['supports'] or 'none'} supported, {counts['cannot tell']} open"
    )
