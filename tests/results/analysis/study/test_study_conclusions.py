"""A study's conclusions checked by rows of a replay: supported, contradicted, or undecided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from compared_rows import GRAVE, MILD
from made_rows import altered, changed, made_point, made_row
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study import study_conclusions
from weighbridge.results.analysis.study.study_conclusions import ConclusionResult, conclusions
from weighbridge.results.doubt import Doubt, PairDoubt
from weighbridge.suites import Bounds
from weighbridge.suites.studies import ConclusionCheck, Study, loader

SHIPPED = {name: loader.load(path)[1] for name, path in loader.shipped().items()}
STUDY_2014 = SHIPPED["swift-vs-rgw-read-2014"]
SCATTER = (0.99, 1.0, 1.01, 0.995, 1.005)
OTHER = (1.005, 0.99, 0.995, 1.01, 1.0)
"""Each repeat relative to the row's figure: two uncorrelated series."""


def row(variant: str, workload: str, workers: int, throughput: float, **changed: Any) -> Row:
    """A row with a repeat per number of `scatter`; p90 is the inverse of throughput."""
    scatter = changed.pop("scatter", SCATTER)
    size = changed.pop("size", 1e6)
    points = tuple(
        made_point(
            repeat=number,
            valid=True,
            steady=True,
            throughput_ops_s=throughput * part,
            bandwidth_mb_s=throughput * part * size / 1e6,
            p90_ms=1000 * workers / (throughput * part),
            max_ms=3000 * workers / throughput,
            samples=1000,
            errors=0,
        )
        for number, part in enumerate(scatter)
    )
    known = {
        "layout": variant,
        "workload": workload,
        "object_size_bytes": size,
        "workers": workers,
        "repeats": len(points),
        "throughput_ops_s": throughput,
        "bandwidth_mb_s": throughput * size / 1e6,
        "p90_ms": 1000 * workers / throughput,
        "max_ms": 3000 * workers / throughput,
        "valid": True,
        "steady": True,
        "points": points,
    }
    return made_row(**{**known, **changed})


def study(*checks: dict[str, Any]) -> Study:
    """The study of 2014 with one conclusion of these checks."""
    one = {"id": "one", "says": "So it is.", "checks": checks}
    return altered(
        STUDY_2014,
        conclusions=Study.model_validate_json(
            json.dumps({**STUDY_2014.model_dump(mode="json"), "conclusions": [one]})
        ).conclusions,
    )


def concluded(rows: Sequence[Row], *checks: dict[str, Any]) -> ConclusionResult:
    (found,) = conclusions(study(*checks), STUDY_2014.scales["lab"], rows, Bounds())
    return found


def cells(expect: str, **more: Any) -> dict[str, Any]:
    """Swift vs civetweb in small reads at the study's 32 workers, which is one here."""
    of = {"variants": ["swift"], "workloads": ["small-read"], "workers": [32]}
    return {"expect": expect, "of": of, "than": {"variants": ["rgw-civetweb"]}, **more}


def two(swift: float, rgw: float, **changed: Any) -> list[Row]:
    return [
        row("swift", "small-read", 1, swift, **changed),
        row("rgw-civetweb", "small-read", 1, rgw, scatter=OTHER),
    ]


@pytest.mark.parametrize(
    ("expect", "swift", "verdict"),
    [
        ("better", 200.0, "supports"),
        ("better", 101.0, "contradicts"),  # equivalent
        ("better", 50.0, "contradicts"),
        ("not-better", 50.0, "supports"),
        ("not-better", 115.0, "supports"),  # within 1.25
        ("not-better", 200.0, "contradicts"),
        ("alike", 115.0, "supports"),
        ("alike", 87.0, "supports"),
        ("alike", 200.0, "contradicts"),
        ("alike", 50.0, "contradicts"),
        ("alike", 125.0, "cannot tell"),  # the interval has the factor in it
    ],
)
def test_claims_support_or_contradict_what_is_expected_of_two_cells(
    expect: str, swift: float, verdict: str
) -> None:
    assert concluded(two(swift, 100), cells(expect)).verdict == verdict


def test_a_lower_latency_is_better() -> None:
    assert concluded(two(200, 100), cells("better", metric="p90")).verdict == "supports"
    assert concluded(two(50, 100), cells("better", metric="p90")).verdict == "contradicts"


def test_one_opposite_cell_contradicts_whatever_the_others_say() -> None:
    both = cells("better", than={"variants": ["rgw-civetweb", "rgw-apache-fastcgi"]})
    rows = two(200, 100)
    assert concluded(rows, both).verdict == "cannot tell"
    assert "not measured in this run" in concluded(rows, both).why
    assert (
        concluded([*rows, row("rgw-apache-fastcgi", "small-read", 1, 100)], both).verdict
        == "supports"
    )
    found = concluded([*rows, row("rgw-apache-fastcgi", "small-read", 1, 300)], both)
    assert found.verdict == "contradicts"
    assert found.why.startswith("1 of 2 cells says the opposite: Swift-Native in small-read at 1 ")
    assert "0.67× the throughput of RGW-Apache" in found.why


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"scatter": (1.0,)}, "few repeats"),
        ({"scatter": (0.2, 5.0, 1.0, 0.4, 2.5)}, "no difference found"),
        ({"valid": False, "notes": ("not valid",)}, "Swift-Native: not valid"),
        ({"steady": False, "notes": ("not steady",)}, "Swift-Native: not steady"),
    ],
)
def test_cells_without_claims_neither_support_nor_contradict(
    changed: dict[str, Any], why: str
) -> None:
    for swift in (50, 200):
        for expect in ("better", "not-better", "alike"):
            found = concluded(two(swift, 100, **changed), cells(expect))
            assert found.verdict == "cannot tell"
            assert why in found.why


