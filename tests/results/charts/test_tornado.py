import csv
import io
from typing import Any

import pytest

from chart_sources import texts_of
from compared_rows import made_effect as effect
from made_rows import altered, present
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look, diverging
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.panels import Figure
from weighbridge.results.charts.tornado import (
    ROOM,
    WIDEST,
    SettingChange,
    setting_changes,
    settings_of,
    tornado,
)
from weighbridge.results.charts.tuning_charts import MOST, tornados
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.statistics import Ratio
from weighbridge.suites import loader


def layout(
    name: str, gateway: str = "rgw", place: dict[str, Any] | None = None, **radosgw: object
) -> PlannedLayout:
    settings = {"radosgw": radosgw} if radosgw else {}
    return PlannedLayout(name=name, gateway=gateway, place=place or {}, settings=settings)


MANY = (
    SettingChange(setting="threads 512 → 64", effect=effect("a", 0.62, "worse")),
    SettingChange(setting="chunk 4MiB → 1MiB", effect=effect("b", 1.01, "not significant")),
    SettingChange(setting="shards 11 → 32", effect=effect("c", 1.9, "better")),
    SettingChange(setting="gc on → off", effect=effect("d", None, "not comparable")),
)


def bars_of(figure: Figure | None, look: Look = LIGHT) -> list[dict[str, Any]]:
    assert figure is not None
    layers = compose(figure, look)["concat"][0]["layer"]
    return [
        row for layer in layers if layer["mark"]["type"] == "bar" for row in layer["data"]["values"]
    ]


def test_the_largest_change_is_on_top_whichever_way_it_goes() -> None:
    figure = present(tornado(MANY))
    order = [MANY[place].setting for place in (2, 0, 1, 3)]
    assert [line[0] for line in figure.panels[0].lines] == order
    assert figure.finding == "shards 11 → 32 changes throughput most: +90 % in 64 kB reads"
    halved = SettingChange(setting="halved", effect=effect("e", 0.5, "worse"))
    figure = present(tornado([MANY[2], halved]))
    assert figure.finding.startswith("halved"), "a half is as far from no change as a double"


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_what_has_no_significant_effect_is_grey_and_listed(look: Look) -> None:
    figure = present(tornado(MANY))
    assert {one["y"] for one in bars_of(figure, look) if one["c"].lower() == look.axis.lower()} == {
        "chunk 4MiB → 1MiB"
    }
    assert "no significant effect: chunk 4MiB → 1MiB." in figure.caption


def test_what_is_not_comparable_has_no_bar_and_no_figure() -> None:
    figure = present(tornado(MANY))
    words = texts_of(figure)
    assert "× not comparable" in words
    assert "0 %" not in words
    lines = list(csv.DictReader(io.StringIO(figure.csv)))
    assert [line["change_percent"][:5] for line in lines] == ["-38.0", "1.000", "89.99", ""]
    assert tornado(MANY[3:]) is None


def test_an_infinite_interval_does_not_squeeze_the_bars() -> None:
    wide = altered(
        effect("w", 1.1, "provisional"), ratio=Ratio(value=1.1, low=1e-6, high=1e6, repeats=2)
    )
    figure = present(tornado([MANY[0], SettingChange(setting="wide", effect=wide)]))
    assert figure.panels[0].x.high <= 38 * WIDEST * ROOM + 1


def test_a_setting_is_named_by_its_difference_from_the_baseline() -> None:
    layouts = [
        layout("rgw-beast", threads=512, nodelay=True),
        layout("x", threads=64, nodelay=True),
        layout("y", threads=512, nodelay=False),
        layout("z", threads=64, nodelay=False),
    ]
    names = {"x": "radosgw.threads 512 → 64", "y": "radosgw.nodelay on → off", "z": "z"}
    assert settings_of(layouts, "rgw-beast") == names
    unknown = [layout("rgw-beast"), layout("rgw-beast-threads-64")]
    assert settings_of(unknown, "rgw-beast") == {"rgw-beast-threads-64": "rgw-beast-threads-64"}


