"""The table of trials of a tuning on made-up trials: readings, references, claims and words."""

from __future__ import annotations

import math

import pytest

from fake_trials import THREADS, TRIAL_S, Rig, arm, tuning_run
from made_rows import changed
from weighbridge.results.analysis.tuning.ledger import Ledger, LedgerEntry, ledger
from weighbridge.results.analysis.tuning.readings import NO_BASELINE
from weighbridge.results.record.trial import Arm, TuningRun
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Constraints, Objective, Parameter, Range, Trials

READ = Objective(workload="small-read")
P90 = Objective(of="p90", workload="small-read")
FEW, MANY = arm(64), arm(128)


def book(rig: Rig) -> Ledger:
    return ledger(rig.run, rig.trials, rig.visits)


def entry(rig: Rig, who: Arm = FEW) -> LedgerEntry:
    found = book(rig).entry(who)
    assert found is not None
    return found


def rounds(rig: Rig, *arms: tuple[Arm, float], count: int = 6, **point: object) -> Rig:
    """Rounds of baseline, these variants in order, baseline."""
    for number in range(count):
        rig.visit(rig.baseline, round=number)
        for who, factor in arms:
            rig.visit(who, factor, round=number, **point)
        rig.visit(rig.baseline, round=number)
    return rig


def values(rig: Rig, who: Arm = FEW) -> list[tuple[float | None, float | None, str]]:
    own = {trial.number for trial in rig.trials if trial.arm == who}
    return [(one.value, one.reference, one.why) for one in book(rig).readings if one.trial in own]


# Readings and references


def test_a_trial_is_compared_with_the_baseline_interpolated_in_time_on_logarithms() -> None:
    rig = Rig(tuning_run(), level=lambda at_s: 1000 * 4 ** (at_s / (4 * TRIAL_S)))
    for who in (rig.baseline, FEW, MANY, MANY, rig.baseline):
        rig.visit(who)
    [(value, reference, why)] = values(rig)
    assert (value, reference, why) == (
        pytest.approx(1000 * 4**0.25),
        pytest.approx(1000 * 4**0.25),
        "",
    )
    assert values(rig, rig.baseline) == [(1000, None, ""), (pytest.approx(4000), None, "")]


def test_a_late_trial_is_compared_with_the_baseline_of_that_time() -> None:
    rig = Rig(tuning_run(), level=lambda at_s: 1000.0 if at_s == 0 else 2000.0)
    rig.visit(rig.baseline)
    rig.visit(FEW)
    rig.visit(rig.baseline)
    rig.trials[1] = rig.trials[1].model_copy(update={"started_s": 0.75 * 2 * TRIAL_S})
    assert values(rig)[0][1] == pytest.approx(1000 * 2**0.75)


def test_a_useless_clock_is_replaced_by_the_count_of_trials() -> None:
    rig = Rig(tuning_run(), level=lambda at_s: 1000.0 if at_s == 0 else 2000.0)
    for who in (rig.baseline, FEW, MANY, rig.baseline):
        rig.visit(who)
    rig.trials = [trial.model_copy(update={"started_s": 5.0}) for trial in rig.trials]
    assert values(rig)[0][1] == pytest.approx(1000 * 2 ** (1 / 3))


def test_a_trial_with_the_baseline_on_one_side_is_compared_with_that() -> None:
    rig = Rig(tuning_run())
    rig.visit(rig.baseline)
    rig.visit(FEW, 1.5)
    assert values(rig) == [(1500, 1000, "")]


def test_baselines_of_another_round_or_deployment_are_not_used() -> None:
    rig = Rig(tuning_run())
    rig.visit(rig.baseline, round=0)
    rig.visit(FEW, round=1)
    rig.visit(rig.baseline, round=1, deployment=1)
    assert values(rig) == [(1000, None, NO_BASELINE)]
    assert entry(rig).verdict == "not comparable"
    assert NO_BASELINE in entry(rig).effects[0].text


