"""Workloads that only list: when they are prepared, and how long that is expected to take."""

from __future__ import annotations

from pathlib import Path

import pytest

from stub_run import Run
from tests.weighbridge.conductor.test_measured_steps import Asked, QuietMachine
from weighbridge.conductor import pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.time_estimate import DRIVER_S, PREPARED_PER_S, units
from weighbridge.drivers.protocol import Prepare, Step

LISTED = {
    "name": "list-all",
    "objects": {"size": "0B", "containers": 2, "per_container": 8},
    "operations": {"list-all": 1},
    "workers": [1, 4],
    "runtime": "5s",
    "listed": {"deleted": ["0%", "25%"]},
}
PLAIN = {**LISTED, "name": "plain", "operations": {"head": 1}, "listed": None}


def test_what_deletes_anothers_objects_is_prepared_after_the_others_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    run = Run(tmp_path, cleanup="with-deployment", workloads=[LISTED, PLAIN])
    del run.planned[1:]
    monkeypatch.setattr(pass_runner, "opened", driver.opened)
    Conductor(run.plan(), run.planned, run.store(), QuietMachine(), run.place).run()
    asked = [
        (one.kind, one.workload.name) for one in driver.commands if isinstance(one, Prepare | Step)
    ]
    assert asked == [
        ("prepare", "list-all"),
        ("prepare", "plain"),
        *[("step", "list-all")] * 2,
        ("prepare", "list-all-25-deleted"),
        *[("step", "list-all-25-deleted")] * 2,
        *[("step", "plain")] * 2,
    ]
    planned = [
        (one.kind, one.work.split()[0])
        for one in units(run.plan())
        if one.kind in ("prepare", "step")
    ]
    assert planned == asked


def test_the_time_of_writing_and_of_deleting_a_share_is_expected(tmp_path: Path) -> None:
    many = {**LISTED, "objects": {"size": "0B", "containers": 1, "per_container": 100_000}}
    run = Run(tmp_path, cleanup="with-deployment", workloads=[many])
    del run.planned[1:]
    expected_s = [one.guess_s - DRIVER_S for one in units(run.plan()) if one.kind == "prepare"]
    assert expected_s == [100_000 / PREPARED_PER_S, 25_000 / PREPARED_PER_S]
