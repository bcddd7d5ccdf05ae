"""A store of another package, with a program that Debian lacks, measured on lab hosts.

Its image is built for it, so that it is not part of `make test`:

    pytest -q tests/system/test_strangers_store.py -m by_hand
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suite_command import measured, trial
from weighbridge.environment import place
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies import images

pytestmark = [pytest.mark.system, pytest.mark.by_hand]

TOY = Path(__file__).parents[1] / "support" / "toy_store"
LAYOUT = "{name: stranger, about: A toy, gateway: toy, release: toy-2, place: {server: store-1}}\n"
SUITE = trial("[swift]", "{read: 50, write: 50}", "5s", per_container=8)


def test_a_store_of_another_package_is_built_put_into_an_image_and_measured_on_lab_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOY))
    import toy_wheel  # noqa: PLC0415

    import toy_store  # noqa: PLC0415 - another package

    (tmp_path / toy_wheel.NAME).write_bytes(toy_wheel.wheel())
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "suite.yaml").write_text(SUITE)
    words = ["--layouts", "layout.yaml", "--suite", "suite.yaml", "--hardware", "lab-cpu"]
    more = ["--repeats", "1", "--no-attest", "--no-charts", "--out", "runs"]
    places = [str(TOY), *filter(None, [os.environ.get("PYTHONPATH")])]
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "weighbridge", "compare", *words, *more],
            cwd=tmp_path,
            env={**os.environ, **pip, "PYTHONPATH": os.pathsep.join(places)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        (step,) = measured(done, tmp_path / "runs").latest().values()
        assert step.measurement is not None
    finally:
        _remove(toy_store.Toy.releases["toy-2"])


def _remove(image: RootImage) -> None:
    """Images are everybody's: what only this test wants does not stay."""
    store, (program,) = place().images, image.programs
    for path in (store / images.key(image), images.path_of(program, store).parent):
        shutil.rmtree(path, ignore_errors=True)
        for ending in (".lock", ".packages"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
