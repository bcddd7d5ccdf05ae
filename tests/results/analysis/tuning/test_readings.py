"""The figures of made-up trials and the baseline that each is compared with."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from fake_trials import TRIAL_S, TrialMaker, fake_variant, tuning_run
from made_rows import altered, changed
from trial_rounds import FEW, MANY, book, entry, rounds, values
from weighbridge.results.analysis.tuning.setting_effects import NO_BASELINE, Drift
from weighbridge.results.analysis.tuning.setting_table import setting_table
from weighbridge.results.record.trial import LayoutVariant
from weighbridge.suites.tuning import Objective


def with_trials(*who: LayoutVariant | None, **more: Any) -> TrialMaker:
    """With a trial of each; None: of the baseline."""
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
    assert effect.ratio is not None
    assert effect.ratio.repeats == 1
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


def test_a_baseline_that_falls_by_3_percent_an_hour_is_reported() -> None:
    falling = TrialMaker(
        tuning_run(), level=lambda at_s: 1000 * 0.97 ** (at_s / 3600), scatter=0.0005
    )
    found = drift(baselines(falling, 100))
    assert found.per_hour == pytest.approx(0.97, abs=1e-3)
    assert "the baseline fell by 3 % an hour (p < 0.0001), 3 % from its lowest" in found.words


def test_the_line_is_least_squares_with_students_p(stats: Any) -> None:
    maker = baselines(
        TrialMaker(tuning_run(), level=lambda at_s: 1000 * 1.1 ** (at_s / 3600), scatter=0.03), 20
    )
    found = drift(maker)
    logs = [math.log(visit.points["read"].ops_s) for visit in maker.visits.values()]
    line = stats.linregress([trial.started_s / 3600 for trial in maker.trials], logs)
    assert found.per_hour == pytest.approx(math.exp(line.slope))
    assert found.p == pytest.approx(line.pvalue)


def test_each_deployment_has_its_own_height_so_a_new_one_is_no_drift() -> None:
    maker = TrialMaker(
        tuning_run(), level=lambda at_s: 1000.0 if at_s < 20 * TRIAL_S else 2000.0, scatter=0.01
    )
    found = drift(baselines(baselines(maker, 20), 20, deployment=1))
    assert found.p is not None
    assert found.p > 0.05
    assert found.range == pytest.approx(2.0, rel=0.1)
    assert found.spread == pytest.approx(0.01, rel=0.4)
    assert "no significant drift of the baseline" in found.words


def test_a_drift_within_short_deployments_is_not_said_of_a_longer_time() -> None:
    each_s = 4 * TRIAL_S
    maker = TrialMaker(
        tuning_run(), level=lambda at_s: 1000 * 1.06 ** (at_s % each_s / each_s), scatter=0.001
    )
    for deployment in range(20):
        baselines(maker, 4, deployment=deployment)
    found = drift(maker)
    assert found.span_s == pytest.approx(3 * TRIAL_S)
    assert found.range == pytest.approx(1.045, abs=0.01)
    assert f"rose by 4 % in {3 * TRIAL_S / 60:.0f} minutes" in found.words


def test_the_spread_is_that_of_neighbours_unaffected_by_drift() -> None:
    steep = TrialMaker(tuning_run(), level=lambda at_s: 1000 * 3 ** (at_s / 3600), scatter=0.04)
    assert drift(baselines(steep, 200)).spread == pytest.approx(0.04, rel=0.15)


def test_other_variants_and_trials_that_do_not_count_are_left_out() -> None:
    maker = TrialMaker(tuning_run())
    maker.visit(maker.baseline)
    maker.visit(fake_variant(64), 5.0)
    maker.visit(maker.baseline, steady=False)
    maker.fail(maker.baseline, "the gateway did not come up")
    maker.visit(maker.baseline)
    found = drift(maker)
    assert (found.trials, found.range) == (2, 1.0)


def test_too_few_trials_or_too_short_a_time_show_no_drift() -> None:
    assert "the baseline has no trial that counts" in drift(TrialMaker(tuning_run())).words
    one = drift(baselines(TrialMaker(tuning_run()), 1))
    assert (one.per_hour, one.p, one.spread) == (None, None, None)
    assert one.words.endswith("the baseline has 1 trial, too few to show a drift")
    short = drift(baselines(TrialMaker(tuning_run(), scatter=0.02), 8))
    assert (short.per_hour, short.p) == (None, None)
    assert "over too short a time, to show a drift" in short.words


def test_a_p90_has_its_own_drift_over_the_time_that_was_seen() -> None:
    maker = TrialMaker(
        tuning_run(Objective(of="p90", workload="small-read")),
        level=lambda at_s: 1000 * 0.5 ** (at_s / 3600),
        scatter=0.001,
    )
    found = drift(baselines(maker, 50))
    assert found.per_hour == pytest.approx(2.0, rel=0.01)
    assert "the baseline rose by 46 % in 33 minutes" in found.words


def test_a_baseline_that_only_scatters_is_said_to_drift_about_1_time_in_20() -> None:
    said = 0
    for seed in random.Random(1).sample(range(10_000), 200):
        found = drift(baselines(TrialMaker(tuning_run(), scatter=0.03, seed=seed), 14))
        said += found.p is not None and found.p <= 0.05
    assert 2 <= said <= 20
