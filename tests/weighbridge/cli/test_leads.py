"""`weighbridge compare-runs --leads`: who leads in two runs on different hardware."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from fake_run import fake_run
from tests.weighbridge.cli.compared_runs import SMALL, another, run
from weighbridge.common.errors import UsageError


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of five repeats in which rgw-beast is faster than swift."""
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[SMALL], telemetry=False).folder


def on_other_hardware(folder: Path, to: Path) -> Path:
    other = shutil.copytree(folder, to)
    plan = json.loads((other / "plan.resolved.json").read_text())
    plan["hardware"]["name"] = "lab-other"
    for host in plan["hardware"]["hosts"].values():
        host["cpus"] = 7.5
    (other / "plan.resolved.json").write_text(json.dumps(plan))
    return other


def test_runs_on_other_hardware_are_refused_but_their_leads_are_shown_side_by_side(
    run_folder: Path, tmp_path: Path
) -> None:
    other = on_other_hardware(run_folder, tmp_path / "other")
    with pytest.raises(UsageError, match="differ in what decides their figures"):
        run(run_folder, other)
    done = run(run_folder, other, "--leads", "--out", tmp_path / "out")
    assert done.return_value == 0
    (name,) = {json.loads((run_folder / "plan.resolved.json").read_text())["hardware"]["name"]}
    (line,) = [one for one in done.output.splitlines() if one.startswith("• ")]
    assert re.fullmatch(
        rf"• 1 MB reads: rgw-beast leads by \S+ on {name} \(A\); "
        r"rgw-beast leads by \S+ on lab-other \(B\)\.",
        line,
    )
    lines = (tmp_path / "out" / "leads.csv").read_text().splitlines()
    assert [one.split(",")[1:4] for one in lines[1:]] == [
        ["A", name, "rgw-beast"],
        ["B", "lab-other", "rgw-beast"],
    ]


def test_leads_are_not_shown_of_runs_that_differ_in_more_than_hardware(
    run_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="cache"):
        run(run_folder, another(tmp_path, 3, cache="none"), "--leads")
    with pytest.raises(UsageError, match="--leads can only be combined with"):
        run(run_folder, run_folder, "--leads", "--fail-on", "regression")