@pytest.mark.parametrize(
    "verdict", ["provisional", "not comparable", "not significant", "no such word yet"]
)
def test_a_verdict_without_a_claim_decides_nothing_whatever_the_ratio(
    monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    compare = study_conclusions.compare

    def doubted(rows: Sequence[Row], *, bounds: Bounds) -> Comparison:
        found = compare(rows, bounds=bounds)
        return altered(found, effects=tuple(altered(one, verdict=verdict) for one in found.effects))

    monkeypatch.setattr(study_conclusions, "compare", doubted)
    assert {
        concluded(two(200, 100), cells(expect)).verdict
        for expect in ("better", "not-better", "alike")
    } == {"cannot tell"}


def test_layouts_with_different_hosts_are_not_compared() -> None:
    doubt = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    differing = PairDoubt(layouts=("rgw-civetweb", "swift"), doubt=doubt)
    made = study(cells("better"))
    (found,) = conclusions(made, made.scales["lab"], two(200, 100), Bounds(), [differing])
    assert found.verdict == "cannot tell"
    assert found.why.endswith(": hosts differ.")


def test_a_mild_doubt_about_a_row_is_reported_and_decides_nothing() -> None:
    for doubt, why in ((MILD, "nothing: machine busy."), (GRAVE, "Swift-Native: machine busy.")):
        found = concluded(two(200, 100, doubts=(doubt,)), cells("better"))
        assert found.verdict == "cannot tell"
        assert found.why.endswith(why)


def test_a_layout_is_compared_with_itself_at_another_number_of_workers() -> None:
    grows = cells(
        "better",
        of={"variants": ["swift"], "workloads": ["small-read"], "workers": [512]},
        than={"workers": [32]},
    )
    few, many = (
        row("swift", "small-read", workers, throughput)
        for workers, throughput in ((1, 100.0), (32, 400.0))
    )
    found = concluded([few, many], grows)
    assert found.verdict == "supports"
    assert "at 32 workers (study: 512) has 4.0× the throughput of 1 worker (study: 32)" in found.why
    assert concluded([few, row("swift", "small-read", 32, 60.0)], grows).verdict == "contradicts"


def test_requests_of_other_sizes_are_compared_by_their_bytes() -> None:
    rows = [
        row("rgw-civetweb", name, 8, ops, size=size)
        for name, ops, size in (("rados-1m", 100, 2**20), ("rados-4m", 50, 2**22))
    ]
    of = {"variants": ["rgw-civetweb"], "workloads": ["rados-4m"], "workers": [128]}
    larger = cells("better", metric="bandwidth", of=of, than={"workloads": ["rados-1m"]})
    assert "2.0× the bandwidth of rados-1m" in concluded(rows, larger).why
    assert concluded(rows, larger).verdict == "supports"
    assert concluded(rows, {**larger, "metric": "throughput"}).verdict == "contradicts"
    unknown = [changed(one, bandwidth_mb_s=None) for one in rows]
    assert concluded(unknown, larger).why.endswith("bandwidth unknown.")


def test_all_cells_of_the_conclusions_are_corrected_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    compare = study_conclusions.compare

    def counted(rows: Sequence[Row], *, bounds: Bounds) -> Comparison:
        compared.append(len(rows))
        return compare(rows, bounds=bounds)

    monkeypatch.setattr(study_conclusions, "compare", counted)
    rows = [
        row(name, "small-read", workers, 100.0)
        for name in ("swift", "rgw-civetweb")
        for workers in (1, 4)
    ]
    twice = {"variants": ["swift"], "workloads": ["small-read"], "workers": [32, 64]}
    concluded(rows, cells("better"), cells("alike", of=twice))
    assert compared == [4]  # two pairs; the one that is asked for twice is tested once


def test_the_replay_of_2014_measures_every_cell_of_the_studys_nine_conclusions() -> None:
    assert len(STUDY_2014.conclusions) == 9
    lab = STUDY_2014.scales["lab"]
    workloads = [*loader.suite_of(STUDY_2014, "lab").workloads, *lab.beneath]
    rows = [
        row(one.name, workload.name, workers, 100.0)
        for one in STUDY_2014.variants
        for workload in workloads
        for workers in workload.workers
    ]
    seen = [cell for one in conclusions(STUDY_2014, lab, rows, Bounds()) for cell in one.cells]
    assert len(seen) > 50
    assert not [cell.text for cell in seen if "not measured" in cell.text]
    full = STUDY_2014.scales["full"]
    own = [*loader.suite_of(STUDY_2014, "full").workloads, *full.beneath]
    named = {
        (workload, workers)
        for one in STUDY_2014.conclusions
        for check in one.checks
        for workload in (*check.of.workloads, *check.than.workloads)
        for workers in check.of.workers
    }
    assert named <= {(workload.name, workers) for workload in own for workers in workload.workers}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"of": {"variants": ["swift"], "workloads": ["small-read"]}}, "of: workers must be named"),
        ({"than": {}}, "than: at least one of variants, workloads and workers must be named"),
    ],
)
def test_an_incomplete_check_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConclusionCheck.model_validate(cells("better") | changed)


def test_a_conclusion_about_an_unknown_variant_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"conclusion one: no variant 'swif' \(did you mean 'swift'\?\)"
    ):
        study(cells("better", than={"variants": ["swif"]}))