def test_an_unsteady_baseline_is_skipped_for_the_next_one() -> None:
    rig = Rig(tuning_run(), level=lambda at_s: 1000 + at_s)
    rig.visit(rig.baseline)
    rig.visit(rig.baseline, steady=False)
    rig.visit(FEW)
    assert values(rig)[0][1] == 1000


def test_a_trial_with_an_invalid_or_unsteady_step_has_no_figure_and_says_why() -> None:
    rig = Rig(tuning_run())
    rig.visit(rig.baseline)
    rig.visit(FEW, valid=False, notes=("the driver used 92% of its CPU limit",))
    rig.visit(FEW, steady=False)
    rig.visit(FEW)
    assert [(value, why) for value, _, why in values(rig)] == [
        (None, "small-read at 16 workers: the driver used 92% of its CPU limit"),
        (None, "small-read at 16 workers: not steady"),
        (1000, ""),
    ]
    effect = entry(rig).effects[0]
    assert effect.ratio is not None
    assert effect.ratio.repeats == 1
    assert any(
        note.startswith("1 of 3 trials have no figure: small-read at 16 workers: not steady")
        for note in entry(rig).notes
    )


def test_reasons_that_differ_in_a_number_alone_are_given_once() -> None:
    rig = Rig(tuning_run())
    for used in (91, 93, 95):
        rig.visit(FEW, valid=False, notes=(f"the driver used {used}% of its CPU limit",))
    rig.visit(FEW, steady=False)
    assert entry(rig).notes == (
        (
            "3 of 4 trials have no figure: small-read at 16 workers: the driver used 91% of its "
            "CPU limit"
        ),
        "1 of 4 trials have no figure: small-read at 16 workers: not steady",
    )


def test_a_trial_with_a_missing_step_has_no_figure() -> None:
    rig = Rig(tuning_run())
    rig.visit(FEW)
    rig.visits.clear()
    assert values(rig) == [(None, None, "small-read at 16 workers: not measured")]


def test_failed_trials_have_no_readings_and_make_a_setting_failed() -> None:
    rig = rounds(Rig(tuning_run()), (MANY, 1.0), count=2)
    rig.fail(FEW, "radosgw did not come up in 60 s")
    rig.fail(FEW, "radosgw did not come up in 60 s")
    assert values(rig) == []
    found = entry(rig)
    assert (found.verdict, found.trials, found.gain, found.clear) == ("failed", 0, None, False)
    assert "2 of 2 trials could not be made: radosgw did not come up in 60 s" in found.notes
    assert found.effects[0].text.endswith(
        "64 kB reads at 16 workers cannot be compared (radosgw did not come up in 60 s)"
    )
    assert book(rig).entries[-1].arm == FEW


def test_a_setting_that_failed_once_is_judged_by_its_other_trials() -> None:
    rig = rounds(Rig(tuning_run(), scatter=0.01), (FEW, 1.3))
    rig.fail(FEW, "radosgw did not come up in 60 s")
    assert (entry(rig).verdict, entry(rig).trials) == ("better", 6)
    assert any(note.startswith("1 of 7 trials could not be made") for note in entry(rig).notes)


def within(
    *, steady: dict[int, bool] | None = None, p90_ms: dict[int, float | None] | None = None
) -> tuple[float | None, str]:
    run = tuning_run(Objective(workload="small-read", p90_within=0.05), workers=(4, 8, 16))
    rig = Rig(run)
    rig.visit(rig.baseline)
    rig.visit(FEW)
    for key, visit in [(key, visit) for key, visit in rig.visits.items() if key.layout == FEW.name]:
        given = {
            "p90_ms": (p90_ms or {}).get(key.workers, 20.0),
            "steady": (steady or {}).get(key.workers, True),
        }
        point = changed(visit.points["read"], **given)
        rig.visits[key] = visit.model_copy(
            update={"points": {"read": point}, "steady": given["steady"]}
        )
    [(value, _, why)] = values(rig)
    return value, why


