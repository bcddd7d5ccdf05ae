"""Talks of runs with failures, gaps, one layout, one repeat or many layouts."""

from __future__ import annotations

from pathlib import Path

from fake_run import StepFaults, fake_run
from made_rows import altered, changed
from talks import SHORT, SPOILT, slide, text_of, with_control
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import Attested
from weighbridge.results.slides.evidence import evidence
from weighbridge.results.slides.slide import BarChart, SeriesChart
from weighbridge.results.slides.talk import talk
from weighbridge.suites import Layer, Workload


def test_one_repeat_makes_no_claim_on_any_slide_of_results(tmp_path: Path) -> None:
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1)))
    for one in deck.slides:
        if one.key.startswith(("answer", "recap", "latency", "throughput")):
            assert "provisional" in text_of(one)
    chart = slide(deck, "throughput").chart
    assert isinstance(chart, SeriesChart)
    assert all(point.low is None for series in chart.series for point in series.points)


def test_what_failed_is_marked_and_not_joined(tmp_path: Path) -> None:
    compared = evidence(fake_run(tmp_path, workloads=SHORT, repeats=1, spoilt=SPOILT))
    deck = talk(compared)
    ends = text_of(slide(deck, "limits-")) + text_of(
        next(one for one in deck.slides if one.key == "limits")
    )
    assert "Not valid: not measured (swift: 64 MB reads at 16 workers)." in ends
    assert "(swift: 1 MB reads at 16 workers)." in ends
    chart = slide(deck, "throughput-small-read").chart
    assert isinstance(chart, SeriesChart)
    assert {(one.name, len(one.points)) for one in chart.series} == {("rgw-beast", 2), ("swift", 1)}
    assert "Not measured" not in slide(deck, "throughput-small-write").foot
    assert "ot measured: swift at 16" in slide(deck, "throughput-large-read").foot


def test_an_invalid_repeat_is_a_cross_without_a_line(tmp_path: Path) -> None:
    spoilt = StepFaults(erring=(("rgw-beast", "small-write", 16),))
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[1:2], repeats=1, spoilt=spoilt)))
    for key in ("latency", "throughput"):
        chart = slide(deck, key).chart
        assert isinstance(chart, SeriesChart)
        (cross,) = (one for one in chart.series if not one.joined)
        assert (cross.name, len(cross.points)) == ("rgw-beast, not ranked", 1)
        assert "×: invalid" in slide(deck, key).foot


def test_too_few_samples_for_a_p90_leave_latency_without_a_slide_and_say_so(tmp_path: Path) -> None:
    compared = evidence(fake_run(tmp_path, workloads=SHORT[2:], repeats=1))
    deck = talk(altered(compared, rows=tuple(changed(row, p90_ms=None) for row in compared.rows)))
    assert not [one for one in deck.slides if one.key.startswith("latency")]
    assert "too few samples" in slide(deck, "throughput").foot


def test_a_run_that_was_killed_is_called_incomplete(tmp_path: Path) -> None:
    absent = StepFaults(absent=(("swift", "small-read", 16),))
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1, spoilt=absent)
    store.set_state("interrupted", error="ended by SIGINT")
    deck = talk(evidence(store))
    assert "This run is not complete: interrupted: ended by SIGINT." in deck.slides[0].lines
    assert next(one for one in deck.slides if one.key == "limits").title.startswith(
        "The run is not complete (interrupted)"
    )


def test_a_run_without_measurements_has_a_talk_that_says_so(tmp_path: Path) -> None:
    absent = tuple(
        (layout, "small-read", workers) for layout in ("rgw-beast", "swift") for workers in (1, 16)
    )
    spoilt = StepFaults(absent=absent)
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1, spoilt=spoilt)))
    assert deck.title == "Nothing valid was measured"
    assert all(one.chart is None for one in deck.slides)
    assert "nothing was measured" in text_of(deck.slides[0]).lower()


def test_a_single_layout_is_not_compared(tmp_path: Path) -> None:
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1, layouts=("swift",))))
    assert deck.title == "swift, measured alone"
    assert not [one for one in deck.slides if one.key.startswith("recap")]
    assert slide(deck, "throughput").title.startswith("swift serves at most ")


