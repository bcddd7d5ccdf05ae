"""Both commands of README, and a wheel, in bare roots of the distributions that it names.

By hand, as each installs a compiler and builds all Rust parts. A comparison takes some minutes for
each root, all tests more than an hour:

    pytest -q tests/system/test_bare_roots.py -m by_hand -k "compare"
    pytest -q tests/system/test_bare_roots.py -m by_hand -k "every_test and trixie"
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.system, pytest.mark.by_hand, pytest.mark.test_all]

ROOT = Path(__file__).parents[2]
LIMIT_S = 1200
EVERY_TEST_S = 3 * 3600
SHORT = "--suite endpoints --duration 2s --repeats 1 --no-attest"
LAB = f"--layouts rgw-beast,swift-s3api {SHORT}"
LOOPBACK = f"--layouts null,null:delay_ms=5 --hardware loopback {SHORT}"
SUITES = ("noble", "trixie")


def run(suite: str, line: str, *, keep: bool = False, limit_s: float = LIMIT_S) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "bare_root.sh", suite, line],
        env={**os.environ, **({"KEEP": "1"} if keep else {})},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    if done.returncode and not (ROOT / "build" / "roots" / suite).is_dir():
        pytest.skip(f"no base system of {suite} can be had: {done.stderr[-500:]}")
    assert done.returncode == 0, f"{line}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


@pytest.mark.parametrize("suite", SUITES)
def test_make_compare_installs_what_is_missing_and_compares_real_stores(suite: str) -> None:
    # It ends with 4 where other programs are busy: what it says of the stores is not asked here.
    run(suite, f"make compare ARGS={shlex.quote(LAB)}; ls runs/*/derived/report.html")


@pytest.mark.parametrize("suite", SUITES)
def test_every_test_passes_or_says_which_package_the_release_lacks(suite: str) -> None:
    run(suite, "make test", limit_s=EVERY_TEST_S)


@pytest.mark.parametrize("suite", SUITES)
def test_a_wheel_of_this_machine_compares_there_without_a_compiler(suite: str) -> None:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    run(suite, "apt-get update -qq && apt-get install -y -qq pipx >/dev/null")
    (ROOT / "build" / "roots" / f"{suite}.run" / "root" / wheel.name).write_bytes(
        wheel.read_bytes()
    )
    lines = [
        f"pipx install '/root/{wheel.name}[report]'",
        f"cd && ~/.local/bin/weighbridge compare {LOOPBACK}",
        "ls runs/*/derived/report.html",
        "! command -v cc",
    ]
    run(suite, " && ".join(lines), keep=True)