def test_the_largest_throughput_within_a_p90_is_over_worker_counts_within_it() -> None:
    assert within() == (1000, "")
    assert within(p90_ms={16: 51.0}) == (500, "")
    assert within(p90_ms={16: None}) == (500, "")


def test_a_p90_exceeded_everywhere_gives_no_figure() -> None:
    assert within(p90_ms={4: 60.0, 8: 70.0, 16: None}) == (
        None,
        "small-read: p90 is known to be within 50 ms at none of its worker counts",
    )


def test_an_unranked_step_leaves_the_largest_unknown_unless_its_p90_is_too_long() -> None:
    assert within(steady={8: False}) == (None, "small-read at 8 workers: not steady")
    assert within(steady={16: False}, p90_ms={16: 51.0}) == (500, "")


# Effects


def test_a_linear_drift_is_removed_completely() -> None:
    rig = rounds(
        Rig(tuning_run(), level=lambda at_s: 1000 * 1.2 ** (at_s / 3600)), (MANY, 1.0), (FEW, 1.2)
    )
    effect = entry(rig).effects[0]
    assert effect.ratio is not None
    assert (effect.ratio.low, effect.ratio.value, effect.ratio.high) == pytest.approx(
        (1.2, 1.2, 1.2)
    )
    assert entry(rig).verdict == "better"
    assert entry(rig, MANY).verdict == "too small to matter"


def test_trials_without_spread_are_judged() -> None:
    rig = rounds(Rig(tuning_run()), (FEW, 1.0), (MANY, 2.0))
    few, many = entry(rig), entry(rig, MANY)
    assert (few.verdict, few.clear, few.effects[0].p, few.effects[0].rank_p) == (
        "too small to matter",
        True,
        1.0,
        1.0,
    )
    assert (many.verdict, many.clear, many.effects[0].p, many.effects[0].smallest) == (
        "better",
        True,
        0.0,
        1.0,
    )


def test_p_is_multiplied_by_the_number_of_looks_and_the_interval_is_wider() -> None:
    def once(looks: int) -> tuple[float, float, float]:
        run = tuning_run(trials=Trials(least=8 - looks + 1, most=8))
        effect = entry(rounds(Rig(run, scatter=0.05, seed=3), (FEW, 1.05))).effects[0]
        assert effect.p is not None
        assert effect.ratio is not None
        assert effect.ratio.low is not None
        assert effect.ratio.high is not None
        return effect.p, effect.ratio.low, effect.ratio.high

    (p, low, high), (p_of_4, low_of_4, high_of_4) = once(1), once(4)
    assert p_of_4 == pytest.approx(min(1.0, 4 * p))
    assert low_of_4 < low < high < high_of_4


def test_effects_of_all_settings_are_corrected_together_and_too_few_trials_help_no_other() -> None:
    rig = Rig(tuning_run(), scatter=0.04, seed=5)
    others = [arm(number) for number in range(1, 13)]
    rounds(rig, (FEW, 1.2), (MANY, 1.0))
    alone = entry(rig).effects[0]
    rounds(rig, *((one, 3.0) for one in others), count=3)
    among = entry(rig).effects[0]
    assert alone.p == among.p
    assert alone.p is not None
    assert alone.q == pytest.approx(2 * alone.p)
    assert among.q == pytest.approx(14 * alone.p)
    assert {entry(rig, one).verdict for one in others} == {"provisional"}
    assert {entry(rig, one).effects[0].q for one in others} == {None}


def test_values_are_medians_and_delta_is_the_share_higher_minus_the_share_lower() -> None:
    rig = Rig(tuning_run())
    for number, factor in enumerate((0.9, 1.1, 1.2, 1.3, 5.0)):
        rig.visit(rig.baseline, round=number)
        rig.visit(FEW, factor, round=number)
    effect = entry(rig).effects[0]
    assert (effect.baseline_value, effect.subject_value) == (1000, pytest.approx(1200))
    assert effect.delta == pytest.approx((4 - 1) / 5)
    assert effect.rank_p == pytest.approx(
        6 / 2**5
    )  # 0.9 has the second rank: sums of 0, 1 and 2, and as many at the other end
    assert (effect.baseline, effect.subject, effect.about, effect.workers) == (
        "rgw-beast",
        "threads-64",
        "64 kB reads",
        16,
    )


