"""The recap of a study, on cases that can be computed on paper."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from chart_sources import texts_of
from compared_rows import GRAVE, MILD
from made_rows import altered, changed, made_point, made_points, made_row, made_workload, present
from weighbridge.results.features import conclusions as study_conclusions
from weighbridge.results.features.conclusions import ConclusionResult, conclusions
from weighbridge.results.features.study import Recap, change, recaps, study_maps
from weighbridge.results.figures.doubt import Doubt, PairDoubt
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Comparison
from weighbridge.suites import Bounds
from weighbridge.suites.studies import ConclusionCheck, Study, loader

READ = {"operations": {"read": 1}, "workers": (16,)}
WORKLOADS = (
    made_workload(4096, name="write-4k", operations={"write": 1}, workers=(16, 256)),
    made_workload(4096, name="seq-4k", pick="sequential", **READ),
    made_workload(4096, name="rand-4k", **READ),
    made_workload(4 << 20, name="write-4m", operations={"write": 1}, workers=(16,)),
)


def study(**more: Any) -> Study:
    table = {"title": "All", "down": ["workload"], "across": ["release"]}
    given = {
        "name": "made-up",
        "about": "Two releases on two stores",
        "source": {"author": "Nobody", "title": "Nothing", "date": "2012"},
        "variants": [
            {"name": f"{release}-{store}", "layout": "rgw-beast"}
            | {"factors": {"release": release, "store": store}}
            for release in ("old", "new")
            for store in ("xfs", "ext4")
        ],
        "labels": {"xfs": "XFS", "old": "Old", "new": "New"},
        "compares": [{"factor": "release", "baseline": "old", "against": ["new"]}],
        "tables": [{**table, "cells": {"throughput_ops_s": "op/s"}}],
        "scales": {"lab": {"about": ["Made up."], "suites": ["quick"]}},
    }
    return Study.model_validate({**given, **more})


def row(
    layout: str, workload: str, values: list[float], *, workers: int = 16, valid: bool = True
) -> Row:
    (one,) = (known for known in WORKLOADS if known.name == workload)
    (operation,) = one.operations
    return made_row(
        layout=layout,
        api="rados",
        driver="rados",
        workload=workload,
        operation=operation,
        object_size_bytes=one.objects.mean_bytes,
        workers=workers,
        repeats=len(values),
        throughput_ops_s=values[0] if values else None,
        valid=valid and bool(values),
        notes=() if values else ("not measured",),
        points=made_points(values, valid=valid),
    )


def one_map(rows: list[Row], **more: Any) -> Recap:
    (found,) = recaps(study(**more), rows, WORKLOADS)
    return found


def test_a_variants_workloads_are_compared_with_each_other_where_workload_is_the_factor() -> None:
    compares = [{"factor": "workload", "baseline": "seq-4k", "against": ["rand-4k"]}]
    rows = [
        row(layout, workload, [value] * 5)
        for layout, seq, rand in (("old-xfs", 100.0, 300.0), ("new-ext4", 50.0, 25.0))
        for workload, value in (("seq-4k", seq), ("rand-4k", rand), ("write-4k", 7.0))
    ]
    found = one_map(rows, compares=compares)
    assert found.title == "workload: seq-4k → rand-4k"
    assert [(cell.baseline, cell.layout, cell.workload) for cell in found.cells] == [
        ("old-xfs", "old-xfs", "seq-4k"),
        ("new-ext4", "new-ext4", "seq-4k"),
    ]
    assert [round(cell.percent or 0) for cell in found.cells] == [200, -50]


FIVE = [100.0, 101.0, 99.0, 100.0, 100.0]
HIGHER = [132.0, 134.0, 133.0, 135.0, 131.0]
SCATTERED = [100.0, 140.0, 80.0, 120.0, 105.0]


@pytest.mark.parametrize(
    ("after", "before", "ratio", "verdict"),
    [
        ([2.0, 8.0], [1.0, 4.0], 2.0, "provisional"),  # sqrt(2 * 8) = 4 and sqrt(1 * 4) = 2
        ([50.0], [100.0], 0.5, "provisional"),
        (HIGHER, FIVE, 1.33, "changed"),
        (HIGHER[:4], FIVE, 1.335, "provisional"),
        ([100.0, 150.0, 90.0, 160.0, 110.0], SCATTERED, 1.1, "same"),
        # Below five per cent it does not matter, however certain.
        ([103.0, 103.1, 102.9, 103.0, 103.0], [100.0, 100.1, 99.9, 100.0, 100.0], 1.03, "same"),
    ],
)
def test_a_change_is_the_ratio_of_geometric_means_if_it_is_certain_and_matters(
    after: list[float], before: list[float], ratio: float, verdict: str
) -> None:
    found, said = change(after, before)
    assert found.value == pytest.approx(ratio, rel=0.03)
    assert said == verdict
    assert found.shown or ratio != 1.03


def test_a_cell_significant_only_without_correction_is_no_change() -> None:
    before, after = [100.0, 101.0, 99.0, 100.0, 100.0], [107.0, 127.0, 109.0, 125.0, 117.0]
    (lone,) = one_map([row("old-xfs", "write-4k", before), row("new-xfs", "write-4k", after)]).cells
    assert 0.01 < present(lone.p) == lone.q < 0.05
    assert lone.verdict == "changed"
    others = [
        row(f"{release}-{store}", workload, before, workers=workers)
        for release in ("old", "new")
        for store in ("xfs", "ext4")
        for workload in ("write-4k", "seq-4k")
        for workers in (16, 32, 64)
        if (store, workload, workers) != ("xfs", "write-4k", 16)
    ]
    found = one_map(
        [row("old-xfs", "write-4k", before), row("new-xfs", "write-4k", after), *others]
    )
    wanted = ("new-xfs", "write-4k", 16)
    (cell,) = (one for one in found.cells if (one.layout, one.workload, one.workers) == wanted)
    assert cell.p == lone.p
    assert present(cell.q) > 0.05
    assert (cell.verdict, cell.text) == ("same", "~")


def test_one_repeat_makes_no_claim_and_says_so_in_every_cell() -> None:
    found = one_map([row("old-xfs", "write-4k", [100.0]), row("new-xfs", "write-4k", [134.0])])
    (cell,) = found.cells
    assert (cell.verdict, cell.text) == ("provisional", "(+34 %)")
    assert cell.percent == pytest.approx(34.0)
    near = one_map([row("old-xfs", "write-4k", [100.0]), row("new-xfs", "write-4k", [103.0])])
    assert near.cells[0].text == "(~)"


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (134.0, "+34 %"),
        (50.0, "\N{MINUS SIGN}50 %"),
        (299.0, "+199 %"),
        (450.0, "4.5×"),
        (104.0, "~"),
        (96.0, "~"),
    ],
)
def test_a_cell_reads_as_a_change_in_whole_per_cent_or_a_multiple(after: float, text: str) -> None:
    five = [0.999, 1.0, 1.001, 1.0, 1.0]
    rows = [
        row("old-xfs", "write-4k", [100.0 * one for one in five]),
        row("new-xfs", "write-4k", [after * one for one in five]),
    ]
    assert one_map(rows).cells[0].text == text


def test_cells_are_arranged_by_store_and_operation_and_by_size_and_workers() -> None:
    rows = [
        row(f"{release}-{store}", workload, [value], workers=workers)
        for release, value in (("old", 100.0), ("new", 200.0))
        for store in ("xfs", "ext4")
        for workload, workers in (
            ("write-4m", 16),
            ("write-4k", 256),
            ("write-4k", 16),
            ("seq-4k", 16),
            ("rand-4k", 16),
        )
    ]
    found = one_map(rows)
    assert found.title == "release: Old → New"
    assert found.across == ("4 KiB × 16", "4 KiB × 256", "4 MiB × 16")
    assert set(found.down) == {
        f"{store} · {kind}"
        for store in ("XFS", "ext4")
        for kind in ("write", "read, sequential", "read, random")
    }
    assert len(found.cells) == 10
    cells = {(cell.down, cell.across): cell for cell in found.cells}
    cell = cells["XFS · read, random", "4 KiB × 16"]
    assert (cell.baseline, cell.layout, cell.workload) == ("old-xfs", "new-xfs", "rand-4k")


def test_variants_that_differ_in_more_than_the_factor_are_not_compared() -> None:
    rows = [row("old-xfs", "write-4k", [100.0]), row("new-ext4", "write-4k", [134.0])]
    assert recaps(study(), rows, WORKLOADS) == ()


@pytest.mark.parametrize(
    "spoilt", [{"values": [100.0], "valid": False}, {"values": []}, {"values": [0.0]}]
)
def test_unmeasured_or_invalid_cells_are_a_cross(spoilt: dict[str, Any]) -> None:
    found = one_map([row("old-xfs", "write-4k", [100.0]), row("new-xfs", "write-4k", **spoilt)])
    (cell,) = found.cells
    assert (cell.verdict, cell.text, cell.percent) == ("missing", "×", None)
    assert cell.why
    (line,) = csv.DictReader(io.StringIO(study_maps([found]).csv))
    assert (line["change_percent"], line["repeats"], line["verdict"]) == ("", "", "missing")


def test_each_level_has_its_own_map() -> None:
    compares = [
        {"factor": "store", "baseline": "xfs", "against": ["ext4"]},
        *[one.model_dump() for one in study().compares],
    ]
    rows = [
        row(name, "write-4k", [100.0]) for name in ("old-xfs", "old-ext4", "new-xfs", "new-ext4")
    ]
    assert [one.title for one in recaps(study(compares=compares), rows, WORKLOADS)] == [
        "store: XFS → ext4",
        "release: Old → New",
    ]


def test_the_map_is_drawn_with_text_in_each_cell_and_has_a_csv() -> None:
    rows = [
        row("old-xfs", "write-4k", [100.0]),
        row("new-xfs", "write-4k", [250.0]),
        row("old-ext4", "write-4k", [100.0]),
        row("new-ext4", "write-4k", [], valid=False),
    ]
    chart = study_maps(recaps(study(), rows, WORKLOADS))
    words = texts_of(chart)
    assert {
        "(+150 %)",
        "×",
        "XFS · write",
        "ext4 · write",
        "4 KiB × 16",
        "split(datum.label, ' × ')",  # on two lines
        "release: Old → New",
    } <= set(words)
    assert any(word.startswith("What was measured in 1 comparison") for word in words)
    lines = list(csv.DictReader(chart.csv.splitlines()))
    assert [line["change_percent"][:6] for line in lines] == ["149.99", ""]


def test_a_cell_with_a_claim_is_drawn_stronger() -> None:
    five = [0.999, 1.0, 1.001, 1.0, 1.0]
    rows = [
        row("old-xfs", "write-4k", [100.0 * one for one in five]),
        row("new-xfs", "write-4k", [200.0 * one for one in five]),
        row("old-ext4", "write-4k", [100.0]),
        row("new-ext4", "write-4k", [200.0]),
    ]
    chart = study_maps(recaps(study(), rows, WORKLOADS))
    tones = {row["kind"]: row["_tone"] for row in chart.panels[0].rows}
    assert tones["XFS · write"] > tones["ext4 · write"] > 0
    assert chart.finding.startswith("Of 2 comparisons 1 became faster and 0 slower; ")


SHIPPED = {name: loader.load(path)[1] for name, path in loader.shipped().items()}
STUDY_2014 = SHIPPED["swift-vs-rgw-read-2014"]
SCATTER = (0.99, 1.0, 1.01, 0.995, 1.005)
OTHER = (1.005, 0.99, 0.995, 1.01, 1.0)
"""Each repeat relative to the row's figure: two uncorrelated series."""


