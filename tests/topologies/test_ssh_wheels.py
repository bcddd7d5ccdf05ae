from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from weighbridge.topologies.ssh import suite


@pytest.mark.long  # packs and imports all that drivers need: 4 s of CPU
def test_wheels_of_a_client_have_all_imports_of_drivers_and_none_of_reports_alone(
    tmp_path: Path,
) -> None:
    names = {name.lower() for name in suite.packages()}
    assert {"locust", "gevent", "boto3", "pydantic_core", "greenlet"} <= names
    assert not names & {
        "altair",
        "vl-convert-python",
        "duckdb",
        "python-pptx",
        "scipy",
        "optuna",
        "influxdb-client",
        "numpy",
    }
    unpacked = tmp_path / "site"
    for wheel in suite.wheelhouse(suite.Python.here(), tmp_path):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
    # With nothing but the standard library and the unpacked wheels.
    source = f"import sys; sys.path.append({str(unpacked)!r})\n" + "".join(
        f"import {name}\n" for name in suite.MODULES
    )
    source += "from weighbridge import drivers; print(drivers.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(unpacked))