def test_a_shorter_p90_is_better_and_its_gain_is_inverted() -> None:
    rig = rounds(Rig(tuning_run(P90), scatter=0.01), (FEW, 1.25), (MANY, 0.8))
    few, many = entry(rig), entry(rig, MANY)
    assert (few.verdict, many.verdict) == ("better", "worse")
    assert few.gain == pytest.approx(1.25, rel=0.02)
    assert few.effects[0].ratio is not None
    assert few.effects[0].ratio.value == pytest.approx(0.8, rel=0.02)
    assert [one.arm for one in book(rig).entries] == [FEW, MANY]


def test_a_gain_is_the_geometric_mean_over_objectives_with_the_interval_of_one_look() -> None:
    rig = Rig(tuning_run(READ, P90))
    for number, (factor, p90_ms) in enumerate(((2.0, 8.0), (1.0, 16.0), (1.5, 12.0))):
        rig.visit(rig.baseline, round=number)
        rig.visit(FEW, factor, round=number, p90_ms=p90_ms)
    found = entry(rig)
    logs = [
        (math.log(factor) - math.log(p90_ms / 16)) / 2
        for factor, p90_ms in ((2.0, 8.0), (1.0, 16.0), (1.5, 12.0))
    ]
    middle = sum(logs) / 3
    spread = math.sqrt(sum((log - middle) ** 2 for log in logs) / 2 / 3)
    assert found.gain == pytest.approx(math.exp(middle))
    assert found.gain_low == pytest.approx(math.exp(middle - 4.302653 * spread))
    assert found.gain_high == pytest.approx(math.exp(middle + 4.302653 * spread))


def test_one_trial_has_a_gain_without_an_interval_and_makes_no_claim() -> None:
    rig = rounds(Rig(tuning_run()), (FEW, 2.0), count=1)
    found = entry(rig)
    assert found.gain == pytest.approx(2.0)
    assert (found.gain_low, found.gain_high, found.verdict, found.clear) == (
        None,
        None,
        "provisional",
        False,
    )
    assert found.effects[0].p is None
    assert found.effects[0].text == (
        "radosgw.threads 512 → 64: 100 % more 64 kB reads at 16 workers, n = 1: no claim with "
        "fewer than 5 trials"
    )


def test_cpu_is_compared_with_the_baseline_next_to_each_trial_too() -> None:
    rig = Rig(tuning_run())
    for number in range(3):
        rig.visit(rig.baseline, round=number, gateway_cpu_s_per_1000_ops=2.0 + number)
        rig.visit(FEW, round=number, gateway_cpu_s_per_1000_ops=(2.0 + number) * 0.5)
    found = entry(rig)
    assert found.gateway_cpu is not None
    assert (found.gateway_cpu.value, found.gateway_cpu.repeats) == (pytest.approx(0.5), 3)
    assert found.storage_cpu is None


# Verdicts


def test_settings_clear_of_the_threshold_are_recognized() -> None:
    rig = rounds(
        Rig(tuning_run(threshold=Bounds(throughput_ratio=1.1)), scatter=0.02, seed=4),
        (FEW, 1.4),
        (MANY, 1.0),
        (arm(1), 1.11),
    )
    assert (entry(rig).verdict, entry(rig).clear) == ("better", True)
    assert (entry(rig, MANY).verdict, entry(rig, MANY).clear) == ("too small to matter", True)
    assert entry(rig, arm(1)).clear is False


def test_an_interval_beyond_the_threshold_is_not_too_small_to_matter() -> None:
    found = entry(rounds(Rig(tuning_run(), scatter=0.08, seed=2), (FEW, 1.0)))
    assert (found.verdict, found.clear) == ("no effect shown", False)
    assert found.effects[0].verdict == "not shown"


