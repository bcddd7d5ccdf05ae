"""The search for the highest rate, against simulated servers of known capacity."""

import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from fake_run import WORKLOADS
from made_rows import altered, present
from made_up import fake_measurement
from weighbridge.common.errors import UsageError
from weighbridge.results.features.find import Found, FoundRate, found_rates
from weighbridge.results.features.rate_search import (
    MOST_AT_A_RATE,
    RESOLVED,
    RateSearch,
    RateTrial,
    Searches,
    least_per_s,
    parse_bound,
    rate_trial,
    window_s,
)
from weighbridge.results.figures.doubt import Doubt, PairDoubt
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.summary import visit
from weighbridge.results.figures.use import StepUse
from weighbridge.results.run import LatencyBound, PlannedLayout, ResolvedPlan, StepKey, StepResult
from weighbridge.results.run.resolved import PlannedHardware
from weighbridge.suites import Bounds, Suite

Server = Callable[[float], RateTrial]


def trial(rate_per_s: float, verdict: Any, why: str = "") -> RateTrial:
    return RateTrial(rate_per_s, verdict, why)


def serving(capacity_per_s: float) -> Server:
    """A server that serves all rates up to its capacity."""
    return lambda rate: trial(rate, "served" if rate <= capacity_per_s else "not served")


def noisy(capacity_per_s: float, scatter: float, seed: int) -> Server:
    """A server whose capacity scatters from step to step, by this standard deviation."""
    draw = random.Random(seed)

    def server(rate: float) -> RateTrial:
        return serving(capacity_per_s * math.exp(draw.gauss(0, scatter)))(rate)

    return server


def ended(server: Server, start_per_s: float = 1000.0, least_per_s: float = 0.0) -> RateSearch:
    search = RateSearch(start_per_s=start_per_s, least_per_s=least_per_s)
    for _ in range(MOST_AT_A_RATE):
        rate = search.next_per_s
        if rate is None:
            break
        search = search.heard(server(rate))
    assert search.next_per_s is None
    return search


NEAR = (1010.0, 999.0, 930.0, 850.0, 700.0, 512.0)
AWAY = (1500.0, 300.0, 100.0, 45.0, 12.0)


@pytest.mark.parametrize("capacity", [*NEAR, *AWAY])
def test_a_capacity_is_enclosed_and_confirmed_and_a_near_one_to_5_per_cent(capacity: float) -> None:
    search = ended(serving(capacity))
    assert present(search.low) <= capacity < present(search.high)
    assert search.confirmed
    if capacity in NEAR:
        assert search.resolved
        assert present(search.high) <= RESOLVED * present(search.low)
    else:
        assert len(search.trials) == MOST_AT_A_RATE


def test_a_bound_that_every_rate_misses_or_none_has_one_end() -> None:
    search = ended(serving(0.0), least_per_s=20.0)
    assert (search.low, search.high) == (None, 20.0)
    assert [one.rate_per_s for one in search.trials].count(20.0) == 2
    search = ended(serving(0.0), start_per_s=10.0, least_per_s=50.0)
    assert {one.rate_per_s for one in search.trials} == {50.0}, "the lowest that a step can judge"
    search = ended(serving(math.inf))
    assert (search.high, search.confirmed) == (None, True)
    assert present(search.low) > 10_000


@pytest.mark.parametrize("capacity", [950.0, 800.0, 600.0])
def test_noise_moves_the_answer_by_little_more_than_itself(capacity: float) -> None:
    """With a scatter of 3 % from step to step, nine of ten are at most 15 % below and 6 % above."""
    answers = [ended(noisy(capacity, 0.03, seed)).low for seed in range(200)]
    shares = [0.0 if low is None else low / capacity for low in answers]
    assert sum(0.85 <= share <= 1.06 for share in shares) >= 180
    assert max(shares) <= 1.06


def first(verdict: str, capacity_per_s: float) -> RateSearch:
    """The search of a server of this capacity whose first step has this verdict."""
    real, given = serving(capacity_per_s), iter([verdict])
    return ended(lambda rate: trial(rate, next(given, real(rate).verdict), "by chance"))


def test_one_step_by_chance_does_not_set_the_answer() -> None:
    """The answer after a failure by chance may be wide, and encloses the capacity."""
    search = first("not served", 950.0)
    assert present(search.low) >= 690
    at_first = search.trials[0].rate_per_s
    again = [one.verdict for one in search.trials if one.rate_per_s == at_first]
    assert again[0] == "not served"
    assert len(again) > 1
    search = first("served", 800.0)
    assert search.trials[0].verdict == "served"
    assert search.trials[0].rate_per_s > 800
    assert search.low is None or search.low <= 800, "it was not confirmed"


