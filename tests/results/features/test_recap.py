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
from weighbridge.results.features.conclusions import ConclusionResult, conclusions
from weighbridge.results.features.study import Recap, recaps, study_maps
from weighbridge.results.figures.doubt import Doubt, PairDoubt
from weighbridge.results.figures.summary import Row
from weighbridge.results.show.chart import Chart
from weighbridge.suites import Bounds, Suite
from weighbridge.suites.studies import ConclusionCheck, Study, loader

READ = {"operations": {"read": 1}, "workers": (16,)}
WORKLOADS = (
    made_workload(4096, name="write-4k", operations={"write": 1}, workers=(16, 256)),
    made_workload(4096, name="seq-4k", pick="sequential", **READ),
    made_workload(4096, name="rand-4k", **READ),
    made_workload(4 << 20, name="write-4m", operations={"write": 1}, workers=(16,)),
)
SUITE = Suite(name="made-up", about="Made up.", workloads=WORKLOADS)


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
    (found,) = recaps(study(**more), rows, SUITE)
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
    effects = [cell.effect for cell in found.cells]
    assert [(one.baseline, one.subject, one.workload) for one in effects] == [
        ("old-xfs", "old-xfs", "seq-4k"),
        ("new-ext4", "new-ext4", "seq-4k"),
    ]
    assert [present(effect.ratio).value for effect in effects] == pytest.approx([3, 0.5])


FIVE = [100.0, 101.0, 99.0, 100.0, 100.5]
HIGHER = [132.0, 134.0, 133.0, 135.0, 131.0]
WIDE = [130.0, 112.0, 132.0, 114.0, 122.0]


def texts_of_map(chart: Chart) -> list[tuple[str, str]]:
    """Of each cell the verdict and its text, as drawn."""
    return [(row["verdict"], row["_text"]) for panel in chart.panels for row in panel.rows]


@pytest.mark.parametrize(
    ("after", "verdict", "text"),
    [
        (HIGHER, "better", "+33 %"),
        ([one / 2 for one in FIVE], "worse", "\N{MINUS SIGN}50 %"),
        ([one * 4.5 for one in FIVE], "better", "4.5×"),
        (HIGHER[:4], "provisional", "(+33 %)"),
        ([134.0], "provisional", "(+34 %)"),
        ([100.0, 150.0, 90.0, 160.0, 110.0], "not significant", "~"),
        # Below five per cent it does not matter, however certain.
        ([103.0, 103.1, 102.9, 103.0, 103.0], "too small to matter", "+3 %"),
        ([], "not comparable", "×"),
        ([0.0] * 5, "not comparable", "×"),
    ],
)
def test_a_cell_is_judged_and_worded_as_those_of_a_comparison(
    after: list[float], verdict: str, text: str
) -> None:
    found = one_map([row("old-xfs", "write-4k", FIVE), row("new-xfs", "write-4k", after)])
    chart = study_maps([found])
    assert texts_of_map(chart) == [(verdict, text)]
    (line,) = csv.DictReader(io.StringIO(chart.csv))
    assert (line["change_percent"] == "") == (text == "×")
    assert bool(line["why"]) == (verdict in ("provisional", "not comparable"))


def test_a_cell_significant_only_without_correction_is_no_change() -> None:
    rows = [row("old-xfs", "write-4k", FIVE), row("new-xfs", "write-4k", WIDE)]
    (lone,) = one_map(rows).cells
    assert 0.005 < present(lone.effect.q) < 0.05
    assert lone.effect.verdict == "better"
    others = [
        row(f"{release}-{store}", workload, FIVE, workers=workers)
        for release in ("old", "new")
        for store in ("xfs", "ext4")
        for workload in ("write-4k", "seq-4k")
        for workers in (16, 32, 64)
        if (store, workload, workers) != ("xfs", "write-4k", 16)
    ]
    effects = [cell.effect for cell in one_map([*rows, *others]).cells]
    (effect,) = (one for one in effects if one.ratio is not None and one.ratio.value > 1.1)
    assert effect.p == lone.effect.p
    assert present(effect.q) > 0.05
    assert effect.verdict == "not significant"


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
    sides = (cell.effect.baseline, cell.effect.subject, cell.effect.workload)
    assert sides == ("old-xfs", "new-xfs", "rand-4k")


def test_variants_that_differ_in_more_than_the_factor_are_not_compared() -> None:
    rows = [row("old-xfs", "write-4k", [100.0]), row("new-ext4", "write-4k", [134.0])]
    assert recaps(study(), rows, SUITE) == ()


def test_each_level_has_its_own_map() -> None:
    compares = [
        {"factor": "store", "baseline": "xfs", "against": ["ext4"]},
        *[one.model_dump() for one in study().compares],
    ]
    rows = [
        row(name, "write-4k", [100.0]) for name in ("old-xfs", "old-ext4", "new-xfs", "new-ext4")
    ]
    assert [one.title for one in recaps(study(compares=compares), rows, SUITE)] == [
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
    chart = study_maps(recaps(study(), rows, SUITE))
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


def test_only_a_claim_has_a_colour() -> None:
    rows = [
        row(f"{release}-{store}", "write-4k", values)
        for store, count in (("xfs", 5), ("ext4", 1))
        for release, values in (("old", FIVE[:count]), ("new", HIGHER[:count]))
    ]
    chart = study_maps(recaps(study(), rows, SUITE))
    tones = {row["kind"]: row["_tone"] for row in chart.panels[0].rows}
    assert (tones["XFS · write"] > 0, tones["ext4 · write"]) == (True, None)
    assert chart.finding.startswith("Of 2 comparisons 1 became faster and 0 slower, 0 changed ")


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


def test_all_cells_of_conclusions_are_corrected_together() -> None:
    rows = [
        row_of("swift", "small-read", 1, 113.0, scatter=(0.94, 1.0, 1.06, 0.97, 1.03)),
        row_of("rgw-civetweb", "small-read", 1, 100.0, scatter=OTHER),
        *(row_of(name, "small-read", 4, 100.0) for name in ("swift", "rgw-civetweb")),
    ]
    alone, other = cells("better"), cells("alike")
    other["of"] = {**other["of"], "workers": [64]}
    assert concluded(rows, alone).verdict == "supports"
    # One that is asked for twice is tested once.
    assert concluded(rows, alone, cells("better")).verdict == "supports"
    assert concluded(rows, alone, other).verdict == "cannot tell"


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
