"""The table of trials of a tuning on made-up trials: effects and verdicts."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from fake_trials import TRIAL_S, TrialMaker, fake_variant, tuning_run
from made_rows import altered, changed, present
from trial_rounds import FEW, MANY, P90, READ, book, entry, rounds, values
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.tuning.setting_table import (
    NO_BASELINE,
    Drift,
    objective_words,
    setting_table,
)
from weighbridge.results.features.tuning.tuning_result import change_figure, short_names, tuned
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import LayoutVariant, TuningRun
from weighbridge.results.show.exports import produce
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Constraints, Objective, Parameter, Range, Trials


def test_a_linear_drift_is_removed_completely() -> None:
    drifting = TrialMaker(tuning_run(), level=lambda at_s: 1000 * 1.2 ** (at_s / 3600))
    maker = rounds(drifting, (MANY, 1.0), (FEW, 1.2))
    ratio = present(entry(maker).effects[0].ratio)
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((1.2, 1.2, 1.2))
    assert entry(maker).verdict == "better"
    assert entry(maker, MANY).verdict == "too small to matter"


def test_what_other_programs_cost_trials_is_taken_out() -> None:
    maker = TrialMaker(tuning_run())
    for _ in range(4):
        for cost, others in ((1.0, 0.0), (math.exp(-0.8 * 0.5), 0.55)):
            maker.visit(maker.baseline)
            maker.visit(FEW, 1.2 * cost, others=others)
    maker.visit(maker.baseline)
    assert present(entry(maker).effects[0].ratio).value == pytest.approx(1.2)
    assert entry(maker).verdict == "better"


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
        assert effect.ratio.low is not None
        assert effect.ratio.high is not None
        return present(effect.p), present(effect.ratio).low, present(effect.ratio).high

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
    assert alone.q == pytest.approx(2 * present(alone.p))
    assert among.q == pytest.approx(14 * present(alone.p))
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
    assert found.gain_high == pytest.approx(math.exp(middle + 4.302653 * spread))


def test_one_trial_has_a_gain_without_an_interval_and_makes_no_claim() -> None:
    maker = rounds(TrialMaker(tuning_run()), (FEW, 2.0), count=1)
    found = entry(maker)
    assert found.gain == pytest.approx(2.0)
    assert (found.gain_high, found.effects[0].p) == (None, None)
    assert (found.verdict, found.clear) == ("provisional", False)
    assert " of 64 kB reads at 16 workers +100 %, n = 1: provisional" in found.effects[0].text


def test_cpu_is_compared_with_the_baseline_next_to_each_trial_too() -> None:
    maker = TrialMaker(tuning_run())
    for number in range(3):
        maker.visit(maker.baseline, round=number, gateway_cpu_s_per_1000_ops=2.0 + number)
        maker.visit(FEW, round=number, gateway_cpu_s_per_1000_ops=(2.0 + number) * 0.5)
    found = entry(maker)
    cpu = present(found.gateway_cpu)
    assert (cpu.value, cpu.repeats) == (pytest.approx(0.5), 3)
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


FAILING: dict[str, Any] = {"errors": 600, "samples": 29_400, "valid": False}
AT = "small-read at 16 workers"


@pytest.mark.parametrize(
    ("constraints", "factor", "point", "note"),
    [
        ({}, 1.5, FAILING, f"{AT}: 2.00% of operations failed, beyond the bound of 0.10%"),
        ({"error_share": 0.05}, 1.5, {**FAILING, "valid": True}, ""),
        ({"p90": 0.015}, 1.0, {}, f"p90 of read of {AT}: 16 ms (median of its trials), beyond "),
        ({"p90": 0.015}, 1.2, {}, ""),
        ({"stall": 5.0}, 1.5, {"stall_s": 4.9}, ""),
        ({"stall": 5.0}, 1.5, {"stall_s": 20.2}, f"longest stall of {AT}: 20.2 s, beyond "),
    ],
)
def test_a_setting_beyond_a_bound_is_not_allowed_whatever_it_gains(
    constraints: dict[str, float], factor: float, point: dict[str, Any], note: str
) -> None:
    run = tuning_run(constraints=Constraints.model_validate(constraints))
    found = entry(rounds(TrialMaker(run, scatter=0.01), (FEW, factor), **point))
    assert found.verdict == ("not allowed" if note else "better")
    assert not note or any(text.startswith(note) for text in found.notes)


def test_failures_are_pooled_over_trials() -> None:
    maker = TrialMaker(tuning_run(), scatter=0.01)
    rounds(maker, (FEW, 1.5), count=5)
    maker.visit(FEW, 1.5, round=4, errors=100, samples=29_900, valid=False)
    assert entry(maker).verdict == "better"  # 100 of some 255,000


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
    assert "max of 64 kB reads at 16 workers −30 % (" in few.text
    # 18 % less is within the 25 % that matter of a maximum.
    assert many.verdict == "too small to matter"


@pytest.mark.long
def test_settings_are_by_gain_and_a_shorter_p90_is_shown_as_less(tuned_data: RunData) -> None:
    entries = present(tuned(tuned_data)).by_gain
    gains = [entry.gain or 0.0 for entry in entries]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] == 0.0 < gains[0]
    p90 = entries[0].effects[1]
    assert (p90.verdict, change_figure(p90)[0]) == ("better", "\N{MINUS SIGN}")


def test_names_are_shortened_only_if_they_stay_distinct() -> None:
    proxy = "options.proxy.app:proxy-server"
    shortened = {
        "radosgw.threads 512 → 64": "radosgw.threads 512 → 64",
        "proxy.threads 512 → 64": "proxy.threads 512 → 64",
        "options.client.rgw_cache unset → off": "rgw_cache unset → off",
        "radosgw.a 1 → 2, radosgw.b 3 → 4": "a 1 → 2, b 3 → 4",
        f"{proxy}.gets unset → on (with {proxy}.wait unset → 0.05)": (
            "gets unset → on (with wait unset → 0.05)"
        ),
    }
    assert short_names(list(shortened)) == shortened


def test_notes_have_the_table_of_settings_with_remarks(tuned_data: RunData) -> None:
    made = produce(tuned_data, "markdown", ["ledger"])
    (file,) = made.files
    text = file.content.decode().replace("\\", "")
    assert "max_concurrent_requests 1024 → 64" in text
    assert "the baseline fell by" in text
    assert "Confirmed on fresh deployments" in text
    assert "ended with 22" in text


def test_json_has_the_settings_and_every_trial_with_null_for_unknowns(tuned_data: RunData) -> None:
    made = produce(tuned_data, "json", ["ledger", "trials"])
    tables = json.loads(made.files[0].content)["tables"]
    failed = [line for line in tables["ledger"] if line["verdict"] == "failed"]
    assert failed
    assert all(line["ratio"] is None and line["notes"] for line in failed)
    assert {line["why"] for line in tables["trials"] if line["value"] is None} >= {
        "radosgw on gateway-1 ended with 22: invalid argument"
    }
    assert all(line["baseline_beside"] is None for line in tables["trials"] if line["baseline"])


def test_that_a_run_is_no_tuning_is_said_beside_its_empty_table_of_settings(run: RunStore) -> None:
    made = produce(open_run(run.folder), "csv", ["ledger"])
    assert made.files[0].content.count(b"\n") == 1
    assert made.remarks[-1] == "this run has no lines of ledger"


def test_requests_at_a_rate_are_named_with_it() -> None:
    run = tuning_run(Objective(of="p90", workload="small-read"))
    assert objective_words(run, run.objectives[0]) == "p90 of 64 kB reads at 16 workers"
    rated = altered(run.suite.workloads[0], rate_per_s=150.0)
    at_a_rate = altered(run, suite=altered(run.suite, workloads=(rated,)))
    assert " at 150 op/s at 16 workers" in objective_words(at_a_rate, at_a_rate.objectives[0])


def named(run: TuningRun, settings: dict[str, Any]) -> str:
    maker, who = TrialMaker(run), LayoutVariant(name="x", settings=settings)
    maker.visit(who)
    return entry(maker, who).name


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"radosgw.threads": 64}, "radosgw.threads 512 → 64"),
        ({"radosgw.threads": 4096}, "radosgw.threads 512 → 4096"),
        (
            {"radosgw.threads": 64, "apache.threads_per_child": 64},
            "radosgw.threads 512 → 64, apache.threads_per_child 25 → 64",
        ),
        (
            {"apache.threads_per_child": 64, "apache.server_limit": 32},
            "apache.threads_per_child 25 → 64 (with apache.server_limit unset → 32)",
        ),
        ({"options.cache": True}, "options.cache → on"),
    ],
)
def test_a_variant_is_named_by_its_changes(settings: dict[str, Any], name: str) -> None:
    assert named(tuning_run(), settings) == name


def test_a_number_is_shown_as_a_size_only_if_its_range_has_sizes() -> None:
    run = tuning_run()
    sizes = Parameter(
        key="radosgw.window", range=Range(low="1MiB", high="64MiB", steps=3, scale="log")
    )
    tuning = altered(run.tuning, parameters=(sizes,))
    of_sizes = altered(run, tuning=tuning, layout_settings={"radosgw.window": "16MiB"})
    assert named(of_sizes, {"radosgw.window": 2**23}) == "radosgw.window 16MiB → 8MiB"


def text(
    factor: float, *, of: Objective = READ, scatter: float = 0.01, threshold: Bounds | None = None
) -> str:
    maker = TrialMaker(tuning_run(of, threshold=threshold), scatter=scatter, seed=8)
    return entry(rounds(maker, (FEW, factor))).effects[0].text


WITHIN = Objective(workload="small-read", p90_within=0.05)


@pytest.mark.parametrize(
    ("factor", "of", "said"),
    [
        (1.2, READ, "throughput of 64 kB reads at 16 workers +21 % (+19 % to +22 %), n = 6"),
        (0.8, READ, "throughput of 64 kB reads at 16 workers −20 % (−21 % to −18 %), n = 6"),
        (4.0, READ, "throughput of 64 kB reads at 16 workers 4.0× (4.0× to 4.1×), n = 6"),
        (1.25, P90, "p90 of 64 kB reads at 16 workers −20 % (−21 % to −19 %), n = 6"),
        (0.5, P90, "p90 of 64 kB reads at 16 workers +99 % (+96 % to +102 %), n = 6"),
        (1.0, READ, "64 kB reads at 16 workers +0.4 % (−1 % to +2 %), within the 5 % that matter"),
        (1.2, WITHIN, "throughput of 64 kB reads with p90 within 50 ms +21 % ("),
    ],
)
def test_an_effect_is_one_sentence_with_interval_and_trials(
    factor: float, of: Objective, said: str
) -> None:
    found = text(factor, of=of)
    assert found.startswith("radosgw.threads 512 → 64: ")
    assert said in found


def test_without_an_effect_the_sentence_says_what_could_have_been_found() -> None:
    found = text(1.0, scatter=0.05)
    assert "no effect on the throughput of 64 kB reads at 16 workers found (could have " in found
    assert found.endswith("found 12 %): −5 % to +10 %, n = 6")


def test_huge_spreads_have_short_numbers() -> None:
    maker = TrialMaker(tuning_run())
    for number, factor in enumerate((1e-5, 1e5)):
        maker.visit(maker.baseline, round=number)
        maker.visit(FEW, factor, round=number)
    assert " to over 1,000×)" in entry(maker).effects[0].text


def test_a_setting_insignificant_only_by_correction_says_so() -> None:
    maker = TrialMaker(tuning_run(), scatter=0.05, seed=21)
    rounds(maker, (FEW, 1.1), *((fake_variant(number), 1.0) for number in range(1, 30)))
    effect = entry(maker).effects[0]
    assert present(effect.p) <= 0.05 < present(effect.q)
    assert " found after correction for 30 tests: " in effect.text


def with_trials(*who: LayoutVariant | None, **more: Any) -> TrialMaker:
    maker = TrialMaker(tuning_run(), **more)
    for one in who:
        maker.visit(one or maker.baseline)
    return maker


def doubled(at_s: float) -> float:
    return 1000.0 if at_s == 0 else 2000.0


def test_a_trial_is_compared_with_the_baseline_interpolated_in_time_on_logarithms() -> None:
    maker = with_trials(
        *(None, FEW, MANY, MANY, None), level=lambda at_s: 1000 * 4 ** (at_s / (4 * TRIAL_S))
    )
    [(value, reference, why)] = values(maker)
    assert value == pytest.approx(1000 * 4**0.25)
    assert (reference, why) == (pytest.approx(1000 * 4**0.25), "")
    assert values(maker, maker.baseline) == [(1000, None, ""), (pytest.approx(4000), None, "")]


def test_a_late_trial_is_compared_with_the_baseline_of_that_time() -> None:
    maker = with_trials(None, FEW, None, level=doubled)
    maker.trials[1] = altered(maker.trials[1], started_s=0.75 * 2 * TRIAL_S)
    assert values(maker)[0][1] == pytest.approx(1000 * 2**0.75)
    # A useless clock is replaced by the count of trials.
    maker = with_trials(None, FEW, MANY, None, level=doubled)
    maker.trials = [altered(trial, started_s=5.0) for trial in maker.trials]
    assert values(maker)[0][1] == pytest.approx(1000 * 2 ** (1 / 3))


def test_a_trial_with_the_baseline_on_one_side_is_compared_with_that() -> None:
    maker = with_trials(None)
    maker.visit(FEW, 1.5)
    assert values(maker) == [(1500, 1000, "")]


def test_baselines_of_another_round_or_deployment_are_not_used() -> None:
    maker = TrialMaker(tuning_run())
    maker.visit(maker.baseline, round=0)
    maker.visit(FEW, round=1)
    maker.visit(maker.baseline, round=1, deployment=1)
    assert values(maker) == [(1000, None, NO_BASELINE)]
    assert entry(maker).verdict == "not comparable"
    assert NO_BASELINE in entry(maker).effects[0].text


def test_an_unsteady_baseline_is_skipped_for_the_next_one() -> None:
    maker = TrialMaker(tuning_run(), level=lambda at_s: 1000 + at_s)
    maker.visit(maker.baseline)
    maker.visit(maker.baseline, steady=False)
    maker.visit(FEW)
    assert values(maker)[0][1] == 1000


def test_a_trial_with_an_invalid_or_unsteady_step_has_no_figure_and_says_why() -> None:
    maker = TrialMaker(tuning_run())
    maker.visit(maker.baseline)
    maker.visit(FEW, valid=False, notes=("the driver used 92% of its CPU limit",))
    maker.visit(FEW, steady=False)
    maker.visit(FEW)
    assert [(value, why) for value, _, why in values(maker)] == [
        (None, "small-read at 16 workers: the driver used 92% of its CPU limit"),
        (None, "small-read at 16 workers: not steady"),
        (1000, ""),
    ]
    effect = entry(maker).effects[0]
    assert present(effect.ratio).repeats == 1
    assert any(
        note.startswith("1 of 3 trials have no figure: small-read at 16 workers: not steady")
        for note in entry(maker).notes
    )


def test_reasons_that_differ_in_a_number_alone_are_given_once() -> None:
    maker = TrialMaker(tuning_run())
    for used in (91, 93, 95):
        maker.visit(FEW, valid=False, notes=(f"the driver used {used}% of its CPU limit",))
    maker.visit(FEW, steady=False)
    first, second = entry(maker).notes
    assert first.startswith("3 of 4 trials have no figure: small-read at 16 workers: the driver ")
    assert second == "1 of 4 trials have no figure: small-read at 16 workers: not steady"


def test_a_trial_with_a_missing_step_has_no_figure() -> None:
    maker = with_trials(FEW)
    maker.visits.clear()
    assert values(maker) == [(None, None, "small-read at 16 workers: not measured")]


def test_failed_trials_have_no_readings_and_make_a_setting_failed() -> None:
    maker = rounds(TrialMaker(tuning_run()), (MANY, 1.0), count=2)
    maker.fail(FEW, "radosgw did not come up in 60 s")
    maker.fail(FEW, "radosgw did not come up in 60 s")
    assert values(maker) == []
    found = entry(maker)
    assert (found.verdict, found.trials, found.gain, found.clear) == ("failed", 0, None, False)
    assert "2 of 2 trials could not be made: radosgw did not come up in 60 s" in found.notes
    assert found.effects[0].text.endswith(
        "64 kB reads at 16 workers cannot be compared (radosgw did not come up in 60 s)"
    )
    assert book(maker).entries[-1].variant == FEW


def test_a_setting_that_failed_once_is_judged_by_its_other_trials() -> None:
    maker = rounds(TrialMaker(tuning_run(), scatter=0.01), (FEW, 1.3))
    maker.fail(FEW, "radosgw did not come up in 60 s")
    assert (entry(maker).verdict, entry(maker).trials) == ("better", 6)
    assert any(note.startswith("1 of 7 trials could not be made") for note in entry(maker).notes)


def within(
    *, steady: dict[int, bool] | None = None, p90_ms: dict[int, float | None] | None = None
) -> tuple[float | None, str]:
    run = tuning_run(Objective(workload="small-read", p90_within=0.05), workers=(4, 8, 16))
    maker = TrialMaker(run)
    maker.visit(maker.baseline)
    maker.visit(FEW)
    for key in [key for key in maker.visits if key.layout == FEW.name]:
        is_steady = (steady or {}).get(key.workers, True)
        point = changed(
            maker.visits[key].points["read"],
            p90_ms=(p90_ms or {}).get(key.workers, 20.0),
            steady=is_steady,
        )
        maker.visits[key] = altered(maker.visits[key], points={"read": point}, steady=is_steady)
    [(value, _, why)] = values(maker)
    return value, why


def test_the_largest_throughput_within_a_p90_is_over_worker_counts_within_it() -> None:
    assert within() == (1000, "")
    assert within(p90_ms={16: 51.0}) == (500, "")
    assert within(p90_ms={16: None}) == (500, "")
    value, why = within(p90_ms={4: 60.0, 8: 70.0, 16: None})
    assert value is None
    assert why.startswith("small-read: p90 is known to be within 50 ms at none of its ")
    # One that is not ranked leaves it unknown unless its p90 is too long.
    assert within(steady={8: False}) == (None, "small-read at 8 workers: not steady")
    assert within(steady={16: False}, p90_ms={16: 51.0}) == (500, "")


def drift(maker: TrialMaker) -> Drift:
    return setting_table(maker.run, maker.trials, maker.visits).drift[0]


def baselines(maker: TrialMaker, count: int, **more: int) -> TrialMaker:
    for _ in range(count):
        maker.visit(maker.baseline, **more)
    return maker


Level = Callable[[float], float]
FOUR_S = 4 * TRIAL_S


@pytest.mark.parametrize(
    ("of", "level", "scatter", "counts", "per_hour", "said"),
    [
        (READ, lambda at_s: 0.97 ** (at_s / 3600), 0.0005, [100], 0.97, "fell by 3 % an hour (p <"),
        (P90, lambda at_s: 0.5 ** (at_s / 3600), 0.001, [50], 2.0, "rose by 46 % in 33 minutes"),
        # A new deployment has a height of its own, and is no drift.
        (READ, lambda at_s: 1 + (at_s >= 5 * FOUR_S), 0.01, [20, 20], None, "no significant drift"),
        # Of short deployments nothing is said of a longer time.
        (
            *(READ, lambda at_s: 1.06 ** (at_s % FOUR_S / FOUR_S), 0.001, [4] * 20, None),
            f"rose by 4 % in {3 * TRIAL_S / 60:.0f} minutes",
        ),
        (READ, lambda _: 1.0, 0.02, [8], None, "over too short a time, to show a drift"),
        (READ, lambda _: 1.0, 0.0, [1], None, "the baseline has 1 trial, too few to show a drift"),
        (READ, lambda _: 1.0, 0.0, [], None, "the baseline has no trial that counts"),
    ],
)
def test_a_drift_is_said_of_the_time_that_was_seen(
    of: Objective,
    level: Level,
    scatter: float,
    counts: list[int],
    per_hour: float | None,
    said: str,
) -> None:
    maker = TrialMaker(tuning_run(of), lambda at_s: 1000 * level(at_s), scatter)
    for deployment, count in enumerate(counts):
        baselines(maker, count, deployment=deployment)
    found = drift(maker)
    assert said in found.words
    assert per_hour is None or found.per_hour == pytest.approx(per_hour, rel=0.01)


def test_the_line_is_least_squares_with_students_p(stats: Any) -> None:
    maker = baselines(
        TrialMaker(tuning_run(), level=lambda at_s: 1000 * 1.1 ** (at_s / 3600), scatter=0.03), 20
    )
    found = drift(maker)
    logs = [math.log(visit.points["read"].ops_s) for visit in maker.visits.values()]
    line = stats.linregress([trial.started_s / 3600 for trial in maker.trials], logs)
    assert found.per_hour == pytest.approx(math.exp(line.slope))
    assert found.p == pytest.approx(line.pvalue)


def test_other_variants_and_trials_that_do_not_count_are_left_out() -> None:
    maker = TrialMaker(tuning_run())
    maker.visit(maker.baseline)
    maker.visit(fake_variant(64), 5.0)
    maker.visit(maker.baseline, steady=False)
    maker.fail(maker.baseline, "the gateway did not come up")
    maker.visit(maker.baseline)
    found = drift(maker)
    assert (found.trials, found.range) == (2, 1.0)