def test_a_step_that_says_nothing_is_repeated_once_and_is_no_evidence() -> None:
    search = first("cannot tell", 900.0)
    assert search.trials[0].rate_per_s == search.trials[1].rate_per_s
    assert search.blocked is None
    assert present(search.low) <= 900
    search = ended(lambda rate: trial(rate, "cannot tell", "the driver was saturated"))
    assert (len(search.trials), search.low, search.high) == (2, None, None)
    assert present(search.blocked).why == "the driver was saturated"


def test_beyond_what_a_driver_can_do_the_rate_below_is_confirmed_and_the_reason_kept() -> None:
    def server(rate: float) -> RateTrial:
        return trial(rate, "served" if rate < 900 else "cannot tell", "the driver was saturated")

    search = ended(server)
    assert search.high is None
    assert search.confirmed
    assert present(search.blocked).rate_per_s == 1000


def test_the_last_step_is_kept_for_an_answer_that_was_measured_once() -> None:
    search = ended(serving(30.0))
    assert search.trials[-1].rate_per_s == search.low
    assert not search.resolved


def test_a_rate_whose_steps_disagree_is_measured_a_third_time() -> None:
    given = iter(["served", "not served", "served", "served", "not served"])
    search = RateSearch(start_per_s=1000.0)
    asked = []
    while (rate := search.next_per_s) is not None:
        asked.append(rate)
        search = search.heard(trial(rate, next(given, "served")))
    # 833 was served, 1000 not, 913 and 955 were; 955 is confirmed, and is not.
    assert asked[4] == asked[3]
    assert asked[5] == asked[3]


@pytest.mark.parametrize("capacity", [990.0, 700.0, 20.0])
def test_a_search_goes_on_from_any_of_its_steps_to_the_same_answer(capacity: float) -> None:
    whole = ended(serving(capacity))
    for many in range(len(whole.trials)):
        cut = RateSearch(start_per_s=1000.0, trials=whole.trials[:many])
        assert cut.next_per_s == whole.trials[many].rate_per_s


KEY = StepKey(
    layout="rgw",
    api="swift",
    workload="small-read",
    workers=4,
    repeat=0,
    rate_per_s=100.0,
    search_step=1,
)
BOUND = LatencyBound(metric="p90", most_ms=50.0)


def judged(
    *,
    begun: int = 2000,
    bound: LatencyBound = BOUND,
    use: StepUse | None = None,
    spoil: bool = False,
    **measured: Any,
) -> RateTrial:
    """A step of 20 s at 100/s in which by default 2000 of 10 ms were sent, and served."""
    given = {"workers": 4, "window_s": 20.0, "mean_ms": 40.0, "spread": 0.01, **measured}
    measurement = altered(fake_measurement(**given), begun=begun, behind_us=0)
    if spoil:
        tallies = tuple(altered(one, latency="x") for one in measurement.tallies)
        measurement = altered(measurement, tallies=tallies)
    step = StepResult(key=KEY, measurement=measurement, valid=True, order=0)
    return rate_trial(step, visit(step, use), bound, Bounds())


STRICT = LatencyBound(metric="p90", most_ms=30.0)
BUSY = StepUse(others=0.4, lab=True)


@pytest.mark.parametrize(
    ("given", "verdict", "why"),
    [
        ({"begun": 1985}, "served", ""),
        ({"begun": 1970}, "not served", "of the 100 intended (98.5%)"),
        ({"bound": STRICT}, "not served", "p90 of reads is 40"),
        ({"errors": {"http-503": 1}}, "served", ""),
        ({"errors": {"http-503": 40}}, "not served", "http-503: 40"),
        # A full driver says nothing, whether or not a bound is missed.
        ({"driver_share": 0.9}, "cannot tell", "the driver used 90% of its CPU limit"),
        ({"driver_share": 0.9, "bound": STRICT}, "cannot tell", "the driver used 90%"),
        ({"driver_share": 0.9, "begun": 1000}, "cannot tell", ""),
        # A rate that was served beside others is served; one that was not might be without them.
        ({"use": BUSY}, "served", ""),
        ({"use": BUSY, "bound": STRICT}, "cannot tell", "other programs used 40 %"),
    ],
)
def test_a_rate_is_served_within_all_bounds_if_driver_and_machine_allow_to_tell(
    given: dict[str, Any], verdict: str, why: str
) -> None:
    found = judged(**given)
    assert (found.verdict, why in found.why) == (verdict, True)


def test_a_rate_served_has_its_latency_and_what_is_doubtful_about_it() -> None:
    found = judged()
    assert (found.verdict, found.why, found.rate_per_s) == ("served", "", 100.0)
    assert found.latency_ms == pytest.approx(40, rel=0.05)
    found = judged(use=StepUse(others=0.35, lab=True))
    assert found.verdict == "served"
    assert [doubt.what for doubt in found.doubts] == ["machine busy"]