def row_of(variant: str, workload: str, workers: int, throughput: float, **changed: Any) -> Row:
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


def concluding(*checks: dict[str, Any]) -> Study:
    """The study of 2014 with one conclusion of these checks."""
    one = {"id": "one", "says": "So it is.", "checks": checks}
    return altered(
        STUDY_2014,
        conclusions=Study.model_validate_json(
            json.dumps({**STUDY_2014.model_dump(mode="json"), "conclusions": [one]})
        ).conclusions,
    )


def concluded(rows: Sequence[Row], *checks: dict[str, Any]) -> ConclusionResult:
    (found,) = conclusions(concluding(*checks), STUDY_2014.scales["lab"], rows, Bounds())
    return found


def cells(expect: str, **more: Any) -> dict[str, Any]:
    """Swift vs civetweb in small reads at the study's 32 workers, which is one here."""
    of = {"variants": ["swift"], "workloads": ["small-read"], "workers": [32]}
    return {"expect": expect, "of": of, "than": {"variants": ["rgw-civetweb"]}, **more}


def two(swift: float, rgw: float, **changed: Any) -> list[Row]:
    return [
        row_of("swift", "small-read", 1, swift, **changed),
        row_of("rgw-civetweb", "small-read", 1, rgw, scatter=OTHER),
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
        concluded([*rows, row_of("rgw-apache-fastcgi", "small-read", 1, 100)], both).verdict
        == "supports"
    )
    found = concluded([*rows, row_of("rgw-apache-fastcgi", "small-read", 1, 300)], both)
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


