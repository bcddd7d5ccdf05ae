"""What searches found, in words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fake_run import WORKLOADS
from made_rows import altered
from weighbridge.results.analysis.find.answers import Found, FoundRate, found_rates
from weighbridge.results.analysis.find.searches import RateSearch, RateTrial, Searches
from weighbridge.results.doubt import Doubt, PairDoubt
from weighbridge.results.record import LatencyBound, PlannedLayout, ResolvedPlan, StepKey
from weighbridge.results.record.resolved import PlannedHardware
from weighbridge.suites import Suite

BOUND = LatencyBound(metric="p90", most_ms=50.0)
SERVED, MISSED, UNKNOWN = "served", "not served", "cannot tell"


class Given(Searches):
    """Searches that are given by layout and repeat."""

    def __init__(self, suite: Suite, given: dict[tuple[str, int], RateSearch]) -> None:
        super().__init__(BOUND, suite)
        self.given = given

    def of(self, key: StepKey) -> RateSearch | None:
        return self.given.get((key.layout, key.repeat))


def search(*steps: tuple[float, str]) -> RateSearch:
    trials = tuple(
        RateTrial.model_validate(
            {"rate_per_s": rate, "verdict": verdict, "why": "" if verdict == SERVED else "slow"}
            | {"latency_ms": 40.0 if verdict == SERVED else 90.0}
        )
        for rate, verdict in steps
    )
    return RateSearch(start_per_s=1000.0, trials=trials)


GOOD = (
    *((833.3, SERVED), (1000.0, MISSED), (912.8, SERVED), (955.4, MISSED)),
    *((912.8, SERVED), (955.4, MISSED)),
)


APART = (
    *((833.3, MISSED), (694.4, SERVED), (760.7, SERVED), (796.2, MISSED)),
    *((760.7, MISSED), (760.7, MISSED), (694.4, MISSED)),
)
WIDE = (
    *((833.3, MISSED), (694.4, MISSED), (482.2, MISSED), (232.5, SERVED)),
    *((334.8, MISSED), (279.0, SERVED), (279.0, SERVED)),
)


def answers(
    given: dict[tuple[str, int], RateSearch],
    repeats: int = 1,
    lost: dict[StepKey, str] | None = None,
    pairs: tuple[PairDoubt, ...] = (),
) -> Found:
    workload = altered(WORKLOADS[0], workers=(16,))
    suite = Suite(name="found", about="found", workloads=(workload,), repeats=repeats)
    names = dict.fromkeys(layout for layout, _ in given)
    plan = ResolvedPlan(
        suite=suite,
        hardware=PlannedHardware(name="made up"),
        layouts=tuple(PlannedLayout(name=name, gateway="stub") for name in names),
        find=BOUND,
    )
    return found_rates(plan, Given(suite, given), lost or {}, (), pairs)


def only(found: Found, layout: str = "rgw") -> FoundRate:
    (kind,) = found.kinds
    return next(rate for rate in kind.rates if rate.layout == layout)


def test_one_search_gives_the_served_rate_and_the_one_above_it_and_is_provisional() -> None:
    found = answers({("rgw", 0): search(*GOOD)})
    rate = only(found)
    assert (rate.rate_per_s, rate.low_per_s, rate.high_per_s) == (912.8, 912.8, 955.4)
    assert rate.latency_ms == 40.0
    assert rate.why == ""
    (sentence,) = found.sentences
    assert "rgw serves 913 requests/s (913 to 955); provisional: few repeats" in sentence


def test_five_searches_give_their_geometric_mean_and_its_interval_without_a_doubt() -> None:
    searches = {
        ("rgw", repeat): search(*((rate * (1 + 0.01 * repeat), verdict) for rate, verdict in GOOD))
        for repeat in range(5)
    }
    found = answers(searches, repeats=5)
    rate = only(found)
    assert rate.rate_per_s == pytest.approx(912.8 * 1.0199, rel=1e-3)
    assert rate.low_per_s is not None
    assert rate.high_per_s is not None
    assert rate.low_per_s < 912.8 * 1.02 < rate.high_per_s < 955.4 * 1.02
    assert "provisional" not in found.sentences[0]


@pytest.mark.parametrize(
    ("steps", "known", "said"),
    [
        ([(10.0, MISSED)] * 2, False, "not even 10.0 requests/s"),
        ([(833.3 * 1.2**n, SERVED) for n in range(7)], True, "no higher rate was tried"),
        ([(833.3, UNKNOWN)] * 2, False, "two steps at 833 requests/s were inconclusive: slow"),
        (
            APART,
            False,
            "not known: steps at 694 requests/s disagree, 761 are not served",
        ),
        (
            WIDE,
            True,
            "7 steps were not enough for 5 %",
        ),
        (GOOD[:3], True, "the search is not finished"),
    ],
)
def test_an_answer_says_what_its_steps_leave_open(
    steps: Sequence[tuple[float, str]], known: bool, said: str
) -> None:
    found = answers({("rgw", 0): search(*steps)})
    assert said in found.sentences[0] or said in only(found).words
    assert (only(found).rate_per_s is not None) == known
    assert only(found).at_least == ("no higher" in said)
    assert ("slow" in only(found).notes) == ("not even" in said)


def test_a_search_that_could_not_begin_says_why() -> None:
    key = StepKey(layout="rgw", api="swift", workload="small-read", workers=16, repeat=0)
    found = answers({("rgw", 0): search(), ("swift", 0): search(*GOOD)}, lost={key: "it died"})
    assert only(found).rate_per_s is None
    lone = answers({("swift", 0): search(*GOOD), ("rgw", 1): search()}, lost={key: "it died"})
    assert "gave no rate to start from: it died" in only(lone).words


def test_layouts_whose_hosts_differ_are_not_comparable() -> None:
    doubt = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    found = answers(
        {("rgw", 0): search(*GOOD), ("swift", 0): search(*GOOD)},
        pairs=(PairDoubt(layouts=("rgw", "swift"), doubt=doubt),),
    )
    assert "; not comparable: hosts differ: CPU of gateway-1; provisional: " in found.sentences[0]


def test_repeats_without_an_answer_are_named() -> None:
    given = {("rgw", 0): search(*GOOD), ("rgw", 1): search((10.0, MISSED), (10.0, MISSED))}
    rate = only(answers(given, repeats=2))
    assert rate.repeats == 1
    assert any("in 1 of 2 repeats no rate was served" in note for note in rate.notes)
