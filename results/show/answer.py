"""The answer of a run in a sentence, with what was compared, the caveats, and a card a workload.

What a run was made for decides which answer it is: that of a tuning, of power cuts, of a study, of
a search for rates, of what died, of overload, else that of its comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weighbridge.results.judge.host_equality import unequal_shares
from weighbridge.results.judge.leads import Lead, leads
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.trust import TrustSign, trust
from weighbridge.results.judge.words import Card, card, caveats, context, headline, store_names
from weighbridge.results.show.feature import FEATURES


@dataclass(frozen=True)
class Answer:
    """The answer of a run."""

    data: RunData

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who leads in each workload; empty if fewer than two layouts were compared."""
        return () if self.data.tuning is not None else leads(self.data.comparison)

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
        answers = (feature.answer(self.data) for feature in FEATURES.values())
        return next(filter(None, answers), "")

    @property
    def caveat(self) -> str:
        """What keeps the answer of a comparison from being a claim; empty for claims."""
        return "" if self._other else caveats(self.leads)

    @property
    def context(self) -> str:
        """What was compared: releases, API, hosts, repeats."""
        data = self.data
        settings = None if data.tuning is None else len(data.comparison.subjects)
        return context(data.manifest, data.plan, settings)

    @property
    def cards(self) -> tuple[Card, ...]:
        own = (one for feature in FEATURES.values() for one in feature.cards(self.data))
        return (*own, *(card(lead, self.stores) for lead in self.leads))


def signs(data: RunData) -> tuple[TrustSign, ...]:
    """What the figures of a run rest on."""
    plan, attested = data.plan, data.attested
    rows = [row for row in data.rows if row.layout not in plan.twins]
    if rows:
        comparison = data.comparison if data.tuning is None else None
        unequal = bool(unequal_shares(plan))
        return trust(plan.hardware.kind, plan.measured, rows, attested, comparison, unequal=unequal)
    each = (tuple(feature.signs(data)) for feature in FEATURES.values())
    return next(filter(None, each), ())
