import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("room", ["record", "analysis.run_data", "analysis.findings"])
def test_reading_a_run_loads_nothing_that_draws_or_computes(room: str) -> None:
    heavy = ("altair", "scipy", "numpy", "duckdb", "pptx", "influxdb_client")
    told = (
        f"import sys, weighbridge.results.{room}; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_door_has_all_that_it_names() -> None:
    door = import_module("weighbridge.results.record")
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