def test_four_trials_without_spread_are_neither_clear_nor_a_claim() -> None:
    found = entry(rounds(Rig(tuning_run(trials=Trials(least=2))), (FEW, 1.0), count=4))
    assert (found.verdict, found.clear) == ("provisional", False)


def test_a_setting_that_is_better_in_one_objective_and_worse_in_another_is_a_trade_off() -> None:
    rig = rounds(Rig(tuning_run(READ, P90), scatter=0.01), (FEW, 1.3), p90_ms=40.0)
    assert [effect.verdict for effect in entry(rig).effects] == ["better", "worse"]
    assert entry(rig).verdict == "trade-off"


def test_better_in_one_objective_and_not_worse_in_the_other_is_better() -> None:
    rig = rounds(Rig(tuning_run(READ, P90), scatter=0.01), (FEW, 1.3), p90_ms=16.0)
    assert entry(rig).effects[1].verdict == "too small to matter"
    assert entry(rig).verdict == "better"


def test_an_unknown_objective_prevents_any_claim() -> None:
    rig = rounds(Rig(tuning_run(READ, P90), scatter=0.01), (FEW, 1.3))
    own = {key for key in rig.visits if key.layout == FEW.name}
    for key in own:
        point = changed(rig.visits[key].points["read"], p90_ms=None)
        rig.visits[key] = rig.visits[key].model_copy(update={"points": {"read": point}})
    found = entry(rig)
    assert [effect.verdict for effect in found.effects] == ["better", "not comparable"]
    assert (found.verdict, found.gain, found.clear) == ("not comparable", None, False)
    assert "an objective cannot be judged, so the others claim nothing" in found.notes
    assert found.effects[1].text.endswith(
        "cannot be compared (small-read at 16 workers: too few samples for a p90)"
    )


def test_a_setting_under_which_too_many_requests_fail_is_not_allowed_whatever_it_gains() -> None:
    rig = Rig(tuning_run(), scatter=0.01)
    rounds(
        rig,
        (FEW, 1.5),
        errors=600,
        samples=29_400,
        valid=False,
        notes=("2.00% of operations failed: beyond the bound",),
    )
    found = entry(rig)
    assert found.verdict == "not allowed"
    assert (
        "small-read at 16 workers: 2.00% of operations failed, beyond the bound of 0.10%"
        in found.notes
    )


def test_failures_are_pooled_over_trials_and_compared_with_the_tunings_bound() -> None:
    rig = Rig(tuning_run(), scatter=0.01)
    rounds(rig, (FEW, 1.5), count=5)
    rig.visit(FEW, 1.5, round=4, errors=100, samples=29_900, valid=False)
    assert entry(rig).verdict == "better"  # 100 of some 255,000
    loose = Rig(tuning_run(constraints=Constraints(error_share=0.05)), scatter=0.01)
    assert entry(rounds(loose, (FEW, 1.5), errors=600, samples=29_400)).verdict == "better"


def test_a_setting_with_too_long_a_p90_is_not_allowed() -> None:
    slow = Rig(tuning_run(constraints=Constraints(p90=0.015)), scatter=0.01)
    found = entry(rounds(slow, (FEW, 1.0)))
    assert found.verdict == "not allowed"
    assert any(
        note.startswith("p90 of read of small-read at 16 workers: 1") and "bound of 15 ms" in note
        for note in found.notes
    )
    assert entry(rounds(Rig(slow.run, scatter=0.01), (FEW, 1.2))).verdict == "better"


def test_no_trials_or_only_the_baselines_give_no_entries() -> None:
    rig = Rig(tuning_run())
    assert book(rig).entries == ()
    rig.visit(rig.baseline)
    found = book(rig)
    assert (found.entries, found.trials, found.looks, found.baseline) == ((), 1, 4, rig.baseline)
    assert found.entry(FEW) is None


