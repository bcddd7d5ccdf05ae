"""The recap of a study, on cases that can be computed on paper."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from chart_sources import texts_of
from made_rows import made_points, made_row, made_workload
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.study.recap import Recap, change, recap_csv, recaps
from weighbridge.results.charts.change_map import study_maps
from weighbridge.results.charts.chart_theme import LIGHT, contrast
from weighbridge.results.charts.composer import compose
from weighbridge.suites.studies import Study

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
    assert lone.p is not None
    assert 0.01 < lone.p == lone.q < 0.05
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
    assert cell.q is not None
    assert cell.q > 0.05
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
def test_a_cell_reads_as_a_change_in_whole_per_cent_or_as_a_multiple(
    after: float, text: str
) -> None:
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
    cell = found.cell("XFS · read, random", "4 KiB × 16")
    assert cell is not None
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
    (line,) = csv.DictReader(io.StringIO(recap_csv([found])))
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
    assert [line["change_percent"] for line in lines] == ["150.000", ""]


def test_a_cell_with_a_claim_is_drawn_stronger() -> None:
    five = [0.999, 1.0, 1.001, 1.0, 1.0]
    rows = [
        row("old-xfs", "write-4k", [100.0 * one for one in five]),
        row("new-xfs", "write-4k", [200.0 * one for one in five]),
        row("old-ext4", "write-4k", [100.0]),
        row("new-ext4", "write-4k", [200.0]),
    ]
    chart = study_maps(recaps(study(), rows, WORKLOADS))
    (heat, *_) = compose(chart)["concat"][0]["layer"]
    colours = {row["y"]: row["c"] for row in heat["data"]["values"]}
    pale, claimed, unfinished = LIGHT.background, colours["XFS · write"], colours["ext4 · write"]
    assert contrast(pale, claimed) > contrast(pale, unfinished) > 1
    assert chart.finding.startswith("Of 2 comparisons 1 became faster and 0 slower; ")
