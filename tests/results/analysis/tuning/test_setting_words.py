"""Names of requests and settings of a tuning, and sentences about effects."""

from __future__ import annotations

import pytest

from fake_trials import TrialMaker, fake_variant, tuning_run
from made_rows import altered
from trial_rounds import FEW, P90, READ, entry, rounds
from weighbridge.results.analysis.tuning.setting_effects import objective_words
from weighbridge.results.record.trial import LayoutVariant, TuningRun
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective, Parameter, Range


def test_requests_at_a_rate_are_named_with_it() -> None:
    run = tuning_run(Objective(of="p90", workload="small-read"))
    assert objective_words(run, run.objectives[0]) == "p90 of 64 kB reads at 16 workers"
    rated = altered(run.suite.workloads[0], rate_per_s=150.0)
    at_a_rate = altered(run, suite=altered(run.suite, workloads=(rated,)))
    assert " at 150 op/s at 16 workers" in objective_words(at_a_rate, at_a_rate.objectives[0])


def named(run: TuningRun, **settings: object) -> str:
    maker = TrialMaker(run)
    given = {key.replace("__", "."): value for key, value in settings.items()}
    who = LayoutVariant.model_validate({"name": "x", "settings": given})
    maker.visit(who)
    return entry(maker, who).name


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
    tuning = altered(run.tuning, parameters=(sizes,))
    of_sizes = altered(run, tuning=tuning, layout_settings={"radosgw.window": "16MiB"})
    assert named(of_sizes, radosgw__window=2**23) == "radosgw.window 16MiB → 8MiB"


def text(
    factor: float, *, of: Objective = READ, scatter: float = 0.01, threshold: Bounds | None = None
) -> str:
    maker = TrialMaker(tuning_run(of, threshold=threshold), scatter=scatter, seed=8)
    return entry(rounds(maker, (FEW, factor))).effects[0].text


WITHIN = Objective(workload="small-read", p90_within=0.05)


@pytest.mark.parametrize(
    ("factor", "of", "said"),
    [
        (1.2, READ, "21 % more 64 kB reads at 16 workers (19 % to 22 % more), n = 6"),
        (0.8, READ, "20 % fewer 64 kB reads at 16 workers (18 % to 21 % fewer), n = 6"),
        (4.0, READ, "4.0 times as many 64 kB reads at 16 workers (4.0 to 4.1 times as many), n"),
        (1.25, P90, "p90 of 64 kB reads at 16 workers 20 % shorter (19 % to 21 % shorter), n = 6"),
        (0.5, P90, "p90 of 64 kB reads at 16 workers 99 % longer (96 % to 102 % longer), n = 6"),
        (1.0, READ, "0.4 % more 64 kB reads at 16 workers (1 % fewer to 2 % more), within the 5 %"),
        (1.2, WITHIN, "more 64 kB reads with p90 within 50 ms ("),
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
    assert "no effect on 64 kB reads at 16 workers found (could have found 10 %)" in found
    assert found.endswith("5 % fewer to 10 % more, n = 6")


def test_huge_spreads_have_short_numbers() -> None:
    maker = TrialMaker(tuning_run())
    for number, factor in enumerate((1e-5, 1e5)):
        maker.visit(maker.baseline, round=number)
        maker.visit(FEW, factor, round=number)
    assert "100 % fewer to over 1,000 times as many" in entry(maker).effects[0].text


def test_a_setting_insignificant_only_by_correction_says_so() -> None:
    maker = TrialMaker(tuning_run(), scatter=0.05, seed=21)
    rounds(maker, (FEW, 1.1), *((fake_variant(number), 1.0) for number in range(1, 30)))
    effect = entry(maker).effects[0]
    assert effect.p is not None
    assert effect.q is not None
    assert effect.p <= 0.05 < effect.q
    assert " found after correction for 30 tests: " in effect.text