def test_an_a_a_control_gives_the_noise_floor_and_is_in_no_chart_and_no_table(
    tmp_path: Path,
) -> None:
    store = fake_run(
        tmp_path, workloads=SHORT[:1], repeats=5, layouts=("rgw-beast", "swift", "rgw-haproxy")
    )
    deck = talk(evidence(with_control(store)))
    assert "Noise floor, rgw-beast vs itself: throughput " in text_of(deck.slides[0])
    assert "rgw-haproxy" not in "".join(text_of(one) for one in deck.slides)
    assert "Noise floor of throughput" in "\n".join(slide(deck, "recap").notes)


def attested(store: RunStore, found: dict[str, float], promised: float, repeat: int = 0) -> None:
    """What a disk gave under each layout."""
    disk = {"host": "store-2", "kind": "disk", "what": "disk wb0 write", "unit": "B/s"}
    for layout, value in found.items():
        figure = {"layout": layout, "repeat": repeat, "value": value, "promised": promised}
        store.attest([Attested.model_validate({**disk, **figure})])


def test_hosts_below_their_promise_are_on_the_set_up_slide(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    attested(store, {"rgw-beast": 91e6, "swift": 88e6}, promised=1e8)
    title = slide(talk(evidence(store)), "set-up").title
    assert title.endswith("attested capacity is below its promise for swift")


def test_figures_beyond_their_bound_are_counted_where_the_medians_are_equal(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=3)
    for repeat, slow in enumerate((1e8, 1e8, 4e7)):
        attested(store, {"rgw-beast": 1e8, "swift": slow}, promised=2e7, repeat=repeat)
    title = slide(talk(evidence(store)), "set-up").title
    assert title.endswith("attested capacity is within bounds, except for 1 of 1 figure")


def test_differing_hosts_are_on_the_set_up_and_the_last_slides(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    attested(store, {"rgw-beast": 197e6, "swift": 142e6}, promised=1e8)
    deck = talk(evidence(store))
    compared = "1 of 1 figures of the hosts differ beyond their bound over 2 deployments"
    assert compared in text_of(slide(deck, "set-up"))
    assert f"{compared}." in next(one for one in deck.slides if one.key == "limits").lines


def test_layers_are_a_table_where_a_run_has_them(tmp_path: Path) -> None:
    layers: tuple[Layer, ...] = ("disk", "network", "rados", "object-server")
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1, layers=layers)
    one = slide(talk(evidence(store)), "layers")
    assert one.grid is not None
    names = [line[0].text for line in one.grid.lines]
    assert names == ["", "Gateway", "Object servers", "RADOS", "Network", "Disks"]
    assert "% of" in one.title


def test_more_than_six_layouts_go_on_several_slides_with_the_first_on_each(tmp_path: Path) -> None:
    workloads: tuple[Workload, ...] = (altered(SHORT[0], workers=(1,)),)
    names = tuple(f"layout-{number}" for number in range(9))
    run = fake_run(tmp_path, workloads=workloads, repeats=1, layouts=names, telemetry=False, seed=7)
    deck = talk(evidence(run))
    charts = [one.chart for one in deck.slides if one.key.startswith("throughput")]
    drawn = [{bar.name for bar in chart.bars} for chart in charts if isinstance(chart, BarChart)]
    assert all("layout-0" in names_of for names_of in drawn)
    assert set().union(*drawn) == set(names)
    assert max(len(names_of) for names_of in drawn) <= 6
    titles = [one.title for one in deck.slides if one.key.startswith("set-up")]
    assert [title.rsplit("(", 1)[1] for title in titles] == ["1 of 2)", "2 of 2)"]


def test_a_single_worker_count_is_drawn_as_bars(tmp_path: Path) -> None:
    workloads = (altered(SHORT[0], workers=(8,)),)
    compared = evidence(fake_run(tmp_path, workloads=workloads, repeats=2))
    one = slide(talk(compared), "throughput")
    assert isinstance(one.chart, BarChart)
    assert [(bar.name, bar.value) for bar in one.chart.bars] == [
        (row.layout, row.value("throughput")) for row in compared.rows
    ]
    assert one.title.endswith("at 8 workers")


def test_what_a_folder_lacks_is_on_the_last_slides(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    (path,) = (store.folder / "latency").glob("swift.*w16*")
    path.unlink()
    compared = evidence(store)
    assert compared.gaps
    lines = next(one for one in talk(compared).slides if one.key == "limits").lines
    assert any(compared.gaps[0][1:] in line for line in lines)
