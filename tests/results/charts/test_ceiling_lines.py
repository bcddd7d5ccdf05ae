from __future__ import annotations

from chart_sources import fake_chart_source, texts_of
from made_rows import altered
from weighbridge.common.structure import Level
from weighbridge.results.analysis.layers.staircase import LayerStep, Staircase
from weighbridge.results.charts.by_workers import throughput_by_workers, throughput_panel
from weighbridge.results.charts.ceiling_lines import CeilingLine, ceiling_lines, top_with_ceilings
from weighbridge.results.charts.worker_data import throughput_panels
from weighbridge.results.record.store import RunStore


def stair(layout: str, top: Level = "gateway", **rates: float) -> Staircase:
    steps = [
        LayerStep.model_validate(
            {"level": level.replace("_", "-"), "name": level, "throughput_ops_s": rate}
        )
        for level, rate in rates.items()
    ]
    steps.append(LayerStep(level=top, name="top", throughput_ops_s=1))
    kind = {"workload": "w", "operation": "read", "api": "swift", "driver": "locust"}
    about = {"layout": layout, "about": "1 MB reads", "object_size_bytes": 1e6}
    return Staircase.model_validate({**kind, **about, "steps": steps})


def line(value: float, layer: str = "disks") -> CeilingLine:
    return CeilingLine(layouts=("a",), layer=layer, label=layer, value=value)


def test_layouts_with_the_same_ceiling_have_one_line_and_others_have_their_own() -> None:
    lines = ceiling_lines(
        [
            stair("a", disk=100, rados=50),
            stair("b", disk=105, rados=30),
            stair("swift", disk=104, object_server=20),
        ]
    )
    assert [(one.label, one.layouts, one.value) for one in lines["w-read-swift-locust"]] == [
        ("disks", ("a", "swift", "b"), 104),
        ("RADOS (b)", ("b",), 30),
        ("RADOS (a)", ("a",), 50),
        ("object servers", ("swift",), 20),
    ]


def test_gaps_and_what_is_on_top_have_no_line() -> None:
    gap = LayerStep(level="disk", name="disks", note="not measured")
    bare = altered(
        stair("a", top="rados"),
        steps=(gap, LayerStep(level="rados", name="RADOS", throughput_ops_s=9)),
    )
    assert ceiling_lines([bare]) == {"w-read-swift-locust": ()}


def test_a_near_ceiling_extends_the_scale_and_a_far_one_does_not() -> None:
    assert top_with_ceilings(100, [line(150), line(1000)]) == 150
    assert top_with_ceilings(100, [line(60)]) == 100


def test_near_ceilings_are_lines_with_labels_and_far_ones_are_words_above_the_panel(
    run: RunStore,
) -> None:
    source = fake_chart_source(run)
    largest = max(
        row.value("throughput") or 0 for row in source.rows if row.workload == "small-read"
    )
    near = line(round(largest * 1.2))
    far = [line(largest * factor, "network") for factor in (20, 40)]
    panel = throughput_panels(
        source.rows, source.findings, {"small-read-read-swift-locust": (near, *far)}
    )[0]
    (chart,) = throughput_by_workers(source)
    words = texts_of(altered(chart, panels=(throughput_panel(panel),)))
    assert f"disks {near.value:,.0f}" in words
    assert f"↑ network {far[0].value:,.0f} to {far[1].value:,.0f}" in words
    words_of_ceilings = "Dashed: the ceilings of disks, network and store"
    assert words_of_ceilings not in chart.caption
    mine = altered(stair("rgw-beast", disk=100, rados=50), workload="small-read")
    (with_lines,) = throughput_by_workers(fake_chart_source(run, stairs=(mine,)))
    assert words_of_ceilings in with_lines.caption
