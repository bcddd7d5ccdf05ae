"""Comparing latencies that are known as bins."""

import csv
import html
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from compared_rows import cell, row
from fake_run import WORKLOADS, fake_run
from made_rows import altered, made_point, made_points, made_row, present
from talks import deck_of, slide, text_of
from weighbridge.results import derive
from weighbridge.results.features.agreement import (
    Agreement,
    agreement_csv,
    agreements,
    causes,
    sentences,
)
from weighbridge.results.figures.reading import Interval
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Verdict
from weighbridge.results.judge.host_equality import host_shares, unequal_shares
from weighbridge.results.judge.leads import leads
from weighbridge.results.run.resolved import PlannedHost, ResolvedPlan


def binned(layout: str, *bins: tuple[float, float | None]) -> Row:
    within = [{"low_ms": low, "high_ms": high} for low, high in bins]
    points = tuple(
        made_point(repeat=number, valid=True, throughput_ops_s=100.0 + number, p90_in=one)
        for number, one in enumerate(within)
    )
    middle = within[len(bins) // 2]
    return row(
        layout, driver="cosbench", points=points, repeats=len(points), p90_ms=None, p90_in=middle
    )


@pytest.mark.parametrize(
    ("other", "verdict", "text"),
    [
        ([(30, 40)] * 5, "worse", "in (10, 20] vs (30, 40] ms; n = 5."),
        ([(20, 30)] * 5, "not significant", "not distinguishable: in (10, 20] and (20, 30] ms"),
        ([(10, 20)] * 5, "not significant", "not distinguishable: both in (10, 20] ms; n = 5."),
        ([(30, 40)] * 4, "provisional", "n = 4; caveat: a claim needs 5 repeats"),
        ([(20, 30)] * 2 + [(30, 40)] * 3, "not significant", "in (10, 20] vs (30, 40] ms; n = 5."),
        ([(30, None)] * 5, "not comparable", "(beyond the last bin)"),
    ],
)
def test_latencies_in_bins_are_ranked_only_if_the_bins_do_not_touch(
    other: list[tuple[float, float | None]], verdict: Verdict, text: str
) -> None:
    found = cell(compare([binned("a", *[(10, 20)] * 5), binned("b", *other)]), "p90")
    assert found.verdict == verdict
    assert text in found.text
    assert found.text.startswith("No difference found: ") == (verdict == "not significant")
    assert (found.baseline_value, found.subject_value) == (None, None)


def test_the_test_of_bins_is_the_worst_that_latencies_within_them_allow() -> None:
    apart = cell(compare([binned("a", *[(10, 20)] * 5), binned("b", *[(30, 40)] * 5)]), "p90")
    assert apart.p == pytest.approx(2 / 252)
    # One of five touches all of a: of 25 pairs 20 are text apart, 5 may be lost. P(U <= 5) = 19/252
    # by counting, two-sided.
    near = cell(
        compare([binned("a", *[(10, 20)] * 5), binned("b", (20, 30), *[(30, 40)] * 4)]), "p90"
    )
    assert near.p == pytest.approx(2 * 19 / 252)
    assert near.delta == pytest.approx(0.8)


def test_a_gap_between_bins_that_may_be_too_small_to_matter_is_not_claimed() -> None:
    found = cell(compare([binned("a", *[(500, 510)] * 5), binned("b", *[(520, 530)] * 5)]), "p90")
    assert found.verdict == "not significant"
    ratio = present(found.ratio)
    assert (ratio.low, ratio.high) == pytest.approx((520 / 510, 530 / 500))


def test_bins_are_not_merged_over_worker_counts() -> None:
    found = compare([binned("a", *[(10, 20)] * 5), binned("b", *[(30, 40)] * 5)])
    assert cell(found, "p90", None).verdict == "not comparable"
    assert "reported in bins" in cell(found, "p90", None).text


Given = Mapping[str, object]


def row_of(driver: str, rates: list[float], **more: object) -> Row:
    given: Given = {
        "layout": "swift",
        "driver": driver,
        "workers": 10,
        "repeats": len(rates),
        "throughput_ops_s": rates[0],
        "samples": 2000 * len(rates),
        "errors": 0,
        "valid": True,
        "points": made_points(rates),
    }
    return made_row(**{**given, **more})


def both(
    locust_ops_s: float,
    cosbench_ops_s: float,
    locust: Given | None = None,
    cosbench: Given | None = None,
) -> Agreement:
    """One step with a p90 of 14 ms by Locust and between 10 and 20 ms by COSBench."""
    exact = {"p90_ms": 14.0, "max_ms": 44.0, "mean_ms": 10.0}
    a = row_of("locust", [locust_ops_s], **{**exact, **(locust or {})})
    bins = {
        "p90_in": Interval(low_ms=10, high_ms=20),
        "max_in": Interval(low_ms=40, high_ms=50),
        "mean_ms": 9.6,
    }
    b = row_of("cosbench", [cosbench_ops_s], **{**bins, **(cosbench or {})})
    (found,) = agreements([a, b])
    return found


@pytest.mark.parametrize(
    ("rate", "p90_ms", "verdict"),
    [
        (970.0, 14.0, "agree within the bins"),
        (860.0, 14.0, "COSBench 14 % lower, p90 within the bin"),
        (1140.0, 14.0, "COSBench 14 % higher, p90 within the bin"),
        (860.0, 9.0, "COSBench 14 % lower, its p90 one bin higher"),
        (1000.0, 10.0, "agree in op/s, COSBench’s p90 one bin higher"),
        (1000.0, 20.001, "agree in op/s, COSBench’s p90 one bin lower"),
        (1000.0, 45.0, "agree in op/s, COSBench’s p90 3 bins lower"),
        (860.0, None, "COSBench 14 % lower, p90 unknown"),
    ],
)
def test_a_verdict_has_throughput_first_and_then_the_p90(
    rate: float, p90_ms: float | None, verdict: str
) -> None:
    found = both(1000.0, rate, {"p90_ms": p90_ms})
    assert (found.verdict, found.agrees) == (verdict, rate == 970.0)
    assert present(found.ratio).value == pytest.approx(rate / 1000)
    assert not found.agrees or (found.bins_off("p90"), found.bins_off("max")) == (0, 0)


def test_a_p90_beyond_the_last_bin_is_reported_as_such() -> None:
    found = both(1000.0, 1000.0, cosbench={"p90_in": Interval(low_ms=500_000, high_ms=None)})
    assert found.verdict == "agree in op/s, p90 in COSBench’s last bin, which has no upper edge"
    assert found.bins_off("p90") is None


def test_a_step_that_one_driver_could_not_do_is_not_compared_and_names_it() -> None:
    failed = {"valid": False, "notes": ("not valid", "12.00% of operations failed")}
    found = both(1000.0, 970.0, cosbench=failed)
    assert found.ratio is None
    assert found.verdict == "not comparable (COSBench: 12.00% of operations failed)"
    assert both(1000.0, 0.0).verdict == "not comparable (COSBench: nothing succeeded)"


def test_enough_repeats_without_a_difference_are_the_same_rate() -> None:
    noisy = [100.0, 300.0, 80.0, 250.0, 90.0]
    (few,) = agreements(
        [row_of("locust", noisy[:4]), row_of("cosbench", [2 * rate for rate in noisy[:4]])]
    )
    (enough,) = agreements(
        [row_of("locust", noisy), row_of("cosbench", [1.2 * rate for rate in noisy])]
    )
    assert not few.same_rate
    assert enough.same_rate


def test_one_driver_has_no_agreement() -> None:
    assert agreements([row_of("locust", [100.0])]) == ()
    assert agreements([row_of("cosbench", [100.0])]) == ()
    assert sentences((), ()) == causes((), {}) == ()


def test_layouts_and_layers_are_not_mixed_up() -> None:
    assert (
        agreements([row_of("locust", [1.0]), row_of("cosbench", [1.0], layout="rgw-beast")]) == ()
    )
    assert agreements([row_of("locust", [1.0], layer="gateway"), row_of("cosbench", [1.0])]) == ()


def test_one_sentence_counts_all_steps_and_those_not_comparable() -> None:
    found = [
        both(1000.0, 970.0),
        both(1000.0, 860.0, {"p90_ms": 9.0, "mean_ms": 8.6}),
        both(1000.0, 700.0),
        both(1000.0, 0.0),
    ]
    (text,) = sentences(found, ())
    for said in (
        "agree within the bins in 1 of 3 steps; COSBench serves 70 to 97 % of Locust’s op/s",
        "p90 lies in COSBench’s bin in 2 of 3, one bin off in 1. 1 of 4 steps could not be",
    ):
        assert said in text
    assert "cannot be compared in any step" in sentences(found[3:], ())[0]


def test_the_kinds_of_requests_that_both_drivers_rank_alike_are_counted() -> None:
    def rows(workload: str, swift: float) -> list[Row]:
        return [
            row_of(driver, [rate], workload=workload, layout=layout)
            for driver, other in (("locust", 200.0), ("cosbench", swift))
            for layout, rate in (("rgw-beast", 100.0), ("swift", other))
        ]

    mixed = [*rows("one", 180.0), *rows("two", 50.0)]
    assert "alike in 1 of 2 workloads" in sentences(agreements(mixed), leads(compare(mixed)))[1]


def test_a_known_cause_is_reported_only_where_it_applies() -> None:
    swift, s3 = both(1.0, 1.0), both(1.0, 1.0, {"api": "s3"}, {"api": "s3"})
    slow = {"swift": {"rgw: rgw_frontends": "beast endpoint=10.0.0.2:8000 tcp_nodelay=0"}}
    quick = {"swift": {"rgw: rgw_frontends": "beast endpoint=10.0.0.2:8000 tcp_nodelay=1"}}
    other = {"rgw-b": {"rgw: rgw_frontends": "beast port=8000"}, "swift": {"tcp_nodelay": "on"}}
    assert [
        any("checks its connection for 1 ms" in text for text in causes([one], {}))
        for one in (swift, s3)
    ] == [True, False]
    assert [
        any("tcp_nodelay" in text for text in causes([swift], facts))
        for facts in (slow, quick, other)
    ] == [True, False, False]


def test_the_csv_has_every_step_and_empty_cells_for_what_is_unknown() -> None:
    text = agreement_csv([both(1000.0, 970.0), both(1000.0, 0.0, {"p90_ms": None})])
    known, unknown = csv.DictReader(io.StringIO(text))
    assert (known["cosbench_over_locust"][:4], known["p90_bins_off"]) == ("0.97", "0")
    assert known["cosbench_p90_high_ms"] == "20.0"
    assert (unknown["cosbench_over_locust"], unknown["p90_bins_off"]) == ("", "")


def test_a_run_of_both_drivers_says_how_far_they_agree_on_page_and_in_file(tmp_path: Path) -> None:
    small = WORKLOADS[0].model_copy(update={"workers": (1, 4), "runtime": 2.0})
    run = fake_run(tmp_path, workloads=[small], repeats=1, driver="locust,cosbench")
    derived = derive(run.folder, pictures=False)
    page = derived.report.read_text()
    (section,) = [section for section in derived.sections if section.key == "agreement"]
    assert section.sentences[0].startswith("Locust and COSBench agree within the bins in ")
    assert section.sentences[0].split(".")[0] in page
    (grid,) = section.parts[0].grids
    assert {len(line) for line in grid.lines} == {len(grid.head)}
    assert 'id="agreement"' in page
    assert "(10, 20]" in page
    assert len((derived.folder / "agreement.csv").read_text().splitlines()) == 5


SHORT = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
LIMITS = {"client-1": 0.5, "gateway-1": 0.6, "store-1": 0.3, "store-2": 0.3, "store-3": 0.3}
WORDS = (
    "Layouts do not have the same CPU or number of hosts: rgw-beast has 1.5 CPUs of 4 hosts; swift "
    "has 0.3 CPUs of 1 host. Their results differ for that reason, too."
)


def planned(plan: ResolvedPlan, *, alone: bool = True, **changes: object) -> ResolvedPlan:
    """With limits of CPU, and one layout on one host only."""
    hosts = {
        name: PlannedHost.model_validate({"cpus": cpus, **changes}) for name, cpus in LIMITS.items()
    }
    structures = dict(plan.structures)
    if alone:
        one = {"entrances": ("store-1",), "gateways": ("store-1",), "stores": ("store-1",)}
        structures["swift"] = structures["swift"].model_copy(update=one)
    hardware = altered(plan.hardware, hosts=hosts)
    return altered(plan, hardware=hardware, structures=structures)


def test_layouts_with_less_cpu_are_named_with_what_each_has(runs: Path) -> None:
    plan = fake_run(runs, workloads=[SHORT], repeats=1).plan()
    assert unequal_shares(planned(plan)) == (WORDS,)
    assert unequal_shares(planned(plan, alone=False)) == ()
    # A control is no other layout.
    swift = {"layouts": plan.layouts, "twins": {"swift": "rgw-beast"}}
    assert unequal_shares(planned(plan.model_copy(update=swift))) == ()


def test_cpus_of_its_own_count_as_many_and_a_host_without_a_limit_as_unknown(runs: Path) -> None:
    plan = fake_run(runs, workloads=[SHORT], repeats=1).plan()
    own = host_shares(planned(plan, cpus=None, cpuset="0-1,4"))
    assert [one.words for one in own] == ["12 CPUs of 4 hosts", "3 CPUs of 1 host"]
    free = host_shares(planned(plan, cpus=None))
    assert [one.words for one in free] == ["4 hosts", "1 host"]


def test_the_report_terminal_and_slides_say_that_layouts_do_not_share_alike(runs: Path) -> None:
    run = fake_run(runs, workloads=[SHORT], repeats=1)
    path = run.folder / "plan.resolved.json"
    path.write_text(json.dumps(planned(run.plan()).model_dump(mode="json")))
    derived = derive(run.folder, pictures=False)
    assert WORDS in derived.hosts
    page = html.unescape(derived.report.read_text())
    assert page.index(WORDS) < page.index('id="findings"')
    assert "gateway-1, store-1, store-2, store-3" in page
    assert "0.3 CPUs of 1 host" in text_of(slide(deck_of(run), "Settings"))