def test_layouts_with_different_hosts_are_not_compared() -> None:
    doubt = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    differing = PairDoubt(layouts=("rgw-civetweb", "swift"), doubt=doubt)
    made = concluding(cells("better"))
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
        row_of("swift", "small-read", workers, throughput)
        for workers, throughput in ((1, 100.0), (32, 400.0))
    )
    found = concluded([few, many], grows)
    assert found.verdict == "supports"
    assert "at 32 workers (study: 512) has 4.0× the throughput of 1 worker (study: 32)" in found.why
    assert concluded([few, row_of("swift", "small-read", 32, 60.0)], grows).verdict == "contradicts"


def test_requests_of_other_sizes_are_compared_by_their_bytes() -> None:
    rows = [
        row_of("rgw-civetweb", name, 8, ops, size=size)
        for name, ops, size in (("rados-1m", 100, 2**20), ("rados-4m", 50, 2**22))
    ]
    of = {"variants": ["rgw-civetweb"], "workloads": ["rados-4m"], "workers": [128]}
    larger = cells("better", metric="bandwidth", of=of, than={"workloads": ["rados-1m"]})
    assert "2.0× the bandwidth of rados-1m" in concluded(rows, larger).why
    assert concluded(rows, larger).verdict == "supports"
    assert concluded(rows, {**larger, "metric": "throughput"}).verdict == "contradicts"
    unknown = [changed(one, bandwidth_mb_s=None) for one in rows]
    assert concluded(unknown, larger).why.endswith("bandwidth unknown.")


def test_all_cells_of_conclusions_are_corrected_together(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    compare = study_conclusions.compare

    def counted(rows: Sequence[Row], *, bounds: Bounds) -> Comparison:
        compared.append(len(rows))
        return compare(rows, bounds=bounds)

    monkeypatch.setattr(study_conclusions, "compare", counted)
    rows = [
        row_of(name, "small-read", workers, 100.0)
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
        row_of(one.name, workload.name, workers, 100.0)
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
        concluding(cells("better", than={"variants": ["swif"]}))
