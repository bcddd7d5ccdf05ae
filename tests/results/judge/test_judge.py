"""Who leads in each workload, and how it is worded: headline, caveats, cards, sentences."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from compared_rows import GRAVE, MILD, WIDE, cell, row, times
from fake_run import short_run
from made_rows import altered, made_points, made_row, present, summarize
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.doubt import Doubt, PairDoubt, PowerMark
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import NO_CONTROLS, compare
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.leads import Lead, leads
from weighbridge.results.judge.words import MAX_WORKLOADS, card, caveats, headline, title
from weighbridge.results.run import RunStore
from weighbridge.results.show.feature import Answer

RGW = {"beast": "RGW", "haproxy": "RGW"}
DIFFER = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
UNSTEADY = Doubt(what="not steady", grade="mild", words="throughput fell by 30 %")
FEW = "Caveat: a claim needs 5 repeats of each side"


def row_of(layout: str, workers: int, rates: Sequence[float], **more: object) -> Row:
    given: dict[str, object] = {
        "layout": layout,
        "workers": workers,
        "repeats": len(rates),
        "throughput_ops_s": rates[0] if rates else None,
        "p90_ms": 20.0,
        "valid": bool(rates),
        "points": made_points(rates, valid=bool(more.get("valid", True))),
    }
    return made_row(**{**given, **more})


def judged(
    rows: Sequence[Row],
    controls: Mapping[str, str] = NO_CONTROLS,
    between: Sequence[PairDoubt] = (),
) -> tuple[Lead, ...]:
    return leads(compare(rows, controls, between=between))


def both(rows: Sequence[Row]) -> tuple[Effect, Effect]:
    """The effects of throughput over all worker counts, and at the last."""
    first, *_, last = [e for e in compare(rows).effects if e.metric == "throughput"]
    return first, last


def kinds(*rates: tuple[float, float]) -> list[Row]:
    return [
        row(name, rates=times(rate), workload=f"w{number}", object_size_bytes=1000 * (number + 1))
        for number, pair in enumerate(rates)
        for name, rate in zip("ab", pair, strict=True)
    ]


THREE = [row("swift"), row("beast", rates=times(2)), row("haproxy", rates=times(2.04))]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([row("a"), row("b", rates=times(2))], "b is 2.0× as fast as a at 1 MB reads"),
        ([row("a"), row("b", rates=times(0.5))], "a is 2.0× as fast as b at 1 MB reads"),
        ([row("a"), row("b", rates=times(1.02))], "No difference that matters at 1 MB reads"),
        ([row("a"), row("b", rates=times(1.1, WIDE))], "No difference found at 1 MB reads"),
        # What is no claim was so, and is not so.
        ([row("a"), row("b", rates=times(2), doubts=(MILD,))], "b was 2.0× as fast as a at 1"),
        ([row("a"), row("b", rates=times(2)[:4])], "b was 2.0× as fast as a at 1 MB reads"),
        # The leader needs its own test with the next: both differ from the first.
        (
            [row("a"), row("b", rates=times(1.5, WIDE)), row("c", rates=times(1.65, WIDE[::-1]))],
            "No difference found at 1 MB reads",
        ),
        # Nobody leads, and yet a difference was found: it is said.
        (
            [row("a"), row("b", rates=times(1.5, WIDE)), row("c", rates=times(1.65))],
            "No layout leads at 1 MB reads (c is 1.6× as fast as a)",
        ),
        # A baseline that is not comparable keeps no others from being compared.
        (
            [row("a", rates=()), row("b"), row("c", rates=times(2))],
            "c is 2.0× as fast as b at 1 MB reads; a not comparable",
        ),
        # A caveat about the third is one about who leads.
        (
            [row("a", doubts=(MILD,)), row("b", rates=times(1.5)), row("c", rates=times(3))],
            "c was 2.0× as fast as b, the next fastest, at 1 MB reads",
        ),
        (
            [row("a"), row("b", rates=times(1.5)), row("c", rates=times(1.65))],
            "c is 1.1× as fast as b, the next fastest, at 1 MB reads",
        ),
        # A group of layouts of one store, of which none is faster than another.
        (THREE, "Both RGW layouts are at least 2.0× as fast as swift at 1 MB reads"),
        (
            [row("swift", rates=times(5)), *THREE[1:]],
            "swift is 2.5× as fast as haproxy, the next fastest, at 1 MB reads",
        ),
        ([row("other"), *THREE[1:], row("swift")], "Both RGW layouts are at least 2.0× as fast as"),
        (
            [row("a"), row("b", rates=times(5), valid=False), row("c", rates=times(2))],
            "c is 2.0× as fast as a at 1 MB reads; b not comparable",
        ),
        (
            kinds((1, 2), (1, 3), (2, 1), (1, 1)),
            (
                "b is 2.0× as fast as a at 1 kB reads and 3.0× at 2 kB reads; a is 2.0× as fast "
                "as b at 3 kB reads; no difference that matters at 4 kB reads"
            ),
        ),
        (
            kinds(*[(1, 2 + number) for number in range(MAX_WORKLOADS + 1)], (2, 1)),
            "b is 2.0× to 6.0× as fast as a in 5 of 6 workloads; a is 2.0× as fast as b at 6 kB",
        ),
        (kinds(*[(1, 2)] * 5), "b is 2.0× as fast as a in all 5 workloads"),
        (
            [row("a"), row("b", valid=False, notes=("not valid", "driver busy"))],
            "No ranking: b at 8 workers: driver busy",
        ),
        ([row("a"), row("b", doubts=(GRAVE,))], f"No ranking: machine busy: {GRAVE.words}"),
        (
            [*kinds((1, 2)), row("a", workload="x"), row("b", workload="x", rates=())],
            "b is 2.0× as fast as a at 1 kB reads; not comparable at 1 MB reads, since b at 8",
        ),
        ([row("a")], "Only one layout was measured: there is nothing to compare it with"),
    ],
)
def test_the_headline_says_who_is_how_many_times_as_fast_in_which_workload(
    rows: list[Row], says: str
) -> None:
    assert headline(judged(rows), RGW).startswith(says)


def test_whoever_lost_writes_is_named_also_if_another_is_second() -> None:
    lost = "lost acknowledged writes in 1 of 2 power cuts"
    mark = PowerMark(layout="a", judgement="lost", said=lost, count="1 of 2", loss=lost)
    rows = [row("a", power=mark), row("b", rates=times(2)), row("c", rates=times(3))]
    assert headline(judged(rows)).endswith(f"; a {lost}")


def test_doubts_and_open_intervals_between_two_layouts_keep_both_in_front() -> None:
    rows = [row("a"), row("b", rates=times(1.5)), row("c", rates=times(2.1))]
    assert judged(rows)[0].leaders == ("c",)
    apart = judged(rows, between=[PairDoubt(layouts=("b", "c"), doubt=DIFFER)])
    assert (apart[0].leaders, apart[0].others) == (("c", "b"), ("a",))
    near = [
        row("a", rates=WIDE),
        row("b", rates=times(4, WIDE)),
        row("c", rates=times(4.2, WIDE[::-1])),
    ]
    assert judged(near)[0].leaders == ("c", "b")
    # A caveat makes no open difference one that was found.
    doubted = [row("a", rates=WIDE), row("b", rates=times(1.1, WIDE[::-1]), doubts=(MILD,))]
    (lead,) = judged(doubted)
    assert (lead.standing, present(lead.effect).verdict) == ("open", "provisional")
    assert present(lead.effect).text.startswith("No difference found: ")


@pytest.mark.parametrize(
    ("rates", "leaders"),
    [([100.0, 300.0, 80.0, 250.0, 90.0], ()), ([300.0, 310.0, 290.0, 305.0, 295.0], ("a",))],
)
def test_a_difference_in_doubt_whose_interval_includes_one_puts_nobody_ahead(
    rates: list[float], leaders: tuple[str, ...]
) -> None:
    other = row_of("b", 1, [100.0, 90.0, 110.0, 200.0, 95.0])
    (lead,) = judged([row_of("a", 1, rates, doubts=(UNSTEADY,)), other])
    assert lead.leaders == leaders
    assert present(lead.effect).verdict == "provisional"
    shown = card(lead)
    assert (shown.name, bool(shown.figure)) == (
        ("a", True) if leaders else ("No difference found", False)
    )
    assert present(lead.effect).text.startswith("No difference found") == (not leaders)
    assert shown.caveat == f"a: {UNSTEADY.words}"
    assert caveats([lead]) == f"Caveat: a: {UNSTEADY.words}"


def test_a_caveat_says_which_workloads_it_is_about() -> None:
    rows = kinds((1, 2), (1, 3))
    rows[1] = altered(rows[1], doubts=(MILD,))
    found = judged(rows)
    assert [lead.claimed for lead in found] == [False, True]
    assert caveats(found) == f"Caveat at 1 kB reads: {MILD.words}"
    assert (
        headline(found)
        == "b was 2.0× as fast as a at 1 kB reads; b is 3.0× as fast as a at 2 kB reads (Swift API)"
    )
    assert caveats(found[1:]) == ""


def test_a_card_has_name_ratio_interval_and_p90s() -> None:
    (lead,) = judged([row("swift"), *THREE[1:2]])
    shown = card(lead, RGW)
    assert (shown.name, shown.figure, shown.text) == ("RGW", "2.0×", "as fast as swift")
    assert shown.detail == "95 % interval 2.0 to 2.0; n = 5; p90 500 ms vs 1,000 ms"
    assert (shown.layout, shown.caveat) == ("beast", "")
    lost = card(judged([row("a"), row("b", doubts=(GRAVE,))])[0])
    assert (lost.name, lost.figure, lost.layout) == ("Not comparable", "", None)
    assert GRAVE.words in lost.detail


def test_titles_are_about_one_workload_and_drivers_stay_apart() -> None:
    rows = [
        row_of(name, 1, [rate], driver=driver)
        for driver, rates in (("locust", (200.0, 100.0)), ("cosbench", (90.0, 100.0)))
        for name, rate in zip("ab", rates, strict=True)
    ]
    assert [title(lead) for lead in judged(rows)] == [
        "a was 2.0× as fast as b at 1 MB reads by Locust (Swift API)",
        "b was 1.1× as fast as a at 1 MB reads by COSBench (Swift API)",
    ]
    assert caveats(judged(rows)) == FEW


def test_two_apis_and_two_workloads_of_equal_requests_are_named() -> None:
    rows = [row_of(name, 1, [100.0], api=api) for api in ("swift", "s3") for name in "ab"]
    assert [title(lead).count("API") for lead in judged(rows)] == [1, 1]
    assert headline(judged(rows)).endswith("over the Swift API and 1 MB reads over the S3 API")
    rows = [row_of(name, 1, [100.0], api="s3") for name in "ab"]
    assert headline(judged(rows)).endswith("at 1 MB reads (S3 API)")
    rows = [row_of(name, 1, [100.0], workload=kind) for kind in ("hot", "cold") for name in "ab"]
    assert [lead.about for lead in judged(rows)] == ["1 MB reads of hot", "1 MB reads of cold"]


def test_comparable_at_some_worker_counts_is_no_claim_over_all() -> None:
    few = [row_of("a", 1, [100.0]), row_of("b", 1, [50.0])]
    few += [row_of("a", 4, [800.0]), row_of("b", 4, [100.0])]
    (lead,) = judged([*few, row_of("a", 8, [9.0]), row_of("b", 8, [])])
    text = present(lead.effect).text
    assert present(lead.ratio).value == pytest.approx(4)
    assert "with 1 to 4 workers (2.0× to 8.0× by number of workers)" in text
    assert text.count("not comparable at 8 workers") == 1
    total, _ = both([row_of("a", 1, [100.0]), row_of("b", 1, [200.0]), *few[2:]])
    assert "but b was faster with 1" in total.text


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        # One repeat is no claim.
        (
            [row_of("a", 8, [180.0]), row_of("b", 8, [100.0], p90_ms=34)],
            (
                "a was 1.8× as fast as b at 1 MB reads with 8 workers, p90 20 ms vs 34 ms; n = 1; "
                "caveat: a claim needs 5 repeats of each side."
            ),
        ),
        # A p90 that a CPU limit sets is not shown beside another; a lower bound has its sign.
        (
            [
                row_of("a", 8, [180.0]),
                row_of("b", 8, [100.0], doubts=(altered(GRAVE, metrics=("p90",)),)),
            ],
            "1 MB reads with 8 workers; n = 1",
        ),
        (
            [row_of("a", 8, [180.0]), row_of("b", 8, [100.0], p90_ms=5000, at_least=("p90",))],
            "p90 20 ms vs ≥ 5,000 ms",
        ),
        # Why there is no ratio: the first line of an error.
        (
            [row_of("a", 8, [100.0]), row_of("b", 8, [], notes=("no COSBench there\nName it.",))],
            "a and b cannot be compared with 8 workers (b: no COSBench there).",
        ),
        ([row_of("a", 8, [100.0]), row_of("b", 8, [0.0])], "(b: nothing succeeded)."),
    ],
)
def test_a_sentence_says_what_was_measured_and_why_it_is_no_claim(
    rows: list[Row], words: str
) -> None:
    total, at_workers = both(rows)
    assert words in at_workers.text
    assert (total.ratio is None) == ("(b: n" in words)


@pytest.mark.parametrize(
    ("fast", "slow", "text"),
    [
        ((10, 20), (30, 40), "p90 in (10, 20] vs (30, 40] ms"),
        ((10, 20), (10, 20), "p90 not distinguishable: both in (10, 20] ms"),
        ((15, 25), (20, 30), "p90 not distinguishable: in (15, 25] and (20, 30] ms"),
    ],
)
def test_latencies_reported_in_bins_are_ranked_only_if_the_bins_do_not_touch(
    fast: tuple[int, int], slow: tuple[int, int], text: str
) -> None:
    rows = [
        row_of(
            name, 8, [rate], p90_ms=None, p90_in={"low_ms": low, "high_ms": high}, driver="cosbench"
        )
        for name, rate, (low, high) in (("a", 180.0, fast), ("b", 100.0, slow))
    ]
    effect = next(e for e in compare(rows).effects if e.metric == "throughput" and e.workers == 8)
    assert f"with 8 workers, {text}; n = 1" in effect.text


def test_a_run_with_missing_steps_has_answers_for_the_rest(run: RunStore) -> None:
    comparison = compare(summarize(run.plan(), run.steps()))
    assert [lead.standing for lead in leads(comparison)] == ["ahead", "ahead", "open"]
    assert [e.text for e in comparison.effects if e.ratio is None and e.metric == "throughput"] == [
        "64 MB reads: rgw-beast and swift cannot be compared with 8 workers (swift: not measured)."
    ]


def test_an_answer_says_what_was_compared(tmp_path: Path) -> None:
    store = short_run(tmp_path, telemetry=False)
    answer = Answer(open_run(store.folder))
    assert answer.headline.startswith("RGW is ")
    assert answer.caveat == ""
    assert answer.context.startswith("rgw-beast and swift, both over the Swift API, 5 hosts, ")
    manifest = json.loads((store.folder / "manifest.json").read_text())
    manifest["sheets"] = [
        {"title": "machine", "facts": {"cpus": "2"}},
        {
            "title": "deployment",
            "layout": "rgw-beast",
            "facts": {
                "gateway": "Ceph RGW, release ceph-18",
                "radosgw": "ceph version 18.2.7 (6b0e) reef (stable)",
            },
        },
    ]
    (store.folder / "manifest.json").write_text(json.dumps(manifest))
    assert Answer(open_run(store.folder)).context.startswith("Ceph RGW 18.2.7 and swift, both ")


def test_over_worker_counts_too_few_common_repeats_make_no_claim() -> None:
    values = [1.0, 1.01, 0.99, 1.0, 1.0, 1.0, 1.01, 0.99]
    complete = row("b", 1, times(2, values))
    rows = [row("a", 1, values), row("a", 8, values)]
    rows.append(altered(complete, points=complete.points[:5]))
    rows.append(altered(complete, points=complete.points[3:], workers=8))
    found = compare(rows)
    assert cell(found, workers=8).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert leads(found)[0].claimed is False