def test_settings_without_effect_have_enough_trials() -> None:
    rig = rounds(Rig(tuning_run(), scatter=0.08, seed=2), (FEW, 1.0), (MANY, 3.0))
    rounds(rig, (arm(1), 1.0), count=2)
    assert [one.arm for one in book(rig).without_effect] == [FEW]


# Words


def named(run: TuningRun, **settings: object) -> str:
    rig = Rig(run)
    who = Arm.model_validate(
        {
            "name": "x",
            "settings": {key.replace("__", "."): value for key, value in settings.items()},
        }
    )
    rig.visit(who)
    return entry(rig, who).name


def test_a_variant_is_named_by_its_changes() -> None:
    run = tuning_run()
    assert named(run, radosgw__threads=64) == "radosgw.threads 512 → 64"
    assert named(run, radosgw__threads=64, apache__threads_per_child=64) == (
        "radosgw.threads 512 → 64, apache.threads_per_child 25 → 64"
    )
    assert named(run, apache__threads_per_child=64, apache__server_limit=32) == (
        "apache.threads_per_child 25 → 64 (with apache.server_limit unset → 32)"
    )
    assert named(run, options__cache=True) == "options.cache → on"


def test_a_number_is_shown_as_a_size_only_if_its_range_has_sizes() -> None:
    run = tuning_run()
    assert named(run, radosgw__threads=4096) == "radosgw.threads 512 → 4096"
    sizes = Parameter(
        key="radosgw.window", range=Range(low="1MiB", high="64MiB", steps=3, scale="log")
    )
    tuning = run.tuning.model_copy(update={"parameters": (sizes,)})
    of_sizes = run.model_copy(
        update={"tuning": tuning, "layout_settings": {"radosgw.window": "16MiB"}}
    )
    assert named(of_sizes, radosgw__window=2**23) == "radosgw.window 16MiB → 8MiB"


def text(
    factor: float, *, of: Objective = READ, scatter: float = 0.01, threshold: Bounds | None = None
) -> str:
    return (
        entry(
            rounds(Rig(tuning_run(of, threshold=threshold), scatter=scatter, seed=8), (FEW, factor))
        )
        .effects[0]
        .text
    )


def test_an_effect_is_one_sentence_with_interval_and_trials() -> None:
    head = "radosgw.threads 512 → 64: "
    assert text(1.2) == head + "21 % more 64 kB reads at 16 workers (19 % to 22 % more), n = 6"
    assert text(0.8) == head + "20 % fewer 64 kB reads at 16 workers (18 % to 21 % fewer), n = 6"
    assert (
        text(4.0)
        == head + "4.0 times as many 64 kB reads at 16 workers (4.0 to 4.1 times as many), n = 6"
    )
    assert (
        text(1.25, of=P90)
        == head + "p90 of 64 kB reads at 16 workers 20 % shorter (19 % to 21 % shorter), n = 6"
    )
    assert (
        text(0.5, of=P90)
        == head + "p90 of 64 kB reads at 16 workers 99 % longer (96 % to 102 % longer), n = 6"
    )


def test_without_an_effect_the_sentence_says_what_could_have_been_found() -> None:
    assert text(1.0, scatter=0.05) == (
        "radosgw.threads 512 → 64: no effect on 64 kB reads at 16 workers shown (one of 10 % "
        "would be, 8 times in 10): "
        "5 % fewer to 10 % more, n = 6"
    )


def test_an_effect_too_small_to_matter_is_shown_with_the_threshold() -> None:
    assert text(1.0) == (
        "radosgw.threads 512 → 64: 0.4 % more 64 kB reads at 16 workers (1 % fewer to 2 % more), "
        "within the 5 % that matter, n = 6"
    )


def test_an_objective_within_a_p90_is_named_by_its_bound() -> None:
    of = Objective(workload="small-read", p90_within=0.05)
    assert "more 64 kB reads with p90 within 50 ms (" in text(1.2, of=of)


def test_huge_spreads_have_short_numbers() -> None:
    rig = Rig(tuning_run())
    for number, factor in enumerate((1e-5, 1e5)):
        rig.visit(rig.baseline, round=number)
        rig.visit(FEW, factor, round=number)
    assert "100 % fewer to over 1,000 times as many" in entry(rig).effects[0].text


