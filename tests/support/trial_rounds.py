"""Rounds of made-up trials, and the table of trials that comes of them."""

from __future__ import annotations

from typing import Any

from fake_trials import TrialMaker, fake_variant
from weighbridge.results.analysis.tuning.setting_table import (
    SettingEntry,
    SettingTable,
    setting_table,
)
from weighbridge.results.record.trial import LayoutVariant
from weighbridge.suites.tuning import Objective

READ = Objective(workload="small-read")
P90 = Objective(of="p90", workload="small-read")
FEW, MANY = fake_variant(64), fake_variant(128)


def book(rig: TrialMaker) -> SettingTable:
    return setting_table(rig.run, rig.trials, rig.visits)


def entry(rig: TrialMaker, who: LayoutVariant = FEW) -> SettingEntry:
    found = book(rig).entry(who)
    assert found is not None
    return found


def rounds(
    rig: TrialMaker, *variants: tuple[LayoutVariant, float], count: int = 6, **point: Any
) -> TrialMaker:
    """Rounds of baseline, these variants in order, baseline."""
    for number in range(count):
        rig.visit(rig.baseline, round=number)
        for who, factor in variants:
            rig.visit(who, factor, round=number, **point)
        rig.visit(rig.baseline, round=number)
    return rig


def values(
    rig: TrialMaker, who: LayoutVariant = FEW
) -> list[tuple[float | None, float | None, str]]:
    own = {trial.number for trial in rig.trials if trial.arm == who}
    return [(one.value, one.reference, one.why) for one in book(rig).readings if one.trial in own]
