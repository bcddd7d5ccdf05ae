"""Who leads in runs on different hardware, side by side."""

from __future__ import annotations

import csv

import pytest

from compared_rows import MILD
from weighbridge.results.analysis.across_runs.leads_by_run import LeadInRun, LeadsByRun, leads_csv
from weighbridge.results.analysis.findings import Lead

CPU, DISKS = "the gateway’s CPU", "the stores’ disks"


def one(side: str, lead: Lead | None, *limits: str) -> LeadInRun:
    names = ("rgw-beast", "swift")
    given = dict(zip(names, limits, strict=False))
    return LeadInRun(run=side, hardware=f"lab-{side.lower()}", lead=lead, limits=given)


def leads(layout: str | None, margin: float = 1.0, *, doubted: bool = False) -> Lead:
    return Lead(layout=layout, margin=margin, doubts=(MILD,) if doubted else ())


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (
            one("A", leads("rgw-beast", 3.2), CPU, CPU),
            one("B", leads("swift", 1.4), DISKS, DISKS),
            (
                "rgw-beast leads by 3.2× on lab-a (A); swift leads by 1.4× on lab-b (B): who leads "
                f"depends on what limits ({CPU} on lab-a, {DISKS} on lab-b)"
            ),
        ),
        (
            one("A", leads("rgw-beast", 3.2), CPU, CPU),
            one("B", leads("swift", 1.4), CPU, CPU),
            (
                "rgw-beast leads by 3.2× on lab-a (A); swift leads by 1.4× on lab-b (B) "
                f"(limited by {CPU} on lab-a, {CPU} on lab-b)"
            ),
        ),
        (
            one("A", leads("rgw-beast", 3.2), CPU, DISKS),
            one("B", leads("swift", 1.4, doubted=True), DISKS),
            (
                "rgw-beast leads by 3.2× on lab-a (A); swift provisionally does more by 1.4× "
                f"on lab-b (B) (limited by {CPU} (rgw-beast) and {DISKS} (swift) on lab-a, "
                f"{DISKS} on lab-b)"
            ),
        ),
        (
            one("A", leads("rgw-beast", 3.2), CPU),
            one("B", leads("swift", 1.4), "nothing seen"),
            (
                "rgw-beast leads by 3.2× on lab-a (A); swift leads by 1.4× on lab-b (B) "
                f"(limited by {CPU} on lab-a, nothing seen on lab-b)"
            ),
        ),
        (
            one("A", leads(None)),
            one("B", None),
            "no layout leads on lab-a (A); not comparable on lab-b (B)",
        ),
    ],
)
def test_what_limits_is_named_as_deciding_only_where_leads_and_limits_both_differ(
    a: LeadInRun, b: LeadInRun, text: str
) -> None:
    assert LeadsByRun(about="64 kB reads", runs=(a, b)).text == f"64 kB reads: {text}"


def test_its_table_has_no_leader_where_none_may_be_named_and_the_doubts_where_there_are() -> None:
    both = LeadsByRun(
        about="64 kB reads",
        runs=(one("A", leads(None), CPU), one("B", leads("swift", 1.44, doubted=True))),
    )
    first, second = csv.DictReader(leads_csv([both]).splitlines())
    assert (first["leader"], first["margin"], first["limited_by"]) == ("", "", f"rgw-beast: {CPU}")
    assert (second["leader"], second["margin"], second["doubts"]) == ("swift", "1.44", MILD.words)
