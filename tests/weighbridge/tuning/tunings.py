"""For tests: running a tuning and reading its trials."""

from __future__ import annotations

from typing import Any

from stub_tuning import TuningFixture
from weighbridge.results.features.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.run.trial import Trial, TuningStore


def done(bed: TuningFixture) -> SettingTable:
    found = bed.tune().table
    assert found is not None
    return found


def entry(table: SettingTable, key: str, value: object) -> SettingEntry:
    [found] = [one for one in table.entries if one.variant.settings == {key: value}]
    return found


def trials(bed: TuningFixture) -> tuple[Trial, ...]:
    return TuningStore(bed.run_folder()).trials()


def outcomes(found: tuple[Trial, ...]) -> list[tuple[str, int, int, str]]:
    return [(one.arm.name, one.round, one.repeat, one.failed) for one in found]


def values(**levels: Any) -> list[dict[str, Any]]:
    return [
        {"key": key, **(tried if isinstance(tried, dict) else {"values": tried})}
        for key, tried in levels.items()
    ]


SEARCH: dict[str, Any] = {
    "strategy": "search",
    "search": {"proposals": 12, "trials": 3, "startup": 4, "finalists": 2},
    "parameters": [
        {"key": "speed", "range": {"low": 0.5, "high": 2.0}},
        {"key": "threads", "values": [4, 16]},
        {"key": "dummy", "values": [1, 2]},
    ],
}
