"""Workloads that only list: when they are prepared, and where names come without objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stub_run import Run, StubGateway, StubRunning
from tests.weighbridge.conductor.test_measured_steps import Asked, QuietMachine
from weighbridge.common.errors import TargetError
from weighbridge.conductor import pass_runner
from weighbridge.conductor.clearing import buckets_of
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.time_estimate import DRIVER_S, NAMES_PER_S, PREPARED_PER_S, units
from weighbridge.drivers.protocol import Prepare, Step
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.store import RunStore

LISTED = {
    "name": "list-all",
    "objects": {"size": "0B", "containers": 2, "per_container": 8},
    "operations": {"list-all": 1},
    "workers": [1, 4],
    "runtime": "5s",
    "listed": {"names_only": True, "deleted": ["0%", "25%"]},
}
PLAIN = {**LISTED, "name": "plain", "operations": {"head": 1}, "listed": None}
SUITE = {"cleanup": "with-deployment", "workloads": [LISTED, PLAIN]}


def conduct(folder: Path, patch: pytest.MonkeyPatch, driver: Asked) -> tuple[Run, RunStore]:
    run = Run(folder, **SUITE)
    patch.setattr(pass_runner, "opened", driver.opened)
    store = run.store()
    Conductor(run.plan(), run.planned[:1], store, QuietMachine(), run.place).run()
    return run, store


def asked(driver: Asked) -> list[tuple[str, str, bool]]:
    return [
        (
            one.kind,
            one.workload.name,
            one.first_alone if isinstance(one, Prepare) else False,
        )
        for one in driver.commands
        if isinstance(one, Prepare | Step)
    ]


@pytest.fixture
def one_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first of the two layouts."""
    start = Run.__init__

    def one(self: Run, folder: Path, **suite: Any) -> None:
        start(self, folder, **suite)
        del self.planned[1:]

    monkeypatch.setattr(Run, "__init__", one)


@pytest.mark.usefixtures("one_layout")
def test_what_deletes_anothers_objects_is_prepared_after_the_others_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Asked()
    run, store = conduct(tmp_path, monkeypatch, driver)
    steps = [("step", "list-all", False)] * 2
    later = [("step", "list-all-25-deleted", False)] * 2
    assert asked(driver) == [
        ("prepare", "list-all", False),
        ("prepare", "plain", False),
        *steps,
        ("prepare", "list-all-25-deleted", False),
        *later,
        *[("step", "plain", False)] * 2,
    ]
    assert not [event for event in store.events() if event.kind == "names only"]
    planned = [
        (one.kind, one.work.split()[0])
        for one in units(run.plan())
        if one.kind in ("prepare", "step")
    ]
    assert planned == [(kind, name) for kind, name, _ in asked(driver)]


@pytest.mark.usefixtures("one_layout")
def test_a_store_that_takes_names_gets_them_and_its_rows_are_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[tuple[str, int, int]] = []

    def put_names(
        self: StubRunning, container: str, names: Sequence[str], gone: Sequence[str]
    ) -> str:
        put.append((container, len(names), len(gone)))
        assert set(gone) <= set(names)
        assert names[0] == "object-0000000000"
        return "rows of a table"

    monkeypatch.setattr(StubGateway, "takes_names", True)
    monkeypatch.setattr(StubRunning, "put_names", put_names)
    driver = Asked()
    run, store = conduct(tmp_path, monkeypatch, driver)
    alone = [one for one in asked(driver) if one[0] == "prepare" and one[2]]
    assert [name for _, name, _ in alone] == ["list-all", "list-all-25-deleted"]
    prefix = f"wb-{store.manifest.run_id.rsplit('-', 1)[-1]}-list-all"
    assert put == [(f"{prefix}-{one}", 8, gone) for gone in (0, 2) for one in range(2)]
    assert {one for one, _, _ in put} < set(buckets_of(run.plan(), prefix[: -len("-list-all")]))
    rows = RunData(store.folder).rows
    doubted = {
        row.workload for row in rows if "names without objects" in [one.what for one in row.doubts]
    }
    assert doubted == {"list-all", "list-all-25-deleted"}


@pytest.mark.usefixtures("one_layout")
def test_the_time_of_objects_is_expected_of_a_store_that_takes_no_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {**LISTED, "objects": {"size": "0B", "containers": 1, "per_container": 100_000}}

    def expected_s(folder: str) -> list[float]:
        plan = Run(tmp_path / folder, cleanup="with-deployment", workloads=[many]).plan()
        return [one.guess_s - DRIVER_S for one in units(plan) if one.kind == "prepare"]

    assert expected_s("objects") == [100_000 / PREPARED_PER_S, 25_000 / PREPARED_PER_S]
    monkeypatch.setattr(StubGateway, "takes_names", True)
    assert expected_s("names") == [100_000 / NAMES_PER_S] * 2, "all names are gone through again"


@pytest.mark.usefixtures("one_layout")
def test_names_that_cannot_be_put_end_their_workload_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put_names(
        self: StubRunning, container: str, names: Sequence[str], gone: Sequence[str]
    ) -> str:
        raise TargetError("the databases list nothing")

    monkeypatch.setattr(StubGateway, "takes_names", True)
    monkeypatch.setattr(StubRunning, "put_names", put_names)
    _, store = conduct(tmp_path, monkeypatch, Asked())
    steps = {(one.key.workload, one.key.workers): one for one in store.steps()}
    lost = [key for key, step in steps.items() if step.measurement is None]
    assert {name for name, _ in lost} == {"list-all", "list-all-25-deleted"}
    assert any(
        "the databases list nothing" in note for step in steps.values() for note in step.notes
    )
