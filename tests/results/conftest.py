from __future__ import annotations

from pathlib import Path

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import fake_tuning
from weighbridge.results.record.store import RunStore

SHORT = tuple(workload.model_copy(update={"runtime": 3.0}) for workload in WORKLOADS)
SPOILT = StepFaults(
    failed=(("swift", "small-read", 16),),
    erring=(("rgw-beast", "small-write", 32),),
    absent=(("swift", "large-read", 8),),
)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two layouts, two repeats, one step that failed, one with errors beyond the bound, one never
    measured. Not to be changed.
    """
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=2, spoilt=SPOILT)


@pytest.fixture(scope="session")
def tuned_run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A tuning that chose a setting and confirmed it, of two objectives. Not to be changed."""
    return fake_tuning(tmp_path_factory.mktemp("tunings"))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"
