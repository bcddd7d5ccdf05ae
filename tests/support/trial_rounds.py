"""Rounds of made-up trials, and the table of trials that comes of them."""

from typing import Any

from fake_trials import TrialMaker, fake_variant
from weighbridge.results.features.tuning.setting_table import (
    SettingEntry,
    SettingTable,
    setting_table,
)
from weighbridge.results.run.trial import LayoutVariant
from weighbridge.suites.tuning import Objective

READ = Objective(workload="small-read")
P90 = Objective(of="p90", workload="small-read")
FEW, MANY = fake_variant(64), fake_variant(128)


def book(maker: TrialMaker) -> SettingTable:
    return setting_table(maker.run, maker.trials, maker.visits)


def entry(maker: TrialMaker, who: LayoutVariant = FEW) -> SettingEntry:
    found = book(maker).entry(who)
    assert found is not None
    return found


def rounds(
    maker: TrialMaker, *variants: tuple[LayoutVariant, float], count: int = 6, **point: Any
) -> TrialMaker:
    """Rounds of baseline, these variants in order, baseline."""
    for number in range(count):
        maker.visit(maker.baseline, round=number)
        for who, factor in variants:
            maker.visit(who, factor, round=number, **point)
        maker.visit(maker.baseline, round=number)
    return maker


def values(
    maker: TrialMaker, who: LayoutVariant = FEW
) -> list[tuple[float | None, float | None, str]]:
    own = {trial.number for trial in maker.trials if trial.arm == who}
    return [(one.value, one.reference, one.why) for one in book(maker).readings if one.trial in own]
