import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import fake_tuning
from made_rows import altered
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.store import RunStore

SHORT = tuple(altered(workload, runtime=3.0) for workload in WORKLOADS)
SPOILT = StepFaults(
    failed=(("swift", "small-read", 16),),
    erring=(("rgw-beast", "small-write", 32),),
    absent=(("swift", "large-read", 8),),
)


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Made-up runs need not survive a power cut: their writes are not waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def stats() -> Any:
    """`scipy.stats`: it takes a second to import, so only the tests that ask for it do so."""
    return import_module("scipy.stats")


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two layouts and repeats; steps that failed, erred and were absent. Not to be changed."""
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=2, spoilt=SPOILT)


@pytest.fixture(scope="session")
def tuned_run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A tuning that chose a setting and confirmed it, of two objectives. Not to be changed."""
    return fake_tuning(tmp_path_factory.mktemp("tunings"))


@pytest.fixture(scope="session")
def tuned_data(tuned_run: RunStore) -> RunData:
    return open_run(tuned_run.folder)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"
