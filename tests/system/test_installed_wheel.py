"""The suite as a package has it: one wheel, from another folder, without a checkout, by a user who
is not root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
NOBODY = 65534
SUITE = """
name: tiny
about: Whether it runs at all
api: [s3]
workloads:
  - name: read
    objects: {size: 4KB, containers: 1, per_container: 10}
    operations: {read: 100}
    workers: [1]
    runtime: 2s
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pip install` makes of the wheel; the packages that it needs are those of this
    Python.
    """
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", folder, ROOT],
        check=True,
        timeout=600,
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", *offline, "--target", folder / "site", wheel], check=True, timeout=600
    )
    return folder / "site"


def test_a_wheel_is_for_every_python_and_adds_one_name(site: Path) -> None:
    (wheel,) = site.parent.glob("*.whl")
    assert "-cp311-abi3-linux" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"weighbridge"}
    assert not [
        name for name in names if name.endswith((".rs", ".toml", ".lock")) or "/tests/" in name
    ]
    assert {path.name.split("-")[0] for path in site.iterdir()} <= {"weighbridge", "bin"}


def test_an_installed_suite_compares_and_draws_from_anywhere(site: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(SUITE)
    os.chown(tmp_path, NOBODY, NOBODY)
    rights = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    nobody = [
        "setpriv",
        f"--reuid={NOBODY}",
        f"--regid={NOBODY}",
        "--clear-groups",
        "--no-new-privs",
        *rights,
    ]
    line = [
        "compare",
        "--layouts",
        "null",
        "--hardware",
        "loopback",
        "--suite",
        "tiny.yaml",
        "--no-attest",
        "--out",
        "runs",
    ]
    done = subprocess.run(
        [*nobody, sys.executable, "-P", "-m", "weighbridge", *line],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in {0, 4}, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "derived" / "report.html").stat().st_size > 0
    assert list((run / "derived" / "charts").glob("*.svg"))
