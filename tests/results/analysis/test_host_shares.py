"""Layouts that do not use as many hosts, or as much CPU, are said to."""

from __future__ import annotations

import html
import json
from pathlib import Path

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results import derive
from weighbridge.results.analysis.host_shares import host_shares, unequal_shares
from weighbridge.results.charts.chart_theme import LIGHT
from weighbridge.results.record.resolved import PlannedHost, ResolvedPlan
from weighbridge.results.record.store import RunStore
from weighbridge.results.slides.evidence import evidence
from weighbridge.results.slides.setup import setup

SHORT = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
LIMITS = {"client-1": 0.5, "gateway-1": 0.6, "store-1": 0.3, "store-2": 0.3, "store-3": 0.3}
WORDS = (
    "Layouts do not have the same CPU or number of hosts: rgw-beast has 1.5 CPUs of 4 hosts; swift "
    "has 0.3 CPUs of 1 host. Their results differ for that reason, too."
)


def planned(plan: ResolvedPlan, *, alone: bool = True, **changes: object) -> ResolvedPlan:
    """With limits of CPU, and one layout on one host only."""
    hosts = {
        name: PlannedHost.model_validate({"cpus": cpus, **changes}) for name, cpus in LIMITS.items()
    }
    structures = dict(plan.structures)
    if alone:
        one = {"entrances": ("store-1",), "gateways": ("store-1",), "stores": ("store-1",)}
        structures["swift"] = structures["swift"].model_copy(update=one)
    hardware = altered(plan.hardware, hosts=hosts)
    return altered(plan, hardware=hardware, structures=structures)


def test_layouts_with_less_cpu_are_named_with_what_each_has(runs: Path) -> None:
    plan = fake_run(runs, workloads=[SHORT], repeats=1).plan()
    assert unequal_shares(planned(plan)) == (WORDS,)
    assert unequal_shares(planned(plan, alone=False)) == ()
    # A control is no other layout.
    swift = {"layouts": plan.layouts, "twins": {"swift": "rgw-beast"}}
    assert unequal_shares(planned(plan.model_copy(update=swift))) == ()


def test_cpus_of_its_own_count_as_many_and_a_host_without_a_limit_as_unknown(runs: Path) -> None:
    plan = fake_run(runs, workloads=[SHORT], repeats=1).plan()
    own = host_shares(planned(plan, cpus=None, cpuset="0-1,4"))
    assert [one.words for one in own] == ["12 CPUs of 4 hosts", "3 CPUs of 1 host"]
    free = host_shares(planned(plan, cpus=None))
    assert [one.words for one in free] == ["4 hosts", "1 host"]


def test_the_report_the_terminal_and_the_slides_say_that_layouts_do_not_share_alike(
    runs: Path,
) -> None:
    run = fake_run(runs, workloads=[SHORT], repeats=1)
    path = run.folder / "plan.resolved.json"
    path.write_text(json.dumps(planned(run.plan()).model_dump(mode="json")))
    derived = derive(run.folder, pictures=False)
    assert WORDS in derived.hosts
    page = html.unescape(derived.report.read_text())
    assert page.index(WORDS) < page.index('id="findings"')
    assert "gateway-1, store-1, store-2, store-3" in page
    cells = [
        cell.text
        for slide in setup(evidence(RunStore.open(run.folder)), LIGHT)
        if slide.grid is not None
        for line in slide.grid.lines
        for cell in line
    ]
    assert "0.3 CPUs of 1 host" in cells