def test_a_setting_insignificant_only_by_correction_says_so() -> None:
    rig = Rig(tuning_run(), scatter=0.05, seed=21)
    rounds(rig, (FEW, 1.1), *((arm(number), 1.0) for number in range(1, 30)))
    effect = entry(rig).effects[0]
    assert effect.p is not None
    assert effect.q is not None
    assert effect.p <= 0.05 < effect.q
    assert " shown after correction for 30 tests: " in effect.text


# Error rates by simulation with fixed seeds (more in benchmarks/tuning_claims.py)


def screen(
    seed: int, factors: list[float], scatter: float, walk: float
) -> tuple[Ledger, list[Arm]]:
    """A complete screen, judged after each round from the fifth on, without clear settings; the
    test bed drifts, also at random.
    """
    steps = [0.0]

    def level(at_s: float) -> float:
        while len(steps) <= at_s / TRIAL_S:
            steps.append(steps[-1] + rig.draw.gauss(0, walk))
        return 1000 * 1.2 ** (at_s / 3600) * math.exp(steps[int(at_s / TRIAL_S)])

    rig = Rig(tuning_run(), level, scatter, seed)
    arms = [arm(number + 1) for number in range(len(factors))]
    going = list(zip(arms, factors, strict=True))
    for number in range(8):
        rig.go_round(going, number)
        if number >= 4:
            clear = {one.arm.name for one in book(rig).entries if one.clear}
            going = [one for one in going if one[0].name not in clear]
        if not going:
            break
    return book(rig), arms


@pytest.mark.parametrize(("scatter", "walk"), [(0.03, 0.0), (0.08, 0.01)])
def test_tunings_without_effects_rarely_claim_one_however_often_they_look(
    scatter: float, walk: float
) -> None:
    false, inside, intervals = 0, 0, 0
    for seed in range(60):
        found, _ = screen(seed, [1.0] * 15, scatter, walk)
        false += any(one.verdict in ("better", "worse", "trade-off") for one in found.entries)
        ratios = [one.effects[0].ratio for one in found.entries]
        inside += sum((one.low or 9) <= 1 <= (one.high or 0) for one in ratios if one is not None)
        intervals += len(ratios)
    assert false <= 7  # of 3 expected at the most; 8 and more come 1 time in 80 even so
    assert inside / intervals >= 0.95


def test_a_setting_with_20_percent_is_found_among_fourteen_without_effect() -> None:
    found = 0
    for seed in range(40):
        made, arms = screen(seed, [1.2, *[1.0] * 14], 0.04, 0.005)
        entry_of = made.entry(arms[0])
        assert entry_of is not None
        found += entry_of.verdict == "better"
    assert found >= 34


def test_the_same_seed_gives_the_same_table() -> None:
    assert screen(3, [1.0, 1.2], 0.04, 0.01)[0] == screen(3, [1.0, 1.2], 0.04, 0.01)[0]
    assert THREADS in screen(3, [1.0], 0.04, 0.01)[0].entries[0].name


def test_any_compared_metric_can_be_an_objective() -> None:
    rig = Rig(tuning_run(Objective(of="max", workload="small-read")))
    for number in range(6):
        rig.visit(rig.baseline, round=number, max_ms=100.0)
        rig.visit(FEW, round=number, max_ms=70.0)
        rig.visit(MANY, round=number, max_ms=85.0)
        rig.visit(rig.baseline, round=number, max_ms=100.0)
    (few,), (many,) = entry(rig).effects, entry(rig, MANY).effects
    assert (few.metric, few.verdict, few.subject_value, few.ratio and few.ratio.value) == (
        "max",
        "better",
        70,
        pytest.approx(0.7),
    )
    assert "max of 64 kB reads at 16 workers 30 % shorter" in few.text
    # 18 % less is within the 25 % that matter of a maximum.
    assert many.verdict == "too small to matter"
