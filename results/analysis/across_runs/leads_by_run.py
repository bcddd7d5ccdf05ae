"""Who leads in each of several runs of the same layouts, and what limited them there.

Runs on different hardware cannot be compared with each other: a difference would say nothing about
the gateways. Who leads within each of them can be: what limits decides who wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.compared_run import ComparedRun
from weighbridge.results.analysis.findings import Lead, find, lead, overall
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.bottleneck import NOTHING_SEEN
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import listed, show_ratio, upper

HARDWARE_FACTS: Final = (
    *("cpu", "cpus", "memory", "kernel", "sysctl"),
    *("hosts", "network", "disks"),
)
"""Guard facts in which runs may differ whose leads are shown side by side."""


class LeadInRun(Record):
    """Who leads in one kind of requests in one run."""

    run: str
    """Its side, such as A."""
    hardware: str
    lead: Lead | None
    """None: nothing is comparable."""
    limits: dict[str, str]
    """What limited each layout at its highest worker count; without those where it is unknown."""

    @property
    def leader(self) -> str | None:
        """The layout that may be said to lead; None if none may."""
        return None if self.lead is None or self.lead.doubts else self.lead.layout

    @property
    def words(self) -> str:
        """Who leads, by how much and where: `no layout leads on lab-cpu (A)`."""
        where = f"on {self.hardware} ({self.run})"
        if self.lead is None:
            return f"not comparable {where}"
        if self.lead.layout is None:
            return f"no layout leads {where}"
        by = f"by {show_ratio(self.lead.margin)} {where}"
        if self.lead.doubts:
            return f"{self.lead.layout} provisionally does more {by}"
        return f"{self.lead.layout} leads {by}"

    @property
    def limit_words(self) -> str:
        """What limited the layouts, with their names if it differs; `unknown` if unknown."""
        if len(set(self.limits.values())) < 2:
            return next(iter(self.limits.values()), "unknown")
        return listed([f"{words} ({layout})" for layout, words in self.limits.items()])


class LeadsByRun(Record):
    """Who leads in one kind of requests, by run."""

    about: str
    """`64 kB reads`."""
    runs: tuple[LeadInRun, ...]

    @property
    def differs(self) -> bool:
        """Whether different layouts lead, each beyond doubt."""
        return len({one.leader for one in self.runs if one.leader is not None}) > 1

    @property
    def text(self) -> str:
        """One sentence; it calls nothing the cause but what differs in what limited."""
        said = "; ".join(one.words for one in self.runs)
        limits = ", ".join(f"{one.limit_words} on {one.hardware}" for one in self.runs)
        text = f"{self.about}: {said}"
        known = [one.limit_words for one in self.runs if one.limits]
        if self.differs and len(set(known)) > 1 and NOTHING_SEEN not in known:
            return f"{text}: who leads depends on what limits ({limits})"
        return f"{text} (limited by {limits})" if known else text


def leads_by_run(runs: Mapping[str, ComparedRun]) -> tuple[LeadsByRun, ...]:
    """Who leads in each kind of requests that all runs have, in the order of the first; keys are
    the runs' sides. Only layouts that all of them have count.
    """
    shared = set.intersection(*(set(run.layouts) for run in runs.values()))
    rows = {
        side: tuple(row for row in run.rows if row.layout in shared | set(run.plan.twins))
        for side, run in runs.items()
    }
    found = {side: _leads(run, rows[side]) for side, run in runs.items()}
    kinds = [
        kind
        for kind in next(iter(found.values()), {})
        if all(kind in one for one in found.values())
    ]
    names = subjects(next(iter(rows.values())))
    return tuple(
        LeadsByRun(
            about=upper(names[kind]),
            runs=tuple(
                LeadInRun(
                    run=side,
                    hardware=run.plan.hardware.name,
                    lead=found[side][kind],
                    limits=_limits(rows[side], kind, shared),
                )
                for side, run in runs.items()
            ),
        )
        for kind in kinds
    )


def leads_csv(leads: Sequence[LeadsByRun]) -> str:
    """A line for each kind of requests and run."""
    head = ("requests", "run", "hardware", "leader", "margin", "doubts", "limited_by")
    return csv_lines(head, (_line(each.about, one) for each in leads for one in each.runs))


def _line(about: str, one: LeadInRun) -> tuple[str, ...]:
    found = one.lead
    limits = "; ".join(f"{layout}: {words}" for layout, words in one.limits.items())
    if found is None or found.layout is None:
        return about, one.run, one.hardware, "", "", "", limits
    doubts = "; ".join(doubt.words for doubt in found.doubts)
    return about, one.run, one.hardware, found.layout, f"{found.margin:.4g}", doubts, limits


def _leads(run: ComparedRun, rows: Sequence[Row]) -> dict[Kind, Lead | None]:
    findings = find(rows, run.plan.twins, run.plan.suite.bounds)
    rivals = overall([one for one in findings if one.rival], rivals=True)
    return {kind: lead(pairs, rivals.get(kind, ())) for kind, pairs in overall(findings).items()}


def _limits(rows: Sequence[Row], kind: Kind, layouts: set[str]) -> dict[str, str]:
    """What limited each layout at its highest ranked worker count."""
    found: dict[str, Row] = {}
    for row in rows:
        if kind_of(row) != kind or row.layout not in layouts or not row.ranked:
            continue
        known = found.get(row.layout)
        if known is None or row.workers > known.workers:
            found[row.layout] = row
    return {layout: words for layout, row in found.items() if (words := row.limited_by)}
