"""The Dockerfile, built and run by a real Docker daemon.

By hand, as it compiles all Rust parts without a cache of Cargo's:

    pytest -q tests/system/test_docker_images.py -m by_hand
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker_daemon import Docker, docker_daemon

pytestmark = [pytest.mark.system, pytest.mark.by_hand, pytest.mark.test_all]

ROOT = Path(__file__).parents[2]
BUILD_S = 1200.0
NOBODY = 65534
COMPARE = (
    *("compare", "--layouts", "null", "--hardware", "loopback", "--suite", "endpoints"),
    *("--duration", "2s", "--no-attest"),
)


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    with docker_daemon(tmp_path_factory.mktemp("docker")) as found:
        yield found


def built(docker: Docker, *options: str) -> str:
    """Build an image; returns its id."""
    version = ("--build-arg", "VERSION=7.8.9")
    said = docker("build", "-q", "--network=host", *version, *options, ROOT, timeout_s=BUILD_S)
    return said.splitlines()[-1]


def test_the_client_compares_and_reports_as_nobody(docker: Docker, tmp_path: Path) -> None:
    image = built(docker)
    run = ("run", "--rm", "--network=none", "--volume", f"{tmp_path}:/runs", image)
    assert docker(*run, "--version").split()[-1] == "7.8.9"
    os.chown(tmp_path, NOBODY, NOBODY)
    docker(*run, *COMPARE)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.stat().st_uid == NOBODY
    report = folder / "derived" / "report.html"
    assert report.stat().st_size > 0
    report.unlink()
    docker(*run, "report", f"runs/{folder.name}")
    assert report.stat().st_size > 0
    assert list((folder / "derived" / "charts").glob("*.svg"))


def test_the_lab_has_all_that_lab_hosts_need(docker: Docker) -> None:
    image = built(docker, "--target", "lab")
    said = docker("run", "--rm", "--privileged", "--network=none", image, "doctor")
    assert "missing" not in said.lower(), said
