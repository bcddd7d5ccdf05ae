"""Which visits' hosts are attested: the first of each layout, and later ones where hosts seem to
differ.

A program that disturbs the machine for the seconds of one attestation would otherwise make all
results of a layout not comparable. The median of MEDIAN_FROM deployments counts
(`results.analysis.sameness.host_doubts`): hosts that really differ do so in most of them.
"""

from __future__ import annotations

from weighbridge.conductor.plan import Plan, Visit
from weighbridge.gateways.gateway import Say
from weighbridge.results.analysis.sameness import MEDIAN_FROM, host_doubts, odd_layouts
from weighbridge.results.record.store import RunStore


class HostChecks:
    """Attestations of one session of a run; without `wanted`, none."""

    def __init__(self, plan: Plan, store: RunStore, *, wanted: bool) -> None:
        self._plan, self._store, self._wanted = plan, store, wanted
        self._attested: set[str] = set()
        self._again: set[str] = set()
        """Layouts that seemed to differ."""

    def due(self, visit: Visit) -> bool:
        """Whether the hosts of a visit are to be attested."""
        # An A/A control has its layout's hosts.
        if not self._wanted or visit.layout in self._plan.twins:
            return False
        if visit.layout not in self._attested:
            return True
        return visit.layout in self._again and not self._enough(visit.layout)

    def attested(self, visit: Visit, say: Say) -> None:
        """Note that a visit's hosts were attested and their figures kept; `say` if they differ."""
        self._attested.add(visit.layout)
        found = self._store.attested()
        odd = odd_layouts(found)
        self._again |= odd
        doubts = [one.doubt for one in host_doubts(found) if visit.layout in one.layouts]
        if not doubts:
            return
        # Blocks may follow that the plan did not have.
        last = visit.repeat + 1 == self._plan.suite.repeats and self._plan.suite.further is None
        later = [] if last else [name for name in sorted(odd) if not self._enough(name)]
        again = f"; to be attested again: {', '.join(later)}" if later else ""
        say(f"{doubts[0].what} so far: {doubts[0].words}{again}")

    def _enough(self, layout: str) -> bool:
        seen = {one.repeat for one in self._store.attested() if one.layout == layout}
        return len(seen) >= MEDIAN_FROM