def test_a_setting_that_followed_the_size_of_hosts_is_shown_as_it_was() -> None:
    base, changed = layout("rgw-beast", nodelay=True), layout("x", threads=64, nodelay=True)
    sized = {"rgw-beast": ({"key": "radosgw.threads", "value": 512, "why": "of a later version"},)}
    plan = ResolvedPlan.model_validate(
        {
            "suite": loader.load(loader.find("quick")),
            "hardware": {"name": "made-up"},
            "layouts": (base, changed),
            "by_size": sized,
        }
    )
    assert settings_of(plan.layouts, "rgw-beast") == {"x": "radosgw.threads 512 → 64"}


@pytest.mark.parametrize(
    "other",
    [
        layout("swift", "swift"),
        layout("rgw-haproxy", place={"haproxy": "balancer-1"}, threads=512),
        layout("rgw-civetweb"),
    ],
    ids=["another gateway", "other hosts", "nothing known"],
)
def test_layouts_that_differ_in_more_than_settings_are_no_tuning(other: PlannedLayout) -> None:
    layouts = [layout("rgw-beast", threads=512) if other.settings else layout("rgw-beast"), other]
    assert settings_of(layouts, "rgw-beast") is None
    effects = (effect(other.name, 2.0, "better"),)
    found = Comparison(baseline="rgw-beast", subjects=(other.name,), effects=effects, tests=1)
    assert setting_changes(found, layouts) == ()


def test_a_tuning_is_shown_over_all_worker_counts_or_at_the_only_one() -> None:
    layouts = [layout("rgw-beast", threads=512), layout("a", threads=64), layout("b", threads=32)]
    overall, at_1 = effect("a", 1.1, "better"), effect("a", 1.2, "better", workers=1)
    at_8 = effect("a", 1.0, "not significant", workers=8)

    def shown(*effects: Effect) -> list[tuple[str, int | None]]:
        found = Comparison(baseline="rgw-beast", subjects=("a", "b"), effects=effects, tests=3)
        return [(one.setting, one.effect.workers) for one in setting_changes(found, layouts)]

    assert shown(overall, at_1, at_8) == [("radosgw.threads 512 → 64", None)]
    assert shown(overall, at_8, effect("b", 1.3, "better", workers=8)) == [
        ("radosgw.threads 512 → 64", 8),
        ("radosgw.threads 512 → 32", 8),
    ]


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.long
def test_a_tuning_has_a_figure_for_each_objective_with_colours_by_its_direction(
    tuned_data: RunData, look: Look
) -> None:
    result = present(tuned_data.tuned)
    throughput, p90 = tornados(result)
    assert [one.name for one in (throughput, p90)] == ["tornado", "tornado-p90"]
    best = result.table.entries[0].name
    colours = []
    for figure in (throughput, p90):
        (bar,) = [one for one in bars_of(figure, look) if one["y"] == best]
        colours.append(bar["c"])
        assert (bar["x"] > 0) == (figure is throughput)
    assert colours == [diverging(look)[-2]] * 2
    assert "widened for 4 looks" in throughput.caption


def test_with_many_settings_a_figure_has_the_largest_and_its_data_all(tuned_data: RunData) -> None:
    result = present(tuned_data.tuned)
    entries = [one for one in result.table.entries if one.effects[0].ratio is not None]
    many = [altered(entry, name=f"{entry.name} {turn}") for turn in range(3) for entry in entries]
    figure = tornados(altered(result, table=altered(result.table, entries=tuple(many))))[0]
    assert len({bar["y"] for bar in bars_of(figure)}) == MOST
    assert f"{len(many) - MOST} with smaller effects are only in the table" in figure.caption
    assert len(figure.panels[0].lines) == len(many)


def test_combinations_with_long_names_have_shortened_keys(tuned_data: RunData) -> None:
    result = present(tuned_data.tuned)
    first = altered(
        result.table.entries[0],
        name="options.client.rgw_max_concurrent_requests 1024 → 64, "
        "options.client.objecter_inflight_ops unset → 4096",
    )
    figure = tornados(altered(result, table=altered(result.table, entries=(first,))))[0]
    (bar,) = bars_of(figure)
    assert bar["y"] == "rgw_max_concurrent_requests 1024 → 64, objecter_inflight_ops unset → 4096"
    assert figure.panels[0].lines[0][0] == first.name