def test_the_upper_end_of_an_interval_decides() -> None:
    # 100 samples: p90 has an interval.
    few: dict[str, Any] = {"window_s": 1.0, "spread": 0.3, "workers": 4}
    loose = judged(begun=100, bound=LatencyBound(metric="p90", most_ms=200.0), **few)
    assert loose.verdict == "served"
    close = judged(
        begun=100, bound=LatencyBound(metric="p90", most_ms=present(loose.latency_ms) * 1.01), **few
    )
    assert close.verdict == "not served"
    assert " to " in close.why


def test_too_few_samples_or_a_histogram_that_cannot_be_read_say_nothing() -> None:
    found = judged(begun=20, window_s=0.2, mean_ms=160.0)  # 5 samples
    assert (found.verdict, found.why) == ("cannot tell", "p90 of reads is not known")
    found = judged(spoil=True)
    assert found.verdict == "cannot tell"
    assert found.why


def test_windows_hold_the_samples_of_a_percentile_up_to_a_minute() -> None:
    workload = altered(WORKLOADS[0], runtime=2.0)
    p90, p99, longest = (METRICS[name] for name in ("p90", "p99", "max"))
    assert window_s(workload, p90, 1000.0) == 10.0
    assert window_s(workload, p90, 10.0) == 20.0
    assert window_s(workload, p99, 20.0) == 60.0
    assert window_s(workload, longest, 0.1) == 10.0
    assert least_per_s(workload, p90) == pytest.approx(36 / 60)
    assert window_s(altered(workload, runtime=90.0), p90, 20.0) == 90.0


def test_a_step_without_a_rate_is_no_trial() -> None:
    key = altered(KEY, rate_per_s=None, search_step=None)
    step = StepResult(key=key, measurement=fake_measurement(), valid=True, order=0)
    with pytest.raises(ValueError, match="not a measured step at a rate"):
        rate_trial(step, visit(step), BOUND, Bounds())


SERVED: Final = "served"
MISSED: Final = "not served"
UNKNOWN: Final = "cannot tell"


class Given(Searches):
    """Searches that are given by layout and repeat."""

    def __init__(self, suite: Suite, given: dict[tuple[str, int], RateSearch]) -> None:
        super().__init__(BOUND, suite)
        self.given = given

    def of(self, key: StepKey) -> RateSearch | None:
        return self.given.get((key.layout, key.repeat))


def search(*steps: tuple[float, Any]) -> RateSearch:
    trials = tuple(
        RateTrial(rate, SERVED, "", 40.0)
        if verdict == SERVED
        else RateTrial(rate, verdict, "slow", 90.0)
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
    assert present(rate.low_per_s) < 912.8 * 1.02 < present(rate.high_per_s) < 955.4 * 1.02
    assert "provisional" not in found.sentences[0]


@pytest.mark.parametrize(
    ("steps", "known", "said"),
    [
        ([(10.0, MISSED)] * 2, False, "not even 10.0 requests/s"),
        ([(833.3 * 1.2**n, SERVED) for n in range(7)], True, "no higher rate was tried"),
        ([(833.3, UNKNOWN)] * 2, False, "two steps at 833 requests/s were inconclusive: slow"),
        (APART, False, "not known: steps at 694 requests/s disagree, 761 are not served"),
        (WIDE, True, "7 steps were not enough for 5 %"),
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


@pytest.mark.parametrize(
    ("text", "metric", "most_ms"),
    [
        ("p90<=50ms", "p90", 50.0),
        (" p99 <= 0.2s ", "p99", 200.0),
        ("p50<=500us", "p50", 0.5),
        ("max<=2s", "max", 2000.0),
        ("first-byte<=20ms", "first-byte", 20.0),
        ("p99.9<=1m", "p99.9", 60_000.0),
    ],
)
def test_a_bound_is_a_latency_and_its_largest_value(text: str, metric: str, most_ms: float) -> None:
    found = parse_bound(text)
    assert (found.metric, found.most_ms) == (metric, most_ms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a bound"),
        ("p90", "is not a bound"),
        ("p90<=", "is not a bound"),
        ("p900<=50ms", "did you mean 'p90'?"),
        ("firstbyte<=50ms", "did you mean 'first-byte'?"),
        ("throughput<=50ms", "is not a latency"),
        ("p90<50ms", "'<' is not <="),
        ("p90>=50ms", "'>=' is not <="),
        ("p90 50ms", "'nothing' is not <="),
        ("p90<=50", "is not a quantity"),
        ("p90<=50MB", "is not a quantity"),
        ("p90<=0ms", "above 0"),
        ("p90<=2h", "at most 1h"),
        ("p90<=-1ms", "is not a quantity"),
        ("p90<=50ms; rm", "is not a quantity"),
    ],
)
def test_other_texts_are_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        parse_bound(text)
