import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("room", ["record", "analysis.run_data", "analysis.findings"])
def test_reading_a_run_imports_no_heavy_library(room: str) -> None:
    heavy = ("altair", "scipy", "numpy", "duckdb", "pptx", "influxdb_client")
    code = (
        f"import sys, weighbridge.results.{room}; print([name for name in {heavy} if name in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"


def test_everything_in_all_exists() -> None:
    door = import_module("weighbridge.results.record")
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
