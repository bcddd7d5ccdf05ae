"""The ranges of pyproject.toml hold at their lower ends: an environment of the oldest versions that
they allow runs the suite.

The upper ends are the lock files', with which all other tests run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = [
    pytest.mark.system,
    pytest.mark.test_all,
    pytest.mark.skipif(
        sys.version_info >= (3, 12),
        reason="the lower ends are those of Python 3.11: later ones have later floors",
    ),
]

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/drivers/locust/test_client.py",
    "tests/drivers/locust/test_step.py",
    "tests/results/show/test_query.py",
    "tests/drivers/locust/test_driver_faults.py",
    "tests/weighbridge/test_locust.py::test_the_page_starts_tests_shows_live_percentiles_and_no_key",
    "tests/results/show/test_deck.py",
    "tests/weighbridge/test_command.py",
    "tests/suites/test_importer.py",
    "tests/results/show/test_tables.py",
    "tests/weighbridge/conductor/test_influx_writer.py",
    "tests/topologies/test_loader.py",
)
"""Where the suite leans on the libraries most:

SDKs, Locust, charts, slides, tables, records, SQL, search.
"""
TESTED_WITH = ("altair", "numpy", "scipy")
"""What these tests check results with."""
IMPORT_ALL = """
import importlib, pkgutil, sys
import weighbridge
found = pkgutil.walk_packages(weighbridge.__path__, "weighbridge.")
names = [one.name for one in found if not one.name.endswith(".__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def floors() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = []
    extras = project["optional-dependencies"]
    wanted = {*project["dependencies"]}
    wanted |= {words for name in Requirement(*extras["all"]).extras for words in extras[name]}
    wanted |= {words for words in extras["test"] if Requirement(words).name in TESTED_WITH}
    for words in sorted(wanted):
        one = Requirement(words)
        (bound,) = one.specifier
        assert bound.operator == ">=", words
        extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
        found.append(f"{one.name}{extras}=={bound.version}")
    return found


METADATA = """
import sys
from setuptools.build_meta import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(sys.argv[1])
"""


def run(line: Sequence[str], *paths: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *paths)))}
    done = subprocess.run(
        line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1500
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def test_the_oldest_versions_that_are_allowed_run_the_suite(tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    python = str(tmp_path / "venv" / "bin" / "python")
    # Half of it is imported by nobody.
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    run([*install, *floors(), "pytest", "hypothesis", "jsonschema", "markdown-it-py"])
    assert int(run([python, "-c", IMPORT_ALL])) > 300
    # Without its entry points the suite has no drivers.
    metadata = tmp_path / "metadata"
    metadata.mkdir()
    run([sys.executable, "-c", METADATA, str(metadata)])
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    assert " passed" in run(tests, metadata)
