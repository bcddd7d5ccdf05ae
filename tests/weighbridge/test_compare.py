from results.step import StepKey, StepResult
from results.testing import fake_measurement
from weighbridge.verbs.compare import exit_code

KEY = StepKey(layout="rgw-a", api="swift", workload="small", workers=4, repeat=0)
GOOD = StepResult(key=KEY, measurement=fake_measurement(workload="small"), valid=True, order=0)
LOST = StepResult(key=KEY, measurement=None, valid=False, notes=("the gateway has died",), order=1)


def test_a_run_in_which_a_step_could_not_be_measured_does_not_end_as_if_all_were_fine() -> None:
    assert exit_code([GOOD], comparable=True) == 0
    assert exit_code([GOOD, LOST], comparable=True) == 3
    assert exit_code([GOOD], comparable=False) == 4
