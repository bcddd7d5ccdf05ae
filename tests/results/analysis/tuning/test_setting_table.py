"""The table of trials of a tuning on made-up trials: effects and verdicts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fake_trials import TrialMaker, fake_variant, tuning_run
from made_rows import altered, changed
from trial_rounds import FEW, MANY, P90, READ, book, entry, rounds
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Constraints, Objective, Trials


def test_a_linear_drift_is_removed_completely() -> None:
    drifting = TrialMaker(tuning_run(), level=lambda at_s: 1000 * 1.2 ** (at_s / 3600))
    maker = rounds(drifting, (MANY, 1.0), (FEW, 1.2))
    ratio = entry(maker).effects[0].ratio
    assert ratio is not None
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((1.2, 1.2, 1.2))
    assert entry(maker).verdict == "better"
    assert entry(maker, MANY).verdict == "too small to matter"


def test_trials_without_spread_are_judged() -> None:
    maker = rounds(TrialMaker(tuning_run()), (FEW, 1.0), (MANY, 2.0))
    few, many = entry(maker), entry(maker, MANY)
    assert few.verdict == "too small to matter"
    assert (few.clear, few.effects[0].p, few.effects[0].rank_p) == (True, 1.0, 1.0)
    assert many.verdict == "better"
    assert (many.clear, many.effects[0].p, many.effects[0].smallest) == (True, 0.0, 1.0)


def test_p_is_multiplied_by_the_number_of_looks_and_the_interval_is_wider() -> None:
    def once(looks: int) -> tuple[float, float, float]:
        run = tuning_run(trials=Trials(least=8 - looks + 1, most=8))
        effect = entry(rounds(TrialMaker(run, scatter=0.05, seed=3), (FEW, 1.05))).effects[0]
        assert effect.p is not None
        assert effect.ratio is not None
        assert effect.ratio.low is not None
        assert effect.ratio.high is not None
        return effect.p, effect.ratio.low, effect.ratio.high

    (p, low, high), (p_of_4, low_of_4, high_of_4) = once(1), once(4)
    assert p_of_4 == pytest.approx(min(1.0, 4 * p))
    assert low_of_4 < low < high < high_of_4


def test_effects_of_all_settings_are_corrected_together_and_too_few_trials_help_no_other() -> None:
    maker = TrialMaker(tuning_run(), scatter=0.04, seed=5)
    others = [fake_variant(number) for number in range(1, 13)]
    rounds(maker, (FEW, 1.2), (MANY, 1.0))
    alone = entry(maker).effects[0]
    rounds(maker, *((one, 3.0) for one in others), count=3)
    among = entry(maker).effects[0]
    assert alone.p == among.p
    assert alone.p is not None
    assert alone.q == pytest.approx(2 * alone.p)
    assert among.q == pytest.approx(14 * alone.p)
    assert {entry(maker, one).verdict for one in others} == {"provisional"}
    assert {entry(maker, one).effects[0].q for one in others} == {None}


def test_values_are_medians_and_delta_is_the_share_higher_minus_the_share_lower() -> None:
    maker = TrialMaker(tuning_run())
    for number, factor in enumerate((0.9, 1.1, 1.2, 1.3, 5.0)):
        maker.visit(maker.baseline, round=number)
        maker.visit(FEW, factor, round=number)
    effect = entry(maker).effects[0]
    assert (effect.baseline_value, effect.subject_value) == (1000, pytest.approx(1200))
    assert effect.delta == pytest.approx((4 - 1) / 5)
    # 0.9 has the second rank: sums of 0, 1 and 2, and as many at the other end.
    assert effect.rank_p == pytest.approx(6 / 2**5)
    assert effect.baseline == "rgw-beast"
    assert (effect.subject, effect.about, effect.workers) == ("threads-64", "64 kB reads", 16)


def test_a_shorter_p90_is_better_and_its_gain_is_inverted() -> None:
    maker = rounds(TrialMaker(tuning_run(P90), scatter=0.01), (FEW, 1.25), (MANY, 0.8))
    few, many = entry(maker), entry(maker, MANY)
    assert (few.verdict, many.verdict) == ("better", "worse")
    assert few.gain == pytest.approx(1.25, rel=0.02)
    assert few.effects[0].ratio is not None
    assert few.effects[0].ratio.value == pytest.approx(0.8, rel=0.02)
    assert [one.variant for one in book(maker).entries] == [FEW, MANY]


def test_a_gain_is_the_geometric_mean_over_objectives_with_the_interval_of_one_look() -> None:
    maker, pairs = TrialMaker(tuning_run(READ, P90)), ((2.0, 8.0), (1.0, 16.0), (1.5, 12.0))
    for number, (factor, p90_ms) in enumerate(pairs):
        maker.visit(maker.baseline, round=number)
        maker.visit(FEW, factor, round=number, p90_ms=p90_ms)
    found = entry(maker)
    logs = [(math.log(factor) - math.log(p90_ms / 16)) / 2 for factor, p90_ms in pairs]
    middle = sum(logs) / 3
    spread = math.sqrt(sum((log - middle) ** 2 for log in logs) / 2 / 3)
    assert found.gain == pytest.approx(math.exp(middle))
    assert found.gain_low == pytest.approx(math.exp(middle - 4.302653 * spread))
    assert found.gain_high == pytest.approx(math.exp(middle + 4.302653 * spread))


def test_one_trial_has_a_gain_without_an_interval_and_makes_no_claim() -> None:
    maker = rounds(TrialMaker(tuning_run()), (FEW, 2.0), count=1)
    found = entry(maker)
    assert found.gain == pytest.approx(2.0)
    assert (found.gain_low, found.gain_high, found.effects[0].p) == (None, None, None)
    assert (found.verdict, found.clear) == ("provisional", False)
    assert "100 % more 64 kB reads at 16 workers, n = 1: provisional" in found.effects[0].text


def test_cpu_is_compared_with_the_baseline_next_to_each_trial_too() -> None:
    maker = TrialMaker(tuning_run())
    for number in range(3):
        maker.visit(maker.baseline, round=number, gateway_cpu_s_per_1000_ops=2.0 + number)
        maker.visit(FEW, round=number, gateway_cpu_s_per_1000_ops=(2.0 + number) * 0.5)
    found = entry(maker)
    assert found.gateway_cpu is not None
    assert (found.gateway_cpu.value, found.gateway_cpu.repeats) == (pytest.approx(0.5), 3)
    assert found.storage_cpu is None


def test_settings_clear_of_the_threshold_are_recognized() -> None:
    maker = rounds(
        TrialMaker(tuning_run(threshold=Bounds(throughput_ratio=1.1)), scatter=0.02, seed=4),
        (FEW, 1.4),
        (MANY, 1.0),
        (fake_variant(1), 1.11),
    )
    assert (entry(maker).verdict, entry(maker).clear) == ("better", True)
    assert (entry(maker, MANY).verdict, entry(maker, MANY).clear) == ("too small to matter", True)
    assert entry(maker, fake_variant(1)).clear is False


def test_a_wide_interval_or_four_trials_without_spread_are_neither_clear_nor_a_claim() -> None:
    found = entry(rounds(TrialMaker(tuning_run(), scatter=0.08, seed=2), (FEW, 1.0)))
    assert (found.verdict, found.clear) == ("not significant", False)
    assert found.effects[0].verdict == "not significant"
    found = entry(rounds(TrialMaker(tuning_run(trials=Trials(least=2))), (FEW, 1.0), count=4))
    assert (found.verdict, found.clear) == ("provisional", False)


@pytest.mark.parametrize(
    ("p90_ms", "of_p90", "verdict"),
    [(40.0, "worse", "trade-off"), (16.0, "too small to matter", "better")],
)
def test_a_setting_that_is_worse_in_one_of_two_objectives_is_a_trade_off(
    p90_ms: float, of_p90: str, verdict: str
) -> None:
    maker = rounds(TrialMaker(tuning_run(READ, P90), scatter=0.01), (FEW, 1.3), p90_ms=p90_ms)
    assert [effect.verdict for effect in entry(maker).effects] == ["better", of_p90]
    assert entry(maker).verdict == verdict


def test_an_unknown_objective_prevents_any_claim() -> None:
    maker = rounds(TrialMaker(tuning_run(READ, P90), scatter=0.01), (FEW, 1.3))
    own = {key for key in maker.visits if key.layout == FEW.name}
    for key in own:
        point = changed(maker.visits[key].points["read"], p90_ms=None)
        maker.visits[key] = altered(maker.visits[key], points={"read": point})
    found = entry(maker)
    assert [effect.verdict for effect in found.effects] == ["better", "not comparable"]
    assert (found.verdict, found.gain, found.clear) == ("not comparable", None, False)
    assert "an objective cannot be judged, so the others claim nothing" in found.notes
    assert found.effects[1].text.endswith("too few samples for a p90)")


def test_a_setting_under_which_too_many_requests_fail_is_not_allowed_whatever_it_gains() -> None:
    failing: dict[str, Any] = {
        "errors": 600,
        "samples": 29_400,
        "valid": False,
        "notes": ("2.00% failed",),
    }
    found = entry(rounds(TrialMaker(tuning_run(), scatter=0.01), (FEW, 1.5), **failing))
    assert found.verdict == "not allowed"
    assert any("2.00% of operations failed, beyond the bound" in note for note in found.notes)


def test_failures_are_pooled_over_trials_and_compared_with_the_tunings_bound() -> None:
    maker = TrialMaker(tuning_run(), scatter=0.01)
    rounds(maker, (FEW, 1.5), count=5)
    maker.visit(FEW, 1.5, round=4, errors=100, samples=29_900, valid=False)
    assert entry(maker).verdict == "better"  # 100 of some 255,000
    loose = TrialMaker(tuning_run(constraints=Constraints(error_share=0.05)), scatter=0.01)
    assert entry(rounds(loose, (FEW, 1.5), errors=600, samples=29_400)).verdict == "better"


def test_a_setting_with_too_long_a_p90_is_not_allowed() -> None:
    slow = TrialMaker(tuning_run(constraints=Constraints(p90=0.015)), scatter=0.01)
    found = entry(rounds(slow, (FEW, 1.0)))
    assert found.verdict == "not allowed"
    assert any(
        note.startswith("p90 of read of small-read at 16 workers: 1") and "bound of 15 ms" in note
        for note in found.notes
    )
    assert entry(rounds(TrialMaker(slow.run, scatter=0.01), (FEW, 1.2))).verdict == "better"


def test_a_setting_with_one_too_long_stall_is_not_allowed() -> None:
    slow = TrialMaker(tuning_run(constraints=Constraints(stall=5.0)), scatter=0.01)
    rounds(slow, (FEW, 1.5), stall_s=4.9)
    assert entry(slow).verdict == "better"
    slow.visit(FEW, 1.5, round=4, stall_s=20.2)
    found = entry(slow)
    assert found.verdict == "not allowed"
    text = "longest stall of small-read at 16 workers: 20.2 s, beyond the bound of 5 s"
    assert text in found.notes


def test_no_trials_or_only_the_baselines_give_no_entries() -> None:
    maker = TrialMaker(tuning_run())
    assert book(maker).entries == ()
    maker.visit(maker.baseline)
    found = book(maker)
    assert (found.entries, found.trials, found.looks, found.baseline) == ((), 1, 4, maker.baseline)
    assert found.entry(FEW) is None


def test_settings_without_effect_have_enough_trials() -> None:
    maker = rounds(TrialMaker(tuning_run(), scatter=0.08, seed=2), (FEW, 1.0), (MANY, 3.0))
    rounds(maker, (fake_variant(1), 1.0), count=2)
    assert [one.variant for one in book(maker).without_effect] == [FEW]


def test_any_compared_metric_can_be_an_objective() -> None:
    maker = TrialMaker(tuning_run(Objective(of="max", workload="small-read")))
    for number in range(6):
        maker.visit(maker.baseline, round=number, max_ms=100.0)
        maker.visit(FEW, round=number, max_ms=70.0)
        maker.visit(MANY, round=number, max_ms=85.0)
        maker.visit(maker.baseline, round=number, max_ms=100.0)
    (few,), (many,) = entry(maker).effects, entry(maker, MANY).effects
    assert (few.metric, few.verdict) == ("max", "better")
    assert (few.subject_value, few.ratio and few.ratio.value) == (70, pytest.approx(0.7))
    assert "max of 64 kB reads at 16 workers 30 % shorter" in few.text
    # 18 % less is within the 25 % that matter of a maximum.
    assert many.verdict == "too small to matter"
