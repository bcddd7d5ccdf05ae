"""Names of requests and settings of a tuning."""

from fake_trials import tuning_run
from weighbridge.results.analysis.tuning.setting_words import objective_words
from weighbridge.suites.tuning import Objective


def test_requests_at_a_rate_are_named_with_it() -> None:
    run = tuning_run(Objective(of="p90", workload="small-read"))
    assert objective_words(run, run.objectives[0]) == "p90 of 64 kB reads at 16 workers"
    rated = run.suite.workloads[0].model_copy(update={"rate_per_s": 150.0})
    at_a_rate = run.model_copy(
        update={"suite": run.suite.model_copy(update={"workloads": (rated,)})}
    )
    assert (
        objective_words(at_a_rate, at_a_rate.objectives[0])
        == "p90 of 64 kB reads at 150 op/s at 16 workers"
    )
