"""The signs of trust of a run in whose every step something died."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_outages import AT, SILENT, outage_run
from fake_run import StepFaults, fake_run
from made_rows import altered
from weighbridge.results.analysis.outages import OutageKind, OutageRow, Outages
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.trust import TrustSign, outage_trust
from weighbridge.results.record.store import RunStore


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return RunData(outage_run(tmp_path_factory.mktemp("runs")).folder)


def signs(outages: Outages, kind: str = "lab") -> dict[str, TrustSign]:
    found = outage_trust(kind, ("rgw-beast", "swift"), outages, ())
    return {one.title: one for one in found}


def changed(data: RunData, **of_row: object) -> Outages:
    """The outages with the first layout's row changed."""
    (kind,) = data.outages.kinds
    first, *others = kind.rows
    row = first.model_copy(update=of_row)
    return Outages(kinds=(altered(kind, rows=(row, *others)),))


def of_points(one: OutageRow, **of_point: object) -> dict[str, object]:
    points = tuple(point.model_copy(update=of_point) for point in one.row.points)
    return {"row": altered(one.row, points=points)}


def test_a_degrade_run_has_all_signs_and_those_not_recorded_are_not_good(data: RunData) -> None:
    found = signs(data.outages)
    assert {name: (one.state, one.words) for name, one in found.items()} == {
        "Hosts": ("unknown", "not attested"),
        "Machine": ("good", "quiet"),
        "Steady": ("good", "yes, until the fault"),
        "Load generator": ("good", "had room"),
        "Repeats": ("good", "n = 5"),
        "A/A control": ("unknown", "not measured"),
        "Errors": ("good", "none before"),
    }
    assert found["Errors"].detail.endswith(" after it")
    assert signs(data.outages, "ssh")["Machine"].state == "unknown"
    first = data.outages.rows[0].row
    blind = signs(changed(data, row=altered(first, resources=())))["Load generator"]
    assert (blind.state, blind.words) == ("unknown", "not known in 1 of 2")


def test_a_rate_that_was_not_steady_until_the_fault_is_told(data: RunData) -> None:
    (kind,) = data.outages.kinds
    (first, *_) = kind.rows
    assert all(point.steady_before for point in first.row.used)
    for steady, sign in (
        (False, ("bad", "not in 1 of 2")),
        (None, ("unknown", "not known in 1 of 2")),
    ):
        found = signs(changed(data, **of_points(first, steady_before=steady)))["Steady"]
        assert (found.state, found.words) == sign


def test_what_the_seconds_before_the_fault_were_like_decides_whether_it_was_steady(
    tmp_path: Path,
) -> None:
    store = outage_run(tmp_path)
    for step in store.steps():
        measured = step.measurement
        assert measured is not None
        seconds = tuple(
            altered(one, count=one.count // 4) if one.second < AT / 3 else one
            for one in measured.seconds
        )
        update = {"measurement": altered(measured, seconds=seconds)}
        store.append(step.model_copy(update=update))
    found = signs(RunData(store.folder).outages)["Steady"]
    assert (found.state, found.words) == ("bad", "not in 2 of 2")


def test_requests_that_failed_before_the_fault_are_a_doubt_and_later_ones_are_not(
    data: RunData,
) -> None:
    (kind,) = data.outages.kinds
    (first, *_) = kind.rows
    early = tuple(altered(one, errors_s=0.4) if one.second == 3 else one for one in first.seconds)
    found = signs(changed(data, seconds=early))["Errors"]
    assert (found.state, found.words) == ("doubt", "2")
    found = signs(changed(data, seconds=()))["Errors"]
    assert (found.state, found.words) == ("unknown", "not recorded in 1 of 2")


def test_what_was_not_measured_is_an_error_and_without_any_figure_there_is_no_sign(
    tmp_path: Path,
) -> None:
    lost = StepFaults(absent=(("swift", "host-silent", 8),))
    store: RunStore = fake_run(tmp_path, workloads=[SILENT], spoilt=lost)
    found = signs(RunData(store.folder).outages)["Errors"]
    assert (found.state, found.words) == ("bad", "1 of 2 results not valid")
    empty = Outages(kinds=(OutageKind(key="k", about="", rows=()),))
    assert outage_trust("lab", (), empty, ()) == ()
