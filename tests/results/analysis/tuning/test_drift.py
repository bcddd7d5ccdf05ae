"""The drift of a tuning's baseline on made-up trials."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from fake_trials import TRIAL_S, TrialMaker, fake_variant, tuning_run
from weighbridge.results.analysis.tuning.setting_effects import Drift
from weighbridge.results.analysis.tuning.setting_table import setting_table
from weighbridge.suites.tuning import Objective


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
