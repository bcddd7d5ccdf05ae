"""Rounds of made-up trials, and the table of trials that comes of them."""

from __future__ import annotations

from fake_trials import Rig, arm
from weighbridge.results.analysis.tuning.ledger import Ledger, LedgerEntry, ledger
from weighbridge.results.record.trial import Arm
from weighbridge.suites.tuning import Objective

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
